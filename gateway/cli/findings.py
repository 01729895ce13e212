"""Shows what an examination found: as a table for people, as JSON for programs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adapters.examination import Finding, Verdict
from gateway.cli.lines import legible

WIDE = 120
COLOURS = {Verdict.OK: "green", Verdict.WARNING: "yellow", Verdict.FAILED: "red"}


def as_data(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Each finding as a JSON object."""
    return [asdict(each) for each in findings]


def print_findings(findings: Sequence[Finding]) -> None:
    """A line for each thing that was looked at, and how many of each verdict."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("verdict", no_wrap=True)
    table.add_column("looked at", overflow="fold", max_width=30)
    table.add_column("found", overflow="fold")
    check = ""
    order = list(dict.fromkeys(each.check for each in findings))
    for each in sorted(findings, key=lambda finding: order.index(finding.check)):
        if each.check != check:
            check = each.check
            table.add_section()
            table.add_row("", f"[bold]{escape(check)}[/bold]", "")
        colour = COLOURS[each.verdict]
        found = "\n".join(escape(legible(line)) for line in _lines(each))
        table.add_row(f"[{colour}]{each.verdict}[/{colour}]", escape(legible(each.subject)), found)
    console = Console(highlight=False)
    if not console.is_terminal:  # in a file or a pipe no line need be short
        console = Console(highlight=False, width=WIDE)
    console.print(table)
    console.print(summary(findings), soft_wrap=True)


def summary(findings: Sequence[Finding]) -> str:
    """How it stands, in a sentence."""
    counted = Counter(each.verdict for each in findings)
    many = f"{counted[Verdict.WARNING]} warnings" if counted[Verdict.WARNING] != 1 else "1 warning"
    counts = f"{counted[Verdict.FAILED]} failed, {many}, {counted[Verdict.OK]} ok"
    if counted[Verdict.FAILED]:
        return f"{counts}: a partner would be failed; mend what is red and check again"
    return f"{counts}: nothing here would fail a partner"


def _lines(finding: Finding) -> Iterator[str]:
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
