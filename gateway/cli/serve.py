"""`clinic-gateway serve`: serves partners until a signal ends it, in one process or several."""

import asyncio
import gc
import ipaddress
import signal
import stat
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import ExitStack, aclosing, closing, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import SHUT_RDWR, socket
from typing import Any, TypeVar

import click

from adapters.base import AdapterError
from adapters.documents.problems import DocumentErrors, Problem
from gateway.app import Shared, build, build_operations, build_worker
from gateway.assembly.listeners import bind_all, check_tls
from gateway.backend import bare_adapter_of, check_configured
from gateway.cli.command import Command, Run, said_plainly
from gateway.events import Events
from gateway.lifecycle import Gateway, Operations, Worker, forbid_core_dumps
from gateway.limits.shared import Counters
from gateway.observe.event_log import EventLog
from gateway.policy.reading.document import load_policy
from gateway.processes.child import Inherited
from gateway.processes.event_loop import chosen_loop, run_in_loop
from gateway.processes.reports import socket_in
from gateway.processes.supervisor import Plan, Supervisor
from gateway.settings import ConfigurationErrors, Settings, StartRefused, load_settings
from gateway.state import make_folder, make_run, sole_use
from gateway.store import StoreError
from gateway.web.connection_limiter import reserve_files
from gateway.web.server import check_runtime

BEAT_EVERY = 1.0
# Settings that replacing the workers cannot change, since the parent uses them.
_FIXED = ("listen", "operations_listen", "admin_listen", "state", "workers")
Built = TypeVar("Built")
Child = Operations | Worker


@click.command(cls=Command, has_json=False)
def serve(run: Run) -> None:
    """Serve the partners, and the operations listener.

    SIGTERM and SIGINT end it once running calls have ended; SIGHUP has the policy looked at. With
    several workers SIGUSR2 replaces them one by one, by ones with the configuration as it is now.

    It runs in uvloop's event loop where that is installed, else in asyncio's own; the setting
    event_loop chooses.
    """
    try:
        settings = run.settings
    except ConfigurationErrors as error:
        raise asyncio.run(_all_problems(error)) from error
    if settings.workers > 1:
        raise click.exceptions.Exit(serve_in_processes(settings, run.config))
    run_in_loop(settings, partial(serve_until_stopped, settings))


async def _all_problems(error: ConfigurationErrors) -> DocumentErrors:
    """Returns all problems of the configuration, and of the files that the rest of it names."""
    settings, problems = error.settings, list(error.problems)
    try:
        load_policy(settings.policy, lambda trouble: None)
    except DocumentErrors as more:
        problems += more.problems
    if settings.backend.mapping is not None:
        try:
            await (await bare_adapter_of(settings, bytes(32), lambda trouble: None)).aclose()
        except DocumentErrors as more:
            problems += [problem for problem in more.problems if problem.file not in error.left_out]
        except StartRefused as more:
            problems.append(Problem("backend", 0, 0, str(more), "wrong-value"))
    return DocumentErrors(problems)


async def serve_until_stopped(
    settings: Settings,
    begun: Callable[[Gateway], Awaitable[None]] | None = None,
    *,
    ends: Collection[signal.Signals] = (signal.SIGTERM, signal.SIGINT),
) -> None:
    """Serves until a signal of `ends`, and calls `begun` once the gateway answers.

    SIGHUP has the policy looked at, unless it is in `ends`. Without `begun`, the log says that the
    gateway was told to end and has ended.
    """
    forbid_core_dumps()
    stop, events, loop = asyncio.Event(), EventLog(), asyncio.get_running_loop()

    def end(number: signal.Signals) -> None:
        if begun is None and not stop.is_set():
            events.report("told_to_end", signal=number.name)
        stop.set()

    # a gateway that is being built reads the policy anyway
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    for number in ends:
        loop.add_signal_handler(number, end, number)
    loop.add_signal_handler(signal.SIGQUIT, _log_tasks, events)
    loop.add_signal_handler(signal.SIGUSR2, events.report, "roll_impossible")
    gateway = await _unless(stop, build(settings))
    if gateway is not None:
        if signal.SIGHUP not in ends:
            loop.add_signal_handler(signal.SIGHUP, gateway.follower.ask)
        async with aclosing(gateway):
            # what was made for the start stays: the garbage collector need not look through it
            gc.freeze()
            await gateway.start()
            _warn(settings, gateway.public.socket, gateway.events)
            if begun is not None:
                await begun(gateway)
            await stop.wait()
            await gateway.drain()
    if begun is None:
        events.report("has_ended")


def serve_in_processes(settings: Settings, config: Path | None) -> int:
    """Serves with several workers until a signal; returns the exit code. Raises StartRefused."""
    forbid_core_dumps()
    check_runtime()
    _check_settings(settings)
    events = EventLog()
    with ExitStack() as stack:
        sockets = bind_all(settings, stack)
        folder = make_folder(settings.state)
        stack.enter_context(sole_use(settings.state))
        run = make_run(folder)
        handed, sums = run / "policy.json", run / "sums.json"
        for file in (handed, sums):  # left by an earlier run
            file.unlink(missing_ok=True)
        reports = stack.enter_context(socket_in(run))
        # made before the workers are forked, so that a limiter in memory counts for all of them
        counters = stack.enter_context(closing(Counters()))
        for file in (handed, sums, reports):
            stack.callback(file.unlink, missing_ok=True)
        shared = Shared(
            sockets=sockets, handed=handed, reports=reports, sums=sums, counters=counters
        )
        processes = Processes(settings, config, shared)

        def begun() -> None:
            processes.have_begun = True
            kind = chosen_loop(settings)
            events.report("serving", **sockets.ports, workers=settings.workers, event_loop=kind)
            _warn(settings, sockets.public, events)

        supervisor = Supervisor(processes.plan(settings), events, processes.replan, begun)
        # what was made for the start stays, and is shared with children while nobody changes it
        gc.freeze()
        return supervisor.run()


def _check_settings(settings: Settings) -> None:
    check_configured(settings)
    chosen_loop(settings)
    check_tls(settings)
    reserve_files(settings.connections)


@dataclass(slots=True)
class Processes:
    """What the processes of one gateway run; a forked child sees `have_begun` as it was then."""

    settings: Settings
    config: Path | None
    shared: Shared
    have_begun: bool = False

    def plan(self, settings: Settings) -> Plan:
        """Returns what the parent runs with these settings."""

        def worker(number: int, *, is_first: bool = False) -> partial[int]:
            build = partial(build_worker, settings, self.shared, number, is_first=is_first)
            return partial(self._live, settings, build)

        def unlisten() -> None:
            # for every process that has it; where the system cannot, closing the socket is enough
            with suppress(OSError):
                self.shared.sockets.public.shutdown(SHUT_RDWR)

        return Plan(
            operations=partial(
                self._live, settings, partial(build_operations, settings, self.shared)
            ),
            worker=worker,
            first=partial(worker, is_first=True),
            workers=settings.workers,
            patience=settings.shutdown_delay + 2 * settings.drain,
            delay=settings.shutdown_delay,
            unlisten=unlisten,
        )

    def replan(self) -> Plan | None:
        """Returns a plan by the present configuration; None, and reports why, if that is wrong."""
        events = EventLog()
        try:
            settings = load_settings(self.config)
            _check_settings(settings)
        except (DocumentErrors, StartRefused) as error:
            first, *more = error.problems if isinstance(error, DocumentErrors) else (error,)
            events.report("configuration_wrong", problem=str(first), problems=1 + len(more))
            return None
        except Exception as error:  # noqa: BLE001 - the processes that run go on, whatever it is
            events.report("configuration_unreadable", error)
            return None
        kept = {name: getattr(self.settings, name) for name in _FIXED}
        changed = [name for name, value in kept.items() if getattr(settings, name) != value]
        if changed:
            events.report("restart_needed", settings=changed)
        return self.plan(settings.model_copy(update=kept))

    def _live(
        self,
        settings: Settings,
        build: Callable[[], Coroutine[Any, Any, Child]],
        inherited: Inherited,
    ) -> int:
        """Runs a child, and returns its exit code, which is 0 where it was told to end."""
        try:
            with nullcontext() if self.have_begun else said_plainly():
                run_in_loop(settings, lambda: _until_told(build(), inherited))
        except click.exceptions.Exit as refused:
            return refused.exit_code
        except (AdapterError, DocumentErrors, StartRefused, StoreError) as error:
            # programs read the log of a gateway that serves: a refusal is one line there
            first, *more = str(error).splitlines()
            EventLog().report("process_cannot_begin", problem=first, problems=1 + len(more))
            return 1
        return 0


async def _until_told(building: Coroutine[Any, Any, Child], inherited: Inherited) -> None:
    """Runs a child until a signal, or the end of its parent, ends it.

    SIGTERM ends a worker together with the others, SIGUSR1 ends it alone. At SIGTERM the operations
    process answers until every worker has ended.
    """
    loop = asyncio.get_running_loop()
    stop, replaced = asyncio.Event(), asyncio.Event()

    def orphaned() -> None:
        loop.remove_reader(inherited.life)  # it would stay readable for ever
        stop.set()

    def replace() -> None:
        replaced.set()
        stop.set()

    loop.add_reader(inherited.life, orphaned)
    loop.add_signal_handler(signal.SIGQUIT, _log_tasks, EventLog())
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, replace)
    beating = asyncio.create_task(_beat(inherited))
    try:
        process = await _unless(stop, building)
        if process is None:
            return
        if isinstance(process, Operations):
            loop.add_signal_handler(signal.SIGHUP, process.follower.ask)
            loop.add_signal_handler(signal.SIGTERM, process.leave)
        async with aclosing(process):
            gc.freeze()
            await process.start()
            inherited.well()
            await stop.wait()
            if isinstance(process, Worker):
                await process.drain(alone=not replaced.is_set())
    finally:
        beating.cancel()


async def _beat(inherited: Inherited) -> None:
    while True:
        inherited.beat()
        await asyncio.sleep(BEAT_EVERY)


async def _unless(stop: asyncio.Event, building: Coroutine[Any, Any, Built]) -> Built | None:
    """Returns what is built, which may take long; None where `stop` is set before."""
    built, stopped = asyncio.create_task(building), asyncio.create_task(stop.wait())
    await asyncio.wait([built, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not built.done():
        built.cancel()
        with suppress(asyncio.CancelledError):
            await built
    return None if built.cancelled() else built.result()


def _log_tasks(events: Events) -> None:
    """Reports every task of this process and where in the code it waits, without values."""
    for task in sorted(asyncio.all_tasks(), key=asyncio.Task.get_name):
        frames = task.get_stack(limit=12)
        places = [f"{frame.f_code.co_filename}:{frame.f_lineno}" for frame in frames]
        events.report("task_running", task=task.get_name(), at=places)


def _warn(settings: Settings, listening: socket, events: Events) -> None:
    """Reports what does not keep a gateway from serving, but should be changed."""
    is_local = ipaddress.ip_address(listening.getsockname()[0]).is_loopback
    if settings.public_url is None and not is_local:
        events.report("public_url_missing")
    if settings.state.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        events.report("state_folder_open", folder=str(settings.state))
