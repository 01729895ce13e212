"""Looks at what a booking needs: rights, a counter of one row, and a rehearsal that is undone."""

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, insert, null, select, text, update
from sqlalchemy.exc import DBAPIError

from adapters.base import AdapterError, BackendNonsense, Draft, NotFound, SlotTaken
from adapters.doctor.case import Look
from adapters.doctor.sql.rows import SqlCase
from adapters.doctor.values import LONGEST_CODE, code_of
from adapters.documents.document import Place
from adapters.examination import agreeing, short
from adapters.mapped.appointment import DECEASED
from adapters.mapped.clock_change import KnownTimes
from adapters.mapped.session import BookingProgress, complete
from adapters.mapping.conversion import DRAFT_FIELDS
from adapters.mapping.models import NAMED, StepMap
from adapters.sql.adapter import SqlSession
from adapters.sql.booking import named_table
from adapters.sql.engines.base import ErrorKind
from adapters.values.convert import Unreadable

_GRANTS = "take from it what the page on connecting does not grant"
# Days in which a free time is searched.
DAYS = 14
REASON = "Contrôle"
MOST_PATIENTS = 200
_FIELDS: Place = ("resources", "appointments", "fields")


def account(case: SqlCase) -> Iterator[Look]:
    """Yields a look at the account's rights, and looks at each table that a booking writes."""
    yield case.look("rights", "account", _too_much)
    booking = case.adapter.mapping.booking
    for number, write in enumerate(booking.steps):
        place = ("booking", "steps", number)
        if case.is_lost(*place):
            continue
        name = write.table or write.sequence or ""
        yield case.look("rights", name, partial(_may_write, write), *place)
        if write.counter is not None and not NAMED(write.where or ""):
            yield case.look("booking", write.counter, partial(_one_counter, write), *place)
    for name in booking.without_transactions:
        look = case.look("booking", name, None, "booking", "without_transactions")
        text = f"{name} may be without transactions:"
        look.warning(f"{text} a booking that stops there is deleted by hand")
        yield look


async def _too_much(case: SqlCase, look: Look) -> None:
    for sentence in case.speech.rights(case.session.connection):
        look.warning(f"{sentence}, which it does not need", remedy=_GRANTS)
    if not look.findings:
        look.ok("it may do no more than it needs")


async def _may_write(write: StepMap, case: SqlCase, look: Look) -> None:
    for what, grant in _denied(write, case):
        look.failed(f"the account may not {what}", remedy=f"GRANT {grant}")
        return
    what = "insert into" if write.insert else "update" if write.table else "use"
    look.ok(f"the account may {what} it", place=look.place)


def _denied(write: StepMap, case: SqlCase) -> Iterator[tuple[str, str]]:
    """Yields what the account may not do, and the grant for it."""
    connection = case.session.connection
    if (name := write.sequence) is not None:
        if not case.speech.may_use(connection, quoted(connection, name)):
            yield f"use the sequence {name}", f"USAGE ON SEQUENCE {name}"
        return
    columns = list(write.values) or [write.column or ""]
    rows = named_table(write.table, columns)
    nothing: dict[str, ColumnElement[Any]] = {column: null() for column in columns}
    make, what = (insert, "insert into") if write.insert else (update, "update")
    try:
        # the whole statement: some rights are checked for all its columns only
        case.speech.explain(connection, make(rows).values(nothing), {})
    except DBAPIError as error:
        if case.speech.kind(error) is not ErrorKind.DENIED:
            raise
        yield f"{what} {write.table}", f"{what.split()[0].upper()} ON {write.table}"
    # what numbers a new row may need a right of its own
    unset = [column for column in write.keys if column not in write.values] if write.insert else ()
    for column in unset:
        if not case.speech.may_number(connection, quoted(connection, write.table), column):
            grant = "USAGE ON SEQUENCE, as the page on connecting shows"
            yield f"use the sequence of {write.table}.{column}", grant


def quoted(connection: Connection, name: str) -> str:
    """Returns a name of the mapping as the database takes it in a statement."""
    return ".".join(map(connection.dialect.identifier_preparer.quote, name.split(".")))


async def _one_counter(write: StepMap, case: SqlCase, look: Look) -> None:
    rows = named_table(write.table, [write.column or ""])
    # nosemgrep: sql-is-never-put-together-as-text - the mapping is the clinic's own
    which = text(f"({write.where or '1 = 1'})")
    count = case.session.connection.scalar(select(func.count()).select_from(rows).where(which))
    if count == 1:
        look.ok("its counter is one row", place=look.place)
    else:
        sentence = f"the counter is {count} rows, and must be one: no booking can be written"
        look.failed(sentence, "where", remedy="see what its `where` finds")


class _Undone(Exception):
    """Raised once the booking is made, so that the engine undoes it; its argument is the id."""


async def rehearsal(case: SqlCase, look: Look) -> None:
    """Tries each vet's next free time until one works; tells what was written and undone."""
    if case.lost:
        look.warning("no booking was tried, as the database lacks what the mapping names")
        return
    tables = [step.table for step in case.adapter.mapping.booking.steps if step.table]
    if unsafe := await case.engine.read(lambda c: list(case.speech.unsafe_tables(c, tables))):
        text = f"no booking was tried: {', '.join(unsafe)} has no transactions to undo it with"
        look.warning(text, "booking", "steps")
        return
    for vet in case.vets():
        if (draft := await case.run(partial(_draft, case, vet))) is not None:
            await _booked(case, draft, look)
        if look.findings:
            return
    look.warning(f"nothing was booked: no vet has a free time in the next {DAYS} days")


async def _draft(case: SqlCase, vet: str, session: SqlSession) -> Draft | None:
    """Returns a draft for the vet's next free time and a living animal, or None."""
    kind = next((row["id"] for row in case.samples.get("appointmentTypes", ())), None)
    now, diary = case.examination.now, case.adapter.diary
    today = now.astimezone(diary.zone).date()
    for patient in case.samples.get("patients", [])[:MOST_PATIENTS]:
        with suppress(NotFound, ValueError):
            if patient.get("status") != DECEASED:
                await session.reader("clients").exists(patient["clientId"] or "")
                break
    else:
        return None
    for ahead in range(DAYS + 1):
        values = {"vetId": vet, "date": today + timedelta(days=ahead), "appointmentTypeId": kind}
        if free := await diary.slots(session, values, now, KnownTimes()):
            return Draft(
                client_id=patient["clientId"],
                patient_id=patient["id"],
                vet_id=vet,
                scheduled_at=datetime.fromisoformat(free[0]["startTime"]),
                appointment_type_id=kind,
                reason=REASON,
                now=now,
                reference=secrets.token_hex(8),
            )
    return None


async def _booked(case: SqlCase, draft: Draft, look: Look) -> None:
    """Books, undoes it and tells the result; tells nothing where the time was taken meanwhile."""
    done, begun, detail = BookingProgress(), time.monotonic(), ""

    def work(connection: Connection) -> Any:
        nonlocal done, detail
        session = SqlSession(case.adapter, case.engine.opened(connection))
        done = session.progress
        try:
            record = complete(case.adapter.bookings.book(session, draft, KnownTimes()))
        except BackendNonsense:
            detail = _status(connection, case, done)
            raise
        raise _Undone(record["id"])

    try:
        await case.engine.book(work)
    except SlotTaken:
        return
    except AdapterError as error:
        place = done.place if isinstance(error, BackendNonsense) else ()
        sentence = f"it was refused, and undone: {short(error)}{detail}"
        name = place[-1] if place[:3] == _FIELDS else ""
        if isinstance(name, str) and name in DRAFT_FIELDS:
            sentence += f"; booking.steps must write what {name} is read from, as {{draft: {name}}}"
            place = place if _is_written(case, name) else ("booking", "steps")
        look.failed(sentence, *place)
    except _Undone as undone:
        tables, took = list(dict.fromkeys(done.tables)), time.monotonic() - begun
        await _gone(case, look, undone.args[0], tables, took)


def _is_written(case: SqlCase, name: str) -> bool:
    """Returns whether a booking writes that field; an end may be written as minutes."""
    names = {name, "minutes"} if name == "endTime" else {name}
    return any(
        value.draft in names or names & {*NAMED(value.sql or "")}
        for write in case.adapter.mapping.booking.steps
        for value in write.values.values()
    )


def _status(connection: Connection, case: SqlCase, done: BookingProgress) -> str:
    """Returns the code of the new appointment's status where it was refused for that, else ""."""
    key = done.made.get(case.adapter.mapping.booking.appointment)
    if done.place != (*_FIELDS, "status") or key is None:
        return ""
    reader = case.adapter.readers["appointments"]
    row = connection.execute(reader.every_row.where(reader.table.key.among([key]))).first()
    column = reader.table.by_name["status"]
    if row is None or len(code := code_of(column, row)) > LONGEST_CODE:
        return ""
    try:
        return f": {code or repr(code)}, which is {column.read(row)}"
    except Unreadable:
        return f": {code or repr(code)}, which its codes do not name"


async def _gone(case: SqlCase, look: Look, made: str, tables: Sequence[str], took: float) -> None:
    try:
        await case.run(lambda session: session.reader("appointments").one(made))
    except NotFound:
        written = f"{', '.join(tables)} {agreeing(len(tables), 'were')} written"
        text = f"booked in {took * 1000:.0f} ms and undone: {written}, and nothing"
        text += " of it is left; numbers that the database counts by itself may have moved on"
        look.ok(text)
    else:
        text = "the booking was made, and could NOT be undone: delete it by hand"
        look.failed(text, "booking", ids=[made])
