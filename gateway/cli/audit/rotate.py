"""`clinic-gateway audit rotate-key`: from now on another key seals the lines."""

import asyncio
from pathlib import Path

import click

from gateway.audit.secrets import Secret, key_file, rotate
from gateway.cli.audit.opened import place_of_audit
from gateway.cli.deeds import recording
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import config_option, json_option
from gateway.cli.policy.named import own_store
from gateway.settings import Settings


@click.command("rotate-key")
@config_option
@json_option
def rotate_key(config: Path | None, as_json: bool) -> None:
    """Make a new HMAC key for the audit; the former ones stay, so that older lines verify.

    Running processes take it with the next line that they write.
    """
    settings = place_of_audit(config)
    path = key_file(settings)
    new = asyncio.run(_rotated(settings, path, is_lost=not path.exists()))
    if as_json:
        click.echo(legible_json({"key": new.id, "file": str(path)}))
    else:
        click.echo(legible(f"the key {new.id} seals from now on; keep a copy of {path}"))


async def _rotated(settings: Settings, path: Path, *, is_lost: bool) -> Secret:
    """A new key. Where the one before is gone, only the new one can seal the deed."""
    async with own_store(settings) as store:
        if store is None:  # there is no audit yet
            return rotate(path)
        lost = rotate(path) if is_lost else None
        async with recording(settings, store) as deed, deed("audit key rotated") as noted:
            new = lost or rotate(path)
            noted |= {"key": new.id, "lost": is_lost}
    return new
