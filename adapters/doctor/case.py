"""A connected system that the doctor looks at, the findings made of it, and how looks are run."""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Any, ClassVar, TypeVar

from adapters.base import AdapterError, Record, Trouble
from adapters.documents.document import Comment, Document, Place, comments_in
from adapters.examination import Examination, Finding, Verdict
from adapters.mapped.adapter import Core, MappedAdapter
from adapters.mapped.session import Session

T = TypeVar("T")
MOST_IDS = 3
_TODO = re.compile(r"TODO\b").match
_IN_COMMENT = re.compile(r"\bTODO\b\W*(.*)").search
MOST_COMMENTS = 20
LONGEST_WORDS = 200
# What a subject need not say.
_GROUPS = ("resources", "fields", "lists", "values")


@dataclass(slots=True, kw_only=True)
class FindingMaker:
    """Makes findings; the mapping's `document` knows where all of it stands."""

    document: Document

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
        """Returns a finding; `more` are its other members, of `ids` the first."""
        if place:
            problem = self.document.problem(place, "")
            more["place"] = f"{problem.file}:{problem.line}:{problem.column}"
        more["ids"] = tuple(more.get("ids", ()))[:MOST_IDS]
        return Finding(check=check, subject=subject, verdict=verdict, text=text, **more)


@dataclass(slots=True, kw_only=True)
class DoctorCase(FindingMaker, ABC):
    """A mapped practice system, and what is known of it so far.

    `lost` are the places of the mapping whose rows it does not have, `samples` the records that
    were looked at, by resource, and of lists inside them as invoices.lines. The diary is read so
    far `ahead`, of the first vets.
    """

    ahead: ClassVar[timedelta]
    most_vets: ClassVar[int]
    adapter: MappedAdapter
    examination: Examination
    troubles: list[Trouble]
    lost: set[Place] = field(default_factory=set)
    samples: dict[str, list[Record]] = field(default_factory=dict)
    is_shut: bool = False

    @property
    def core(self) -> Core:
        return self.adapter.core

    def is_lost(self, *place: str | int) -> bool:
        """Whether the practice system lacks something there."""
        return any(lost[: len(place)] == place or place[: len(lost)] == lost for lost in self.lost)

    def vets(self) -> list[str]:
        """The first vets, by public id."""
        return [vet["id"] for vet in self.samples.get("vets", [])[: self.most_vets] if vet["id"]]

    @abstractmethod
    async def run(self, flow: Callable[[Any], Awaitable[T]]) -> T:
        """Asks the practice system, with more time than a call's."""

    @abstractmethod
    def converter(self, resource: str, name: str) -> Any:
        """Returns what reads a field; None where it is not mapped."""

    def pages(self, session: Session, name: str) -> Iterator[list[Record]]:
        """Yields the records that are looked at, page by page."""
        yield self.samples.get(name, [])

    def records(self, session: Session, name: str) -> Iterator[Record]:
        return chain.from_iterable(self.pages(session, name))

    @abstractmethod
    async def missing(
        self, session: Any, target: str, ids: set[str]
    ) -> tuple[set[str], set[str], set[str]]:
        """Of the public ids those looked for, those of nothing, and those that `where` hides."""

    def refused(
        self, check: str, subject: str, place: Place, error: AdapterError, ids: Iterable[str] = ()
    ) -> Finding:
        """What it means that a question was not answered."""
        return self.failed(check, subject, short(error), place, ids=ids)


Findings = AsyncIterator[Finding] | Iterable[Finding]


@dataclass(frozen=True, slots=True)
class CheckStep:
    """One look, in a session of its own; `run` makes the findings."""

    check: str
    subject: str
    run: Callable[[Any], Findings]
    place: Place = ()


Look = Callable[[Any], Iterable[CheckStep]]


def told(finding: Finding) -> CheckStep:
    """Returns a look that needs none: its finding is known."""
    return CheckStep(finding.check, finding.subject, lambda _: [finding])


def single(check: str, subject: str, find: Callable[[Any, Any], Findings]) -> Look:
    """Returns a look of one step; `find` is given the case and the session."""
    return lambda case: [CheckStep(check, subject, partial(find, case))]


async def examined(case: DoctorCase, looks: Iterable[Look]) -> AsyncIterator[Finding]:
    """Yields what is open, and what the looks find; one that fails is a finding by itself."""
    for finding in todos(case):
        yield finding
    for step in chain.from_iterable(look(case) for look in looks):
        if case.is_shut:
            return
        try:
            found = await case.run(partial(_findings, step))
        except AdapterError as error:
            text = f"could not be looked at: {short(error)}"
            found = [case.failed(step.check, step.subject, text, step.place)]
        for finding in found:
            yield finding


async def _findings(step: CheckStep, session: Session) -> list[Finding]:
    found = step.run(session)
    if isinstance(found, AsyncIterator):
        return [finding async for finding in found]
    return list(found)


def weighed(bad: int, all_: int, *, most: float) -> Verdict:
    """Returns FAILED where more than the share `most` is bad."""
    if not bad:
        return Verdict.OK
    return Verdict.FAILED if bad > most * all_ else Verdict.WARNING


def short(error: Exception) -> str:
    return " ".join(str(error).split())


def counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


def agreeing(count: int, several: str) -> str:
    """Returns the verb that goes with a count, given as of several: 2 `lead`, 1 `leads`."""
    odd = {"are": "is", "have": "has", "were": "was"}
    return odd.get(several, f"{several}s") if count == 1 else several


def todos(maker: FindingMaker) -> Iterator[Finding]:
    """Yields a finding for each value and for each line with a comment that still says TODO.

    FAILED in what a booking writes, which would be the word itself.
    """
    lines = set()
    for place in _left(maker.document.data, ()):
        judged, text = maker.warning, "TODO still stands here, where a value belongs"
        remedy = "write what belongs there, or take the line away"
        if place[0] == "booking":
            judged, text = maker.failed, "TODO still stands here: every booking would write it"
            remedy = "ask the clinic what it writes there; take the line away where it writes none"
        subject = ".".join(str(part) for part in place if part not in _GROUPS)
        lines.add(maker.document.problem(place, "").line)
        yield judged("mapping", subject, text, place, remedy=remedy)
    comments = [comment for comment in _open(maker.document) if comment.line not in lines]
    for comment in comments[:MOST_COMMENTS]:
        text = f"TODO in a comment: {comment.text}" if comment.text else "TODO in a comment"
        yield _at(maker, comment, text, "decide it, and take the comment away")
    if more := comments[MOST_COMMENTS:]:
        text = f"TODO in the comments of {counted(len(more), 'line')} more, from here on"
        yield _at(maker, more[0], text)


def _open(document: Document) -> Iterator[Comment]:
    """Yields the word in each comment that has it, with the words behind it."""
    for comment in comments_in(document):
        if found := _IN_COMMENT(comment.text):
            column = comment.column + 1 + found.start()
            yield Comment(comment.line, column, found[1].strip()[:LONGEST_WORDS])


def _at(maker: FindingMaker, comment: Comment, text: str, remedy: str = "") -> Finding:
    place = f"{maker.document.file}:{comment.line}:{comment.column}"
    return replace(maker.warning("mapping", "comments", text, remedy=remedy), place=place)


def _left(data: Any, place: Place) -> Iterator[Place]:
    if isinstance(data, dict | list):
        members = data.items() if isinstance(data, dict) else enumerate(data)
        for name, member in members:
            yield from _left(member, (*place, name))
    elif place and isinstance(data, str) and _TODO(data):
        yield place
