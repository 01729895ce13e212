"""Facts of practice systems, numbered, on each kind of database: a mapping alone undoes each."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from time_machine import travel

from adapters.base import Draft, Query, SlotTaken
from adapters.documents.problems import DocumentErrors
from adapters.sql.adapter import SqlAdapter
from adapters.values.times import instant_text
from tests.adapters.shelf import Shelf
from tests.races.practice import KINDS, ZONE, Practice, at, practice, working_days

NOW = datetime.now(UTC).replace(microsecond=0)
TODAY = NOW.astimezone(ZONE).date()
DAY = working_days(1, TODAY)[0]


@pytest.fixture(
    params=[
        kind if kind == "sqlite" else pytest.param(kind, marks=pytest.mark.long) for kind in KINDS
    ]
)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def days(number: int) -> str:
    """A day from today, in quotes."""
    return f"'{TODAY + timedelta(days=number)}'"


@asynccontextmanager
async def opened(
    folder: Path, made: Practice, *changes: tuple[str, str]
) -> AsyncIterator[SqlAdapter]:
    """An adapter with these changes of the mapping."""
    text = made.mapping
    for right, wrong in changes:
        assert right in text, right
        text = text.replace(right, wrong, 1)
    async with aclosing(made.open(folder, text, ids=Shelf())) as adapter:
        await adapter.check()
        yield adapter


async def records(adapter: SqlAdapter, resource: str) -> list[Any]:
    page = await adapter.read_many(Query(resource=resource, now=NOW, limit=50))
    return list(page.records)


async def a_draft(adapter: SqlAdapter, **more: Any) -> Draft:
    """Half an hour at ten, with a reference."""
    vets, clients, patients, types = [
        await records(adapter, name) for name in ("vets", "clients", "patients", "appointmentTypes")
    ]
    draft = Draft(
        client_id=clients[0]["id"],
        patient_id=patients[0]["id"],
        vet_id=vets[0]["id"],
        scheduled_at=at(DAY, 10).replace(tzinfo=ZONE).astimezone(UTC),
        appointment_type_id=types[1]["id"],
        reason="coughs: since Monday",
        is_urgent=False,
        now=NOW,
        reference="0f1e2d3c4b5a6978",
    )
    return replace(draft, **more)


async def is_found_again(adapter: SqlAdapter) -> dict[str, Any]:
    """Books twice beside one another, and finds each by its reference alone."""
    first = await a_draft(adapter)
    later = first.scheduled_at + timedelta(hours=1)
    second = replace(first, scheduled_at=later, reference="00000000ffffffff")
    made = [await adapter.create_appointment(draft) for draft in (first, second)]
    for draft, record in zip((first, second), made, strict=True):
        # whatever the desk has made of it since, but for the animal
        found = await adapter.find_appointments(draft, NOW)
        assert [each["id"] for each in found] == [record["id"]]
    nobodys = replace(first, reference="1111222233334444")
    assert await adapter.find_appointments(nobodys, NOW) == []
    return dict(made[0])


def without_created(kind: str) -> tuple[tuple[str, str], ...]:
    """The product has no column for the moment at which an appointment is written."""
    return (
        ("      createdAt: a.made\n", ""),
        ("        made: {draft: createdAt}", ""),
    )


async def test_fact_29_a_free_text_keeps_the_reference(kind: str, tmp_path: Path) -> None:
    written = "CONCAT(COALESCE(:reason, ''), ' #', :reference)"
    shown = "LEFT(a.note, LENGTH(a.note) - 18)"
    read = "RIGHT(a.note, 16)"
    if kind in ("sqlite", "firebird"):
        written = "COALESCE(:reason, '') || ' #' || :reference"
        shown = "LEFT(a.note, CHAR_LENGTH(a.note) - 18)"
    if kind == "sqlite":
        shown, read = "SUBSTR(a.note, 1, LENGTH(a.note) - 18)", "SUBSTR(a.note, -16)"
    with practice(kind, tmp_path) as made:
        async with opened(
            tmp_path,
            made,
            *without_created(kind),
            ("note: {draft: reason}", f'note: {{sql: "{written}"}}'),
            ("reason: a.note", f"reason: {shown}"),
            ("booking:\n", f"booking:\n  reference: {read}\n"),
        ) as adapter:
            record = await is_found_again(adapter)
        assert record["reason"] == "coughs: since Monday"
        [(note,)] = await made.run("SELECT note FROM appointment WHERE note LIKE '%69%'")
        assert str(note) == "coughs: since Monday #0f1e2d3c4b5a6978"


async def test_fact_29_an_id_that_the_writer_chooses_is_made_of_the_reference(
    kind: str, tmp_path: Path
) -> None:
    uuid = "UUID" if kind == "postgresql" else "CHAR(36)"
    columns = f"(code {uuid} PRIMARY KEY, vet INTEGER, kind INTEGER, starts {{stamp}},"
    columns += " ends {stamp}, state VARCHAR(9), urgent BOOLEAN, note VARCHAR(60))"
    attended = f"CREATE TABLE attended (code {uuid}, patient INTEGER, client INTEGER)"
    stamp = {"postgresql": "timestamp", "mariadb": "datetime", "sqlite": "text"}.get(
        kind, "timestamp"
    )
    with practice(
        kind, tmp_path, f"CREATE TABLE visit {columns}".replace("{stamp}", stamp), attended
    ) as made:
        async with opened(
            tmp_path,
            made,
            *without_created(kind),
            ("from: appointment a", "from: visit a"),
            ("    key: a.id\n", "    key: {source: a.code, as: native id}\n"),
            ("attendance p WHERE p.appointment = a.id", "attended p WHERE p.code = a.code"),
            ("attendance p WHERE p.appointment = a.id", "attended p WHERE p.code = a.code"),
            ("from: appointment b", "from: visit b"),
            ("key: b.id", "key: b.code"),
            ("booking:\n", "booking:\n  reference: a.code\n"),
            ("insert: appointment\n      key: id\n", "insert: visit\n      key: code\n"),
            (
                "        vet: {draft: vetId}\n",
                "        code: {draft: uuid}\n        vet: {draft: vetId}\n",
            ),
            ("        source: gateway\n", ""),
            ("insert: attendance\n      key: id\n", "insert: attended\n"),
            ("      name: attendance\n", ""),
            ("appointment: {made: appointment}", "code: {made: appointment}"),
            ('        pause: {sql: "', '        # {sql: "'),
            ("{appointment: {made: appointment}, action", "{action"),
        ) as adapter:
            record = await is_found_again(adapter)
        [(code,)] = await made.run(
            "SELECT code FROM visit WHERE starts LIKE '%10:00%'"
            if kind != "postgresql"
            else "SELECT code FROM visit WHERE extract(hour FROM starts) = 10"
        )
        assert str(code) == record["id"]


ROLES = """\
    - insert: participant
      key: id
      each:
        - {role: PET, party: {draft: patientId}, label: null}
        - {role: OWNER, party: {draft: clientId}, label: {sql: "TRIM(' owner ')"}}
        - {role: VET, party: {draft: vetId}, label: {draft: reason}}
        - {role: KIND, party: {draft: appointmentTypeId}, label: kind, if: appointmentTypeId}
        - {role: LONG, party: 7, label: long, if: {sql: ":minutes > 30"}}
        - {role: DESK, party: 7, label: desk}
      values:
        visit: {made: appointment}
        role: {each: role}
        party: {each: party}
        label: {each: label}
        sign: {sql: "CONCAT(:role, '-', :minutes)"}
        starts: {draft: scheduledAt}
    - insert: journal
"""


@pytest.mark.parametrize("of_type", [True, False])
async def test_fact_28_the_same_row_six_times_is_one_step(
    kind: str, tmp_path: Path, of_type: bool
) -> None:
    stamp = {"mariadb": "datetime", "sqlite": "text"}.get(kind, "timestamp")
    serial = {
        "mariadb": "INTEGER AUTO_INCREMENT PRIMARY KEY",
        "sqlite": "INTEGER PRIMARY KEY",
    }.get(kind, "INTEGER GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY")
    table = "CREATE TABLE participant (id {serial}, visit INTEGER, role VARCHAR(9) NOT NULL,"
    table += " party INTEGER, label VARCHAR(60), sign VARCHAR(20), starts {stamp})"
    roles = ROLES.replace("CONCAT(:role, '-', :minutes)", ":role || '-' || :minutes")
    is_joined = kind in ("sqlite", "firebird")
    with practice(kind, tmp_path, table.format(serial=serial, stamp=stamp)) as made:
        change = ("    - insert: journal\n", roles if is_joined else ROLES)
        async with opened(tmp_path, made, change) as adapter:
            draft = await a_draft(adapter)
            if not of_type:
                draft = replace(draft, appointment_type_id=None)
            await adapter.create_appointment(draft)
        rows = await made.run(
            "SELECT role, party, label, sign FROM participant"
            " WHERE visit = (SELECT MAX(id) FROM appointment) ORDER BY id"
        )
    kinds = [("KIND", 2, "kind", "KIND-30")] if of_type else []
    assert [tuple(row) for row in rows] == [
        ("PET", 1, None, "PET-30"),
        ("OWNER", 1, "owner", "OWNER-30"),
        ("VET", 1, "coughs: since Monday", "VET-30"),
        *kinds,
        ("DESK", 7, "desk", "DESK-30"),
    ]


async def test_fact_30_what_is_valid_today_is_so_on_the_clinics_clock(
    kind: str, tmp_path: Path
) -> None:
    tables = (
        "CREATE TABLE price (item INTEGER, begins DATE, ends DATE, amount DECIMAL(8, 2))",
        "CREATE TABLE contact (client INTEGER, number VARCHAR(20), begins DATE, ends DATE)",
    )
    prices = [(-9, -1, 1), (0, None, 2), (1, None, 3)]
    contacts = [("left", -9, -1), ("today", 0, 0), ("later", 1, 9)]
    rows = [
        f"INSERT INTO price VALUES (1, {days(first)}, {(last and days(last)) or 'NULL'}, {n})"
        for first, last, n in prices
    ]
    rows += [
        f"INSERT INTO contact VALUES (1, '{number}', {days(first)}, {days(last)})"
        for number, first, last in contacts
    ]
    changes = (
        (
            "resources:\n",
            "expressions:\n"
            "  valid(t): >-\n"
            "    {t}.begins <= :today AND ({t}.ends IS NULL OR {t}.ends >= :today)\n"
            "resources:\n",
        ),
        (
            "reorderThreshold: least,",
            'reorderThreshold: least, salePrice: "SELECT MAX(p.amount) FROM price p'
            ' WHERE p.item = stock.id AND {valid(p)}",',
        ),
        (
            "lastName: last,",
            'lastName: last, phone: "SELECT c.number FROM contact c WHERE c.client = client.id'
            ' AND {valid(c)}",',
        ),
    )
    with practice(kind, tmp_path, *tables, *rows) as made:
        async with opened(tmp_path, made, *changes) as adapter:
            # in the first hour of the clinic's day the server's day is the one before
            for moment, price, phone in (
                (at(TODAY, 0), "2.00", "today"),
                (at(TODAY, 0) - timedelta(minutes=1), "1.00", "left"),
                (at(TODAY + timedelta(days=1), 0), "3.00", "later"),
            ):
                with travel(moment.replace(tzinfo=ZONE), tick=False):
                    bandage, _ = await records(adapter, "stock")
                    client, _ = await records(adapter, "clients")
                assert (bandage["salePrice"], client["phone"]) == (price, phone)


async def test_fact_31_documents_of_two_directions_are_told_apart_by_their_type(
    kind: str, tmp_path: Path
) -> None:
    table = (
        "CREATE TABLE document (id INTEGER, type VARCHAR(9), state VARCHAR(9), party INTEGER,"
        " number VARCHAR(9), net DECIMAL(10, 2), total DECIMAL(10, 2))"
    )
    rows = (
        "INSERT INTO document VALUES (1, 'SALE', 'OPEN', 1, 'F1', 50, 60)",
        "INSERT INTO document VALUES (2, 'PURCHASE', 'OPEN', 1, 'P1', 50, 60)",
        "INSERT INTO document VALUES (3, 'CREDIT', 'OPEN', 1, 'C1', 25, 30)",
        "INSERT INTO document VALUES (4, 'SALE', 'DRAFT', 1, NULL, NULL, NULL)",
        "INSERT INTO line (invoice, label, total) VALUES (4, 'Visit', 20)",
        "INSERT INTO line (invoice, label, total) VALUES (4, 'Drops', 5)",
    )
    changes = (
        (
            "resources:\n",
            "expressions:\n"
            "  sign: CASE d.type WHEN 'CREDIT' THEN -1 ELSE 1 END\n"
            "  lines: SELECT SUM(l.total) FROM line l WHERE l.invoice = d.id\n"
            "resources:\n",
        ),
        (
            "    from: invoice\n    key: id\n",
            "    from: document d\n    where: d.type IN ('SALE', 'CREDIT')\n    key: d.id\n",
        ),
        (
            "fields: {clientId: client, number: number, issuedAt: issued, total: total}",
            "fields:\n      clientId: d.party\n      number: d.number\n"
            "      status: {source: d.state, codes: {OPEN: ISSUED, DRAFT: DRAFT}}\n"
            '      subtotal: "{sign} * COALESCE(d.net, {lines})"\n'
            '      total: "{sign} * d.total"',
        ),
    )
    with practice(kind, tmp_path, table, *rows) as made:
        async with opened(tmp_path, made, *changes) as adapter:
            shown = [
                (it["number"], it["status"], it["subtotal"], it["total"])
                for it in await records(adapter, "invoices")
            ]
    assert shown == [
        ("F1", "ISSUED", "50.00", "60.00"),
        ("C1", "ISSUED", "-25.00", "-30.00"),
        (None, "DRAFT", "25.00", None),
    ]


async def test_fact_32_taxes_are_percent_fraction_or_code_and_prices_gross_or_net(
    kind: str, tmp_path: Path
) -> None:
    more = (
        "CREATE TABLE tax (code VARCHAR(2), rate DECIMAL(6, 4))",
        "INSERT INTO tax VALUES ('N', 20), ('R', 5.5)",
        "CREATE TABLE sold (id INTEGER, invoice INTEGER, gross DECIMAL(10, 2), kind VARCHAR(9),"
        " tax VARCHAR(9), deducted DECIMAL(10, 2))",
        "INSERT INTO sold VALUES (1, 1, 120, 'PERCENT', '20', 7)",
        "INSERT INTO sold VALUES (2, 1, 105.5, 'FRACTION', '0.055', 0)",
        "INSERT INTO sold VALUES (3, 1, 60, 'CODE', 'N', 0)",
    )
    changes = (
        (
            "resources:\n",
            "expressions:\n"
            "  decimal(text): CAST({text} AS DECIMAL(10, 4))\n"
            "  rate: >-\n"
            "    CASE s.kind WHEN 'PERCENT' THEN {decimal(s.tax)}\n"
            "    WHEN 'FRACTION' THEN 100 * {decimal(s.tax)}\n"
            "    ELSE (SELECT t.rate FROM tax t WHERE t.code = s.tax) END\n"
            "resources:\n",
        ),
        (
            "{from: line, parent: invoice, key: id, fields: {description: label, total: total}}",
            "{from: sold s, parent: s.invoice, key: s.id, order: s.id, fields: {"
            'taxRate: "{rate}", total: "ROUND(s.gross / (1 + {rate} / 100.0), 2)"}}',
        ),
    )
    with practice(kind, tmp_path, *more) as made:
        async with opened(tmp_path, made, *changes) as adapter:
            [invoice, *_] = await records(adapter, "invoices")
    assert [(line["taxRate"], line["total"]) for line in invoice["lines"]] == [
        ("20.00", "100.00"),
        ("5.50", "100.00"),
        ("20.00", "50.00"),
    ]


# A key of two columns.
TWO = (
    ("patients: {from: patient, key: id,", "patients: {from: patient, key: [client, id],"),
    (
        "patientId: SELECT p.patient FROM attendance p WHERE p.appointment = a.id",
        "patientId:\n        - SELECT p.client FROM attendance p WHERE p.appointment = a.id\n"
        "        - SELECT p.patient FROM attendance p WHERE p.appointment = a.id",
    ),
    ("      patientId: patient\n", ""),
    ("patient: {draft: patientId}", "patient: {sql: 'CAST(:patientId_2 AS INTEGER)'}"),
    ("client: {draft: clientId}", "client: {draft: patientId, part: 1}"),
)


async def test_fact_1_sql_of_a_booking_names_each_column_of_a_key_of_several(
    kind: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path) as made:
        async with opened(tmp_path, made, *TWO) as adapter:
            draft = await a_draft(adapter)
            booked = await adapter.create_appointment(draft)
            assert booked["patientId"] == draft.patient_id
        whole = (*TWO[:3], ("patient: {draft: patientId}", "patient: {sql: ':patientId'}"))
        with pytest.raises(DocumentErrors, match=r"a key of 2 columns: write :patientId_1"):
            async with opened(tmp_path, made, *whole):
                pass


async def test_fact_14_a_reason_is_kept_as_its_column_can_hold_it(
    kind: str, tmp_path: Path
) -> None:
    change = ("note: {draft: reason}", "note: {draft: reason, encoding: cp1252, longest: 12}")
    with practice(kind, tmp_path) as made:
        async with opened(tmp_path, made, change) as adapter:
            draft = await a_draft(adapter, reason="é\N{DOG FACE} coughs since Monday")
            booked = await adapter.create_appointment(draft)
            assert booked["reason"] == "é? coughs si"


@pytest.mark.parametrize("early", ["-1 second", "-1 minute"])
async def test_fact_11_an_end_may_be_written_as_the_last_second_or_minute(
    tmp_path: Path, early: str
) -> None:
    changes = (
        ("endTime: a.ends", f"endTime: datetime(a.ends, '{early.replace('-', '+')}')"),
        ("ends: {draft: endTime}", f"ends: {{sql: \"datetime(:endTime, '{early}')\"}}"),
    )
    with practice("sqlite", tmp_path) as made:
        async with opened(tmp_path, made, *changes) as adapter:
            draft = await a_draft(adapter)
            booked = await adapter.create_appointment(draft)
            assert booked["scheduledAt"] == instant_text(draft.scheduled_at)
            with pytest.raises(SlotTaken):
                await adapter.create_appointment(replace(draft, reference="ffffffffffffffff"))
