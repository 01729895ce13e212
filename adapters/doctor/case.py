"""What every look of the doctor is given, and how its looks are run."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from adapters.base import AdapterError, Record, Shapes, Trouble
from adapters.doctor.findings import FindingMaker, short
from adapters.documents.document import Document, Place
from adapters.examination import Examination, Finding
from adapters.mapped.adapter import Core
from adapters.mapped.session import Session

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class DoctorCase(FindingMaker):
    """A mapped practice system, and what is known of it so far.

    `lost` are the places of the mapping whose rows it does not have, `samples` the records that
    were looked at, by resource, and of lists inside them as invoices.lines.
    """

    core: Core
    examination: Examination
    shapes: Shapes
    troubles: list[Trouble]
    most_vets: int
    lost: set[Place] = field(default_factory=set)
    samples: dict[str, list[Record]] = field(default_factory=dict)
    is_shut: bool = False

    @property
    def document(self) -> Document:
        return self.core.document

    def is_lost(self, *place: str | int) -> bool:
        """Whether the practice system lacks something there."""
        return any(each[: len(place)] == place or place[: len(each)] == each for each in self.lost)

    def vets(self) -> list[str]:
        """The first vets, by public id."""
        return [each["id"] for each in self.samples.get("vets", [])[: self.most_vets] if each["id"]]

    @abstractmethod
    async def run(self, flow: Callable[[Any], Awaitable[T]]) -> T:
        """Ask the practice system, with more time than a call's."""

    @abstractmethod
    def converter(self, resource: str, name: str) -> Any:
        """What reads a field; None where it is not mapped."""

    def pages(self, session: Session, name: str) -> Iterator[list[Record]]:
        """The records that are looked at, page by page."""
        yield self.samples.get(name, [])

    def records(self, session: Session, name: str) -> Iterator[Record]:
        """The same one by one."""
        return chain.from_iterable(self.pages(session, name))

    @abstractmethod
    async def missing(
        self, session: Session, target: str, ids: set[str]
    ) -> tuple[set[str], set[str], set[str]]:
        """Of the public ids those looked for, those of nothing, and those that `where` hides."""

    def refused(
        self, check: str, subject: str, place: Place, error: AdapterError, ids: Iterable[str] = ()
    ) -> Finding:
        """What it means that a question was not answered."""
        return self.failed(check, subject, short(error), place, ids=ids)


@dataclass(frozen=True, slots=True)
class CheckStep:
    """One look, in a session of its own; `run` makes the findings."""

    check: str
    subject: str
    run: Callable[[Any], AsyncIterator[Finding] | Iterable[Finding]]
    place: Place = ()


Look = Callable[[Any], Iterator[CheckStep]]


async def examined(case: DoctorCase, looks: Iterable[Look]) -> AsyncIterator[Finding]:
    """Yields what the looks find; one that fails is a finding, and the others go on."""
    for look in looks:
        for step in look(case):
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
