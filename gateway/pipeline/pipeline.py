"""The road: one function holds the order of the checks, each value is what the next line needs."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from time import monotonic
from urllib.parse import urlencode

from adapters.base import Adapter, AdapterError, Page, Record
from gateway.audit.buffer import EVERY, Buffer, Unwritten
from gateway.audit.entries import BEGUN, Entry
from gateway.booking.base import BookingRefused
from gateway.contract.errors import GatewayError, NotFound, Unavailable
from gateway.contract.operations import CURSOR, LIMIT, OPERATIONS, Operation, Param
from gateway.contract.window import BookingWindow
from gateway.keys.base import KeysBehind
from gateway.keys.key import Key
from gateway.keys.ring import KeyRing
from gateway.limits.base import Limiter
from gateway.pipeline.authenticate import authenticate
from gateway.pipeline.authorize import authorize
from gateway.pipeline.call import Call, Reply
from gateway.pipeline.cursor import Cursors, bound_to
from gateway.pipeline.forward import (
    Asker,
    Booker,
    Ledger,
    Others,
    booking_error,
    refusal,
    translated,
)
from gateway.pipeline.redact import others_for, redact, redactor_for
from gateway.pipeline.shed import Gate
from gateway.pipeline.throttle import throttle
from gateway.pipeline.validate import Reader, Values
from gateway.policy.policy import Policy
from gateway.policy.redactor import Redactor

# Bytes of a page, where it has more than one record: who reads slowly holds no more than that.
PAGE_BYTES = 1024 * 1024


class Road:
    """What one operation needs on its way, made once."""

    __slots__ = ("asker", "operation", "reader")

    def __init__(self, operation: Operation, adapter: Adapter, cursors: Cursors) -> None:
        self.operation = operation
        self.reader = Reader(operation, lambda param: servable(operation, param, adapter), cursors)
        self.asker = Asker(operation, adapter)


def servable(operation: Operation, param: Param, adapter: Adapter) -> bool:
    """Whether the practice system can serve a filter."""
    if param.match is None:
        return True
    return adapter.filterable.get(operation.returns.name, frozenset()).issuperset(param.fields)


class Pipeline:
    """Takes calls from the key to the reply; every failure is a GatewayError, or our own fault."""

    def __init__(  # noqa: PLR0913 - a road has that many parts
        self,
        *,
        keys: KeyRing,
        limiter: Limiter,
        policy: Callable[[], Policy],
        adapter: Adapter,
        ledger: Ledger,
        window: BookingWindow,
        cursors: Cursors,
        now: Callable[[], datetime],
        gate: Gate,
        audit: Buffer,
    ) -> None:
        self._audit = audit
        self._gate = gate
        self._keys = keys
        self._limiter = limiter
        self._policy = policy
        self._booker = Booker(ledger, adapter, window, now)
        self._cursors = cursors
        self._now = now
        self._roads = {each.id: Road(each, adapter, cursors) for each in OPERATIONS}

    def crowded(self, key: Key | None) -> bool:
        """Whether a key has more calls than can be done at once."""
        return key is not None and self._gate.crowded(key.id)

    async def run(self, call: Call) -> Reply:
        """The reply to a call; what is learned on the way is noted in the call."""
        now = call.at
        try:
            key = call.key = authenticate(call.secrets, call.address, self._keys, now)
        except KeysBehind:
            await self._keys.catch_up()
            key = call.key = authenticate(call.secrets, call.address, self._keys, now, settled=True)
        call.asking.partner = key.id
        target = call.target
        if isinstance(target, GatewayError):
            raise target
        operation = target.operation
        authorize(key, operation)
        self._check_audit(operation)
        gate = self._gate
        try:
            if operation.creates or len(gate.inside) >= gate.free:
                await gate.enter(call, key.id, call.upload.size() if operation.creates else 0)
            else:
                gate.inside.add(call)
            quota = call.quota = await self._limiter.hit(key.id, key.limit)
            throttle(quota)
            policy = self._policy()
            redactor = redactor_for(operation, key, policy)
            call.policy, call.level = policy.short_hash, key.level_for(operation.returns.name)
            road = self._roads[operation.id]
            others = others_for(key, policy) if policy.has_rows else None
            if operation.creates:
                return await self._create(call, road, redactor, others)
            values = road.reader.read(target.id, call.query, key.id, redactor.visible)
            if operation.many:
                return await self._read_many(call, road, values, now, redactor, others)
            record = await road.asker.one(values, now, redactor.only)
            if redactor.only and not redactor.admits(record):
                raise NotFound
        except AdapterError as error:
            raise translated(error) from error
        finally:
            gate.leave(call)
        call.records = id_of(record)
        return Reply(operation.status, redact(redactor, record))

    async def _read_many(
        self,
        call: Call,
        road: Road,
        values: Values,
        now: datetime,
        redactor: Redactor,
        others: Others,
    ) -> Reply:
        if others is not None and await road.asker.refers_to_nothing(values, now, others):
            return self._list(call, road.operation, values, Page(records=[]), b"[]")
        wanted = values.limit
        while True:
            page = await road.asker.many(values, now, redactor.only, others)
            if not road.operation.paged:
                page = await road.asker.rest(page, values, now, redactor.only)
            if redactor.only:
                page = replace(page, records=list(filter(redactor.admits, page.records)))
            body, left_out = redactor.many(page.records)
            if len(body) <= PAGE_BYTES or len(page.records) < 2 or not road.operation.paged:
                break
            # only the adapter knows how to go on behind a record: it is asked for fewer
            values.limit = fewer(len(page.records), len(body))
        values.limit = wanted
        page = replace(page, skipped=page.skipped + left_out)
        return self._list(call, road.operation, values, page, body)

    async def _create(self, call: Call, road: Road, redactor: Redactor, others: Others) -> Reply:
        if call.key is not None and not call.upload.idempotency_keys():
            # with one it may be a replay, which is told whatever the key may still book
            await self._booker.check_allowance(call.key)
        call.waits_since = monotonic()
        body = await call.upload.read()
        call.waits_since = None

        def check_key() -> Key:
            """A body, or a booking before this one, may take its time; the key may be revoked."""
            key = authenticate(call.secrets, call.address, self._keys, self._now(), settled=True)
            authorize(key, road.operation)
            return key

        key = check_key()
        wanted = road.reader.read_creation(
            call.query, body, call.upload.idempotency_keys(), redactor.visible
        )
        await self._begin(call, road.operation)
        try:
            booked = await self._booker.book(wanted, key, others, check_key)
        except BookingRefused as error:
            call.replayed = error.replayed
            raise refusal(error) from error
        except AdapterError as error:
            raise booking_error(error, wanted.idempotency_key) from error
        call.replayed = booked.replayed
        call.records = id_of(booked.record)
        if wanted.idempotency_key is None:
            call.mark_untold = partial(self._booker.mark_untold, key.id, booked)
        body = redact(redactor, booked.record)
        shown = "id" in redactor.visible
        location = f"{road.operation.path}/{booked.record['id']}" if shown else ""
        return Reply(road.operation.status, body, location=location)

    def _check_audit(self, operation: Operation) -> None:
        """Unavailable where nobody could say later who was shown what."""
        if self._audit.broken:
            self._audit.check(creates=operation.creates)

    async def _begin(self, call: Call, operation: Operation) -> None:
        """That it is to be booked is on disk before anything is sent; Unavailable where not."""
        key_id = None if call.key is None else call.key.id
        begun = Entry(
            *(self._now(), call.request_id, key_id, operation.id, (), call.level, call.policy),
            outcome=BEGUN,
            reason=None,
        )
        try:
            await self._audit.begin(begun)
        except Unwritten as error:
            raise Unavailable(EVERY) from error

    def _list(
        self, call: Call, operation: Operation, values: Values, page: Page, body: bytes
    ) -> Reply:
        call.records = ids_of(page.records)
        after = ""
        if page.after is not None and call.key is not None:
            bound = bound_to(call.key.id, operation.id, values.texts)
            after = next_page(operation, values, self._cursors.write(page.after, bound))
        return Reply(operation.status, body, skipped=page.skipped, next=after)


def fewer(records: int, size: int) -> int:
    """How many of so many records, whose bytes are too many, may fit: at most half of them."""
    return max(1, min(records // 2, records * PAGE_BYTES // size))


def id_of(record: Record) -> tuple[str, ...]:
    """The record's id for the audit, where it has any."""
    own = record.get("id")
    return (own,) if isinstance(own, str) else ()


def ids_of(records: list[Record]) -> list[str]:
    """The same of several records."""
    return [each["id"] for each in records if isinstance(each.get("id"), str)]


def next_page(operation: Operation, values: Values, cursor: str) -> str:
    """The address of the page that follows, with the same filters and limit."""
    path, query = operation.path, dict(values.texts)
    for param in operation.params:
        if param.where == "path":
            path = path.replace(f"{{{param.name}}}", query.pop(param.name))
    query |= {LIMIT.name: str(values.limit), CURSOR.name: cursor}
    return f"{path}?{urlencode(query)}"
