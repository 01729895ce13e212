"""What every look of the doctor is given, and the findings that it makes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from adapters.base import Record, Shapes, Trouble
from adapters.document import Place
from adapters.examine import Examination, Finding, Verdict
from adapters.sql.parts import Parts
from adapters.sql.reading import ResourceReader

MOST_IDS = 3


@dataclass(slots=True)
class Case:
    """A mapped database, and what is known of it so far.

    `lost` are the places of rows that the database does not have, `samples` the records that were
    looked at, by resource and in the order of their keys.
    """

    parts: Parts
    examination: Examination
    shapes: Shapes
    troubles: list[Trouble]
    lost: set[Place] = field(default_factory=set)
    samples: dict[str, list[Record]] = field(default_factory=dict)

    def is_lost(self, *place: str | int) -> bool:
        """Whether the database lacks something there."""
        return any(each[: len(place)] == place or place[: len(each)] == each for each in self.lost)

    def readers(self) -> Iterator[tuple[str, ResourceReader]]:
        """The resources that can be read."""
        for name, reader in self.parts.readers.items():
            if not self.is_lost("resources", name):
                yield name, reader

    def ok(self, check: str, subject: str, text: str, place: Place = (), **more: Any) -> Finding:
        return self.judged(Verdict.OK, check, subject, text, place, **more)

    def warning(
        self, check: str, subject: str, text: str, place: Place = (), **more: Any
    ) -> Finding:
        return self.judged(Verdict.WARNING, check, subject, text, place, **more)

    def failed(
        self, check: str, subject: str, text: str, place: Place = (), **more: Any
    ) -> Finding:
        return self.judged(Verdict.FAILED, check, subject, text, place, **more)

    def judged(
        self, verdict: Verdict, check: str, subject: str, text: str, place: Place, **more: Any
    ) -> Finding:
        """A finding with a place of the mapping; `more` are its other members, of ids the first."""
        ids = tuple(more.pop("ids", ()))[:MOST_IDS]
        return Finding(
            check=check,
            subject=subject,
            verdict=verdict,
            text=text,
            place=self.at(place),
            ids=ids,
            **more,
        )

    def at(self, place: Place) -> str:
        """`file:line:column` of a place in the mapping; "" for none."""
        if not place:
            return ""
        problem = self.parts.document.problem(place, "")
        return f"{problem.file}:{problem.line}:{problem.column}"


@dataclass(frozen=True, slots=True)
class Step:
    """One look in a snapshot of its own; `run` makes the findings."""

    check: str
    subject: str
    run: Callable[[Connection], Iterable[Finding]]
    place: Place = ()


Look = Callable[[Case], Iterator[Step]]


def weighed(bad: int, all_: int, *, most: float) -> Verdict:
    """FAILED where more than the share `most` is bad."""
    if not bad:
        return Verdict.OK
    return Verdict.FAILED if bad > most * all_ else Verdict.WARNING


def short(error: Exception) -> str:
    return " ".join(str(error).split())


def rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
