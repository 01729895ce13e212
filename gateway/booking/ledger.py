"""The ledger: what was intended, sent, done, refused, or is not known, written before it happens.

One row per booking. A row with an Idempotency-Key keeps its outcome for a day: 201 and the
practice system's own 404 and 409; after any other outcome the key is free again. A row whose
outcome is not known is looked up in the practice system before anything is sent anew; an
appointment that another row holds is somebody else's.

Any number of processes write one ledger. Each row that is under way has an owner, a process, and a
claim, that process's work on it; what a dead owner left is taken over, and every later write of the
old claim is in vain. A row that its claim has lost, as that of a process that was stopped for long
and taken for dead, is read again. What could not be written is kept until it can be.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain, repeat
from math import ceil
from pathlib import Path
from secrets import token_hex
from typing import Any

import orjson

from adapters.base import AdapterError, BackendTimeout, NotFound, OutcomeUnknown, SlotTaken
from gateway.background import Periodic, WallClock
from gateway.booking import base
from gateway.booking.base import Booked, BookingRequest, LedgerRow, LostClaim, Outcome
from gateway.booking.reconcile import UnknownBookings
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
# Rows that may or may not have been written, of which the last are undone later.
MOST_DOUBTFUL = 1_000
# Seconds between looks for a booking whose answer was lost, while its caller waits.
_PAUSES = (0.05, 0.2, 0.4, 0.7, 1.0)
# Seconds that the new claim of a lost row has to come to an end.
WAIT = 10.0
# After these of an adapter's errors the appointment may have been made.
_MAYBE = OutcomeUnknown, BackendTimeout


@dataclass(eq=False)
class Ledger(Periodic):
    """Books through an adapter, once; `wait` is how long a second call waits for the first.

    `looks` is for how long a call looks for its booking after a lost answer, `lands` how long one
    takes at the most, all in seconds. `seen` is where the process that reconciles the ledger keeps
    since when rows are unknown.
    """

    store: Store
    owners: Owners
    events: Events
    now: Callable[[], datetime]
    wait: float = 10.0
    looks: float = 3.0
    lands: float = 15.0
    clock: Callable[[], float] = time.monotonic
    seen: Path | None = None

    def __post_init__(self) -> None:
        self._rows, me = LedgerRows(self.store), self.owners.me
        self._unknown = UnknownBookings(
            self._rows, self.events, self.lands, self.clock, self.seen, me
        )
        self._unwritten: dict[str, tuple[LedgerRow, Outcome]] = {}
        # claims of calls that have let go of their rows before they end
        self._left: set[str] = set()
        self._writing = asyncio.Lock()
        self._wall_clock = WallClock(self.clock)
        # claims that this process is working on: of its own rows any other was left behind
        self._running: dict[str, asyncio.Future[Any]] = {}
        self._purged = -PURGE_EVERY
        self._handed_in = -HAND_IN_EVERY
        # where it fails the store's own probe says so
        super().__init__(TIDY_EVERY, lambda: self.tidy(self.now()), name="tidy the ledger")

    @property
    def waiting(self) -> int:
        """How many outcomes wait; of rows that may never have been written nobody knows."""
        return sum(row.id is not None for row, _ in self._unwritten.values())

    async def aclose(self) -> None:
        """Write what is not written, where that is possible; what runs has ended before."""
        await super().aclose()
        with suppress(StoreError):
            await self._flush()

    async def tidy(self, now: datetime) -> None:
        """Write the outcomes that wait, hand in what was left, forget what is old. StoreError."""
        trusted = self._wall_clock.is_trusted(now)
        await self._flush()
        at = asyncio.get_running_loop().time()
        if at - self._handed_in >= HAND_IN_EVERY:
            # rows of its own whose work ended, by whatever fault, are for whoever looks them up
            for row in await self._rows.between(self.owners.me):
                if row.owner is not None and await self._is_left(row):
                    await self._rows.abandon(row)
            self._handed_in = at
        if trusted and at - self._purged >= PURGE_EVERY:
            await self._rows.purge(now)
            self._purged = at

    async def book(self, request: BookingRequest) -> Booked:
        """The appointment, new or as it was made before.

        Raises BookingRefused for the practice system's 404 and 409; KeyReused; Unavailable where
        the ledger can't be written, the first call is still running, or nobody knows yet what came
        of another booking of that time, or of one that may use up the allowance; LimitExceeded;
        OutcomeUnknown; and what `check_time` and `check_key` raise, once it is certain that nothing
        was made before.
        """
        until = asyncio.get_running_loop().time() + self.wait
        while True:
            try:
                row = await self._claim(request, until)
            except StoreError as error:
                raise Unavailable(error.retry_after) from error
            if isinstance(row, Booked):
                return row
            # shielded: a caller who goes away leaves a booking that is finished, and known
            task = asyncio.create_task(self._finish(request, row))
            self._running[row.claim] = task
            task.add_done_callback(partial(self._running.pop, row.claim))
            if (booked := await asyncio.shield(task)) is not None:
                return booked

    async def check_allowance(self, key_id: str, allowance: base.Allowance, now: datetime) -> None:
        """LimitExceeded where the key has made its bookings and was told of them; Unavailable.

        It is for a call without an Idempotency-Key, which may still find a booking of its own.
        """
        try:
            made = await self._rows.made(key_id, allowance)
            if made >= allowance.most and await self._rows.has_untold(key_id):
                return
        except StoreError as error:
            raise Unavailable(error.retry_after) from error
        allowance.check(made, now)

    async def mark_untold(self, key_id: str, appointment_id: str) -> None:
        """Nobody was told of the booking: the same request finds it, also without a key."""
        with suppress(StoreError):
            await self._rows.mark_untold(key_id, appointment_id)

    async def _claim(self, request: BookingRequest, until: float) -> Booked | LedgerRow:
        """An earlier outcome, or the row that this call is to work on."""
        pause, claim = 0.0, token_hex(16)
        while True:
            row = await self._present(request)
            if row is None:
                got: Booked | LedgerRow | None = await self._anew(request, claim)
            else:
                got = await self._again(request, row, claim)
            if isinstance(got, Booked) or (got is not None and got.claim == claim):
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

    async def _anew(self, request: BookingRequest, claim: str) -> LedgerRow | None:
        """A row of its own; or one to wait for; or None, to look again."""
        request.check_time()
        new = LedgerRow.intended(request, self.owners.me, claim)
        work = self._rows.insert(new, request, waits=not request.adapter.excludes)
        row = await self._gained(work, new, None)
        if row is None or row.claim == claim:
            return row
        if not await self._is_left(row):
            if row.state == "unknown" and row.claim not in self._running:
                # another process looks it up for its own caller: to ask again and again is no help
                raise Unavailable(max(1, ceil(self.looks)))
            return row
        if row.state == "unknown" and row.owner is None:
            await self._unknown.settle(row, request.adapter)
        else:
            await self._rows.abandon(row)
        return None

    async def _again(
        self, request: BookingRequest, row: LedgerRow, claim: str
    ) -> Booked | LedgerRow | None:
        """What came of an earlier call; or its row, to work on or to wait for; or None."""
        if row.fingerprint != request.fingerprint:
            raise KeyReused
        if row.is_settled:
            # one without a key is told once
            is_told_here = row.idempotency_digest is not None or await self._rows.tell(row)
            return row.outcome_again() if is_told_here else None
        if not await self._is_left(row):
            return row
        if row.state == "intended":  # nothing was sent: it is as if it had never been
            await self._rows.abandon(row)
            return None
        work = self._rows.take(row, self.owners.me, claim)
        return await self._gained(work, replace(row, claim=claim), base.LEFT)

    async def _present(self, request: BookingRequest) -> LedgerRow | None:
        """The row that counts for the request; one that is settled is forgotten after a day.

        For a day after the clock was set nothing is: it may have been only the clock that moved.
        Without a key it is one of the same request whose outcome nobody was told.
        """
        trusted = self._wall_clock.is_trusted(request.now())
        found = await self._rows.find(request)
        if any(row.claim in self._unwritten for row in found):
            await self._flush()
            found = await self._rows.find(request)
        for row in found:
            if request.idempotency_key is None:
                if row.state in ("unknown", "done") or await self._is_left(row):
                    return row
            elif trusted and row.is_settled and row.created_at <= request.now() - KEPT:
                await self._rows.purge(request.now())
            else:
                return row
        return None

    async def _is_left(self, row: LedgerRow) -> bool:
        """Whether nobody works on the row, or will."""
        if row.owner == self.owners.me:
            return row.claim not in self._running and row.claim not in self._unwritten
        return row.owner is None or await self.owners.is_dead(row.owner)

    async def _gained(
        self, work: Coroutine[Any, Any, LedgerRow | None], perhaps: LedgerRow, undone: Outcome
    ) -> LedgerRow | None:
        """What a transaction gives; where it is this claim's row, the claim goes on running.

        What may have been written all the same, unheard or too late, is `undone` then.
        """
        task, got, claim = asyncio.ensure_future(work), None, perhaps.claim
        self._running[claim] = task
        try:
            got = await in_time(task)
        except GatewayError:  # nothing was written
            raise
        except BaseException:
            self._keep(perhaps, undone)
            task.add_done_callback(lambda _: self._keep(perhaps, undone))
            raise
        finally:
            if got is None or got.claim != claim:
                del self._running[claim]
        return got

    def _keep(self, row: LedgerRow, outcome: Outcome) -> None:
        """Write it when the rest is; of rows that may never have been written only so many."""
        if row.id is None:
            doubtful = [claim for claim, (kept, _) in self._unwritten.items() if kept.id is None]
            for claim in doubtful[: len(doubtful) + 1 - MOST_DOUBTFUL]:
                del self._unwritten[claim]
        self._unwritten[row.claim] = (row, outcome)

    async def _flush(self) -> None:
        """Write what waits. StoreError."""
        # one at a time: a second that came late would undo what a retry has made of a row since
        async with self._writing:
            for claim, (row, outcome) in list(self._unwritten.items()):
                with suppress(LostClaim):
                    await self._rows.write(row, outcome)
                if self._unwritten.get(claim) == (row, outcome):
                    del self._unwritten[claim]

    async def _finish(self, request: BookingRequest, row: LedgerRow) -> Booked | None:
        """As `book`; None where another has taken the row before anything was sent.

        Where it ends without an outcome, the row is left as `undone` then says.
        """
        request = replace(request, draft=replace(request.draft, reference=row.reference))
        sends, undone = False, None if row.state == "intended" else base.LEFT
        try:
            if found := await self._left_behind(request, row):
                return found
            undone = None
            await self._begin(request, row)
            sends, undone = True, base.LEFT
            return await self._send(request, row)
        except LostClaim as lost:
            return None if lost.outcome is None else await self._lost(row, lost.outcome)
        except base.BookingRefused:
            raise
        except BaseException as error:  # what was settled before it stays
            if row.claim not in self._left and row.claim not in self._unwritten:
                await self._leave(row, undone)
            if isinstance(error, StoreError):
                raise Unavailable(error.retry_after) from error
            is_fault = not isinstance(error, AdapterError | GatewayError)
            if sends and is_fault and isinstance(error, Exception):
                raise OutcomeUnknown("the gateway failed in the middle of a booking") from error
            raise
        finally:
            self._left.discard(row.claim)

    async def _settle(self, row: LedgerRow, outcome: Outcome, knows: Outcome = None) -> bool:
        """As LedgerRows.write, but where it can't be written now it is kept and written later.

        What happened has happened. Should this process end before, the row is looked up like any
        that was left behind. LostClaim, with what the claim `knows`.
        """
        try:
            return await self._rows.write(row, outcome)
        except LostClaim as lost:
            lost.outcome = knows
            raise
        except StoreError as error:
            self._keep(row, outcome)
            self.events.report("outcome_waits", error)
            return True

    async def _leave(self, row: LedgerRow, outcome: Outcome) -> None:
        """Settle the row where it is still its claim's."""
        with suppress(LostClaim):
            await self._settle(row, outcome)
        self._left.add(row.claim)

    async def _begin(self, request: BookingRequest, row: LedgerRow) -> None:
        """The row says from now on that it is sent, where it still may be."""
        if row.state != "intended":
            request.check_time()
        request.check_key()
        me, at = self.owners.me, request.now()
        await self._rows.write(row, {"state": "sent", "owner": me, "sender": me, "sent_at": at})

    async def _send(self, request: BookingRequest, row: LedgerRow) -> Booked:
        try:
            record = await request.adapter.create_appointment(request.draft)
        except (NotFound, SlotTaken) as error:
            return await self._refused(request, row, error)
        except Exception as error:
            if isinstance(error, AdapterError) and not isinstance(error, _MAYBE):
                await self._leave(row, None)
                raise
            # a fault says nothing about what was written
            return await self._not_known(request, row, error)
        outcome = base.done(record)
        if not await self._settle(row, outcome, knows=outcome):
            raise OutcomeUnknown(base.ANOTHERS)
        return Booked(record, replayed=False)

    async def _left_behind(self, request: BookingRequest, row: LedgerRow) -> Booked | None:
        """What an earlier attempt left; OutcomeUnknown where it may still leave something."""
        if row.state == "intended":
            return None
        # before it is asked: the answer may be older
        is_over = self._unknown.left(request.adapter, row) == 0
        found = await self._unknown.find(row, request.adapter, request.draft)
        if found is None and not is_over:
            raise OutcomeUnknown("an attempt of another process may still be at work")
        return None if found is None else Booked(found, replayed=True)

    async def _refused(
        self, request: BookingRequest, row: LedgerRow, error: NotFound | SlotTaken
    ) -> Booked:
        """The practice system's no, unless it is our own earlier attempt that took the time.

        Unavailable where the time may be taken by a booking of ours that nobody knows of yet; and
        where the no is to stick and is not written: should this process end before, the next
        attempt may be told something else.
        """
        if isinstance(error, SlotTaken):
            if found := await self._left_behind(request, row):
                return found
            try:
                for other in await self._rows.in_doubt(row):
                    await self._unknown.settle(other, request.adapter)
            except (GatewayError, StoreError):
                await self._leave(row, None)
                raise
        name = type(error).__name__
        kept = request.idempotency_key is not None
        await self._settle(row, base.refused(name) if kept else None)
        if kept and row.claim in self._unwritten:
            raise Unavailable(1) from error
        raise base.BookingRefused(name, replayed=False) from error

    async def _not_known(self, request: BookingRequest, row: LedgerRow, error: Exception) -> Booked:
        """What was sent is looked up for a while; OutcomeUnknown where it is not found."""
        await self._settle(row, {"state": "unknown"}, knows=base.LEFT)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.looks):
                for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
                    await asyncio.sleep(pause)
                    with suppress(OutcomeUnknown, StoreError):
                        found = await self._unknown.find(row, request.adapter, request.draft)
                        if found is not None:
                            return Booked(found, replayed=False)
                        if request.adapter.excludes:
                            break
        await self._leave(row, base.LEFT)
        is_told = isinstance(error, _MAYBE)
        why = str(error) if is_told else "the adapter failed in the middle of a booking"
        raise OutcomeUnknown(why) from error

    async def _lost(self, row: LedgerRow, outcome: Mapping[str, Any]) -> Booked | None:
        """What a lost row says now, with what its first claim knows; None: begin anew.

        A row that is gone is written anew; where its key has another by now, that one answers.
        BookingRefused; OutcomeUnknown; Unavailable while another is still at work on it.
        """
        until = asyncio.get_running_loop().time() + WAIT
        try:
            while (now := await self._rows.read(row)) is not None:
                if now.is_settled:
                    self._compare(now, outcome)
                    return now.outcome_again()
                if now.owner is None:
                    with suppress(LostClaim):
                        return _booked(outcome, is_own=await self._rows.write(now, outcome))
                if asyncio.get_running_loop().time() >= until:
                    raise Unavailable(1)
                await asyncio.sleep(LONGEST_PAUSE)
            return _booked(outcome, is_own=await self._rows.restore(row, outcome))
        except LostClaim:
            self._compare(row, outcome)
            return None
        except StoreError as error:
            raise OutcomeUnknown("the ledger can't be asked what became of a booking") from error

    def _compare(self, now: LedgerRow, outcome: Mapping[str, Any]) -> None:
        made = outcome.get("appointment_id")
        if made is not None and made != now.appointment_id:
            self.events.report("booked_twice", appointment=made)


def _booked(outcome: Mapping[str, Any], *, is_own: bool) -> Booked:
    if not is_own:
        raise OutcomeUnknown(base.ANOTHERS)
    if outcome == base.LEFT:
        raise OutcomeUnknown("the booking was sent by a process that was taken for dead")
    return Booked(orjson.loads(outcome["record"]), replayed=False)
