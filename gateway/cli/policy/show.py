"""`clinic-gateway policy show` and `preview`: what each level sees; a record as a key sees it."""

import asyncio
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adapters.base import Trouble
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import LEVEL, RESOURCE, OneOf, Scope, config_option, fail, json_option
from gateway.cli.policy.subject import file_argument, key_named, loaded, record_named
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource, read_uuid
from gateway.contract.resources import GOVERNED
from gateway.inquiries.keys import Viewer, lacking, viewer_of
from gateway.inquiries.policies import is_kept, policy_named
from gateway.policy.masks import Mask
from gateway.policy.policy import Policy, compile_policy
from gateway.policy.redactor import NoUsableId
from gateway.policy.rules import WHOLE, AllOrNothing
from gateway.policy.telling.preview import Preview, SeenField, preview, specimen
from gateway.policy.telling.sheets import as_csv, as_markdown, as_page
from gateway.policy.telling.wording import kind_of, mask_in_words, masks_of, row_sentences
from gateway.settings import Settings, load_settings
from gateway.state import opened_if_begun

FORMATS = ("text", "markdown", "csv", "html", "json")
WIDTH = 80
_IN_TEXT = {AllOrNothing.WHOLE: "yes", AllOrNothing.HIDDEN: "-"}
_RESOURCES = {resource.name: resource for resource in GOVERNED}


@click.command()
@file_argument
@click.option(
    "--format",
    "wanted",
    type=OneOf("FORMAT", FORMATS),
    metavar="FORMAT",
    help="text, markdown, csv, html or json; text where it is left out.",
)
@config_option
@json_option
def show(file: Path | None, wanted: str | None, config: Path | None, as_json: bool) -> None:
    """Print which level sees which field, whole or how masked, and which records.

    FILE is the configured policy where it is left out; in its place, `running` or the beginning
    of the hash of a policy that ran. `html` is one page to print or to hand to
    a data protection officer: policy show --format html > what-partners-see.html
    """
    if as_json and wanted not in (None, "json"):
        raise click.UsageError(f"--json and --format {wanted} are two formats; keep one of them")
    wanted = "json" if as_json else wanted or "text"
    if file is not None and is_kept(str(file)):
        policy = asyncio.run(_kept(str(file), load_settings(config)))
    else:
        policy = loaded(file, config, as_json=wanted == "json")
    if wanted == "text":
        _print_tables(policy)
    else:
        click.echo(_WRITERS[wanted](policy), nl=False)


async def _kept(name: str, settings: Settings) -> Policy:
    """A policy that ran, out of the gateway's own store; StartRefused where there is none."""
    async with opened_if_begun(settings) as store:
        found = await policy_named(name, store)
    return compile_policy(found.name, found.hash, found.rules, lambda trouble: None)


def _as_json(policy: Policy) -> str:
    """For each field of each resource, whether each level sees it whole; masks; conditions."""
    resources: dict[str, dict[str, dict[str, bool]]] = {}
    masks: dict[str, dict[str, dict[str, str]]] = {}
    for name, rules in policy.rules.items():
        resources[name] = {}
        for path, sights in rules.fields.items():
            seen = dict(zip((level.value for level in LEVELS), sights, strict=True))
            resources[name][path] = {level: sight is WHOLE for level, sight in seen.items()}
            masked = {level: str(sight) for level, sight in seen.items() if isinstance(sight, Mask)}
            if masked:
                masks.setdefault(name, {})[path] = masked
    records = {
        resource.name: {level.value: sentence for level, sentence in sentences}
        for resource in GOVERNED
        if (sentences := row_sentences(resource, policy.rules[resource.name]))
    }
    about = {"file": policy.file, "hash": policy.hash}
    data = {**about, "resources": resources, "masks": masks, "records": records}
    return json.dumps(data, indent=2) + "\n"


_WRITERS: Mapping[str, Callable[[Policy], str]] = {
    "markdown": as_markdown,
    "csv": as_csv,
    "html": lambda policy: as_page(policy, date.today()),  # noqa: DTZ011 - the clinic's own day
    "json": _as_json,
}


def _print_tables(policy: Policy) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("field", no_wrap=True)
    for level in LEVELS:
        table.add_column(level.value, justify="center", no_wrap=True)
    for name, rules in policy.rules.items():
        table.add_section()
        table.add_row(f"[bold]{escape(name)}[/bold]")
        for path, sights in rules.fields.items():
            cells = (
                escape(str(sight)) if isinstance(sight, Mask) else _IN_TEXT[sight]
                for sight in sights
            )
            table.add_row(f"  {escape(path)}", *cells)
    console = Console(highlight=False, width=WIDTH)
    console.print(f"{escape(legible(policy.file))}, hash {policy.short_hash}", soft_wrap=True)
    console.print(table)
    for note in _notes(policy):
        _print_wrapped(note, indent="    ")


def _notes(policy: Policy) -> Iterator[str]:
    """What the masks show, and which records exist."""
    for mask in masks_of(policy.rules.values()):
        yield f"{mask}: {mask_in_words(mask)}"
    for resource in GOVERNED:
        for level, sentence in row_sentences(resource, policy.rules[resource.name]):
            yield f"{resource.name} {level}: {sentence}"


def _print_wrapped(text: str, indent: str = "") -> None:
    """In lines of 80 columns."""
    lines = textwrap.wrap(legible(text), WIDTH, subsequent_indent=indent, break_on_hyphens=False)
    click.echo("\n".join(lines))


def _public_id(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    try:
        return value and read_uuid(value)
    except ValueError as error:
        text = "write a public id, a UUID in lower case; `sample` lists some"
        raise click.BadParameter(text) from error


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
    metavar="UUID",
    callback=_public_id,
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
    viewer = _viewer(config, **asked)
    policy = loaded(file, config, as_json=as_json)
    troubles: list[Trouble] = []
    record = specimen(resource)
    if record_id:
        record = record_named(config, resource, record_id, troubles.append)
    level = viewer.level_for(resource)
    try:
        seen = preview(policy, resource, level, record, troubles.append)
    except NoUsableId:
        fail("the practice system gives this record without a usable id; no partner is shown it")
    notes = [*_about_key(resource, viewer), *dict.fromkeys(map(_in_words, troubles))]
    if as_json:
        members = _members(resource, viewer, record_id, seen)
        about = {"file": policy.file, "hash": policy.hash}
        click.echo(legible_json({**about, **members, "notes": notes}))
        return
    for line in _head(resource, viewer, record_id, seen, notes):
        _print_wrapped(line)
    _print_fields(seen, level)


def _viewer(
    config: Path | None,
    key_name: str | None,
    level: AccessLevel | None,
    scopes: tuple[tuple[str, AccessLevel], ...],
) -> Viewer:
    """Who looks; wrong use unless either a key or a level is named, and each scope once."""
    if key_name is not None and level is None:
        if scopes:
            raise click.UsageError("a key has its own scopes; --scope goes with --level")
        return viewer_of(key_named(config, key_name))
    if key_name is not None or level is None:
        raise click.UsageError("name a key with --key, or a level with --level")
    named = [name for name, _ in scopes]
    if doubled := sorted({name for name in named if named.count(name) > 1}):
        raise click.UsageError(f"--scope names {', '.join(doubled)} twice; give it one level")
    return Viewer(level=level, scopes=dict(scopes))


def _decided(viewer: Viewer, resource: Resource) -> str:
    if viewer.is_scoped(resource):
        return f"its scope {resource.name}={viewer.level_for(resource)} decides"
    return f"its level {viewer.level} decides"


def _in_words(trouble: Trouble) -> str:
    if trouble.kind == "no id":
        return f"an item has no usable {trouble.resource}.{trouble.field}: it is left out"
    return f"{trouble.resource}.{trouble.field} is {trouble.kind}: partners are shown no value"


def _about_key(resource: Resource, viewer: Viewer) -> Iterator[str]:
    """Why the key may see nothing at all, whatever the policy says."""
    if viewer.key is None:
        return
    if not viewer.key.active(datetime.now(UTC)):
        yield "this key is revoked or expired: it is shown nothing any more"
    if needed := lacking(resource, viewer.key):
        yield f"this key lacks {' or '.join(needed)}: no call shows it {resource.name}"


def _head(
    resource: Resource, viewer: Viewer, record_id: str | None, seen: Preview, notes: list[str]
) -> Iterator[str]:
    key, what = viewer.key, f"the record {record_id}" if record_id else "a made-up record"
    who = f"the key {key.name} ({key.id})" if key else f"a key with the level {viewer.level}"
    yield f"{resource.name}, {what}, as seen by {who}: {_decided(viewer, resource)}"
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
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("field", no_wrap=True)
    table.add_column("whole", overflow="fold")
    table.add_column(f"seen at {level}", overflow="fold")
    for field in seen.fields:
        cells = (field.path, _spelt(field.whole), _shown(field))
        table.add_row(*(escape(legible(cell)) for cell in cells))
    Console(highlight=False, width=WIDTH).print(table)


def _shown(field: SeenField) -> str:
    if isinstance(field.sight, Mask):
        return f"{_spelt(field.shown)} (masked: {field.sight})"
    return "the same" if field.sight is WHOLE else "(hidden)"


def _spelt(value: Any) -> str:
    if value is None or value == []:
        return "(no value)"
    if isinstance(value, list):
        return "; ".join(map(_spelt, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _members(
    resource: Resource, viewer: Viewer, record_id: str | None, seen: Preview
) -> dict[str, Any]:
    key = viewer.key
    return {
        "resource": resource.name,
        "key": {"id": key.id, "name": key.name} if key else None,
        "level": viewer.level_for(resource),
        "decided": _decided(viewer, resource),
        "id": record_id,
        "exists": seen.exists,
        "condition": seen.condition or None,
        "whole": seen.whole,
        "answer": seen.answer if seen.exists else None,
        "fields": {field.path: _field(field) for field in seen.fields},
    }


def _field(field: SeenField) -> dict[str, Any]:
    members: dict[str, Any] = {"sight": kind_of(field.sight), "whole": field.whole}
    if isinstance(field.sight, Mask):
        members |= {"mask": str(field.sight), "shown": field.shown}
    return members
