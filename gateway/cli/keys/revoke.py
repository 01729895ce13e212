"""`clinic-gateway keys revoke`: a key taken away."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from gateway.cli.keys.opened import with_key
from gateway.cli.keys.told import tell, when
from gateway.cli.options import config_option, json_option


@click.command()
@click.argument("wanted", metavar="KEY")
@config_option
@json_option
def revoke(config: Path | None, as_json: bool, wanted: str) -> None:
    """Take a key away, for good.

    KEY is its id, or its name where no other key has that.
    """
    now = datetime.now(UTC)

    async def revoked(store: Any, key_id: str) -> tuple[bool, Any]:
        already = (await store.revoke(key_id, now)).revoked_at != now
        return already, await store.show(key_id)

    already, (key, hints) = with_key(config, wanted, revoked)
    tell(key, as_json, hints=hints)
    if already:
        click.echo(f"this key was revoked already, at {when(key.revoked_at)}", err=True)
