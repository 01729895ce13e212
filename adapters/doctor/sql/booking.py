"""Looks at what a booking needs: rights, a counter of one row, and a rehearsal that is undone."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, null, select, text, update
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from adapters.base import AdapterError, BackendNonsense, OutcomeUnknown, SlotTaken
from adapters.doctor.case import Look
from adapters.doctor.rehearsal import BookingKind, Planner
from adapters.doctor.rehearsal_report import (
    FIELDS,
    RehearsalReport,
    Rehearsed,
    Wrong,
    refusal,
    rehearse,
    seen,
)
from adapters.doctor.sql.likeness import Likeness
from adapters.doctor.sql.rows import SqlCase
from adapters.doctor.values import LONGEST_CODE, code_of
from adapters.documents.document import Place
from adapters.examination import Verdict
from adapters.mapped.clock_change import KnownTimes
from adapters.mapped.session import BookingProgress, complete
from adapters.mapping.models import NAMED, StepMap
from adapters.sql.adapter import SqlSession
from adapters.sql.booking import named_table
from adapters.sql.engines.base import ErrorKind
from adapters.sql.inspection import inspected
from adapters.sql.locks import BookingLock
from adapters.values.convert import Unreadable

MOST_NAMED = 5
_GRANTS = "take from it what the page on connecting does not grant"


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
    if booking.lock is not None and not case.speech.tries_all:
        look = case.look("booking", "lock", None, "booking", "lock")
        look.judge(Verdict.NOTE, "it cannot be tried here without locking: a rehearsal runs it")
        yield look
    for name in booking.without_transactions:
        look = case.look("booking", name, None, "booking", "without_transactions")
        text = f"{name} may be without transactions:"
        look.warning(f"{text} a booking that stops there is deleted by hand")
        yield look


async def _too_much(case: SqlCase, look: Look) -> None:
    connection, speech = case.session.connection, case.speech
    sentences, writable = speech.rights(connection), speech.writable(connection)
    for sentence in (*(sentences or ()), *_needless(case, writable or ())):
        look.warning(f"{sentence}, which it does not need", remedy=_GRANTS)
    if sentences is None:
        look.judge(Verdict.NOTE, "what it may do beyond its needs cannot be told here")
    elif writable is None:
        text = "whether it may write more than a booking writes cannot be told here"
        look.judge(Verdict.NOTE, text)
    elif not look.findings:
        look.ok("it may do no more than it needs")


def _needless(case: SqlCase, writable: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yields what the account may write though no booking does, nor locks it."""
    mapping = case.adapter.mapping
    needs = {
        ("INSERT" if step.insert else "UPDATE", step.table.rpartition(".")[2].lower())
        for step in mapping.booking.steps
        if step.table
    }
    locked = {"vets": mapping.resources.get("vets"), "schedules": mapping.diary.schedules}
    rows = [locked[name] for name in BookingLock(mapping, case.speech).derived()]
    locks = [mapping.booking.lock, *(each.from_ for each in rows if each is not None)]
    words = re.findall(r"\w+", " ".join(filter(None, locks)).lower())
    needs |= {("UPDATE", word) for word in words}
    for right, verb in (("INSERT", "insert into"), ("UPDATE", "update")):
        names = [name for may, name in writable if may == right]
        more = [name for name in names if (right, name.lower()) not in needs]
        rest = f" and {len(more) - MOST_NAMED} more" if len(more) > MOST_NAMED else ""
        if more:
            yield f"the account may {verb}: {', '.join(more[:MOST_NAMED])}{rest}"


async def _may_write(write: StepMap, case: SqlCase, look: Look) -> None:
    for what, grant in _denied(write, case):
        look.failed(f"the account may not {what}", remedy=f"GRANT {grant}")
        return
    if write.insert and not case.speech.tries_all:
        text = "whether the account may insert into it cannot be told here: a rehearsal tries it"
        look.judge(Verdict.NOTE, text, place=look.place)
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
    planner, likeness = Planner(case, look), Likeness(case)
    await planner.plan()
    with suppress(AdapterError):  # it tells by itself that it could not look
        await case.run(likeness.read)
    book = partial(_booked, case, planner, likeness)
    await rehearse(case, planner, RehearsalReport(look), book)
    if planner.kinds:
        likeness.judge(look)


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


async def _booked(
    case: SqlCase, planner: Planner, likeness: Likeness, kind: BookingKind
) -> Rehearsed:
    """Books, looks and undoes it."""
    done, detail, is_named, sessions = Rehearsed(), "", False, list[SqlSession]()
    failure: AdapterError | None = None

    def work(connection: Connection) -> Any:
        nonlocal done, detail, is_named
        done, detail, is_named = Rehearsed(), "", False
        own, other = _session(case, connection), _session(case, connection)
        sessions.extend((own, other))  # those of an attempt before may have left something
        done.progress = own.progress
        try:
            record = complete(case.adapter.bookings.book(own, kind.draft, KnownTimes()))
            done.made.append(record["id"])
            likeness.take(connection, done.progress)
            done.wrong = complete(seen(case, planner, kind, record, other, done))
        except BackendNonsense:
            likeness.take(connection, done.progress)
            detail, is_named = _status(connection, case, done.progress)
            raise
        finally:
            for session in (other, own):
                with suppress(SQLAlchemyError):  # what is left is told below
                    complete(session.withdraw())
        raise _Undone

    try:
        await case.engine.book(work)
    except SlotTaken as error:
        done.taken = error
    except AdapterError as error:
        failure = error
    except _Undone:
        pass
    done.deletions = [text for session in reversed(sessions) for text in session.undoing()]
    done.is_half = isinstance(failure, OutcomeUnknown)
    if failure is not None:
        refused = refusal(case, done, failure, detail, is_named=is_named)
        done.wrong = done.wrong or await _refused(case, kind, *refused)
    return done


def _session(case: SqlCase, connection: Connection) -> SqlSession:
    return SqlSession(case.adapter, case.engine.opened(connection))


async def _refused(case: SqlCase, kind: BookingKind, text: str, place: Place) -> Wrong:
    """Returns why it was refused, and where; the column that the reason does not fit is named."""
    if ErrorKind.UNFIT in text and kind.draft.reason:
        text += ": where its column lacks letters, write an encoding beside draft: reason (cp1252,"
        text += " latin-1, or utf8mb3 for what MySQL calls utf8)"
    if ErrorKind.LONG in text and kind.draft.reason and place[:2] == ("booking", "steps"):
        step = case.adapter.mapping.booking.steps[int(place[2])]
        with suppress(AdapterError):
            room = await case.engine.inspect(partial(_room, step))
            short_ = [name for name, most in room.items() if len(kind.draft.reason) > most]
            if short_:
                most = room[short_[0]]
                text += f", {short_[0]}: write longest: {most} beside draft: reason"
                return text, (*place, "values", short_[0])
    return text, place


def _room(step: StepMap, connection: Connection) -> dict[str, int]:
    """Returns how many letters the columns take into which a step writes the reason."""
    columns = [name for name, value in step.values.items() if value.draft == "reason"]
    schema, _, bare = step.table.rpartition(".")
    with inspected(connection) as inspector:
        known = inspector.get_columns(bare, schema or None)
    lengths = {each["name"].lower(): getattr(each["type"], "length", None) for each in known}
    room = {name: lengths.get(name.lower()) for name in columns}
    return {name: most for name, most in room.items() if most}


def _status(connection: Connection, case: SqlCase, done: BookingProgress) -> tuple[str, bool]:
    """Returns the code of the new appointment's status, and whether it is among the codes.

    The code is "" where the appointment was refused for something else.
    """
    key = done.made.get(case.adapter.mapping.booking.appointment)
    if done.place != (*FIELDS, "status") or key is None:
        return "", False
    reader = case.adapter.readers["appointments"]
    row = connection.execute(reader.every_row.where(reader.table.key.among([key]))).first()
    column = reader.table.by_name["status"]
    if row is None or len(code := code_of(column, row)) > LONGEST_CODE:
        return "", False
    try:
        return f": {code or repr(code)}, which is {column.read(row)}", True
    except Unreadable:
        return f": {code or repr(code)}, which its codes do not name", False
