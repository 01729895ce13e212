"""What signing in and changing one's password have in common: attempts, and a session anew."""

from math import ceil

from aiohttp_session import new_session

from gateway.admin.access.guard import new_token
from gateway.admin.access.session import ADMINISTRATOR, CSRF, PROVED
from gateway.admin.visit import Visit
from gateway.administrators.failures import of_name


def address_of(visit: Visit) -> str:
    """Who asks, whether or not through a proxy."""
    parts, remote = visit.parts, visit.request.remote or ""
    return parts.caller(remote, visit.request.headers) if parts.trusts(remote) else remote


async def wait_of(visit: Visit, name: str) -> int:
    """Seconds that this attempt has to wait; of one that need not, it counts until `forgive`."""
    failures = visit.administration.failures
    wait = await failures.try_now(_subjects(visit, name), visit.parts.now())
    return ceil(wait.total_seconds())


async def forgive(visit: Visit, name: str) -> None:
    """The password was right."""
    await visit.administration.failures.forgive(_subjects(visit, name))


async def begin_session(visit: Visit, administrator_id: str, password: str) -> None:
    """A new one, once the answer is made, if `password` is still what is kept of theirs then.

    Whatever the browser held before means nothing from now on.
    """
    before = visit.session.identity
    if before is not None:
        await visit.administration.sessions.end(before)
    visit.session = await new_session(visit.request)
    visit.session[ADMINISTRATOR], visit.session[CSRF] = administrator_id, new_token()
    visit.request[PROVED] = password


def _subjects(visit: Visit, name: str) -> tuple[str, str]:
    return of_name(name), f"address {address_of(visit)}"
