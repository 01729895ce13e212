"""What is to be said of all calls: the login, the server's clock, and how long they took."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator

from adapters.base import AdapterError
from adapters.doctor.case import CheckStep
from adapters.doctor.clocks import beside
from adapters.doctor.findings import short
from adapters.doctor.rest.case import RestCase
from adapters.documents.document import Place
from adapters.examination import Finding, Verdict
from adapters.mapping.checker import parts
from adapters.mapping.models import CallMap, Login

UNAUTHORIZED = 401


def login(case: RestCase) -> Iterator[CheckStep]:
    """The first call, where the mapping has one for it."""
    call = case.core.mapping.backend.login
    if call is not None:
        yield CheckStep("login", "token", lambda _: _token(case, call))


async def _token(case: RestCase, call: Login) -> AsyncIterator[Finding]:
    place = ("backend", "login", call.method)
    try:
        lives = await case.adapter.parts.backend.log_in()
    except AdapterError as error:
        case.is_shut = True
        yield case.failed("login", "token", short(error), place)
        return
    told = "" if call.seconds else ", as the mapping says"
    yield case.ok("login", "token", f"it lets us in; a token is good for {lives:g} s{told}")


def clock(case: RestCase) -> Iterator[CheckStep]:
    """One look at the server's clock."""
    yield CheckStep("clock", "server", lambda _: _server(case))


def _server(case: RestCase) -> Iterator[Finding]:
    told = [each.apart for each in case.client.seen if each.apart is not None]
    if told:
        yield beside(case, told[-1], "")
    else:
        yield case.ok("clock", "server", "the backend does not say what time it has")


def logins(case: RestCase) -> Iterator[CheckStep]:
    """How often we had to prove ourselves, when all else has been asked."""
    call = case.core.mapping.backend.login
    if call is not None:
        yield CheckStep("login", "renewal", lambda _: _renewal(case, call))


async def _renewal(case: RestCase, call: Login) -> AsyncIterator[Finding]:
    label = f"{call.method.upper()} {call.path}"
    times = sum(each.label == label for each in case.client.seen)
    refused = sum(each.status == UNAUTHORIZED and each.label != label for each in case.client.seen)
    many = "1 login" if times == 1 else f"{times} logins"
    text = f"{many} for {len(case.client.seen) - times:,} calls"
    if refused:
        text += f", of which {refused} were refused: a token does not live as long as it should"
        remedy = "write a shorter `lifetime`, or see `seconds`"
        place = ("backend", "login", "seconds" if call.seconds else "lifetime")
        yield case.warning("login", "renewal", text, place, remedy=remedy)
    else:
        yield case.ok("login", "renewal", text)


def speed(case: RestCase) -> Iterator[CheckStep]:
    """One look at all that was asked."""
    yield CheckStep("calls", "speed", lambda _: _speed(case))


async def _speed(case: RestCase) -> AsyncIterator[Finding]:
    took: dict[str, list[float]] = defaultdict(list)
    for each in case.client.seen:
        took[each.label].append(each.seconds)
    places = {f"{call.method.upper()} {call.path}": place for place, call in _calls(case)}
    slow = [label for label, seconds in took.items() if max(seconds) > case.patience / 2]
    for label in slow:
        slowest = max(took[label])
        verdict = Verdict.FAILED if slowest > case.patience else Verdict.WARNING
        text = f"{label} is slow: backend.timeout is {case.patience:g} s"
        place = places.get(label, ())
        yield case.judged(verdict, "calls", "speed", text, place, seconds=slowest)
    if took and not slow:
        label = max(took, key=lambda each: max(took[each]))
        text = f"{len(case.client.seen):,} calls, the slowest of them {label}"
        yield case.ok("calls", "speed", text, seconds=max(took[label]))


def _calls(case: RestCase) -> Iterator[tuple[Place, CallMap]]:
    """The calls of the mapping, with the place of each one's path."""
    for place, part in parts(case.core.mapping):
        if isinstance(part, CallMap) and part.method:
            yield (*place, part.method), part
