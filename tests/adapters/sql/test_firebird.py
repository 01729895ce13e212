"""What is particular to Firebird: values, character sets, locks of rows, rights, names, a draft."""

import asyncio
import ctypes
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select, text
from sqlalchemy.engine import make_url

from adapters.base import BackendNonsense, BackendUnavailable
from adapters.doctor.sql import examine
from adapters.documents.problems import DocumentErrors
from adapters.draft import draft_mapping
from adapters.examination import Examination, Verdict
from adapters.mapping.models import RowSource
from adapters.sql.adapter import SqlAdapter
from adapters.sql.columns import rows_of, sql
from adapters.sql.engines import Engine, open_engine, wrong_with
from adapters.sql.engines.base import given
from gateway.backend import shapes
from tests.adapters.clinic import NOW, everything, slots
from tests.adapters.servers import execute, firebird_connection, firebird_database
from tests.adapters.sql.test_sql_adapter_servers import (
    IDENTITY,
    MAPPING,
    SCHEMA,
    _draft,
    connect,
)

pytestmark = pytest.mark.long

VALUES = {
    "CAST(NULL AS INTEGER)": None,
    "small": 1,
    "yes": True,
    "big": 9007199254740993,
    "whole": 12,
    "amount": Decimal("45.5000"),
    "rough": 0.1,
    "fine": 1.5,
    "day": "2026-03-01",
    "moment": "2026-03-01 09:00:00",
    "clock": "09:30:00",
    "padded": "a  ",
    "name": "é",
    "note": "long é",
    "raw": b"\x00\xff",
    "old": "é",
    "SUM(3)": 3,
}
TABLE = (
    "CREATE TABLE every_type (small SMALLINT, yes BOOLEAN, big BIGINT, whole NUMERIC(10, 0),"
    ' amount NUMERIC(10, 4), rough FLOAT, fine DOUBLE PRECISION, "DAY" DATE, moment TIMESTAMP,'
    " clock TIME, padded CHAR(3), name VARCHAR(9), note BLOB SUB_TYPE TEXT, raw BLOB SUB_TYPE 0,"
    " old VARCHAR(9) CHARACTER SET WIN1252)",
    "INSERT INTO every_type VALUES (1, TRUE, 9007199254740993, 12, 45.5, 0.1, 1.5, '2026-03-01',"
    " '2026-03-01 09:00', '09:30', 'a', 'é', 'long é', x'00FF', 'é')",
)


@asynccontextmanager
async def opened(url: str, **more: float) -> AsyncIterator[Engine]:
    engine = open_engine(url, **{"timeout": 3.0, "booking_timeout": 3.0, **more})
    yield engine
    await engine.aclose()


@pytest.fixture
def clinic() -> Iterator[str]:
    words = {"stamp": "timestamp", "serial": IDENTITY}
    with firebird_database(*(each.format(**words) for each in SCHEMA)) as url:
        yield url


async def test_values_are_plain() -> None:
    names = ['"DAY"' if name == "day" else name for name in VALUES]
    rows = RowSource.model_validate({"from": "every_type"})
    with firebird_database(*TABLE) as url:
        async with opened(url) as engine:
            for name, wanted in zip(names, VALUES.values(), strict=True):
                question = rows_of(rows, sql(name)).where(sql("1 = 1"))
                compiled = str(question.compile(compile_kwargs={"literal_binds": True}))
                [[value]] = await engine.ask(lambda it, each=compiled: it.run(each, ()))
                assert repr(value) == repr(wanted), name


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("small", each) for each in (True, 1, "1", 0)),
        *(("yes", each) for each in (True, 1, "true", False)),
        *(("name", each) for each in ("x", 5, True)),
        *(("amount", each) for each in ("12.50", 12, 1.5)),
        *(("moment", each) for each in ("2026-03-01 09:00:00", "2026-03-01")),
    ],
)
async def test_any_plain_value_is_written_into_any_column_and_found_again(
    column: str, value: Any
) -> None:
    """A SMALLINT as a truth, as before Firebird 3, too."""
    with firebird_database(*TABLE) as url:
        async with opened(url) as engine:

            def write(connection: Any) -> int:
                changed = text(f"UPDATE every_type SET {column} = :value")
                connection.execute(changed, {"value": value})
                where = sql(column) == given(None, value)
                rows = RowSource.model_validate({"from": "every_type"})
                return len(connection.execute(rows_of(rows, sql("1")).where(where)).all())

            assert await engine.book(write) == 1


async def test_texts_without_a_character_set_need_that_of_the_address() -> None:
    """Old databases keep the bytes of Windows, and say nothing of it."""
    with firebird_database(charset="NONE") as url:
        there = f"{url}?charset=WIN1252"
        execute(there, "CREATE TABLE person (id INTEGER, name VARCHAR(40))")
        execute(there, "INSERT INTO person VALUES (1, 'Müller')")
        rows = RowSource.model_validate({"from": "person"})
        async with opened(there) as engine:
            assert await engine.ask(lambda it: it.run("SELECT name FROM person", ())) == [
                ("Müller",)
            ]
            found = rows_of(rows, sql("id")).where(
                engine.speech.searchable(sql("name")).like(given(None, "% mull%"))
            )
            assert await engine.search(lambda it: it.execute(found).all()) == [(1,)]
        async with opened(url) as engine:
            assert await engine.ask(lambda it: it.run("SELECT name FROM person", ())) == [
                (b"M\xfcller",)
            ]
            found = select(engine.speech.searchable(sql("name"))).select_from(text("person"))
            with pytest.raises(BackendNonsense, match=r"\?charset=WIN1252"):
                await engine.search(lambda it: it.execute(found).all())


async def test_a_booking_locks_its_vets_row_and_no_other(clinic: str, tmp_path: Path) -> None:
    adapter = connect(clinic, tmp_path)
    draft = await _draft(adapter)
    desk = firebird_connection(make_url(clinic))
    try:
        for vet, free in ((2, True), (1, False)):
            with desk.cursor() as cursor:
                cursor.execute(f"UPDATE vet SET name = name WHERE id = {vet}")
            booking = asyncio.create_task(adapter.create_appointment(draft))
            await asyncio.wait([booking], timeout=1.0)
            assert booking.done() is free
            desk.rollback()
            if free:
                await booking
                await asyncio.to_thread(execute, clinic, "DELETE FROM visit")
            else:
                assert (await booking)["vetId"] == draft.vet_id
    finally:
        desk.close()
        await adapter.aclose()


PLAIN = "vets: {from: vet, key: id, fields: {name: name}}"
JOINED = MAPPING.replace(
    PLAIN, "vets: {from: vet v JOIN vet w ON w.id = v.id, key: v.id, fields: {name: v.name}}"
)


async def test_vets_of_several_tables_need_a_lock_of_the_mappings(
    clinic: str, tmp_path: Path
) -> None:
    adapter = connect(clinic, tmp_path, JOINED)
    with pytest.raises(DocumentErrors, match=r"WITH LOCK.*booking\.lock") as raised:
        await adapter.check()
    assert [each.code for each in raised.value.problems] == ["no-lock"]
    assert MAPPING.splitlines()[raised.value.problems[0].line - 1].startswith("  vets:")
    await adapter.aclose()
    locked = JOINED.replace(
        "  reference: reference\n",
        "  reference: reference\n  lock: UPDATE vet SET name = name WHERE id = :vet\n",
    )
    adapter = connect(clinic, tmp_path, locked)
    await adapter.check()
    assert await adapter.create_appointment(await _draft(adapter))
    await adapter.aclose()
    adapter = connect(clinic, tmp_path, locked.replace("id = :vet", "id = :vet + 90"))
    draft = await _draft(adapter)
    assert await slots(adapter, draft.vet_id, draft.scheduled_at.date())
    with pytest.raises(BackendNonsense, match="row that a booking locks is not there"):
        await adapter.create_appointment(draft)
    await adapter.aclose()


async def test_the_smallest_rights_are_enough_and_more_are_told(
    clinic: str, tmp_path: Path
) -> None:
    user = f"U{uuid4().hex[:12].upper()}"
    tables = ("vet", "owner", "animal", "visit", "hours")
    execute(
        clinic,
        f"CREATE USER {user} PASSWORD 'secret'",
        *(f"GRANT SELECT ON {each} TO USER {user}" for each in tables),
        f"GRANT INSERT ON visit TO USER {user}",
    )

    async def told(adapter: SqlAdapter) -> list[str]:
        looks = examine(adapter, Examination(now=NOW))
        return [each.text async for each in looks if each.subject == "account"]

    url = make_url(clinic).set(username=user, password="secret")
    there = url.render_as_string(hide_password=False)
    try:
        adapter = connect(there, tmp_path)
        with pytest.raises(DocumentErrors) as raised:
            await adapter.check()
        assert {each.code for each in raised.value.problems} == {"no-lock"}
        assert "no permission for UPDATE" in str(raised.value)
        looks = examine(connect(there, tmp_path), Examination(now=NOW))
        [red] = [each async for each in looks if each.verdict is Verdict.FAILED]
        assert "no permission for UPDATE" in red.text
        execute(clinic, f"GRANT UPDATE ON vet TO USER {user}")
        await adapter.aclose()
        adapter = connect(there, tmp_path)
        await adapter.check()
        assert await adapter.create_appointment(await _draft(adapter))
        assert await told(connect(there, tmp_path)) == ["it may do no more than it needs"]
        execute(clinic, f"GRANT UPDATE ON visit TO USER {user}")
        assert await told(connect(there, tmp_path)) == [
            "the account may update: VISIT, which it does not need"
        ]
        rights = adapter.engine.speech.rights
        assert await adapter.engine.read(rights) == []
        execute(clinic, f"GRANT DELETE ON owner TO USER {user}")
        assert await adapter.engine.read(rights) == ["the account may delete rows: OWNER"]
        await adapter.aclose()
    finally:
        execute(clinic, f"DROP USER {user}")


async def test_a_sequence_gives_the_key_and_its_right_is_known(clinic: str, tmp_path: Path) -> None:
    execute(clinic, "CREATE SEQUENCE visit_numbers", "ALTER SEQUENCE visit_numbers RESTART WITH 70")
    steps = MAPPING.replace(
        "  steps:\n",
        "  steps:\n    - sequence: visit_numbers\n      name: number\n",
    ).replace(
        "        vet: {draft: vetId}\n", "        id: {made: number}\n        vet: {draft: vetId}\n"
    )
    adapter = connect(clinic, tmp_path, steps)
    await adapter.check()
    await adapter.create_appointment(await _draft(adapter))
    assert execute(clinic, "SELECT MAX(id) FROM visit") == [(71,)]
    may = adapter.engine.speech.may_use
    for name, known in (("VISIT_NUMBERS", True), ('"VISIT_NUMBERS"', True), ("NOWHERE", False)):
        assert await adapter.engine.read(lambda it, each=name: may(it, each)) is known
    await adapter.aclose()


async def test_names_are_in_capitals_unless_they_are_in_quotes(tmp_path: Path) -> None:
    made = (
        'CREATE TABLE "Vet" ("Id" INTEGER PRIMARY KEY, "Name" VARCHAR(9))',
        "INSERT INTO \"Vet\" VALUES (1, 'Beck')",
    )
    mapping = """
version: 2
zone: Europe/Paris
resources:
  vets: {from: '"Vet"', key: '"Id"', fields: {name: '"Name"'}}
"""
    with firebird_database(*made) as url:
        adapter = connect(url, tmp_path, mapping)
        await adapter.check()
        assert [each["name"] for each in await everything(adapter, "vets")] == ["Beck"]
        await adapter.aclose()


async def test_a_draft_is_made_of_its_tables(clinic: str) -> None:
    found, guesses = await draft_mapping(clinic, shapes(), "Europe/Paris", "")
    assert guesses["clients"]["table"] == "owner"
    assert guesses["patients"]["table"] == "animal"
    assert "from: animal" in found


async def test_signals_that_end_the_process_stay_the_processs_own() -> None:
    """The client library would end every connection at once, while calls still run."""
    system, room = ctypes.CDLL(None), ctypes.create_string_buffer(512)

    def handlers() -> list[bytes]:
        found = []
        for number in (signal.SIGINT, signal.SIGTERM):
            assert system.sigaction(number, None, room) == 0
            found.append(room.raw[:8])
        return found

    with firebird_database() as url:
        before = handlers()
        async with opened(url) as engine:
            await engine.ping()
            assert handlers() == before


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("firebird://u:p@127.0.0.1:33050/", "must name the database"),
        ("firebird:///srv/clinic.fdb", "must name the server's host"),
        ("firebird://u:p@127.0.0.1/clinic?charSet=UTF8", "has an option 'charSet'"),
        ("firebird+fdb://u:p@127.0.0.1/clinic", "must not name a driver"),
    ],
)
def test_an_address_that_leads_nowhere_is_told(url: str, said: str) -> None:
    assert [each for each in wrong_with(url) if said in each]


async def test_why_it_cannot_be_reached_is_told(clinic: str) -> None:
    there = make_url(clinic)
    for changed, said in (
        (there.set(password="wrong"), "refuses the account or its password"),
        (there.set(database="/nowhere/clinic.fdb"), "none of that name or path"),
    ):
        async with opened(changed.render_as_string(hide_password=False)) as engine:
            with pytest.raises(BackendUnavailable, match=said):
                await engine.ping()
