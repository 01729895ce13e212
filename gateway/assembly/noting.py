"""Where calls are noted: the access log, the audit, traces; and how late the event loop is."""

from gateway.administrators.log import DeedLog
from gateway.assembly.kit import Kit
from gateway.audit.journal import Journal, open_journal
from gateway.audit.troubles import AuditTroubles
from gateway.audit.upkeep import Upkeep
from gateway.observe.lines import Lines
from gateway.observe.logs import ACCESS
from gateway.observe.process import Lag
from gateway.observe.traces import Traces, open_traces
from gateway.observe.troubles import LogTroubles, TraceTroubles
from gateway.settings import StartRefused
from gateway.store import Store


async def opened_journal(kit: Kit, store: Store) -> Journal:
    """The access log and the audit, with a chain of this process's own."""
    state = kit.settings.state
    try:
        access = Lines(state / ACCESS, LogTroubles(kit.metrics, kit.events))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartRefused(
            f"the logs in the state folder {state} cannot be written: {reason}"
        ) from error
    troubles = AuditTroubles(kit.metrics, kit.events)
    journal = await open_journal(kit.settings, store, access, troubles, kit.now)
    files = kit.closing(journal).files
    kit.metrics.ask_all(
        "gateway_log_lines_waiting",
        lambda: {(name,): each.waiting for name, each in files.items()},
    )
    kit.metrics.ask_all(
        "gateway_log_writable",
        lambda: {(name,): not each.broken for name, each in files.items()},
    )
    return journal


def keep_audit(kit: Kit, store: Store) -> None:
    """The audit's index is kept, and what is old is dropped: for all processes of a machine."""
    troubles = AuditTroubles(kit.metrics, kit.events)
    too = DeedLog(store).forget
    kit.closing(Upkeep(kit.settings, store, troubles, kit.now, forget_too=too)).start()


def opened_traces(kit: Kit) -> Traces:
    """Spans for a collector, where one is named."""
    told, tracing = TraceTroubles(kit.metrics, kit.events), kit.settings.tracing
    try:
        traces = open_traces(tracing.endpoint, tracing.share, told.lost, told.failed)
    except ImportError as error:
        raise StartRefused(
            f"tracing.endpoint needs {error.name}, which is not installed:"
            " pip install 'clinic-gateway[otel]', or leave the setting out"
        ) from error
    return kit.closing(traces)


def watched_lag(kit: Kit) -> Lag:
    """How late the event loop is."""
    lag = Lag(kit.metrics)
    kit.closing(lag).start()
    return lag
