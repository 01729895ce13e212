"""The checker: whether what partners were told, and what is left in the diary, may stand together.

Pure. A wish is a booking that a partner wants, with a note of its own; each time it is asked for is
an attempt. Moments are those of the machine's monotonic clock, in seconds; times of appointments
are the clinic's own, by the clock on the wall.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

# No answer is as good as one that says that nobody knows.
LOST = None
UNKNOWN = (LOST, 504)
# Answers that stay with an Idempotency-Key.
STICK = (201, 404, 409)
ALLOWED = (LOST, 201, 409, 503, 504)
# Of so many attempts no more than this share may be 503. Seen were 8 % over PostgreSQL, 32 % over
# SQLite, where a stopped process keeps all others from writing and each retry counts.
MANY, MOST_UNAVAILABLE = 1_000, 0.6


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a partner wants to book; `key` is its Idempotency-Key, where it has one."""

    note: str
    vet: int
    start: datetime
    end: datetime
    key: str | None


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One call for a wish: its answer, where one came, and whether that was an earlier one."""

    wish: Wish
    sent: float
    ended: float
    status: int | None
    body: bytes = b""
    replayed: bool = False


@dataclass(frozen=True, kw_only=True)
class Row:
    """An appointment as the diary holds it in the end; `parts` counts the rows of it."""

    note: str
    vet: int
    start: datetime
    end: datetime
    parts: tuple[int, ...]


WHOLE = (1, 1)


def faults(attempts: Sequence[Attempt], rows: Sequence[Row], strays: int = 0) -> list[str]:
    """What must not have happened, as sentences; none when all is well.

    `strays` are rows that belong to no appointment.
    """
    return [
        *_answers(attempts),
        *_overlaps(rows),
        *_acknowledged(attempts, rows),
        *_asked_for(attempts, rows),
        *_one_answer(attempts),
        *_own_way(attempts, rows),
        *_with_cause(attempts, rows),
        *_available(attempts),
        *([f"{strays} rows belong to no appointment"] if strays else []),
    ]


def _answers(attempts: Sequence[Attempt]) -> Iterator[str]:
    for each in attempts:
        if each.status not in ALLOWED:
            yield f"{each.wish.note} was answered {each.status}: {each.body.decode()}"


def _overlaps(rows: Sequence[Row]) -> Iterator[str]:
    ordered = sorted(rows, key=lambda row: (row.vet, row.start, row.end))
    for one, other in pairwise(ordered):
        if one.vet == other.vet and other.start < one.end:
            yield f"{one.note} and {other.note} overlap"


def _acknowledged(attempts: Sequence[Attempt], rows: Sequence[Row]) -> Iterator[str]:
    """Every 201 is one whole row, where it was asked for."""
    by_note = _by_note(rows)
    for wish in {each.wish.note: each.wish for each in attempts if each.status == 201}.values():
        found = by_note[wish.note]
        if len(found) != 1:
            yield f"{wish.note} was acknowledged and has {len(found)} rows"
        for row in found:
            if (row.vet, row.start, row.end) != (wish.vet, wish.start, wish.end):
                yield f"{wish.note} was acknowledged and stands elsewhere"


def _asked_for(attempts: Sequence[Attempt], rows: Sequence[Row]) -> Iterator[str]:
    """Every row is whole, its wish's only one, and was acknowledged or is not known of."""
    answers: dict[str, set[int | None]] = defaultdict(set)
    for each in attempts:
        answers[each.wish.note].add(each.status)
    for note, found in _by_note(rows).items():
        if len(found) > 1:
            yield f"{note} was booked {len(found)} times"
        if not answers[note].intersection((201, *UNKNOWN)):
            yield f"{note} stands there and was answered {sorted(map(str, answers[note]))}"
        for row in found:
            if row.parts != WHOLE:
                yield f"{note} is not whole: {row.parts}"


def _one_answer(attempts: Sequence[Attempt]) -> Iterator[str]:
    """One Idempotency-Key has one answer, whoever gives it and however often."""
    told: dict[str, set[tuple[int | None, bytes]]] = defaultdict(set)
    first: dict[str, Attempt] = {}
    for each in attempts:
        key = each.wish.key
        if key is None or each.status not in STICK:
            continue
        told[key].add((each.status, each.body))
        if not each.replayed:
            if key in first and each.sent > first[key].ended:
                yield (
                    f"{each.wish.note} was booked anew with the key of an answered one:"
                    f" {first[key].status}, then {each.status}"
                )
            first[key] = each
    for key, answers in told.items():
        if len(answers) > 1:
            yield f"the key {key} was answered {len(answers)} ways: {sorted(map(str, answers))}"


def _own_way(attempts: Sequence[Attempt], rows: Sequence[Row]) -> Iterator[str]:
    """Who has a key is never told that the time is taken, or a thing unknown, over its own row."""
    standing = _by_note(rows)
    for each in attempts:
        note = each.wish.note
        if each.status in (404, 409) and each.wish.key is not None and note in standing:
            yield f"{note} has a key, was answered {each.status}, and stands there"


def _with_cause(attempts: Sequence[Attempt], rows: Sequence[Row]) -> Iterator[str]:
    """A 409 is for a time that somebody has: one that was made, and never one in doubt."""
    standing = _by_note(rows)
    made: dict[int, list[Attempt]] = defaultdict(list)
    for each in attempts:
        if each.status == 201 or (each.status in UNKNOWN and each.wish.note in standing):
            made[each.wish.vet].append(each)
    for each in attempts:
        if each.status == 409 and not any(_in_way(each, other) for other in made[each.wish.vet]):
            yield f"{each.wish.note} was refused and nothing was in its way"


def _in_way(refused: Attempt, other: Attempt) -> bool:
    one, two = refused.wish, other.wish
    return one.start < two.end and two.start < one.end and other.sent < refused.ended


def _available(attempts: Sequence[Attempt]) -> Iterator[str]:
    """A long storm leaves most calls an answer that says something."""
    refused = sum(each.status == 503 for each in attempts)
    if len(attempts) >= MANY and refused > MOST_UNAVAILABLE * len(attempts):
        yield f"{refused} of {len(attempts)} attempts were answered 503"


def _by_note(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.note].append(row)
    return found
