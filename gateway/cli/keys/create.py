"""`clinic-gateway keys create`: a new key, and its secret this once."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from gateway.cli.keys.opened import change_keys
from gateway.cli.keys.settings import expiry, name_of, settings_of_a_key
from gateway.cli.keys.told import tell
from gateway.cli.options import config_option, json_option
from gateway.inquiries.keys import settings_told
from gateway.keys.key import new_key


@click.command()
@settings_of_a_key(new=True)
@config_option
@json_option
def create(config: Path | None, as_json: bool, name: str, **options: Any) -> None:
    """Make a key, and show its secret this once."""
    now = datetime.now(UTC)
    key = new_key(
        name=name_of(name),
        permissions=options["permissions"],
        level=options["level"],
        scopes=dict(options["scopes"]),
        limit=options["limit"],
        expires_at=expiry(options["expires"]),
        contact=options["contact"],
        bookings_per_day=options["bookings_per_day"],
        networks=options["networks"],
        now=now,
    )

    async def made(store: Any, deed: Any) -> tuple[str, datetime]:
        # read before the key is made: where it cannot be read, no new secret is lost
        at = await store.key_time(now)
        async with deed("key made", key.id, **settings_told(key)):
            secret = str(await store.add(key))
        return secret, at

    secret, at = change_keys(config, made, may_begin=True)
    tell(key, as_json, at, secret=secret)
