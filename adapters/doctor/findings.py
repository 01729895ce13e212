"""Findings at their places in the mapping, and the words that they are written in."""

from abc import ABC, abstractmethod
from typing import Any

from adapters.documents.document import Document, Place
from adapters.examination import Finding, Verdict

MOST_IDS = 3


class FindingMaker(ABC):
    """Makes findings; `document` knows where all of the mapping stands."""

    __slots__ = ()

    @property
    @abstractmethod
    def document(self) -> Document:
        """The mapping as it stands in its file."""

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
        problem = self.document.problem(place, "")
        return f"{problem.file}:{problem.line}:{problem.column}"


def weighed(bad: int, all_: int, *, most: float) -> Verdict:
    """FAILED where more than the share `most` is bad."""
    if not bad:
        return Verdict.OK
    return Verdict.FAILED if bad > most * all_ else Verdict.WARNING


def short(error: Exception) -> str:
    return " ".join(str(error).split())


def agreeing(count: int, several: str) -> str:
    """The verb that goes with a count, given as of several: 2 `lead`, 1 `leads`."""
    odd = {"are": "is", "have": "has", "were": "was"}
    return odd.get(several, f"{several}s") if count == 1 else several


def rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
