"""`clinic-gateway policy show`, `preview` and `explain`: tell what a key sees, and why."""

import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from adapters.base import NotFound, Query, Record, Report, Trouble
from gateway.audit.chains import audit_folder
from gateway.audit.entries import BEGUN
from gateway.audit.search import EntryFilter, newest_entries
from gateway.cli.audit import reading
from gateway.cli.command import Command, Run, now, option, scopes_option
from gateway.cli.keys import NO_KEYS, key_named
from gateway.cli.output import fail, legible, members, print_table, say, say_json
from gateway.cli.policy.reports import file_argument, loaded
from gateway.cli.values import LEVEL, ONE_LINE, RESOURCE, TextValue, one_of
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource, read_uuid
from gateway.contract.operations import OPERATIONS, Operation
from gateway.contract.resources import GOVERNED
from gateway.events import counted
from gateway.inquiries.keys import imagined, lacking
from gateway.inquiries.policies import RUNNING, is_kept, policy_named
from gateway.keys.key import Key
from gateway.keys.store import KeyStore, OddKey, UnknownKey
from gateway.policy.masks import Mask
from gateway.policy.policy import WHOLE, AllOrNothing, Policy, Sight
from gateway.policy.reading.document import spots_of
from gateway.policy.redactor import NoUsableId
from gateway.policy.telling.preview import Preview, preview, specimen
from gateway.policy.telling.sheets import as_csv, as_page
from gateway.policy.telling.wording import Reason, kind_of, masks_of, reasons, row_sentences
from gateway.settings import StartRefused
from gateway.state import opened_if_begun

_FORMAT = one_of("FORMAT", ("text", "csv", "html", "json"))
WIDTH = 80
_IN_TEXT: Mapping[Sight, str] = {AllOrNothing.WHOLE: "yes", AllOrNothing.HIDDEN: "-"}
_BY_ID = {operation.id: operation for operation in OPERATIONS}
_OPERATION = one_of("OPERATION", _BY_ID, _BY_ID.__getitem__)


@click.command(cls=Command)
@file_argument
@option("--format form", _FORMAT, "text, csv, html or json; text where it is left out.")
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
    "csv": as_csv,
    "html": lambda policy: as_page(policy, date.today()),  # noqa: DTZ011 - the clinic's own day
}


def _show_data(policy: Policy) -> dict[str, Any]:
    """Returns for each field which levels see it whole, the masks, and the row conditions."""
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
    """Prints every field, what the masks show, and which records exist."""
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
    run: Run, file: Path | None, resource: Resource, record_id: str | None, **whose: Any
) -> None:
    """Print a record as a key sees it, beside the whole one.

    FILE is the configured policy where it is left out. With --id the record is a real one: mind
    who looks at your screen.
    """
    key, troubles = await _key_of(run, **whose), list[Trouble]()
    policy, record = loaded(run, file), specimen(resource)
    if record_id:
        record = await _record_named(run, resource, record_id, troubles.append)
    try:
        seen = preview(policy, resource, key.level_for(resource.name), record, troubles.append)
    except NoUsableId:
        fail("the practice system gives this record without a usable id; no partner is shown it")
    data = _preview_data(policy, resource, key, record_id, seen)
    data["notes"] = [*_about_key(resource, key), *dict.fromkeys(map(_in_words, troubles))]
    if run.as_json:
        say_json(data)
    else:
        _print_preview(data, key)


async def _key_of(
    run: Run, key_name: str | None, level: AccessLevel | None, scopes: Mapping[str, AccessLevel]
) -> Key:
    """Returns the named key, or an imagined one without a name."""
    if (key_name is None) == (level is None):
        raise click.UsageError("name a key with --key, or a level with --level")
    if level is not None:
        return imagined(level, scopes, now())
    if scopes:
        raise click.UsageError("a key has its own scopes; --scope goes with --level")
    async with run.store(NO_KEYS) as store:
        key, _ = await key_named(KeyStore(store), key_name or "")
    return key


async def _record_named(run: Run, resource: Resource, record_id: str, report: Report) -> Record:
    """Returns a whole record, or ends the command; `report` is told of unusable values."""
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
    """Yields why the key may see nothing at all, whatever the policy says."""
    if not key.active(now()):
        yield "this key is revoked or expired: it is shown nothing any more"
    if needed := lacking(resource, key):
        yield f"this key lacks {' or '.join(needed)}: no call shows it {resource.name}"


def _preview_data(
    policy: Policy, resource: Resource, key: Key, record_id: str | None, seen: Preview
) -> dict[str, Any]:
    name, level = resource.name, key.level_for(resource.name)
    fields: dict[str, dict[str, Any]] = {}
    for field in seen.fields:
        fields[field.path] = {"sight": kind_of(field.sight), "whole": field.whole}
        if isinstance(field.sight, Mask):
            fields[field.path] |= {"mask": str(field.sight), "shown": field.shown}
    return {
        **members(policy, "file", "hash"),
        **members(seen, "exists", "whole"),
        "resource": name,
        "key": members(key, "id", "name") if key.name else None,
        "level": level,
        "decided": f"its {f'scope {name}=' if name in key.scopes else 'level '}{level} decides",
        "id": record_id,
        "condition": seen.condition or None,
        "answer": seen.answer if seen.exists else None,
        "fields": fields,
    }


def _print_preview(data: Mapping[str, Any], key: Key) -> None:
    name, level = data["resource"], data["level"]
    what = f"the record {data['id']}" if data["id"] else "a made-up record"
    who = f"the key {key.name} ({key.id})" if key.name else f"a key with the level {key.level}"
    head = [f"{name}, {what}, as seen by {who}: {data['decided']}", *data["notes"]]
    if data["condition"]:
        verb = "exists" if data["exists"] else "does not exist"
        condition = f"{level} sees only records whose {data['condition']}"
        head.append(f"this record {verb} for that key: {condition}")
    if not data["exists"]:
        head.append("of one that does exist, the key would see:")
    for line in head:
        _print_wrapped(line)
    fold: dict[str, Any] = {"overflow": "fold"}
    columns = {"field": {"no_wrap": True}, "whole": fold, f"seen at {level}": fold}
    shown = {"whole": "the same", "hidden": "(hidden)"}
    rows = [
        (
            path,
            _spelt(field["whole"]),
            shown.get(field["sight"]) or f"{_spelt(field['shown'])} (masked: {field['mask']})",
        )
        for path, field in data["fields"].items()
    ]
    print_table(columns, [rows], WIDTH)


def _spelt(value: Any) -> str:
    if value is None or value == []:
        return "(no value)"
    if isinstance(value, list):
        return "; ".join(map(_spelt, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@click.command(cls=Command)
@option("--key key_id", TextValue("ID", str), "A key, by its id or its name.")
@option("--operation", _OPERATION, "What it calls, such as get_client.")
@option("--request", ONE_LINE, "An answer that went out: its X-Request-Id.", metavar="ID")
@option(
    "--policy",
    click.STRING,
    "A file, or the beginning of the hash of a policy that ran.",
    default=RUNNING,
)
async def explain(
    run: Run, key_id: str | None, operation: Operation | None, request: str | None, policy: str
) -> None:
    """Say field by field what a key sees, and which line of the policy decides.

    Name a key and an operation; or an answer that went out, by its request id: then the policy of
    that time is taken.
    """
    if request and not (key_id or operation):
        data, named = await _of_answer(run, request)
    elif key_id and operation and not request:
        data, named = await _of_key(run, key_id, operation, policy)
    else:
        raise click.UsageError("name --key and --operation, or --request")
    resource = _BY_ID[data["operation"]].returns
    if resource.governed:
        spots = spots_of(named.version.content)
        why = list(reasons(resource, named.rules[resource.name], data["level"], spots))
    else:
        text = "no policy is about it"
        why = [Reason(path=path, sight="whole", why=text, spot=None) for path in resource.paths]
    data["policy"] = {"name": named.file, "hash": named.hash, "place": named.version.file}
    data["fields"] = [
        {"field": reason.path or None, "sight": reason.sight, "why": reason.why}
        | dict(zip(("line", "column"), reason.spot or (None, None), strict=True))
        for reason in why
    ]
    run.say(data, _explained_lines(data), indent=2)


async def _of_key(
    run: Run, key_id: str, operation: Operation, policy: str
) -> tuple[dict[str, Any], Policy]:
    """Returns what is printed of a key's answers, without the fields, and the policy."""
    async with run.store(NO_KEYS) as store:
        key, _ = await key_named(KeyStore(store), key_id)
        try:
            named = await policy_named(policy, store)
        except StartRefused:
            if policy != RUNNING:
                raise
            # none has run yet
            named = await policy_named(str(run.settings.policy), store)
    name, level = operation.returns.name, key.level_for(operation.returns.name)
    decided = f"the key's level; it has no scope for {name}"
    if not operation.returns.governed:
        decided = f"{name} are always whole"
    elif name in key.scopes:
        decided = f"the key's scope {name}={level}"
    is_open = operation.permission in key.permissions
    lacks = None if is_open else f"the key lacks {operation.permission}: every call is 403"
    data = {"operation": operation.id, "key": members(key, "id", "name"), "level": level}
    return data | {"decided": decided, "refused": lacks, "answer": None, "others": []}, named


async def _of_answer(run: Run, request: str) -> tuple[dict[str, Any], Policy]:
    """Does the same for the newest entry of a request, which has ended unless none has."""
    folder = audit_folder(run.settings)
    with reading(run.settings):
        entries = newest_entries(folder, EntryFilter(request=request))[::-1]
    ended = [entry for entry in entries if entry["outcome"] != BEGUN] or entries
    if not ended:
        fail(f"the audit in {folder} knows no answer with the request id {request}")
    *others, entry = ended
    if entry["operation"] not in _BY_ID or entry["level"] is None or entry["policy"] is None:
        fail(f"that call got no further than {entry['reason'] or 'the documents'}: nothing shown")
    key = None
    async with opened_if_begun(run.settings) as store:
        named = await policy_named(entry["policy"], store)
        with suppress(UnknownKey, OddKey):
            key = (await KeyStore(store).show(entry["keyId"])).key if store else None
    data = {"operation": entry["operation"], "key": key and members(key, "id", "name")}
    data |= {"level": AccessLevel(entry["level"]), "refused": None}
    data["decided"] = "the level that was applied, as the audit has it"
    return data | {"answer": entry, "others": others}, named


def _explained_lines(data: Mapping[str, Any]) -> Iterator[str]:
    key, entry, others, policy = (data[name] for name in ("key", "answer", "others", "policy"))
    whose = f"{key['name']} ({key['id']})" if key else "a key that is gone"
    yield f"{data['operation']} for {whose}"
    if entry:
        records = counted(len(entry["recordIds"]), "record")
        yield f"answer of {entry['time'][:19]}Z: {entry['outcome']}, {records}"
    if others:
        yield f"the newest of {len(others) + 1} with that request id; before:"
    for other in others:
        operation = other["operation"] or "no operation"
        yield f"  {other['time'][:19]}Z {operation}: {other['outcome']}"
    yield f"level {data['level']}: {data['decided']}"
    short, name = policy["hash"][:12], policy["name"]
    yield f"policy {short}, as it ran" if name == short else f"policy {name}, hash {short}"
    yield from [data["refused"]] if data["refused"] else []
    width = max((len(field["field"] or "") for field in data["fields"]), default=0)
    for field in data["fields"]:
        spot = (policy["place"], field["line"], field["column"])
        why = f"{field['why']} ({':'.join(map(str, spot))})" if field["line"] else field["why"]
        if field["field"]:
            yield f"  {field['field']:{width}}  {field['sight']:8}  {why}"
        elif field["sight"] != "all":
            yield f"records: {field['sight']}: {why}"
