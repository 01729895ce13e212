"""The matrix as files to hand out: a page to print, and a table for spreadsheets."""

from collections.abc import Callable

from aiohttp import web

from gateway.admin.views.policy.past import kept
from gateway.admin.visit import Visit
from gateway.policy.policy import Policy, compile_policy
from gateway.policy.telling.sheets import as_csv, as_page


async def page(visit: Visit) -> web.Response:
    """For the clinic's data protection officer."""
    today = visit.parts.now().astimezone(visit.parts.zone).date()
    return await _file(visit, lambda policy: as_page(policy, today), "text/html", "html")


async def table(visit: Visit) -> web.Response:
    """A line for each field at each level."""
    return await _file(visit, as_csv, "text/csv", "csv")


async def _file(
    visit: Visit, written: Callable[[Policy], str], kind: str, ending: str
) -> web.Response:
    name = f"what-partners-see.{ending}"
    return web.Response(
        text=written(await _policy(visit)),
        content_type=kind,
        charset="utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


async def _policy(visit: Visit) -> Policy:
    """What runs, or the version that is asked for."""
    if not visit.asked("version"):
        return visit.parts.standing().policy
    found = await kept(visit, visit.asked("version"))
    if found.rules is None:
        raise web.HTTPNotFound
    return compile_policy(found.version.file, found.version.hash, found.rules, lambda trouble: None)
