"""Takes a call through all checks. One function holds their order: see `Pipeline.run`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from time import monotonic
from urllib.parse import urlencode

import orjson

from adapters.base import Adapter, AdapterError, OutcomeUnknown, Page, Record
from gateway.audit.buffer import EVERY, Buffer, Unwritten
from gateway.audit.entries import BEGUN
from gateway.booking.base import Allowance, Booked, BookingRefused, BookingRequest
from gateway.booking.ledger import Ledger
from gateway.booking.times import Lengths
from gateway.contract import errors
from gateway.contract.errors import GatewayError, NotFound
from gateway.contract.operations import CURSOR, LIMIT, OPERATIONS, Operation
from gateway.contract.window import BookingWindow
from gateway.keys.key import Key
from gateway.keys.ring import KeyRing, KeysBehind
from gateway.limits.base import Limiter
from gateway.pipeline.call import Call, Reply
from gateway.pipeline.cursor import CursorCipher, bound_to
from gateway.pipeline.forward import Others, RequestPlan, draft_of, refusal, translated
from gateway.pipeline.shedder import LoadShedder
from gateway.pipeline.steps import authenticate, authorize, others_for, redact, throttle
from gateway.pipeline.validate import CallValues, Creation
from gateway.policy.policy import Policy
from gateway.policy.redactor import Redactor

# The most bytes of a page of several records: a slow reader makes us hold no more than that.
PAGE_BYTES = 1024 * 1024


@dataclass(kw_only=True, eq=False)
class Pipeline:
    """Takes calls from the key to the reply; every failure is a GatewayError, or our own fault."""

    keys: KeyRing
    limiter: Limiter
    policy: Callable[[], Policy]
    adapter: Adapter
    ledger: Ledger
    window: BookingWindow
    cursors: CursorCipher
    now: Callable[[], datetime]
    shedder: LoadShedder
    audit: Buffer

    def __post_init__(self) -> None:
        self._lengths = Lengths(self.adapter)
        self._plans = {
            known.id: RequestPlan(known, self.adapter, self.cursors) for known in OPERATIONS
        }

    def crowded(self, key: Key | None) -> bool:
        """Returns whether a key has more calls than can be done at once."""
        return key is not None and self.shedder.crowded(key.id)

    async def run(self, call: Call) -> Reply:
        """Returns the reply to a call; notes in the call what is learned on the way."""
        now = call.at
        try:
            key = call.key = authenticate(call.secrets, call.address, self.keys, now)
        except KeysBehind:
            await self.keys.catch_up()
            key = call.key = authenticate(call.secrets, call.address, self.keys, now, settled=True)
        call.asking.partner = key.id
        target = call.target
        if isinstance(target, GatewayError):
            raise target
        operation = target.operation
        authorize(key, operation)
        self.audit.check(creates=operation.creates)
        shedder = self.shedder
        try:
            if operation.creates or len(shedder.inside) >= shedder.free:
                await shedder.enter(call, key.id, call.upload.size() if operation.creates else 0)
            else:
                shedder.inside.add(call)
            quota = call.quota = await self.limiter.hit(key.id, key.limit)
            throttle(quota)
            policy, resource = self.policy(), operation.returns.name
            call.policy, call.level = policy.short_hash, key.level_for(resource)
            redactor = policy.redactor(resource, call.level)
            plan = self._plans[operation.id]
            others = others_for(key, policy)
            if operation.creates:
                return await self._create(call, plan, redactor, others)
            values = plan.reader.read(target.id, call.query, key.id, redactor.visible)
            if operation.many:
                return await self._read_many(call, plan, values, redactor, others)
            record = await plan.one(values, now, redactor.only)
            if redactor.only and not redactor.admits(record):
                raise NotFound
        except AdapterError as error:
            raise translated(error) from error
        finally:
            shedder.leave(call)
        call.records = id_of(record)
        return Reply(operation.status, redact(redactor, record))

    async def _read_many(
        self, call: Call, plan: RequestPlan, values: CallValues, redactor: Redactor, others: Others
    ) -> Reply:
        now, limit = call.at, values.limit
        if others is not None and await plan.refers_to_nothing(values, now, others):
            return self._list(call, plan.operation, values, Page(records=[]), b"[]")
        while True:
            page = await plan.many(values, now, redactor.only, others)
            if not plan.operation.paged:
                page = await plan.rest(page, values, now, redactor.only)
            if redactor.only:
                page = replace(page, records=list(filter(redactor.admits, page.records)))
            body, left_out = redactor.many(page.records)
            if len(body) <= PAGE_BYTES or len(page.records) < 2 or not plan.operation.paged:
                break
            # only the adapter knows how to go on behind a record: it is asked for half at most
            many = len(page.records)
            values.limit = max(1, min(many // 2, many * PAGE_BYTES // len(body)))
        values.limit = limit
        page = replace(page, skipped=page.skipped + left_out)
        return self._list(call, plan.operation, values, page, body)

    async def _create(
        self, call: Call, plan: RequestPlan, redactor: Redactor, others: Others
    ) -> Reply:
        if call.key is not None and not call.upload.idempotency_keys():
            # with one it may be a replay, which is answered whatever the key may still book
            now = self.now()
            if allowance := self._allowance(call.key, now):
                await self.ledger.check_allowance(call.key.id, allowance, now)
        call.waits_since = monotonic()
        body = await call.upload.read()
        call.waits_since = None

        def check_key() -> Key:
            """Checks the key again: it may be revoked while a body or a booking takes its time."""
            key = authenticate(call.secrets, call.address, self.keys, self.now(), settled=True)
            authorize(key, plan.operation)
            return key

        key = check_key()
        creation = plan.reader.read_creation(
            call.query, body, call.upload.idempotency_keys(), redactor.visible
        )
        try:
            # on disk before anything is sent
            await self.audit.begin(call.audit_entry(self.now(), plan.operation.id, BEGUN))
        except Unwritten as error:
            raise errors.Unavailable(EVERY) from error
        try:
            booked = await self._book(creation, key, others, check_key)
        except BookingRefused as error:
            call.replayed = error.replayed
            raise refusal(error) from error
        call.replayed = booked.replayed
        call.records = id_of(booked.record)
        if creation.idempotency_key is None:
            # when the same request comes again, it is answered with this booking
            made = str(booked.record.get("id"))
            call.mark_untold = partial(self.ledger.mark_untold, key.id, made)
        body = redact(redactor, booked.record)
        shown = "id" in redactor.visible
        location = f"{plan.operation.path}/{booked.record['id']}" if shown else ""
        return Reply(plan.operation.status, body, location=location)

    async def _book(
        self, creation: Creation, key: Key, others: Others, check_key: Callable[[], object]
    ) -> Booked:
        """Returns the new appointment, or the one that the same request made before."""
        draft = draft_of(creation.body, self.now(), others)

        def check_time() -> None:
            problem = self.window.problem(draft.scheduled_at, self.now())
            if problem is not None:
                raise errors.InvalidRequest(errors.InvalidField("scheduledAt", problem))

        # spelling, order and offsets of the request do not count
        body = orjson.dumps(creation.body, option=orjson.OPT_SORT_KEYS)
        attempt = BookingRequest(
            key_id=key.id,
            idempotency_key=creation.idempotency_key,
            fingerprint=sha256(body).digest(),
            draft=draft,
            lasts=await self._lengths.of(draft.appointment_type_id, draft.now),
            adapter=self.adapter,
            check_time=check_time,
            check_key=check_key,
            now=self.now,
            allowance=self._allowance(key, draft.now),
        )
        try:
            return await self.ledger.book(attempt)
        except OutcomeUnknown as error:
            if creation.idempotency_key is None:
                raise errors.BookingUnknownWithoutKey from error
            raise

    def _allowance(self, key: Key, now: datetime) -> Allowance | None:
        """Returns the key's allowance for this day of the clinic's calendar, if it has one."""
        if key.bookings_per_day is None:
            return None
        since, until = self.window.day(now)
        return Allowance(most=key.bookings_per_day, since=since, until=until)

    def _list(
        self, call: Call, operation: Operation, values: CallValues, page: Page, body: bytes
    ) -> Reply:
        call.records = [own for record in page.records for own in id_of(record)]
        after = ""
        if page.after is not None and call.key is not None:
            bound = bound_to(call.key.id, operation.id, values.texts)
            after = next_page(operation, values, self.cursors.write(page.after, bound))
        return Reply(operation.status, body, skipped=page.skipped, next=after)


def id_of(record: Record) -> tuple[str, ...]:
    """Returns the record's id for the audit, as a tuple that is empty where it has none."""
    own = record.get("id")
    return (own,) if isinstance(own, str) else ()


def next_page(operation: Operation, values: CallValues, cursor: str) -> str:
    """Returns the address of the page that follows, with the same filters and limit."""
    path, query = operation.path, dict(values.texts)
    for param in operation.params:
        if param.where == "path":
            path = path.replace(f"{{{param.name}}}", query.pop(param.name))
    query |= {LIMIT.name: str(values.limit), CURSOR.name: cursor}
    return f"{path}?{urlencode(query)}"
