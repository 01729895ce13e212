"""Rehearses the bookings of a JSON backend: in a test tenant for real, elsewhere without sending.

No transaction undoes a call over HTTP. In a test tenant each booking is made, looked at, and
cancelled where the mapping says how. Elsewhere its calls are only put together.
"""

import asyncio
import time

from adapters.base import AdapterError, NotFound, OutcomeUnknown, SlotTaken
from adapters.doctor.case import Look
from adapters.doctor.rehearsal import BookingKind, Planner
from adapters.doctor.rehearsal_report import RehearsalReport, Rehearsed, refusal, seen
from adapters.doctor.rest.case import RestCase
from adapters.mapped.clock_change import KnownTimes
from adapters.rest.adapter import CANCELLED, RestAdapter, RestSession
from adapters.rest.steps import NothingSent

# Seconds that a rehearsed booking may take.
PATIENCE = 60.0


async def rehearsal(case: RestCase, look: Look) -> None:
    """Makes every kind of booking, or puts its calls together, and tells what came of each."""
    adapter, is_real = case.adapter, case.examination.is_tenant
    planner = Planner(case, case.session, look)
    await planner.plan()
    if not is_real:
        text = "dry: reads alone were sent, and the calls that write were put together"
        remedy = "to make the bookings, name a test tenant: backend check --booking --tenant URL"
        look.warning(text, remedy=remedy)
    elif planner.kinds and not adapter.mapping.booking.can_withdraw:
        text = "the bookings below stay in the test tenant: the mapping has no booking.cancel"
        look.warning(text, place=("booking",))
    report = RehearsalReport(look)
    for planned in planner.kinds:
        kind, begun = await planner.renewed(planned) if is_real else planned, time.monotonic()
        done = None if kind is None else await _booked(case, planner, kind, is_real=is_real)
        if done is None or kind is None:
            text = f"{planned.words}: the time was taken meanwhile, so it was not rehearsed"
            look.warning(text)
            continue
        is_left = await _is_left(case, done)
        report.tell(kind, done, is_left=is_left, took=time.monotonic() - begun)
    if planner.kinds:
        report.end(adapter.mapping.booking.steps)


async def _booked(
    case: RestCase, planner: Planner, kind: BookingKind, *, is_real: bool
) -> Rehearsed | None:
    """Books, looks and cancels it; returns None where the time was taken meanwhile."""
    adapter, done = case.adapter, Rehearsed()
    session = _session(adapter, dry=not is_real)
    done.progress = session.progress
    try:
        record = await adapter.bookings.book(session, kind.draft, KnownTimes())
        done.made = record["id"]
        session.release()  # else whoever books the same time would wait for us
        other = _session(adapter)
        try:
            done.wrong = await seen(case, planner, kind, record, other)
        finally:
            other.release()
        done.words = "booked and kept, in the test tenant"
        if adapter.mapping.booking.can_withdraw:
            await session.withdraw()
            done.words = "booked and cancelled, in the test tenant"
    except NothingSent:
        done.words = "its calls were put together, and not sent"
    except SlotTaken:
        return None
    except AdapterError as error:
        done.is_half = isinstance(error, OutcomeUnknown)
        done.wrong = done.wrong or refusal(case, done.progress, error)
    finally:
        session.release()
    return done


def _session(adapter: RestAdapter, *, dry: bool = False) -> RestSession:
    return RestSession(adapter, asyncio.get_running_loop().time() + PATIENCE, dry=dry)


async def _is_left(case: RestCase, done: Rehearsed) -> bool:
    """Returns whether a booking that was to be cancelled still stands."""
    if not (done.made and case.adapter.mapping.booking.can_withdraw):
        return done.is_half
    try:
        record = await case.session.reader("appointments").one(done.made)
    except NotFound:
        return False
    return bool(record["status"] != CANCELLED)
