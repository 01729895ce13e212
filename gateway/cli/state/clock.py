"""`clinic-gateway state clock`: the latest time that the state has seen, by which keys end."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from gateway.cli.deeds import Deed
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import config_option, json_option
from gateway.cli.stores import with_deeds, with_store
from gateway.contract.fields import write_instant
from gateway.keys.base import OddTime
from gateway.keys.key import Key
from gateway.keys.store import KeyStore
from gateway.store import Store
from gateway.wall_clock import JUMP


@click.command()
@click.option(
    "--accept", is_flag=True, help="This machine's clock is right: forget later times than its."
)
@config_option
@json_option
def clock(accept: bool, config: Path | None, as_json: bool) -> None:
    """Print this machine's time, and the latest that this state has seen; keys end by the later.

    With --accept the keys are named that are valid again by it; where the latest time cannot be
    read, nobody can tell which these are. Running gateways take it within a minute.
    """
    now = datetime.now(UTC)

    async def seen(store: Store) -> datetime | None:
        return await KeyStore(store).latest_time()

    async def accepted(store: Store, deed: Deed) -> tuple[datetime | None, list[Key]]:
        keys = KeyStore(store)
        try:
            latest = await seen(store)
            told = latest and write_instant(latest)
        except OddTime:
            latest, told = None, "no time"
            click.echo("the latest time seen could not be read: look through `keys list`", err=True)
        revived = [key for key, _ in (await keys.list()).keys if _is_revived(key, now, latest)]
        ids = [key.id for key in revived]
        async with deed("clock accepted", write_instant(now), seen=told, revived=ids):
            await keys.accept_time(now)
        return latest, revived

    latest, revived = with_deeds(config, accepted) if accept else (with_store(config, seen), [])
    if as_json:
        told = {"clock": write_instant(now), "latest": latest and write_instant(latest)}
        click.echo(
            legible_json(told | {"accepted": accept, "revived": [key.id for key in revived]})
        )
        return
    click.echo(f"this machine's clock: {write_instant(now)}")
    click.echo(f"the latest time seen: {write_instant(latest) if latest else 'none'}")
    click.echo(_verdict(now, latest, is_accepted=accept))
    for key in revived:
        click.echo(legible(f"valid again: {key.name} ({key.id})"))


def _verdict(now: datetime, latest: datetime | None, *, is_accepted: bool) -> str:
    if is_accepted:
        return "accepted: keys end by this machine's clock"
    behind = latest - now if latest else timedelta()
    if behind.total_seconds() <= JUMP:
        return "in order: keys end by this machine's clock"
    told = timedelta(seconds=int(behind.total_seconds()))
    return (
        f"the clock is {told} behind: keys end by the latest time seen. Set the clock; if it is"
        " right, run `clinic-gateway state clock --accept`"
    )


def _is_revived(key: Key, now: datetime, latest: datetime | None) -> bool:
    return latest is not None and key.active(now) and not key.active(latest)
