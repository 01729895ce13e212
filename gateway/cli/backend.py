"""`clinic-gateway backend`: what helps to connect a practice system."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from adapters.base import Adapter, AdapterError, Report
from adapters.examination import Finding
from gateway.cli.options import config_option, fail, json_option
from gateway.cli.words import Group
from gateway.settings import Settings, load_settings

if TYPE_CHECKING:  # to import it takes long: a command does, where it opens one
    from gateway.store import Store


@click.group(cls=Group)
def backend() -> None:
    """Connect a practice system."""


@backend.command()
@click.option("--url", metavar="URL", help="The database; backend.url where it is left out.")
@click.option(
    "--zone",
    metavar="ZONE",
    callback=lambda context, parameter, value: _known(value),
    help="The clock on the clinic's wall, such as Europe/Paris; this machine's where it is left"
    " out.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write into this new file instead of printing.",
)
@config_option
@json_option
def draft(
    url: str | None, zone: str | None, output: Path | None, config: Path | None, as_json: bool
) -> None:
    """Look at a practice database and write a first mapping, with its guesses as comments.

    Nothing is written to the database. With --json, what was guessed and how likely it is is
    printed.
    """
    _refuse_to_overwrite(output)
    from adapters.draft import draft_mapping
    from gateway.backend import shapes

    address = url or _configured(load_settings(config))
    name, said = _zone(zone)
    try:
        made = asyncio.run(draft_mapping(address, shapes(), name, said))
    except (ValueError, AdapterError) as error:
        fail(f"{'--url' if url else 'backend.url'}: {error}")
    if output is not None:
        _written(output, made.text)
    if as_json:
        click.echo(json.dumps(made.guesses, indent=2))
    elif output is None:
        click.echo(made.text, nl=False)
    else:
        click.echo(f"{output}: written; go through it, then `clinic-gateway backend check`")


@backend.command()
@click.option("--booking", is_flag=True, help="Also make a booking, and undo it.")
@click.option("--all", "everything", is_flag=True, help="Look at every row, not at a sample.")
@config_option
@json_option
def check(booking: bool, everything: bool, config: Path | None, as_json: bool) -> None:
    """Look at the practice system as its partners will meet it; exit 1 where one would be failed.

    Every operation is run on real rows. Nothing is written without --booking.
    """
    from gateway.cli.findings import as_data, print_findings

    found = asyncio.run(_findings(load_settings(config), booking=booking, everything=everything))
    if as_json:
        click.echo(json.dumps(as_data(found), indent=2))
    else:
        print_findings(found)
    if any(each.verdict == "failed" for each in found):
        raise click.exceptions.Exit(1)


async def _findings(settings: Settings, *, booking: bool, everything: bool) -> list[Finding]:
    from adapters.examination import SAMPLE, Examination
    from gateway.app import utc_now
    from gateway.inquiries.practice import examine

    examination = Examination(now=utc_now(), rows=None if everything else SAMPLE, booking=booking)
    async with _own_or_passing(settings) as (own, store):
        found = examine(own, store, examination)
        if not booking:
            return [each async for each in found]
        from gateway.cli.deeds import recording

        async with recording(own, store) as deed, deed("test booking made"):
            return [each async for each in found]


@asynccontextmanager
async def bare_adapter(settings: Settings, report: Report) -> AsyncIterator[Adapter]:
    """The configured adapter with nothing around it, which would hide what it does."""
    from gateway.inquiries import practice

    async with (
        _own_or_passing(settings) as (own, store),
        practice.bare_adapter(own, store, report) as adapter,
    ):
        yield adapter


@asynccontextmanager
async def _own_or_passing(settings: Settings) -> AsyncIterator[tuple[Settings, "Store"]]:
    """The gateway's own store; before there is one, one that goes again with all that is in it.

    So that a practice system can be looked at before anything is served.
    """
    from gateway.backend import check_configured
    from gateway.state import opened, opened_if_begun

    check_configured(settings)
    async with opened_if_begun(settings) as store:
        if store is not None:
            yield settings, store
            return
    with TemporaryDirectory(prefix="clinic-gateway-") as folder:
        passing = settings.model_copy(update={"state": Path(folder), "store": None})
        async with opened(passing, may_begin=True) as store:
            yield passing, store


@backend.command()
@click.option(
    "--adapter",
    type=click.Choice(("sql", "rest")),
    help="Whose mapping; that of backend.adapter where it is left out.",
)
@config_option
@json_option
def schema(adapter: str | None, config: Path | None, as_json: bool) -> None:
    """Print the JSON Schema of a mapping file, for editors that complete and check it."""
    from adapters.mapping.schema import mapping_schema
    from gateway.backend import shapes

    named = adapter or load_settings(config).backend.adapter
    made = mapping_schema(shapes(), "rest" if named == "rest" else "sql")
    click.echo(json.dumps(made, indent=2))


@backend.command()
@click.argument("resource")
@config_option
@json_option
def explain(resource: str, config: Path | None, as_json: bool) -> None:
    """Print how a resource is made: each field, its source, its converter, what makes it null.

    The practice system is not asked.
    """
    from dataclasses import asdict

    from adapters.mapped.plan import compile_resource, explained
    from adapters.mapping.loading import converters_of, load_mapping
    from gateway.backend import credentials, shapes

    settings = load_settings(config).backend
    if settings.mapping is None:
        fail("backend.mapping is not set: it names the mapping to explain")
    all_shapes = shapes()
    mapping, _ = load_mapping(settings.mapping, all_shapes, settings.adapter, credentials(settings))
    if resource not in mapping.resources:
        fail(f"{resource} is no resource: use one of {', '.join(mapping.resources)}")
    mapped = mapping.resources[resource]
    lines = list(
        explained(compile_resource(resource, mapped, all_shapes[resource], converters_of(mapping)))
    )
    if as_json:
        click.echo(json.dumps([asdict(line) for line in lines], indent=2))
        return
    columns = [
        ("field", "source", "converter", "null"),
        *(tuple(asdict(e).values()) for e in lines),
    ]
    widths = [min(60, max(len(row[number]) for row in columns)) for number in range(3)]
    for row in columns:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*cells, row[3]]))


@backend.command()
@click.argument("mapping", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def upgrade(mapping: Path) -> None:
    """Rewrite a mapping of an older form in the form of today; comments and layout stay.

    The file as it was is kept beside it, with `.old` behind its name.
    """
    from adapters.documents.document import read_document
    from adapters.mapping.upgrade import upgraded

    text = mapping.read_text(encoding="utf-8")
    made = upgraded(read_document(mapping), text)
    if made == text:
        click.echo(f"{mapping}: it has the form of today already")
        return
    old = mapping.with_name(f"{mapping.name}.old")
    _refuse_to_overwrite(old)
    _written(old, text)
    mapping.write_text(made, encoding="utf-8")
    pairs = zip(text.splitlines(), made.splitlines(), strict=False)
    changed = sum(one != other for one, other in pairs)
    click.echo(f"{mapping}: {changed} lines rewritten; {old} has it as it was")


def _known(zone: str | None) -> str | None:
    """A zone that exists; wrong use for any other."""
    try:
        return ZoneInfo(zone).key if zone is not None else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise click.BadParameter(
            f"no time zone is called {zone}; write one such as Europe/Paris"
        ) from None


def _configured(settings: Settings) -> str:
    if settings.backend.url is None:
        fail(
            "nothing says which database is meant: name it with --url, or as backend.url in"
            " gateway.yaml"
        )
    return settings.backend.url.get_secret_value()


def _zone(given: str | None) -> tuple[str, str]:
    """The zone's name, and its comment."""
    if given is not None:
        return given, "the clock on the clinic's wall"
    return _own_zone(), "TODO: this machine's; is it the clock on the clinic's wall?"


def _own_zone() -> str:
    """The zone that this machine is set to, as far as it says so; else UTC."""
    _, found, name = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")
    try:
        return ZoneInfo(name).key if found else "UTC"
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "UTC"


def _refuse_to_overwrite(output: Path | None) -> None:
    if output is not None and output.exists():
        fail(f"{output} exists already; name a new file with --output")


def _written(output: Path, text: str) -> None:
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        fail(f"{output} cannot be written: {reason}; name another file with --output")
