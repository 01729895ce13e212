"""The processes of `clinic-gateway serve`: how each begins, serves, hears its signals, and ends."""

import asyncio
import gc
import ipaddress
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import SHUT_RDWR, socket
from typing import Any, TypeVar

import click

from adapters.base import AdapterError
from adapters.documents.problems import DocumentErrors
from gateway.app import Shared, build_operations, build_worker
from gateway.assembly.listeners import Sockets, bind_all, check_tls
from gateway.backend import check_configured
from gateway.cli.options import said_plainly
from gateway.limits import Counters
from gateway.observe.logs import Events
from gateway.processes.child import Inherited, Work
from gateway.processes.parent import Parent, Plan
from gateway.processes.reports import socket_in
from gateway.serving import forbid_core_dumps
from gateway.settings import Settings, StartRefused, load_settings
from gateway.state import make_folder, make_run, open_to_others, sole_use
from gateway.store import StoreError
from gateway.web.limiter import reserve_files
from gateway.web.server import check_runtime

BEAT_EVERY = 1.0
# What a roll cannot change, since the parent has it.
_FIXED = ("listen", "operations_listen", "admin_listen", "state", "workers")
Built = TypeVar("Built")
Serving = Callable[[Inherited, asyncio.Event], Awaitable[None]]


@dataclass(slots=True)
class Stage:
    """Whether the gateway serves already, as a child finds it that is forked."""

    is_begun: bool = False


def serve_in_processes(settings: Settings, config: Path | None) -> int:
    """Serves with several workers until a signal ends it; the exit code.

    StartRefused where the parent itself cannot begin; what refuses a child's start that one says.
    """
    forbid_core_dumps()
    check_runtime()
    _check_settings(settings)
    events, stage = Events(), Stage()
    with ExitStack() as stack:
        sockets = bind_all(settings)
        stack.callback(sockets.close)
        folder = make_folder(settings.state)
        stack.enter_context(sole_use(settings.state))
        shared = stack.enter_context(_shared(make_run(folder), sockets))

        def begun() -> None:
            stage.is_begun = True
            events.info("serving", **sockets.ports, workers=settings.workers)
            warn(settings, sockets.public, events)

        replan = partial(_replan, settings, config, shared, stage)
        parent = Parent(_plan(settings, shared, stage), events, replan, begun)
        # what was made for the start stays, and is shared as long as nobody touches it
        gc.freeze()
        return parent.run()


def _check_settings(settings: Settings) -> None:
    check_configured(settings)
    check_tls(settings)
    reserve_files(settings.connections)


@contextmanager
def _shared(run: Path, sockets: Sockets) -> Iterator[Shared]:
    """What the processes have in common; what a former life has left of it goes."""
    handed, sums = run / "policy.json", run / "sums.json"
    for file in (handed, sums):
        file.unlink(missing_ok=True)
    # for a limiter in memory: made here, so that all who are forked count together
    counters = Counters()
    with socket_in(run) as reports:
        try:
            yield Shared(
                sockets=sockets, handed=handed, reports=reports, sums=sums, counters=counters
            )
        finally:
            counters.close()
            for file in (handed, sums, reports):
                file.unlink(missing_ok=True)


def _plan(settings: Settings, shared: Shared, stage: Stage) -> Plan:
    """What the parent is to run."""

    def worker(number: int, *, is_first: bool = False) -> Work:
        serving = partial(_work, settings, shared, number, is_first=is_first)
        return partial(_live, serving, stage)

    return Plan(
        operations=partial(_live, partial(_operate, settings, shared), stage),
        worker=worker,
        first=partial(worker, is_first=True),
        workers=settings.workers,
        patience=settings.shutdown_delay + 2 * settings.drain,
        delay=settings.shutdown_delay,
        unlisten=partial(_unlisten, shared.sockets.public),
    )


def _unlisten(listening: socket) -> None:
    """For every process that has it; where the system knows no such thing, closing it will do."""
    with suppress(OSError):
        listening.shutdown(SHUT_RDWR)


def _replan(before: Settings, config: Path | None, shared: Shared, stage: Stage) -> Plan | None:
    """A plan by the configuration as it is now; None, and why, where that is no good."""
    events = Events()
    text = "the configuration is wrong: nothing is replaced"
    try:
        settings = load_settings(config)
        _check_settings(settings)
    except DocumentErrors as error:
        events.warn(text, problem=str(error.problems[0]), problems=len(error.problems))
        return None
    except StartRefused as error:
        events.warn(text, problem=str(error), problems=1)
        return None
    except Exception as error:  # noqa: BLE001 - whatever it is, the processes that run go on
        events.fault("the configuration cannot be read: nothing is replaced", error)
        return None
    kept = {name: getattr(before, name) for name in _FIXED}
    changed = [name for name, value in kept.items() if getattr(settings, name) != value]
    if changed:
        events.warn("these settings take a restart; the others hold from now on", settings=changed)
    return _plan(settings.model_copy(update=kept), shared, stage)


def _live(serving: Serving, stage: Stage, inherited: Inherited) -> int:
    """A child's life: its exit code, which is 0 where it was told to end."""
    try:
        with _said_in_the_log() if stage.is_begun else said_plainly():
            asyncio.run(_until_told(serving, inherited))
    except click.exceptions.Exit as refused:
        return refused.exit_code
    return 0


@contextmanager
def _said_in_the_log() -> Iterator[None]:
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

    async def beat() -> None:
        while True:
            inherited.beat()
            await asyncio.sleep(BEAT_EVERY)

    loop.add_reader(inherited.life, orphaned)
    loop.add_signal_handler(signal.SIGQUIT, log_tasks, Events())
    beating = asyncio.create_task(beat())
    try:
        await serving(inherited, stop)
    finally:
        beating.cancel()


async def _operate(
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


async def _work(
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


def log_tasks(events: Events) -> None:
    """Every task of this process, and where it waits: places in the code, no values."""
    for task in sorted(asyncio.all_tasks(), key=asyncio.Task.get_name):
        frames = task.get_stack(limit=12)
        places = [f"{frame.f_code.co_filename}:{frame.f_lineno}" for frame in frames]
        events.info("asked what runs: a task", task=task.get_name(), at=places)


def warn(settings: Settings, listening: socket, events: Events) -> None:
    """Says what does not keep a gateway from serving, but is better mended."""
    state = settings.state
    is_local = ipaddress.ip_address(listening.getsockname()[0]).is_loopback
    if settings.public_url is None and not is_local:
        events.warn(
            "without public_url, Link and Location lead partners to their own machine",
            remedy="set public_url to the address that partners call",
        )
    if open_to_others(state):
        remedy = f"chmod 700 {state}"
        events.warn("the state folder is open to others", folder=str(state), remedy=remedy)
