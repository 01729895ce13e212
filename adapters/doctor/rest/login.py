"""Whether the backend lets us in, for how long, and whether it keeps its word."""

from collections.abc import AsyncIterator, Iterator

from adapters.base import AdapterError
from adapters.doctor.findings import short
from adapters.doctor.rest.case import Case, Step
from adapters.examination import Finding
from adapters.rest.mapping import Login

UNAUTHORIZED = 401


def login(case: Case) -> Iterator[Step]:
    """The first call, where the mapping has one for it."""
    call = case.parts.mapping.backend.login
    if call is not None:
        yield Step("login", "token", lambda: _token(case, call))


async def _token(case: Case, call: Login) -> AsyncIterator[Finding]:
    place = ("backend", "login", call.method)
    try:
        lives = await case.parts.tools.backend.log_in()
    except AdapterError as error:
        case.is_shut = True
        yield case.failed("login", "token", short(error), place)
        return
    told = "" if call.seconds else ", as the mapping says"
    yield case.ok("login", "token", f"it lets us in; a token is good for {lives:g} s{told}")


def logins(case: Case) -> Iterator[Step]:
    """How often we had to prove ourselves, when all else has been asked."""
    call = case.parts.mapping.backend.login
    if call is not None:
        yield Step("login", "renewal", lambda: _renewal(case, call))


async def _renewal(case: Case, call: Login) -> AsyncIterator[Finding]:
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
