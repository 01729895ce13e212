"""What every look of the doctor is given, and a client that notes what was asked."""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from adapters.base import Record, Shapes, Trouble
from adapters.doctor.findings import FindingMaker
from adapters.documents.document import Document, Place
from adapters.examination import Examination, Finding
from adapters.rest.client import Client, Received, Request
from adapters.rest.parts import Parts
from adapters.rest.reading import ResourceReader


@dataclass(frozen=True, slots=True)
class Seen:
    """A call that was made: its label, how long it took, and what came; 0 for no answer.

    `apart` is how many seconds the server's clock is ahead of ours, where it says its time.
    """

    label: str
    seconds: float
    status: int
    apart: float | None


class WatchedClient(Client):
    """A client that keeps what was asked."""

    def __init__(self, address: str, *, timeout: float) -> None:
        super().__init__(address, timeout=timeout)
        self.seen: list[Seen] = []

    async def read(self, request: Request, headers: Mapping[str, str]) -> Received:
        begun, status, apart = time.monotonic(), 0, None
        try:
            received = await super().read(request, headers)
            status, apart = received.status, _apart(received.date)
        finally:
            self.seen.append(Seen(request.label, time.monotonic() - begun, status, apart))
        return received


def _apart(date: str) -> float | None:
    try:
        there = parsedate_to_datetime(date)
    except ValueError:
        return None
    if there.tzinfo is None:
        return None
    return (there - datetime.now(UTC)).total_seconds()


@dataclass(slots=True)
class Case(FindingMaker):
    """A mapped backend, and what is known of it so far.

    `raws` are the records that were looked at, by resource, as the backend gave them, `samples`
    what was made of those that the mapping's `where` lets through. `whole` are the resources of
    which these are all. `patience` is what one read may take when the gateway serves. Nothing more
    is asked of one that `is_shut`.
    """

    parts: Parts
    examination: Examination
    shapes: Shapes
    client: WatchedClient
    troubles: list[Trouble]
    patience: float
    raws: dict[str, list[Any]] = field(default_factory=dict)
    samples: dict[str, list[Record]] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)
    is_shut: bool = False

    @property
    def document(self) -> Document:
        return self.parts.document

    def looked_at(self) -> Iterator[tuple[str, ResourceReader]]:
        """The resources of which there are records."""
        for name, reader in self.parts.readers.items():
            if self.raws.get(name):
                yield name, reader


@dataclass(frozen=True, slots=True)
class Step:
    """One look; `run` makes the findings."""

    check: str
    subject: str
    run: Callable[[], AsyncIterator[Finding]]
    place: Place = ()


Look = Callable[[Case], Iterator[Step]]


def records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"
