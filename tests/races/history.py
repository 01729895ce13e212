"""The checker: whether a history of racing bookings, and the tables that it left, may stand.

Pure. Times of the history are those of the machine's monotonic clock, in nanoseconds; those of
appointments are the clinic's own, by the clock on the wall.

What can be proved from outside: a change of the desk's took effect at some moment between the
start of its COMMIT and its acknowledgement. A booking looked at the diary for the last time after
its last row was written (`marked`, read off the server's clock by that row itself), and before its
answer.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

FOREVER = 2**63
UNKNOWN = (504, None)  # no answer at all is as good as one that says that nobody knows


@dataclass(frozen=True, kw_only=True)
class Call:
    """A booking that was asked for, by its unique note; `status` is None where no answer came."""

    note: str
    vet: int
    start: datetime
    end: datetime
    gateway: int
    sent: int
    answered: int
    status: int | None


@dataclass(frozen=True, kw_only=True)
class Stay:
    """A time that the desk took: it began to count between `committing` and `committed`.

    It ceased to between `leaving` and `left`.
    """

    note: str
    vet: int
    start: datetime
    end: datetime
    committing: int
    committed: int
    leaving: int = FOREVER
    left: int = FOREVER


@dataclass(frozen=True, kw_only=True)
class Row:
    """An appointment as the tables hold it in the end; `ours` where the gateway wrote it.

    `attended` counts its rows in the second table, and `marks` are the moments of its last write.
    """

    note: str | None
    vet: int
    start: datetime
    end: datetime
    ours: bool
    free: bool = False
    attended: int = 0
    marks: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class History:
    """All that happened, and what is left. `strays` are rows that belong to no appointment.

    `offered` are the times that could be had in an empty diary, `room` is how many bookings a
    gateway works on at once.
    """

    calls: Sequence[Call]
    stays: Sequence[Stay]
    rows: Sequence[Row]
    strays: int
    offered: frozenset[tuple[int, datetime, datetime]]
    room: int


def faults(history: History) -> list[str]:
    """What must not have happened, as sentences; none when all is well."""
    return [
        *_answers(history),
        *_overlaps(history),
        *_over_the_desk(history),
        *_not_whole(history),
        *_not_asked_for(history),
        *_without_cause(history),
        *_lost_of_the_desk(history),
    ]


def _clash(one: Call | Stay | Row, other: Call | Stay | Row) -> bool:
    return one.vet == other.vet and one.start < other.end and other.start < one.end


def _answers(history: History) -> Iterator[str]:
    for call in history.calls:
        if call.status == 503 and _crowd(history, call) >= history.room:
            continue
        if call.status not in (201, 409, 504):
            yield f"{call.note} was answered {call.status}"


def _crowd(history: History, call: Call) -> int:
    """How many other calls were under way at the same gateway while this one was."""
    return sum(
        other.gateway == call.gateway
        and other is not call
        and other.sent < call.answered
        and call.sent < other.answered
        for other in history.calls
    )


def _overlaps(history: History) -> Iterator[str]:
    for one, other in combinations([each for each in history.rows if each.ours], 2):
        if _clash(one, other):
            yield f"{one.note} and {other.note} overlap"


def _over_the_desk(history: History) -> Iterator[str]:
    """Ours that were acknowledged though the desk's time certainly counted at the last look."""
    made = {call.note: call for call in history.calls if call.status == 201}
    for row in history.rows:
        call = made.get(row.note or "")
        if not row.ours or call is None:
            continue
        last_look = max((call.sent, *row.marks))
        for stay in history.stays:
            counted = stay.committed < last_look and stay.leaving > call.answered
            if counted and _clash(row, stay):
                yield f"{row.note} was acknowledged over {stay.note}"


def _not_whole(history: History) -> Iterator[str]:
    by_note: dict[str | None, list[Row]] = {}
    for row in history.rows:
        by_note.setdefault(row.note, []).append(row)
    for call in history.calls:
        if call.status != 201:
            continue
        rows = [row for row in by_note.get(call.note, ()) if row.ours]
        if len(rows) != 1:
            yield f"{call.note} was acknowledged and has {len(rows)} rows"
        for row in rows:
            if (row.vet, row.start, row.end) != (call.vet, call.start, call.end):
                yield f"{call.note} was acknowledged and stands elsewhere"


def _not_asked_for(history: History) -> Iterator[str]:
    """Rows of ours that are half, that nobody was told of, or that belong to nothing."""
    status = {call.note: call.status for call in history.calls}
    if history.strays:
        yield f"{history.strays} rows belong to no appointment"
    for row in history.rows:
        if row.free and (row.note is not None or row.attended or row.marks):
            yield f"a free row carries what is left of {row.note}"
        if not row.ours:
            continue
        if (row.attended, len(row.marks)) != (1, 1):
            yield f"{row.note} is not whole: {row.attended} and {len(row.marks)} rows"
        if status.get(row.note or "", 0) not in (201, *UNKNOWN):
            yield f"{row.note} stands there and was answered {status.get(row.note or '')}"


def _without_cause(history: History) -> Iterator[str]:
    for call in history.calls:
        if call.status == 409 and not _has_cause(history, call):
            yield f"{call.note} was refused and nothing was in its way"


def _has_cause(history: History, call: Call) -> bool:
    if (call.vet, call.start, call.end) not in history.offered:
        return True
    by_desk = (
        stay.committing < call.answered and call.sent < stay.left and _clash(call, stay)
        for stay in history.stays
    )
    by_us = (
        other.status in (201, *UNKNOWN) and other.sent < call.answered and _clash(call, other)
        for other in history.calls
        if other is not call
    )
    return any(by_desk) or any(by_us)


def _lost_of_the_desk(history: History) -> Iterator[str]:
    """What the desk committed and never gave up is still there."""
    there = Counter(_place(row) for row in history.rows if not row.ours)
    for stay in history.stays:
        if stay.left == FOREVER and not there[_place(stay)]:
            yield f"{stay.note} of the desk's is lost"


def _place(each: Stay | Row) -> tuple[object, ...]:
    return each.note, each.vet, each.start, each.end
