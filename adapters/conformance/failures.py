# ruff: noqa: S101 - it is made of asserts
"""Tests adapters whose practice system is down, slow or talks nonsense, or whose callers leave."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Set

import pytest

from adapters import base
from adapters.conformance.practice import Probe, needs

READ = (base.BackendUnavailable, base.BackendTimeout, base.BackendNonsense)
BOOKED = (*READ, base.OutcomeUnknown)
BOOKING = "create_appointment"
GRACE = 1.5  # seconds: a slow machine is no fault of the adapter's
MANY = 40
Ask = Callable[[], Awaitable[object]]


class FailurePromises:
    """Tests of what every adapter promises when the practice system fails."""

    @needs("stop", "mend")
    async def test_a_system_that_is_down_is_reported_until_it_is_back(self, probe: Probe) -> None:
        await _fails_and_recovers(probe, probe.practice.stop)

    @needs("slow", "mend")
    async def test_a_slow_system_costs_no_more_than_the_patience(self, probe: Probe) -> None:
        await _fails_and_recovers(probe, probe.practice.slow)

    @needs("garble", "mend")
    async def test_nonsense_is_said_to_be_so(self, probe: Probe) -> None:
        """Whether a booking is overwritten may be left open, and be asked again later."""
        await _fails_and_recovers(probe, probe.practice.garble, lenient={"find_overwritten"})

    async def test_callers_who_leave_keep_nothing(self, probe: Probe) -> None:
        for pause in (0.0, 0.001, 0.01):
            reads = [asyncio.create_task(probe.some("invoices")) for _ in range(MANY)]
            await asyncio.sleep(pause)
            for read in reads:
                read.cancel()
            await asyncio.gather(*reads, return_exceptions=True)
        async with asyncio.timeout(2 * probe.practice.patience + GRACE):
            assert await probe.some("invoices")

    async def test_many_callers_at_once_are_all_answered(self, probe: Probe) -> None:
        clients = [client["id"] for client in await probe.some("clients", limit=MANY)]
        async with asyncio.timeout(2 * probe.practice.patience + GRACE):
            records = await asyncio.gather(*(probe.one("clients", client) for client in clients))
        assert [record["id"] for record in records] == clients


async def _fails_and_recovers(
    probe: Probe, begin: Callable[[], Awaitable[None]], lenient: Set[str] = frozenset()
) -> None:
    """Asserts that every verb fails in time after `begin`, and that all works again once mended.

    The verbs in `lenient` may answer with nothing. The failed booking is left whole or not at all.
    """
    draft = await probe.draft()
    known = (await probe.some("appointments", limit=1))[0]["id"]
    await probe.settled(begin())
    asks: dict[str, Ask] = {
        "ping": probe.adapter.ping,
        "read_one": lambda: probe.one("clients", draft.client_id),
        "read_many": lambda: probe.some("invoices"),
        "slots": lambda: probe.slots(draft.vet_id, draft.scheduled_at.date()),
        "find_overwritten": lambda: probe.adapter.find_overwritten([known]),
        BOOKING: lambda: probe.adapter.create_appointment(draft),
    }
    patience = probe.practice.patience
    raised = (_raised(name, ask, patience, empty=name in lenient) for name, ask in asks.items())
    for error in await asyncio.gather(*raised):
        assert "Limps" not in str(error), "an error's text quotes what was to be written"
    await probe.settled(probe.practice.mend())
    await probe.adapter.ping()
    assert await probe.one("clients", draft.client_id)
    left = await probe.bookings_of(draft)
    assert len(left) <= 1
    assert (draft.scheduled_at in await probe.offered(draft)) is (not left)
    made = left[0] if left else await probe.adapter.create_appointment(draft)
    assert await probe.one("appointments", made["id"]) == made


async def _raised(name: str, ask: Ask, patience: float, *, empty: bool) -> base.AdapterError | None:
    """Returns the error that a verb raises in time; None for an empty answer where that may be."""
    # a booking has twice the patience, and may leave its outcome open
    begun, books = time.monotonic(), name == BOOKING
    kinds = BOOKED if books else READ
    try:
        answer = await ask()
    except kinds as error:
        took = time.monotonic() - begun
        assert took <= (1 + books) * patience + GRACE, f"{name} failed after {took:.1f} s only"
        return error
    except Exception as error:  # noqa: BLE001 - whatever else it is, it is wrong
        pytest.fail(f"{name} raised {type(error).__module__}.{type(error).__name__}: {error}")
    if empty and isinstance(answer, base.Watched) and not answer.overwritten:
        return None
    pytest.fail(f"{name} answered {type(answer).__name__} instead of raising")
