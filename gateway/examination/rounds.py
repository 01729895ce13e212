"""Examines an adapter: by its own means where it has some, by every operation and by its ids."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from adapters.base import Adapter, AdapterError, NotFound, Trouble
from adapters.doctor import examiner_of
from adapters.documents.problems import DocumentErrors, Problem
from adapters.examination import Examination, Finding, Verdict
from gateway.contract.operations import OPERATIONS, Operation
from gateway.contract.resources import RESOURCES
from gateway.examination.reads import CallNotes, PartnerFailure, Reads, count, try_list

DAYS = 14
VETS = 3
# Records of a resource that are read again by their ids.
ROUND_TRIPS = 20
MOST_IDS = 3
READING = [operation for operation in OPERATIONS if not operation.creates]
WITH_IDS = [resource.name for resource in RESOURCES if "id" in resource.paths]


async def examined(
    adapter: Adapter,
    examination: Examination,
    *,
    patience: float,
    troubles: Sequence[Trouble] = (),
) -> AsyncIterator[Finding]:
    """All findings, those of the adapter's own first; `patience` is what one read may take.

    `troubles` are those that the adapter reports meanwhile: told of one that has no findings of
    its own. No sentence carries a value of the practice system.
    """
    rounds = Rounds(adapter, examination.now, patience)
    connection = await rounds.connection()
    yield connection
    if connection.verdict is Verdict.FAILED:
        return
    examine = examiner_of(adapter)
    async for finding in (examine or partial(_checked, adapter))(examination):
        yield finding
    for operation in READING:
        yield await rounds.operation(operation)
    for resource in WITH_IDS:
        yield await rounds.ids(resource)
    if examine is None:
        for finding in _reported(troubles):
            yield finding


async def _checked(adapter: Adapter, examination: Examination) -> AsyncIterator[Finding]:
    """What is asked of an adapter that cannot be examined."""
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
        yield _finding("booking", "rehearsal", Verdict.WARNING, text)


def _reported(troubles: Sequence[Trouble]) -> Iterator[Finding]:
    """Values that could not be used, by their fields."""
    by_field: dict[tuple[str, str, str], dict[str, None]] = {}
    for trouble in troubles:
        place = (trouble.resource, trouble.field, trouble.kind)
        by_field.setdefault(place, {})[trouble.record] = None
    for (resource, field, kind), records in by_field.items():
        text = f"{count(list(records))} with what cannot be used: {kind}"
        ids = [record for record in records if record]
        yield _finding("values", f"{resource}.{field}", Verdict.WARNING, text, ids)


def problems(found: Iterable[Problem], verdict: Verdict = Verdict.FAILED) -> list[Finding]:
    """What is wrong with a file, as findings."""
    return [
        Finding(
            check="mapping",
            subject="file",
            verdict=verdict,
            text=problem.text,
            place=f"{problem.file}:{problem.line}:{problem.column}"
            if problem.line
            else problem.file,
        )
        for problem in found
    ]


def _finding(
    check: str, subject: str, verdict: Verdict, text: str, ids: Sequence[str] = ()
) -> Finding:
    """A finding, with the first of the ids."""
    return Finding(
        check=check, subject=subject, verdict=verdict, text=text, ids=tuple(ids[:MOST_IDS])
    )


def _words(error: Exception) -> str:
    """An adapter's own error in its words; of any other nothing but its kind."""
    if isinstance(error, PartnerFailure):
        return str(error)
    if isinstance(error, AdapterError):
        return " ".join(str(error).split()) or type(error).__name__
    return f"the adapter itself fails: {type(error).__name__}"


class Rounds:
    """Makes the calls, and says what came of them; slow is half of `patience`, in seconds."""

    def __init__(self, adapter: Adapter, now: datetime, patience: float) -> None:
        self._reads = Reads(adapter, now)
        self._patience = patience

    async def connection(self) -> Finding:
        notes = CallNotes()
        try:
            await self._reads.timed(notes, self._reads.adapter.ping())
        except Exception as error:  # noqa: BLE001 - a clinic's own adapter may raise anything
            text = f"the practice system does not answer: {_words(error)}"
            return _finding("connection", "ping", Verdict.FAILED, text)
        return self._noted("connection", "ping", notes, "it answers")

    async def operation(self, operation: Operation) -> Finding:
        """Every way of calling it, as one finding."""
        notes = CallNotes()
        try:
            if operation.returns.name == "slots":
                await self._slots(notes)
            elif operation.many:
                await try_list(self._reads, operation, notes)
            else:
                await self._one(operation.returns.name, notes)
        except Exception as error:  # noqa: BLE001 - a clinic's own adapter may raise anything
            return _finding("operations", operation.id, Verdict.FAILED, _words(error))
        return self._noted("operations", operation.id, notes, "; ".join(notes.said))

    async def ids(self, resource: str) -> Finding:
        """Whether records are found again by their ids, and are the same."""
        notes, lost, other = CallNotes(), [], []
        try:
            some = (await self._reads.first(resource, notes))[:ROUND_TRIPS]
            for record in some:
                try:
                    again = await self._reads.one(resource, record["id"], notes)
                except NotFound:
                    lost.append(record["id"])
                    continue
                if again != record:
                    other.append(record["id"])
        except Exception as error:  # noqa: BLE001 - a clinic's own adapter may raise anything
            return _finding("ids", resource, Verdict.FAILED, _words(error))
        for ids, what in (
            (lost, "are not found by their own ids"),
            (other, "are others when read by their ids"),
        ):
            if ids:
                text = f"{len(ids)} of {len(some)} records {what}"
                return _finding("ids", resource, Verdict.FAILED, text, ids)
        return self._noted("ids", resource, notes, f"{count(some)}, each found by its id")

    async def _one(self, resource: str, notes: CallNotes) -> None:
        records = await self._reads.first(resource, notes)
        if not records:
            notes.doubts.append("no record to be read: is its `where` right?")
            return
        await self._reads.one(resource, records[-1]["id"], notes)
        notes.said.append("one record by its id")

    async def _slots(self, notes: CallNotes) -> None:
        vets = (await self._reads.first("vets", notes))[:VETS]
        kinds = await self._reads.first("appointmentTypes", notes)
        today = self._reads.now.date()
        counts = []
        for vet in vets:
            free = 0
            for ahead in range(DAYS):
                values: dict[str, Any] = {
                    "vetId": vet["id"],
                    "date": today + timedelta(days=ahead),
                    "appointmentTypeId": kinds[ahead % len(kinds)]["id"] if kinds else None,
                }
                free += len((await self._reads.many("slots", notes, values=values)).records)
            counts.append(free)
        if not any(counts):
            raise PartnerFailure(f"no free time in {DAYS} days with any of {len(vets)} vets")
        if idle := counts.count(0):
            notes.doubts.append(f"{idle} of {len(vets)} vets have no free time in {DAYS} days")
        notes.said.append(f"{sum(counts)} free times of {len(vets)} vets in {DAYS} days")

    def _noted(self, check: str, subject: str, notes: CallNotes, text: str) -> Finding:
        doubts = list(notes.doubts)
        if notes.slowest > self._patience / 2:
            doubts.append(f"slow: backend.timeout is {self._patience:g} s")
        text = "; ".join(part for part in (text, *doubts) if part)
        verdict = Verdict.WARNING if doubts else Verdict.OK
        return Finding(
            check=check, subject=subject, verdict=verdict, text=text, seconds=notes.slowest
        )
