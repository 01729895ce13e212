"""A mapped backend of JSON that the doctor looks at, and what its calls say one by one."""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from adapters.base import AdapterError, Draft, NotFound
from adapters.doctor.case import DoctorCase, Look, RowTaken, clock_judged, counted, short
from adapters.examination import Examination, Verdict
from adapters.mapping.checker import parts
from adapters.mapping.models import CallMap, ListCall
from adapters.rest.adapter import RestAdapter
from adapters.rest.client import Client, Received, Request
from adapters.rest.paging import NoArray, may_be_empty
from adapters.rest.records import JsonRows
from adapters.rest.resource import ResourceCalls
from adapters.rest.session import RestSession
from adapters.values.convert import Unreadable

T = TypeVar("T")
# So many ids of one field cost a call each.
MOST_ASKED = 20
# Records looked at where all are asked for, and where each costs a call.
ALL, DETAILED = 20_000, 60
READ_AGAIN = 3
# Seconds that one call may take, so that a slow one is found out and not given up.
PATIENCE = 20.0
UNAUTHORIZED = 401
# A reference that no booking has.
NOBODYS = "NOTABOOKING00000"
# What a mapping should say of bookings that clash or are lost; what it means that it does not.
_CLASHES = {
    "cancel": ("a clash cannot be withdrawn: the mapping has no booking.cancel", ""),
    "reference": (
        "no reference: after a lost answer a booking is known by its time and patient alone",
        "send the draft's reference in a field that is kept, and name it: reference",
    ),
    "taken": (
        "no answer of the backend's means that a time is taken: a refusal says something else",
        "write a rule under backend.errors that means slot taken",
    ),
}


class CallMade(NamedTuple):
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


class RestCase(DoctorCase):
    """A mapped backend, asked through connections which have more time than a call's.

    `raws` are the records that were looked at, by resource, as the backend gave them, `samples`
    what was made of those that the mapping's `where` lets through. `patience` is what one read may
    take when the gateway serves.
    """

    ahead = timedelta(days=14)
    most_vets = 10
    kept = ALL
    rows_in = ("list", "items")
    doubled = (
        "key",
        "is it the record's own id? or the list gives rows again, from page to page",
    )
    adapter: RestAdapter

    def __init__(self, adapter: RestAdapter, examination: Examination) -> None:
        super().__init__(examination)
        self.raws: dict[str, list[Any]] = {}
        options, self.patience = adapter.options, adapter.options.timeout
        longer = max(PATIENCE, options.timeout)
        self.client = WatchedClient(options.url, timeout=longer)
        own = replace(options, report=self.troubles.append, timeout=longer)
        self.adapter = RestAdapter(own, self.client)

    async def run(self, flow: Callable[[RestSession], Awaitable[T]]) -> T:
        """With no time for all calls together: each has its own."""
        return await self.adapter.driver.look(flow)

    def readable(self) -> Iterator[str]:
        yield from self.raws

    def looked_at(self) -> Iterator[tuple[ResourceCalls, ListCall]]:
        """The resources of which there are records, and the calls of their lists."""
        for name, raws in self.raws.items():
            if raws and (call := self.core.mapping.resources[name].list_):
                yield self.adapter.readers[name], call

    def rows(self, name: str) -> JsonRows:
        resource, _, inner = name.partition(".")
        rows = self.adapter.readers[resource].rows
        return next((own for each, _, own in rows.lists if each == inner), rows)

    def batches(self, session: Any, name: str) -> Iterator[list[RowTaken]]:
        """A row of a list is told by its record's public id."""
        resource, _, inner = name.partition(".")
        rows = self.adapter.readers[resource].rows
        raws = [raw for raw in self.raws[resource] if isinstance(raw, dict) and rows.exists(raw)]
        owned = [(rows.id_of(raw), self._inside(name, raw) if inner else [raw]) for raw in raws]
        yield [
            RowTaken(row, shown, shown or id(row))
            for shown, own in owned
            if isinstance(own, list)
            for row in own
        ]

    def _inside(self, name: str, raw: Any) -> Any:
        """What a record has where such a list should be; False where nobody can tell."""
        resource, _, inner = name.partition(".")
        lists = self.adapter.readers[resource].rows.lists
        try:
            return next(items for each, items, _ in lists if each == inner)(raw)
        except Unreadable:
            return False

    def misfits(self, look: Look, session: Any, name: str) -> None:
        resource, _, inner = name.partition(".")
        raws, text, place = self.raws[resource], "are no objects", ["list", "items"]
        odd = [raw for raw in raws if not isinstance(raw, dict)]
        if inner:
            arrays = [self._inside(name, raw) for raw in raws if isinstance(raw, dict)]
            odd = [rows for rows in arrays if not isinstance(rows, list | None)]
            text, place = "have something else than an array there", ["items"]
        if odd:
            text = f"{counted(len(odd), 'record')} of {len(raws):,} {text}"
            look.failed(text, *place, check="rows")

    def has_rows(self, session: Any, resource: str) -> bool:
        return bool(self.raws[resource])

    async def missing(
        self, session: Any, target: str, ids: set[str]
    ) -> tuple[set[str], set[str], set[str]]:
        """A few that are not known yet are asked for."""
        if target not in self.raws:
            return set(), set(), set()
        reader = self.adapter.readers[target]
        known = {shown for raw in self.raws[target] if (shown := reader.rows.id_of(raw))}
        hidden = known - {record["id"] for record in self.samples.get(target, ())}
        unsure = sorted(ids - known)
        if target in self.whole:
            return ids, set(unsure), hidden & ids
        asked, gone = unsure[:: max(1, len(unsure) // MOST_ASKED)][:MOST_ASKED], set()
        await self.adapter.learn(target, asked)
        for shown in asked:
            try:
                if not reader.rows.exists(await reader.row(shown, ())):
                    hidden.add(shown)
            except NotFound:
                gone.add(shown)
        return ids - set(unsure) | set(asked), gone, hidden & ids

    def refused(self, look: Look, error: AdapterError, *ids: str) -> None:
        """It names what is near; what may only be an empty list that is left out is a warning."""
        say = look.warning if may_be_empty(error) else look.failed
        if isinstance(error, NoArray):
            remedy = f"near: {', '.join(error.near)}" if error.near else ""
            say(short(error), "items", remedy=remedy, ids=ids)
        else:
            say(short(error), "get", ids=ids)


async def login(case: RestCase, look: Look, _: RestSession) -> None:
    """The first call, where the mapping has one for it."""
    call = case.core.mapping.backend.login
    if call is None:
        return
    try:
        lives = await case.adapter.parts.backend.log_in()
    except AdapterError as error:
        case.is_shut = True
        look.failed(short(error), call.method)
    else:
        also = "" if call.seconds else ", as the mapping says"
        look.ok(f"it lets us in; a token is good for {lives:g} s{also}")


def answers(case: RestCase) -> Iterator[Look]:
    """Whether each call that reads a resource answers, with the records for the other looks."""
    for name, reader in case.adapter.readers.items():
        yield case.look("calls", name, partial(_list, reader), "resources", name, "list")


async def _list(reader: ResourceCalls, case: RestCase, look: Look, _: RestSession) -> None:
    """Asks for the list, and for some of its records again by their ids."""
    mapped = case.core.mapping.resources[reader.name]
    call, one = mapped.list_, mapped.one
    if call is None or reader.listing() is None:
        text, place = "no list without an id: its values were not looked at", look.place[:2]
        look.warning(text, place=place)
        return
    most = ALL if case.examination.rows is None else case.examination.rows
    most = min(most, DETAILED) if call.details else most
    try:
        raws = case.raws[reader.name] = await reader.sample(most)
    except AdapterError as error:
        case.refused(look, error)
        return
    text = f"{call.method.upper()} {call.path} answers: {counted(len(raws), 'record')}"
    if len(raws) < most:
        case.whole.add(reader.name)
        look.ok(text)
    else:
        look.ok(f"{text}, the first ones")
    ids = [shown for raw in raws if (shown := reader.rows.id_of(raw)) is not None]
    if one is None or not ids:
        return
    for shown in ids[:READ_AGAIN]:
        try:
            await reader.row(shown, ())
        except AdapterError as error:
            text, place = f"{short(error)}, for a record of its own list", (*look.place[:2], "one")
            look.failed(text, place=(*place, one.method), ids=[shown])
            return
    look.ok(f"{one.method.upper()} {one.path} answers")


async def clock(case: RestCase, look: Look, _: RestSession) -> None:
    apart = [call.apart for call in case.client.seen if call.apart is not None]
    if apart:
        clock_judged(look, apart[-1])
    else:
        look.ok("the backend does not say what time it has")


async def clash(case: RestCase, look: Look, _: RestSession) -> None:
    """What keeps two bookings from one time, or shows that one was made."""
    mapped, rules = case.core.mapping.booking, case.core.mapping.backend.errors
    is_told = {
        "cancel": mapped.cancel is not None,
        "reference": mapped.reference is not None,
        "taken": any(rule.means == "slot taken" for rule in rules),
    }
    for subject, (text, remedy) in _CLASHES.items():
        if not is_told[subject]:
            look.warning(text, subject=subject, remedy=remedy)
    if not look.findings:
        look.ok("checked before and after; a clash is refused or withdrawn, a lost booking found")


async def lookup(case: RestCase, look: Look, session: RestSession) -> None:
    """Looks for a booking like one of the appointments, with a reference that none has."""
    needed = ("patientId", "vetId", "scheduledAt")
    records = case.samples.get("appointments", ())
    like = next((record for record in records if all(record[name] for name in needed)), None)
    if like is None:
        look.warning("not tried: no appointment was seen to look for", place=())
        return
    draft = Draft(
        client_id=like["clientId"] or "",
        patient_id=like["patientId"],
        vet_id=like["vetId"],
        scheduled_at=datetime.fromisoformat(like["scheduledAt"]),
        appointment_type_id=like["appointmentTypeId"],
        reason=None,
        is_urgent=False,
        now=case.examination.now,
        reference=NOBODYS,
    )
    try:
        await case.core.bookings.find(session, draft, case.examination.now)
    except AdapterError as error:
        look.failed(short(error), "get")
    else:
        look.ok("the call that looks for a booking answers")


async def rehearsal(_: RestCase, look: Look, __: RestSession) -> None:
    """Why none is made."""
    text = "no booking was made: over HTTP there are no transactions, so none could be undone"
    remedy = "make one through the gateway on a test account, and cancel it at the desk"
    look.warning(text, remedy=remedy)


async def renewal(case: RestCase, look: Look, _: RestSession) -> None:
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
        look.warning(text, place=place, remedy=remedy)
    else:
        look.ok(text)


async def speed(case: RestCase, look: Look, _: RestSession) -> None:
    """How long all that was asked took."""
    slowest: dict[str, float] = defaultdict(float)
    for made in case.client.seen:
        slowest[made.label] = max(slowest[made.label], made.seconds)
    places = {
        f"{call.method.upper()} {call.path}": (*place, call.method)
        for place, call in parts(case.core.mapping)
        if isinstance(call, CallMap) and call.method
    }
    calls = sorted(slowest.items(), key=itemgetter(1), reverse=True)
    for label, took in calls:
        if took > case.patience / 2:
            verdict = Verdict.FAILED if took > case.patience else Verdict.WARNING
            text = f"{label} is slow: backend.timeout is {case.patience:g} s"
            look.judge(verdict, text, place=places.get(label, ()), seconds=took)
    if calls and not look.findings:
        label, took = calls[0]
        text = f"{len(case.client.seen):,} calls, the slowest of them {label}"
        look.ok(text, seconds=took)
