# ruff: noqa: S101 - it is made of asserts
"""Failures: a practice system that is down, slow or talks nonsense, and callers who leave."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Set

import pytest

from adapters.base import (
    Adapter,
    AdapterError,
    BackendNonsense,
    BackendTimeout,
    BackendUnavailable,
    Draft,
    OutcomeUnknown,
    Watched,
)
from adapters.conformance.asking import Asking
from adapters.conformance.practice import Practice, needs

READ = (BackendUnavailable, BackendTimeout, BackendNonsense)
BOOKED = (BackendUnavailable, BackendTimeout, BackendNonsense, OutcomeUnknown)
GRACE = 1.5  # seconds: a slow machine is no fault of the adapter's
MANY = 40
Ask = Callable[[], Awaitable[object]]


class Failures:
    """What every adapter promises when the practice system does not."""

    @needs("stop", "mend")
    async def test_a_practice_system_that_is_down_is_said_to_be_so_until_it_is_back(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        await _ails(practice, adapter, practice.stop)

    @needs("slow", "mend")
    async def test_a_slow_practice_system_costs_no_more_than_the_patience(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        await _ails(practice, adapter, practice.slow)

    @needs("garble", "mend")
    async def test_nonsense_is_said_to_be_so(self, practice: Practice, adapter: Adapter) -> None:
        """Whether a booking was written over may then be left open, and be asked again later."""
        await _ails(practice, adapter, practice.garble, lenient={"find_overwritten"})

    async def test_callers_who_leave_keep_nothing(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        for pause in (0.0, 0.001, 0.01):
            reads = [asyncio.create_task(asking.some("invoices")) for _ in range(MANY)]
            await asyncio.sleep(pause)
            for read in reads:
                read.cancel()
            await asyncio.gather(*reads, return_exceptions=True)
        async with asyncio.timeout(2 * practice.patience + GRACE):
            assert await asking.some("invoices")

    async def test_many_callers_at_once_are_all_answered(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        clients = [each["id"] for each in await asking.some("clients", limit=MANY)]
        async with asyncio.timeout(2 * practice.patience + GRACE):
            found = await asyncio.gather(*(asking.one("clients", each) for each in clients))
        assert [each["id"] for each in found] == clients


async def _ails(
    practice: Practice,
    adapter: Adapter,
    begin: Callable[[], Awaitable[None]],
    lenient: Set[str] = frozenset(),
) -> None:
    """While it ails every verb says so, in time and in no driver's words; then it is as before.

    The `lenient` may answer with nothing.
    """
    asking = Asking(practice, adapter)
    draft = await asking.draft()
    known = (await asking.some("appointments", limit=1))[0]["id"]
    await begin()
    await practice.settle()
    reads: dict[str, Ask] = {
        "ping": adapter.ping,
        "read_one": lambda: asking.one("clients", draft.client_id),
        "read_many": lambda: asking.some("invoices"),
        "slots": lambda: asking.slots(draft.vet_id, draft.scheduled_at.date()),
        "find_overwritten": lambda: adapter.find_overwritten([known]),
    }
    await asyncio.gather(
        *(
            _raises(name, ask, READ, practice.patience, empty=name in lenient)
            for name, ask in reads.items()
        ),
        _books_nothing(practice, adapter, draft),
    )
    await _recovers(practice, adapter, draft)


async def _books_nothing(practice: Practice, adapter: Adapter, draft: Draft) -> None:
    def book() -> Awaitable[object]:
        return adapter.create_appointment(draft)

    error = await _raises("create_appointment", book, BOOKED, 2 * practice.patience)
    assert "Limps" not in str(error), "an error's text quotes what was to be written"


async def _raises(
    name: str,
    ask: Ask,
    kinds: tuple[type[AdapterError], ...],
    patience: float,
    *,
    empty: bool = False,
) -> AdapterError | None:
    begun = time.monotonic()
    try:
        answer = await ask()
    except kinds as error:
        took = time.monotonic() - begun
        assert took <= patience + GRACE, f"{name} failed after {took:.1f} s only"
        return error
    except Exception as error:  # noqa: BLE001 - whatever else it is, it is wrong
        pytest.fail(f"{name} raised {type(error).__module__}.{type(error).__name__}: {error}")
    if empty and isinstance(answer, Watched) and not answer.overwritten:
        return None
    pytest.fail(f"{name} answered {type(answer).__name__} instead of raising")


async def _recovers(practice: Practice, adapter: Adapter, draft: Draft) -> None:
    """It answers again, and the booking that failed has left either nothing or all of itself."""
    await practice.mend()
    await practice.settle()
    await adapter.ping()
    asking = Asking(practice, adapter)
    assert await asking.one("clients", draft.client_id)
    left = list(await adapter.find_appointments(draft, draft.now))
    assert len(left) <= 1
    starts = await asking.starts(draft.vet_id, draft.scheduled_at.astimezone(practice.zone).date())
    assert (draft.scheduled_at in starts) is (not left)
    made = left[0] if left else await adapter.create_appointment(draft)
    assert await asking.one("appointments", made["id"]) == made
