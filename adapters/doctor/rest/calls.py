"""A mapped backend of JSON that the doctor looks at, and what its calls say one by one."""

import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, TypeVar

from adapters.base import AdapterError, Draft, NotFound
from adapters.doctor.case import CheckStep, DoctorCase, counted, short, told
from adapters.doctor.clocks import beside
from adapters.documents.document import Place
from adapters.examination import Finding, Verdict
from adapters.mapping.checker import parts
from adapters.mapping.models import CallMap, ListCall, Login
from adapters.rest.adapter import RestAdapter
from adapters.rest.client import Client, Received, Request
from adapters.rest.paging import NoArray, may_be_empty
from adapters.rest.resource import ResourceCalls
from adapters.rest.session import RestSession

T = TypeVar("T")
# So many ids of one field cost a call each.
MOST_ASKED = 20
# Records looked at where all are asked for, and where each costs a call.
ALL, DETAILED = 20_000, 60
READ_AGAIN = 3
UNAUTHORIZED = 401
# A reference that no booking has.
NOBODYS = "NOTABOOKING00000"


@dataclass(frozen=True, slots=True)
class CallMade:
    """A call that was made: its label, how long it took, and what came; 0 for no answer.

    `apart` is how many seconds the server's clock is ahead of ours, where it says its time.
    """

    label: str
    seconds: float
    status: int
    apart: float | None


class WatchedClient(Client):
    """A client that keeps what was asked."""

    def __init__(self, address: str, *, timeout: float) -> None:
        super().__init__(address, timeout=timeout)
        self.seen: list[CallMade] = []

    async def read(self, request: Request, headers: Mapping[str, str]) -> Received:
        begun, status, apart = time.monotonic(), 0, None
        try:
            received = await super().read(request, headers)
            status, apart = received.status, _apart(received.date)
        finally:
            self.seen.append(CallMade(request.label, time.monotonic() - begun, status, apart))
        return received


def _apart(date: str) -> float | None:
    try:
        there = parsedate_to_datetime(date)
    except ValueError:
        return None
    return None if there.tzinfo is None else (there - datetime.now(UTC)).total_seconds()


@dataclass(slots=True, kw_only=True)
class RestCase(DoctorCase):
    """A mapped backend, and what is known of it so far.

    `raws` are the records that were looked at, by resource, as the backend gave them, `samples`
    what was made of those that the mapping's `where` lets through. `whole` are the resources of
    which these are all. `patience` is what one read may take when the gateway serves.
    """

    ahead = timedelta(days=14)
    most_vets = 10
    adapter: RestAdapter
    client: WatchedClient
    patience: float
    raws: dict[str, list[Any]] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)

    async def run(self, flow: Callable[[RestSession], Awaitable[T]]) -> T:
        """With no time for all calls together: each has its own."""
        return await self.adapter.driver.look(flow)

    def looked_at(self) -> Iterator[tuple[str, ResourceCalls]]:
        """The resources of which there are records."""
        for name, reader in self.adapter.readers.items():
            if self.raws.get(name):
                yield name, reader

    def converter(self, resource: str, name: str) -> Any:
        found = self.adapter.readers[resource].maker.fields.by_name.get(name)
        return None if found is None or resource not in self.samples else found.converter

    async def missing(
        self, session: Any, target: str, ids: set[str]
    ) -> tuple[set[str], set[str], set[str]]:
        """A few that are not known yet are asked for."""
        if target not in self.raws:
            return set(), set(), set()
        reader = self.adapter.readers[target]
        known = {shown for raw in self.raws[target] if (shown := reader.id_of(raw)) is not None}
        hidden = known - {record["id"] for record in self.samples.get(target, ())}
        unsure = sorted(ids - known)
        if target in self.whole:
            return ids, set(unsure), hidden & ids
        asked = unsure[:: max(1, len(unsure) // MOST_ASKED)][:MOST_ASKED]
        gone, more = await self._lost(reader, asked)
        return ids - set(unsure) | set(asked), gone, (hidden | more) & ids

    async def _lost(self, reader: ResourceCalls, ids: list[str]) -> tuple[set[str], set[str]]:
        """Those that lead to nothing at all, and those that `where` hides."""
        gone, hidden = set(), set()
        await self.adapter.learn(reader.name, ids)
        for shown in ids:
            try:
                if not reader.has_one:
                    await reader.one(shown)
                elif not reader.maker.exists(await reader.answer(shown)):
                    hidden.add(shown)
            except NotFound:
                gone.add(shown)
        return gone, hidden

    def refused(
        self, check: str, subject: str, place: Place, error: AdapterError, ids: Iterable[str] = ()
    ) -> Finding:
        judged = self.warning if may_be_empty(error) else self.failed
        at = "items" if isinstance(error, NoArray) else "get"
        return judged(check, subject, short(error), (*place, at), ids=ids)


def login(case: RestCase) -> Iterator[CheckStep]:
    """The first call, where the mapping has one for it."""
    if call := case.core.mapping.backend.login:
        yield CheckStep("login", "token", partial(_token, case, call))


async def _token(case: RestCase, call: Login, _: RestSession) -> AsyncIterator[Finding]:
    try:
        lives = await case.adapter.parts.backend.log_in()
    except AdapterError as error:
        case.is_shut = True
        yield case.failed("login", "token", short(error), ("backend", "login", call.method))
        return
    also = "" if call.seconds else ", as the mapping says"
    yield case.ok("login", "token", f"it lets us in; a token is good for {lives:g} s{also}")


def answers(case: RestCase) -> Iterator[CheckStep]:
    """Whether each call that reads a resource answers, with the records for the other looks."""
    for name, reader in case.adapter.readers.items():
        yield CheckStep("calls", name, partial(_list, case, reader), ("resources", name))


async def _list(case: RestCase, reader: ResourceCalls, _: RestSession) -> AsyncIterator[Finding]:
    name, call = reader.name, case.core.mapping.resources[reader.name].list_
    if call is None or reader.listing() is None:
        text = "no list without an id: its values were not looked at"
        yield case.warning("calls", name, text, ("resources", name))
        return
    most = ALL if case.examination.rows is None else case.examination.rows
    most = min(most, DETAILED) if call.details else most
    try:
        raws = await reader.sample(most)
    except AdapterError as error:
        yield _unanswered(case, name, call, error)
        return
    case.raws[name] = raws
    text = f"{call.method.upper()} {call.path} answers: {counted(len(raws), 'record')}"
    if len(raws) < most:
        case.whole.add(name)
    else:
        text += ", the first ones"
    yield case.ok("calls", name, text)
    async for finding in _one(case, reader, raws):
        yield finding


def _unanswered(case: RestCase, name: str, call: ListCall, error: AdapterError) -> Finding:
    place: Place = ("resources", name, "list")
    if not isinstance(error, NoArray):
        return case.failed("calls", name, short(error), (*place, call.method))
    remedy = f"near: {', '.join(error.near)}" if error.near else ""
    judged = case.warning if may_be_empty(error) else case.failed
    return judged("calls", name, short(error), (*place, "items"), remedy=remedy)


async def _one(case: RestCase, reader: ResourceCalls, raws: list[Any]) -> AsyncIterator[Finding]:
    """Some records of the list, read again by their ids."""
    one = case.core.mapping.resources[reader.name].one
    ids = [shown for raw in raws if (shown := reader.id_of(raw)) is not None]
    if one is None or not ids:
        return
    for shown in ids[:READ_AGAIN]:
        try:
            await reader.answer(shown)
        except AdapterError as error:
            text = f"{short(error)}, for a record of its own list"
            place = ("resources", reader.name, "one", one.method)
            yield case.failed("calls", reader.name, text, place, ids=[shown])
            return
    yield case.ok("calls", reader.name, f"{one.method.upper()} {one.path} answers")


def clock(case: RestCase, _: RestSession) -> Iterator[Finding]:
    """The server's clock."""
    apart = [call.apart for call in case.client.seen if call.apart is not None]
    if apart:
        yield beside(case, apart[-1], "")
    else:
        yield case.ok("clock", "server", "the backend does not say what time it has")


def booking(case: RestCase) -> Iterator[CheckStep]:
    """What keeps two bookings from one time, the lookup, and why none is rehearsed."""
    yield CheckStep("booking", "clash", partial(_clash, case))
    yield CheckStep("booking", "find", partial(_find, case), ("booking", "find"))
    if case.examination.booking:
        text = "no booking was made: over HTTP there are no transactions, so none could be undone"
        remedy = "make one through the gateway on a test account, and cancel it at the desk"
        yield told(case.warning("booking", "rehearsal", text, remedy=remedy))


def _clash(case: RestCase, _: RestSession) -> Iterator[Finding]:
    mapped, place = case.core.mapping.booking, ("booking", "steps")
    means = {rule.means for rule in case.core.mapping.backend.errors}
    if mapped.cancel is None:
        text = "a clash cannot be withdrawn: the mapping has no booking.cancel"
        yield case.warning("booking", "cancel", text, place)
    if mapped.reference is None:
        text = "no reference: after a lost answer a booking is known by its time and patient alone"
        remedy = "send the draft's reference in a field that is kept, and name it: reference"
        yield case.warning("booking", "reference", text, place, remedy=remedy)
    if "slot taken" not in means:
        text = "no answer of the backend's means that a time is taken:"
        text += " a refusal says something else"
        remedy = "write a rule under backend.errors that means slot taken"
        yield case.warning("booking", "taken", text, place, remedy=remedy)
    if mapped.cancel and mapped.reference and "slot taken" in means:
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
    for record in case.samples.get("appointments", ()):
        if record["patientId"] and record["vetId"] and record["scheduledAt"]:
            return Draft(
                client_id=record["clientId"] or "",
                patient_id=record["patientId"],
                vet_id=record["vetId"],
                scheduled_at=datetime.fromisoformat(record["scheduledAt"]),
                appointment_type_id=record["appointmentTypeId"],
                reason=None,
                is_urgent=False,
                now=case.examination.now,
                reference=NOBODYS,
            )
    return None


def renewal(case: RestCase, _: RestSession) -> Iterator[Finding]:
    """How often we had to prove ourselves, when all else has been asked."""
    call = case.core.mapping.backend.login
    if call is None:
        return
    label = f"{call.method.upper()} {call.path}"
    others = [made for made in case.client.seen if made.label != label]
    refused = sum(made.status == UNAUTHORIZED for made in others)
    logins = counted(len(case.client.seen) - len(others), "login")
    text = f"{logins} for {len(others):,} calls"
    if refused:
        text += f", of which {refused} were refused: a token does not live as long as it should"
        remedy = "write a shorter `lifetime`, or see `seconds`"
        place = ("backend", "login", "seconds" if call.seconds else "lifetime")
        yield case.warning("login", "renewal", text, place, remedy=remedy)
    else:
        yield case.ok("login", "renewal", text)


def speed(case: RestCase, _: RestSession) -> Iterator[Finding]:
    """How long all that was asked took."""
    slowest: dict[str, float] = defaultdict(float)
    for made in case.client.seen:
        slowest[made.label] = max(slowest[made.label], made.seconds)
    places = {
        f"{call.method.upper()} {call.path}": (*place, call.method)
        for place, call in parts(case.core.mapping)
        if isinstance(call, CallMap) and call.method
    }
    slow = {label: took for label, took in slowest.items() if took > case.patience / 2}
    for label, took in slow.items():
        verdict = Verdict.FAILED if took > case.patience else Verdict.WARNING
        text = f"{label} is slow: backend.timeout is {case.patience:g} s"
        yield case.judged(verdict, "calls", "speed", text, places.get(label, ()), seconds=took)
    if slowest and not slow:
        label, took = max(slowest.items(), key=lambda call: call[1])
        text = f"{len(case.client.seen):,} calls, the slowest of them {label}"
        yield case.ok("calls", "speed", text, seconds=took)
