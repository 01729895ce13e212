"""`clinic-gateway serve`: serves until it is told to stop, and ends what runs."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import click

from gateway.app import Gateway, all_problems, build
from gateway.cli.options import config_option
from gateway.settings import ConfigurationErrors, Settings, load_settings
from gateway.state import open_to_others


@click.command()
@config_option
def serve(config: Path | None) -> None:
    """Serve the partners, and the operations listener."""
    try:
        settings = load_settings(config)
    except ConfigurationErrors as error:
        raise asyncio.run(all_problems(error)) from error
    asyncio.run(serve_until_stopped(settings))


async def serve_until_stopped(
    settings: Settings, begun: Callable[[Gateway], Awaitable[None]] | None = None
) -> None:
    """Serve; `begun` is called once it answers. The first signal begins the end, others do not."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop.set)
    gateway = await build(settings)
    try:
        await gateway.start()
        _warn_of_state(gateway)
        if begun is not None:
            await begun(gateway)
        await stop.wait()
        await gateway.drain()
    finally:
        await gateway.aclose()


def _warn_of_state(gateway: Gateway) -> None:
    state = gateway.settings.state
    if open_to_others(state):
        gateway.events.warn(
            "the state folder is open to others", folder=str(state), remedy=f"chmod 700 {state}"
        )
