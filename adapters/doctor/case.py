"""Defines the practice system that a doctor looks at, and the looks that collect its findings."""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial, partialmethod
from typing import Any, ClassVar, NamedTuple, TypeVar

from adapters.base import AdapterError, Record, Trouble
from adapters.documents.document import Document, Place, comments_in
from adapters.documents.problems import Severity
from adapters.examination import (
    MOST_IDS,
    TOLERABLE,
    Examination,
    Finding,
    Verdict,
    agreeing,
    counted,
    short,
    weighed,
)
from adapters.mapped.adapter import MappedAdapter
from adapters.mapped.session import Session
from adapters.mapping.checker import LAWS
from adapters.mapping.models import BusyMap, ResourceMap, TimesMap

T = TypeVar("T")
# The name under which a list's record has its parent, and the value where it has none.
PARENT, NO_PARENT = "(parent)", "none"
# The name under which a record has the practice's own key, as a text.
KEY = "(key)"
# Seconds; a clock that differs by more is wrong.
APART = 60.0
_TODO = re.compile(r"TODO\b").match
_IN_COMMENT = re.compile(r"\bTODO\b\W*(.*)").search
MOST_COMMENTS = 100
LONGEST_WORDS = 200
# Parts of a place that a subject leaves out.
GROUPS = ("resources", "fields", "lists", "values")


@dataclass(slots=True)
class Look:
    """One look at a part of the system, in a session of its own, with what `run` finds.

    A finding has the look's `check` and `subject` unless it names others. It stands at the look's
    `place`, or at what is `inner` to it; one that is ok needs no place. A look that is `alone`
    begins the sessions that it needs itself.
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
        at_key: bool = False,
        ids: Iterable[str] = (),
        examples: Iterable[str] = (),
        **more: Any,
    ) -> None:
        """Adds a finding; `more` are its other members. A `place` may be a text, used as it is.

        What is missing in a place is told `at_key`, at the name of the place.
        """
        own = () if verdict is Verdict.OK else (*self.place, *inner)
        at = own if place is None else place
        problem = None
        if at and not isinstance(at, str):
            problem = self.document.problem(at, "", at_key=at_key)
        where = f"{problem.file}:{problem.line}:{problem.column}" if problem else str(at or "")
        named = {"check": self.check, "subject": self.subject, "ids": tuple(ids)[:MOST_IDS]}
        named["examples"] = tuple(examples)[:MOST_IDS]
        self.findings.append(Finding(verdict=verdict, text=text, place=where, **(named | more)))

    ok = partialmethod(judge, Verdict.OK)
    note = partialmethod(judge, Verdict.NOTE)
    warning = partialmethod(judge, Verdict.WARNING)
    failed = partialmethod(judge, Verdict.FAILED)


@dataclass(slots=True)
class LawLook:
    """What one law finds in rows: of `count` that it says something of, `broken` break it.

    Its findings stand at the look's place, under the name of the law.
    """

    name: str
    look: Look
    count: int = 0
    broken: int = 0
    ids: list[str] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)

    def take(self, *, holds: bool, example: str = "", shown: str | None = None) -> None:
        """Counts a row; `example` is its key with its values, `shown` its public id."""
        self.count += 1
        if not holds:
            self.broken += 1
            if len(self.examples) < MOST_IDS:
                self.examples += [example] if example else []
                self.ids += [shown] if shown else []

    def tell(
        self, *, most: float = TOLERABLE, least: float = 0.0, more: str = "", scope: str = ""
    ) -> None:
        """Judges the rows: up to the share `least` is fine, and more than `most` fails.

        `more` is added to what is wrong; `scope` is what was looked at, where that is not all.
        """
        if not self.count:
            self.note("no row says anything of it")
        elif self.broken <= least * self.count:
            few = (
                f"; {self.broken} of them {agreeing(self.broken, 'do')} not" if self.broken else ""
            )
            self.ok(f"{counted(self.count, 'row', 'keep')} it{few}{scope}")
        else:
            text = f"{counted(self.broken, 'row')} of {self.count:,}: {LAWS[self.name].title}"
            text += f"{more}{scope}"
            self.breach(text, weighed(self.broken, self.count, most=most))

    def breach(
        self,
        text: str,
        verdict: Verdict = Verdict.FAILED,
        *,
        remedy: str = "",
        place: Place | None = None,
        at_key: bool = False,
    ) -> None:
        """Adds a finding of at most the law's own severity, with the law's remedy or this one."""
        law = LAWS[self.name]
        if law.severity is Severity.NOTE:
            verdict = Verdict.NOTE
        elif law.severity is Severity.WARNING:
            verdict = Verdict.WARNING
        self.look.judge(
            verdict,
            self._of(text),
            place=place,
            at_key=at_key,
            ids=self.ids,
            examples=self.examples,
            subject=self.name,
            code=self.name,
            remedy=remedy or f"{law.help[:1].lower()}{law.help[1:-1]}",
        )

    @property
    def field(self) -> str:
        """The field that the law is about, such as invoices.lines.total."""
        return ".".join(str(part) for part in self.look.place if part not in GROUPS)

    def unseen(self) -> None:
        """Adds that the law could not look, whatever its severity."""
        text = self._of("could not be looked at, as its rows could not be read")
        remedy = "mend what is red about them"
        self.look.failed(text, subject=self.name, code=self.name, remedy=remedy)

    def ok(self, text: str) -> None:
        """Adds that the law is kept, and by what."""
        self.look.ok(self._of(text), subject=self.name, code=self.name)

    def note(self, text: str) -> None:
        """Adds that nothing can be told, and why."""
        self.look.note(self._of(text), subject=self.name, code=self.name)

    def _of(self, text: str) -> str:
        """Returns a text with the field that it is about before it; a whole file has none."""
        return f"{self.field}: {text}" if self.field else text

    def too_few(self, count: int, least: int) -> bool:
        """Returns whether so many rows are too few to tell, and then says so."""
        if count < least:
            self.note(f"{counted(count, 'row')}: too few to tell, {least} are needed")
        return count < least


class RowTaken(NamedTuple):
    """A row, its public id, a key that no two rows share, and in a list its record's public id."""

    row: Any
    shown: str | None
    key: Any
    parent: str | None = None


class SomeRows(NamedTuple):
    """Whether a source has rows that its `where` lets through, and any rows at all."""

    kept: bool
    there: bool


class Undecided(NamedTuple):
    """How many rows a condition lets through, and of how many it is neither true nor false.

    `keys` are those of some of the latter.
    """

    kept: int
    neither: int
    keys: list[str]


class DoctorCase(ABC):
    """A mapped practice system, asked through an adapter of its own, and what is known of it.

    `lost` are the places of the mapping whose rows it does not have. `samples` are the records that
    were looked at, by resource, and by list as invoices.lines; at most `kept` from either end.
    `whole` names those whose rows were all looked at. The diary is read for `ahead`, and for the
    first `most_vets`; durations are asked for `most_durations` times. `rows_in` is where the
    mapping names the rows of a resource, and of a list inside it. `doubled` is what to say where a
    row comes twice: at which name, and the remedy. `session` is that of the current look.
    """

    ahead: ClassVar[timedelta]
    most_vets: ClassVar[int]
    most_durations: ClassVar[int]
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
        """Returns a look at that place of the mapping; without `run` the caller adds findings."""
        return Look(self.adapter.document, check, subject, run and partial(run, self), place)

    async def take(self, look: Look) -> None:
        """Runs the look, from the beginning where the session had to be begun again."""
        if (run := look.run) is None:
            return

        async def taken(session: Session) -> None:
            self.session = session
            look.findings.clear()
            await run(look)

        await (run(look) if look.alone else self.run(taken))

    def is_lost(self, *place: str | int) -> bool:
        """Returns whether the practice system lacks that place, a part of it, or what it is in.

        What the mapping leaves out is lost too.
        """
        mapping = self.adapter.mapping
        if place[0] == "resources" and str(place[1]) not in mapping.resources:
            return True
        if place[0] == "diary" and not mapping.offers("diary"):
            return True
        return any(lost[: len(place)] == place or place[: len(lost)] == lost for lost in self.lost)

    @property
    def has_several_vets(self) -> bool:
        return len(self.samples.get("vets", ())) > 1

    def vets(self) -> list[str]:
        """Returns the public ids of the first vets, or of all where all rows are looked at."""
        every = self.every_vet()
        return every if self.examination.rows is None else every[: self.most_vets]

    def every_vet(self) -> list[str]:
        """Returns the public ids of all vets that were looked at."""
        return [vet["id"] for vet in self.samples.get("vets", []) if vet["id"]]

    def law(self, name: str, look: Look, *place: str | int) -> LawLook | None:
        """Returns a law's own part of a look, at that place; None where it is switched off."""
        if name in self.adapter.mapping.accepted:
            return None
        return LawLook(name, replace(look, check="laws", place=place or look.place))

    def could_look(self, part: LawLook, *resources: str) -> bool:
        """Returns whether the rows of the resources were read; else adds that they were not.

        It is no failure where a mapping has no list of them on purpose.
        """
        for name in resources:
            if name not in self.samples:
                mapped = self.adapter.mapping.resources.get(name)
                if mapped is not None and mapped.from_ is None and mapped.list_ is None:
                    text = f"without a list of {name} nothing was looked at"
                    part.look.warning(text, subject=part.name, code=part.name)
                else:
                    part.unseen()
                return False
        return True

    @abstractmethod
    async def with_lists(self, resource: str, records: list[Record]) -> list[Record]:
        """Returns records of a resource again, now with the lists inside them."""

    @abstractmethod
    async def run(self, flow: Callable[[Any], Awaitable[T]]) -> T:
        """Runs the flow in a session, with more time than a call has."""

    @abstractmethod
    def readable(self) -> Iterator[str]:
        """Yields the resources that can be looked at."""

    @abstractmethod
    def batches(self, name: str) -> Iterator[list[RowTaken]]:
        """Yields the rows of a resource, or of a list inside it, as far as they are looked at."""

    @abstractmethod
    def has_rows(self, resource: str) -> bool:
        """Returns whether there are rows at all, including those that `where` hides."""

    @abstractmethod
    def has_blocks(self, source: int) -> SomeRows | None:
        """Returns which rows a source of `diary.busy` has at any time; None where none can say."""

    @abstractmethod
    def undecided(self, rows: ResourceMap | BusyMap) -> Undecided | None:
        """Counts the rows of a source by its `where`; None where conditions always decide."""

    @abstractmethod
    def are_appointments(self, rows: TimesMap) -> bool:
        """Returns whether free rows stand in the table of appointments, under the same key."""

    @abstractmethod
    async def missing(self, target: str, ids: set[str]) -> tuple[set[str], set[str], set[str]]:
        """Returns the ids that were looked for, those of nothing, and those that `where` hides."""

    @abstractmethod
    async def hidden_visits(self, ids: set[str]) -> set[str]:
        """Returns those of appointments that `where` hides, though they name an animal."""

    @abstractmethod
    def misfits(self, look: Look, name: str) -> None:
        """Adds findings about data that is no row, or has no key."""

    def rows(self, name: str) -> Any:
        """Returns the reader of a resource, or of a list inside it as invoices.lines."""
        resource, _, inner = name.partition(".")
        rows = self.adapter.readers[resource].rows
        return rows.lists.get(inner, rows)

    def refused(self, look: Look, error: AdapterError, *ids: str) -> None:
        """Adds a finding about a question that was not answered."""
        look.failed(short(error), ids=ids)


async def examined(case: DoctorCase, looks: Iterable[Look]) -> AsyncIterator[Finding]:
    """Yields the findings on TODOs and of all looks, even if one fails; then closes the adapter."""
    for _, ids in case.adapter.converters.tabled:  # they are shown to nobody
        ids.keep_none()
    try:
        for finding in (*remarks(case.adapter.document), *todos(case.adapter.document)):
            yield finding
        for look in looks:
            try:
                await case.take(look)
            except AdapterError as error:
                what = "the rest could not" if look.findings else "could not"
                look.failed(f"{what} be looked at: {short(error)}")
            for finding in look.findings:
                yield finding
    finally:
        await case.adapter.aclose()


def clock_judged(look: Look, apart: float, more: str = "") -> None:
    """Judges a server's clock that is `apart` seconds ahead of this machine's; `more` is added."""
    if abs(apart) <= APART:
        look.ok(f"it agrees with this machine's{more}")
    else:
        way = "ahead of" if apart > 0 else "behind"
        text = f"its clock is {abs(apart):.0f} s {way} this machine's{more}"
        look.warning(text, remedy="set one of them by the network's time")


def remarks(document: Document) -> list[Finding]:
    """Returns a warning for each thing in the file that is odd, though it can be used."""
    look = Look(document, "mapping", "file")
    for problem in document.remarks:
        at = f"{problem.file}:{problem.line}:{problem.column}"
        look.warning(problem.text, place=at, code=problem.code)
    return look.findings


def todos(document: Document) -> list[Finding]:
    """Returns a finding for each value, and each line with a comment, that still says TODO.

    It is FAILED in what a booking writes, since each booking would write the word itself.
    """
    look, lines = Look(document, "mapping", "comments"), set()
    for place in (place for place, text in texts_in(document.data) if place and _TODO(text)):
        lines.add(document.problem(place, "").line)
        subject = ".".join(str(part) for part in place if part not in GROUPS)
        verdict, text = Verdict.WARNING, "TODO still stands here, where a value belongs"
        remedy = "write what belongs there, or take the line away"
        if place[0] == "booking":
            verdict, text = Verdict.FAILED, "TODO still stands here: every booking would write it"
            remedy = "ask the clinic what it writes there; take the line away where it writes none"
        look.judge(verdict, text, place=place, subject=subject, remedy=remedy)
    comments = [
        (f"{line}:{column + 1 + match.start()}", match[1].strip()[:LONGEST_WORDS])
        for line, column, text in comments_in(document)
        if (match := _IN_COMMENT(text)) and line not in lines
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
    """Yields each text in a file's data, with its place."""
    if isinstance(data, str):
        yield place, data
    members = enumerate(data) if isinstance(data, list) else ()
    for name, member in data.items() if isinstance(data, dict) else members:
        yield from texts_in(member, (*place, name))
