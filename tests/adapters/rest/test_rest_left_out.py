"""Fact 33 over HTTP: a product without stock, invoices, a diary or bookings is served as it is."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.base import BackendUnavailable
from adapters.doctor.rest import examine
from adapters.documents.problems import DocumentErrors
from adapters.examination import Examination, Verdict
from gateway.backend import shapes
from tests.adapters.clinic import NOW, ask
from tests.adapters.rest.cloud import connect


def without(*names: str) -> Callable[[str], str]:
    """What leaves these parts out of the cloud's mapping."""

    def change(text: str) -> str:
        for name in names:
            indent = "" if name in ("diary", "booking") else "  "
            found = rf"(?m)^{indent}{name}:.*\n(?:{indent} .*\n|\n)*"
            text, count = re.subn(found, "", text)
            assert count == 1, name
        return text

    return change


async def test_fact_33_what_a_product_lacks_is_left_out(url: str, tmp_path: Path) -> None:
    text = without("stock", "invoices", "consultations", "appointments", "diary", "booking")
    adapter = connect(url, tmp_path, text)
    assert adapter.resources == {"clients", "patients", "vets", "appointmentTypes"}
    assert not adapter.books
    await adapter.ping()
    await adapter.check()
    assert (await adapter.read_many(ask("patients", limit=3))).records
    found = [each async for each in examine(adapter, Examination(now=NOW, booking=True))]
    assert [each for each in found if each.verdict is Verdict.FAILED] == []
    with pytest.raises(BackendUnavailable):
        await adapter.find_overwritten([])
    await adapter.aclose()


async def test_without_a_list_to_ask_for_the_ping_is_written(url: str, tmp_path: Path) -> None:
    every = [name for name in shapes() if name not in ("slots", "consultations")]
    change = without(*every, "ping", "diary", "booking")
    with pytest.raises(DocumentErrors) as caught:
        connect(url, tmp_path, lambda text: re.sub(r"    list: .*\n", "", change(text)))
    assert "ping is missing" in str(caught.value)
