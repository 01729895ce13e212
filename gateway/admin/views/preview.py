"""What a partner sees: a record as a key or a level gets it, beside the whole one.

A form asks by its address. A real record is asked for by an action, since looking at one is
written into the audit.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from urllib.parse import urlencode

import orjson
from aiohttp import web
from multidict import MultiMapping

from adapters.base import NotFound, Query, Record, Trouble
from gateway.admin.context import PanelContext
from gateway.admin.policy_words import PolicyWords
from gateway.admin.visit import Visit, get, post
from gateway.administrators.administrator import Right
from gateway.administrators.log import LOOKED
from gateway.contract import errors
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource, read_uuid
from gateway.contract.operations import BASE_PATH, OPERATIONS
from gateway.contract.resources import GOVERNED
from gateway.inquiries.keys import Listed, Viewer, Which, lacking, viewer_of
from gateway.inquiries.policies import deciding_lines
from gateway.inquiries.practice import first
from gateway.keys.base import OddKey, UnknownKey
from gateway.keys.key import Key
from gateway.keys.secret import FORM
from gateway.keys.store import KeyStore
from gateway.policy.redactor import NoUsableId
from gateway.policy.rows import RowFilter
from gateway.policy.rules import ResourceRules
from gateway.policy.telling.preview import ABSENT, Preview, SeenField, preview, specimen
from gateway.policy.telling.wording import Reason, reasons

# Letters of a key's name, keys that are offered, and ids of the clinic's own records.
LONGEST, MOST, OFFERED = 200, 12, 5
_RESOURCES = {each.name: each for each in GOVERNED}
_secret = re.compile(FORM).search


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewQuery:
    """Whose eyes, and which kind of record; `resource` is "" where none was chosen."""

    key: str
    level: AccessLevel
    scopes: Mapping[str, AccessLevel]
    resource: str
    wants_ids: bool


def read_query(given: MultiMapping[str]) -> PreviewQuery:
    """Returns what an address or a form holds, as far as it names levels and resources."""
    level, resource = given.get("level", ""), given.get("resource", "")
    scopes = {name: given.get(f"scope.{name}", "") for name in _RESOURCES}
    return PreviewQuery(
        key=given.get("key", "").strip()[:LONGEST],
        level=AccessLevel(level) if level in set(LEVELS) else AccessLevel.BASIC,
        scopes={name: AccessLevel(each) for name, each in scopes.items() if each in set(LEVELS)},
        resource=resource if resource in _RESOURCES else "",
        wants_ids=bool(given.get("ids")),
    )


async def _preview(visit: Visit) -> web.Response:
    """A made-up record; where a page that is open asks, the result alone."""
    return await _page(visit, read_query(visit.request.query))


async def _look(visit: Visit) -> web.Response:
    """One of the clinic's own records, once the audit has that somebody looks at it."""
    query, record_id = read_query(visit.form), visit.text("id")
    resource = _RESOURCES.get(query.resource)
    try:
        read_uuid(record_id)
    except ValueError:
        resource = None
    if resource is None:
        return await _page(visit, query, wrong={"id": visit.words("preview.bad_id")})
    try:
        async with visit.deed(LOOKED, record_id, resource=resource.name):
            wanted = Query(resource=resource.name, now=visit.now, id=record_id)
            record = await visit.context.adapter.read_one(wanted)
    except NotFound:
        return await _page(visit, query, wrong={"id": visit.words("preview.unknown_id")})
    return await _page(visit, query, record=record, record_id=record_id)


async def _page(
    visit: Visit,
    query: PreviewQuery,
    *,
    record: Record | None = None,
    record_id: str = "",
    wrong: Mapping[str, str] | None = None,
) -> web.Response:
    # of a secret only how it begins is looked for and shown, so that no page repeats it
    secret = _secret(query.key)
    text = query.key if secret is None else secret[0][:8]
    keys = await _meant(visit, text) if text else []
    viewer = None if query.key else Viewer(level=query.level, scopes=query.scopes)
    if len(keys) == 1:
        viewer = viewer_of(keys[0])
    result = None
    if viewer is not None:
        resource = _RESOURCES.get(query.resource) or _first_of(viewer)
        at = await KeyStore(visit.store).key_time(visit.now)
        result = result_of(visit.context, viewer, at, resource, record, record_id)
    return visit.page(
        "preview/result.html" if visit.is_part else "preview/page.html",
        422 if wrong else 200,
        asked=query,
        written=keys[0].name if len(keys) == 1 else text,
        keys=keys[:MOST] if len(keys) > 1 else [],
        has_more=len(keys) > MOST,
        to=lambda key: f"/preview?{urlencode({'key': key.id, 'resource': query.resource})}",
        result=result,
        members=_members(result) if result else [],
        offered=await _ids(visit, result.resource) if query.wants_ids and result else None,
        levels=LEVELS,
        resources=list(_RESOURCES),
        said_of=PolicyWords(visit.words),
        ABSENT=ABSENT,
        wrong=wrong or {},
    )


def _members(result: "Result") -> list[tuple[str, str]]:
    """Returns what other forms of the page send along, so that they are about the same."""
    viewer, resource = result.viewer, ("resource", result.resource.name)
    if viewer.key is not None:
        return [("key", viewer.key.id), resource]
    scopes = [(f"scope.{name}", level.value) for name, level in viewer.scopes.items()]
    return [("level", viewer.level.value), *scopes, resource]


def _first_of(viewer: Viewer) -> Resource:
    """Returns the first kind of record that the key may read, where that is anything."""
    if viewer.key is None:
        return _RESOURCES["clients"]
    open_to = (each for each in GOVERNED if not lacking(each, viewer.key))
    return next(open_to, _RESOURCES["clients"])


async def _ids(visit: Visit, resource: Resource) -> list[str]:
    """Returns some ids of the clinic's own records of that kind."""
    records = await first(visit.context.adapter, resource.name, OFFERED, visit.now)
    return [record["id"] for record in records if isinstance(record.get("id"), str)]


async def _meant(visit: Visit, text: str) -> Sequence[Key]:
    """Returns the key with that id, name or hint, if there is one; else all that it fits."""
    with suppress(ValueError, UnknownKey, OddKey):
        return [await KeyStore(visit.store).get(read_uuid(text))]
    found = await _found(visit, text)
    named = [each.key for each in found if each.key.name.casefold() == text.casefold()]
    hinted = [each.key for each in found if any(one.hint == text for one in each.secrets)]
    alone = [same for same in (named, hinted) if len(same) == 1]
    return alone[0] if alone else [each.key for each in found]


async def _matches(visit: Visit) -> web.Response:
    """What the page offers while a key is being written: a part of it."""
    text = visit.asked("key")
    listed = (await _found(visit, text))[:MOST] if text else []
    names = [each.key.name for each in listed]
    offered = [
        (each.key.name if names.count(each.key.name) == 1 else each.key.id, each) for each in listed
    ]
    return visit.page("preview/matches.html", offered=offered)


async def _found(visit: Visit, text: str) -> list[Listed]:
    found = await visit.keys.find(text, Which.ALL, visit.now)
    return sorted(found.keys, key=lambda each: (each.key.name.casefold(), each.key.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One record before one key or level: the answer, and each field with the line that decides.

    `seen` is None where the practice system gives the record without a usable id. `lacking` are
    permissions of which one is missing, `unusable` the fields without a usable value. `place` is
    the file of the policy while it holds that very text, else the policy's hash.
    """

    viewer: Viewer
    resource: Resource
    level: AccessLevel
    record_id: str
    rules: ResourceRules
    rows: RowFilter
    seen: Preview | None
    fields: Sequence[tuple[SeenField, Reason]]
    records: Reason
    lacking: Sequence[str]
    ended: bool
    unusable: Sequence[str]
    status: int
    body: str
    call: str
    hash: str
    place: str


def result_of(
    context: PanelContext,
    viewer: Viewer,
    at: datetime,
    resource: Resource,
    record: Record | None,
    record_id: str = "",
) -> Result:
    """Returns it by the policy that runs and at that time; without a record, of a made-up one."""
    policy, running = context.standing().policy, context.running()
    level, rules = viewer.level_for(resource), policy.rules[resource.name]
    troubles: list[Trouble] = []
    seen = None
    with suppress(NoUsableId):
        seen = preview(policy, resource, level, record or specimen(resource), troubles.append)
    of_records, *of_fields = reasons(resource, rules, level, deciding_lines(running.content))
    lacks = lacking(resource, viewer.key) if viewer.key else []
    ended = viewer.key is not None and not viewer.key.active(at)
    status, body = _answer(seen, is_lacking=bool(lacks), is_ended=ended)
    is_file = running.hash == context.standing().file_hash
    return Result(
        viewer=viewer,
        resource=resource,
        level=level,
        record_id=record_id,
        rules=rules,
        rows=rules.rows_of(level),
        seen=seen,
        fields=list(zip(seen.fields, of_fields, strict=True)) if seen else [],
        records=of_records,
        lacking=lacks,
        ended=ended,
        unusable=sorted({trouble.field for trouble in troubles}),
        status=status,
        body=body,
        call=_call(resource, record_id),
        hash=running.hash,
        place=PurePath(running.file).name if is_file else running.hash[:12],
    )


def _answer(seen: Preview | None, *, is_lacking: bool, is_ended: bool) -> tuple[int, str]:
    """Returns status and body, as the gateway answers it."""
    error: errors.GatewayError
    if is_ended:
        error = errors.KeyInvalid()
    elif is_lacking:
        error = errors.Forbidden()
    elif seen is None:
        error = errors.BackendUnusable()
    elif not seen.exists:
        error = errors.NotFound()
    else:
        return 200, seen.body.decode()
    return error.status, orjson.dumps(error.members()).decode()


def _call(resource: Resource, record_id: str) -> str:
    """Returns the call that is answered so."""
    one = (each for each in OPERATIONS if each.returns is resource and not each.many)
    operation = next(each for each in one if each.method == "GET")
    path = operation.path.replace("{id}", record_id) if record_id else operation.path
    return f"{operation.method} {BASE_PATH}{path}"


PAGES = (
    get("/preview", _preview),
    get("/preview/keys", _matches),
    post("/preview/record", _look, Right.READ),
)
