"""The checker: whether what partners were told, and what is left in the diary, may stand together.

Pure. A wish is a booking that a partner wants, with a note of its own; each time it is asked for is
an attempt. Moments are those of the machine's monotonic clock, in seconds; times of appointments
are the clinic's own, by the clock on the wall.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

# No answer is as good as one that says that nobody knows.
LOST = None
UNKNOWN = (LOST, 504)
# Answers that stay with an Idempotency-Key, but for a 409 over what nobody knows of.
STICK = (201, 404, 409)
ALLOWED = (LOST, 201, 409, 503, 504)
# Seconds in which the ledger finds or releases what nobody knows of, however hard it is struck.
RESOLVED_IN = 240.0
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
    passing = _passing(attempts)
    return [
        *_answers(attempts),
        *_overlaps(rows),
        *_acknowledged(attempts, rows),
        *_asked_for(attempts, rows),
        *_one_answer(attempts, passing),
        *_own_way(attempts, rows, passing),
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


def _one_answer(attempts: Sequence[Attempt], passing: Collection[int]) -> Iterator[str]:
    """One Idempotency-Key has one answer, whoever gives it and however often.

    A 409 that may pass comes before it, not after.
    """
    told: dict[str, set[tuple[int | None, bytes]]] = defaultdict(set)
    first: dict[str, Attempt] = {}
    settled = _settled_at(attempts, passing)
    for each in attempts:
        key = each.wish.key
        if key is None or each.status not in STICK:
            continue
        if id(each) in passing and each.sent <= settled.get(key, each.sent):
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


def _settled_at(attempts: Sequence[Attempt], passing: Collection[int]) -> dict[str, float]:
    """Each key's moment from which on it has its one answer."""
    at: dict[str, float] = {}
    for each in attempts:
        if each.wish.key is not None and each.status in STICK and id(each) not in passing:
            at[each.wish.key] = min(each.ended, at.get(each.wish.key, each.ended))
    return at


def _own_way(
    attempts: Sequence[Attempt], rows: Sequence[Row], passing: Collection[int]
) -> Iterator[str]:
    """Who has a key is never told that the time is taken, or a thing unknown, over its own row.

    Unless that was over another's of which nobody knew, and its own was made after it.
    """
    standing = _by_note(rows)
    settled = _settled_at(attempts, passing)
    made: dict[str, float] = {}
    for each in attempts:
        if each.status in UNKNOWN or (each.status == 201 and not each.replayed):
            made[each.wish.note] = max(each.ended, made.get(each.wish.note, each.ended))
    for each in attempts:
        key, note = each.wish.key, each.wish.note
        if each.status not in (404, 409) or key is None or note not in standing:
            continue
        may_pass = id(each) in passing and each.sent <= settled.get(key, each.sent)
        if not may_pass or made.get(note, 0.0) < each.sent:
            yield f"{note} has a key, was answered {each.status}, and stands there"


def _with_cause(attempts: Sequence[Attempt], rows: Sequence[Row]) -> Iterator[str]:
    """Whoever is refused was in the way of one that was made, or that nobody knew of then."""
    standing = _by_note(rows)
    made: dict[int, list[Attempt]] = defaultdict(list)
    unknown: dict[int, list[Attempt]] = defaultdict(list)
    for each in attempts:
        if each.status == 201 or (each.status in UNKNOWN and each.wish.note in standing):
            made[each.wish.vet].append(each)
        elif each.status in UNKNOWN:
            unknown[each.wish.vet].append(each)
    for each in attempts:
        vet = each.wish.vet
        if each.status != 409 or any(_in_way(each, other) for other in made[vet]):
            continue
        if not any(_is_unresolved(each, other) for other in unknown[vet]):
            yield f"{each.wish.note} was refused and nothing was in its way"


def _in_way(refused: Attempt, other: Attempt) -> bool:
    one, two = refused.wish, other.wish
    return one.start < two.end and two.start < one.end and other.sent < refused.ended


def _is_unresolved(refused: Attempt, other: Attempt) -> bool:
    """Whether that was in the way, and may not have been known of until then."""
    return _in_way(refused, other) and refused.sent - other.ended <= RESOLVED_IN


def _passing(attempts: Sequence[Attempt]) -> set[int]:
    """The 409s (by `id`) that may be over another's of which nobody knew: those do not stay."""
    unknown: dict[int, list[Attempt]] = defaultdict(list)
    for each in attempts:
        if each.status in UNKNOWN:
            unknown[each.wish.vet].append(each)
    return {
        id(each)
        for each in attempts
        if each.status == 409
        and not each.replayed
        and any(
            other.wish.note != each.wish.note and _is_unresolved(each, other)
            for other in unknown[each.wish.vet]
        )
    }


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
