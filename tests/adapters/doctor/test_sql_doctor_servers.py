"""The doctor on servers: rights, engines without transactions, sequences, plans, zones."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection, literal_column, select, text
from sqlalchemy.engine import make_url

from adapters.base import AdapterOptions
from adapters.doctor.sql import examine, rows
from adapters.examination import Examination, Finding, Verdict
from adapters.sql.adapter import SqlAdapter
from adapters.sql.columns import Columns
from adapters.sql.engines import open_engine
from gateway.backend import shapes
from gateway.examination import examined
from tests.adapters.clinic import NOW, SECRET
from tests.adapters.servers import execute, execute_async, mariadb_database, postgres_database

pytestmark = pytest.mark.long

FAILED, WARNING = Verdict.FAILED, Verdict.WARNING
WORDS = {
    "postgresql": {"stamp": "timestamp", "serial": "serial PRIMARY KEY"},
    "mysql": {"stamp": "datetime", "serial": "INTEGER AUTO_INCREMENT PRIMARY KEY"},
}
TABLES = (
    "CREATE TABLE vet (id INTEGER PRIMARY KEY, name VARCHAR(40))",
    "INSERT INTO vet VALUES (1, 'A'), (2, 'B')",
    "CREATE TABLE owner (id INTEGER PRIMARY KEY, first VARCHAR(40), last VARCHAR(40),"
    " changed {stamp})",
    "CREATE TABLE animal (id INTEGER PRIMARY KEY, owner INTEGER, name VARCHAR(40),"
    " changed {stamp})",
    "CREATE INDEX animal_owner ON animal (owner)",
    "CREATE TABLE kind (id INTEGER PRIMARY KEY, name VARCHAR(40), minutes INTEGER)",
    "INSERT INTO kind VALUES (1, 'Check', 30)",
    "CREATE TABLE visit (id {serial}, vet INTEGER, animal INTEGER, owner INTEGER, kind INTEGER,"
    " starts {stamp}, ends {stamp}, urgent BOOLEAN, state VARCHAR(9), note VARCHAR(500),"
    " created {stamp}, reference VARCHAR(16))",
    "CREATE INDEX visit_starts ON visit (vet, starts)",
    "CREATE INDEX visit_reference ON visit (reference)",
    "CREATE TABLE hours (vet INTEGER, weekday INTEGER, opens TIME, closes TIME)",
    "CREATE TABLE bill (id INTEGER PRIMARY KEY, owner INTEGER, state VARCHAR(9))",
    "CREATE INDEX bill_owner ON bill (owner)",
    "CREATE TABLE line (id INTEGER PRIMARY KEY, bill INTEGER, total VARCHAR(20))",
    "CREATE INDEX line_bill ON line (bill)",
    "CREATE TABLE ware (id INTEGER PRIMARY KEY, name VARCHAR(40), category VARCHAR(9),"
    " low INTEGER)",
    "INSERT INTO ware VALUES (1, 'Food', 'FOOD', 1), (2, 'Pills', 'MEDICINE', 0)",
    "CREATE TABLE report (id INTEGER PRIMARY KEY, visit INTEGER)",
    "INSERT INTO report VALUES (1, 1)",
)
MAPPING = """
version: 2
zone: Europe/Paris
resources:
  vets: {from: vet, key: id, fields: {name: name}}
  clients:
    from: owner
    key: id
    fields: {firstName: first, lastName: last, updatedAt: changed}
  patients:
    from: animal
    key: id
    fields: {clientId: owner, name: name, updatedAt: changed}
  appointmentTypes: {from: kind, key: id, fields: {name: name, durationMinutes: minutes}}
  appointments:
    from: visit
    key: id
    fields:
      clientId: owner
      patientId: animal
      vetId: vet
      appointmentTypeId: kind
      scheduledAt: starts
      endTime: ends
      isUrgent: urgent
      status: {source: state, codes: {S: SCHEDULED, C: COMPLETED}}
      reason: note
      createdAt: created
  consultations: {from: report, key: id, fields: {appointmentId: visit}}
  invoices:
    from: bill
    key: id
    fields:
      clientId: owner
      status: {source: state, codes: {S: PAID}}
    lists:
      lines:
        from: line
        parent: bill
        key: id
        fields: {total: total}
  stock: {from: ware, key: id, fields: {name: name, category: category, isLow: low}}
diary:
  hours: [{from: hours, vet: vet, weekday: weekday, start: opens, end: closes}]
  busy:
    - {from: visit, vet: vet, key: id, start: starts, end: ends, longest: 2}
booking:
  appointment: visit
  reference: reference
  steps:
    - insert: visit
      name: visit
      key: id
      values:
        vet: {draft: vetId}
        animal: {draft: patientId}
        owner: {draft: clientId}
        kind: {draft: appointmentTypeId}
        starts: {draft: scheduledAt}
        ends: {draft: endTime}
        urgent: {draft: isUrgent}
        state: S
        note: {draft: reason}
        created: {draft: createdAt}
        reference: {draft: reference}
"""
READABLE = ["vet", "owner", "animal", "kind", "visit", "hours", "bill", "line", "ware", "report"]


def statements(kind: str) -> list[str]:
    """A clinic of 60 owners, a visit each weekday of the months around NOW."""
    made = [each.format(**WORDS[kind]) for each in TABLES]
    people = ", ".join(f"({n}, 'F{n}', 'L{n}', '2026-02-01 10:00:00')" for n in range(1, 61))
    animals = ", ".join(f"({n}, {n}, 'N{n}', '2026-02-01 10:00:00')" for n in range(1, 61))
    days = [date(2025, 11, 3) + timedelta(days=n) for n in range(150)]
    work = [each for each in days if each.isoweekday() < 6]
    visits = ", ".join(
        f"({n % 2 + 1}, {n % 60 + 1}, {n % 60 + 1}, 1, '{day} 09:{n % 2 * 3}0:00',"
        f" '{day} {'10:00' if n % 2 else '09:30'}:00', FALSE, '{'S' if day > NOW.date() else 'C'}',"
        " '2025-11-02 10:00:00')"
        for n, day in enumerate(work)
    )
    bills = ", ".join(f"({n}, {n % 60 + 1}, 'S')" for n in range(1, 101))
    lines = ", ".join(f"({n}, {n % 100 + 1}, '1,50')" for n in range(1, 301))
    hours = ", ".join(f"({v}, {d}, '09:00', '11:00')" for v in (1, 2) for d in range(1, 6))
    return [
        *made,
        f"INSERT INTO owner VALUES {people}",
        f"INSERT INTO animal VALUES {animals}",
        "INSERT INTO visit (vet, animal, owner, kind, starts, ends, urgent, state, created)"
        f" VALUES {visits}",
        f"INSERT INTO bill VALUES {bills}",
        f"INSERT INTO line VALUES {lines}",
        f"INSERT INTO hours VALUES {hours}",
    ]


@dataclass(frozen=True)
class Practice:
    """A database of the test's own: the address of its owner, and of the gateway's account."""

    kind: str
    owner: str
    url: str
    account: str


@contextmanager
def postgres_practice() -> Iterator[Practice]:
    with postgres_database(*statements("postgresql")) as owner:
        name = f"gateway_{uuid4().hex[:8]}"
        execute(
            owner,
            f"CREATE ROLE {name} LOGIN PASSWORD 'secret'",
            f"GRANT SELECT ON {', '.join(READABLE)} TO {name}",
            f"GRANT INSERT ON visit TO {name}",
            f"GRANT USAGE ON SEQUENCE visit_id_seq TO {name}",
        )
        try:
            yield Practice("postgresql", owner, _of(owner, name), name)
        finally:
            execute(owner, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


@contextmanager
def mariadb_practice() -> Iterator[Practice]:
    with mariadb_database(*statements("mysql")) as owner:
        name, database = f"gateway_{uuid4().hex[:8]}", make_url(owner).database
        places = ("'%'", "localhost")
        accounts = [f"{name}@{each}" for each in places]
        execute(
            owner,
            *(f"CREATE USER {each} IDENTIFIED BY 'secret'" for each in accounts),
            *(f"GRANT SELECT ON {database}.* TO {each}" for each in accounts),
            *(f"GRANT INSERT ON {database}.visit TO {each}" for each in accounts),
        )
        try:
            yield Practice("mysql", owner, _of(owner, name), name)
        finally:
            execute(owner, f"DROP USER {', '.join(accounts)}")


def _of(owner: str, name: str) -> str:
    account = make_url(owner).set(username=name, password="secret")
    return account.render_as_string(hide_password=False)


@pytest.fixture
def practice(request: pytest.FixtureRequest) -> Iterator[Practice]:
    made = postgres_practice() if request.param == "postgresql" else mariadb_practice()
    with made as practice:
        yield practice


async def found_in(
    url: str, folder: Path, text: str = MAPPING, *, booking: bool = False, alone: bool = False
) -> list[Finding]:
    """What is found; `alone` without running the operations."""
    file = folder / "clinic.yaml"
    file.write_text(text)
    options = AdapterOptions(
        url=url, mapping=file, secret=SECRET, shapes=shapes(), report=lambda _: None
    )
    adapter = SqlAdapter(options)
    try:
        looked = Examination(now=NOW, booking=booking)
        own = examine(adapter, looked)
        findings = own if alone else examined(adapter, looked, patience=60.0)
        return [each async for each in findings]
    finally:
        await adapter.aclose()


BOTH = ("postgresql", "mysql")


@dataclass(frozen=True)
class Fault:
    """On which servers, what is done by the owner and to the mapping; what is said, and where."""

    what: str
    on: tuple[str, ...]
    check: str
    verdict: Verdict
    line: str
    said: str
    owner: tuple[str, ...] = ()
    mapping: tuple[tuple[str, str], ...] = ()
    booking: bool = False
    as_owner: bool = False

    def __str__(self) -> str:
        return self.what


FAULTS = [
    Fault(
        "a renamed column",
        BOTH,
        "mapping",
        FAILED,
        "patientId: animal",
        "near: beast",
        ("ALTER TABLE visit RENAME COLUMN animal TO beast_animal",),
        mapping=(("animal: {draft", "beast_animal: {draft"),),
    ),
    Fault(
        "a fixed text that is taken for a column",
        BOTH,
        "mapping",
        FAILED,
        "patientId: ZWQ",
        "a fixed text is written \"'ZWQ'\", in both kinds of quotes",
        mapping=(("patientId: animal", "patientId: ZWQ"),),
    ),
    Fault(
        "a column that is too short for a reason",
        BOTH,
        "booking",
        FAILED,
        "note: {draft: reason}",
        r"a text is too long for its column \(\w+\), note: write longest: 80 .*500 characters",
        ("ALTER TABLE visit DROP COLUMN note", "ALTER TABLE visit ADD COLUMN note VARCHAR(80)"),
        booking=True,
    ),
    Fault(
        "a renamed table",
        BOTH,
        "mapping",
        FAILED,
        "stock: {from: ware",
        "(?i)ware.*near: wares",
        ("ALTER TABLE ware RENAME TO wares",),
    ),
    Fault(
        "no grant to write",
        ("postgresql",),
        "rights",
        FAILED,
        "vet: {draft: vetId}",
        "permission denied for table visit.*grant it",
        ("REVOKE INSERT ON visit FROM {account}",),
    ),
    Fault(
        "no grant to write",
        ("mysql",),
        "rights",
        FAILED,
        "vet: {draft: vetId}",
        "INSERT command denied.*grant it",
        ("REVOKE INSERT ON {database}.visit FROM {account}@localhost, {account}@'%'",),
    ),
    Fault(
        "no grant to read",
        ("postgresql",),
        "rights",
        FAILED,
        "from: bill",
        "permission denied for table bill.*grant it",
        ("REVOKE SELECT ON bill FROM {account}",),
    ),
    Fault(
        "no grant to number",
        ("postgresql",),
        "rights",
        FAILED,
        "- insert: visit",
        "may not use the sequence of visit.id.*GRANT USAGE",
        ("REVOKE USAGE ON SEQUENCE visit_id_seq FROM {account}",),
    ),
    Fault(
        "too many rights",
        BOTH,
        "rights",
        WARNING,
        "",
        "which it does not need",
        as_owner=True,
    ),
    Fault(
        "a right to update what no booking does",
        ("postgresql",),
        "rights",
        WARNING,
        "",
        "the account may update: bill, visit, which it does not need",
        ("GRANT UPDATE ON visit TO {account}", "GRANT UPDATE (state) ON bill TO {account}"),
    ),
    Fault(
        "a right to update what no booking does",
        ("mysql",),
        "rights",
        WARNING,
        "",
        "the account may update: visit, which it does not need",
        ("GRANT UPDATE ON {database}.visit TO {account}@localhost, {account}@'%'",),
    ),
    Fault(
        "a sequence that is not there",
        ("postgresql",),
        "mapping",
        FAILED,
        "- sequence: visit_no",
        'relation "visit_no" does not exist',
        mapping=(("steps:\n", "steps:\n    - sequence: visit_no\n      name: number\n"),),
    ),
    Fault(
        "a booking table without transactions",
        ("mysql",),
        "mapping",
        FAILED,
        "- insert: visit",
        "visit has no transactions",
        ("ALTER TABLE visit ENGINE = MyISAM",),
    ),
    Fault(
        "a rehearsal without transactions",
        ("mysql",),
        "booking",
        FAILED,
        "booking:",
        "no booking was rehearsed: visit has no transactions, .*GRANT DELETE ON visit",
        ("ALTER TABLE visit ENGINE = MyISAM",),
        mapping=(("booking:\n", "booking:\n  without_transactions: [visit]\n"),),
        booking=True,
    ),
    Fault(
        "UTC read as local times",
        BOTH,
        "laws",
        FAILED,
        "scheduledAt: starts",
        "as: utc time",
        ("UPDATE visit SET starts = starts - {hour}, ends = ends - {hour}",),
    ),
    Fault(
        "an unknown status",
        BOTH,
        "values",
        FAILED,
        "status: {source: state, codes: {S: SCHEDULED",
        r"unknown code: Q \(",
        ("UPDATE visit SET state = 'Q' WHERE id < 20",),
    ),
    Fault(
        "lists without an index",
        BOTH,
        "plans",
        WARNING,
        "parent: bill",
        r"reads the whole of line.*CREATE INDEX line_bill ON line \(bill\)",
        ("DROP INDEX line_bill {on_line}", "{more_lines}", "{analyze} line"),
    ),
    Fault(
        "lists beside an index that cannot serve",
        BOTH,
        "plans",
        WARNING,
        "parent: bill",
        r"reads the whole of line.*line has an index on bill, which cannot serve here",
        ("{more_lines}", "{analyze} line"),
        mapping=(("        from: line\n", "        from: line CROSS JOIN (SELECT 1) one\n"),),
    ),
    Fault(
        "a reference that is cut",
        ("postgresql",),
        "booking",
        FAILED,
        "- insert: visit",
        r"22001",
        ("ALTER TABLE visit ALTER COLUMN reference TYPE varchar(8)",),
        booking=True,
    ),
    Fault(
        "two visits at one time",
        BOTH,
        "diary",
        WARNING,
        "- {from: visit",
        "1 appointments to come lie over another",
        (
            "INSERT INTO visit (vet, animal, owner, kind, starts, ends, urgent, state, created)"
            " SELECT vet, animal, owner, kind, starts, ends, urgent, state, created FROM visit"
            " WHERE starts > '2026-03-10' ORDER BY id LIMIT 1",
        ),
    ),
    Fault(
        "a zero date that no `zero` names",
        ("mysql",),
        "values",
        FAILED,
        "updatedAt: {source: changed",
        "its converter cannot read",
        ("SET SESSION sql_mode = ''", "UPDATE owner SET changed = '0000-00-00' WHERE id < 20"),
        mapping=(
            ("lastName: last, updatedAt: changed", "lastName: last, {updated}"),
            ("{updated}", 'updatedAt: {source: changed, zero: ["1899-12-30"]}'),
        ),
    ),
]
CASES = [pytest.param(kind, fault, id=f"{kind}-{fault}") for fault in FAULTS for kind in fault.on]
SPELT = {
    "postgresql": {
        "hour": "interval '1 hour'",
        "on_line": "",
        "analyze": "ANALYZE",
        "more_lines": "INSERT INTO line SELECT n, n % 100 + 1, '1' FROM"
        " generate_series(1000, 9000) n",
    },
    "mysql": {
        "hour": "INTERVAL 1 HOUR",
        "on_line": "ON line",
        "analyze": "ANALYZE TABLE",
        "more_lines": "INSERT INTO line SELECT seq, seq % 100 + 1, '1' FROM seq_1000_to_9000",
    },
}


@pytest.mark.parametrize("practice", BOTH, indirect=True)
async def test_a_sound_practice_with_the_smallest_rights_is_green(
    practice: Practice, tmp_path: Path
) -> None:
    tables = "SELECT count(*) FROM visit"
    before = await execute_async(practice.owner, tables)
    found = await found_in(practice.url, tmp_path, booking=True)
    assert [each for each in found if each.verdict is FAILED] == []
    warned = [e.text for e in found if e.verdict is WARNING and "not mapped" not in e.text]
    assert [each for each in warned if "null in all" not in each] == []
    rehearsed = [each for each in found if each.subject == "rehearsal"]
    assert len(rehearsed) > 5
    assert "of visit nothing is left" in rehearsed[-1].text
    assert await execute_async(practice.owner, tables) == before


@pytest.mark.parametrize(("practice", "fault"), CASES, indirect=["practice"])
async def test_a_planted_fault_is_named_at_its_line(
    practice: Practice, fault: Fault, tmp_path: Path
) -> None:
    text = MAPPING
    for right, wrong in fault.mapping:
        assert right in text
        text = text.replace(right, wrong, 1)
    words = SPELT[practice.kind] | {
        "account": practice.account,
        "database": str(make_url(practice.owner).database),
    }
    if fault.owner:
        await execute_async(practice.owner, *(each.format(**words) for each in fault.owner))
    url = practice.owner if fault.as_owner else practice.url
    found = await found_in(url, tmp_path, text, booking=fault.booking, alone=True)
    line = text[: text.index(fault.line)].count("\n") + 1
    assert [
        each
        for each in found
        if (each.check, each.verdict) == (fault.check, fault.verdict)
        and re.search(fault.said, f"{each.text} {each.remedy}")
        and (not fault.line or abs(int(each.place.split(":")[-2]) - line) <= 1)
    ], (line, [each for each in found if each.verdict is not Verdict.OK])


async def test_rows_without_a_key_come_once_wherever_the_server_sorts_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "PAGE", 3)
    statement = select(literal_column("k")).select_from(text("keyed"))

    def all_pages(connection: Connection) -> list[Any]:
        found = rows.pages(connection, statement, Columns(["k"]), most=None)
        return [row[0] for page in islice(found, 20) for row in page]

    keys = "INSERT INTO keyed VALUES (1), (2), (2), (3), (4), (5), (NULL), (NULL)"
    with postgres_database("CREATE TABLE keyed (k INT)", keys) as url:
        engine = open_engine(url, timeout=3.0, booking_timeout=3.0)
        assert await engine.inspect(all_pages) == [None, None, 1, 2, 2, 3, 4, 5]
        await engine.aclose()
