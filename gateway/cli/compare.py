"""`clinic-gateway backend compare`: a record as it is served, beside the row that it comes from."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from pathlib import PurePath
from typing import Any, NoReturn

import click
from rich.console import Console
from rich.text import Text

from adapters.doctor.comparison import Comparison, Several, Unfound, compared, finder_of
from adapters.doctor.trail import Trail
from gateway.cli.backend import NOT_MAPPED, WIDE, own_or_passing
from gateway.cli.command import Command, Run, now, option
from gateway.cli.output import fail, legible, print_table, say, say_json
from gateway.cli.policy.reports import loaded
from gateway.cli.values import FLAG, LEVEL, RESOURCES, one_of
from gateway.contract.access import AccessLevel
from gateway.examination import WITH_IDS
from gateway.inquiries import practice
from gateway.policy.policy import HIDDEN
from gateway.policy.reading.document import spots_of
from gateway.policy.redactor import NoUsableId
from gateway.policy.telling.preview import preview
from gateway.policy.telling.wording import reasons

LONGEST = 300
PASSING = "the gateway has no state yet: the public ids here are of this run alone"
# What a level sees: path -> the value, and why; None for one that is hidden.
Seen = Mapping[str, tuple[Any, str] | None]


@click.command(cls=Command)
@click.argument("resource", type=one_of("RESOURCE", WITH_IDS), metavar="RESOURCE")
@click.argument("words", nargs=-1, required=True, metavar="ID")
@option("--level", LEVEL, "Also what this level of the policy sees of it.")
@option("--open opens", FLAG, "Also print the statements or calls that read it, without secrets.")
async def compare(
    run: Run, resource: str, words: Sequence[str], level: AccessLevel | None, opens: bool
) -> None:
    """Print a record as it is served, beside its row, and how each field came about.

    ID is a public id, the practice's own key (columns of one key are parted by a slash), or a few
    words as in a search by name. The record is a real one: mind who looks at your screen.
    """
    found = await _compared(run, resource, " ".join(words))
    seen, about = _seen(run, found, level)
    if run.as_json:
        say_json(_data(found, seen, about, opens=opens), indent=2)
    else:
        _print(found, seen, about, level)
        if opens:
            say("", *(line for text in found.asked for line in (*text.split("\n"), "")))
    if found.record is None:
        raise click.exceptions.Exit(1)


async def _compared(run: Run, resource: str, word: str) -> Comparison:
    """Returns the comparison of one record, or ends the command."""
    async with (
        own_or_passing(run.settings) as (settings, store),
        practice.bare_adapter(settings, store, lambda trouble: None) as adapter,
    ):
        finder = finder_of(adapter)
        if finder is None:
            fail(f"backend.adapter is {settings.backend.adapter}, which no mapping describes")
        async with aclosing(finder.adapter):
            known = settings.backend.secret or settings.backend.secret_file
            if settings is not run.settings and not known:
                say(PASSING, err=True)
            if resource not in finder.adapter.readers:
                fail(NOT_MAPPED.format(resource))
            try:
                return await compared(finder, resource, word, now())
            except Several as error:
                _fail_with(run, str(error), error.matches)
            except Unfound as error:
                _fail_with(run, str(error), ())


def _fail_with(run: Run, text: str, matches: Sequence[tuple[str, str]]) -> NoReturn:
    if run.as_json:
        listed = [{"id": public_id, "name": name} for public_id, name in matches]
        say_json({"ok": False, "text": text, "matches": listed}, indent=2)
    fail("\n".join((text, *(f"  {public_id}  {name}" for public_id, name in matches))))


def _seen(run: Run, found: Comparison, level: AccessLevel | None) -> tuple[Seen | None, str]:
    """Returns what the level sees of each path, and what is to be said of the whole record."""
    if level is None:
        return None, ""
    resource = RESOURCES.get(found.resource)
    if resource is None:
        return None, f"no policy is about {found.resource}: every level sees it whole"
    if found.record is None:
        return None, "nothing of it is served at any level"
    policy = loaded(run, None)
    try:
        shown = preview(policy, resource, level, found.record, lambda trouble: None)
    except NoUsableId:
        return None, "it has no usable id, so no level is shown it"
    file = PurePath(policy.file).name
    _, *of_fields = reasons(
        resource, policy.rules[resource.name], level, spots_of(policy.version.content)
    )
    seen: dict[str, tuple[Any, str] | None] = {}
    for field, reason in zip(shown.fields, of_fields, strict=True):
        at = f"{file}:{reason.spot[0]}:{reason.spot[1]}" if reason.spot else file
        seen[field.path] = (None if field.sight is HIDDEN else field.shown, f"{reason.why} ({at})")
        if field.sight is HIDDEN:
            seen[field.path] = (HIDDEN, f"hidden at {level}: {reason.why} ({at})")
    if not shown.exists:
        about = f"at {level} this record does not exist: only records whose {shown.condition}"
        return seen, about
    return seen, ""


def _of_level(trail: Trail, seen: Seen) -> tuple[Any, str]:
    """Returns what the level sees of a field, and why; of a list the value of that item."""
    value, why = seen.get(trail.path) or (None, "")
    number = trail.field.partition("[")[2].partition("]")[0]
    if value is not HIDDEN and number and isinstance(value, list):
        value = value[int(number)] if int(number) < len(value) else None
    return value, why


def _data(found: Comparison, seen: Seen | None, about: str, *, opens: bool) -> dict[str, Any]:
    fields = []
    for trail in found.fields:
        field = asdict(trail)
        if seen is not None:
            value, why = _of_level(trail, seen)
            hidden = value is HIDDEN
            field["level"] = {"hidden": hidden, "value": None if hidden else value, "why": why}
        fields.append(field)
    data = asdict(found) | {"fields": fields, "level": about or None}
    if not opens:
        del data["asked"]
    return data


def _print(found: Comparison, seen: Seen | None, about: str, level: AccessLevel | None) -> None:
    key = "" if found.key is None else f", key {_text(found.key)}"
    say(f"{found.resource} {found.id}{key}{f': {found.name}' if found.name else ''}")
    if found.record is None:
        say(f"not served: {found.unserved}", "the values are what the mapping makes of the row")
    if about:
        say(about)
    columns: dict[str, dict[str, Any]] = {
        "field": {"overflow": "fold"},
        "served" if found.record is not None else "made": {"overflow": "fold", "ratio": 2},
    }
    if seen is not None:
        columns[f"at {level}"] = {"overflow": "fold", "ratio": 2}
    columns["in the row"] = {"overflow": "fold", "ratio": 2}
    columns["how"] = {"overflow": "fold", "ratio": 4}
    rows = [list(_cells(trail, seen)) for trail in found.fields]
    width = None if Console().is_terminal else WIDE + 40
    print_table(columns, [rows], width)
    if found.row:
        whole = [[name, _text(value)] for name, value in found.row.items()]
        print_table({"the whole row": {}, "": {"overflow": "fold"}}, [whole], width)


def _cells(trail: Trail, seen: Seen | None) -> Iterator[str | Text]:
    yield trail.field
    yield _text(trail.value)
    value, why = _of_level(trail, seen) if seen is not None else (None, "")
    if seen is not None:
        yield "hidden" if value is HIDDEN else _text(value)
    yield _text(trail.raw) if trail.source else "-"
    how = []
    if trail.source:
        file, *where = trail.place.rsplit(":", 2)
        at = ":".join((PurePath(file).name, *where))
        how = [f"{trail.source}, as {trail.converter} ({at})"]
    how += [trail.note] if trail.note else []
    how += [f"-> {trail.leads}"] if trail.leads else []
    how += [why] if value is HIDDEN else []
    yield Text("\n".join(map(legible, how)))


def _text(value: Any) -> str:
    """Returns a value as it would stand in JSON, without the quotes of a plain text."""
    if isinstance(value, str) and value == value.strip() and value:
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
