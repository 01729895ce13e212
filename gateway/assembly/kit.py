"""Holds what the parts of a process are opened with, and opens those of every process."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from adapters.base import Adapter, AdapterError, Trouble
from adapters.documents.problems import DocumentErrors, Problem
from gateway import backend
from gateway.administrators.log import DeedLog
from gateway.audit.journal import Journal, open_audit
from gateway.audit.upkeep import Upkeep
from gateway.booking.ledger import Ledger
from gateway.booking.reconcile import LedgerStatus, Reconciler, Watch
from gateway.booking.takeover import RUN, Owners
from gateway.booking.times import FreeTimes
from gateway.contract.operations import OPERATIONS, left_out
from gateway.contract.window import BookingWindow
from gateway.identity import reason_of
from gateway.observe.event_log import EventLog
from gateway.observe.lines import ACCESS, AccessLog
from gateway.observe.metrics import Metrics
from gateway.observe.traces import Traces
from gateway.policy.policy import Policy
from gateway.policy.running.follower import Follower, take
from gateway.policy.running.keeper import CURRENT, Examined, Examiner, Keeper, Snapshot
from gateway.policy.running.versions import RAN, Presence, Versions
from gateway.settings import Settings, StartRefused
from gateway.store import Store, StoreError
from gateway.web.documents import NAMES

# Seconds for which a booking may go on after its time.
LANDS_WITHIN = 5.0


class _Closable(Protocol):
    async def aclose(self) -> None: ...


Part = TypeVar("Part", bound=_Closable)


class Kit:
    """The settings, metrics, events and closers of one process, which `process` names."""

    def __init__(
        self,
        settings: Settings,
        closers: AsyncExitStack,
        now: Callable[[], datetime],
        process: str = "gateway",
    ) -> None:
        self.settings = settings
        self.closers = closers
        self.now = now
        operations = [*(operation.id for operation in OPERATIONS), *NAMES.values()]
        self.metrics = Metrics(operations, process)
        self.events = EventLog(metrics=self.metrics)
        self.backend = backend.BackendTroubles(self.metrics, self.events)

    def report(self, trouble: Trouble) -> None:
        """Reports a value or row that could not be used; may be called from any thread."""
        self.events.report("value_unusable", **asdict(trouble))

    def closing(self, part: Part) -> Part:
        """Has the part closed at the end, the last opened first; returns it."""
        self.closers.push_async_callback(part.aclose)
        return part


async def open_owners(kit: Kit, store: Store) -> Owners:
    """Enters this process among those that book."""
    owners = kit.closing(Owners(store, kit.settings.state))
    await owners.start()
    return owners


def open_ledger(kit: Kit, store: Store, owners: Owners) -> Ledger:
    lands, seen = _booking_traits(kit)
    wait = kit.settings.booking_wait
    ledger = Ledger(store, owners, kit.events, kit.now, wait=wait, lands=lands, seen=seen)
    kit.closing(ledger).start()
    kit.metrics.ask("gateway_ledger_unwritten", lambda: ledger.waiting)
    return ledger


async def look_after_bookings(kit: Kit, store: Store, adapter: Adapter, owners: Owners) -> None:
    """Takes over bookings that earlier processes left, and watches for overwritten ones."""
    lands, seen = _booking_traits(kit)
    reconciler = Reconciler(store, adapter, owners, kit.events, lands=lands, file=seen)
    await kit.closing(reconciler).begin()
    reconciler.start()
    watch = Watch(store, adapter, kit.events, kit.now)
    kit.metrics.ask("gateway_bookings_overwritten", lambda: watch.overwritten)
    kit.closing(watch).start()


def _booking_traits(kit: Kit) -> tuple[float, Path]:
    """Returns the seconds after which an attempt has ended, and the file of unknown outcomes."""
    lands = kit.settings.backend.booking_timeout + LANDS_WITHIN
    return lands, kit.settings.state / RUN / "unknown.json"


def ledger_standing(kit: Kit, store: Store) -> LedgerStatus:
    """Returns the state of the ledger, and adds it to the figures."""
    standing = LedgerStatus(store, kit.now)
    kit.metrics.ask_all("gateway_ledger_bookings", standing.states)
    kit.metrics.ask("gateway_ledger_oldest_unknown_seconds", standing.oldest_unknown)
    return standing


async def open_logs(kit: Kit, store: Store) -> Journal:
    """Opens the access log and the audit, with a chain of this process's own."""
    state = kit.settings.state
    try:
        access = AccessLog(state / ACCESS, kit.events)
    except OSError as error:
        raise StartRefused(
            f"the logs in the state folder {state} cannot be written: {reason_of(error)}"
        ) from error
    kit.closers.callback(access.close)
    opened = open_audit(kit.settings, store, kit.events, kit.now)
    audit, recorder = await kit.closers.enter_async_context(opened)
    journal = kit.closing(Journal(access, audit, recorder, kit.now))
    kit.metrics.ask_all(
        "gateway_log_lines_waiting",
        lambda: {("access",): len(access), ("audit",): audit.waiting},
    )
    kit.metrics.ask_all(
        "gateway_log_writable",
        lambda: {("access",): not access.writes.failing, ("audit",): not audit.broken},
    )
    return journal


def keep_audit(kit: Kit, store: Store) -> None:
    """Keeps the audit's index, and drops what is old, for all processes of a machine."""
    too = DeedLog(store).forget
    kit.closing(Upkeep(kit.settings, store, kit.events, kit.now, forget_too=too)).start()


def open_spans(kit: Kit) -> Traces:
    """Opens the traces, which go to a collector where one is set."""
    tracing = kit.settings.tracing
    if tracing.endpoint is None:
        return kit.closing(Traces())
    try:
        from gateway.observe.otlp import Otlp  # noqa: PLC0415 - its libraries are optional
    except ImportError as error:
        raise StartRefused(
            f"tracing.endpoint needs {error.name}, which is not installed:"
            " pip install '.[otel]' in the clone's folder, or leave the setting out"
        ) from error
    return kit.closing(Otlp(tracing.endpoint, tracing.share, kit.events))


@dataclass(frozen=True, slots=True)
class PracticeSystem:
    """The practice system, with the `examiner` of policies, and the policy that it `examined`."""

    adapter: Adapter
    window: BookingWindow
    probe: backend.BackendProbe
    secret: bytes
    examiner: Examiner
    examined: Examined | None


async def open_practice(
    kit: Kit, store: Store, file: Snapshot | None = None, *, looks: bool = False
) -> PracticeSystem:
    """Opens the practice system, and examines the policy `file` if there is one.

    Raises DocumentErrors with the problems of both. The practice system is probed where there is a
    policy file, or where it `looks`, since the mapping may be new.
    """
    examiner = Examiner(path=kit.settings.policy, report=kit.report)
    problems: list[Problem] = []
    policy: Policy | None = None
    try:
        policy = None if file is None else examiner.policy(file)
    except DocumentErrors as error:
        problems += error.problems
    try:
        adapter, secret = await backend.open_backend(kit.settings, store, kit.report, kit.backend)
    except DocumentErrors as error:
        raise DocumentErrors([*problems, *error.problems]) from error
    window = backend.booking_window(kit.settings)
    adapter = FreeTimes(adapter, store, window)
    warn = partial(kit.events.report, "mapping_doubtful")
    probe = kit.closing(backend.BackendProbe(kit.closing(adapter), warn=warn))
    if looks or file is not None:
        with suppress(AdapterError):  # a system that is down may come back
            try:
                await probe(None)
            except DocumentErrors as error:
                problems += error.problems
    examiner = replace(examiner, narrows=partial(backend.unserved_rows, adapter))
    examined: Examined | None = None
    if policy is not None:
        problems += examiner.narrows(policy)
        examined = Examined(policy, await asyncio.to_thread(examiner.failing, policy))
    if problems:
        raise DocumentErrors([*problems, *(examined.failing if examined else ())])
    backend.check_serves(adapter, kit.settings)
    parts = left_out(adapter.resources, books=adapter.books)
    if file is not None and parts:
        kit.events.report("left_out", parts=", ".join(parts))
    return PracticeSystem(adapter, window, probe, secret, examiner, examined)


def check_rows(practice: PracticeSystem, policy: Policy) -> None:
    """Raises DocumentErrors where the practice system cannot apply the policy's row conditions."""
    if problems := practice.examiner.narrows(policy):
        raise DocumentErrors(problems)


async def open_keeper(
    kit: Kit,
    versions: Versions,
    practice: PracticeSystem,
    file: Snapshot,
    handed: Path | None = None,
) -> tuple[Keeper, Follower]:
    """Opens what keeps the running policy and follows its file, in one process of a machine.

    `handed` is the file with the running policy for the other processes. A policy that is already
    there goes on where the practice system was opened without a policy file.
    """
    kit.metrics.ask("gateway_policy_behind", lambda: 0)

    async def approved(digest: str) -> bool:
        if any(version.event == RAN and version.hash != digest for version in keeper.unwritten):
            raise StoreError("the store does not know yet of another policy that ran")
        return await versions.approved(digest)

    approve = kit.settings.policy_widening == "approve"
    keeper = Keeper(practice.examiner, kit.events, kit.now, approve=approve, approved=approved)
    before = None if handed is None else take(handed)
    if practice.examined is not None:
        await keeper.begin(file, practice.examined, await versions.last())
    elif before is not None:
        await keeper.go_on(before.version, before.loaded_at)
    _show_policy(kit.metrics, keeper)
    role = "" if handed is None else "operations"
    presence = Presence(versions, kit.now, role, sweeps=handed is not None)
    follower = Follower(keeper, versions, presence, kit.events, handed)
    return keeper, kit.closing(follower)


def _show_policy(metrics: Metrics, keeper: Keeper) -> None:
    def loaded() -> float:
        return keeper.status.loaded_at.timestamp()

    metrics.ask_all(
        "gateway_policy_info",
        lambda: {(keeper.policy().short_hash, keeper.status.file_hash[:12]): 1.0},
    )
    metrics.ask("gateway_policy_stale", lambda: keeper.status.state != CURRENT)
    metrics.ask("gateway_policy_cases_failing", lambda: len(keeper.status.failing))
    metrics.ask("gateway_policy_loaded_timestamp_seconds", loaded)
