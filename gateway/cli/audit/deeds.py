"""`clinic-gateway audit deeds`: what administrators and commands did."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from gateway.administrators.log import DONE, Deed, DeedLog
from gateway.cli.audit.opened import UNREAD, place_of_audit, when
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import OneLine, config_option, fail, json_option
from gateway.settings import Settings
from gateway.state import opened_if_begun

MOST, LARGEST = 50, 10_000


@click.command("deeds")
@click.option(
    "--who",
    type=OneLine(),
    metavar="NAME",
    help="Of that name alone, such as Claire or 'shell: root'.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, LARGEST),
    default=MOST,
    show_default=True,
    help="How many, the newest first.",
)
@config_option
@json_option
def deeds(who: str | None, limit: int, config: Path | None, as_json: bool) -> None:
    """Say what administrators and commands did.

    A command stands under the system account that ran it: `shell: root`. The audit's files hold the
    same under seal, which `audit verify` looks at.
    """
    found = asyncio.run(_last(place_of_audit(config), who or "", limit))
    if as_json:
        click.echo(legible_json([_told(each) for each in found]))
        return
    for each in found:
        click.echo(legible(_line(each)))
    if not found:
        click.echo("no deeds" + (f" of {legible(who)}" if who else "") + " so far")


async def _last(settings: Settings, who: str, most: int) -> Sequence[Deed]:
    async with opened_if_begun(settings) as store:
        if store is None:
            fail(f"nothing has been served yet from the state folder {settings.state}", UNREAD)
        return await DeedLog(store).last(most, who=who)


def _told(deed: Deed) -> dict[str, Any]:
    return {
        "at": when(deed.at),
        "who": deed.who,
        "deed": deed.deed,
        "subject": deed.subject or None,
        "outcome": deed.outcome,
        "details": deed.details,
    }


def _line(deed: Deed) -> str:
    told = ", ".join(f"{name} {_plain(value)}" for name, value in deed.details.items())
    what = deed.deed if deed.outcome == DONE else f"{deed.outcome}: {deed.deed}"
    parts = (f"{when(deed.at)}  {deed.who}", what, deed.subject, told)
    return "  ".join(part for part in parts if part)


def _plain(value: Any) -> str:
    """A detail in words; "none" of one that is empty, such as a bound that was taken away."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        value = [f"{name}={each}" for name, each in value.items()]
    if isinstance(value, list):
        value = " ".join(map(str, value))
    return "none" if value in (None, "") else str(value)
