"""One record before one key or level: the answer, and each field with the line that decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath

import orjson

from adapters.base import Record, Trouble
from gateway.admin.parts import Parts
from gateway.contract.access import AccessLevel
from gateway.contract.errors import BackendUnusable, Forbidden, GatewayError, KeyInvalid, NotFound
from gateway.contract.fields import Resource
from gateway.contract.operations import BASE_PATH, OPERATIONS
from gateway.inquiries.policies import deciding_lines
from gateway.inquiries.viewers import Viewer, lacking
from gateway.policy.policy import Policy
from gateway.policy.redactor import NoUsableId
from gateway.policy.rows import RowFilter
from gateway.policy.rules import ResourceRules
from gateway.policy.running.versions import Version
from gateway.policy.telling.preview import Preview, SeenField, preview, specimen
from gateway.policy.telling.wording import Reason, reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the template shows.

    `seen` is None where the practice system gives the record without a usable id. `lacking` are
    permissions of which one is missing, `unusable` the fields without a usable value.
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
    parts: Parts,
    viewer: Viewer,
    at: datetime,
    resource: Resource,
    record: Record | None,
    record_id: str = "",
) -> Result:
    """By the policy that runs and at that time; without a record, of a made-up one."""
    policy, running = parts.standing().policy, parts.running()
    level, rules = viewer.level_for(resource), policy.rules[resource.name]
    troubles: list[Trouble] = []
    seen = _seen(policy, resource, level, record or specimen(resource), troubles)
    of_records, *of_fields = reasons(resource, rules, level, deciding_lines(running.content))
    lacks = lacking(resource, viewer.key) if viewer.key else []
    ended = viewer.key is not None and not viewer.key.active(at)
    status, body = _answer(seen, is_lacking=bool(lacks), is_ended=ended)
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
        unusable=sorted({each.field for each in troubles}),
        status=status,
        body=body,
        call=_call(resource, record_id),
        hash=running.hash,
        place=place_of(running, parts.standing().file_hash),
    )


def place_of(version: Version, file_hash: str) -> str:
    """What stands before the number of a line: the file's name, while it holds that very text."""
    is_file = version.hash == file_hash
    return PurePath(version.file).name if is_file else version.hash[:12]


def _seen(
    policy: Policy, resource: Resource, level: AccessLevel, record: Record, troubles: list[Trouble]
) -> Preview | None:
    try:
        return preview(policy, resource, level, record, troubles.append)
    except NoUsableId:
        return None


def _answer(seen: Preview | None, *, is_lacking: bool, is_ended: bool) -> tuple[int, str]:
    """Status and body, as the gateway answers it."""
    error: GatewayError
    if is_ended:
        error = KeyInvalid()
    elif is_lacking:
        error = Forbidden()
    elif seen is None:
        error = BackendUnusable()
    elif not seen.exists:
        error = NotFound()
    else:
        return 200, seen.body.decode()
    return error.status, orjson.dumps(error.members()).decode()


def _call(resource: Resource, record_id: str) -> str:
    """The call that is answered so."""
    operation = next(
        each
        for each in OPERATIONS
        if each.returns is resource and each.method == "GET" and not each.many
    )
    path = operation.path.replace("{id}", record_id) if record_id else operation.path
    return f"{operation.method} {BASE_PATH}{path}"
