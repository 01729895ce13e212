"""`clinic-gateway serve`: serves until it is told to stop, and ends what runs."""

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from adapters.base import Trouble
from adapters.problems import DocumentErrors, Problem
from gateway.app import build
from gateway.backend import bare_adapter_of
from gateway.cli.lives import say_what_runs
from gateway.cli.options import config_option
from gateway.cli.processes import serve_in_processes
from gateway.cli.warnings import warn
from gateway.hardening import forbid_core_dumps
from gateway.policy.reading.document import load_policy
from gateway.serving import Gateway
from gateway.settings import ConfigurationErrors, Settings, StartRefused, load_settings

NO_ROLL = "one process cannot replace itself: restart the gateway, or set workers to 2 or more"


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
    try:
        load_policy(settings.policy, _unheard)
    except DocumentErrors as more:
        problems += more.problems
    if settings.backend.mapping is not None:
        try:
            await bare_adapter_of(settings, bytes(32), _unheard).aclose()
        except DocumentErrors as more:
            problems += [each for each in more.problems if each.file not in error.left_out]
        except StartRefused as more:
            problems.append(Problem("backend", 0, 0, str(more)))
    return DocumentErrors(problems)


def _unheard(_: Trouble) -> None:
    """Nothing is read while files are checked."""


async def serve_until_stopped(
    settings: Settings,
    begun: Callable[[Gateway], Awaitable[None]] | None = None,
    *,
    ends: Collection[signal.Signals] = (signal.SIGTERM, signal.SIGINT),
) -> None:
    """Serve; `begun` is called once it answers.

    The first signal of `ends` begins the end, others do not; a hangup that is none of these has the
    policy looked at.
    """
    forbid_core_dumps()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGQUIT, say_what_runs)
    # until there is a gateway, its files are still to be read
    for early in (signal.SIGHUP, signal.SIGUSR2):
        loop.add_signal_handler(early, lambda: None)
    for each in ends:
        loop.add_signal_handler(each, stop.set)
    gateway = await _unless(stop, build(settings))
    if gateway is None:
        return
    try:
        # what was made for the start stays: looking through it again and again would cost each call
        gc.freeze()
        if signal.SIGHUP not in ends:
            loop.add_signal_handler(signal.SIGHUP, gateway.follower.ask)
        loop.add_signal_handler(signal.SIGUSR2, partial(gateway.events.warn, NO_ROLL))
        await gateway.start()
        warn(settings, gateway.public.socket, gateway.events)
        if begun is not None:
            await begun(gateway)
        await stop.wait()
        await gateway.drain()
    finally:
        await gateway.aclose()


async def _unless(stop: asyncio.Event, building: Coroutine[Any, Any, Gateway]) -> Gateway | None:
    """What is built; None where it is to stop before: a look at a far database takes its time."""
    built, stopped = asyncio.create_task(building), asyncio.create_task(stop.wait())
    await asyncio.wait([built, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not built.done():
        built.cancel()
        with suppress(asyncio.CancelledError):
            await built
    return None if built.cancelled() else built.result()
