"""The composition root: settings become a gateway that serves; nothing here decides anything.

A gateway is one process with everything in it, or an operations process with workers beside it.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from gateway.assembly.answering import Wanted, open_answering
from gateway.assembly.bookings import look_after, open_owners, standing
from gateway.assembly.deciding import decider
from gateway.assembly.kit import Kit
from gateway.assembly.noting import keep_audit, opened_journal
from gateway.assembly.panel import Watched, panel_of
from gateway.assembly.practice import Practice, check_rows, open_practice
from gateway.assembly.sides import Sockets, bind_all, public_side, system_side
from gateway.backend import check_configured
from gateway.keys.store import KeyStore
from gateway.limits import Counters, open_peeker
from gateway.observe.metrics import Snapshot
from gateway.observe.process import watch_process
from gateway.observe.troubles import PolicyNews
from gateway.policy.running.file import find
from gateway.policy.running.follower import Taker, take
from gateway.policy.running.keeper import Keeper
from gateway.policy.running.versions import Presence, Versions
from gateway.probes import (
    Behind,
    of_backend,
    of_policy,
    of_store,
    of_workers,
    policy_behind,
)
from gateway.processes.reports import Report, Reporter, Reports, Workers
from gateway.serving import Gateway, Operations, Worker
from gateway.settings import Settings
from gateway.state import begin_state, make_folder, open_own_store, open_state, sole_use
from gateway.state.folder import check_clock, check_not_behind
from gateway.store import Store
from gateway.web.limiter import reserve_files
from gateway.web.server import check_runtime
from gateway.web.system import Probe, Readiness, watch_parts, watch_readiness


def utc_now() -> datetime:
    """The clock of a real gateway."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What the processes of one gateway have in common: sockets, and where they find what."""

    sockets: Sockets
    handed: Path
    reports: Path
    sums: Path
    counters: Counters | None


async def build(settings: Settings, *, now: Callable[[], datetime] = utc_now) -> Gateway:
    """A gateway in one process for these settings.

    StartRefused, StoreError or DocumentErrors where it can't be; nothing is left open then.
    """
    check_runtime()
    async with AsyncExitStack() as closers:
        gateway = await _gateway(Kit(settings, closers, now))
        gateway.closers = closers.pop_all()
    return gateway


async def build_operations(
    settings: Settings, shared: Shared, *, now: Callable[[], datetime] = utc_now
) -> Operations:
    """The process beside the workers of a gateway; as `build`."""
    async with AsyncExitStack() as closers:
        operations = await _operations(Kit(settings, closers, now, "operations"), shared)
        operations.closers = closers.pop_all()
    return operations


async def build_worker(
    settings: Settings,
    shared: Shared,
    number: int,
    *,
    is_first: bool = False,
    now: Callable[[], datetime] = utc_now,
) -> Worker:
    """One of the workers of a gateway; as `build`.

    The first one of a roll looks whether the practice system has what the mapping names, as a start
    does.
    """
    async with AsyncExitStack() as closers:
        kit = Kit(settings, closers, now, f"worker {number}")
        worker = await _worker(kit, shared, number, is_first=is_first)
        worker.closers = closers.pop_all()
    return worker


async def _gateway(kit: Kit) -> Gateway:
    """Everything in one process."""
    settings = kit.settings
    check_configured(settings)
    reserve_files(settings.connections)
    sockets = bind_all(settings)
    kit.closers.callback(sockets.close)
    kit.closers.enter_context(sole_use(make_folder(settings.state)))
    store = await _begun_state(kit)
    found = await asyncio.to_thread(find, settings.policy)
    practice = await open_practice(kit, store, found)
    own = kit.closing(open_own_store(settings))
    keeper, follower = await decider(kit, Versions(own), practice, found)
    owners = await open_owners(kit, store)
    port = sockets.public.getsockname()[1]
    wanted = Wanted(policy=keeper.policy, port=port, store=own, ledger=store, owners=owners)
    answering = await open_answering(kit, practice, wanted)
    await look_after(kit, store, practice.adapter, owners)
    keep_audit(kit, own)
    parts = {**_deciding(kit, practice, keeper), **answering.parts}
    readiness = kit.closing(Readiness(parts))
    watch_readiness(readiness, kit.metrics)
    look = standing(kit, own).look

    async def figures() -> bytes:
        await look()
        return kit.metrics.text()

    async def snapshot() -> Snapshot:
        return kit.metrics.snapshot()

    watched = Watched(
        store=own,
        readiness=readiness,
        keeper=keeper,
        snapshot=snapshot,
        audit=answering.audit,
        limiter=answering.limiter,
    )
    return Gateway(
        settings=settings,
        store=store,
        keys=KeyStore(store),
        ring=answering.ring,
        adapter=practice.adapter,
        probe=practice.probe,
        keeper=keeper,
        follower=follower,
        usage=answering.usage,
        events=kit.events,
        public=public_side(kit, answering.front, answering.server, sockets.public),
        system=system_side(kit, readiness, sockets.system, figures),
        panel=panel_of(kit, practice, watched, sockets),
        closers=kit.closers,
    )


async def _operations(kit: Kit, shared: Shared) -> Operations:
    """What stands beside the workers; it begins before them, and makes what they find."""
    settings = kit.settings
    store = await _begun_state(kit)
    found = await asyncio.to_thread(find, settings.policy)
    # once it has been handed on, what runs goes on: the file is then looked at as it always is
    is_first = take(shared.handed) is None
    practice = await open_practice(kit, store, found if is_first else None)
    keeper, follower = await decider(kit, Versions(store), practice, found, shared.handed)
    await look_after(kit, store, practice.adapter, await open_owners(kit, store))
    keep_audit(kit, store)
    workers, reports = await _heard_workers(kit, shared)
    behind = partial(policy_behind, lambda: keeper.status, reports, kit.now)
    kit.metrics.ask("gateway_policy_behind", lambda: len(behind()))
    own_parts = {"store": of_store(store), "workers": of_workers(workers, reports)}
    parts = {**_deciding(kit, practice, keeper, behind), **own_parts}
    readiness = kit.closing(Readiness(parts))
    watch_readiness(readiness, kit.metrics)
    watch_process(kit.metrics)
    look = standing(kit, store).look

    async def figures() -> bytes:
        await look()
        told = await reports.ask()
        text = workers.figures(told)
        # before they are told: none falls below what anybody has seen
        await workers.keep(told)
        return text

    async def snapshot() -> Snapshot:
        return workers.snapshot(await reports.ask())

    watched = Watched(
        store=store,
        readiness=readiness,
        keeper=keeper,
        snapshot=snapshot,
        audit=(await opened_journal(kit, store)).audit,
        limiter=kit.closing(open_peeker(settings.limiter.get_secret_value(), shared.counters)),
    )
    return Operations(
        settings=settings,
        follower=follower,
        probe=practice.probe,
        events=kit.events,
        system=system_side(kit, readiness, shared.sockets.system, figures),
        panel=panel_of(kit, practice, watched, shared.sockets),
        closers=kit.closers,
    )


async def _begun_state(kit: Kit) -> Store:
    """The store of this state, which may be a new one."""
    check_clock(kit.now)
    store = kit.closing(open_own_store(kit.settings))
    await begin_state(kit.settings, store)
    await check_not_behind(store, kit.now())
    return store


async def _heard_workers(kit: Kit, shared: Shared) -> tuple[Workers, Reports]:
    """The workers and what they tell; what they have counted is kept once more at the end."""
    workers = Workers(kit.metrics.snapshot, kit.settings.workers, shared.sums)
    reports = kit.closing(Reports(shared.reports, workers.ended))
    await reports.start()

    async def keep() -> None:
        await workers.keep(await reports.ask())

    kit.closers.push_async_callback(keep)
    return workers, reports


async def _worker(kit: Kit, shared: Shared, number: int, *, is_first: bool) -> Worker:
    """One that answers partners, by the policy that is handed to it."""
    settings = kit.settings
    store = kit.closing(open_own_store(settings))
    await open_state(settings, store)
    practice = await open_practice(kit, store, looks=is_first)
    own = kit.closing(open_own_store(settings))
    presence = Presence(Versions(own), kit.now, f"worker {number}")
    news = PolicyNews(kit.metrics, kit.events)
    taker = kit.closing(Taker(shared.handed, kit.report, presence, news))
    await taker.begin()
    if is_first:
        check_rows(practice, taker.policy())
    wanted = Wanted(
        policy=taker.policy,
        port=shared.sockets.public.getsockname()[1],
        store=own,
        ledger=store,
        owners=await open_owners(kit, store),
        counters=shared.counters,
    )
    answering = await open_answering(kit, practice, wanted)
    readiness = kit.closing(Readiness(answering.parts))
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
        taker=taker,
        events=kit.events,
        public=public_side(kit, answering.front, answering.server, shared.sockets.public),
        reporter=kit.closing(Reporter(shared.reports, report)),
        readiness=readiness,
        closers=kit.closers,
    )


def _deciding(
    kit: Kit, practice: Practice, keeper: Keeper, behind: Behind = tuple
) -> Mapping[str, Probe]:
    """What is asked once for a whole gateway, however many of its processes answer."""
    return {
        "backend": of_backend(practice.probe, lambda: kit.backend.state),
        "policy": of_policy(lambda: keeper.status, behind),
    }
