"""A connected system that the doctor looks at, and the looks with all that they find."""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial, partialmethod
from typing import Any, ClassVar, NamedTuple, TypeVar

from adapters.base import AdapterError, Record, Trouble
from adapters.doctor.words import counted, short
from adapters.documents.document import Document, Place, comments_in
from adapters.examination import Examination, Finding, Verdict
from adapters.mapped.adapter import MappedAdapter
from adapters.mapped.session import Session

T = TypeVar("T")
# By what name a record of a list has its parent, and what stands there where it has none.
PARENT, NO_PARENT = "(parent)", "none"
# Examples that a finding has.
MOST_IDS = 3
# Seconds; a clock that differs by more is wrong.
APART = 60.0
_TODO = re.compile(r"TODO\b").match
_IN_COMMENT = re.compile(r"\bTODO\b\W*(.*)").search
MOST_COMMENTS = 20
LONGEST_WORDS = 200
# What a subject need not say.
_GROUPS = ("resources", "fields", "lists", "values")


@dataclass(slots=True)
class Look:
    """One look, in a session of its own: what is looked at, and what `run` finds.

    A finding is of the look's `check` and `subject` unless it names others. It stands at the look's
    `place`, or at what is `inner` to it; what is ok needs no place. One that is `alone` begins
    the sessions that it needs itself.
    """

    document: Document
    check: str
    subject: str
    run: Callable[["Look"], Awaitable[None]] | None = None
    place: Place = ()
    alone: bool = False
    findings: list[Finding] = field(default_factory=list)

    def judge(
        self,
        verdict: Verdict,
        text: str,
        *inner: str | int,
        place: Place | str | None = None,
        ids: Iterable[str] = (),
        **more: Any,
    ) -> None:
        """Notes a finding; `more` are its other members. A text is a place by itself."""
        own = () if verdict is Verdict.OK else (*self.place, *inner)
        at = own if place is None else place
        problem = self.document.problem(at, "") if at and not isinstance(at, str) else None
        where = f"{problem.file}:{problem.line}:{problem.column}" if problem else str(at or "")
        named = {"check": self.check, "subject": self.subject, "ids": tuple(ids)[:MOST_IDS]}
        self.findings.append(Finding(verdict=verdict, text=text, place=where, **(named | more)))

    ok = partialmethod(judge, Verdict.OK)
    warning = partialmethod(judge, Verdict.WARNING)
    failed = partialmethod(judge, Verdict.FAILED)


class RowTaken(NamedTuple):
    """A row, the public id to tell it by, and what no two rows share.

    `parent` is the public id of the record that a row of a list says it is of.
    """

    row: Any
    shown: str | None
    key: Any
    parent: str | None = None


class DoctorCase(ABC):
    """A mapped practice system, asked through an adapter of its own, and what is known of it.

    `lost` are the places of the mapping whose rows it does not have, `samples` the records that
    were looked at, by resource, and of lists inside them as invoices.lines; at most `kept` from
    either end. `whole` are those of which these are all. The diary is read so far `ahead`, of the
    first vets. `rows_in` is where the mapping names the rows of a resource and of a list inside
    it, and `doubled` what to say where the same row comes twice: at which name, and the remedy.
    `session` is that of the look which is taken.
    """

    ahead: ClassVar[timedelta]
    most_vets: ClassVar[int]
    kept: ClassVar[int]
    rows_in: ClassVar[tuple[str, str]]
    doubled: ClassVar[tuple[str, str]]
    adapter: MappedAdapter
    session: Session

    def __init__(self, examination: Examination) -> None:
        self.examination = examination
        self.troubles: list[Trouble] = []
        self.lost: set[Place] = set()
        self.samples: dict[str, list[Record]] = {}
        self.whole: set[str] = set()

    def look(
        self,
        check: str,
        subject: str,
        run: Callable[[Any, Look], Awaitable[None]] | None = None,
        *place: str | int,
    ) -> Look:
        """A look at what stands at that place of the mapping, by `run`, of this case.

        Without `run` it only tells.
        """
        return Look(self.adapter.document, check, subject, run and partial(run, self), place)

    async def take(self, look: Look) -> None:
        """Looks, from the beginning where the session had to be begun again."""
        if (run := look.run) is None:
            return

        async def taken(session: Session) -> None:
            self.session = session
            look.findings.clear()
            await run(look)

        await (run(look) if look.alone else self.run(taken))

    def is_lost(self, *place: str | int) -> bool:
        """Whether the practice system lacks something there."""
        return any(lost[: len(place)] == place or place[: len(lost)] == lost for lost in self.lost)

    @property
    def has_several_vets(self) -> bool:
        return len(self.samples.get("vets", ())) > 1

    def vets(self) -> list[str]:
        """The first vets, by public id."""
        return [vet["id"] for vet in self.samples.get("vets", [])[: self.most_vets] if vet["id"]]

    @abstractmethod
    async def run(self, flow: Callable[[Any], Awaitable[T]]) -> T:
        """Asks the practice system, with more time than a call's."""

    @abstractmethod
    def readable(self) -> Iterator[str]:
        """The resources that can be looked at."""

    @abstractmethod
    def batches(self, name: str) -> Iterator[list[RowTaken]]:
        """The rows of a resource, or of a list inside it, as far as they are looked at."""

    @abstractmethod
    def has_rows(self, resource: str) -> bool:
        """Whether there are rows at all, whatever `where` hides."""

    @abstractmethod
    async def missing(self, target: str, ids: set[str]) -> tuple[set[str], set[str], set[str]]:
        """Of the public ids those looked for, those of nothing, and those that `where` hides."""

    @abstractmethod
    def misfits(self, look: Look, name: str) -> None:
        """Says what there is besides that is no row, or has no key."""

    def rows(self, name: str) -> Any:
        """What reads a resource's rows, or those of a list inside it as invoices.lines."""
        resource, _, inner = name.partition(".")
        rows = self.adapter.readers[resource].rows
        return rows.lists.get(inner, rows)

    def refused(self, look: Look, error: AdapterError, *ids: str) -> None:
        """Says what it means that a question was not answered."""
        look.failed(short(error), ids=ids)


async def examined(case: DoctorCase, looks: Iterable[Look]) -> AsyncIterator[Finding]:
    """Yields what is open, and what the looks find; one that fails is a finding by itself.

    The case's adapter is closed then.
    """
    case.adapter.converters.keep_no_ids()
    try:
        for finding in todos(case.adapter.document):
            yield finding
        for look in looks:
            try:
                await case.take(look)
            except AdapterError as error:
                look.findings.clear()
                look.failed(f"could not be looked at: {short(error)}")
            for finding in look.findings:
                yield finding
    finally:
        await case.adapter.aclose()


def clock_judged(look: Look, apart: float, more: str = "") -> None:
    """Judges a server's clock, so many seconds ahead of this machine's; `more` is told besides."""
    if abs(apart) <= APART:
        look.ok(f"it agrees with this machine's{more}")
    else:
        way = "ahead of" if apart > 0 else "behind"
        text = f"its clock is {abs(apart):.0f} s {way} this machine's{more}"
        look.warning(text, remedy="set one of them by the network's time")


def todos(document: Document) -> list[Finding]:
    """Returns a finding for each value and for each line with a comment that still says TODO.

    FAILED in what a booking writes, which would be the word itself.
    """
    look, lines = Look(document, "mapping", "comments"), set()
    for place in (place for place, text in texts_in(document.data) if place and _TODO(text)):
        lines.add(document.problem(place, "").line)
        subject = ".".join(str(part) for part in place if part not in _GROUPS)
        verdict, text = Verdict.WARNING, "TODO still stands here, where a value belongs"
        remedy = "write what belongs there, or take the line away"
        if place[0] == "booking":
            verdict, text = Verdict.FAILED, "TODO still stands here: every booking would write it"
            remedy = "ask the clinic what it writes there; take the line away where it writes none"
        look.judge(verdict, text, place=place, subject=subject, remedy=remedy)
    comments = [
        (f"{line}:{column + 1 + found.start()}", found[1].strip()[:LONGEST_WORDS])
        for line, column, text in comments_in(document)
        if (found := _IN_COMMENT(text)) and line not in lines
    ]
    for at, words in comments[:MOST_COMMENTS]:
        text = f"TODO in a comment: {words}" if words else "TODO in a comment"
        remedy = "decide it, and take the comment away"
        look.warning(text, place=f"{document.file}:{at}", remedy=remedy)
    if more := comments[MOST_COMMENTS:]:
        text = f"TODO in the comments of {counted(len(more), 'line')} more, from here on"
        look.warning(text, place=f"{document.file}:{more[0][0]}")
    return look.findings


def texts_in(data: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Yields each text of a file's data, with its place."""
    if isinstance(data, str):
        yield place, data
    members = enumerate(data) if isinstance(data, list) else ()
    for name, member in data.items() if isinstance(data, dict) else members:
        yield from texts_in(member, (*place, name))
