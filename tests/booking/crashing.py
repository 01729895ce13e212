"""One booking by a process of its own, over a real practice, which stops for good at a point."""

import asyncio
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from adapters.base import Adapter, Draft, Query, Record
from gateway.booking.base import BookingRequest
from gateway.booking.ledger import Ledger
from gateway.booking.takeover import Owners
from gateway.store import open_store
from tests.booking.clinic import Heard
from tests.races.practice import ZONE, Practice, at, working_days

# Where it stops: before anything is sent, before it is asked, before it tells, before it answers.
POINTS = ("intended", "sent", "committed", "answered")


def stop(point: str) -> None:
    """Say so, and do nothing any more, not even in the background."""
    sys.stdout.write(f"{point}\n")
    sys.stdout.flush()
    while True:
        signal.pause()


class Stopping:
    """An adapter that stops on the way of a booking."""

    def __init__(self, inner: Adapter, point: str) -> None:
        self._inner, self._point = inner, point
        self.excludes, self.settle = inner.excludes, inner.settle
        self.default_length = inner.default_length

    async def create_appointment(self, draft: Draft) -> Record:
        if self._point == "sent":
            stop(self._point)
        record = await self._inner.create_appointment(draft)
        if self._point == "committed":
            stop(self._point)
        return record

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        return await self._inner.find_appointments(draft, since)


def booking(orders: Mapping[str, Any]) -> None:
    """Book, as the orders say, and stop at their point."""
    asyncio.run(_booking(orders))


async def _booking(orders: Mapping[str, Any]) -> None:
    folder = Path(orders["folder"])
    practice = Practice("sqlite", orders["practice"])
    store = open_store(orders["store"])
    owners = Owners(store, folder)
    await owners.start()
    # the mapping of this process is its own: another reads the other at the same time
    (folder / orders["name"]).mkdir()
    adapter: Any = Stopping(practice.open(folder / orders["name"]), orders["point"])
    attempt = await attempt_of(adapter, key=orders["key"], ids=orders["ids"], point=orders["point"])
    await Ledger(store, owners, Heard(), lambda: datetime.now(UTC)).book(attempt)
    stop("answered")


async def attempt_of(
    adapter: Any, *, key: str | None, ids: Mapping[str, str], who: str = "p", point: str = ""
) -> BookingRequest:
    """A wish for the first time of a working day."""
    now = datetime.now(UTC)
    begins = at(working_days(1, now.date())[0], 9).replace(tzinfo=ZONE).astimezone(UTC)
    draft = Draft(
        client_id=ids["clients"], patient_id=ids["patients"], vet_id=ids["vets"],
        scheduled_at=begins, appointment_type_id=ids["appointmentTypes"], reason="crash",
        is_urgent=False, now=now,
    )  # fmt: skip
    return BookingRequest(
        key_id=who,
        idempotency_key=key,
        fingerprint=b"1" * 32,
        draft=draft,
        lasts=timedelta(minutes=15),
        adapter=adapter,
        check_time=lambda: None,
        check_key=lambda: stop(point) if point == "intended" else None,
        now=lambda: datetime.now(UTC),
    )


async def ids_of(adapter: Adapter) -> dict[str, str]:
    """The public id of the first of each."""
    found = {}
    for resource in ("vets", "clients", "patients", "appointmentTypes"):
        page = await adapter.read_many(Query(resource=resource, now=datetime.now(UTC)))
        found[resource] = page.records[0]["id"]
    return found
