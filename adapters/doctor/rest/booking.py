"""Rehearses the bookings of a JSON backend: in a test tenant for real, elsewhere without sending.

No transaction undoes a call over HTTP. In a test tenant each booking is made, looked at, and
cancelled where the mapping says how. Elsewhere its calls are only put together.
"""

import asyncio
from functools import partial

from adapters.base import AdapterError, OutcomeUnknown, SlotTaken
from adapters.doctor.case import Look
from adapters.doctor.rehearsal import BookingKind, Planner
from adapters.doctor.rehearsal_report import (
    RehearsalReport,
    Rehearsed,
    refusal,
    rehearse,
    seen,
)
from adapters.doctor.rest.case import RestCase
from adapters.examination import DRY, short
from adapters.mapped.clock_change import KnownTimes
from adapters.rest.adapter import RestAdapter, RestSession
from adapters.rest.steps import NothingSent

# Seconds that a rehearsed booking may take.
PATIENCE = 60.0


async def rehearsal(case: RestCase, look: Look) -> None:
    """Makes every kind of booking, or puts its calls together, and tells what came of each."""
    is_real, planner = case.examination.is_tenant, Planner(case, look)
    await planner.plan()
    if not is_real:
        text = "dry: reads alone were sent, and the calls that write were put together"
        remedy = "to make the bookings, name a test tenant: backend check --booking --tenant URL"
        look.warning(text, remedy=remedy, code=DRY)
    elif planner.kinds and not case.adapter.mapping.booking.can_withdraw:
        text = "the bookings below stay in the test tenant: the mapping has no booking.cancel"
        look.warning(text, place=("booking",))
    book = partial(_booked, case, planner, is_real=is_real)
    await rehearse(case, planner, RehearsalReport(look), book, renews=is_real)


async def _booked(
    case: RestCase, planner: Planner, kind: BookingKind, *, is_real: bool
) -> Rehearsed:
    """Books, looks and cancels it."""
    adapter = case.adapter
    done = Rehearsed(is_kept=not adapter.mapping.booking.can_withdraw)
    own, other = _session(adapter, dry=not is_real), _session(adapter)
    done.progress, failure = own.progress, None
    done.words = f"booked and {'kept' if done.is_kept else 'cancelled'}, in the test tenant"
    try:
        record = await adapter.bookings.book(own, kind.draft, KnownTimes())
        done.made.append(record["id"])
        own.release()  # else whoever books the same time would wait for us
        done.wrong = await seen(case, planner, kind, record, other, done)
    except NothingSent:
        done.words = "its calls were put together, and not sent"
    except SlotTaken as error:
        done.taken = error
    except AdapterError as error:
        failure = error
    finally:
        for session in (other, own):
            await _withdraw(session, done)
            session.release()
    unknown = isinstance(failure, OutcomeUnknown) and not done.made
    done.is_half = unknown or (not done.is_kept and any(each.made for each in (own, other)))
    if failure is not None:
        done.wrong = refusal(case, done, failure)
    return done


async def _withdraw(session: RestSession, done: Rehearsed) -> None:
    """Cancels what the session made, where the mapping says how; it is known what was made."""
    if session.made is None:
        return
    done.made += [session.made] if session.made not in done.made else []
    if not done.is_kept:
        try:
            await session.withdraw()
        except AdapterError as error:
            done.wrong = done.wrong or (short(error), ("booking", "cancel"))


def _session(adapter: RestAdapter, *, dry: bool = False) -> RestSession:
    return RestSession(adapter, asyncio.get_running_loop().time() + PATIENCE, dry=dry)
