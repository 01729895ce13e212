"""The ledger: writes what is intended, sent, done, refused or not known before it happens.

A booking has one row. A row with an Idempotency-Key keeps its outcome for a day: 201, and the
practice system's own 404 and 409. After any other outcome the key is free again. A row whose
outcome is not known is looked up in the practice system before anything is sent anew. An
appointment that another row holds is somebody else's.

Any number of processes write one ledger. Each row that is under way has an owner, a process, and a
claim, that process's work on it. What a dead owner left is taken over, and the old claim can write
no more. A process that lost a row, as it was stopped for long and taken for dead, reads the row
again. What cannot be written is kept until it can be.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
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
from gateway.booking.base import (
    Booked,
    BookingRefused,
    BookingRequest,
    LedgerRow,
    LostClaim,
    Outcome,
)
from gateway.booking.line import TAKEN, Lines, Turn
from gateway.booking.reconcile import UnknownBookings
from gateway.booking.rows import LedgerRows
from gateway.booking.takeover import Owners
from gateway.contract.errors import GatewayError, KeyReused, Unavailable
from gateway.events import Events
from gateway.store.base import Store, StoreError, in_time

# How long a repeated request gets the first one's outcome.
KEPT = timedelta(hours=24)
# How long the row of an appointment that was or may have been made is kept at least: it is never
# deleted before the appointment is over. The panel shows for as long how unknown bookings ended.
BOOKED_KEPT = timedelta(days=7)
# Seconds between two looks for outcomes that could not be written, for old rows, and for rows of
# this process on which it does not work.
TIDY_EVERY, PURGE_EVERY, HAND_IN_EVERY = 2.0, 600.0, 10.0
# Seconds between two looks at a row that another process works on: the first, and the longest.
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.25
# Rows that may or may not have been written, of which the latest are undone later.
MOST_DOUBTFUL = 1_000
# Seconds between looks for a booking whose answer was lost, while its caller waits.
_PAUSES = (0.05, 0.2, 0.4, 0.7, 1.0)
# Seconds that the new claim of a lost row has to come to an end.
WAIT = 10.0
# After these of an adapter's errors the appointment may have been made.
_MAYBE = OutcomeUnknown, BackendTimeout


@dataclass(eq=False)
class Ledger(Periodic):
    """Books through an adapter, once; a second call waits `wait` seconds for the first.

    `looks` is the seconds for which a call looks for its booking after a lost answer, `lands` the
    seconds that a booking takes at most. `seen` is the file in which the process that reconciles
    the ledger keeps since when rows are unknown.
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
        self._lines = Lines()
        self._unwritten: dict[str, tuple[LedgerRow, Outcome]] = {}
        # claims of calls that have let go of their rows before they end
        self._left: set[str] = set()
        self._writing = asyncio.Lock()
        self._wall_clock = WallClock(self.clock)
        # claims that this process works on: its rows with any other claim were left behind
        self._running: dict[str, asyncio.Future[Any]] = {}
        self._purged = -PURGE_EVERY
        self._handed_in = -HAND_IN_EVERY
        # where it fails, the store's own probe reports it
        super().__init__(TIDY_EVERY, lambda: self.tidy(self.now()), name="tidy the ledger")

    @property
    def waiting(self) -> int:
        """The number of outcomes that wait, but for those of rows that may not exist."""
        return sum(row.id is not None for row, _ in self._unwritten.values())

    async def aclose(self) -> None:
        """Writes what waits, where possible; the calls must have ended before."""
        await super().aclose()
        with suppress(StoreError):
            await self._flush()

    async def tidy(self, now: datetime) -> None:
        """Writes what waits, hands in what was left, forgets what is old. Raises StoreError."""
        trusted = self._wall_clock.is_trusted(now)
        await self._flush()
        at = asyncio.get_running_loop().time()
        if at - self._handed_in >= HAND_IN_EVERY:
            # rows of this process whose work ended by a fault are left to the reconciler
            for row in await self._rows.between(self.owners.me):
                if row.owner is not None and await self._is_left(row):
                    await self._rows.abandon(row)
            self._handed_in = at
        if trusted and at - self._purged >= PURGE_EVERY:
            await self._rows.purge(now, KEPT, BOOKED_KEPT)
            self._purged = at

    async def book(self, request: BookingRequest) -> Booked:
        """Returns the appointment, new or as it was made before.

        Raises BookingRefused for the practice system's 404 and 409, KeyReused, LimitExceeded and
        OutcomeUnknown. Raises Unavailable where the ledger cannot be written, where the first call
        still runs, and where nobody knows yet what came of another booking of that time, or of one
        that may use up the allowance. Raises what `check_time` and `check_key` raise, once it is
        certain that nothing was made before.
        """
        until = asyncio.get_running_loop().time() + self.wait
        while True:
            with self._lines.turn(request) as turn:
                try:
                    row = await self._claim(request, until, turn)
                except StoreError as error:
                    raise Unavailable(error.retry_after) from error
                if isinstance(row, Booked):
                    return row
                # shielded: where the caller goes away, the booking is finished all the same
                task = asyncio.create_task(self._finish(request, row))
                self._running[row.claim] = task
                task.add_done_callback(partial(self._running.pop, row.claim))
                turn.works(task)
                if (booked := await asyncio.shield(task)) is not None:
                    return booked

    async def check_allowance(self, key_id: str, allowance: base.Allowance, now: datetime) -> None:
        """Raises LimitExceeded where the key has made and heard of its bookings; Unavailable.

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
        """Notes that nobody was told of a booking, so that the same request finds it."""
        with suppress(StoreError):
            await self._rows.mark_untold(key_id, appointment_id)

    async def _claim(self, request: BookingRequest, until: float, turn: Turn) -> Booked | LedgerRow:
        """Returns an earlier outcome, or the row that this call is to work on."""
        pause, claim = 0.0, token_hex(16)
        while True:
            row = await self._present(request)
            got: Booked | LedgerRow | None
            if row is not None:
                got = await self._again(request, row, claim)
            elif not await turn.comes(until) and request.idempotency_key is None:
                continue  # it may have a row by now, which no constraint tells
            elif turn.is_taken:
                got = await self._taken(request, claim)
            else:
                got = await self._anew(request, claim)
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
        """Returns a row of its own, or one to wait for; None to look again."""
        request.check_time()
        new = LedgerRow.intended(request, self.owners.me, claim)
        work = self._rows.insert(new, request, waits=not request.adapter.excludes)
        row = await self._gained(work, new, None)
        if row is None or row.claim == claim:
            return row
        if not await self._is_left(row):
            if row.state == "unknown" and row.claim not in self._running:
                # another process looks it up for its own caller: asking again does not help
                raise Unavailable(max(1, ceil(self.looks)))
            return row
        if row.state == "unknown" and row.owner is None:
            await self._unknown.settle(row, request.adapter)
        else:
            await self._rows.abandon(row)
        return None

    async def _taken(self, request: BookingRequest, claim: str) -> LedgerRow | None:
        """Raises BookingRefused, as another call was just told that the time is taken.

        With an Idempotency-Key that is written first, in one transaction. Where another row is in
        its way, it returns what `_anew` does.
        """
        request.check_time()
        request.check_key()
        if request.idempotency_key is not None:
            intended = LedgerRow.intended(request, self.owners.me, claim)
            values = base.refused(TAKEN) | {"ends_at": intended.ends_at}
            new = replace(intended, **values)
            row = await self._gained(self._rows.insert(new, request, waits=False), new, None)
            if row is None:
                return None
            if row.claim != claim:
                return await self._anew(request, claim)
            del self._running[claim]
        raise BookingRefused(TAKEN, replayed=False)

    async def _again(
        self, request: BookingRequest, row: LedgerRow, claim: str
    ) -> Booked | LedgerRow | None:
        """Returns an earlier call's outcome, or its row to work on or await; None to look again."""
        if row.fingerprint != request.fingerprint:
            raise KeyReused
        if row.is_settled:
            # the outcome of a row without a key is told once
            is_told_here = row.idempotency_digest is not None or await self._rows.tell(row)
            return row.outcome_again() if is_told_here else None
        if not await self._is_left(row):
            return row
        if row.state == "intended":  # nothing was sent
            await self._rows.abandon(row)
            return None
        work = self._rows.take(row, self.owners.me, claim)
        return await self._gained(work, replace(row, claim=claim), base.LEFT)

    async def _present(self, request: BookingRequest) -> LedgerRow | None:
        """Returns the row that counts for the request; forgets a settled one after a day.

        It forgets nothing for a day after the clock was set. Without a key the row is one of the
        same request whose outcome nobody was told.
        """
        trusted = self._wall_clock.is_trusted(request.now())
        rows = await self._rows.find(request)
        if any(row.claim in self._unwritten for row in rows):
            await self._flush()
            rows = await self._rows.find(request)
        for row in rows:
            if request.idempotency_key is None:
                if row.state in ("unknown", "done") or await self._is_left(row):
                    return row
            elif trusted and row.is_settled and row.created_at <= request.now() - KEPT:
                await self._rows.purge(request.now(), KEPT, BOOKED_KEPT)
            else:
                return row
        return None

    async def _is_left(self, row: LedgerRow) -> bool:
        """Returns whether nobody works on the row, or will."""
        if row.owner == self.owners.me:
            return row.claim not in self._running and row.claim not in self._unwritten
        return row.owner is None or await self.owners.is_dead(row.owner)

    async def _gained(
        self, work: Coroutine[Any, Any, LedgerRow | None], perhaps: LedgerRow, undone: Outcome
    ) -> LedgerRow | None:
        """Returns the row of a transaction; where it is this claim's, the claim goes on running.

        What may have been written in spite of an error is `undone` later.
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
        """Keeps an outcome until it can be written; of rows that may not exist the latest 1,000."""
        if row.id is None:
            doubtful = [claim for claim, (kept, _) in self._unwritten.items() if kept.id is None]
            for claim in doubtful[: len(doubtful) + 1 - MOST_DOUBTFUL]:
                del self._unwritten[claim]
        self._unwritten[row.claim] = (row, outcome)

    async def _flush(self) -> None:
        # one at a time: a late second write would undo what a retry has since made of a row
        async with self._writing:
            for claim, (row, outcome) in list(self._unwritten.items()):
                with suppress(LostClaim):
                    await self._rows.write(row, outcome)
                if self._unwritten.get(claim) == (row, outcome):
                    del self._unwritten[claim]

    async def _finish(self, request: BookingRequest, row: LedgerRow) -> Booked | None:
        """Books as `book`; returns None where another took the row before anything was sent."""
        request = replace(request, draft=replace(request.draft, reference=row.reference))
        sends, undone = False, None if row.state == "intended" else base.LEFT
        try:
            if booked := await self._left_behind(request, row):
                return booked
            undone = None
            await self._begin(request, row)
            sends, undone = True, base.LEFT
            return await self._send(request, row)
        except LostClaim as lost:
            return None if lost.outcome is None else await self._lost(row, lost.outcome)
        except BookingRefused:
            raise
        except BaseException as error:  # what was settled before the error stays
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
        """Writes as LedgerRows.write; keeps what cannot be written now, and returns True.

        Raises LostClaim, with what the claim `knows`. Where this process ends before the writing,
        the row is looked up like any that was left behind.
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
        """Settles the row where it is still its claim's."""
        with suppress(LostClaim):
            await self._settle(row, outcome)
        self._left.add(row.claim)

    async def _begin(self, request: BookingRequest, row: LedgerRow) -> None:
        """Marks the row as sent, after the last checks of the time and the key."""
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
        """Returns what an earlier attempt made; raises OutcomeUnknown while it may still do so."""
        if row.state == "intended":
            return None
        # before the look-up: its answer may be older than that
        is_over = self._unknown.left(request.adapter, row) == 0
        record = await self._unknown.find(row, request.adapter, request.draft)
        if record is None and not is_over:
            raise OutcomeUnknown("an attempt of another process may still be at work")
        return None if record is None else Booked(record, replayed=True)

    async def _refused(
        self, request: BookingRequest, row: LedgerRow, error: NotFound | SlotTaken
    ) -> Booked:
        """Raises BookingRefused, or returns our own earlier attempt where that took the time.

        Raises Unavailable where an unknown booking of ours may have taken the time. It does so too
        where the refusal of a key is not written: the next attempt may be told something else.
        """
        if isinstance(error, SlotTaken):
            if booked := await self._left_behind(request, row):
                return booked
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
        raise BookingRefused(name, replayed=False) from error

    async def _not_known(self, request: BookingRequest, row: LedgerRow, error: Exception) -> Booked:
        """Looks for what was sent for a while; raises OutcomeUnknown where it is not found."""
        await self._settle(row, {"state": "unknown"}, knows=base.LEFT)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.looks):
                for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
                    await asyncio.sleep(pause)
                    with suppress(OutcomeUnknown, StoreError):
                        record = await self._unknown.find(row, request.adapter, request.draft)
                        if record is not None:
                            return Booked(record, replayed=False)
                        if request.adapter.excludes:
                            break
        await self._leave(row, base.LEFT)
        text = "the adapter failed in the middle of a booking"
        raise OutcomeUnknown(str(error) if isinstance(error, _MAYBE) else text) from error

    async def _lost(self, row: LedgerRow, outcome: Mapping[str, Any]) -> Booked | None:
        """Returns what a lost row says now, with what its first claim knows; None to begin anew.

        A row that is gone is written anew, unless its key has another by now. Raises
        BookingRefused, OutcomeUnknown, and Unavailable while another process works on the row.
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
