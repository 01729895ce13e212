"""Keys that tables keep in different ways, on each kind of server: what belongs to what."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.base import NotFound, Query
from tests.races.practice import practice

KEPT_AS = [
    ("postgresql", "char(10)", "varchar(10)", "F1", "F1"),
    ("postgresql", "varchar(10)", "integer", "12", "12"),
    ("mariadb", "varchar(10)", "integer", "12", "12"),
    ("mariadb", "varchar(10)", "varchar(10)", "F1", "f1"),
    ("sqlite", "text", "integer", "12", "12"),
]


@pytest.mark.parametrize(("kind", "key", "parent", "one", "same"), KEPT_AS)
async def test_lines_are_their_invoices_however_each_table_keeps_the_key(
    kind: str, key: str, parent: str, one: str, same: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path) as made:
        await made.run(
            f"CREATE TABLE bill (id {key}, client INTEGER)",
            f"CREATE TABLE item (id INTEGER, bill {parent}, label VARCHAR(60))",
            f"INSERT INTO bill VALUES ('{one}', 1), ('0{one}', 2)",
            f"INSERT INTO item VALUES (1, '{same}', 'Visit')",
        )
        bills = (
            "{from: bill, key: id, fields: {clientId: client},"
            " lists: {lines: {from: item, parent: bill, key: id, fields: {description: label}}}}\n"
            "  stock:"
        )
        before, _, rest = made.mapping.partition("  invoices:\n")
        mapping = f"{before}  invoices: {bills}{rest.partition('  stock:')[2]}"
        adapter = made.open(tmp_path, mapping)
        now = datetime.now(UTC)
        page = (await adapter.read_many(Query(resource="invoices", now=now))).records
        assert sorted(len(each["lines"]) for each in page) == [0, 1]
        alone = [
            await adapter.read_one(Query(resource="invoices", now=now, id=each["id"]))
            for each in page
        ]
        assert alone == list(page)
        await adapter.aclose()


async def test_a_text_that_only_begins_with_a_key_leads_to_nobody(tmp_path: Path) -> None:
    with practice("mariadb", tmp_path) as made:
        mapping = made.mapping.replace("vetId: vet\n", "vetId: \"CONCAT(vet, ';2')\"\n")
        adapter = made.open(tmp_path, mapping)
        now = datetime.now(UTC)
        [seen] = (await adapter.read_many(Query(resource="consultations", now=now))).records
        with pytest.raises(NotFound):
            await adapter.read_one(Query(resource="vets", now=now, id=seen["vetId"]))
        values = {"vetId": seen["vetId"], "date": now.date()}
        with pytest.raises(NotFound):
            await adapter.read_many(Query(resource="slots", now=now, values=values))
        await adapter.aclose()
