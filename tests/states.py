"""States of a gateway that nobody has served from yet."""

import asyncio
from pathlib import Path

from gateway.settings import load_settings
from gateway.state import opened


def begin_state(config: Path | None) -> None:
    """What that configuration names, and the environment where there is none."""
    asyncio.run(_begin(config))


async def _begin(config: Path | None) -> None:
    async with opened(load_settings(config, None if config is None else {}), may_begin=True):
        pass
