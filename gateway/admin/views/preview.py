"""Shows what a partner sees: a record as a key or a level gets it, beside the whole record.

To look at a real record is an action, since it is written into the audit.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Any

import orjson
from aiohttp import web

from adapters.base import NotFound, Query, Record, Trouble
from gateway.admin.visit import Visit, get, post
from gateway.administrators.administrator import Right
from gateway.administrators.log import LOOKED
from gateway.contract import errors as answers
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource, read_uuid
from gateway.contract.operations import BASE_PATH, OPERATIONS
from gateway.contract.resources import GOVERNED
from gateway.inquiries.keys import Which, imagined, lacking
from gateway.inquiries.practice import first
from gateway.keys.key import Key
from gateway.keys.secret import FORM
from gateway.keys.store import OddKey, UnknownKey
from gateway.policy.reading.document import spots_of
from gateway.policy.redactor import NoUsableId
from gateway.policy.telling.preview import Preview, preview, specimen
from gateway.policy.telling.wording import reasons

# The most characters of a name, keys that are offered, and ids of real records that are offered.
LONGEST, MOST, OFFERED = 200, 12, 5
_RESOURCES = {resource.name: resource for resource in GOVERNED}
_secret = re.compile(FORM).search


@post("/preview/record", Right.READ)
async def _look(visit: Visit) -> web.Response:
    """A real record, once the audit has the deed."""
    resource, record_id = visit.text("resource"), visit.text("id")
    try:
        read_uuid(record_id)
    except ValueError:
        resource = ""
    if resource not in _RESOURCES:
        return await _page(visit, errors={"id": visit.words("preview.bad_id")})
    try:
        async with visit.deed(LOOKED, record_id, resource=resource):
            query = Query(resource=resource, now=visit.now, id=record_id)
            record = await visit.panel.adapter.read_one(query)
    except NotFound:
        return await _page(visit, errors={"id": visit.words("preview.unknown_id")})
    return await _page(visit, record, record_id)


@get("/preview")
async def _page(
    visit: Visit,
    record: Record | None = None,
    record_id: str = "",
    errors: Mapping[str, str] | None = None,
) -> web.Response:
    """A record, real or made up; for an open page, the result alone."""
    given = visit.form or visit.request.query
    level, resource = str(given.get("level", "")), _RESOURCES.get(given.get("resource", ""))
    scopes = {name: str(given.get(f"scope.{name}", "")) for name in _RESOURCES}
    chosen = imagined(
        AccessLevel(level) if level in set(LEVELS) else AccessLevel.BASIC,
        {name: AccessLevel(scope) for name, scope in scopes.items() if scope in set(LEVELS)},
        visit.now,
    )
    answered = [call.returns for call in visit.panel.offered]
    # with nothing to choose from, specimens of all kinds
    readable = [kind for kind in GOVERNED if kind in answered] or list(GOVERNED)
    written = str(given.get("key", "")).strip()[:LONGEST]
    # only the beginning of a secret is looked for and shown, so that no page repeats it
    secret = _secret(written)
    text = written if secret is None else secret[0][:8]
    keys = await _meant(visit, text) if text else []
    result = ids = None
    if len(keys) == 1 or not written:
        viewer = keys[0] if keys else chosen
        # without a resource, the first that the key may read
        may = (kind for kind in readable if keys and not lacking(kind, keys[0]))
        shown = resource or next(may, readable[0])
        result = await _result(visit, viewer, shown, record, record_id)
        if given.get("ids"):
            records = await first(visit.panel.adapter, shown.name, OFFERED, visit.now)
            ids = [some["id"] for some in records if isinstance(some.get("id"), str)]
    return visit.page(
        "preview/result.html" if visit.is_part else "preview/page.html",
        errors=errors,
        asked={
            "key": written,
            "level": chosen.level,
            "scopes": chosen.scopes,
            "resource": resource.name if resource else "",
        },
        written=keys[0].name if len(keys) == 1 else text,
        keys=keys,
        most=MOST,
        result=result,
        ids=ids,
        readable=readable,
    )


async def _meant(visit: Visit, text: str) -> Sequence[Key]:
    """Returns the one key with that id, name or hint; else all keys that the text fits."""
    with suppress(ValueError, UnknownKey, OddKey):
        return [(await visit.panel.keys.show(read_uuid(text))).key]
    matches = (await visit.panel.book.find(text, Which.ALL, visit.now)).keys
    named = [held.key for held in matches if held.key.name.casefold() == text.casefold()]
    hinted = [held.key for held in matches if any(one.hint == text for one in held.secrets)]
    alone = [same for same in (named, hinted) if len(same) == 1]
    return alone[0] if alone else [held.key for held in matches]


@get("/preview/keys")
async def _matches(visit: Visit) -> web.Response:
    """The part of the page with the keys that fit what is being typed."""
    text = visit.query("key")
    listed = (await visit.panel.book.find(text, Which.ALL, visit.now)).keys[:MOST] if text else []
    names = [held.key.name for held in listed]
    fitting = [
        (held.key.name if names.count(held.key.name) == 1 else held.key.id, held) for held in listed
    ]
    return visit.page("preview/matches.html", fitting=fitting)


async def _result(
    visit: Visit, viewer: Key, resource: Resource, record: Record | None, record_id: str
) -> dict[str, Any]:
    """Returns the answer to a key under the policy that runs, and the rule that decides each field.

    `seen` is None where the record has no usable id. `place` is the policy's file where it still
    holds the text that runs, else its hash.
    """
    standing, troubles, seen = visit.panel.standing(), list[Trouble](), None
    policy, version = standing.policy, standing.policy.version
    level, rules = viewer.level_for(resource.name), policy.rules[resource.name]
    with suppress(NoUsableId):
        seen = preview(policy, resource, level, record or specimen(resource), troubles.append)
    of_records, *of_fields = reasons(resource, rules, level, spots_of(version.content))
    lacks = lacking(resource, viewer)
    ended = not viewer.active(await visit.panel.keys.key_time(visit.now))
    status, body = _answer(seen, is_lacking=bool(lacks), is_ended=ended)
    operation = next(
        call
        for call in OPERATIONS
        if call.returns is resource and not call.many and call.method == "GET"
    )
    path = operation.path.replace("{id}", record_id) if record_id else operation.path
    is_file = version.hash == standing.file_hash
    return {
        "viewer": viewer,
        "resource": resource,
        "level": level,
        "record_id": record_id,
        "rules": rules,
        "seen": seen,
        "fields": list(zip(seen.fields, of_fields, strict=True)) if seen else [],
        "records": of_records,
        "lacking": lacks,
        "ended": ended,
        "unusable": sorted({trouble.field for trouble in troubles}),
        "status": status,
        "body": body,
        "call": f"GET {BASE_PATH}{path}",
        "hash": version.hash,
        "place": PurePath(version.file).name if is_file else version.hash[:12],
    }


def _answer(seen: Preview | None, *, is_lacking: bool, is_ended: bool) -> tuple[int, str]:
    if seen is not None and seen.exists and not is_lacking and not is_ended:
        return 200, seen.body.decode()
    error: answers.GatewayError = answers.BackendUnusable() if seen is None else answers.NotFound()
    if is_lacking:
        error = answers.Forbidden()
    if is_ended:
        error = answers.KeyInvalid()
    return error.status, orjson.dumps(error.members()).decode()
