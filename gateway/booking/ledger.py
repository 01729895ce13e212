"""The ledger: what was intended, sent, done, refused, or is not known, written before it happens.

One row per booking. A row with an Idempotency-Key keeps its outcome for a day: 201 and the
practice system's own 404 and 409; after any other outcome the key is free again. A row whose
outcome is not known is looked up in the practice system before anything is sent anew; an
appointment that another row holds is somebody else's.

Any number of processes write one ledger. Each row that is under way has an owner, a process, and a
claim, that process's work on it; what a dead owner left is taken over, and every later write of the
old claim is in vain.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime
from functools import partial
from math import ceil
from pathlib import Path
from secrets import token_hex
from typing import Any

from gateway.background import Periodic, WallClock
from gateway.booking.base import LEFT, Allowance, Booked, BookingRequest, LedgerRow, Outcome
from gateway.booking.claims import Claims
from gateway.booking.lookup import UnknownBookings
from gateway.booking.rows import KEPT, LedgerRows
from gateway.booking.takeover import Owners
from gateway.contract.errors import GatewayError, KeyReused, Unavailable
from gateway.events import Events
from gateway.store.base import Store, StoreError, in_time

TIDY_EVERY = 2.0  # seconds between two looks at what could not be written
PURGE_EVERY = 600.0  # and for what is old
HAND_IN_EVERY = 10.0  # and for rows of its own that it does not work on
# Seconds between two looks at a row that another process works on: the first, and the longest.
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.25


class Ledger:
    """Books through an adapter, once; `wait` is how long a second call waits for the first.

    `looks` is for how long a call looks for its booking after a lost answer, `lands` how long one
    takes at the most, all in seconds. `seen` is where the process that reconciles the ledger keeps
    since when rows are unknown.
    """

    def __init__(  # noqa: PLR0913 - all but three have a default
        self,
        store: Store,
        owners: Owners,
        events: Events,
        *,
        wait: float = 10.0,
        looks: float = 3.0,
        lands: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
        seen: Path | None = None,
    ) -> None:
        self._owners = owners
        self._wait = wait
        self._looks = max(1, ceil(looks))
        self.rows = rows = LedgerRows(store)
        self._unknown = unknown = UnknownBookings(rows, events, lands, clock, seen, owners.me)
        self._claims = Claims(rows, owners.me, looks, unknown, events)
        self._wall_clock = WallClock(clock)
        # claims that this process is working on: of its own rows any other was left behind
        self._running: dict[str, asyncio.Future[None]] = {}
        self._tasks: set[asyncio.Task[Booked | None]] = set()
        self._purged = -PURGE_EVERY
        self._handed_in = -HAND_IN_EVERY
        self._tidying: Periodic | None = None

    @property
    def waiting(self) -> int:
        """How many outcomes could not be written yet."""
        return self._claims.waiting

    def start(self, now: Callable[[], datetime]) -> None:
        """Tidy now and then, until `aclose`; where that fails the store's own probe says so."""
        self._tidying = Periodic(TIDY_EVERY, lambda: self.tidy(now()), name="tidy the ledger")
        self._tidying.start()

    async def aclose(self) -> None:
        """Write what is not written, where that is possible; what runs has ended before."""
        if self._tidying is not None:
            await self._tidying.aclose()
        with contextlib.suppress(StoreError):
            await self._claims.flush()

    async def tidy(self, now: datetime) -> None:
        """Write the outcomes that wait, hand in what was left, forget what is old. StoreError."""
        trusted = self._wall_clock.is_trusted(now)
        await self._claims.flush()
        at = asyncio.get_running_loop().time()
        if at - self._handed_in >= HAND_IN_EVERY:
            # rows of its own whose work ended, by whatever fault, are for whoever looks them up
            for row in await self.rows.between(self._owners.me):
                if row.owner is not None and await self._is_left(row):
                    await self.rows.abandon(row)
            self._handed_in = at
        if trusted and at - self._purged >= PURGE_EVERY:
            await self.rows.purge(now)
            self._purged = at

    async def book(self, request: BookingRequest) -> Booked:
        """The appointment, new or as it was made before.

        Raises BookingRefused for the practice system's 404 and 409; KeyReused; Unavailable where
        the ledger can't be written, the first call is still running, or nobody knows yet what came
        of another booking of that time, or of one that may use up the allowance; LimitExceeded;
        OutcomeUnknown; and what `check_time` and `check_key` raise, once it is certain that nothing
        was made before.
        """
        until = asyncio.get_running_loop().time() + self._wait
        while True:
            try:
                row = await self._claim(request, until)
            except StoreError as error:
                raise Unavailable(error.retry_after) from error
            if isinstance(row, Booked):
                return row
            # shielded: a caller who goes away leaves a booking that is finished, and known
            task = asyncio.create_task(self._claims.finish(request, row))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(partial(self._release, row.claim))
            booked = await asyncio.shield(task)
            if booked is not None:
                return booked

    async def check_allowance(self, key_id: str, allowance: Allowance, now: datetime) -> None:
        """LimitExceeded where the key has made its bookings and was told of them; Unavailable.

        It is for a call without an Idempotency-Key, which may still find a booking of its own.
        """
        try:
            made = await self.rows.made(key_id, allowance)
            if made >= allowance.most and await self.rows.has_untold(key_id):
                return
        except StoreError as error:
            raise Unavailable(error.retry_after) from error
        allowance.check(made, now)

    async def mark_untold(self, key_id: str, appointment_id: str) -> None:
        """Nobody was told of the booking: the same request finds it, also without a key."""
        with contextlib.suppress(StoreError):
            await self.rows.mark_untold(key_id, appointment_id)

    async def _claim(self, request: BookingRequest, until: float) -> Booked | LedgerRow:
        """An earlier outcome, or the row that this call is to work on."""
        pause = 0.0
        while True:
            row = await self._present(request)
            got = await (self._anew(request) if row is None else self._again(request, row))
            if isinstance(got, Booked) or (got is not None and got.mine):
                return got
            left = until - asyncio.get_running_loop().time()
            if left <= 0:
                raise Unavailable(1)
            running = None if got is None else self._running.get(got.claim)
            if running is None:
                await asyncio.sleep(min(pause, left))
            else:
                await asyncio.wait([running], timeout=left)
            pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, pause * 1.5))

    async def _anew(self, request: BookingRequest) -> LedgerRow | None:
        """A row of its own; or one to wait for; or None, to look again."""
        request.check_time()
        new = LedgerRow.intended(request, self._owners.me, self._begin())
        work = self.rows.insert(new, request, waits=not request.adapter.excludes)
        row = await self._gained(work, new, None)
        if row is None or row.mine:
            return row
        if not await self._is_left(row):
            if row.state == "unknown" and row.claim not in self._running:
                # another process looks it up for its own caller: to ask again and again is no help
                raise Unavailable(self._looks)
            return row
        if row.state == "unknown" and row.owner is None:
            await self._unknown.settle(row, request.adapter)
        else:
            await self.rows.abandon(row)
        return None

    async def _again(self, request: BookingRequest, row: LedgerRow) -> Booked | LedgerRow | None:
        """What came of an earlier call; or its row, to work on or to wait for; or None."""
        if row.fingerprint != request.fingerprint:
            raise KeyReused
        if row.is_settled:
            # one without a key is told once
            is_told_here = row.idempotency_digest is not None or await self.rows.tell(row)
            return row.outcome_again() if is_told_here else None
        if not await self._is_left(row):
            return row
        if row.state == "intended":  # nothing was sent: it is as if it had never been
            await self.rows.abandon(row)
            return None
        claim = self._begin()
        work = self.rows.take(row, self._owners.me, claim)
        return await self._gained(work, replace(row, claim=claim), LEFT)

    async def _present(self, request: BookingRequest) -> LedgerRow | None:
        """The row that counts for the request; one that is settled is forgotten after a day.

        For a day after the clock was set nothing is: it may have been only the clock that moved.
        Without a key it is one of the same request whose outcome nobody was told.
        """
        trusted = self._wall_clock.is_trusted(request.now())
        found = await self.rows.find(request)
        if any(map(self._claims.waits, found)):
            await self._claims.flush()
            found = await self.rows.find(request)
        for row in found:
            if request.idempotency_key is None:
                if row.state in ("unknown", "done") or await self._is_left(row):
                    return row
            elif trusted and row.is_settled and row.created_at <= request.now() - KEPT:
                await self.rows.purge(request.now())
            else:
                return row
        return None

    async def _is_left(self, row: LedgerRow) -> bool:
        """Whether nobody works on the row, or will."""
        if row.owner == self._owners.me:
            return row.claim not in self._running and not self._claims.waits(row)
        return row.owner is None or await self._owners.is_dead(row.owner)

    def _begin(self) -> str:
        claim = token_hex(16)
        self._running[claim] = asyncio.get_running_loop().create_future()
        return claim

    def _release(self, claim: str, _: object = None) -> None:
        self._running.pop(claim).set_result(None)

    async def _gained(
        self, work: Coroutine[Any, Any, LedgerRow | None], perhaps: LedgerRow, undone: Outcome
    ) -> LedgerRow | None:
        """What a transaction gives; where it is this claim's row, the claim goes on running.

        What may have been written all the same, unheard or too late, is `undone` then.
        """
        task, got = asyncio.ensure_future(work), None
        try:
            got = await in_time(task)
        except GatewayError:  # nothing was written
            raise
        except BaseException:
            self._claims.keep(perhaps, undone)
            task.add_done_callback(lambda _: self._claims.keep(perhaps, undone))
            raise
        finally:
            if got is None or not got.mine:
                self._release(perhaps.claim)
        return got
