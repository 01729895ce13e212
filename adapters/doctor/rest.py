"""The doctor of a mapped JSON backend: makes the calls of a mapping, and judges the answers.

`examine` looks in the order in which an integrator would mend: the login, calls, paths, values,
what leads where, pages, filters, the diary, clocks, and what a booking is made with.
"""

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import islice
from math import inf
from typing import Any, TypeVar

from adapters.base import AdapterError, Draft, Filter, NotFound, Record
from adapters.doctor import surveyed
from adapters.doctor.case import DoctorCase, Look, RowTaken, clock_judged, examined
from adapters.doctor.diary import diary
from adapters.doctor.laws import laws
from adapters.doctor.values import links, values
from adapters.documents.document import Place
from adapters.examination import Examination, Finding, Survey, Verdict, counted, short
from adapters.mapping.checker import SEARCH, parts
from adapters.mapping.models import BusyMap, CallMap, FilterParameter, ListCall, Paging, ResourceMap
from adapters.mapping.paths import names_in, plain_steps
from adapters.rest.adapter import RestAdapter, RestSession
from adapters.rest.backend import Answer, Ask, Params
from adapters.rest.checks import written_paths
from adapters.rest.client import Client, Request
from adapters.rest.login import OAuthCall
from adapters.rest.paging import NoArray, Pager, Unfollowed, may_be_empty
from adapters.rest.reader import Received
from adapters.rest.resource import NothingFits, ResourceCalls, fitting
from adapters.values.convert import Unreadable

T = TypeVar("T")
# The ids of one field that are asked for, each in a call.
MOST_ASKED = 20
# Records looked at where all are asked for, and where each of them costs a call.
ALL, DETAILED = 20_000, 60
READ_AGAIN = 3
# Seconds that one call may take, so that a slow one is measured and not given up.
PATIENCE = 20.0
# A reference that no booking has.
NOBODYS = "NOTABOOKING00000"
# The rows of a page without a limit, and the rows that are enough to try a filter.
USUAL, FEW = 50, 10
_word = re.compile(r"[^\W_]{2,}").search
# The limits of a survey: records, names that are told, and levels of nesting.
SAMPLE, MOST_NAMES, DEEPEST = 200, 60, 6
# Other names, such as keys of an object, may belong to somebody.
_NAME = re.compile(r"[^\W\d]\w{0,40}").fullmatch
# A way into a record, by the names of members.
Way = tuple[str, ...]


class WatchedClient(Client):
    """A client that keeps what was asked.

    `seen` are its calls: the seconds that each took, its label, and its status, 0 for no answer.
    `apart` is how many seconds the server's clock is ahead of ours; None where it has not said its
    time.
    """

    def __init__(self, address: str, *, timeout: float, in_flight: int) -> None:
        super().__init__(address, timeout=timeout, in_flight=in_flight)
        self.seen: list[tuple[float, str, int]] = []
        self.apart: float | None = None

    async def read(self, request: Request, headers: Mapping[str, str]) -> Received:
        begun, status = time.monotonic(), 0
        try:
            received = await super().read(request, headers)
            status = received.status
            with suppress(ValueError, TypeError):  # no date, or one without a zone
                there = parsedate_to_datetime(received.date)
                self.apart = (there - datetime.now(UTC)).total_seconds()
        finally:
            self.seen.append((time.monotonic() - begun, request.label, status))
        return received


class RestCase(DoctorCase):
    """A mapped backend, asked through connections that have more time than a call's.

    `raws` are the records that were looked at, by resource, as the backend gave them. `samples` are
    those of them that the mapping's `where` lets through, as the mapping makes them. `patience` is
    the seconds that one read may take when the gateway serves.
    """

    ahead = timedelta(days=14)
    most_vets = 10
    most_durations = MOST_ASKED
    kept = ALL
    rows_in = ("list", "items")
    doubled = ("key", "is it the record's own id? or the list gives rows again, from page to page")
    adapter: RestAdapter
    session: RestSession

    def __init__(self, adapter: RestAdapter, examination: Examination) -> None:
        super().__init__(examination)
        self.raws: dict[str, list[Any]] = {}
        self.patience = adapter.options.timeout
        longer = max(PATIENCE, self.patience)
        own = replace(adapter.options, report=self.troubles.append, timeout=longer)
        self.client = WatchedClient(own.url, timeout=longer, in_flight=own.in_flight)
        self.adapter = RestAdapter(own, self.client)

    async def run(self, flow: Callable[[RestSession], Awaitable[T]]) -> T:
        """Runs the flow with no limit on all its calls together; each has its own."""
        return await self.adapter.run(flow, inf)

    def readable(self) -> Iterator[str]:
        yield from self.raws

    def looked_at(self) -> Iterator[tuple[ResourceCalls, ListCall]]:
        """Yields the resources that have records, and the calls of their lists."""
        for name, raws in self.raws.items():
            if raws and (call := self.adapter.mapping.resources[name].list_):
                yield self.adapter.readers[name], call

    def batches(self, name: str) -> Iterator[list[RowTaken]]:
        """Yields all rows at once; a row of a list is shown by its record's public id."""
        resource, _, _ = name.partition(".")
        rows = self.adapter.readers[resource].rows
        raws = [raw for raw in self.raws[resource] if isinstance(raw, dict) and rows.exists(raw)]
        owned = [(rows.id_of(raw), self._inside(name, raw)) for raw in raws]
        yield [RowTaken(row, shown, shown or id(row)) for shown, own in owned for row in own or ()]

    async def with_lists(self, resource: str, records: list[Record]) -> list[Record]:
        """Makes the records anew of what the backend gave."""
        rows, ids = self.adapter.readers[resource].rows, {each["id"] for each in records}
        raws = [raw for raw in self.raws[resource] if isinstance(raw, dict) and rows.exists(raw)]
        return [each for each in rows.records(raws) if each and each["id"] in ids]

    def _inside(self, name: str, raw: Any) -> list[Any] | None:
        """Returns the record alone, or the members of a list in it; None for what is no list."""
        resource, _, inner = name.partition(".")
        find = self.adapter.readers[resource].rows.items.get(inner)
        with suppress(Unreadable):
            if isinstance(members := find(raw) if find else [raw], list | None):
                return members or []
        return None

    def misfits(self, look: Look, name: str) -> None:
        resource, _, inner = name.partition(".")
        raws, text, place = self.raws[resource], "are no objects", ["list", "items"]
        odd = [raw for raw in raws if not isinstance(raw, dict)]
        if inner:
            odd = [raw for raw in raws if isinstance(raw, dict) and self._inside(name, raw) is None]
            text, place = "have something else than an array there", ["items"]
        if odd:
            text = f"{counted(len(odd), 'record')} of {len(raws):,} {text}"
            look.failed(text, *place, check="rows")

    def has_rows(self, resource: str) -> bool:
        return bool(self.raws[resource])

    def has_blocks(self, source: int) -> None:
        """Returns None: calls of the diary give the rows of the days that are asked for."""

    def undecided(self, rows: ResourceMap | BusyMap) -> None:
        """Returns None: in JMESPath what is not true is false."""

    async def missing(self, target: str, ids: set[str]) -> tuple[set[str], set[str], set[str]]:
        """Asks the backend for a few of the ids that are not known yet."""
        if target not in self.raws:
            return set(), set(), set()
        reader = self.adapter.readers[target]
        known = {shown for raw in self.raws[target] if (shown := reader.rows.id_of(raw))}
        hidden = known - {record["id"] for record in self.samples.get(target, ())}
        unsure = sorted(ids - known)
        if target in self.whole:
            return ids, set(unsure), hidden & ids
        sample, gone = unsure[:: max(1, len(unsure) // MOST_ASKED)][:MOST_ASKED], set()
        await self.adapter.learn(target, sample)
        for shown in sample:
            try:
                if not reader.rows.exists(await reader.row(shown, ())):
                    hidden.add(shown)
            except NotFound:
                gone.add(shown)
        return ids - set(unsure) | set(sample), gone, hidden & ids

    def refused(self, look: Look, error: AdapterError, *ids: str) -> None:
        """Names the arrays near by too; only warns where an empty list may be left out."""
        say, code = look.failed, "unanswered"
        if may_be_empty(error):
            say, code = look.warning, "doubtful-answer"
        near, at = "", "get"
        if isinstance(error, NoArray):
            near, at = ", ".join(error.near), "items"
        elif isinstance(error, Unfollowed):
            code = "page-not-followed"
        say(short(error), at, remedy=near and f"near: {near}", ids=ids, code=code)


def examine(adapter: RestAdapter, examination: Examination) -> AsyncIterator[Finding]:
    case = RestCase(adapter, examination)
    return examined(case, _looks(case))


def _looks(case: RestCase) -> Iterator[Look]:
    scheme = "login" if case.adapter.mapping.backend.oauth is None else "oauth"
    login = case.look("login", "token", _login, "backend", scheme)
    yield login
    if any(finding.verdict is Verdict.FAILED for finding in login.findings):
        return
    # these also read the records for the other looks
    for name, reader in case.adapter.readers.items():
        yield case.look("calls", name, partial(_answers, reader), "resources", name, "list")
    yield case.look("mapping", "paths", _paths)
    for looks in (values, laws, links):
        yield from looks(case)
    for reader, call in case.looked_at():
        place = ("resources", reader.name, "list")
        yield case.look("pages", reader.name, partial(_pages, reader, call), *place)
    yield from _filters(case)
    yield from diary(case)
    server, apart = case.look("clock", "server"), case.client.apart
    if apart is None:
        server.ok("the backend does not say what time it has")
    else:
        clock_judged(server, apart)
    yield server
    if case.adapter.books:
        yield case.look("booking", "clash", _clash, "booking", "steps")
        yield case.look("booking", "find", _lookup, "booking", "find")
    if case.examination.booking and case.adapter.books:
        rehearsal = case.look("booking", "rehearsal")
        text = "no booking was made: over HTTP there are no transactions, so none could be undone"
        remedy = "make one through the gateway on a test account, and cancel it at the desk"
        rehearsal.warning(text, remedy=remedy)
        yield rehearsal
    yield case.look("login", "renewal", _renewal)
    yield case.look("calls", "speed", _speed)


async def survey(adapter: RestAdapter) -> Survey:
    """Returns the members of a sample of records that no field is made of; raises AdapterError."""
    omitted = []
    for name, reader in adapter.readers.items():
        ways, names = _read_in(name, adapter.mapping.resources[name])
        unused = dict.fromkeys(_unused(await reader.sample(SAMPLE), (), ways, names))
        omitted.append((("resources", name), f"the records of {name}", [*unused][:MOST_NAMES]))
    return surveyed(adapter, omitted)


async def _login(case: RestCase, look: Look) -> None:
    backend, logins = case.adapter.mapping.backend, case.adapter.parts.backend.logins
    if not logins.renews:
        return
    try:
        await logins.headers()
    except AdapterError as error:
        look.failed(short(error), "url" if backend.login is None else backend.login.method)
    else:
        is_said = backend.login is None or backend.login.seconds is not None
        origin = "" if is_said else ", as the mapping says"
        look.ok(f"it lets us in; a token is good for {logins.lives:g} s{origin}")


async def _answers(reader: ResourceCalls, case: RestCase, look: Look) -> None:
    """Asks for the list, and for some of its records by their ids."""
    mapped = case.adapter.mapping.resources[reader.name]
    call, one = mapped.list_, mapped.one
    if call is None or reader.listing() is None:
        look.warning("no list without an id: its values were not looked at", place=look.place[:2])
        return
    most = ALL if case.examination.rows is None else case.examination.rows
    most = min(most, DETAILED) if call.details else most
    try:
        raws = case.raws[reader.name] = await reader.sample(most)
    except AdapterError as error:
        case.refused(look, error)
        return
    if is_whole := len(raws) < most:
        case.whole.add(reader.name)
    many = f"{counted(len(raws), 'record')}{'' if is_whole else ', the first ones'}"
    look.ok(f"{label_of(call)} answers: {many}")
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
    look.ok(f"{label_of(one)} answers")


def label_of(call: CallMap) -> str:
    """Returns the label of a call among those that the client has seen."""
    return f"{call.method.upper()} {call.path}"


async def _clash(case: RestCase, look: Look) -> None:
    """Warns where a clash cannot be refused or withdrawn, or a lost booking is hard to find."""
    mapped, rules = case.adapter.mapping.booking, case.adapter.mapping.backend.errors
    if mapped.cancel is None:
        text = "a clash cannot be withdrawn: the mapping has no booking.cancel"
        look.warning(text, subject="cancel")
    if mapped.reference is None:
        text = "no reference: after a lost answer a booking is known by its time and patient alone"
        remedy = "send the draft's reference in a field that is kept, and name it: reference"
        look.warning(text, subject="reference", remedy=remedy)
    if not any(rule.means == "slot taken" for rule in rules):
        text = "no answer of the backend's means that a time is taken"
        remedy = "write a rule under backend.errors that means slot taken"
        look.warning(f"{text}: a refusal says something else", subject="taken", remedy=remedy)
    if not look.findings:
        look.ok("checked before and after; a clash is refused or withdrawn, a lost booking found")


async def _lookup(case: RestCase, look: Look) -> None:
    """Looks for a booking like one of the appointments, with a reference that no booking has."""
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
        now=case.examination.now,
        reference=NOBODYS,
    )
    try:
        await case.adapter.bookings.find(case.session, draft, case.examination.now)
    except AdapterError as error:
        look.failed(short(error), "get")
    else:
        look.ok("the call that looks for a booking answers")


async def _renewal(case: RestCase, look: Look) -> None:
    """Tells how often the gateway logged in, once all else has been asked."""
    backend, logins = case.adapter.mapping.backend, case.adapter.parts.backend.logins
    if not logins.renews:
        return
    login, oauth = backend.login, backend.oauth
    own = OAuthCall.label if login is None else label_of(login)
    others = [status for _, label, status in case.client.seen if label != own]
    text = f"{counted(logins.count, 'login')} for {len(others):,} calls"
    if refused := others.count(401):
        text += f", of which {refused} were refused: a token does not live as long as it should"
        place: Place = ("backend", "oauth", "lifetime")
        if login is not None:
            place = ("backend", "login", "seconds" if login.seconds else "lifetime")
        look.warning(text, place=place, remedy="write a shorter `lifetime`, or see `seconds`")
    elif logins.rotates and oauth is not None and oauth.grant == "refresh_token":
        text += "; the server gives a new refresh token each time, so that after a restart"
        remedy = "let the server keep refresh tokens as they are, or take client_credentials"
        look.warning(f"{text} backend.token is no longer good", remedy=remedy)
    else:
        look.ok(text)


async def _speed(case: RestCase, look: Look) -> None:
    """Tells the slow calls, or else the slowest of all."""
    # the slowest call of each label, the slowest first
    slowest: dict[str, float] = {}
    for seconds, label, _ in sorted(case.client.seen, reverse=True):
        slowest.setdefault(label, seconds)
    places = {
        label_of(call): (*place, call.method)
        for place, call in parts(case.adapter.mapping)
        if isinstance(call, CallMap) and call.method
    }
    for label, took in slowest.items():
        if took > case.patience / 2:
            verdict = Verdict.FAILED if took > case.patience else Verdict.WARNING
            text = f"{label} is slow: backend.timeout is {case.patience:g} s"
            look.judge(verdict, text, place=places.get(label, ()), seconds=took)
    for label, took in islice(() if look.findings else slowest.items(), 1):
        text = f"{len(case.client.seen):,} calls, the slowest of them {label}"
        look.ok(text, seconds=took)


async def _paths(case: RestCase, look: Look) -> None:
    """Warns of each path of the mapping that leads to nothing in what the backend gives."""
    count = 0
    for name, raws in case.raws.items():
        for written in written_paths(name, case.adapter.mapping.resources[name], raws):
            count += 1
            for text in written.complaints():
                about = {"subject": written.subject, "code": "path-to-nothing"}
                look.warning(text, place=written.place, **about)
    if not look.findings:
        many = counted(sum(map(len, case.raws.values())), "record")
        look.ok(f"all {count} paths lead somewhere in {many}")


def _read_in(name: str, resource: ResourceMap) -> tuple[set[Way], set[str]]:
    """Returns the plain ways by which fields are read, and every name in other expressions."""
    ways, names = set[Way](), set[str]()
    for place, expression, _, _ in written_paths(name, resource, []):
        _, _, part, *inner = place
        if part == "where":
            continue
        steps, within = plain_steps(expression), None
        if part == "lists" and inner[1:] != ["items"]:
            within = plain_steps(resource.lists[str(inner[0])].items or "@")
        if steps is None:
            names.update(names_in(expression))
        else:
            ways.add(tuple(step for step in (*(within or ()), *steps) if isinstance(step, str)))
    return ways - {()}, names


def _unused(value: Any, way: Way, ways: set[Way], names: set[str]) -> Iterator[str]:
    """Yields the ways to what is not read, as far down as something beside it is read."""
    if isinstance(value, list):
        for member in value:
            yield from _unused(member, way, ways, names)
    if not isinstance(value, dict) or len(way) > DEEPEST:
        return
    for name, inner in value.items():
        here = (*way, name)
        if any(used[: len(here)] == here and used != here for used in ways):
            yield from _unused(inner, here, ways, names)
            continue
        is_read = name in names or any(here[: len(used)] == used for used in ways)
        if not is_read and _NAME(name):
            yield ".".join(here)


async def _pages(reader: ResourceCalls, call: ListCall, case: RestCase, look: Look) -> None:
    if call.page is not None and (listing := reader.listing()):
        pager, ask = listing
        request, marks = await _first_two(pager, ask, call.page)
        _compared(look, call.page, request[0], *marks)
        if list(map(pager.mark, pager.rows(await ask(*request)))) != marks[0]:
            text = "the first page, asked for again, has other rows or another order"
            look.warning(text, remedy="is there a parameter that sorts? write it under `query`")
    if look.findings:
        return
    before, begun = len(case.client.seen), time.monotonic()
    page = await reader.page((), USUAL, None)
    calls, seconds = len(case.client.seen) - before, time.monotonic() - begun
    text = f"{counted(len(page.records), 'record')} in {counted(calls, 'call')}"
    if seconds <= case.patience / 2:
        look.ok(text, seconds=seconds)
    else:
        text += f"; slow: backend.timeout is {case.patience:g} s"
        look.warning(text, seconds=seconds)


async def _first_two(
    pager: Pager, ask: Ask, page: Paging
) -> tuple[tuple[Params, str | None], list[list[str]]]:
    """Returns how the first page is asked for, and the marks of its rows and of the second's."""
    requests: list[tuple[Params, str | None]] = []
    marks: list[list[str]] = []

    async def noted(params: Params, link: str | None) -> Answer:
        answer = await ask(params, link)
        requests.append((params, link))
        marks.append(list(map(pager.mark, pager.rows(answer))))
        return answer

    async with aclosing(pager.batches(noted, None, page.most)) as batches:
        async for batch in batches:
            if batch.last or len(marks) > 1:
                break
    return requests[0], marks[:2]


def _compared(
    look: Look, page: Paging, params: Params, first: list[str], second: Sequence[str] = ()
) -> None:
    """Tells of rows that come again on the second page, and of pages of another size."""
    # by offset, the second page begins with the last row of the first
    expected = set(first[-1:]) if page.by == "offset" else set()
    if again := (set(first) & set(second)) - expected:
        known = page.offset or page.page or page.cursor or "next"
        text = f"{counted(len(again), 'row')} of the first page come again on the second"
        remedy = f"does the backend know {known}? and does it sort the rows?"
        look.failed(text, "page", "by", remedy=remedy)
    size = page.limit or page.size
    limit = dict(params).get(size) if size else None
    if limit is None:
        return
    though = f"though {limit} were asked for"
    if len(first) > limit:
        text, name = f"a page has {len(first)} rows, {though}", "limit" if page.limit else "size"
        look.warning(text, "page", name, remedy=f"does it know {size}?")
    elif len(first) < limit and {*second} - {*first}:
        text = f"a page has {len(first)} rows at the most, {though}"
        # where a page begins is counted in pages of the size asked for
        verdict = Verdict.FAILED if page.by == "page" else Verdict.WARNING
        look.judge(verdict, text, "page", "most", remedy=f"write most: {len(first)}")


def _filters(case: RestCase) -> Iterator[Look]:
    """Yields a look at each filter, and one at the fields that the gateway itself sifts."""
    for reader, call in case.looked_at():
        for field, by in call.filters.items():
            run, subject = partial(_filter, reader, field, by), f"{reader.name}.{field}"
            at = ("resources", reader.name, "list", "filters", field)
            yield case.look("filters", subject, run, *at)
        if call.sift:
            look = case.look("filters", reader.name)
            look.ok(f"sifted by the gateway: {', '.join(call.sift)}")
            yield look


async def _filter(
    reader: ResourceCalls, field: str, by: FilterParameter, case: RestCase, look: Look
) -> None:
    example = _example(case, reader.name, field, by)
    if example is None:
        look.ok("not tried: no record has a value for it")
        return
    try:
        rows = await _first(reader, [example])
    except (NothingFits, NotFound):
        return
    made = [record for row in await reader.joined(rows) if (record := reader.record(row, ()))]
    if fitting([example])(made):
        if (several := _several(case, reader.name, by)) and not await _first(reader, [several]):
            text = f"{by.query} finds nobody by two words, though a record has both"
            look.failed(text, remedy="write words: each, where each is a parameter, or words: one")
            return
        look.ok(f"the backend obeys {by.query}")
    elif rows == await _first(reader, ()):
        text = f"the backend does not obey {by.query}: the gateway goes through the whole list"
        look.warning(text, remedy="name the parameter that it knows, or move the field to `sift`")
    else:
        look.ok(f"the backend's idea of {by.query} is wider: the gateway sifts what comes")


async def _first(reader: ResourceCalls, filters: Sequence[Filter]) -> list[Any]:
    listing = reader.listing(filters)
    return [] if listing is None else await listing[0].first(listing[1], FEW)


def _several(case: RestCase, name: str, by: FilterParameter) -> Filter | None:
    """Returns a search by a word of each of two fields of one record; None where none has both."""
    fields = tuple(by.fields or ())
    for record in case.samples.get(name, []):
        words = [match[0] for field in fields if (match := _word(str(record[field] or "")))]
        if len(words) > 1:
            return Filter(SEARCH, fields, " ".join(words[:2]))
    return None


def _example(case: RestCase, name: str, field: str, by: FilterParameter) -> Filter | None:
    """Returns a filter that one of the records meets, and others hardly do."""
    records = case.samples.get(name, [])
    if field == SEARCH:
        fields = tuple(by.fields or ())
        texts = (str(record[key]) for record in reversed(records) for key in fields if record[key])
        word = next((match[0] for text in texts if (match := _word(text))), None)
        return None if word is None else Filter(SEARCH, fields, word)
    values = [record[field] for record in records if record[field] is not None]
    if not values:
        return None
    if case.adapter.options.shapes[name][field].format == "date-time":
        return Filter("since", (field,), datetime.fromisoformat(max(values)))
    return Filter("equals", (field,), values[-1])
