"""What all tests of the panel share."""

import pytest

from tests.admin.manager import CHEAP, KEPT


@pytest.fixture(autouse=True)
def cheap_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash says itself how dear it is: those that the panel makes are cheap in these tests.

    That they are dear otherwise is tested with `clinic-gateway admin`.
    """
    monkeypatch.setattr("gateway.administrators.passwords._hasher", lambda: CHEAP)
    monkeypatch.setattr("gateway.administrators.passwords._nobody", lambda: KEPT)
