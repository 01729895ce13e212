"""Sealed ids round-trip, differ per resource, and can't be made up."""

from itertools import pairwise
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.ids.seal import SealedIds

CLIENTS = SealedIds(b"k" * 32, "clients")
PATIENTS = SealedIds(b"k" * 32, "patients")
KEYS = st.integers(min_value=-(1 << 63), max_value=(1 << 63) - 1)


@given(KEYS)
def test_every_64_bit_key_round_trips_through_a_version_8_uuid(key: int) -> None:
    sealed = CLIENTS.seal(key)
    assert UUID(sealed).version == 8
    assert str(UUID(sealed)) == sealed
    assert CLIENTS.unseal(sealed) == key


@given(KEYS)
def test_one_key_has_another_id_in_each_resource_and_under_each_secret(key: int) -> None:
    sealed = CLIENTS.seal(key)
    assert PATIENTS.unseal(sealed) is None
    assert SealedIds(b"l" * 32, "clients").unseal(sealed) is None


def test_a_foreign_or_changed_uuid_opens_nothing() -> None:
    sealed = CLIENTS.seal(6)
    assert all(CLIENTS.unseal(str(uuid4())) is None for _ in range(2_000))
    changed = 0
    for place, digit in enumerate(sealed):
        for other in "0123456789abcdef":
            if digit not in ("-", other):
                changed += 1
                assert CLIENTS.unseal(sealed[:place] + other + sealed[place + 1 :]) is None
    assert changed == 32 * 15


def test_neighbouring_keys_have_ids_that_share_nothing() -> None:
    numbers = [UUID(CLIENTS.seal(key)).int for key in range(200)]
    distances = [(a ^ b).bit_count() for a, b in pairwise(numbers)]
    assert 55 < sum(distances) / len(distances) < 67  # half of 122 bits


def test_the_same_secret_gives_the_same_id_tomorrow() -> None:
    assert SealedIds(b"k" * 32, "clients").seal(6) == CLIENTS.seal(6)
    assert CLIENTS.seal(6) == "a9d0588e-f53d-804e-92d1-cc25dd9888e8"


TEXTS = st.text(min_size=1, max_size=8).filter(
    lambda text: len(text.encode(errors="replace")) <= 8 and "\0" not in text and text.isprintable()
)


@given(TEXTS)
def test_a_short_text_round_trips_and_is_never_taken_for_a_number(key: str) -> None:
    sealed = CLIENTS.seal(key)
    assert UUID(sealed).version == 8
    assert CLIENTS.unseal(sealed) == key
    assert PATIENTS.unseal(sealed) is None
    number = int.from_bytes(key.encode().ljust(8, b"\0"), signed=True)
    assert CLIENTS.seal(number) != sealed


@pytest.mark.parametrize("key", ["", "nine byte", "é" * 5, "a\0"])
def test_a_text_that_does_not_fit_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="only texts of 1 to 8 bytes"):
        CLIENTS.seal(key)
