"""The same over servers whose columns have types and collations of their own."""

from collections.abc import AsyncIterator, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from adapters.base import Condition, NotFound
from adapters.conformance.pages import let_be
from adapters.sql.adapter import SqlAdapter
from tests.adapters.asked import asked
from tests.adapters.clinic import ask, everything
from tests.adapters.servers import firebird_database, mariadb_database, postgres_database
from tests.adapters.sql.test_conditions import narrowed, of_values
from tests.adapters.sql.test_sql_adapter_servers import IDENTITY, MAPPING, SCHEMA, connect

pytestmark = pytest.mark.long

THINGS = (
    "CREATE TABLE thing (id INTEGER PRIMARY KEY, label VARCHAR(40){fold}, changed {stamp},"
    " expiry DATE, price VARCHAR(20), exact DECIMAL(10,3), rough {rough}, cents INTEGER,"
    " code VARCHAR(3){fold},"
    " flag {bit}, yes BOOLEAN, seen VARCHAR(20))",
    "INSERT INTO thing VALUES"
    " (1, 'Élan', '2026-10-25 02:30:00', '2026-02-01', '1 234,50', 4.5, 0.1, 450, 'O', {one},"
    " TRUE, '2026-10-25 02:30'),"
    " (2, 'ÉLAN', '2026-10-25 01:30:00', '2026-02-02', '4.5', 4.504, 0.3, 451, 'o', {nil},"
    " FALSE, '2026-10-25'),"
    " (3, ' Élan ', '2026-10-25 03:00:00', NULL, '4.504', 4.505, 7, 449, ' O', NULL,"
    " NULL, '2026-10-25 02:30:01'),"
    " (4, 'Elan', '2026-03-29 02:30:00', '2026-02-03', '1.234,56', -1, 1e9, 0, 'X', {one},"
    " TRUE, '2026-01-02 10:00'),"
    " (5, '', NULL, '1900-01-01', 'much', NULL, NULL, NULL, NULL, {nil}, FALSE, NULL),"
    " (6, NULL, '1900-01-01 00:00:00', '2026-02-02', '', 0, 0, -1, '', {one}, TRUE, ''),"
    " (7, 'élan', '2026-03-29 03:00:00', '2026-02-01', NULL, 1234.5, 2.5, 45, 'N', {nil}, NULL,"
    " '2026-01-02')",
)
WORDS = {
    "postgresql": {
        "stamp": "timestamp",
        "serial": "serial PRIMARY KEY",
        "fold": "",
        "rough": "real",
        "bit": "INTEGER",
        "one": "1",
        "nil": "0",
    },
    "mariadb": {
        "stamp": "datetime",
        "serial": "INTEGER AUTO_INCREMENT PRIMARY KEY",
        "fold": " COLLATE utf8mb4_unicode_ci",
        "rough": "FLOAT",
        "bit": "BIT(1)",
        "one": "b'1'",
        "nil": "b'0'",
    },
    "firebird": {
        "stamp": "timestamp",
        "serial": IDENTITY,
        "fold": " COLLATE UNICODE_CI_AI",
        "rough": "FLOAT",
        "bit": "SMALLINT",
        "one": "1",
        "nil": "0",
    },
}
DATABASES = {
    "postgresql": postgres_database,
    "mariadb": mariadb_database,
    "firebird": firebird_database,
}
STOCK = """
  stock:
    from: thing
    key: id
    fields:
      name: label
      updatedAt: changed
      expiresAt: expiry
      purchasePrice: price
      salePrice: exact
      quantity: rough
      reorderThreshold: {source: cents, as: number}
      category: {source: code, codes: {O: MEDICINE, N: FOOD, "": OTHER}}
      reference: {source: flag, codes: {"1": ON, "0": "OFF"}}
      isLow: "yes"
"""
VALUES = {
    "name": ("Élan", "ÉLAN", "Elan", "élan", "x"),
    "updatedAt": ("2026-10-25T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"),
    "expiresAt": ("2026-02-01", "2026-02-02", "2026-02-03"),
    "purchasePrice": ("4.50", "1234.50", "1234.56"),
    "salePrice": ("4.50", "0.00", "1234.50"),
    "quantity": (0.1, 7, 2.5),
    "reorderThreshold": (450, 0),
    "category": ("MEDICINE", "FOOD", "OTHER"),
    "reference": ("ON", "OFF"),
    "isLow": (True, False),
}


def _mapping() -> str:
    plain = "  stock: {from: vet, key: id, fields: {name: name}}\n"
    assert plain in MAPPING
    return MAPPING.replace(plain, STOCK)


@pytest.fixture(params=[*WORDS])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    words = WORDS[request.param]
    with DATABASES[request.param](*(each.format(**words) for each in (*SCHEMA, *THINGS))) as made:
        yield made


@pytest.fixture
async def adapter(url: str, tmp_path: Path) -> AsyncIterator[SqlAdapter]:
    opened = connect(url, tmp_path, _mapping())
    yield opened
    await opened.aclose()


async def test_a_record_is_judged_by_the_value_that_it_shows(adapter: SqlAdapter) -> None:
    whole = await everything(adapter, "stock")
    assert [each["name"] for each in whole][:4] == ["Élan", "ÉLAN", "Élan", "Elan"]
    for field, values in VALUES.items():
        for only in of_values(field, values):
            assert adapter.narrows("stock", (only,)) == []
            found = await narrowed(adapter, "stock", (only,), limit=3)
            assert found == let_be(whole, (only,)), only


async def test_a_time_may_be_a_day(url: str, tmp_path: Path) -> None:
    adapter = connect(url, tmp_path, _mapping().replace("updatedAt: changed", "updatedAt: expiry"))
    whole = await everything(adapter, "stock")
    times = ("2026-01-31T23:00:00Z", "2026-02-01T09:30:00Z", "2026-02-01T23:00:00Z")
    assert {times[0], times[2]} <= {each["updatedAt"] for each in whole}
    for only in of_values("updatedAt", times):
        assert await narrowed(adapter, "stock", (only,), limit=2) == let_be(whole, (only,)), only
    await adapter.aclose()


async def test_a_time_that_is_a_text_may_end_before_its_seconds(url: str, tmp_path: Path) -> None:
    adapter = connect(url, tmp_path, _mapping().replace("updatedAt: changed", "updatedAt: seen"))
    whole = await everything(adapter, "stock")
    times = ("2026-10-25T00:30:00Z", "2026-01-02T09:00:00Z", "2026-01-01T23:00:00Z")
    assert set(times) <= {each["updatedAt"] for each in whole}
    for only in of_values("updatedAt", times):
        assert await narrowed(adapter, "stock", (only,), limit=2) == let_be(whole, (only,)), only
    await adapter.aclose()


async def test_a_text_is_told_apart_by_case_accents_and_blanks_in_one_statement(
    adapter: SqlAdapter,
) -> None:
    whole = await everything(adapter, "stock")
    only = (Condition("name", "in", ("Élan",)),)
    with asked() as said:
        page = await adapter.read_many(ask("stock", only=only, limit=1))
    assert page.records == whole[:1]
    assert page.after is not None
    assert len([each for each in said if "FROM thing" in each.text]) == 1
    for record, exists in zip(whole, (True, False, True, False, False, False, False), strict=True):
        query = ask("stock", id=record["id"], only=only)
        if exists:
            assert await adapter.read_one(query) == record
        else:
            with pytest.raises(NotFound):
                await adapter.read_one(query)


async def test_bounds_of_every_kind_hold_together(adapter: SqlAdapter) -> None:
    whole = await everything(adapter, "stock")
    only = (
        Condition("updatedAt", "min", datetime.fromisoformat("2026-03-29T01:00:00Z")),
        Condition("expiresAt", "max", date(2026, 2, 2)),
        Condition("salePrice", "above", Decimal("4.49")),
    )
    assert await narrowed(adapter, "stock", only) == let_be(whole, only) != []
