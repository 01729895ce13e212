"""`clinic-gateway serve` with several workers: what they share, and what their parent runs."""

import gc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from socket import SHUT_RDWR, socket

from adapters.documents.problems import DocumentErrors
from gateway.app import Shared
from gateway.assembly.sides import Sockets, bind_all, check_tls
from gateway.backend import check_configured
from gateway.cli.lives import Stage, live, operate, work
from gateway.cli.warnings import warn
from gateway.hardening import forbid_core_dumps
from gateway.limits import Counters
from gateway.observe.logs import Events
from gateway.processes.child import Work
from gateway.processes.parent import Parent, Plan
from gateway.processes.reports import socket_in
from gateway.settings import Settings, StartRefused, load_settings
from gateway.state import make_folder, make_run, sole_use
from gateway.web.limiter import reserve_files
from gateway.web.server import check_runtime

# What a roll cannot change, since the parent has it.
_FIXED = ("listen", "operations_listen", "admin_listen", "state", "workers")


def serve_in_processes(settings: Settings, config: Path | None) -> int:
    """Serve with several workers until a signal ends it; the exit code.

    StartRefused where the parent itself cannot begin; what refuses a child's start that one says.
    """
    forbid_core_dumps()
    check_runtime()
    check_configured(settings)
    check_tls(settings)
    reserve_files(settings.connections)
    events = Events()
    with ExitStack() as stack:
        sockets = bind_all(settings)
        stack.callback(sockets.close)
        folder = make_folder(settings.state)
        stack.enter_context(sole_use(settings.state))
        shared = stack.enter_context(_shared(make_run(folder), sockets))

        stage = Stage()

        def begun() -> None:
            stage.is_begun = True
            events.info("serving", **sockets.ports, workers=settings.workers)
            warn(settings, sockets.public, events)

        replan = partial(_again, settings, config, shared, stage)
        parent = Parent(plan_of(settings, shared, stage), events, replan, begun)
        # what was made for the start stays, and is shared as long as nobody touches it
        gc.freeze()
        return parent.run()


@contextmanager
def _shared(run: Path, sockets: Sockets) -> Iterator[Shared]:
    """What the processes have in common; what a former life has left of it goes."""
    handed, sums = run / "policy.json", run / "sums.json"
    for each in (handed, sums):
        each.unlink(missing_ok=True)
    # for a limiter in memory: made here, so that all who are forked count together
    counters = Counters()
    with socket_in(run) as reports:
        try:
            yield Shared(
                sockets=sockets,
                handed=handed,
                reports=reports,
                sums=sums,
                counters=counters,
            )
        finally:
            counters.close()
            for each in (handed, sums, reports):
                each.unlink(missing_ok=True)


def plan_of(settings: Settings, shared: Shared, stage: Stage) -> Plan:
    """What the parent is to run."""

    def worker(number: int, *, is_first: bool = False) -> Work:
        return partial(live, partial(work, settings, shared, number, is_first=is_first), stage)

    return Plan(
        operations=partial(live, partial(operate, settings, shared), stage),
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


def _again(before: Settings, config: Path | None, shared: Shared, stage: Stage) -> Plan | None:
    """A plan by the configuration as it is now; None, and why, where that is no good."""
    events = Events()
    text = "the configuration is wrong: nothing is replaced"
    try:
        settings = load_settings(config)
        check_configured(settings)
        check_tls(settings)
        reserve_files(settings.connections)
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
    return plan_of(settings.model_copy(update=kept), shared, stage)
