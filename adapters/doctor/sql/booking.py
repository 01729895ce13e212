"""Looks at what a booking needs: rights, a counter of one row, and a rehearsal that is undone."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, null, select, text, update
from sqlalchemy.exc import DBAPIError

from adapters.base import AdapterError, BackendNonsense, NotFound, Record, SlotTaken
from adapters.doctor.case import Look
from adapters.doctor.rehearsal import BookingKind, Planner, again
from adapters.doctor.sql.likeness import Likeness
from adapters.doctor.sql.rows import SqlCase
from adapters.doctor.values import LONGEST_CODE, code_of
from adapters.documents.document import Place
from adapters.examination import short
from adapters.mapped.clock_change import KnownTimes
from adapters.mapped.session import BookingProgress, complete
from adapters.mapping.conversion import DRAFT_FIELDS
from adapters.mapping.models import NAMED, StepMap
from adapters.sql.adapter import SqlSession
from adapters.sql.booking import named_table
from adapters.sql.engines.base import ErrorKind
from adapters.values.convert import Unreadable

_GRANTS = "take from it what the page on connecting does not grant"
# How far from now a new appointment may be created, and the kinds that one line names.
FRESH = timedelta(minutes=20)
MOST_KINDS = 3
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
    """Raised once the booking is made, so that the engine undoes it."""


@dataclass(slots=True)
class _Rehearsed:
    """What became of one booking: how far it came, its id, what is wrong, what has to be deleted.

    `wrong` is a sentence, with the place in the mapping that it is about. `is_half` tells that rows
    were written that no ROLLBACK undoes, and that could not be deleted; `deletions` would do it.
    """

    progress: BookingProgress = field(default_factory=BookingProgress)
    made: str = ""
    wrong: tuple[str, Place] | None = None
    is_half: bool = False
    deletions: list[str] = field(default_factory=list)


async def rehearsal(case: SqlCase, look: Look) -> None:
    """Makes every kind of booking, undoes it, and tells what came of each in a line."""
    if case.lost:
        text = "no booking was rehearsed, as the database lacks what the mapping names"
        look.failed(text, place=("booking",))
        return
    for table in await case.run(partial(_undeletable, case)):
        why = f"no booking was rehearsed: {table} has no transactions, and the account may not"
        remedy = f"GRANT DELETE ON {table}"
        look.failed(f"{why} delete what was written there", place=("booking",), remedy=remedy)
        return
    planner, report = await case.run(partial(_planned, case, look)), _Report(look)
    likeness = Likeness(case)
    with suppress(AdapterError):  # it tells by itself that it could not look
        await case.run(likeness.read)
    for kind in planner.kinds:
        begun = time.monotonic()
        done = await _booked(case, planner, kind, likeness)
        if done is None:
            look.warning(f"{kind.words}: the desk took the time meanwhile, so it was not rehearsed")
        else:
            is_left = await _is_left(case, done)
            report.tell(kind, done, is_left=is_left, took=time.monotonic() - begun)
    if planner.kinds:
        report.end(len(case.adapter.mapping.booking.steps))
        likeness.judge(look)


@dataclass(slots=True)
class _Report:
    """Tells what became of the rehearsed bookings; what failed is told once, with its kinds."""

    look: Look
    failures: dict[tuple[str, Place], list[str]] = field(default_factory=lambda: defaultdict(list))
    taken: set[int] = field(default_factory=set)
    tables: dict[str, None] = field(default_factory=dict)

    def tell(self, kind: BookingKind, done: _Rehearsed, *, is_left: bool, took: float) -> None:
        self.taken |= done.progress.taken
        if done.wrong is not None:
            self.failures[done.wrong].append(kind.words)
        if is_left:
            remedy = f"run: {'; '.join(done.deletions)}" if done.deletions else "delete it by hand"
            text, ids = f"{kind.words}: it was made, and could NOT be undone", [done.made]
            self.look.failed(text, place=("booking",), remedy=remedy, ids=filter(None, ids))
        elif done.wrong is None:
            text = f"{kind.words}: rehearsed and undone"
            self.look.ok(text, ids=kind.about, seconds=took)
            self.tables |= dict.fromkeys(done.progress.tables)

    def end(self, steps: int) -> None:
        """Tells what failed, and each step of the mapping that no booking took."""
        if self.tables:
            text = f"of {', '.join(self.tables)} nothing is left, but numbers that the database"
            self.look.ok(f"{text} counts by itself may have moved on")
        for (sentence, place), kinds in self.failures.items():
            named = list(dict.fromkeys(kinds))
            few, left = "; ".join(named[:MOST_KINDS]), len(named) - MOST_KINDS
            more = f"; and {left} more" if left > 0 else ""
            self.look.failed(f"{sentence} ({few}{more})", place=place)
        for number in sorted({*range(steps)} - self.taken):
            text = "no booking that was rehearsed takes this step"
            self.look.failed(text, place=("booking", "steps", number))


async def _is_left(case: SqlCase, done: _Rehearsed) -> bool:
    """Returns whether something of a booking is still there."""
    if done.is_half or not done.made:
        return done.is_half
    try:
        await case.run(lambda session: session.reader("appointments").one(done.made))
    except NotFound:
        return False
    return True


async def _undeletable(case: SqlCase, session: SqlSession) -> list[str]:
    """Returns the tables without transactions in which the account may not delete."""
    connection, booking = session.connection, case.adapter.mapping.booking
    tables = [step.table for step in booking.steps if step.insert in booking.without_transactions]
    denied = []
    for table in dict.fromkeys(tables):
        try:
            # nosemgrep: sql-is-never-put-together-as-text - it has no text of anybody
            none = delete(named_table(table, ())).where(text("1 = 0"))
            case.speech.explain(connection, none, {})
        except DBAPIError as error:
            if case.speech.kind(error) is not ErrorKind.DENIED:
                raise
            denied.append(table)
    return denied


async def _planned(case: SqlCase, look: Look, session: SqlSession) -> Planner:
    look.findings.clear()
    planner = Planner(case, session, look)
    await planner.plan()
    return planner


async def _booked(
    case: SqlCase, planner: Planner, kind: BookingKind, likeness: Likeness
) -> _Rehearsed | None:
    """Books, looks and undoes it; returns None where the time was taken meanwhile."""
    done = _Rehearsed()

    def work(connection: Connection) -> Any:
        nonlocal done
        done = _Rehearsed()
        session = SqlSession(case.adapter, case.engine.opened(connection))
        done.progress = session.progress
        try:
            record = complete(case.adapter.bookings.book(session, kind.draft, KnownTimes()))
            done.made, done.is_half = record["id"], bool(session.undoing())
            likeness.take(connection, done.progress)
            done.wrong = complete(_seen(case, planner, kind, record, connection))
            complete(session.withdraw())
            done.is_half = False
        except BackendNonsense as error:
            detail = _status(connection, case, done.progress)
            done.wrong = _refusal(case, done.progress, error, detail)
            raise
        finally:
            done.deletions = session.undoing()
        raise _Undone

    try:
        await case.engine.book(work)
    except SlotTaken:
        return None
    except AdapterError as error:
        done.is_half = done.is_half or (not done.wrong and bool(done.deletions))
        done.wrong = done.wrong or _refusal(case, done.progress, error, "")
    except _Undone:
        pass
    return done


async def _seen(
    case: SqlCase, planner: Planner, kind: BookingKind, record: Record, connection: Connection
) -> tuple[str, Place] | None:
    """Returns what is wrong with a booking that was made, while it stands; None for nothing."""
    session = SqlSession(case.adapter, case.engine.opened(connection))
    offered = await planner.still_offered(session, kind)
    if offered is not None:
        is_vet = offered.vet == kind.draft.vet_id
        whose = "the vet in another schedule" if is_vet else "its schedule for another vet"
        whose = "its vet" if is_vet and offered == kind.free.offer.calendar else whose
        return f"the new appointment does not block {whose}", ("diary", "busy")
    try:
        await case.adapter.bookings.book(session, again(kind.draft), KnownTimes())
    except SlotTaken:
        pass
    else:
        return "the same time was booked twice", ("diary", "busy")
    if (created := record.get("createdAt")) is None:
        return None
    # written by the gateway, or by the database's clock
    moments, written = (datetime.now(UTC), kind.draft.now), datetime.fromisoformat(created)
    if abs(apart := min((now - written for now in moments), key=abs)) > FRESH:
        text = f"createdAt of the new appointment is {_in_words(apart)} this moment: write it with"
        return f"{text} {{draft: createdAt}}, or see how it is read", (*_FIELDS, "createdAt")
    return None


def _in_words(apart: timedelta) -> str:
    hours = abs(apart) / timedelta(hours=1)
    size = f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.0f} days"
    return f"{size} {'before' if apart > timedelta() else 'after'}"


def _refusal(
    case: SqlCase, done: BookingProgress, error: AdapterError, detail: str
) -> tuple[str, Place]:
    """Returns why a booking was refused, and the place in the mapping that has to be mended."""
    place = done.place
    sentence = f"it was refused, and undone: {short(error)}{detail}"
    name = place[-1] if place[:3] == _FIELDS else ""
    if isinstance(name, str) and name in DRAFT_FIELDS:
        sentence += f"; booking.steps must write what {name} is read from, as {{draft: {name}}}"
        place = place if _is_written(case, name) else ("booking", "steps")
    return sentence, place


def _is_written(case: SqlCase, name: str) -> bool:
    """Returns whether a booking writes that field; an end may be written as minutes."""
    names = {name, "minutes"} if name == "endTime" else {name}
    return any(
        value.draft in names or names & {*NAMED(value.sql or "")}
        for write in case.adapter.mapping.booking.steps
        for value in write.written
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
