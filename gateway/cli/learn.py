"""`clinic-gateway backend learn`: what the desk's own appointments teach about a booking."""

from collections.abc import Sequence
from pathlib import Path

import click

from gateway.cli.backend import own_or_passing, write_new
from gateway.cli.command import Command, CommandGroup, Run, option
from gateway.cli.output import fail, say, say_json
from gateway.cli.values import FILE
from gateway.inquiries import practice

NEWEST, MOST = 3, 20


@click.group(cls=CommandGroup)
def learn() -> None:
    """Learn from what the practice's own desk has written."""


@learn.command(cls=Command)
@option(
    "--appointment appointments",
    click.STRING,
    "The practice's own key of an appointment that the desk made; several times for several.",
    multiple=True,
    metavar="KEY",
)
@option(
    "--newest",
    click.IntRange(1, MOST),
    "Or so many of the newest.",
    default=NEWEST,
)
@option("--output", FILE, "Write into this new file instead of printing.")
async def booking(run: Run, appointments: Sequence[str], newest: int, output: Path | None) -> None:
    """Print the `booking` of a mapping, derived from appointments that the desk has just made.

    Nothing is written to the database, nor into the mapping. Names and reasons are not printed.
    """
    if output is not None and output.exists():
        fail(f"{output} exists already; name a new file with --output")
    from adapters.doctor.learning import Unlearnable, booking_of

    async with (
        own_or_passing(run.settings) as (settings, store),
        practice.bare_adapter(settings, store, lambda trouble: None) as adapter,
    ):
        try:
            text, data = await booking_of(adapter, list(dict.fromkeys(appointments)), newest)
        except Unlearnable as error:
            fail(str(error))
    if output is not None:
        write_new(output, text)
    if run.as_json:
        say_json(data, indent=2)
    elif output is None:
        click.echo(text, nl=False)
    else:
        say(f"{output}: written; go through its TODOs, and put it into the mapping")
