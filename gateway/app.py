"""The composition root: makes a gateway of its settings, and decides nothing itself.

A gateway is one process with everything in it, or an operations process with workers beside it.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from gateway import state
from gateway.assembly import answering as probes
from gateway.assembly import kit as parts
from gateway.assembly.answering import open_answering
from gateway.assembly.kit import Kit, PracticeSystem
from gateway.assembly.listeners import Sockets, bind_all, panel_listener, system_listener
from gateway.backend import check_configured
from gateway.keys.store import KeyStore
from gateway.lifecycle import Faults, Gateway, Operations, Worker
from gateway.limits import open_shared
from gateway.limits.shared import Counters
from gateway.observe.metrics import Snapshot
from gateway.observe.process import watch_process
from gateway.policy.running.follower import Taker, take
from gateway.policy.running.keeper import Keeper, find
from gateway.policy.running.keeper import Snapshot as PolicyFile
from gateway.policy.running.versions import Presence, Versions
from gateway.processes.reports import Report, Reporter, Workers
from gateway.settings import Settings
from gateway.store import Store
from gateway.web.connection_limiter import reserve_files
from gateway.web.server import check_runtime
from gateway.web.system import Probe, Readiness, watch_parts

Clock = Callable[[], datetime]
# The clock of a real gateway.
utc_now = partial(datetime.now, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What the processes of one gateway have in common: sockets, paths and counters."""

    sockets: Sockets
    handed: Path
    reports: Path
    sums: Path
    counters: Counters | None


@asynccontextmanager
async def _opening(settings: Settings, now: Clock, process: str = "gateway") -> AsyncIterator[Kit]:
    """Yields what a process is built with; where building fails, nothing is left open."""
    async with AsyncExitStack() as closers:
        kit = Kit(settings, closers, now, process)
        asyncio.get_running_loop().set_exception_handler(Faults(kit.events))
        yield kit


async def build(settings: Settings, *, now: Clock = utc_now) -> Gateway:
    """Returns a gateway in one process; raises StartRefused, StoreError or DocumentErrors."""
    check_runtime()
    async with _opening(settings, now) as kit:
        sockets = _bound(kit)
        store, file = await _begun_state(kit)
        practice = await parts.open_practice(kit, store, file)
        own = kit.closing(state.open_own_store(settings))
        keeper, follower = await parts.open_keeper(kit, Versions(own), practice, file)
        owners = await parts.open_owners(kit, store)
        answering = await open_answering(
            kit,
            practice,
            keeper.policy,
            sockets.public,
            store=own,
            ledger_store=store,
            owners=owners,
        )
        await parts.look_after_bookings(kit, store, practice.adapter, owners)
        parts.keep_audit(kit, own)
        readiness = _readiness(kit, practice, keeper, answering.probes)
        look = parts.ledger_standing(kit, own).look

        async def figures() -> Snapshot:
            await look()
            return kit.metrics.snapshot()

        return Gateway(
            settings=settings,
            events=kit.events,
            readiness=readiness,
            store=store,
            keys=KeyStore(store),
            ring=answering.ring,
            adapter=practice.adapter,
            probe=practice.probe,
            keeper=keeper,
            follower=follower,
            usage=answering.usage,
            public=answering.public,
            panel=panel_listener(
                kit,
                sockets,
                store=own,
                adapter=practice.adapter,
                readiness=readiness,
                keeper=keeper,
                figures=figures,
                audit=answering.audit,
                limiter=answering.limiter,
            ),
            system=system_listener(kit, readiness, sockets.system, figures),
            closers=kit.closers.pop_all(),
        )


async def build_operations(
    settings: Settings, shared: Shared, *, now: Clock = utc_now
) -> Operations:
    """Returns the process beside the workers, which begins before them; raises as `build` does."""
    async with _opening(settings, now, "operations") as kit:
        store, file = await _begun_state(kit)
        # a policy that has been handed on stays in force, and the file is then looked at as usual
        is_first = take(shared.handed) is None
        practice = await parts.open_practice(kit, store, file if is_first else None)
        keeper, follower = await parts.open_keeper(
            kit, Versions(store), practice, file, shared.handed
        )
        owners = await parts.open_owners(kit, store)
        await parts.look_after_bookings(kit, store, practice.adapter, owners)
        parts.keep_audit(kit, store)
        workers = Workers(shared.reports, shared.sums, kit.metrics.snapshot, settings.workers)
        await kit.closing(workers).start()
        behind = partial(probes.policy_behind, lambda: keeper.status, workers, kit.now)
        kit.metrics.ask("gateway_policy_behind", lambda: len(behind()))
        more: dict[str, Probe] = {"store": partial(probes.probe_store, store)}
        more["workers"] = workers.probe
        readiness = _readiness(kit, practice, keeper, more, behind)
        watch_process(kit.metrics)
        look = parts.ledger_standing(kit, store).look

        async def figures() -> Snapshot:
            await look()
            return await workers.figures()

        limiter = open_shared(settings.limiter.get_secret_value(), shared.counters)
        return Operations(
            settings=settings,
            events=kit.events,
            readiness=readiness,
            follower=follower,
            probe=practice.probe,
            panel=panel_listener(
                kit,
                shared.sockets,
                store=store,
                adapter=practice.adapter,
                readiness=readiness,
                keeper=keeper,
                figures=figures,
                audit=(await parts.open_logs(kit, store)).audit,
                limiter=kit.closing(limiter),
            ),
            system=system_listener(kit, readiness, shared.sockets.system, figures),
            closers=kit.closers.pop_all(),
        )


async def build_worker(
    settings: Settings, shared: Shared, number: int, *, is_first: bool = False, now: Clock = utc_now
) -> Worker:
    """Returns one of the workers, by the policy that is handed to it; raises as `build` does.

    The first worker of a roll checks that the practice system has what the mapping names, as a
    start does.
    """
    async with _opening(settings, now, f"worker {number}") as kit:
        store = kit.closing(state.open_own_store(settings))
        await state.open_state(settings, store)
        practice = await parts.open_practice(kit, store, looks=is_first)
        own = kit.closing(state.open_own_store(settings))
        presence = Presence(Versions(own), kit.now, f"worker {number}")
        taker = kit.closing(Taker(shared.handed, kit.report, presence, kit.events))
        await taker.begin()
        if is_first:
            parts.check_rows(practice, taker.policy())
        answering = await open_answering(
            kit,
            practice,
            taker.policy,
            shared.sockets.public,
            store=own,
            ledger_store=store,
            owners=await parts.open_owners(kit, store),
            counters=shared.counters,
        )
        readiness = kit.closing(Readiness(answering.probes))
        watch_parts(readiness, kit.metrics)

        async def report() -> Report:
            return Report(
                worker=number,
                pid=os.getpid(),
                stopping=readiness.stopping,
                policy=taker.policy().hash,
                parts=(await readiness.report())["parts"],
                figures=dict(kit.metrics.snapshot()),
            )

        return Worker(
            settings=settings,
            events=kit.events,
            readiness=readiness,
            taker=taker,
            public=answering.public,
            reporter=kit.closing(Reporter(shared.reports, report)),
            closers=kit.closers.pop_all(),
        )


def _bound(kit: Kit) -> Sockets:
    """Returns the bound addresses, and takes sole use of the state folder for this process."""
    settings = kit.settings
    check_configured(settings)
    reserve_files(settings.connections)
    sockets = bind_all(settings, kit.closers)
    kit.closers.enter_context(state.sole_use(state.make_folder(settings.state)))
    return sockets


def _readiness(
    kit: Kit,
    practice: PracticeSystem,
    keeper: Keeper,
    more: Mapping[str, Probe],
    behind: Callable[[], Sequence[Mapping[str, Any]]] = tuple,
) -> Readiness:
    """Returns the readiness of a whole gateway, however many of its processes answer."""
    readiness = Readiness(
        {
            "backend": partial(probes.probe_backend, practice.probe, lambda: kit.backend.state),
            "policy": partial(probes.probe_policy, lambda: keeper.status, behind),
            **more,
        }
    )
    kit.metrics.ask("gateway_ready", lambda: float(readiness.ready))
    watch_parts(kit.closing(readiness), kit.metrics)
    return readiness


async def _begun_state(kit: Kit) -> tuple[Store, PolicyFile]:
    """Returns the store of this state, which may be a new one, and the policy's file."""
    state.check_clock(kit.now)
    store = kit.closing(state.open_own_store(kit.settings))
    await state.begin_state(kit.settings, store)
    await state.check_not_behind(store, kit.now())
    return store, await asyncio.to_thread(find, kit.settings.policy)
