"""`clinic-gateway keys revoke`: a key taken away."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from gateway.cli.keys.opened import change_keys, with_key
from gateway.cli.keys.told import tell, when
from gateway.cli.lines import legible
from gateway.cli.options import config_option, fail, json_option


@click.command()
@click.argument("wanted", metavar="KEY")
@click.option("--yes", is_flag=True, help="Do not ask. Without a terminal it is required.")
@config_option
@json_option
def revoke(config: Path | None, as_json: bool, wanted: str, yes: bool) -> None:
    """Take a key away, for good.

    KEY is its id, or its name where no other key has that. On a terminal the command asks first.
    """
    if not (yes or sys.stdin.isatty()):
        raise click.UsageError(
            "without a terminal this needs --yes: a revoked key never works again"
        )
    key, at, hints = with_key(config, wanted, _shown)
    if key.revoked_at is not None:
        tell(key, as_json, at, hints=hints)
        click.echo(f"this key was revoked already, at {when(key.revoked_at)}", err=True)
        return
    if not yes and not click.confirm(_question(key), err=True):
        fail("nothing was revoked")
    key, at, hints = change_keys(config, lambda store, deed: _revoked(store, deed, key))
    tell(key, as_json, at, hints=hints)
    if not as_json:
        name = legible(key.name)
        click.echo(f"\n{name} is revoked: within a second every call with it is refused, for good")


async def _revoked(store: Any, deed: Any, key: Any) -> tuple[Any, datetime, Any]:
    async with deed("key revoked", key.id, name=key.name):
        await store.revoke(key.id, datetime.now(UTC))
    return await _shown(store, key.id)


async def _shown(store: Any, key_id: str) -> tuple[Any, datetime, Any]:
    """A key, this machine's time and its secrets; a latest time that is unreadable is no matter."""
    key, hints = await store.show(key_id)
    return key, datetime.now(UTC), hints


def _question(key: Any) -> str:
    """Which key it is, whose, and when it was last used."""
    contact = f" ({key.contact})" if key.contact else ""
    used = f"last used {when(key.last_used_at)}" if key.last_used_at else "never used"
    return legible(f"Revoke {key.name}{contact}, {key.id}, {used}? It never works again.")
