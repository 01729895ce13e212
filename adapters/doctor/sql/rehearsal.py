"""A booking that is made and undone, where the database can undo it."""

import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Connection

from adapters.base import AdapterError, BackendNonsense, Draft, NotFound, Record, SlotTaken
from adapters.doctor.findings import agreeing, short
from adapters.doctor.sql.case import SqlCase
from adapters.doctor.values import LONGEST_CODE, code_of
from adapters.documents.document import Place
from adapters.examination import Finding
from adapters.mapped.booked import DECEASED
from adapters.mapped.repeated import KnownTimes
from adapters.mapped.session import BookingProgress, complete
from adapters.mapping.conversion import DRAFT_FIELDS
from adapters.mapping.models import NAMED
from adapters.sql.session import SqlSession
from adapters.values.convert import Converter, Unreadable

DAYS = 14
REASON = "Contrôle"
MOST_PATIENTS = 200
_FIELDS: Place = ("resources", "appointments", "fields")


@dataclass(slots=True)
class _Undone(Exception):
    """Raised when the booking is made, so that the engine undoes it."""

    record: Record = field(default_factory=dict)


async def rehearsal(case: SqlCase) -> AsyncIterator[Finding]:
    """Tries each vet's next free time until one works; says what was written and undone."""
    try:
        yield await _rehearsed(case)
    except AdapterError as error:
        text = f"no booking could be tried: {short(error)}"
        yield case.failed("booking", "rehearsal", text)


async def _rehearsed(case: SqlCase) -> Finding:
    for check in (_lost, _untransactional):
        refused = await check(case)
        if refused is not None:
            return refused
    for shown in case.vets():
        draft = await case.run(partial(_draft, case=case, vet=shown))
        found = None if draft is None else await _booked(case, draft)
        if found is not None:
            return found
    text = f"nothing was booked: no vet has a free time in the next {DAYS} days"
    return case.warning("booking", "rehearsal", text)


async def _lost(case: SqlCase) -> Finding | None:
    if not case.lost:
        return None
    text = "no booking was tried, as the database lacks what the mapping names"
    return case.warning("booking", "rehearsal", text)


async def _untransactional(case: SqlCase) -> Finding | None:
    tables = [each.table for each in case.core.mapping.booking.steps if each.table]
    speech = case.speech
    unsafe = await case.engine.read(lambda c: list(speech.transactional(c, tables)))
    if not unsafe:
        return None
    text = f"no booking was tried: {', '.join(unsafe)} has no transactions to undo it with"
    return case.warning("booking", "rehearsal", text, ("booking", "steps"))


async def _draft(session: SqlSession, case: SqlCase, vet: str) -> Draft | None:
    """A draft that fits the vet's next free time; None where there is none."""
    patient = await _patient(session, case)
    kind = next((each["id"] for each in case.samples.get("appointmentTypes", ())), None)
    today = case.examination.now.astimezone(case.core.diary.zone).date()
    for ahead in range(DAYS + 1):
        wanted = {"vetId": vet, "date": today + timedelta(days=ahead), "appointmentTypeId": kind}
        free = await case.core.diary.slots(session, wanted, case.examination.now, KnownTimes())
        if free and patient:
            return Draft(
                client_id=patient["clientId"],
                patient_id=patient["id"],
                vet_id=vet,
                scheduled_at=datetime.fromisoformat(free[0]["startTime"]),
                appointment_type_id=kind,
                reason=REASON,
                is_urgent=False,
                now=case.examination.now,
                reference=secrets.token_hex(8),
            )
    return None


async def _patient(session: SqlSession, case: SqlCase) -> Record | None:
    """An animal that has not died, of a client who exists."""
    for each in case.samples.get("patients", [])[:MOST_PATIENTS]:
        if each.get("status") == DECEASED:
            continue
        try:
            await session.exists("clients", each["clientId"] or "")
        except (NotFound, ValueError):
            continue
        return each
    return None


async def _booked(case: SqlCase, draft: Draft) -> Finding | None:
    """What came of it; None where the time was taken meanwhile."""
    done, begun, also = BookingProgress(), time.monotonic(), ""

    def work(connection: Connection) -> Any:
        nonlocal done, also
        done = BookingProgress()
        session = case.adapter.driver.session(connection, done)
        try:
            record = complete(case.core.bookings.book(session, draft, KnownTimes()))
        except BackendNonsense:
            also = _found(connection, case, done)
            raise
        raise _Undone(record)

    try:
        await case.engine.book(work)
    except SlotTaken:
        return None
    except AdapterError as error:
        place = done.place if isinstance(error, BackendNonsense) else ()
        text = f"it was refused, and undone: {short(error)}{also}"
        name = _drafted(place)
        if name:
            text += f"; booking.steps must write what {name} is read from, as {{draft: {name}}}"
            place = place if _is_written(case, name) else ("booking", "steps")
        return case.failed("booking", "rehearsal", text, place)
    except _Undone as undone:
        seconds = time.monotonic() - begun
        return await _gone(case, undone.record, done, seconds)
    raise AssertionError("a rehearsal always raises")


def _drafted(place: Place) -> str:
    """The field there, where a draft has what it must be; "" for any other place."""
    field = place[-1] if place[:3] == _FIELDS else ""
    return field if isinstance(field, str) and field in DRAFT_FIELDS else ""


def _is_written(case: SqlCase, name: str) -> bool:
    """Whether a booking writes it at all: an end may be written as minutes."""
    names = {name, "minutes"} if name == "endTime" else {name}
    return any(
        value.draft in names or names & {*NAMED(value.sql or "")}
        for write in case.core.mapping.booking.steps
        for value in write.values.values()
    )


def _found(connection: Connection, case: SqlCase, done: BookingProgress) -> str:
    """Which code the new appointment's status has, where that is what was refused."""
    key = done.made.get(case.core.mapping.booking.appointment)
    if done.place != ("resources", "appointments", "fields", "status") or key is None:
        return ""
    reader = case.adapter.readers["appointments"]
    table = reader.table
    row = connection.execute(reader.every_row.where(table.key.among([key]))).first()
    if row is None:
        return ""
    at = table.key.width
    for column in table.columns:
        if column.name == "status":
            return _code_and_meaning(column.take(row, at), column.converter)
        at += column.width
    return ""


def _code_and_meaning(raw: Any, converter: Converter) -> str:
    code = code_of(raw)
    if len(code) > LONGEST_CODE:
        return ""
    try:
        return f": {code or repr(code)}, which is {converter.decode(raw)}"
    except Unreadable:
        return f": {code or repr(code)}, which its codes do not name"


async def _gone(case: SqlCase, record: Record, done: BookingProgress, seconds: float) -> Finding:
    """Whether it is truly undone."""
    try:
        await case.run(lambda session: session.one("appointments", record["id"]))
    except NotFound:
        tables = list(dict.fromkeys(done.tables))
        written = f"{', '.join(tables)} {agreeing(len(tables), 'were')} written"
        text = f"booked in {seconds * 1000:.0f} ms and undone: {written}, and nothing"
        text += " of it is left; numbers that the database counts by itself may have moved on"
        return case.ok("booking", "rehearsal", text)
    text = "the booking was made, and could NOT be undone: delete it by hand"
    return case.failed("booking", "rehearsal", text, ("booking",), ids=[record["id"]])
