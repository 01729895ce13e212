"""Keys as commands print them: in words, in JSON, as a list; everything but their secrets."""

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from gateway.cli.lines import legible, legible_json
from gateway.contract.fields import write_instant

SHOWN_ONCE = "This is the only time that the secret is shown. Hand it over in a safe way."
COLUMNS = (
    *("id", "name", "hint", "level", "permissions", "limit", "state", "last used"),
    *("bookings per day", "networks"),
)
# In a terminal.
ID_WIDTH, STATE_WIDTH, DAY_WIDTH = 36, len("until 2027-01-31"), len("2027-01-31")


def key_data(key: Any, hints: Sequence[Any] = ()) -> dict[str, Any]:
    """A key as JSON members: everything but its secret."""
    secrets = [{"hint": each.hint, "expiresAt": when(each.expires_at)} for each in hints]
    return {
        "id": key.id,
        "name": key.name,
        "contact": key.contact,
        "permissions": sorted(key.permissions),
        "level": key.level,
        "scopes": dict(key.scopes),
        "limit": key.limit,
        "bookingsPerDay": key.bookings_per_day,
        "networks": list(key.networks),
        "expiresAt": when(key.expires_at),
        "createdAt": when(key.created_at),
        "lastUsedAt": when(key.last_used_at),
        "revokedAt": when(key.revoked_at),
    } | ({"secrets": secrets} if secrets else {})


def print_key(
    key: Any, as_json: bool, at: datetime, *, secret: str = "", hints: Sequence[Any] = ()
) -> None:
    """Prints a key as it is at that time, and its new secret where there is one."""
    data = key_data(key, hints)
    if as_json:
        click.echo(legible_json({"id": key.id, "key": secret} | data if secret else data))
        return
    width = max(map(len, data))
    for name, value in data.items():
        if value not in (None, {}, []):
            click.echo(f"{name:{width}}  {legible(_plain(value))}")
    click.echo(f"{'state':{width}}  {_state(key, at)}")
    if secret:
        click.echo(f"\n{secret}\n\n{SHOWN_ONCE}")


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={level}" for name, level in value.items())
    if isinstance(value, list):
        return ", ".join(_secret(each) if isinstance(each, dict) else str(each) for each in value)
    return str(value)


def _secret(data: dict[str, Any]) -> str:
    until = f" until {data['expiresAt']}" if data["expiresAt"] else ""
    return f"{data['hint']}...{until}"


def _state(key: Any, now: datetime) -> str:
    if key.revoked_at:
        return "revoked"
    if not key.active(now):
        return "expired"
    return f"until {when(key.expires_at)}" if key.expires_at else "active"


def when(moment: datetime | None) -> str | None:
    return None if moment is None else write_instant(moment)


def print_keys(keys: Sequence[tuple[Any, Sequence[Any]]], at: datetime) -> None:
    """One line a key for other programs; for people two, and one more for its bounds."""
    rows = [dict(zip(COLUMNS, _row(key, hints, at), strict=True)) for key, hints in keys]
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
        _state(key, at),
        when(key.last_used_at) or "never",
        "" if key.bookings_per_day is None else str(key.bookings_per_day),
        " ".join(key.networks),
    )


def _bounds(row: dict[str, str]) -> str:
    """What bounds the key beside its limit, as a line of its own; "" where nothing does."""
    bookings, (first, *more) = row["bookings per day"], row["networks"].split() or [""]
    bounds = [f"{bookings} bookings/day"] if bookings else []
    bounds += [f"{first} +{len(more)}" if more else first] if first else []
    return f"\n{', '.join(bounds)}" if bounds else ""
