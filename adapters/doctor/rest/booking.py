"""What a booking is made with, as far as it can be seen without making one."""

from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from functools import partial

from adapters.base import AdapterError, Draft
from adapters.doctor.case import CheckStep
from adapters.doctor.findings import short
from adapters.doctor.rest.case import RestCase
from adapters.examination import Finding
from adapters.rest.session import RestSession

# A reference that no booking has.
NOBODYS = "NOTABOOKING00000"


def booking(case: RestCase) -> Iterator[CheckStep]:
    """What keeps two bookings from one time, the lookup, and why none is rehearsed."""
    yield CheckStep("booking", "clash", lambda _: _clash(case))
    yield CheckStep("booking", "find", partial(_find, case), ("booking", "find"))
    if case.examination.booking:
        yield CheckStep("booking", "rehearsal", lambda _: _rehearsal(case))


async def _clash(case: RestCase) -> AsyncIterator[Finding]:
    mapped, place = case.core.mapping.booking, ("booking", "steps")
    bad = False
    if mapped.cancel is None:
        bad = True
        text = "a clash cannot be withdrawn: the mapping has no booking.cancel"
        yield case.warning("booking", "cancel", text, place)
    if mapped.reference is None:
        bad = True
        text = "no reference: after a lost answer a booking is known by its time and patient alone"
        remedy = "send the draft's reference in a field that is kept, and name it: reference"
        yield case.warning("booking", "reference", text, place, remedy=remedy)
    if not any(each.means == "slot taken" for each in case.core.mapping.backend.errors):
        bad = True
        text = (
            "no answer of the backend's means that a time is taken: a refusal says something else"
        )
        remedy = "write a rule under backend.errors that means slot taken"
        yield case.warning("booking", "taken", text, place, remedy=remedy)
    if not bad:
        text = "checked before and after; a clash is refused or withdrawn, a lost booking found"
        yield case.ok("booking", "clash", text)


async def _find(case: RestCase, session: RestSession) -> AsyncIterator[Finding]:
    draft = _draft(case)
    if draft is None:
        yield case.warning("booking", "find", "not tried: no appointment was seen to look for")
        return
    try:
        await case.core.bookings.find(session, draft, case.examination.now)
    except AdapterError as error:
        yield case.failed("booking", "find", short(error), ("booking", "find", "get"))
        return
    yield case.ok("booking", "find", "the call that looks for a booking answers")


def _draft(case: RestCase) -> Draft | None:
    """A draft like one of the appointments, with a reference of its own."""
    needed = ("patientId", "vetId", "scheduledAt")
    for each in case.samples.get("appointments", ()):
        if all(each[name] for name in needed):
            return Draft(
                client_id=each["clientId"] or "",
                patient_id=each["patientId"],
                vet_id=each["vetId"],
                scheduled_at=datetime.fromisoformat(each["scheduledAt"]),
                appointment_type_id=each["appointmentTypeId"],
                reason=None,
                is_urgent=False,
                now=case.examination.now,
                reference=NOBODYS,
            )
    return None


async def _rehearsal(case: RestCase) -> AsyncIterator[Finding]:
    text = "no booking was made: over HTTP there are no transactions, so none could be undone"
    remedy = "make one through the gateway on a test account, and cancel it at the desk"
    yield case.warning("booking", "rehearsal", text, remedy=remedy)
