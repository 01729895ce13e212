"""`clinic-gateway backend`, `vets` and `sample`: connect a practice system, and look at it."""

import shlex
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click
from rich.console import Console
from rich.text import Text

from adapters.base import Adapter, AdapterError, Report
from adapters.doctor.labels import Names
from adapters.examination import (
    DRY,
    SAMPLE,
    UNREHEARSED,
    Examination,
    Finding,
    Verdict,
    agreeing,
)
from gateway.backend import at_address, check_configured, credentials, is_at, open_backend, shapes
from gateway.cli.command import Command, CommandGroup, Run, now, option, recording
from gateway.cli.output import fail, legible, print_table, say, say_json
from gateway.cli.values import FILE, FLAG, TextValue, one_of
from gateway.contract.operations import PAGE_LARGEST
from gateway.events import counted
from gateway.examination import WITH_IDS
from gateway.identity import reason_of
from gateway.inquiries import practice
from gateway.inquiries.practice import PAGES_MOST
from gateway.settings import Settings
from gateway.settings.kinds import read_zone, secret_text
from gateway.state import opened, opened_if_begun
from gateway.store import Store

if TYPE_CHECKING:
    from adapters.draft import Judge

NOT_MAPPED = "{} is not in the mapping, so nothing of it is served"
WIDE = 120
COLOURS = {
    Verdict.OK: "green",
    Verdict.NOTE: "cyan",
    Verdict.WARNING: "yellow",
    Verdict.FAILED: "red",
}


@click.group(
    cls=CommandGroup,
    loads={
        "compare": "gateway.cli.compare:compare",
        "learn": "gateway.cli.learn:learn",
        "verify": "gateway.cli.verify:verify",
    },
)
def backend() -> None:
    """Connect a practice system."""


@backend.command()
@option("--url", TextValue("URL", str), "The database; backend.url where it is left out.")
@option(
    "--zone",
    TextValue("ZONE", read_zone),
    "The clock on the clinic's wall, such as Europe/Paris; this machine's where it is left out.",
)
@option("--output", FILE, "Write into this new file instead of printing.")
@option("--yes", FLAG, "Write what is likely too, without asking.")
@option(
    "--ask/--no-ask",
    FLAG,
    "Ask about what the data do not prove, or leave it in comments. In a terminal it is asked.",
    default=None,
)
async def draft(
    run: Run,
    url: str | None,
    zone: str | None,
    output: Path | None,
    yes: bool,
    ask: bool | None,
) -> None:
    """Look at a practice database and write a first mapping of what the data prove.

    What is only likely is asked, with three rows of each guess, or left in comments. Nothing is
    written to the database. With --json, what was guessed and how likely it is is printed.
    """
    if output is not None and output.exists():
        fail(f"{output} exists already; name a new file with --output")
    from adapters.draft import draft_mapping

    address = _database(run, url)
    comment = "the clock on the clinic's wall"
    if zone is None:
        zone, comment = own_zone(), f"TODO: this machine's; is it {comment}?"
    is_asked = sys.stdin.isatty() and not (yes or run.as_json) if ask is None else ask
    try:
        text, guesses = await draft_mapping(
            address, shapes(), zone, comment, judge=_questions() if is_asked else None, accept=yes
        )
    except (ValueError, AdapterError) as error:
        fail(f"{'--url' if url else 'backend.url'}: {error}")
    if output is not None:
        write_new(output, text)
    if run.as_json:
        say_json(guesses, indent=2)
    elif output is None:
        click.echo(text, nl=False)
    else:
        say(f"{output}: written; go through it, then `clinic-gateway backend check`")


def _database(run: Run, url: str | None) -> str:
    """Returns the address of the database that is meant, or ends the command."""
    address = url or secret_text(run.settings.backend.url)
    if not address:
        fail(
            "nothing says which database is meant: name it with --url, or as backend.url in"
            " gateway.yaml"
        )
    return address


def _questions() -> "Judge":
    from gateway.cli.draft_questions import Questions

    return Questions()


def own_zone() -> str:
    """Returns the zone that /etc/localtime links to, or else UTC."""
    _, is_zone, name = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")
    try:
        return ZoneInfo(name).key if is_zone else "UTC"
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "UTC"


def write_new(output: Path, text: str) -> None:
    """Writes a file that is not there yet, or ends the command."""
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        fail(f"{output} cannot be written: {reason_of(error)}; name another file with --output")


@backend.command()
@option("--booking", FLAG, "Also rehearse every kind of booking, and undo each.")
@option(
    "--tenant",
    TextValue("URL", str),
    "Look at this test tenant of the practice system instead, in which bookings may stay.",
)
@option("--all everything", FLAG, "Look at every row, not at a sample.")
async def check(run: Run, booking: bool, tenant: str | None, everything: bool) -> None:
    """Look at the practice system as its partners will meet it; exit 1 where one would be failed.

    Every operation is run on real rows. Nothing is written without --booking. A practice system
    that speaks JSON cannot undo a booking: there the bookings are made in a --tenant alone.
    """
    examination = Examination(
        now=now(),
        rows=None if everything else SAMPLE,
        booking=booking,
        is_tenant=tenant is not None,
    )
    settings = run.settings
    if tenant is not None:
        if is_at(settings, tenant):
            fail(
                "--tenant: that is backend.url itself, where bookings are real; name a test tenant"
            )
        settings = at_address(settings, tenant)
    async with own_or_passing(settings, passing=tenant is not None) as (own, store):
        looks = practice.examine(own, store, examination)
        if not booking:
            findings = [finding async for finding in looks]
        else:
            async with recording(own, store) as deed, deed("test booking made"):
                findings = [finding async for finding in looks]
    if run.as_json:
        say_json(list(map(asdict, findings)), indent=2)
    else:
        _print_findings(findings)
    if any(finding.verdict is Verdict.FAILED for finding in findings):
        raise click.exceptions.Exit(1)


@asynccontextmanager
async def own_or_passing(
    settings: Settings, *, passing: bool = False
) -> AsyncIterator[tuple[Settings, Store]]:
    """Yields the gateway's settings and store, or temporary ones where there is no store yet.

    They are temporary, too, for a practice system whose ids are not to be kept: `passing`.
    """
    check_configured(settings)
    async with opened_if_begun(settings) as store:
        if store is not None and not passing:
            yield settings, store
            return
    with TemporaryDirectory(prefix="clinic-gateway-") as folder:
        temporary = settings.model_copy(update={"state": Path(folder), "store": None})
        async with opened(temporary, may_begin=True) as store:
            yield temporary, store


def _print_findings(findings: Sequence[Finding]) -> None:
    """Prints a line for each finding, and how many there are of each verdict."""
    sections: dict[str, list[list[str | Text]]] = {}
    for finding in findings:
        rows = sections.setdefault(finding.check, [["", Text(finding.check, "bold"), ""]])
        verdict = Text(finding.verdict, COLOURS[finding.verdict])
        took = "" if finding.seconds is None else f" ({finding.seconds * 1000:.0f} ms)"
        # the finding, its remedy and some examples, each on its own line
        lines = [f"{finding.text}{took}"]
        if finding.place:
            file, *where = finding.place.rsplit(":", 2)
            lines[0] = f"{':'.join([PurePath(file).name, *where])}: {lines[0]}"
        lines += [f"-> {finding.remedy}"] if finding.remedy else []
        if finding.examples:
            lines += [f"such as {example}" for example in finding.examples]
        elif finding.ids:
            lines.append(f"such as {' '.join(finding.ids)}")
        rows.append([verdict, finding.subject, Text("\n".join(map(legible, lines)))])
    columns: dict[str, dict[str, Any]] = {
        "verdict": {"no_wrap": True},
        "looked at": {"overflow": "fold", "max_width": 30},
        "found": {"overflow": "fold"},
    }
    # a file or a pipe takes wide lines
    print_table(columns, sections.values(), None if Console().is_terminal else WIDE)
    numbers = Counter(finding.verdict for finding in findings)
    warnings, failed = counted(numbers[Verdict.WARNING], "warning"), numbers[Verdict.FAILED]
    notes = f"{counted(numbers[Verdict.NOTE], 'note')}, " if numbers[Verdict.NOTE] else ""
    outcome = "nothing here would fail a partner"
    codes = Counter(finding.code for finding in findings)
    untried = ["the rehearsal was dry, and made no booking"] if codes[DRY] else []
    if missed := codes[UNREHEARSED]:
        untried.append(
            f"{counted(missed, 'kind')} of bookings {agreeing(missed, 'were')} not rehearsed"
        )
    if untried:
        outcome = f"nothing is red, but {', and '.join(untried)}"
    if failed:
        outcome = "a partner would be failed; mend what is red and check again"
    say(f"{failed} failed, {warnings}, {notes}{numbers[Verdict.OK]} ok: {outcome}")


@backend.command()
@option(
    "--adapter",
    click.Choice(("sql", "rest")),
    "Whose mapping; that of backend.adapter where it is left out.",
)
def schema(run: Run, adapter: str | None) -> None:
    """Print the JSON Schema of a mapping file, for editors that complete and check it."""
    from adapters.mapping.schema import mapping_schema

    adapter = adapter or run.settings.backend.adapter
    say_json(mapping_schema(shapes(), "rest" if adapter == "rest" else "sql"), indent=2)


@backend.command()
@click.argument("resource")
@option("--code", FLAG, "Print the Python code that makes its records of rows.")
def explain(run: Run, resource: str, code: bool) -> None:
    """Print how a resource is made: each field, its source, its converter, what makes it null.

    The practice system is not asked.
    """
    from adapters.doctor import record_code
    from adapters.mapping.explanation import explained
    from adapters.mapping.loader import load_mapping

    settings = run.settings.backend
    if settings.mapping is None:
        fail("backend.mapping is not set: it names the mapping to explain")
    if settings.adapter not in ("sql", "rest"):
        fail(f"backend.adapter is {settings.adapter}, which no mapping describes: read its code")
    all_shapes = shapes()
    mapping, _ = load_mapping(settings.mapping, all_shapes, settings.adapter, credentials(settings))
    if resource not in mapping.resources:
        fail(f"{resource} is no resource: use one of {', '.join(mapping.resources)}")
    if code:
        texts = record_code(settings.adapter, resource, mapping, all_shapes)
        lines = (line for name, text in texts.items() for line in (f"# {name}", *text.split("\n")))
        run.say(texts, lines, indent=2)
        return
    plan = explained(resource, mapping.resources[resource], all_shapes[resource])
    data = [asdict(line) for line in plan]
    rows = [("field", "source", "converter", "null"), *(tuple(row.values()) for row in data)]
    widths = [*(min(60, max(len(row[number]) for row in rows)) for number in range(3)), 0]
    run.say(data, ("  ".join(map(str.ljust, row, widths)) for row in rows), indent=2)


@backend.command()
@click.argument("mapping", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def upgrade(run: Run, mapping: Path) -> None:
    """Rewrite a mapping of an older form in the form of today; comments and layout stay.

    The file as it was is kept beside it, with `.old` behind its name.
    """
    from adapters.documents.document import read_document
    from adapters.mapping.upgrade import upgraded

    text = mapping.read_text(encoding="utf-8")
    made = upgraded(read_document(mapping), text)
    if made == text:
        run.say({"rewritten": 0, "old": None}, [f"{mapping}: it has the form of today already"])
        return
    old = mapping.with_name(f"{mapping.name}.old")
    if old.exists():
        fail(f"{old} exists already: move it away")
    write_new(old, text)
    mapping.write_text(made, encoding="utf-8")
    pairs = zip(text.splitlines(), made.splitlines(), strict=False)
    changed = sum(one != other for one, other in pairs)
    line = f"{mapping}: {changed} lines rewritten; {old} has it as it was"
    run.say({"rewritten": changed, "old": str(old)}, [line])


@click.command(cls=Command)
async def vets(run: Run) -> None:
    """List the veterinarians with their public ids."""
    async with practice_system(run.settings) as adapter:
        if "vets" not in adapter.resources:
            fail(NOT_MAPPED.format("vets"))
        records = await practice.first(adapter, "vets", PAGES_MOST * PAGE_LARGEST, now())
    data = [{"id": vet["id"], "name": vet.get("name")} for vet in records]
    run.say(data, (f"{vet['name'] or ''}  {vet['id']}" for vet in data), indent=2)


@click.command(cls=Command)
@click.argument("resource", type=one_of("RESOURCE", WITH_IDS), metavar="RESOURCE")
@option(
    "--limit", click.IntRange(1, PAGE_LARGEST), f"How many, at most {PAGE_LARGEST}.", default=10
)
@option("--after", TextValue("PLACE", str), "Go on behind the last page: what that one printed.")
async def sample(run: Run, resource: str, limit: int, after: str | None) -> None:
    """List some records of a resource, public id and name, to try a connection.

    RESOURCE is appointments, clients, patients, consultations, invoices, stock, appointmentTypes
    or vets. A database gives them in the order of their keys, a JSON backend in its own.
    """
    async with practice_system(run.settings) as adapter:
        if resource not in adapter.resources:
            fail(NOT_MAPPED.format(resource))
        try:
            page = await practice.some(adapter, resource, limit, now(), after)
        except (ValueError, TypeError, AdapterError) as error:
            if after is None:
                raise
            why = f"{error}; " if isinstance(error, AdapterError) else ""
            fail(f"{why}--after takes the place that `sample` printed, as it stands")
        names = Names(adapter, now())
        data = [
            {"id": record["id"], "name": await names.of(resource, record)}
            for record in page.records
        ]
    lines = [f"{record['id']}  {record['name']}".rstrip() for record in data]
    run.say({"records": data, "after": page.after}, lines or [""], indent=2)
    if page.after is not None and not run.as_json:
        say(f"there are more: --after {shlex.quote(page.after)}", err=True)


@asynccontextmanager
async def practice_system(
    settings: Settings, report: Report = lambda trouble: None
) -> AsyncIterator[Adapter]:
    """Yields the configured adapter. Raises DocumentErrors where its mapping does not fit."""
    check_configured(settings)
    async with opened(settings) as store:
        adapter, _ = await open_backend(settings, store, report)
        async with aclosing(adapter):
            await adapter.check()
            yield adapter
