"""Defines what an examination of a practice system finds, and puts its counts into words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from adapters.documents.problems import Problem

SAMPLE = 2_000
# The codes of a kind of booking that was not rehearsed, and of a rehearsal that made none.
UNREHEARSED, DRY = "not-rehearsed", "dry-rehearsal"
# Example ids of one finding.
MOST_IDS = 3
# The share of unreadable values that may just be old mistakes.
TOLERABLE = 0.01


class Verdict(StrEnum):
    """How bad a finding is: `failed` would fail a partner, `warning` is worth a look.

    A `note` is neither good nor bad: nothing could be told, or somebody has decided it.
    """

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was looked at, and what was found; only `examples` have values of records.

    `check` is the kind of look (`mapping`, `values`), `subject` what was looked at. `place` is
    `file:line:column` of the mapping, where there is one. `code` is the check that it fails. `ids`
    are public ids of examples. `examples` are rows by the practice's own key, with the times,
    numbers and codes that contradict one another: never a text. `codes` are unknown codes with
    their counts. `seconds` is how long it took, where that matters.
    """

    check: str
    subject: str
    verdict: Verdict
    text: str
    code: str = ""
    remedy: str = ""
    place: str = ""
    ids: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    codes: Mapping[str, int] = field(default_factory=dict)
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """How far to look, and whether to rehearse a booking; nothing is written without `booking`.

    `now` is the moment that counts as the present. Of each resource this many `rows` are looked at,
    half of them from either end; None for all. In a test tenant bookings may stay, so that they are
    made even where nothing undoes them.
    """

    now: datetime
    rows: int | None = SAMPLE
    booking: bool = False
    is_tenant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a mapping leaves out (`left_out`), and the fields (paths) that it fills (`filled`).

    Each problem in `left_out` is where the mapping reads the table, or the records, that have it.
    """

    left_out: tuple[Problem, ...]
    filled: Mapping[str, frozenset[str]]


def short(error: Exception) -> str:
    return " ".join(str(error).split())


def counted(count: int, noun: str, verb: str = "") -> str:
    """Returns `2 rows`, or with a verb, given as of several, `2 rows lead`."""
    rows = f"1 {noun}" if count == 1 else f"{count:,} {noun}s"
    return f"{rows} {agreeing(count, verb)}" if verb else rows


def agreeing(count: int, several: str) -> str:
    """Returns the verb that goes with a count, given as of several: 2 `lead`, 1 `leads`."""
    odd = {"are": "is", "have": "has", "were": "was", "do": "does"}
    return odd.get(several, f"{several}s") if count == 1 else several


def weighed(bad: int, all_: int, *, most: float = TOLERABLE) -> Verdict:
    """Returns FAILED where more than the share `most` is bad."""
    return Verdict.FAILED if bad > most * all_ else Verdict.WARNING
