"""`clinic-gateway keys rotate`: a new secret, while the one before it stays valid for a time."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from gateway.cli.keys.opened import change_keys, id_of
from gateway.cli.keys.told import tell
from gateway.cli.options import config_option, json_option

_overlap = re.compile(r"([0-9]{1,4})([smhd])").fullmatch
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Overlap(click.ParamType[Any]):
    """A duration such as 24h."""

    name = "DURATION"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        found = _overlap(str(value))
        if found is None:
            return self.fail("write a number and s, m, h or d, such as 24h", param, ctx)
        overlap = timedelta(**{_UNITS[found[2]]: int(found[1])})
        if overlap > timedelta(days=90):
            return self.fail("an overlap is at most 90 days", param, ctx)
        return overlap


@click.command()
@click.argument("wanted", metavar="KEY")
@click.option(
    "--overlap", type=Overlap(), default="24h", show_default=True,
    help="How long the secret before it stays valid: a number and s, m, h or d, at most 90d.",
)  # fmt: skip
@config_option
@json_option
def rotate(config: Path | None, as_json: bool, wanted: str, overlap: timedelta) -> None:
    """Give a key a new secret, and show it this once.

    KEY is its id, or its name where no other key has that.
    """
    key_id, now = id_of(config, wanted), datetime.now(UTC)

    async def rotated(store: Any, deed: Any) -> tuple[Any, datetime]:
        # both are read before: where one cannot be read, no new secret is lost
        name, at = (await store.get(key_id)).name, await store.key_time(now)
        async with deed("key rotated", key_id, name=name, overlap=_written(overlap)):
            made = await store.rotate(key_id, overlap, now)
        return made, at

    made, at = change_keys(config, rotated)
    tell(made.key, as_json, at, secret=made.secret, hints=made.secrets)


def _written(overlap: timedelta) -> str:
    """The same, in the largest unit that it is whole in."""
    for letter, unit in reversed(_UNITS.items()):
        if overlap % timedelta(**{unit: 1}) == timedelta():
            return f"{overlap // timedelta(**{unit: 1})}{letter}"
    raise ValueError(overlap)
