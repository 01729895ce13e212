"""A key in words and in JSON: everything but its secret, which is told once."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from gateway.cli.lines import legible, legible_json
from gateway.contract.fields import write_instant

SHOWN_ONCE = "This is the only time that the secret is shown. Hand it over in a safe way."


def told(key: Any, hints: Sequence[Any] = ()) -> dict[str, Any]:
    """A key as JSON members: everything but its secret."""
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
    } | ({"secrets": [_hint(each) for each in hints]} if hints else {})


def _hint(secret: Any) -> dict[str, Any]:
    return {"hint": secret.hint, "expiresAt": when(secret.expires_at)}


def tell(
    key: Any, as_json: bool, at: datetime, *, secret: str = "", hints: Sequence[Any] = ()
) -> None:
    """Print a key as it is at that time, and its new secret where there is one."""
    data = told(key, hints)
    if as_json:
        shown = {"id": key.id, "key": secret} | data if secret else data
        click.echo(legible_json(shown))
        return
    width = max(map(len, data))
    for name, value in data.items():
        if value not in (None, {}, []):
            click.echo(f"{name:{width}}  {legible(_plain(value))}")
    click.echo(f"{'state':{width}}  {state_of(key, at)}")
    if secret:
        click.echo(f"\n{secret}\n\n{SHOWN_ONCE}")


async def shown(store: Any, key_id: str) -> tuple[Any, datetime, Sequence[Any]]:
    """A key, the time by which it ends or not, and what may be told of its secrets."""
    key, hints = await store.show(key_id)
    return key, await store.key_time(datetime.now(UTC)), hints


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={level}" for name, level in value.items())
    if isinstance(value, list):
        return ", ".join(_secret(each) if isinstance(each, dict) else str(each) for each in value)
    return str(value)


def _secret(told_of: dict[str, Any]) -> str:
    """A secret by its hint, and when it ends."""
    until = told_of["expiresAt"]
    return f"{told_of['hint']}... until {until}" if until else f"{told_of['hint']}..."


def state_of(key: Any, now: datetime) -> str:
    if key.revoked_at:
        return "revoked"
    if not key.active(now):
        return "expired"
    return f"until {when(key.expires_at)}" if key.expires_at else "active"


def when(moment: datetime | None) -> str | None:
    return None if moment is None else write_instant(moment)


def odd(key_id: str) -> str:
    return (
        f"what is kept of the key {key_id} makes no sense here; it counts as revoked:"
        " make a new one, or run the version of the gateway that wrote it"
    )
