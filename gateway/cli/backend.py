"""`clinic-gateway backend`, `vets` and `sample`: connects a practice system, and looks at it."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adapters.base import Adapter, AdapterError, Record, Report
from adapters.examination import SAMPLE, Examination, Finding, Verdict
from gateway.backend import check_configured, credentials, open_backend, shapes
from gateway.cli.deeds import now, recording
from gateway.cli.lines import counted, legible, say
from gateway.cli.options import CommandGroup, OneOf, TextValue, fail, shared_options
from gateway.contract.operations import PAGE_LARGEST
from gateway.contract.resources import RESOURCES
from gateway.inquiries import practice
from gateway.inquiries.practice import PAGES_MOST, first
from gateway.settings import Settings, load_settings, read_zone
from gateway.state import opened, opened_if_begun
from gateway.store import Store

WITH_IDS = [resource.name for resource in RESOURCES if "id" in resource.paths]
WIDE = 120
COLOURS = {Verdict.OK: "green", Verdict.WARNING: "yellow", Verdict.FAILED: "red"}


@click.group(cls=CommandGroup)
def backend() -> None:
    """Connect a practice system."""


@backend.command()
@click.option("--url", metavar="URL", help="The database; backend.url where it is left out.")
@click.option(
    "--zone",
    type=TextValue("ZONE", read_zone),
    help="The clock on the clinic's wall, such as Europe/Paris; this machine's where it is left"
    " out.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write into this new file instead of printing.",
)
@shared_options
def draft(
    url: str | None, zone: str | None, output: Path | None, config: Path | None, as_json: bool
) -> None:
    """Look at a practice database and write a first mapping, with its guesses as comments.

    Nothing is written to the database. With --json, what was guessed and how likely it is is
    printed.
    """
    if output is not None and output.exists():
        fail(f"{output} exists already; name a new file with --output")
    from adapters.draft import draft_mapping

    address = url or _configured_url(load_settings(config))
    comment = "the clock on the clinic's wall"
    if zone is None:
        zone, comment = _own_zone(), f"TODO: this machine's; is it {comment}?"
    try:
        made = asyncio.run(draft_mapping(address, shapes(), zone, comment))
    except (ValueError, AdapterError) as error:
        fail(f"{'--url' if url else 'backend.url'}: {error}")
    if output is not None:
        _write_new(output, made.text)
    if as_json:
        click.echo(json.dumps(made.guesses, indent=2))
    elif output is None:
        click.echo(made.text, nl=False)
    else:
        click.echo(f"{output}: written; go through it, then `clinic-gateway backend check`")


def _configured_url(settings: Settings) -> str:
    if settings.backend.url is None:
        fail(
            "nothing says which database is meant: name it with --url, or as backend.url in"
            " gateway.yaml"
        )
    return settings.backend.url.get_secret_value()


def _own_zone() -> str:
    """The zone that this machine is set to, as far as it says so; else UTC."""
    _, found, name = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")
    try:
        return ZoneInfo(name).key if found else "UTC"
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "UTC"


def _write_new(output: Path, text: str) -> None:
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        fail(f"{output} cannot be written: {reason}; name another file with --output")


@backend.command()
@click.option("--booking", is_flag=True, help="Also make a booking, and undo it.")
@click.option("--all", "everything", is_flag=True, help="Look at every row, not at a sample.")
@shared_options
def check(booking: bool, everything: bool, config: Path | None, as_json: bool) -> None:
    """Look at the practice system as its partners will meet it; exit 1 where one would be failed.

    Every operation is run on real rows. Nothing is written without --booking.
    """
    examination = Examination(now=now(), rows=None if everything else SAMPLE, booking=booking)
    findings = asyncio.run(_examine(load_settings(config), examination))
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print_findings(findings)
    if any(finding.verdict == "failed" for finding in findings):
        raise click.exceptions.Exit(1)


async def _examine(settings: Settings, examination: Examination) -> list[Finding]:
    async with _own_or_passing(settings) as (own, store):
        findings = practice.examine(own, store, examination)
        if not examination.booking:
            return [finding async for finding in findings]
        async with recording(own, store) as deed, deed("test booking made"):
            return [finding async for finding in findings]


@asynccontextmanager
async def bare_adapter(settings: Settings, report: Report) -> AsyncIterator[Adapter]:
    """The configured adapter with nothing around it, which would hide what it does."""
    async with (
        _own_or_passing(settings) as (own, store),
        practice.bare_adapter(own, store, report) as adapter,
    ):
        yield adapter


@asynccontextmanager
async def _own_or_passing(settings: Settings) -> AsyncIterator[tuple[Settings, Store]]:
    """The gateway's own store; before there is one, one that goes again with all that is in it.

    So that a practice system can be looked at before anything is served.
    """
    check_configured(settings)
    async with opened_if_begun(settings) as store:
        if store is not None:
            yield settings, store
            return
    with TemporaryDirectory(prefix="clinic-gateway-") as folder:
        passing = settings.model_copy(update={"state": Path(folder), "store": None})
        async with opened(passing, may_begin=True) as store:
            yield passing, store


def _print_findings(findings: Sequence[Finding]) -> None:
    """A line for each thing that was looked at, and how many of each verdict."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("verdict", no_wrap=True)
    table.add_column("looked at", overflow="fold", max_width=30)
    table.add_column("found", overflow="fold")
    by_check: dict[str, list[Finding]] = {}
    for finding in findings:
        by_check.setdefault(finding.check, []).append(finding)
    for name, group in by_check.items():
        table.add_section()
        table.add_row("", f"[bold]{escape(name)}[/bold]", "")
        for finding in group:
            colour, lines = COLOURS[finding.verdict], _finding_lines(finding)
            table.add_row(
                f"[{colour}]{finding.verdict}[/{colour}]",
                escape(legible(finding.subject)),
                "\n".join(escape(legible(line)) for line in lines),
            )
    console = Console(highlight=False)
    if not console.is_terminal:  # in a file or a pipe no line need be short
        console = Console(highlight=False, width=WIDE)
    console.print(table)
    console.print(_summary(findings), soft_wrap=True)


def _summary(findings: Sequence[Finding]) -> str:
    numbers = Counter(finding.verdict for finding in findings)
    warnings, failed = counted(numbers[Verdict.WARNING], "warning"), numbers[Verdict.FAILED]
    counts = f"{failed} failed, {warnings}, {numbers[Verdict.OK]} ok"
    if failed:
        return f"{counts}: a partner would be failed; mend what is red and check again"
    return f"{counts}: nothing here would fail a partner"


def _finding_lines(finding: Finding) -> Iterator[str]:
    took = "" if finding.seconds is None else f" ({finding.seconds * 1000:.0f} ms)"
    text = f"{finding.text}{took}"
    if finding.place:
        file, *where = finding.place.rsplit(":", 2)
        text = f"{':'.join([PurePath(file).name, *where])}: {text}"
    yield text
    if finding.remedy:
        yield f"-> {finding.remedy}"
    if finding.ids:
        yield f"such as {' '.join(finding.ids)}"


@backend.command()
@click.option(
    "--adapter",
    type=click.Choice(("sql", "rest")),
    help="Whose mapping; that of backend.adapter where it is left out.",
)
@shared_options
def schema(adapter: str | None, config: Path | None, as_json: bool) -> None:
    """Print the JSON Schema of a mapping file, for editors that complete and check it."""
    from adapters.mapping.schema import mapping_schema

    named = adapter or load_settings(config).backend.adapter
    made = mapping_schema(shapes(), "rest" if named == "rest" else "sql")
    click.echo(json.dumps(made, indent=2))


@backend.command()
@click.argument("resource")
@shared_options
def explain(resource: str, config: Path | None, as_json: bool) -> None:
    """Print how a resource is made: each field, its source, its converter, what makes it null.

    The practice system is not asked.
    """
    from adapters.mapped.plan import compile_resource, explained
    from adapters.mapping.loading import converters_of, load_mapping

    settings = load_settings(config).backend
    if settings.mapping is None:
        fail("backend.mapping is not set: it names the mapping to explain")
    if settings.adapter not in ("sql", "rest"):
        fail(f"backend.adapter is {settings.adapter}, which no mapping describes: read its code")
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
@shared_options
def upgrade(mapping: Path, config: Path | None, as_json: bool) -> None:
    """Rewrite a mapping of an older form in the form of today; comments and layout stay.

    The file as it was is kept beside it, with `.old` behind its name.
    """
    from adapters.documents.document import read_document
    from adapters.mapping.upgrade import upgraded

    document = read_document(mapping)
    text = mapping.read_text(encoding="utf-8")
    made = upgraded(document, text)
    if made == text:
        today = f"{mapping}: it has the form of today already"
        say({"rewritten": 0, "old": None}, [today], as_json=as_json)
        return
    old = mapping.with_name(f"{mapping.name}.old")
    if old.exists():
        fail(f"{old} exists already: move it away")
    _write_new(old, text)
    mapping.write_text(made, encoding="utf-8")
    pairs = zip(text.splitlines(), made.splitlines(), strict=False)
    changed = sum(one != other for one, other in pairs)
    line = f"{mapping}: {changed} lines rewritten; {old} has it as it was"
    say({"rewritten": changed, "old": str(old)}, [line], as_json=as_json)


@click.command()
@shared_options
def vets(config: Path | None, as_json: bool) -> None:
    """List the veterinarians with their public ids."""
    records = asyncio.run(_read(load_settings(config), "vets", PAGES_MOST * PAGE_LARGEST))
    if as_json:
        data = [{"id": vet["id"], "name": vet.get("name")} for vet in records]
        click.echo(json.dumps(data, indent=2))
        return
    for vet in records:
        click.echo(f"{vet.get('name') or ''}  {vet['id']}")


@click.command()
@click.argument("resource", type=OneOf("RESOURCE", WITH_IDS), metavar="RESOURCE")
@click.option(
    "--limit",
    type=click.IntRange(1, PAGE_LARGEST),
    default=10,
    show_default=True,
    help=f"How many, at most {PAGE_LARGEST}.",
)
@shared_options
def sample(resource: str, limit: int, config: Path | None, as_json: bool) -> None:
    """List some public ids of a resource, to try a connection.

    RESOURCE is appointments, clients, patients, consultations, invoices, stock, appointmentTypes
    or vets.
    """
    ids = [record["id"] for record in asyncio.run(_read(load_settings(config), resource, limit))]
    click.echo(json.dumps(ids, indent=2) if as_json else "\n".join(ids))


async def _read(settings: Settings, resource: str, most: int) -> list[Record]:
    async with practice_system(settings) as adapter:
        return await first(adapter, resource, most, now())


@asynccontextmanager
async def practice_system(
    settings: Settings, report: Report = lambda trouble: None
) -> AsyncIterator[Adapter]:
    """The configured adapter, without a gateway around it; `report` hears of unusable values.

    DocumentErrors where its mapping names what the practice system does not have.
    """
    check_configured(settings)
    async with opened(settings) as store:
        adapter, _ = await open_backend(settings, store, report)
        try:
            await adapter.check()
            yield adapter
        finally:
            await adapter.aclose()
