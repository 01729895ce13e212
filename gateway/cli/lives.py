"""The lives of a gateway's processes: how each begins, serves, hears its signals, and ends."""

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from adapters.base import AdapterError
from adapters.documents.problems import DocumentErrors
from gateway.app import Shared, build_operations, build_worker
from gateway.cli.refusals import said_plainly
from gateway.observe.logs import Events
from gateway.processes.child import Inherited
from gateway.settings import Settings, StartRefused
from gateway.store import StoreError

BEAT_EVERY = 1.0
Built = TypeVar("Built")
Serving = Callable[[Inherited, asyncio.Event], Awaitable[None]]


@dataclass(slots=True)
class Stage:
    """Whether the gateway serves already, as a child finds it that is forked."""

    is_begun: bool = False


def live(serving: Serving, stage: Stage, inherited: Inherited) -> int:
    """A child's life: its exit code, which is 0 where it was told to end."""
    try:
        with said_in_the_log() if stage.is_begun else said_plainly():
            asyncio.run(_until_told(serving, inherited))
    except click.exceptions.Exit as refused:
        return refused.exit_code
    return 0


@contextmanager
def said_in_the_log() -> Iterator[None]:
    """Once the gateway serves, its log is read by programs: there too a refusal is one line."""
    try:
        yield
    except (AdapterError, DocumentErrors, StartRefused, StoreError) as error:
        first, *more = str(error).splitlines()
        event = "a process of the gateway cannot begin"
        Events().warn(event, problem=first, problems=1 + len(more))
        raise click.exceptions.Exit(1) from error


async def _until_told(serving: Serving, inherited: Inherited) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def orphaned() -> None:
        loop.remove_reader(inherited.life)  # it would be ready for ever
        stop.set()

    loop.add_reader(inherited.life, orphaned)
    loop.add_signal_handler(signal.SIGQUIT, say_what_runs, Events())
    beating = asyncio.create_task(_beat(inherited))
    try:
        await serving(inherited, stop)
    finally:
        beating.cancel()


async def _beat(inherited: Inherited) -> None:
    while True:
        inherited.beat()
        await asyncio.sleep(BEAT_EVERY)


async def operate(
    settings: Settings, shared: Shared, inherited: Inherited, stop: asyncio.Event
) -> None:
    """Operations: at the end it goes on to answer until every worker has ended."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    for number in (signal.SIGTERM, signal.SIGUSR1):
        loop.add_signal_handler(number, stop.set)
    operations = await unless(stop, build_operations(settings, shared))
    if operations is None:
        return
    try:
        gc.freeze()
        loop.add_signal_handler(signal.SIGHUP, operations.follower.ask)
        loop.add_signal_handler(signal.SIGTERM, operations.leave)
        await operations.start()
        inherited.well()
        await stop.wait()
    finally:
        await operations.aclose()


async def work(
    settings: Settings,
    shared: Shared,
    number: int,
    inherited: Inherited,
    stop: asyncio.Event,
    *,
    is_first: bool = False,
) -> None:
    """A worker, or the first of a roll: SIGTERM ends it with all the others, SIGUSR1 alone."""
    loop = asyncio.get_running_loop()
    replaced = asyncio.Event()

    def replace() -> None:
        replaced.set()
        stop.set()

    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, replace)
    worker = await unless(stop, build_worker(settings, shared, number, is_first=is_first))
    if worker is None:
        return
    try:
        gc.freeze()
        await worker.start()
        inherited.well()
        await stop.wait()
        await worker.drain(alone=not replaced.is_set())
    finally:
        await worker.aclose()


async def unless(stop: asyncio.Event, building: Coroutine[Any, Any, Built]) -> Built | None:
    """What is built; None where it is to stop before: a look at a far database takes its time."""
    built, stopped = asyncio.create_task(building), asyncio.create_task(stop.wait())
    await asyncio.wait([built, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not built.done():
        built.cancel()
        with suppress(asyncio.CancelledError):
            await built
    return None if built.cancelled() else built.result()


def say_what_runs(events: Events) -> None:
    """Every task of this process, and where it waits: places in the code, no values."""
    for task in sorted(asyncio.all_tasks(), key=asyncio.Task.get_name):
        frames = task.get_stack(limit=12)
        places = [f"{each.f_code.co_filename}:{each.f_lineno}" for each in frames]
        events.info("asked what runs: a task", task=task.get_name(), at=places)
