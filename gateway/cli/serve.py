"""`clinic-gateway serve`: serves until it is told to stop, and ends what runs."""

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import click

from adapters.base import Trouble
from adapters.documents.problems import DocumentErrors, Problem
from gateway.app import build
from gateway.backend import bare_adapter_of
from gateway.cli.options import config_option
from gateway.cli.processes import log_tasks, serve_in_processes, unless, warn
from gateway.observe.logs import Events
from gateway.policy.reading.document import load_policy
from gateway.processes.parent import HAS_ENDED, TOLD_TO_END
from gateway.serving import Gateway, forbid_core_dumps
from gateway.settings import ConfigurationErrors, Settings, StartRefused, load_settings

NO_ROLL = "one process cannot replace itself"


@click.command()
@config_option
def serve(config: Path | None) -> None:
    """Serve the partners, and the operations listener.

    SIGTERM and SIGINT end it once running calls have ended; SIGHUP has the policy looked at. With
    several workers SIGUSR2 replaces them one by one, by ones with the configuration as it is now.
    """
    try:
        settings = load_settings(config)
    except ConfigurationErrors as error:
        raise asyncio.run(_all_problems(error)) from error
    if settings.workers > 1:
        raise click.exceptions.Exit(serve_in_processes(settings, config))
    asyncio.run(serve_until_stopped(settings))


async def _all_problems(error: ConfigurationErrors) -> DocumentErrors:
    """What is wrong with the configuration, and with the files that the rest of it names."""
    settings, problems = error.settings, list(error.problems)

    def ignore(_: Trouble) -> None:
        """Nothing is read while files are checked."""

    try:
        load_policy(settings.policy, ignore)
    except DocumentErrors as more:
        problems += more.problems
    if settings.backend.mapping is not None:
        try:
            await bare_adapter_of(settings, bytes(32), ignore).aclose()
        except DocumentErrors as more:
            problems += [each for each in more.problems if each.file not in error.left_out]
        except StartRefused as more:
            problems.append(Problem("backend", 0, 0, str(more)))
    return DocumentErrors(problems)


async def serve_until_stopped(
    settings: Settings,
    begun: Callable[[Gateway], Awaitable[None]] | None = None,
    *,
    ends: Collection[signal.Signals] = (signal.SIGTERM, signal.SIGINT),
) -> None:
    """Serves; `begun` is called once it answers.

    The first signal of `ends` begins the end, others do not; a hangup that is none of these has the
    policy looked at. That it ends and has ended is said, but not by a demo, which has `begun`.
    """
    forbid_core_dumps()
    stop, events, loop = asyncio.Event(), Events(), asyncio.get_running_loop()

    def say(event: str, **details: Any) -> None:
        if begun is None:
            events.info(event, **details)

    def end(number: signal.Signals) -> None:
        if not stop.is_set():
            say(TOLD_TO_END, signal=number.name)
        stop.set()

    # until there is a gateway, its files are still to be read
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    for number in ends:
        loop.add_signal_handler(number, end, number)
    remedy = "restart the gateway, or set workers to 2 or more"
    loop.add_signal_handler(signal.SIGQUIT, log_tasks, events)
    loop.add_signal_handler(signal.SIGUSR2, lambda: events.warn(NO_ROLL, remedy=remedy))
    gateway = await unless(stop, build(settings))
    if gateway is not None:
        if signal.SIGHUP not in ends:
            loop.add_signal_handler(signal.SIGHUP, gateway.follower.ask)
        await _serve(gateway, stop, begun)
    say(HAS_ENDED)


async def _serve(
    gateway: Gateway, stop: asyncio.Event, begun: Callable[[Gateway], Awaitable[None]] | None
) -> None:
    """From the start to the end; nothing is left open."""
    try:
        # what was made for the start stays: looking through it again and again would cost each call
        gc.freeze()
        await gateway.start()
        warn(gateway.settings, gateway.public.socket, gateway.events)
        if begun is not None:
            await begun(gateway)
        await stop.wait()
        await gateway.drain()
    finally:
        await gateway.aclose()
