"""Keys that tables keep in different ways, on each kind of server: what belongs to what."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from adapters.base import BackendUnavailable, Filter, NotFound, OutcomeUnknown, Query
from adapters.doctor.sql import examine
from adapters.examination import Examination, Verdict
from adapters.sql.adapter import SqlSession
from adapters.sql.engines.connection import HeardConnection
from adapters.values.times import instant_text
from tests.adapters.ids.test_ids import GIVEN
from tests.adapters.shelf import Shelf
from tests.adapters.sql.test_booking_servers import a_draft
from tests.races.practice import KINDS, practice

pytestmark = pytest.mark.long

KEPT_AS = [
    ("postgresql", "char(10)", "varchar(10)", "F1", "F1"),
    ("postgresql", "varchar(10)", "integer", "12", "12"),
    ("mariadb", "varchar(10)", "integer", "12", "12"),
    ("mariadb", "varchar(10)", "varchar(10)", "F1", "f1"),
    ("sqlite", "text", "integer", "12", "12"),
    *(
        (kind, *types, "12", "12")
        for kind in KINDS
        for types in (
            ("decimal(10,2)", "integer"),
            ("integer", "decimal(10,2)"),
            ("decimal(10,2)", "decimal(8,4)"),
            ("decimal(10,2)", "varchar(10)"),
            ("varchar(10)", "decimal(10,2)"),
        )
    ),
    ("postgresql", "double precision", "decimal(10,2)", "12", "12"),
    ("mariadb", "decimal(10,2)", "double", "12", "12"),
    ("sqlite", "integer", "real", "12", "12"),
    ("postgresql", "decimal(10,2)", "decimal(8,4)", "12.5", "12.5"),
    ("mariadb", "decimal(10,2)", "decimal(8,4)", "12.5", "12.5"),
]


@pytest.mark.parametrize(("kind", "key", "parent", "one", "same"), KEPT_AS)
async def test_lines_are_their_invoices_however_each_table_keeps_the_key(
    kind: str, key: str, parent: str, one: str, same: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path) as made:
        await made.run(
            f"CREATE TABLE bill (id {key}, client INTEGER)",
            f"CREATE TABLE item (id INTEGER, bill {parent}, label VARCHAR(60))",
            f"INSERT INTO bill VALUES ('{one}', 1), ('9{one}', 2)",
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


CASES: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "upper": str.upper,
    "mixed": lambda text: text.replace("c", "C"),
    "braces": "{{{}}}".format,
}
VET, OWNER, ANIMAL = (f"{GIVEN[:-1]}{number}" for number in range(3))
KEPT_IN = [
    *((kind, case, "varchar(38)") for kind in KINDS for case in CASES),
    ("postgresql", "upper", "uuid"),
]


def _with_uuids(kind: str, column: str, spell: Callable[[str], str]) -> list[str]:
    """The practice's first vet, client and patient, under UUIDs that are so spelt."""
    vet, owner, animal = map(spell, (VET, OWNER, ANIMAL))
    refers = [("appointment", "vet"), ("absence", "vet"), ("attendance", "patient"),
              ("attendance", "client"), ("consultation", "vet")]  # fmt: skip
    return [
        *(["DROP INDEX appointment_starts"] if kind in ("sqlite", "firebird") else []),
        *(f"DROP TABLE {each}" for each in ("vet", "client", "patient", "hours")),
        f"CREATE TABLE vet (id {column} PRIMARY KEY, name VARCHAR(40))",
        f"CREATE TABLE client (id {column} PRIMARY KEY, first VARCHAR(40), last VARCHAR(40),"
        f" changed {'text' if kind == 'sqlite' else 'timestamp'})",
        f"CREATE TABLE patient (id {column} PRIMARY KEY, client {column}, name VARCHAR(40))",
        f"CREATE TABLE hours (vet {column}, weekday INTEGER, opens TIME, closes TIME)",
        *(f"ALTER TABLE {table} DROP COLUMN {each}" for table, each in refers),
        *(f"ALTER TABLE {table} ADD COLUMN {each} {column}" for table, each in refers),
        "DELETE FROM appointment",
        "DELETE FROM attendance",
        f"INSERT INTO vet VALUES ('{vet}', 'Dr Adler')",
        f"INSERT INTO client (id, first, last) VALUES ('{owner}', 'Ada', 'Mueller')",
        f"INSERT INTO patient VALUES ('{animal}', '{owner}', 'Rex')",
        *(f"INSERT INTO hours VALUES ('{vet}', {day}, '09:00', '17:00')" for day in range(1, 6)),
    ]


def _native(mapping: str) -> str:
    """The mapping, with the UUIDs as ids of vets, clients and patients."""
    for table in ("vet", "client", "patient"):
        mapping = mapping.replace(
            f"{{from: {table}, key: id", f"{{from: {table}, key: {{source: id, as: native id}}"
        )
    return mapping


@pytest.mark.parametrize(("kind", "case", "column"), KEPT_IN)
async def test_a_uuid_leads_back_to_its_row_in_whatever_case_it_is_kept(
    kind: str, case: str, column: str, tmp_path: Path
) -> None:
    spell, shelf = CASES[case], Shelf()
    with practice(kind, tmp_path, *_with_uuids(kind, column, spell)) as made:
        mapping = _native(made.mapping)
        draft = None
        for _ in range(2):  # the second time nothing was listed since the start
            adapter = made.open(tmp_path, mapping, ids=shelf)
            draft = draft or await a_draft(adapter)
            assert (draft.vet_id, draft.client_id, draft.patient_id) == (VET, OWNER, ANIMAL)
            for name, public_id in (("vets", VET), ("clients", OWNER), ("patients", ANIMAL)):
                query = Query(resource=name, now=draft.now, id=public_id)
                assert (await adapter.read_one(query))["id"] == public_id
            query = Query(
                resource="patients",
                now=draft.now,
                filters=(Filter("equals", ("clientId",), OWNER),),
            )
            assert [each["id"] for each in (await adapter.read_many(query)).records] == [ANIMAL]
            await adapter.aclose()
        adapter = made.open(tmp_path, mapping, ids=shelf)
        booked = await adapter.create_appointment(draft)
        assert (booked["vetId"], booked["clientId"]) == (VET, OWNER)
        assert await adapter.find_appointments(draft, draft.now) == [booked]
        await adapter.aclose()
        rows = await made.run(
            "SELECT v.id, c.id, p.id FROM vet v, client c, patient p, appointment a, attendance t"
            " WHERE a.vet = v.id AND t.client = c.id AND t.patient = p.id AND t.appointment = a.id"
        )
        kept = map(str.lower if column == "uuid" else spell, (VET, OWNER, ANIMAL))
        assert [tuple(map(str, row)) for row in rows] == [tuple(kept)]
        wrote = await made.run("SELECT vet FROM appointment")
        assert [str(row[0]) for row in wrote] == [str(rows[0][0])]


OTHERWISE = [("braces", "lower"), ("mixed", "upper"), ("upper", "lower"), ("lower", "upper")]


@pytest.mark.parametrize(("own", "elsewhere"), OTHERWISE)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_row_is_found_however_what_refers_to_it_spells_its_uuid(
    kind: str, own: str, elsewhere: str, tmp_path: Path
) -> None:
    shelf, now = Shelf(), datetime.now(UTC)
    refers = f"UPDATE patient SET client = '{CASES[elsewhere](OWNER)}'"
    rows = _with_uuids(kind, "varchar(38)", CASES[own])
    with practice(kind, tmp_path, *rows, refers) as made:
        clients = Query(resource="clients", now=now)
        for restarted in (False, True):
            adapter = made.open(tmp_path, _native(made.mapping), ids=shelf)
            if not restarted:
                await adapter.read_many(clients)
            [patient] = (await adapter.read_many(Query(resource="patients", now=now))).records
            assert patient["clientId"] == OWNER
            one = Query(resource="clients", now=now, id=OWNER)
            assert (await adapter.read_one(one))["id"] == OWNER
            of_client = Query(
                resource="patients", now=now, filters=(Filter("equals", ("clientId",), OWNER),)
            )
            assert (await adapter.read_many(of_client)).records == [patient]
            await adapter.aclose()


@pytest.mark.parametrize(("own", "elsewhere"), OTHERWISE)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_time_is_taken_however_the_desk_spells_the_vets_uuid(
    kind: str, own: str, elsewhere: str, tmp_path: Path
) -> None:
    rows = _with_uuids(kind, "varchar(38)", CASES[own])
    with practice(kind, tmp_path, *rows) as made:
        adapter = made.open(tmp_path, _native(made.mapping), ids=Shelf())
        draft = await a_draft(adapter)
        booked = await adapter.create_appointment(draft)
        await made.run(f"UPDATE appointment SET vet = '{CASES[elsewhere](VET)}'")
        values = {"vetId": VET, "date": draft.scheduled_at.date()}
        free = (
            await adapter.read_many(Query(resource="slots", now=draft.now, values=values))
        ).records
        assert booked["scheduledAt"] not in [each["startTime"] for each in free]
        assert not (await adapter.find_overwritten([booked["id"]])).overwritten
        await made.run(
            "INSERT INTO appointment (vet, starts, ends, state)"
            f" SELECT '{CASES[own](VET)}', starts, ends, state FROM appointment"
        )
        assert (await adapter.find_overwritten([booked["id"]])).overwritten == {booked["id"]}
        await adapter.aclose()


async def test_the_doctor_follows_a_reference_to_a_uuid_as_the_gateway_does(
    tmp_path: Path,
) -> None:
    refers = f"UPDATE patient SET client = '{OWNER}'"
    rows = _with_uuids("sqlite", "varchar(38)", str.upper)
    with practice("sqlite", tmp_path, *rows, refers) as made:
        adapter = made.open(tmp_path, _native(made.mapping), ids=Shelf())
        looked = Examination(now=datetime.now(UTC), booking=False, rows=100)
        found = [each async for each in examine(adapter, looked)]
        links = {each.subject: each.verdict for each in found if each.check == "links"}
        assert links["patients.clientId"] == Verdict.OK
        await adapter.aclose()


async def test_the_doctor_looks_at_more_hashed_ids_than_may_wait_for_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.ids.table.MOST_WAITING", 2)
    rows = ", ".join(f"('Number {number}')" for number in range(9))
    more = f"INSERT INTO client (last) VALUES {rows}"
    with practice("sqlite", tmp_path, more) as made:
        key = "{from: client, key: id"
        assert key in made.mapping
        hashed = made.mapping.replace(key, "{from: client, key: {source: id, as: hashed id}")
        shelf = Shelf()
        adapter = made.open(tmp_path, hashed, ids=shelf)
        looked = Examination(now=datetime.now(UTC), booking=False, rows=None)
        found = [each async for each in examine(adapter, looked)]
        assert [e for e in found if e.subject == "clients" and e.verdict == Verdict.FAILED] == []
        assert not shelf.kept
        await adapter.aclose()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_uuid_is_looked_for_by_the_index_in_either_case(kind: str, tmp_path: Path) -> None:
    rows = ", ".join(f"('{uuid4()}')" for _ in range(5_000))
    many = [f"INSERT INTO client (id) VALUES {rows}"]
    analyze = {
        "mariadb": "ANALYZE TABLE client",
        "firebird": "SELECT count(*) FROM client",  # it has no such thing, and needs none
    }.get(kind, "ANALYZE client")
    with practice(kind, tmp_path, *_with_uuids(kind, "varchar(38)", str.upper), *many) as made:
        await made.run(analyze)
        mapping = made.mapping.replace(
            "{from: client, key: id", "{from: client, key: {source: id, as: native id}"
        )
        adapter = made.open(tmp_path, mapping)
        speech = adapter.engine.speech

        async def looked_for(session: SqlSession) -> list[list[bool]]:
            heard = HeardConnection(adapter.engine.opened(session.connection))
            clients = SqlSession(adapter, heard).reader("clients")
            await clients.one(OWNER)
            await clients.exists(OWNER)
            built = [question.built() for question in heard.questions]
            plans = [speech.explain(session.connection, *each) for each in built]
            return [[step.scans for step in plan] for plan in plans]

        assert await adapter.look(looked_for) == [[False], [False]]
        await adapter.aclose()


async def test_a_booking_whose_id_cannot_be_kept_is_of_unknown_outcome_and_found_later(
    tmp_path: Path,
) -> None:
    class Failing(Shelf):
        is_down = False

        async def remember(self, resource: str, keys: Mapping[str, str]) -> None:
            if self.is_down:
                raise BackendUnavailable("public ids cannot be kept")
            await super().remember(resource, keys)

    shelf = Failing()
    booked = "SELECT count(*) FROM appointment WHERE source = 'gateway'"
    with practice("sqlite", tmp_path) as made:
        text = made.mapping.replace("    key: a.id\n", "    key: {source: a.id, as: hashed id}\n")
        adapter = made.open(tmp_path, text, ids=shelf)
        draft = await a_draft(adapter)
        shelf.is_down = True
        with pytest.raises(OutcomeUnknown):
            await adapter.create_appointment(draft)
        assert await made.run(booked) == [(1,)]
        shelf.is_down = False
        [found] = await adapter.find_appointments(draft, draft.now)
        assert found["scheduledAt"] == instant_text(draft.scheduled_at)
        await adapter.aclose()
