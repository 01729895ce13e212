"""Runs every operation of the contract on real rows, whatever adapter is behind it."""

import re
import time
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from adapters.base import (
    Adapter,
    AdapterError,
    Filter,
    NotFound,
    Page,
    Query,
    Record,
    Trouble,
)
from adapters.examine import Examinable, Examination, Finding, Verdict
from adapters.problems import DocumentErrors
from gateway.contract.operations import (
    OPERATIONS,
    PAGE_DEFAULT,
    PAGE_LARGEST,
    Match,
    Operation,
    Param,
)
from gateway.contract.resources import RESOURCES

T = TypeVar("T")
DAYS = 14
VETS = 3
# Records of a resource that are read again by their ids, and clients whose invoices are asked for.
ROUND_TRIPS = 20
CLIENTS = 10
MOST_IDS = 3
_word = re.compile(r"[^\W_]{2,}").search


async def examined(
    adapter: Adapter,
    examination: Examination,
    *,
    patience: float,
    troubles: Sequence[Trouble] = (),
) -> AsyncIterator[Finding]:
    """All findings, those of the adapter's own first; `patience` is what one read may take.

    `troubles` are those that the adapter reports meanwhile: told of one that has no findings of
    its own.
    """
    rounds = _Rounds(adapter, examination.now, patience)
    answers = await rounds.connection()
    yield answers
    if answers.verdict is Verdict.FAILED:
        return
    own = adapter.examine if isinstance(adapter, Examinable) else partial(_checked, adapter)
    async for each in own(examination):
        yield each
    async for each in rounds.findings():
        yield each
    if not isinstance(adapter, Examinable):
        for each in _reported(troubles):
            yield each


async def _checked(adapter: Adapter, examination: Examination) -> AsyncIterator[Finding]:
    """What is asked of an adapter that cannot be examined."""
    try:
        await adapter.check()
        yield _finding("mapping", "names", Verdict.OK, "it has all that the mapping names")
    except DocumentErrors as error:
        for each in problems(error):
            yield each
    except Exception as error:  # noqa: BLE001 - a clinic's own adapter may raise anything
        yield _finding("mapping", "names", Verdict.FAILED, _said(error))
    if examination.booking:
        text = "no booking was tried: this adapter has no way to undo one"
        yield _finding("booking", "rehearsal", Verdict.WARNING, text)


def _reported(troubles: Sequence[Trouble]) -> Iterator[Finding]:
    """Values that could not be used, by their fields."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for each in troubles:
        where = (each.resource, each.field, each.kind)
        found.setdefault(where, {})[each.record] = None
    for (resource, field_, kind), records in found.items():
        text = f"{_count(list(records))} with what cannot be used: {kind}"
        ids = [each for each in records if each]
        yield _finding("values", f"{resource}.{field_}", Verdict.WARNING, text, ids)


def problems(error: DocumentErrors) -> list[Finding]:
    """What is wrong with a file, as findings."""
    return [
        Finding(
            check="mapping",
            subject="file",
            verdict=Verdict.FAILED,
            text=each.text,
            place=f"{each.file}:{each.line}:{each.column}" if each.line else each.file,
        )
        for each in error.problems
    ]


class _Broken(Exception):
    """What a partner would not get; the text says what."""


@dataclass(slots=True)
class _Notes:
    """What came of the calls of one operation."""

    said: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    slowest: float = 0.0


class _Rounds:
    """Makes the calls, and keeps the first records of each resource."""

    def __init__(self, adapter: Adapter, now: datetime, patience: float) -> None:
        self._adapter = adapter
        self._now = now
        self._patience = patience
        self._first: dict[str, list[Record]] = {}

    async def connection(self) -> Finding:
        notes = _Notes()
        try:
            await self._timed(notes, self._adapter.ping())
        except Exception as error:  # noqa: BLE001 - a clinic's own adapter may raise anything
            text = f"the practice system does not answer: {_said(error)}"
            return _finding("connection", "ping", Verdict.FAILED, text)
        return self._noted("connection", "ping", notes, "it answers")

    async def findings(self) -> AsyncIterator[Finding]:
        """Every operation that reads, then every resource by its ids."""
        for operation in OPERATIONS:
            if not operation.creates:
                yield await self.operation(operation)
        for resource in RESOURCES:
            if "id" in resource.paths:
                yield await self.ids(resource.name)

    async def operation(self, operation: Operation) -> Finding:
        """Every way of calling it, as one finding."""
        notes = _Notes()
        try:
            await self._called(operation, notes)
        except _Broken as error:
            return _finding("operations", operation.id, Verdict.FAILED, str(error))
        except Exception as error:  # noqa: BLE001 - a clinic's own adapter may raise anything
            return _finding("operations", operation.id, Verdict.FAILED, _said(error))
        return self._noted("operations", operation.id, notes, "; ".join(notes.said))

    async def _called(self, operation: Operation, notes: _Notes) -> None:
        if operation.returns.name == "slots":
            await self._slots(notes)
        elif not operation.many:
            await self._one(operation.returns.name, notes)
        elif any(each.within for each in operation.params):
            await self._inside(operation, notes)
        else:
            await self._list(operation, notes)

    async def ids(self, resource: str) -> Finding:
        """Whether records are found again by their ids, and are the same."""
        notes, lost, other = _Notes(), [], []
        try:
            some = (await self._records(resource, notes))[:ROUND_TRIPS]
            for record in some:
                query = Query(resource=resource, now=self._now, id=record["id"])
                try:
                    again = await self._timed(notes, self._adapter.read_one(query))
                except NotFound:
                    lost.append(record["id"])
                    continue
                if again != record:
                    other.append(record["id"])
        except Exception as error:  # noqa: BLE001 - a clinic's own adapter may raise anything
            return _finding("ids", resource, Verdict.FAILED, _said(error))
        if lost:
            text = f"{len(lost)} of {len(some)} records are not found by their own ids"
            return _finding("ids", resource, Verdict.FAILED, text, lost)
        if other:
            text = f"{len(other)} of {len(some)} records are others when read by their ids"
            return _finding("ids", resource, Verdict.FAILED, text, other)
        return self._noted("ids", resource, notes, f"{_count(some)}, each found by its id")

    async def _one(self, resource: str, notes: _Notes) -> None:
        records = await self._records(resource, notes)
        if not records:
            notes.doubts.append("no record to be read: is its `where` right?")
            return
        query = Query(resource=resource, now=self._now, id=records[-1]["id"])
        await self._timed(notes, self._adapter.read_one(query))
        notes.said.append("one record by its id")

    async def _list(
        self, operation: Operation, notes: _Notes, within: tuple[str, str] | None = None
    ) -> None:
        fixed = [Filter("equals", (name,), value) for name, value in operation.only]
        if within is not None:
            fixed.append(Filter("equals", ("clientId",), within[1]))
        page = await self._page(operation, fixed, notes, within=within)
        notes.said.append(_count(page.records))
        if not page.records:
            notes.doubts.append("0 records: is its `where` right?")
            return
        await self._further(operation, fixed, notes, page, within)
        for param in operation.query:
            if param.match is not None:
                await self._filtered(operation, fixed, notes, param, page.records, within)

    async def _further(
        self,
        operation: Operation,
        fixed: list[Filter],
        notes: _Notes,
        page: Page,
        within: tuple[str, str] | None,
    ) -> None:
        """A page further on, which has none of the first one's records."""
        half = max(1, len(page.records) // 2)
        first = await self._page(operation, fixed, notes, limit=half, within=within)
        if first.after is None:
            return
        more = await self._page(
            operation, fixed, notes, limit=half, after=first.after, within=within
        )
        if {each["id"] for each in first.records} & {each["id"] for each in more.records}:
            raise _Broken("the second page repeats records of the first")
        notes.said.append("a second page")

    async def _filtered(
        self,
        operation: Operation,
        fixed: list[Filter],
        notes: _Notes,
        param: Param,
        records: Sequence[Record],
        within: tuple[str, str] | None,
    ) -> None:
        """By a value of a record, which must then be among what is found."""
        offered = self._adapter.filterable.get(operation.returns.name, frozenset())
        if not offered.issuperset(param.fields):
            notes.doubts.append(
                f"no filter {param.name}: {' or '.join(param.fields)} is not mapped"
            )
            return
        example = next(((r, v) for r in records if (v := _example(param, r)) is not None), None)
        if example is None:
            notes.doubts.append(f"{param.name} was not tried: no record has a value for it")
            return
        wanted = Filter(str(param.match), param.fields, example[1])
        page = await self._page(
            operation, [*fixed, wanted], notes, limit=PAGE_LARGEST, within=within
        )
        found = {each["id"] for each in page.records}
        if example[0]["id"] not in found and page.after is None:
            raise _Broken(f"by {param.name}, a record that has the value is not found")
        notes.said.append(f"by {param.name}")

    async def _inside(self, operation: Operation, notes: _Notes) -> None:
        """The list of a client who has some."""
        records = await self._records(operation.returns.name, notes)
        owners = dict.fromkeys(each["clientId"] for each in records if each["clientId"])
        for owner in list(owners)[:CLIENTS]:
            try:
                await self._list(operation, notes, ("clients", owner))
            except NotFound:
                continue
            return
        if owners:
            raise _Broken("the clients whose they are do not exist")
        notes.doubts.append("no record with a client: is clientId mapped?")

    async def _slots(self, notes: _Notes) -> None:
        vets = (await self._records("vets", notes))[:VETS]
        kinds = await self._records("appointmentTypes", notes)
        today = self._now.date()
        counts = []
        for vet in vets:
            count = 0
            for ahead in range(DAYS):
                values: dict[str, Any] = {
                    "vetId": vet["id"],
                    "date": today + timedelta(days=ahead),
                    "appointmentTypeId": kinds[ahead % len(kinds)]["id"] if kinds else None,
                }
                query = Query(resource="slots", now=self._now, values=values)
                count += len((await self._timed(notes, self._adapter.read_many(query))).records)
            counts.append(count)
        if not any(counts):
            raise _Broken(f"no free time in {DAYS} days with any of {len(vets)} vets")
        idle = sum(not each for each in counts)
        if idle:
            notes.doubts.append(f"{idle} of {len(vets)} vets have no free time in {DAYS} days")
        notes.said.append(f"{sum(counts)} free times of {len(vets)} vets in {DAYS} days")

    async def _records(self, resource: str, notes: _Notes) -> list[Record]:
        """The first records of a resource; read once."""
        if resource not in self._first:
            query = Query(resource=resource, now=self._now, limit=PAGE_DEFAULT)
            page = await self._timed(notes, self._adapter.read_many(query))
            self._first[resource] = page.records
        return self._first[resource]

    async def _page(
        self, operation: Operation, filters: Sequence[Filter], notes: _Notes, **more: Any
    ) -> Page:
        resource = operation.returns.name
        query = Query(resource=resource, now=self._now, filters=tuple(filters), **more)
        return await self._timed(notes, self._adapter.read_many(query))

    async def _timed(self, notes: _Notes, call: Awaitable[T]) -> T:
        begun = time.monotonic()
        try:
            return await call
        finally:
            notes.slowest = max(notes.slowest, time.monotonic() - begun)

    def _noted(self, check: str, subject: str, notes: _Notes, said: str) -> Finding:
        doubts = list(notes.doubts)
        if notes.slowest > self._patience / 2:
            doubts.append(f"slow: backend.timeout is {self._patience:g} s")
        text = "; ".join(each for each in (said, *doubts) if each)
        verdict = Verdict.WARNING if doubts else Verdict.OK
        return Finding(
            check=check, subject=subject, verdict=verdict, text=text, seconds=notes.slowest
        )


def _example(param: Param, record: Record) -> Any:
    """A value to filter by, of a record; None where it has none."""
    for name in param.fields:
        value = record.get(name)
        if param.match is Match.SEARCH and isinstance(value, str) and (word := _word(value)):
            return word[0]
        if param.match is Match.SINCE and value:
            return datetime.fromisoformat(value)
        if param.match is Match.EQUALS and value is not None:
            return value
    return None


def _count(records: Sequence[Any]) -> str:
    return "1 record" if len(records) == 1 else f"{len(records)} records"


def _finding(
    check: str, subject: str, verdict: Verdict, text: str, ids: Sequence[str] = ()
) -> Finding:
    return Finding(
        check=check, subject=subject, verdict=verdict, text=text, ids=tuple(ids[:MOST_IDS])
    )


def _said(error: Exception) -> str:
    """An adapter's own error in its words; of any other nothing but its kind."""
    if isinstance(error, AdapterError):
        return " ".join(str(error).split()) or type(error).__name__
    return f"the adapter itself fails: {type(error).__name__}"
