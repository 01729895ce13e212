"""What an examination of a practice system finds, and how an adapter of any kind tells it."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable

SAMPLE = 2_000


class Verdict(StrEnum):
    """`failed` would fail a partner; `warning` is worth a look."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was looked at, and what was found; it carries no value of a record.

    `check` is the kind of look (`mapping`, `values`), `subject` what was looked at. `place` is
    `file:line:column` of the mapping, where there is one. `ids` are public ids of examples, `codes`
    those that no code table has, with their counts. `seconds` is how long it took, where that says
    something.
    """

    check: str
    subject: str
    verdict: Verdict
    text: str
    remedy: str = ""
    place: str = ""
    ids: tuple[str, ...] = ()
    codes: Mapping[str, int] = field(default_factory=dict)
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """How far to look, and whether to rehearse a booking; nothing is written without `booking`.

    `now` is the moment that counts as the present. Of each resource so many `rows` are looked at,
    half of them from either end; None for all.
    """

    now: datetime
    rows: int | None = SAMPLE
    booking: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What a practice system keeps and a mapping makes no field of.

    `resource` is the one whose rows it stands in, `source` the table, or the records, that have
    it; `line` and `column` where the mapping `file` reads them.
    """

    resource: str
    source: str
    names: tuple[str, ...]
    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """`left_out` never gets out; `filled` are the fields (paths) that a mapping fills."""

    left_out: tuple[LeftOut, ...]
    filled: Mapping[str, frozenset[str]]


@runtime_checkable
class Surveyable(Protocol):
    """An adapter that can tell what its mapping leaves out."""

    async def survey(self) -> Survey:
        """What the practice system has beside what is mapped; it carries no value of a record."""


@runtime_checkable
class Examinable(Protocol):
    """An adapter that can look behind its own verbs."""

    def examine(self, examination: Examination) -> AsyncIterator[Finding]:
        """All that it finds, as it finds it; what cannot be looked at is a finding too."""
