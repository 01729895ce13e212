"""The doctor of a mapped JSON backend: makes the calls of a mapping, and judges the answers.

`examine` looks in the order in which an integrator would mend: the login, calls, paths, values,
what leads where, pages, filters, the diary, clocks, and what a booking is made with.
"""

from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from functools import partial
from itertools import islice

from adapters.base import AdapterError, Draft
from adapters.doctor.case import Look, clock_judged, examined
from adapters.doctor.diary import diary
from adapters.doctor.laws import laws
from adapters.doctor.rest.booking import rehearsal
from adapters.doctor.rest.case import ALL, RestCase, label_of
from adapters.doctor.rest.lists import filters, pages
from adapters.doctor.rest.members import survey, void_laws
from adapters.doctor.values import links, values
from adapters.documents.document import Place
from adapters.examination import Examination, Finding, Verdict, counted, short
from adapters.mapping.checker import parts
from adapters.mapping.models import CallMap, MappingFile
from adapters.rest.adapter import RestAdapter
from adapters.rest.checks import written_paths
from adapters.rest.login import OAuthCall
from adapters.rest.resource import ResourceCalls

# Records looked at where each of them costs a call, and those that are read again.
DETAILED, READ_AGAIN = 60, 3
# A reference that no booking has.
NOBODYS = "NOTABOOKING00000"

__all__ = ["examine", "survey"]


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
    for looks in (values, laws, void_laws, links):
        yield from looks(case)
    for reader, call in case.looked_at():
        place = ("resources", reader.name, "list")
        yield case.look("pages", reader.name, partial(pages, reader, call), *place)
    yield from filters(case)
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
        yield case.look("booking", "rehearsal", rehearsal)
    yield case.look("login", "renewal", _renewal)
    yield case.look("calls", "speed", _speed)


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
        raws, failures = await reader.sample(most)
    except AdapterError as error:
        case.refused(look, error)
        return
    case.raws[reader.name] = raws
    for failure in failures:
        code = "unanswered" if failure.of_all else "doubtful-answer"
        place = (*look.place[:2], *failure.place)
        look.failed(f"{short(failure.error)}, for a record of the list", place=place, code=code)
    if is_whole := len(raws) < most and not failures:
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


async def _clash(case: RestCase, look: Look) -> None:
    """Warns where a clash cannot be refused or withdrawn."""
    mapped = case.adapter.mapping.booking
    if not mapped.can_withdraw:
        text = "a clash cannot be withdrawn: the mapping has no booking.cancel"
        look.warning(text, subject="cancel")
    if not tells_taken(case.adapter.mapping):
        text = "no answer of the backend's means that a time is taken"
        remedy = "write a rule under backend.errors that means slot taken"
        look.warning(f"{text}: a refusal says something else", subject="taken", remedy=remedy)
    if not look.findings:
        look.ok("checked before and after; a clash is refused or withdrawn")


def tells_taken(mapping: MappingFile) -> bool:
    """Returns whether an answer to a booking may mean that the time is taken."""
    steps = mapping.booking.steps
    rules = [*mapping.backend.errors, *(rule for step in steps for rule in step.errors)]
    meanings = {rule.means for rule in rules}
    meanings |= {kept.missing for step in steps for kept in step.keep.values() if kept.missing}
    # 412 means it without a rule
    by_version = any(name.lower() == "if-match" for step in steps for name in step.headers)
    return by_version or "slot taken" in meanings


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
        text += "; the server gives another refresh token each time, which is kept in memory alone:"
        text += " after this check, and after each restart, it refuses backend.token"
        remedy = "let the server keep refresh tokens as they are, or take client_credentials; now"
        look.warning(text, remedy=f"{remedy} write a new backend.token")
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
