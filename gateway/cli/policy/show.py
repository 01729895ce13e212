"""`clinic-gateway policy show` and `preview`: what each level sees; a record as a key sees it."""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from adapters.base import NotFound, Query, Record, Report, Trouble
from gateway.cli.command import Command, Run, now, option, scopes_option
from gateway.cli.keys import NO_KEYS, key_named
from gateway.cli.output import fail, legible, print_table, say, say_json
from gateway.cli.policy.reports import file_argument, loaded
from gateway.cli.values import LEVEL, RESOURCE, TextValue, one_of
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource, read_uuid
from gateway.contract.resources import GOVERNED
from gateway.inquiries.keys import imagined, lacking
from gateway.inquiries.policies import is_kept, policy_named
from gateway.keys.key import Key
from gateway.keys.store import KeyStore
from gateway.policy.masks import Mask
from gateway.policy.policy import WHOLE, AllOrNothing, Policy, Sight
from gateway.policy.redactor import NoUsableId
from gateway.policy.telling.preview import Preview, SeenField, preview, specimen
from gateway.policy.telling.sheets import as_csv, as_markdown, as_page
from gateway.policy.telling.wording import kind_of, masks_of, row_sentences
from gateway.state import opened_if_begun

FORMATS = ("text", "markdown", "csv", "html", "json")
WIDTH = 80
_IN_TEXT: Mapping[Sight, str] = {AllOrNothing.WHOLE: "yes", AllOrNothing.HIDDEN: "-"}


@click.command(cls=Command)
@file_argument
@option(
    "--format form",
    one_of("FORMAT", FORMATS),
    "text, markdown, csv, html or json; text where it is left out.",
)
async def show(run: Run, file: Path | None, form: str | None) -> None:
    """Print which level sees which field, whole or how masked, and which records.

    FILE is the configured policy where it is left out; in its place, `running` or the beginning
    of the hash of a policy that ran. `html` is one page to print or to hand to
    a data protection officer: policy show --format html > what-partners-see.html
    """
    if run.as_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} are two formats; keep one of them")
    run = replace(run, as_json=run.as_json or form == "json")
    if file is not None and is_kept(str(file)):
        async with opened_if_begun(run.settings) as store:
            policy = await policy_named(str(file), store)
    else:
        policy = loaded(run, file)
    if run.as_json:
        say_json(_show_data(policy), indent=2)
    elif form in _WRITERS:
        click.echo(_WRITERS[form](policy), nl=False)
    else:
        _print_tables(policy)


_WRITERS: Mapping[str | None, Callable[[Policy], str]] = {
    "markdown": as_markdown,
    "csv": as_csv,
    "html": lambda policy: as_page(policy, date.today()),  # noqa: DTZ011 - the clinic's own day
}


def _show_data(policy: Policy) -> dict[str, Any]:
    """For each field of each resource, whether each level sees it whole; masks; conditions."""
    resources: dict[str, dict[str, dict[str, bool]]] = {name: {} for name in policy.rules}
    masks: dict[str, dict[str, dict[str, str]]] = {}
    for name, rules in policy.rules.items():
        for path, sights in rules.fields.items():
            seen = dict(zip(map(str, LEVELS), sights, strict=True))
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
    return {**about, "resources": resources, "masks": masks, "records": records}


def _print_tables(policy: Policy) -> None:
    """Every field, what the masks show, and which records exist."""
    say(f"{policy.file}, hash {policy.short_hash}")
    columns: dict[str, dict[str, Any]] = {"field": {"no_wrap": True}}
    columns |= {level.value: {"justify": "center", "no_wrap": True} for level in LEVELS}
    sections: list[list[list[str | Text]]] = []
    for name, rules in policy.rules.items():
        rows: list[list[str | Text]] = [[Text(name, "bold")]]
        for path, sights in rules.fields.items():
            rows.append([f"  {path}", *(_IN_TEXT.get(sight) or str(sight) for sight in sights)])
        sections.append(rows)
    print_table(columns, sections, WIDTH)
    for mask in masks_of(policy.rules.values()):
        _print_wrapped(f"{mask}: {mask.says}", indent="    ")
    for resource in GOVERNED:
        for level, sentence in row_sentences(resource, policy.rules[resource.name]):
            _print_wrapped(f"{resource.name} {level}: {sentence}", indent="    ")


def _print_wrapped(text: str, indent: str = "") -> None:
    say(*textwrap.wrap(legible(text), WIDTH, subsequent_indent=indent, break_on_hyphens=False))


def _public_id(text: str) -> str:
    try:
        return read_uuid(text)
    except ValueError:
        raise ValueError("write a public id, a UUID in lower case; `sample` lists some") from None


@click.command("preview", cls=Command)
@file_argument
@option("--key key_name", TextValue("ID-OR-NAME", str), "A key of the store.")
@option("--level", LEVEL, "In place of a key: BASIC, STANDARD or FULL.")
@scopes_option("With --level: the level of a resource; repeatable.")
@option("--resource", RESOURCE, "The kind of record.", required=True)
@option(
    "--id record_id",
    TextValue("UUID", _public_id),
    "A record of the practice system; a made-up one where it is left out.",
)
async def preview_record(
    run: Run,
    file: Path | None,
    resource: Resource,
    record_id: str | None,
    key_name: str | None,
    level: AccessLevel | None,
    scopes: Mapping[str, AccessLevel],
) -> None:
    """Print a record as a key sees it, beside the whole one.

    FILE is the configured policy where it is left out. With --id the record is a real one: mind
    who looks at your screen.
    """
    if (key_name is None) == (level is None):
        raise click.UsageError("name a key with --key, or a level with --level")
    if level is not None:
        key = imagined(level, scopes, now())
    elif scopes:
        raise click.UsageError("a key has its own scopes; --scope goes with --level")
    else:
        async with run.store(NO_KEYS) as store:
            key, _ = await key_named(KeyStore(store), key_name or "")
    policy = loaded(run, file)
    troubles: list[Trouble] = []
    record = specimen(resource)
    if record_id:
        record = await _record_named(run, resource, record_id, troubles.append)
    try:
        seen = preview(policy, resource, key.level_for(resource.name), record, troubles.append)
    except NoUsableId:
        fail("the practice system gives this record without a usable id; no partner is shown it")
    notes = [*_about_key(resource, key), *dict.fromkeys(map(_in_words, troubles))]
    _print_preview(run, policy, resource, key, record_id, seen, notes)


async def _record_named(run: Run, resource: Resource, record_id: str, report: Report) -> Record:
    """The whole record of the practice system; else the end of the command.

    `report` hears of each of its values that partners cannot be shown.
    """
    from gateway.cli.backend import practice_system

    try:
        async with practice_system(run.settings, report) as adapter:
            return await adapter.read_one(Query(resource=resource.name, now=now(), id=record_id))
    except NotFound:
        listing = f"`clinic-gateway sample {resource.name}` lists some"
        fail(f"{resource.name} has no record {record_id}; {listing}")


def _in_words(trouble: Trouble) -> str:
    if trouble.kind == "no id":
        return f"an item has no usable {trouble.resource}.{trouble.field}: it is left out"
    return f"{trouble.resource}.{trouble.field} is {trouble.kind}: partners are shown no value"


def _about_key(resource: Resource, key: Key) -> Iterator[str]:
    """Why the key may see nothing at all, whatever the policy says."""
    if not key.active(now()):
        yield "this key is revoked or expired: it is shown nothing any more"
    if needed := lacking(resource, key):
        yield f"this key lacks {' or '.join(needed)}: no call shows it {resource.name}"


def _print_preview(
    run: Run,
    policy: Policy,
    resource: Resource,
    key: Key,
    record_id: str | None,
    seen: Preview,
    notes: Sequence[str],
) -> None:
    """Prints what is seen; a key without a name is an imagined one."""
    name, level = resource.name, key.level_for(resource.name)
    decided = f"its {f'scope {name}=' if name in key.scopes else 'level '}{level} decides"
    if run.as_json:
        data = {
            "file": policy.file,
            "hash": policy.hash,
            "resource": name,
            "key": {"id": key.id, "name": key.name} if key.name else None,
            "level": level,
            "decided": decided,
            "id": record_id,
            "exists": seen.exists,
            "condition": seen.condition or None,
            "whole": seen.whole,
            "answer": seen.answer if seen.exists else None,
            "fields": {field.path: _field_data(field) for field in seen.fields},
            "notes": notes,
        }
        say_json(data)
        return
    what = f"the record {record_id}" if record_id else "a made-up record"
    who = f"the key {key.name} ({key.id})" if key.name else f"a key with the level {key.level}"
    head = [f"{name}, {what}, as seen by {who}: {decided}", *notes]
    if seen.condition:
        verb = "exists" if seen.exists else "does not exist"
        asked = f"{level} sees only records whose {seen.condition}"
        head.append(f"this record {verb} for that key: {asked}")
    if not seen.exists:
        head.append("of one that does exist, the key would see:")
    for line in head:
        _print_wrapped(line)
    fold: dict[str, Any] = {"overflow": "fold"}
    columns = {"field": {"no_wrap": True}, "whole": fold, f"seen at {level}": fold}
    rows = ((field.path, _spelt(field.whole), _shown(field)) for field in seen.fields)
    print_table(columns, [rows], WIDTH)


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


def _field_data(field: SeenField) -> dict[str, Any]:
    members: dict[str, Any] = {"sight": kind_of(field.sight), "whole": field.whole}
    if isinstance(field.sight, Mask):
        members |= {"mask": str(field.sight), "shown": field.shown}
    return members
