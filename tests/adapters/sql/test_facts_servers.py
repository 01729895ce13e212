"""Facts of practice systems, numbered, on each kind of database: a mapping alone undoes each."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.base import Draft, Query
from adapters.sql.adapter import SqlAdapter
from tests.races.practice import KINDS, ZONE, Practice, at, practice, working_days

NOW = datetime.now(UTC).replace(microsecond=0)
TODAY = NOW.astimezone(ZONE).date()
DAY = working_days(1, TODAY)[0]


@pytest.fixture(params=KINDS)
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
    async with aclosing(made.open(folder, text)) as adapter:
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
