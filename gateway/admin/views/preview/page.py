"""The page: a form that asks by its address, and below it the record before and after the policy.

A real record is asked for by an action, since looking at one is written into the audit.
"""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from aiohttp import web

from adapters.base import AdapterError, NotFound, Query, Record
from gateway.admin.access.guard import Refused
from gateway.admin.policy_words import PolicyWords
from gateway.admin.views.preview.asked import Asked, asked_in
from gateway.admin.views.preview.matches import MOST, meant, without_secret
from gateway.admin.views.preview.result import Result, result_of
from gateway.admin.visit import Visit
from gateway.administrators.log import LOOKED
from gateway.contract.access import LEVELS
from gateway.contract.fields import Resource, read_uuid
from gateway.contract.resources import GOVERNED
from gateway.inquiries.directory import first
from gateway.inquiries.viewers import Viewer, lacking, viewer_of
from gateway.keys.key import Key
from gateway.keys.store import KeyStore
from gateway.policy.telling.preview import ABSENT

# Ids that are offered of the clinic's own records.
OFFERED = 5
_RESOURCES = {each.name: each for each in GOVERNED}


async def preview(visit: Visit) -> web.Response:
    """A made-up record; where a page that is open asks, the result alone."""
    return await _page(visit, asked_in(visit.request.query))


async def look(visit: Visit) -> web.Response:
    """One of the clinic's own records, once the audit has that somebody looks at it."""
    asked, record_id = asked_in(visit.form), visit.text("id")
    resource = _RESOURCES.get(asked.resource)
    try:
        read_uuid(record_id)
    except ValueError:
        resource = None
    if resource is None:
        return await _page(visit, asked, wrong={"id": visit.words("preview.bad_id")})
    try:
        async with visit.deed(LOOKED, record_id, resource=resource.name):
            wanted = Query(resource=resource.name, now=visit.parts.now(), id=record_id)
            record = await visit.parts.adapter.read_one(wanted)
    except NotFound:
        return await _page(visit, asked, wrong={"id": visit.words("preview.unknown_id")})
    except AdapterError as error:
        raise Refused(502, "practice") from error
    return await _page(visit, asked, record=record, record_id=record_id)


async def _page(
    visit: Visit,
    asked: Asked,
    *,
    record: Record | None = None,
    record_id: str = "",
    wrong: Mapping[str, str] | None = None,
) -> web.Response:
    keys = await meant(visit, without_secret(asked.key)) if asked.key else []
    viewer = Viewer(level=asked.level, scopes=asked.scopes) if not asked.key else None
    if len(keys) == 1:
        viewer = viewer_of(keys[0])
    result = None
    if viewer is not None:
        resource = _RESOURCES.get(asked.resource) or _first_of(viewer)
        at = await KeyStore(visit.parts.store).key_time(visit.parts.now())
        result = result_of(visit.parts, viewer, at, resource, record, record_id)
    return visit.page(
        "preview/result.html" if visit.is_part else "preview/page.html",
        422 if wrong else 200,
        asked=asked,
        written=_written(asked, keys),
        keys=keys[:MOST] if len(keys) > 1 else [],
        has_more=len(keys) > MOST,
        to=lambda key: f"/preview?{urlencode(list(asked.members(key)))}",
        result=result,
        members=_members(asked, result),
        offered=await _ids(visit, result) if asked.wants_ids and result else None,
        levels=LEVELS,
        resources=list(_RESOURCES),
        said_of=PolicyWords(visit.words),
        ABSENT=ABSENT,
        wrong=wrong or {},
    )


def _first_of(viewer: Viewer) -> Resource:
    """The first kind of record that the key may read, where that is anything."""
    if viewer.key is None:
        return _RESOURCES["clients"]
    open_to = (each for each in GOVERNED if not lacking(each, viewer.key))
    return next(open_to, _RESOURCES["clients"])


def _written(asked: Asked, keys: Sequence[Key]) -> str:
    """What stands in the field of the key: its name, where one was found by it."""
    return keys[0].name if len(keys) == 1 else without_secret(asked.key)


def _members(asked: Asked, result: Result | None) -> list[tuple[str, str]]:
    """What other forms of the page send along, so that they are about the same."""
    if result is None:
        return []
    return list(asked.members(result.viewer.key, result.resource.name))


async def _ids(visit: Visit, result: Result) -> list[str]:
    """Some ids of the clinic's own records of that kind."""
    parts, name = visit.parts, result.resource.name
    try:
        records = await first(parts.adapter, name, OFFERED, parts.now())
    except AdapterError as error:
        raise Refused(502, "practice") from error
    return [each["id"] for each in records if isinstance(each.get("id"), str)]
