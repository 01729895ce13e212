"""`clinic-gateway policy preview`: a record as a key sees it, beside the whole one."""

import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from adapters.base import Record, Report, Trouble
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import LEVEL, RESOURCE, Scope, config_option, fail, json_option
from gateway.cli.policy.asked import key_named, record_named
from gateway.cli.policy.file import file_argument, loaded
from gateway.contract.access import AccessLevel
from gateway.contract.fields import Resource, read_uuid
from gateway.contract.resources import GOVERNED
from gateway.inquiries.keys import Viewer, lacking, viewer_of
from gateway.keys.key import Key
from gateway.policy.masks import Mask
from gateway.policy.policy import Policy
from gateway.policy.redactor import NoUsableId
from gateway.policy.rules import WHOLE
from gateway.policy.telling.preview import Preview, SeenField
from gateway.policy.telling.preview import preview as previewed
from gateway.policy.telling.specimen import specimen
from gateway.policy.telling.wording import kind_of

WIDTH = 80
_RESOURCES = {each.name: each for each in GOVERNED}


class PublicId(click.ParamType[Any]):
    """The public id of a record."""

    name = "UUID"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        try:
            return read_uuid(str(value))
        except ValueError:
            self.fail("write a public id, a UUID in lower case; `sample` lists some", param, ctx)


@click.command("preview")
@file_argument
@click.option("--key", "key_name", metavar="ID-OR-NAME", help="A key of the store.")
@click.option("--level", type=LEVEL, help="In place of a key: BASIC, STANDARD or FULL.")
@click.option(
    "--scope",
    "scopes",
    type=Scope(),
    multiple=True,
    help="With --level: the level of a resource; repeatable.",
)
@click.option(
    "--resource", "resource_name", type=RESOURCE, required=True, help="The kind of record."
)
@click.option(
    "--id",
    "record_id",
    type=PublicId(),
    help="A record of the practice system; a made-up one where it is left out.",
)
@config_option
@json_option
def preview_record(
    file: Path | None,
    config: Path | None,
    as_json: bool,
    resource_name: str,
    record_id: str | None,
    **asked: Any,
) -> None:
    """Print a record as a key sees it, beside the whole one.

    FILE is the configured policy where it is left out. With --id the record is a real one: mind
    who looks at your screen.
    """
    resource = _RESOURCES[resource_name]
    check_asked(**asked)
    policy = loaded(file, config, as_json=as_json)
    viewer = _viewer(config, **asked)
    troubles: list[Trouble] = []
    record = specimen(resource)
    if record_id:
        record = record_named(config, resource, record_id, troubles.append)
    seen = _seen(policy, resource, viewer, record, troubles.append)
    notes = [*_notes(resource, viewer.key), *dict.fromkeys(map(_said, troubles))]
    if as_json:
        told = _told(policy, resource, viewer, record_id, seen)
        click.echo(legible_json(told | {"notes": notes}))
        return
    for line in _head(resource, viewer, record_id, seen, notes):
        for part in textwrap.wrap(legible(line), WIDTH, break_on_hyphens=False):
            click.echo(part)
    _print_fields(seen, viewer.level_for(resource))


def check_asked(
    key_name: str | None,
    level: AccessLevel | None,
    scopes: tuple[tuple[str, AccessLevel], ...],
) -> None:
    """Wrong use unless either a key or a level is named, and each scope once."""
    if (key_name is None) == (level is None):
        raise click.UsageError("name a key with --key, or a level with --level")
    if scopes and key_name is not None:
        raise click.UsageError("a key has its own scopes; --scope goes with --level")
    named = [name for name, _ in scopes]
    if doubled := sorted({each for each in named if named.count(each) > 1}):
        raise click.UsageError(f"--scope names {', '.join(doubled)} twice; give it one level")


def _viewer(
    config: Path | None,
    key_name: str | None,
    level: AccessLevel | None,
    scopes: tuple[tuple[str, AccessLevel], ...],
) -> Viewer:
    if key_name is not None:
        return viewer_of(key_named(config, key_name))
    if level is None:
        raise click.UsageError("name a key with --key, or a level with --level")
    return Viewer(level=level, scopes=dict(scopes))


def _name(viewer: Viewer) -> str:
    key = viewer.key
    return f"the key {key.name} ({key.id})" if key else f"a key with the level {viewer.level}"


def _decided(viewer: Viewer, resource: Resource) -> str:
    if viewer.is_scoped(resource):
        return f"its scope {resource.name}={viewer.level_for(resource)} decides"
    return f"its level {viewer.level} decides"


def _seen(
    policy: Policy, resource: Resource, viewer: Viewer, record: Record, report: Report
) -> Preview:
    try:
        return previewed(policy, resource, viewer.level_for(resource), record, report)
    except NoUsableId:
        fail("the practice system gives this record without a usable id; no partner is shown it")


def _said(trouble: Trouble) -> str:
    if trouble.kind == "no id":
        return f"an item has no usable {trouble.resource}.{trouble.field}: it is left out"
    return f"{trouble.resource}.{trouble.field} is {trouble.kind}: partners are shown no value"


def _notes(resource: Resource, key: Key | None) -> Iterator[str]:
    """Why the key may see nothing at all, whatever the policy says."""
    if key is None:
        return
    if not key.active(datetime.now(UTC)):
        yield "this key is revoked or expired: it is shown nothing any more"
    if needed := lacking(resource, key):
        yield f"this key lacks {' or '.join(needed)}: no call shows it {resource.name}"


def _head(
    resource: Resource, viewer: Viewer, record_id: str | None, seen: Preview, notes: list[str]
) -> Iterator[str]:
    what = f"the record {record_id}" if record_id else "a made-up record"
    yield f"{resource.name}, {what}, as seen by {_name(viewer)}: {_decided(viewer, resource)}"
    yield from notes
    if not seen.condition:
        return
    asked = f"{viewer.level_for(resource)} sees only records whose {seen.condition}"
    if seen.exists:
        yield f"this record exists for that key: {asked}"
    else:
        yield f"this record does not exist for that key: {asked}"
        yield "of one that does exist, the key would see:"


def _print_fields(seen: Preview, level: AccessLevel) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("field", no_wrap=True)
    table.add_column("whole", overflow="fold")
    table.add_column(f"seen at {level}", overflow="fold")
    for each in seen.fields:
        cells = (each.path, _spelt(each.whole), _shown(each))
        table.add_row(*(escape(legible(cell)) for cell in cells))
    Console(highlight=False, width=WIDTH).print(table)


def _shown(each: SeenField) -> str:
    if isinstance(each.sight, Mask):
        return f"{_spelt(each.shown)} (masked: {each.sight})"
    return "the same" if each.sight is WHOLE else "(hidden)"


def _spelt(value: Any) -> str:
    if value is None or value == []:
        return "(no value)"
    if isinstance(value, list):
        return "; ".join(map(_spelt, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _told(
    policy: Policy, resource: Resource, viewer: Viewer, record_id: str | None, seen: Preview
) -> dict[str, Any]:
    key = viewer.key
    return {
        "file": policy.file,
        "hash": policy.hash,
        "resource": resource.name,
        "key": {"id": key.id, "name": key.name} if key else None,
        "level": viewer.level_for(resource),
        "decided": _decided(viewer, resource),
        "id": record_id,
        "exists": seen.exists,
        "condition": seen.condition or None,
        "whole": seen.whole,
        "answer": seen.answer if seen.exists else None,
        "fields": {each.path: _field(each) for each in seen.fields},
    }


def _field(each: SeenField) -> dict[str, Any]:
    told: dict[str, Any] = {"sight": kind_of(each.sight), "whole": each.whole}
    if isinstance(each.sight, Mask):
        told |= {"mask": str(each.sight), "shown": each.shown}
    return told
