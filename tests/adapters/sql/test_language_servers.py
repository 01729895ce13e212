"""What the mapping's language adds to SQL: on each kind of database, with its own rows."""

from collections.abc import Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from time_machine import travel

from adapters.base import Query
from adapters.doctor import doctor_of
from adapters.examination import Examination, Finding
from adapters.sql.adapter import SqlAdapter
from tests.races.practice import KINDS, ZONE, Practice, practice

NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture(
    scope="module",
    params=[
        kind if kind == "sqlite" else pytest.param(kind, marks=pytest.mark.long) for kind in KINDS
    ],
)
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Practice]:
    """A practice whose invoice has three lines, and whose stock was valid for some days."""
    lines = ", ".join(f"(1, '{label}', {total})" for label, total in (("b", 9), ("a", 9), ("c", 1)))
    today = NOW.astimezone(ZONE).date()
    with practice(
        request.param,
        tmp_path_factory.mktemp("made"),
        f"INSERT INTO line (invoice, label, total) VALUES {lines}",
        "CREATE TABLE price (item INTEGER, begins DATE, ends DATE, amount DECIMAL(8, 2))",
        *(
            f"INSERT INTO price VALUES (1, '{today + timedelta(days=first)}',"
            f" '{today + timedelta(days=last)}', {amount})"
            for first, last, amount in ((-9, -1, 1), (0, 0, 2), (1, 9, 3))
        ),
        f"INSERT INTO absence (vet, starts, ends) VALUES (1,"
        f" '{wall(NOW - timedelta(minutes=5))}', '{wall(NOW + timedelta(minutes=5))}')",
    ) as opened:
        yield opened


def wall(moment: datetime) -> datetime:
    """What the clinic's clock shows then."""
    return moment.astimezone(ZONE).replace(tzinfo=None)


def replaced(text: str, *changes: tuple[str, str]) -> str:
    for right, wrong in changes:
        assert right in text, right
        text = text.replace(right, wrong, 1)
    return text


async def records(adapter: SqlAdapter, resource: str, **more: Any) -> list[Any]:
    page = await adapter.read_many(Query(resource=resource, now=NOW, limit=50, **more))
    return list(page.records)


async def failures(adapter: SqlAdapter, *, booking: bool = False) -> list[Finding]:
    found = doctor_of(adapter).examine(adapter, Examination(now=NOW, booking=booking))
    return [finding async for finding in found if finding.verdict == "failed"]


async def test_the_lines_of_an_invoice_have_the_order_that_the_mapping_says(
    made: Practice, tmp_path: Path
) -> None:
    for order, labels in (
        ("", "vbac"),
        ("order: LOWER(label), ", "abcv"),
        ("order: [total, LOWER(label) desc], ", "cbav"),
        ("order: ['COALESCE(total, 0) DESC', 'LOWER(label)  ASC'], ", "vabc"),
    ):
        text = replaced(made.mapping, ("parent: invoice,", f"parent: invoice, {order}"))
        async with aclosing(made.open(tmp_path, text)) as adapter:
            [invoice, *_] = await records(adapter, "invoices")
        assert "".join(line["description"][0].lower() for line in invoice["lines"]) == labels


CLOCK = (
    (
        "reorderThreshold: least,",
        'reorderThreshold: least, salePrice: "{price(stock.id)}", updatedAt: ":now",',
    ),
    (
        "resources:\n",
        "expressions:\n  price(item): SELECT p.amount FROM price p WHERE p.item = {item}"
        " AND p.begins <= :today AND p.ends >= :today\nresources:\n",
    ),
    ("  vets: {from: vet, key", "  vets: {from: vet, where: ':now > ''2026-01-01''', key"),
    (
        "from: patient, key",
        "from: 'patient JOIN client c ON c.id = patient.client AND c.changed < :now', key",
    ),
    (
        "fields: {clientId: client, name: name}",
        "fields: {clientId: client, name: name, birthDate: ':today'}",
    ),
    ("key: id, fields: {clientId", "key: patient.id, fields: {clientId"),
)


async def test_now_and_today_are_the_clinics_in_every_expression(
    made: Practice, tmp_path: Path
) -> None:
    async with aclosing(made.open(tmp_path, replaced(made.mapping, *CLOCK))) as adapter:
        # the statement that was compiled before asks the clock again
        for later, price in ((0, "2.00"), (1, "3.00")):
            with travel(NOW + timedelta(days=later), tick=False):
                bandage, syringe = await records(adapter, "stock")
                assert (bandage["salePrice"], syringe["salePrice"]) == (price, None)
                assert datetime.fromisoformat(bandage["updatedAt"]) == datetime.now(UTC)
                assert len(await records(adapter, "vets")) == 3
                patients = await records(adapter, "patients")
                today = datetime.now(ZONE).date().isoformat()
                assert [each["birthDate"] for each in patients] == [today, today]


async def test_the_check_prepares_them_all(made: Practice, tmp_path: Path) -> None:
    changes = (
        *CLOCK,
        ("from: absence, vet", "from: absence, where: 'ends > :now', vet"),
        ("state: BOOKED\n", "state: {sql: \"CASE WHEN :now > '2026-01-01' THEN 'BOOKED' END\"}\n"),
        ("source: gateway", "source: {sql: \"CONCAT('R', :minutes)\"}"),
    )
    text = replaced(made.mapping, *changes)
    if made.kind in ("sqlite", "firebird"):
        text = text.replace("CONCAT('R', :minutes)", "'R' || :minutes")
    async with aclosing(made.open(tmp_path, text)) as adapter:
        found = [finding.text for finding in await failures(adapter, booking=True)]
    # its notes are shorter than the longest reason
    assert [text for text in found if "500 characters" not in text] == []
