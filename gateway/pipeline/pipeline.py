"""Takes a call through all checks. One function holds their order: see `Pipeline.run`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from itertools import count
from time import monotonic
from urllib.parse import urlencode

import orjson

from adapters.base import Adapter, AdapterError, OutcomeUnknown, Page, Record
from adapters.call_notes import CachedAnswer
from gateway.audit.buffer import EVERY, Buffer, Unwritten
from gateway.audit.entries import BEGUN
from gateway.booking.base import Allowance, Booked, BookingRefused, BookingRequest
from gateway.booking.ledger import Ledger
from gateway.booking.times import Lengths
from gateway.contract import errors
from gateway.contract.errors import GatewayError, NotFound
from gateway.contract.operations import CURSOR, LIMIT, Operation, offered
from gateway.contract.window import BookingWindow
from gateway.keys.key import Key
from gateway.keys.ring import KeyRing, KeysBehind
from gateway.limits.base import Limiter
from gateway.pipeline.call import Admitted, Call, Others, Reply, Target
from gateway.pipeline.cursor import CursorCipher, bound_to
from gateway.pipeline.forward import RequestPlan, draft_of, refusal, translated
from gateway.pipeline.shedder import LoadShedder
from gateway.pipeline.steps import authenticate, authorize, others_for, redact, throttle
from gateway.pipeline.validate import CallValues, Creation
from gateway.pipeline.views import Views
from gateway.policy.policy import Policy

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
        self._views = Views()
        self._plans = {
            known.id: RequestPlan(known, self.adapter, self.cursors)
            for known in offered(self.adapter.resources, books=self.adapter.books)
        }

    def crowded(self, key: Key | None) -> bool:
        """Returns whether a key has more calls than can be done at once."""
        return key is not None and self.shedder.crowded(key.id)

    async def run(self, call: Call) -> Reply:
        """Returns the reply to a call; notes in the call what is learned on the way."""
        admitted = self.admit(call) or await self._admit_later(call)
        return self.remembered(admitted) or await self.answer(admitted)

    def admit(self, call: Call) -> Admitted | None:
        """Takes a call past key, permission, room and limit; None where it has to wait for one.

        Raises what refuses the call. One that is admitted has room: `remembered` lets it in where
        it is to be answered, and `answer` out again. The time until a refusal does not tell which
        secrets exist.
        """
        try:
            key, target = self._accept(call)
        except KeysBehind:
            return None
        shedder = self.shedder
        if target.operation.creates or len(shedder.inside) >= shedder.free:
            return None
        quota = self.limiter.hit_at_once(key.id, key.limit)
        if quota is None:
            return None
        call.quota = quota
        throttle(quota)
        return self._admitted(call, key, target)

    async def _admit_later(self, call: Call) -> Admitted:
        """Does the same, and waits for what has to be waited for."""
        try:
            key, target = self._accept(call)
        except KeysBehind:
            await self.keys.catch_up()
            key, target = self._accept(call, settled=True)
        shedder, creates = self.shedder, target.operation.creates
        try:
            if creates or len(shedder.inside) >= shedder.free:
                await shedder.enter(call, key.id, call.upload.size() if creates else 0)
            else:
                shedder.inside.add(call)
            quota = call.quota = await self.limiter.hit(key.id, key.limit)
            throttle(quota)
        except BaseException:
            shedder.leave(call)
            raise
        return self._admitted(call, key, target)

    def _accept(self, call: Call, *, settled: bool = False) -> tuple[Key, Target]:
        """Raises what refuses a call however much room there is; `settled` as in `KeyRing.find`."""
        key = authenticate(call.digest, call.address, self.keys, call.at, settled=settled)
        call.key, call.asking.partner, target = key, key.id, call.target
        if isinstance(target, GatewayError):
            raise target
        authorize(key, target.operation)
        if target.operation.id not in self._plans:  # the practice system has nothing of the kind
            raise NotFound
        self.audit.check(creates=target.operation.creates)
        return key, target

    def _admitted(self, call: Call, key: Key, target: Target) -> Admitted:
        policy, resource = self.policy(), target.operation.returns.name
        call.policy, call.level = policy.short_hash, key.level_for(resource)
        redactor = policy.redactor(resource, call.level)
        return Admitted(call, key, target, redactor, others_for(key, policy))

    def remembered(self, admitted: Admitted) -> Reply | None:
        """Returns the reply to an equal call, while what it was made of is cached; else None."""
        view, call, shedder = self._views.find(admitted), admitted.call, self.shedder
        if view is None:
            shedder.inside.add(call)
            return None
        call.records = view.records
        if call in shedder.inside:
            shedder.leave(call)
        return view.reply

    async def answer(self, admitted: Admitted) -> Reply:
        """Returns the reply to an admitted call, by asking the practice system."""
        call, operation, redactor = admitted.call, admitted.target.operation, admitted.redactor
        plan = self._plans[operation.id]
        try:
            if operation.creates:
                return await self._create(admitted, plan)
            values = plan.reader.read(
                admitted.target.id, call.query, admitted.key.id, redactor.visible
            )
            if operation.many:
                return await self._read_many(admitted, plan, values)
            record = await plan.one(values, call.at, redactor.only, redactor.needed)
            if redactor.only and not redactor.admits(record):
                raise NotFound
        except AdapterError as error:
            raise translated(error) from error
        finally:
            self.shedder.leave(call)
        call.records = id_of(record)
        reply = Reply(operation.status, redact(redactor, record))
        self._views.keep(admitted, call.asking.cached, reply)
        return reply

    async def _read_many(self, admitted: Admitted, plan: RequestPlan, values: CallValues) -> Reply:
        call, redactor, others = admitted.call, admitted.redactor, admitted.others
        now, limit = call.at, values.limit
        if others is not None and await plan.refers_to_nothing(values, now, others):
            return self._list(admitted, values, Page(records=[]), b"[]")
        cached: CachedAnswer | None = None
        for reads in count(1):
            page = await plan.many(values, now, redactor.only, redactor.needed, others)
            # a reply that was made of several answers is made anew each time
            cached = call.asking.cached if reads == 1 and others is None else None
            if not plan.operation.paged and page.after is not None:
                page = await plan.rest(page, values, now, redactor.only, redactor.needed)
                cached = None
            if redactor.only:
                page = replace(page, records=redactor.admitted(page.records))
            body, left_out = redactor.many(page.records)
            if len(body) <= PAGE_BYTES or len(page.records) < 2 or not plan.operation.paged:
                break
            # only the adapter knows how to go on behind a record: it is asked for half at most
            many = len(page.records)
            values.limit = max(1, min(many // 2, many * PAGE_BYTES // len(body)))
        values.limit = limit
        page = replace(page, skipped=page.skipped + left_out)
        reply = self._list(admitted, values, page, body)
        self._views.keep(admitted, cached, reply)
        return reply

    async def _create(self, admitted: Admitted, plan: RequestPlan) -> Reply:
        call, redactor, key = admitted.call, admitted.redactor, admitted.key
        if not call.upload.idempotency_keys():
            # with one it may be a replay, which is answered whatever the key may still book
            now = self.now()
            if allowance := self._allowance(key, now):
                await self.ledger.check_allowance(key.id, allowance, now)
        call.waits_since = monotonic()
        body = await call.upload.read()
        call.waits_since = None

        def check_key() -> Key:
            """Checks the key again: it may be revoked while a body or a booking takes its time."""
            key = authenticate(call.digest, call.address, self.keys, self.now(), settled=True)
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
            booked = await self._book(creation, key, admitted.others, check_key)
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

    def _list(self, admitted: Admitted, values: CallValues, page: Page, body: bytes) -> Reply:
        operation, after = admitted.target.operation, ""
        admitted.call.records = [
            own for record in page.records if isinstance(own := record.get("id"), str)
        ]
        if page.after is not None:
            bound = bound_to(admitted.key.id, operation.id, values.texts)
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
    filters = f"{urlencode(query)}&" if query else ""
    # neither has a character that needs quoting
    return f"{path}?{filters}{LIMIT.name}={values.limit}&{CURSOR.name}={cursor}"
