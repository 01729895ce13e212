"""Examines an adapter: by its own doctor where it has one, by every operation and by its ids."""

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from adapters.base import (
    Adapter,
    AdapterError,
    AdapterOptions,
    Filter,
    NotFound,
    Page,
    Query,
    Record,
    Trouble,
)
from adapters.doctor import doctor_of, half_read
from adapters.documents.problems import DocumentErrors, Problem
from adapters.examination import (
    MOST_IDS,
    UNREHEARSED,
    Examination,
    Finding,
    Verdict,
    counted,
    short,
)
from gateway.contract import operations as contract
from gateway.contract.operations import Match, Operation, Param
from gateway.contract.resources import RESOURCES

T = TypeVar("T")
DAYS = 14
VETS = 3
# Clients whose invoices are asked for.
CLIENTS = 10
# Records of a resource that are read again by their ids.
ROUND_TRIPS = 20
WITH_IDS = [resource.name for resource in RESOURCES if "id" in resource.paths]
_word = re.compile(r"[^\W_]{2,}").search


class PartnerFailure(Exception):
    """Raised for what a partner would not get; the text says what, `ids` are examples."""

    def __init__(self, text: str, ids: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.ids = ids


async def examined(
    adapter: Adapter, examination: Examination, *, patience: float, troubles: Sequence[Trouble] = ()
) -> AsyncIterator[Finding]:
    """Yields all findings, those of the adapter's doctor first; a read may take `patience` seconds.

    `troubles` are those that the adapter reports meanwhile; they are told where it has no doctor.
    No text has a value of the practice system.
    """
    rounds = Rounds(adapter, examination.now, patience)
    failing = "the practice system does not answer: "
    connection = await rounds.look("connection", "ping", rounds.ping(), failing)
    yield connection
    if connection.verdict is Verdict.FAILED:
        return
    for parts in _left_out(adapter):
        yield parts
    doctor = doctor_of(adapter)
    examine = _checked if doctor is None else doctor.examine
    async for finding in examine(adapter, examination):
        yield finding
    for operation in _operations(adapter):
        yield await rounds.look("operations", operation.id, rounds.operation(operation))
    for resource in (name for name in WITH_IDS if name in adapter.resources):
        yield await rounds.look("ids", resource, rounds.ids(resource))
    if doctor is None:
        for finding in _reported(troubles):
            yield finding


async def half_examined(
    error: DocumentErrors, adapter: str, options: AdapterOptions
) -> AsyncIterator[Finding]:
    """Yields the problems of a mapping, and what the practice system lacks of the rest of it."""
    for finding in problems(error.problems):
        yield finding
    for finding in await half_read(adapter, options):
        yield finding


def _left_out(adapter: Adapter) -> Iterator[Finding]:
    """Yields a finding of what is not offered, which is the clinic's choice."""
    if parts := contract.left_out(adapter.resources, books=adapter.books):
        text = f"left out, and so not offered: {', '.join(parts)}"
        yield _finding("mapping", "offer", Verdict.OK, text)


def _operations(adapter: Adapter) -> list[Operation]:
    """Returns the operations that read."""
    offered = contract.offered(adapter.resources, books=adapter.books)
    return [operation for operation in offered if not operation.creates]


async def _checked(adapter: Adapter, examination: Examination) -> AsyncIterator[Finding]:
    """Yields findings about an adapter that has no doctor."""
    try:
        for finding in problems(await adapter.check() or (), Verdict.WARNING):
            yield finding
        yield _finding("mapping", "names", Verdict.OK, "it has all that the mapping names")
    except DocumentErrors as error:
        for finding in problems(error.problems):
            yield finding
    except Exception as error:  # noqa: BLE001 - a clinic's own adapter may raise anything
        yield _finding("mapping", "names", Verdict.FAILED, _words(error))
    if examination.booking:
        text = "no booking was tried: this adapter has no way to undo one"
        yield _finding("booking", "rehearsal", Verdict.WARNING, text, code=UNREHEARSED)


def _reported(troubles: Sequence[Trouble]) -> Iterator[Finding]:
    """Yields a finding for each field with values that could not be used."""
    by_field: dict[tuple[str, str], dict[str, None]] = {}
    for trouble in troubles:
        place = (f"{trouble.resource}.{trouble.field}", trouble.kind)
        by_field.setdefault(place, {})[trouble.record] = None
    for (subject, kind), records in by_field.items():
        text = f"{counted(len(records), 'record')} with what cannot be used: {kind}"
        yield _finding("values", subject, Verdict.WARNING, text, list(filter(None, records)))


def problems(every: Iterable[Problem], verdict: Verdict = Verdict.FAILED) -> Iterator[Finding]:
    """Yields the problems of a file as findings."""
    for problem in every:
        place = str(problem).removesuffix(f": {problem.text}")
        about = {"place": place, "code": problem.code}
        yield _finding("mapping", "file", verdict, problem.text, **about)


def _finding(
    check: str, subject: str, verdict: Verdict, text: str, ids: Sequence[str] = (), **more: Any
) -> Finding:
    few = tuple(ids[:MOST_IDS])
    return Finding(check=check, subject=subject, verdict=verdict, text=text, ids=few, **more)


def _words(error: Exception) -> str:
    """Returns an adapter's own error in its words, and of any other only its class."""
    if isinstance(error, PartnerFailure):
        return str(error)
    if isinstance(error, AdapterError):
        return short(error) or type(error).__name__
    return f"the adapter itself fails: {type(error).__name__}"


@dataclass(slots=True)
class Rounds:
    """The calls of an examination, with their times and the first records of each resource.

    Each kind of call returns its result in words, and raises PartnerFailure or what the adapter
    raises. `doubts` and `slowest`, the longest call in seconds, belong to the current look.
    """

    adapter: Adapter
    now: datetime
    patience: float
    first: dict[str, list[Record]] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    slowest: float = 0.0

    async def look(
        self, check: str, subject: str, calls: Awaitable[str], failing: str = ""
    ) -> Finding:
        """Returns the result of calls as a finding; a call over half of `patience` is slow."""
        self.doubts, self.slowest = [], 0.0
        try:
            text = await calls
        except Exception as error:  # noqa: BLE001 - a clinic's own adapter may raise anything
            ids = error.ids if isinstance(error, PartnerFailure) else ()
            return _finding(check, subject, Verdict.FAILED, failing + _words(error), ids)
        if self.slowest > self.patience / 2:
            self.doubts.append(f"slow: backend.timeout is {self.patience:g} s")
        verdict = Verdict.WARNING if self.doubts else Verdict.OK
        text = "; ".join(filter(None, (text, *self.doubts)))
        return _finding(check, subject, verdict, text, seconds=self.slowest)

    async def ping(self) -> str:
        await self._timed(self.adapter.ping())
        return "it answers"

    async def operation(self, operation: Operation) -> str:
        """Calls an operation in each way that it has."""
        resource = operation.returns.name
        if resource == "slots":
            return await self._slots()
        if operation.many and any(param.within for param in operation.params):
            return await self._owned_list(operation)
        if operation.many:
            return await self._list(operation)
        records = await self._some(resource)
        if not records:
            self.doubts.append("no record to be read: is its `where` right?")
            return ""
        await self._one(resource, records[-1]["id"])
        return "one record by its id"

    async def ids(self, resource: str) -> str:
        """Checks that records are found again by their ids, and are the same."""
        lost, other = [], []
        some = (await self._some(resource))[:ROUND_TRIPS]
        for record in some:
            try:
                if await self._one(resource, record["id"]) != record:
                    other.append(record["id"])
            except NotFound:
                lost.append(record["id"])
        if bad := lost or other:
            what = "not found by their own ids" if lost else "others when read by their ids"
            raise PartnerFailure(f"{len(bad)} of {len(some)} records are {what}", bad)
        return f"{counted(len(some), 'record')}, each found by its id"

    async def _slots(self) -> str:
        vets, kinds = (await self._some("vets"))[:VETS], await self._some("appointmentTypes")
        counts = []
        for vet in vets:
            free = 0
            for ahead in range(DAYS):
                values: dict[str, Any] = {
                    "vetId": vet["id"],
                    "date": self.now.date() + timedelta(days=ahead),
                    "appointmentTypeId": kinds[ahead % len(kinds)]["id"] if kinds else None,
                }
                free += len((await self._many("slots", values=values)).records)
            counts.append(free)
        if not any(counts):
            raise PartnerFailure(f"no free time in {DAYS} days with any of {len(vets)} vets")
        if idle := counts.count(0):
            self.doubts.append(f"{idle} of {len(vets)} vets have no free time in {DAYS} days")
        return f"{sum(counts)} free times of {len(vets)} vets in {DAYS} days"

    async def _owned_list(self, operation: Operation) -> str:
        """Reads the list of a client who has some."""
        records = await self._some(operation.returns.name)
        owners = dict.fromkeys(record["clientId"] for record in records if record["clientId"])
        for owner in list(owners)[:CLIENTS]:
            with suppress(NotFound):
                return await self._list(operation, owner)
        if owners:
            raise PartnerFailure("the clients whose they are do not exist")
        self.doubts.append("no record with a client: is clientId mapped?")
        return ""

    async def _list(self, operation: Operation, owner: str | None = None) -> str:
        """Reads a list, or one client's part of it: a page, the next one, and every filter."""
        fixed = [Filter("equals", (name,), value) for name, value in operation.only]
        within = None if owner is None else ("clients", owner)
        if owner is not None:
            fixed.append(Filter("equals", ("clientId",), owner))

        async def page(*filters: Filter, **more: Any) -> Page:
            resource, every = operation.returns.name, (*fixed, *filters)
            return await self._many(resource, filters=every, within=within, **more)

        records = (await page()).records
        if not records:
            self.doubts.append("0 records: is its `where` right?")
            return "0 records"
        done, half = [counted(len(records), "record")], max(1, len(records) // 2)
        first = await page(limit=half)
        if first.after is not None:
            more = await page(limit=half, after=first.after)
            if {row["id"] for row in first.records} & {row["id"] for row in more.records}:
                raise PartnerFailure("the second page repeats records of the first")
            done.append("a second page")
        for param in operation.query:
            if param.match is not None:
                done += await self._filtered(operation, param, records, page)
        return "; ".join(done)

    async def _filtered(
        self,
        operation: Operation,
        param: Param,
        records: Sequence[Record],
        page: Callable[..., Awaitable[Page]],
    ) -> list[str]:
        """Filters by a value of a record, which must then be among the results."""
        offered = self.adapter.filterable.get(operation.returns.name, frozenset())
        if not offered.issuperset(param.fields):
            self.doubts.append(f"no filter {param.name}: {' or '.join(param.fields)} is not mapped")
            return []
        example = next(((r, v) for r in records if (v := _example(param, r)) is not None), None)
        if example is None:
            self.doubts.append(f"{param.name} was not tried: no record has a value for it")
            return []
        record, value = example
        by = Filter(str(param.match), param.fields, value)
        result = await page(by, limit=contract.PAGE_LARGEST)
        if record["id"] not in {row["id"] for row in result.records} and result.after is None:
            raise PartnerFailure(f"by {param.name}, a record that has the value is not found")
        return [f"by {param.name}"]

    async def _some(self, resource: str) -> list[Record]:
        if resource not in self.first:
            self.first[resource] = (await self._many(resource, limit=contract.PAGE_DEFAULT)).records
        return self.first[resource]

    async def _one(self, resource: str, public_id: str) -> Record:
        query = Query(resource=resource, now=self.now, id=public_id)
        return await self._timed(self.adapter.read_one(query))

    async def _many(self, resource: str, **more: Any) -> Page:
        query = Query(resource=resource, now=self.now, **more)
        return await self._timed(self.adapter.read_many(query))

    async def _timed(self, call: Awaitable[T]) -> T:
        begun = time.monotonic()
        try:
            return await call
        finally:
            self.slowest = max(self.slowest, time.monotonic() - begun)


def _example(param: Param, record: Record) -> Any:
    """Returns a value of the record to filter by; None where it has none."""
    for name in param.fields:
        value = record.get(name)
        if param.match is Match.SEARCH and isinstance(value, str) and (word := _word(value)):
            return word[0]
        if param.match is Match.SINCE and value:
            return datetime.fromisoformat(value)
        if param.match is Match.EQUALS and value is not None:
            return value
    return None
