# ruff: noqa: S101 - it is made of asserts
"""Defines the practice system that a test brings, and the probe that asks its adapter."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from inspect import iscoroutinefunction
from itertools import product
from secrets import token_hex
from typing import Any, NamedTuple, Protocol, TypeVar
from zoneinfo import ZoneInfo

from adapters import base
from adapters.base import Adapter, Draft, Filter, Only, Page, Record
from adapters.mapped.appointment import DECEASED

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")
DAY = timedelta(days=1)
NOBODY = "00000000-0000-0000-0000-000000000000"
LARGEST_PAGE = 200  # what the gateway asks for at most
FORTNIGHT = 14
# Far enough ahead that a made-up diary is empty.
LATER = timedelta(days=60)
moment = datetime.fromisoformat


class Place(NamedTuple):
    """Where a verb wrote: the resource, the record's public id, and the field."""

    resource: str
    id: str
    field: str


class Practice(Protocol):
    """A practice system made for one test, with some rows of every resource.

    Among them are a client with an animal, and a vet with free times within the next fortnight.
    `now` is the present of its rows, and `troubles` what its adapters reported. They answer a read
    within `patience` seconds, and a booking within twice that. The verbs that it lacks are named in
    `AdapterConformance.cannot`.
    """

    shapes: base.Shapes
    now: datetime
    zone: ZoneInfo
    troubles: list[base.Trouble]
    patience: float = 3.0

    def open(self) -> Adapter:
        """Returns a new adapter, as another process would have; the suite closes it."""

    async def settle(self) -> None:
        """Waits until what the desk wrote must be visible, since an adapter may cache."""
        await asyncio.sleep(0)

    async def add_clients(self, count: int, *, front: bool) -> None:
        """Enters so many clients.

        In the adapter's order, those in `front` come before all that were added otherwise, and
        after earlier ones in front. Where keys cannot be chosen, they go where new ones go.
        """
        raise _lacks("add_clients")

    async def asked(self) -> int:
        """Returns how many statements or requests it was asked, without transactions and logins."""
        raise _lacks("asked")

    async def set_hours(self, vet: str, weekday: int, start: time, end: time) -> None:
        """Makes a vet work on that day (1 is Monday) every week, and at no other time.

        An end that is not after the start is on the next day.
        """
        raise _lacks("set_hours")

    async def add_absence(self, vet: str, start: datetime, end: datetime) -> None:
        """Makes a vet absent."""
        raise _lacks("add_absence")

    async def add_appointment(self, vet: str, start: datetime, end: datetime) -> str:
        """Enters an appointment for any animal, whatever is there already; returns its id."""
        raise _lacks("add_appointment")

    async def cancel(self, appointment: str) -> None:
        """Cancels an appointment that was added."""
        raise _lacks("cancel")

    async def write_unknown_code(self) -> Place:
        """Writes a code that nothing explains into a field that has allowed values."""
        raise _lacks("write_unknown_code")

    async def write_unreadable(self) -> Place:
        """Writes a value that is none of its kind into a field, such as a 31st of February."""
        raise _lacks("write_unreadable")

    async def write_zero_date(self) -> Place:
        """Writes the practice system's `no date` into a field with a date or time."""
        raise _lacks("write_zero_date")

    async def stop(self) -> None:
        """Takes the practice system down."""
        raise _lacks("stop")

    async def slow(self) -> None:
        """Makes it take every request, and answer none for longer than anybody waits."""
        raise _lacks("slow")

    async def garble(self) -> None:
        """Makes it answer nonsense."""
        raise _lacks("garble")

    async def mend(self) -> None:
        """Makes it answer again as before."""
        raise _lacks("mend")


# The verbs that a practice may lack.
VERBS = frozenset(
    verb for verb, member in vars(Practice).items() if iscoroutinefunction(member)
) - {"settle"}


def needs(*verbs: str) -> Callable[[F], F]:
    """Returns a decorator that marks a test with the verbs that it needs."""

    def mark(test: F) -> F:
        vars(test)["needs"] = frozenset(verbs)
        return test

    return mark


def needs_of(test: object) -> frozenset[str]:
    return frozenset(getattr(test, "needs", ()))


def _lacks(verb: str) -> NotImplementedError:
    return NotImplementedError(f"write {verb}() of this practice, or name it in the suite's cannot")


class Probe:
    """An adapter, asked at the present of its practice."""

    def __init__(self, practice: Practice, adapter: Adapter) -> None:
        self.practice, self.adapter = practice, adapter

    @property
    def resources(self) -> list[str]:
        """The resources whose records have an id."""
        return [name for name, shapes in self.practice.shapes.items() if "id" in shapes]

    async def one(self, resource: str, public_id: str, only: Only = ()) -> Record:
        query = base.Query(resource=resource, now=self.practice.now, id=public_id, only=only)
        return await self.adapter.read_one(query)

    async def page(self, resource: str, **more: Any) -> Page:
        query = base.Query(resource=resource, **{"now": self.practice.now, **more})
        return await self.adapter.read_many(query)

    async def some(self, resource: str, *filters: Filter, limit: int = 100) -> list[Record]:
        return (await self.page(resource, limit=limit, filters=filters)).records

    async def everything(
        self, resource: str, *filters: Filter, only: Only = (), limit: int = LARGEST_PAGE
    ) -> list[Record]:
        """Returns all records that exist; asserts that no page but the last one is short."""
        records: list[Record] = []
        more, after = {"filters": filters, "only": only, "limit": limit}, None
        while True:
            page = await self.page(resource, after=after, **more)
            records += page.records
            assert len(page.records) <= limit, f"a page of {resource} is longer than was asked for"
            if page.after is None:
                return records
            assert len(page.records) + page.skipped >= limit, f"a page of {resource} is short"
            assert page.after.isascii(), "the next page's name must be ASCII"
            assert len(page.after) <= base.LONGEST_AFTER, "the next page's name is too long a text"
            assert page.after != after, f"after a page of {resource} comes the same one"
            after = page.after

    async def invoices_of(self, client: str, only: Only = ()) -> None:
        """Asks for a client's invoices; asserts that all are the client's."""
        by, within = Filter("equals", ("clientId",), client), ("clients", client)
        page = await self.page("invoices", within=within, within_only=only, filters=(by,))
        assert all(invoice["clientId"] == client for invoice in page.records)

    async def all_of_each(self) -> AsyncIterator[tuple[str, list[Record]]]:
        """Yields every resource whose records have an id, with all its records."""
        for resource in self.resources:
            yield resource, await self.everything(resource)

    async def slots(
        self, vet: str, day: date, kind: str | None = None, now: datetime | None = None
    ) -> list[Record]:
        """Returns the free times of a vet on a local day."""
        values = {"vetId": vet, "date": day, "appointmentTypeId": kind}
        return (await self.page("slots", now=now or self.practice.now, values=values)).records

    async def starts(self, vet: str, day: date, now: datetime | None = None) -> list[datetime]:
        """Returns when the free times of a vet begin on a local day."""
        return [moment(slot["startTime"]) for slot in await self.slots(vet, day, now=now)]

    async def offered(self, draft: Draft) -> list[datetime]:
        """Returns when the free times of the draft's vet begin on its day."""
        return await self.starts(draft.vet_id, self.day(draft.scheduled_at))

    async def bookings_of(self, draft: Draft) -> list[Record]:
        """Returns the bookings that may be the draft's."""
        return list(await self.adapter.find_appointments(draft, draft.now))

    async def settled(self, deed: Awaitable[T]) -> T:
        """Returns the result of what the desk does, once it must be visible."""
        done = await deed
        await self.practice.settle()
        return done

    async def draft(self, **more: Any) -> Draft:
        """Returns a draft for an animal of a present client and a vet's first free time."""
        patients, vets = await self.patients(deceased=False), await self.some("vets")
        assert patients, "none of the first clients has an animal among the first patients"
        for ahead, vet in product(range(1, FORTNIGHT + 1), vets):
            if starts := await self.starts(vet["id"], self.day(self.practice.now) + ahead * DAY):
                break
        else:
            raise LookupError("no vet has a free time in the next fortnight")
        made = Draft(
            client_id=patients[0]["clientId"],
            patient_id=patients[0]["id"],
            vet_id=vet["id"],
            scheduled_at=starts[0],
            reason="Limps since yesterday: 50% %s ; '--\nÀ gauche",
            is_urgent=True,
            now=self.practice.now,
            reference=token_hex(8),
        )
        return replace(made, **more)

    async def patients(self, *, deceased: bool) -> list[Record]:
        """Returns the first patients, dead or alive, whose client is among the first clients."""
        clients = {client["id"] for client in await self.some("clients", limit=LARGEST_PAGE)}
        return [
            patient
            for patient in await self.some("patients", limit=LARGEST_PAGE)
            if patient["clientId"] in clients and (patient.get("status") == DECEASED) is deceased
        ]

    def day(self, moment: datetime) -> date:
        """Returns the practice's local day of a moment."""
        return moment.astimezone(self.practice.zone).date()

    def at(self, day: date, hour: time) -> datetime:
        """Returns a time on the practice's wall clock, in UTC."""
        return datetime.combine(day, hour, self.practice.zone).astimezone(UTC)

    def days_ahead(self) -> list[date]:
        """Returns a year of days that begins some time ahead."""
        return [(self.practice.now + LATER).date() + number * DAY for number in range(366)]

    def is_changing(self, day: date) -> bool:
        """Returns whether the day does not have 24 hours."""
        return self.at(day + DAY, time()) - self.at(day, time()) != DAY
