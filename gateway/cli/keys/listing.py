"""`clinic-gateway keys list`: all keys, for a terminal or for other programs."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from gateway.cli.keys.opened import place, with_keys
from gateway.cli.keys.told import odd, state_of, told, when
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import config_option, json_option

COLUMNS = (
    *("id", "name", "hint", "level", "permissions", "limit", "state", "last used"),
    *("bookings per day", "networks"),
)
# In a terminal.
ID_WIDTH, STATE_WIDTH, DAY_WIDTH = 36, len("until 2027-01-31"), len("2027-01-31")


@click.command("list")
@config_option
@json_option
def list_keys(config: Path | None, as_json: bool) -> None:
    """All keys."""
    listing, at = with_keys(config, _listed)
    for key_id in listing.odd:
        click.echo(odd(key_id), err=True)
    if as_json:
        click.echo(legible_json([told(key, hints) for key, hints in listing.keys]))
    elif listing.keys:
        _table(listing.keys, at)
    else:
        click.echo(f"no keys yet in {place(config)}; `clinic-gateway keys create` makes one")


async def _listed(store: Any) -> tuple[Any, datetime]:
    """The keys, and the time by which they end."""
    return await store.list(), await store.key_time(datetime.now(UTC))


def _table(found: Sequence[Any], at: datetime) -> None:
    """One line a key for other programs; for people two, and one more for its bounds."""
    rows = [dict(zip(COLUMNS, _row(key, hints, at), strict=True)) for key, hints in found]
    if sys.stdout.isatty():
        _draw(rows)
        return
    for row in (COLUMNS, *(each.values() for each in rows)):
        click.echo("\t".join(row))


def _draw(rows: Sequence[dict[str, str]]) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    wide = max(Console().width, 80)
    longest = max(cell_len(row["name"]) for row in rows)
    first = max(ID_WIDTH, min(longest, ID_WIDTH + (wide - 80) // 2))
    room = wide - first - STATE_WIDTH - DAY_WIDTH - 4  # a blank behind each column
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("name\nid", width=first, no_wrap=True, overflow="ellipsis")
    table.add_column("level\nhint", no_wrap=True)
    table.add_column("limit\nstate", width=STATE_WIDTH, no_wrap=True)
    table.add_column("last used\n", width=DAY_WIDTH, no_wrap=True)
    for row in rows:
        table.add_row(
            escape(f"{row['name']}\n{row['id']}{_bounds(row)}"),
            f"{_shortened(row['level'], room)}\n{row['hint']}",
            f"{row['limit']}\n{row['state'][:STATE_WIDTH]}",
            row["last used"][:DAY_WIDTH],
        )
    Console(width=wide).print(table)


def _shortened(level: str, room: int) -> str:
    """A level with its scopes, or with their number where they have no room."""
    first, *scopes = level.split()
    return level if len(level) <= room else f"{first} +{len(scopes)}"


def _row(key: Any, hints: Sequence[Any], at: datetime) -> tuple[str, ...]:
    scopes = "".join(f" {name}={level}" for name, level in key.scopes.items())
    return (
        key.id,
        " ".join(legible(key.name).split()),
        hints[-1].hint if hints else "",
        f"{key.level}{scopes}",
        " ".join(sorted(key.permissions)),
        str(key.limit),
        state_of(key, at),
        when(key.last_used_at) or "never",
        "" if key.bookings_per_day is None else str(key.bookings_per_day),
        " ".join(key.networks),
    )


def _bounds(row: dict[str, str]) -> str:
    """What bounds the key beside its limit, as a line of its own; "" where nothing does."""
    bookings, (first, *more) = row["bookings per day"], row["networks"].split() or [""]
    told = [f"{bookings} bookings/day"] if bookings else []
    told += [f"{first} +{len(more)}" if more else first] if first else []
    return "".join(f"\n{each}" for each in [", ".join(told)] if each)
