"""`clinic-gateway backend verify`: compares what is served with the practice's own figures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from adapters.doctor.figures import EXAMPLE, read_figures
from adapters.doctor.outcome import Figure, Outcome
from adapters.doctor.verification import verified
from gateway.backend import clinic_zone, shapes
from gateway.cli.backend import WIDE, own_or_passing
from gateway.cli.command import Command, Run, now, option
from gateway.cli.output import fail, legible, print_table, say, say_json
from gateway.cli.values import FILE, FLAG
from gateway.inquiries import practice

COLOURS = {Outcome.AGREES: "green", Outcome.DIFFERS: "red", Outcome.UNSEEN: "red"}


@click.command(cls=Command)
@click.argument("file", type=FILE, required=False)
@option("--example", FLAG, "Print a file to begin with, with comments.")
async def verify(run: Run, file: Path | None, example: bool) -> None:
    """Compare what is served with figures of the practice's own screens, which FILE has.

    Prints a line for each figure: it agrees, it differs, or it could not be looked at. Exit 1 where
    one does not agree. Nothing is written to the practice system.
    """
    if example:
        text = EXAMPLE.read_text(encoding="utf-8")
        if run.as_json:
            say_json({"example": text}, indent=2)
        else:
            click.echo(text, nl=False)
        return
    if file is None:
        raise click.UsageError("name a file of figures, or print one with --example")
    said, document = read_figures(file, shapes())
    async with (
        own_or_passing(run.settings) as (settings, store),
        practice.bare_adapter(settings, store, lambda trouble: None) as adapter,
    ):
        zone = clinic_zone(settings)
        figures = [it async for it in verified(adapter, said, document, zone, now())]
    if not figures:
        fail(f"{file}: it names no figure; --example prints a file with some")
    if run.as_json:
        say_json(list(map(_data, figures)), indent=2)
    else:
        _print(figures)
    if any(figure.outcome is not Outcome.AGREES for figure in figures):
        raise click.exceptions.Exit(1)


def _data(figure: Figure) -> dict[str, Any]:
    return asdict(figure) | {"text": figure.text}


def _print(figures: Sequence[Figure]) -> None:
    rows: list[list[str | Text]] = []
    for figure in figures:
        file, *where = figure.place.rsplit(":", 2)
        at = ":".join([PurePath(file).name, *where])
        outcome = Text(figure.outcome, COLOURS[figure.outcome])
        rows.append([outcome, figure.figure, Text(legible(f"{at}: {figure.text}"))])
    columns: dict[str, dict[str, Any]] = {
        "outcome": {"no_wrap": True},
        "figure": {"overflow": "fold", "max_width": 40},
        "found": {"overflow": "fold"},
    }
    # a file or a pipe takes wide lines
    print_table(columns, [rows], None if Console().is_terminal else WIDE)
    numbers = Counter(figure.outcome for figure in figures)
    told = f"{numbers[Outcome.AGREES]} agree, {numbers[Outcome.DIFFERS]} differ"
    unseen = numbers[Outcome.UNSEEN]
    say(f"{told}, {unseen} could not be looked at" if unseen else told)
