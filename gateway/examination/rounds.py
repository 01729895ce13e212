"""Every operation that reads, every resource by its ids, and free times."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

from adapters.base import Adapter, NotFound
from adapters.examination import Finding, Verdict
from gateway.contract.operations import OPERATIONS, Operation
from gateway.contract.resources import RESOURCES
from gateway.examination.findings import count, finding, said
from gateway.examination.lists import tried_list
from gateway.examination.reads import Broken, Notes, Reads

DAYS = 14
VETS = 3
# Records of a resource that are read again by their ids.
ROUND_TRIPS = 20


class Rounds:
    """Makes the calls, and says what came of them; slow is half of `patience`, in seconds."""

    def __init__(self, adapter: Adapter, now: datetime, patience: float) -> None:
        self._reads = Reads(adapter, now)
        self._patience = patience

    async def connection(self) -> Finding:
        notes = Notes()
        try:
            await self._reads.timed(notes, self._reads.adapter.ping())
        except Exception as error:  # noqa: BLE001 - a clinic's own adapter may raise anything
            text = f"the practice system does not answer: {said(error)}"
            return finding("connection", "ping", Verdict.FAILED, text)
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
        notes = Notes()
        try:
            await self._called(operation, notes)
        except Broken as error:
            return finding("operations", operation.id, Verdict.FAILED, str(error))
        except Exception as error:  # noqa: BLE001 - a clinic's own adapter may raise anything
            return finding("operations", operation.id, Verdict.FAILED, said(error))
        return self._noted("operations", operation.id, notes, "; ".join(notes.said))

    async def _called(self, operation: Operation, notes: Notes) -> None:
        if operation.returns.name == "slots":
            await self._slots(notes)
        elif not operation.many:
            await self._one(operation.returns.name, notes)
        else:
            await tried_list(self._reads, operation, notes)

    async def ids(self, resource: str) -> Finding:
        """Whether records are found again by their ids, and are the same."""
        notes, lost, other = Notes(), [], []
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
            return finding("ids", resource, Verdict.FAILED, said(error))
        if lost:
            text = f"{len(lost)} of {len(some)} records are not found by their own ids"
            return finding("ids", resource, Verdict.FAILED, text, lost)
        if other:
            text = f"{len(other)} of {len(some)} records are others when read by their ids"
            return finding("ids", resource, Verdict.FAILED, text, other)
        return self._noted("ids", resource, notes, f"{count(some)}, each found by its id")

    async def _one(self, resource: str, notes: Notes) -> None:
        records = await self._reads.first(resource, notes)
        if not records:
            notes.doubts.append("no record to be read: is its `where` right?")
            return
        await self._reads.one(resource, records[-1]["id"], notes)
        notes.said.append("one record by its id")

    async def _slots(self, notes: Notes) -> None:
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
            raise Broken(f"no free time in {DAYS} days with any of {len(vets)} vets")
        idle = sum(not each for each in counts)
        if idle:
            notes.doubts.append(f"{idle} of {len(vets)} vets have no free time in {DAYS} days")
        notes.said.append(f"{sum(counts)} free times of {len(vets)} vets in {DAYS} days")

    def _noted(self, check: str, subject: str, notes: Notes, text: str) -> Finding:
        doubts = list(notes.doubts)
        if notes.slowest > self._patience / 2:
            doubts.append(f"slow: backend.timeout is {self._patience:g} s")
        text = "; ".join(each for each in (text, *doubts) if each)
        verdict = Verdict.WARNING if doubts else Verdict.OK
        return Finding(
            check=check, subject=subject, verdict=verdict, text=text, seconds=notes.slowest
        )
