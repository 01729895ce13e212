"""`clinic-gateway audit rotate-key`: from now on another key seals the lines."""

import asyncio
from pathlib import Path

import click

from gateway.audit.chains import PLACE, audit_folder
from gateway.audit.entries import AuditSecret, key_file, rotate
from gateway.cli.audit.opened import place_of_audit
from gateway.cli.deeds import recording
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import config_option, fail, json_option
from gateway.identity import identity_of
from gateway.settings import Settings
from gateway.state import opened_if_begun


@click.command("rotate-key")
@config_option
@json_option
def rotate_key(config: Path | None, as_json: bool) -> None:
    """Make a new HMAC key for the audit; the former ones stay, so that older lines verify.

    Running processes take it with the next line that they write.
    """
    settings = place_of_audit(config)
    path, name = key_file(settings), audit_folder(settings) / PLACE
    if not path.exists() and not name.exists():
        fail(f"there is no audit in {name.parent} yet: `clinic-gateway serve` makes it and its key")
    new = asyncio.run(_rotated(settings, path, identity_of(name), is_lost=not path.exists()))
    if as_json:
        click.echo(legible_json({"key": new.id, "file": str(path)}))
    else:
        click.echo(legible(f"the key {new.id} seals from now on; keep a copy of {path}"))


async def _rotated(
    settings: Settings, path: Path, state: str | None, *, is_lost: bool
) -> AuditSecret:
    """A new key. Where the one before is gone, only the new one can seal the deed."""
    lost = rotate(path, state) if is_lost else None
    async with opened_if_begun(settings) as store:
        if store is None:  # there is no audit yet
            return lost or rotate(path)
        async with recording(settings, store) as deed, deed("audit key rotated") as noted:
            new = lost or rotate(path)
            noted |= {"key": new.id, "lost": is_lost}
    return new
