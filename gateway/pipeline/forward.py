"""Asks the practice system: the adapter's verb for the operation, and its errors in our words."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Protocol

import orjson

from adapters import base
from adapters.base import Adapter, AdapterError, Draft, Filter, Only, Page, Query, Record
from gateway.booking.base import Allowance, Booked, BookingRefused, BookingRequest
from gateway.booking.times import Lengths
from gateway.contract.errors import (
    BackendTooSlow,
    BackendUnusable,
    BookingUnknown,
    BookingUnknownWithoutKey,
    GatewayError,
    InternalError,
    InvalidField,
    InvalidRequest,
    NotFound,
    PatientIsDeceased,
    TimeSlotConflict,
    Unavailable,
)
from gateway.contract.operations import Operation
from gateway.contract.window import BookingWindow
from gateway.keys.key import Key
from gateway.pipeline.validate import Creation, Values

TRANSLATED: Mapping[type[AdapterError], type[GatewayError]] = {
    base.NotFound: NotFound,
    base.SlotTaken: TimeSlotConflict,
    base.PatientDeceased: PatientIsDeceased,
    base.Rejected: BackendUnusable,
    base.BackendUnavailable: Unavailable,
    base.BackendTimeout: BackendTooSlow,
    base.BackendNonsense: BackendUnusable,
    base.OutcomeUnknown: BookingUnknown,
}
_BY_NAME = {kind.__name__: kind for kind in TRANSLATED}


def translated(error: AdapterError) -> GatewayError:
    """What the partner is told; an error that is none of the adapters' own is our fault."""
    if isinstance(error, base.BackendUnavailable):
        return Unavailable(error.retry_after)
    for kind in type(error).__mro__:
        if kind in TRANSLATED:
            return TRANSLATED[kind]()
    return InternalError()


# A list that is always whole and still goes on after so many pages has no end.
MOST_PAGES = 100


# Which records of another resource exist for who asks; None where all do, of every resource.
Others = Callable[[str], Only] | None


class Asker:
    """Turns the values of one operation's calls into the adapter's queries.

    `only` says which records of the operation's own resource exist for who asks.
    """

    def __init__(self, operation: Operation, adapter: Adapter) -> None:
        self._adapter = adapter
        self._resource = operation.returns.name
        self._id = next((each.name for each in operation.params if each.where == "path"), "")
        self._within = next((each for each in operation.params if each.within), None)
        self._filters = [each for each in operation.params if each.match]
        self._others = [each.name for each in operation.params if not each.match]
        self._fixed = tuple(Filter("equals", (name,), value) for name, value in operation.only)
        self._referring = [
            (each.name, refers)
            for each in self._filters
            if not each.within and (refers := operation.returns.at(each.fields[0]).refers)
        ]

    def one(self, values: Values, now: datetime, only: Only) -> Awaitable[Record]:
        """The record that the path names."""
        return self._adapter.read_one(
            Query(resource=self._resource, now=now, id=values.params[self._id], only=only)
        )

    async def refers_to_nothing(self, values: Values, now: datetime, others: Others) -> bool:
        """Whether a filter names a record that does not exist for who asks: then nothing fits it.

        All records that do not exist are alike: one that is hidden and one that is not there.
        """
        if others is None:
            return False
        for name, resource in self._referring:
            only = others(resource)
            if only and name in values.params:
                wanted = Query(resource=resource, now=now, id=values.params[name], only=only)
                try:
                    await self._adapter.read_one(wanted)
                except base.NotFound:
                    return True
        return False

    def many(
        self, values: Values, now: datetime, only: Only, others: Others = None
    ) -> Awaitable[Page]:
        """A page of records."""
        params = values.params
        chosen = [
            Filter(str(each.match), each.fields, params[each.name])
            for each in self._filters
            if each.name in params
        ]
        within = self._within
        query = Query(
            resource=self._resource,
            now=now,
            filters=(*chosen, *self._fixed),
            only=only,
            within=None if within is None else (str(within.within), params[within.name]),
            within_only=others(str(within.within)) if within is not None and others else (),
            values={name: params[name] for name in self._others if name in params},
            limit=values.limit,
            after=values.after,
        )
        return self._adapter.read_many(query)

    async def rest(self, page: Page, values: Values, now: datetime, only: Only) -> Page:
        """A list that has no pages for partners: this page and all that follow."""
        records, skipped = list(page.records), page.skipped
        for _ in range(MOST_PAGES):
            if page.after is None:
                return Page(records=records, skipped=skipped)
            values.after = page.after
            page = await self.many(values, now, only)
            records += page.records
            skipped += page.skipped
        raise base.BackendNonsense(f"a whole list of {self._resource} does not end")


class Ledger(Protocol):
    """Where bookings are made once and only once."""

    async def book(self, attempt: BookingRequest) -> Booked: ...

    async def check_allowance(self, key_id: str, allowance: Allowance, now: datetime) -> None: ...

    async def mark_untold(self, key_id: str, appointment_id: str) -> None: ...


class Booker:
    """Books through the ledger, at times that the window admits."""

    def __init__(
        self,
        ledger: Ledger,
        adapter: Adapter,
        window: BookingWindow,
        now: Callable[[], datetime],
    ) -> None:
        self._window = window
        self._ledger = ledger
        self._adapter = adapter
        self._lengths = Lengths(adapter)
        self._now = now

    async def check_allowance(self, key: Key) -> None:
        """LimitExceeded where the key has made its bookings of the day, and heard; Unavailable."""
        now = self._now()
        allowance = self._allowance(key, now)
        if allowance is not None:
            await self._ledger.check_allowance(key.id, allowance, now)

    async def book(
        self, wanted: Creation, key: Key, others: Others, check_key: Callable[[], object]
    ) -> Booked:
        """The new appointment, or the one that the same request made before.

        `check_key` raises where the caller may book no longer.
        """
        draft = _draft(wanted.body, self._now(), others)

        def check_time() -> None:
            problem = self._window.problem(draft.scheduled_at, self._now())
            if problem is not None:
                raise InvalidRequest(InvalidField("scheduledAt", problem))

        attempt = BookingRequest(
            key_id=key.id,
            idempotency_key=wanted.idempotency_key,
            fingerprint=_fingerprint(wanted.body),
            draft=draft,
            lasts=await self._lengths.of(draft.appointment_type_id, draft.now),
            adapter=self._adapter,
            check_time=check_time,
            check_key=check_key,
            now=self._now,
            allowance=self._allowance(key, draft.now),
        )
        return await self._ledger.book(attempt)

    def _allowance(self, key: Key, now: datetime) -> Allowance | None:
        """The key's bookings of this day, by the clinic's calendar."""
        if key.bookings_per_day is None:
            return None
        since, until = self._window.day(now)
        return Allowance(most=key.bookings_per_day, since=since, until=until)

    async def mark_untold(self, key_id: str, booked: Booked) -> None:
        """The caller hears nothing of it: what it asks again is answered with this booking."""
        await self._ledger.mark_untold(key_id, str(booked.record.get("id")))


def booking_error(error: AdapterError, idempotency_key: str | None) -> GatewayError:
    """The same as `translated`, with the right advice where the outcome is not known."""
    if isinstance(error, base.OutcomeUnknown) and idempotency_key is None:
        return BookingUnknownWithoutKey()
    return translated(error)


def refusal(refused: BookingRefused) -> GatewayError:
    """The practice system's earlier no, told again."""
    return TRANSLATED[_BY_NAME[refused.error]]()


# The governed resources that a booking names records of.
_NAMED = ("clients", "patients")


def _draft(body: Mapping[str, Any], now: datetime, others: Others) -> Draft:
    return Draft(
        client_id=body["clientId"],
        patient_id=body["patientId"],
        vet_id=body["vetId"],
        scheduled_at=body["scheduledAt"],
        appointment_type_id=body["appointmentTypeId"],
        reason=body["reason"],
        is_urgent=body["isUrgent"],
        now=now,
        only={} if others is None else {name: others(name) for name in _NAMED},
    )


def _fingerprint(body: Mapping[str, Any]) -> bytes:
    """A digest of what is asked for: spelling, order and offsets of the request do not count."""
    data = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    return sha256(data).digest()
