"""The workers as the operations process knows them: are they there, can they do their work."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.observe.merged import Snapshot, exposition, merged, retired
from gateway.processes.reports import Report

# A worker's report, and whether it has just made it.
Told = tuple[Report, bool]


class NoWorker(Exception):
    """No worker can do its work; the text says why of each."""


class Workers:
    """Judges and adds up what the workers report; `own` are the operations process's figures."""

    def __init__(self, own: Callable[[], Snapshot], wanted: int) -> None:
        self._own = own
        self._wanted = wanted
        self._ended: Snapshot = {}

    def ended(self, report: Report) -> None:
        """A worker is gone: what it counted still counts."""
        self._ended = retired(self._ended, report.figures)

    def figures(self, reports: Sequence[Told]) -> bytes:
        """Those of all processes together, in Prometheus' text form."""
        living = (report.figures for report, _ in reports)
        return exposition(merged((self._ended, self._own(), *living)))

    def told(self, reports: Sequence[Told]) -> Mapping[str, Any]:
        """The workers for readiness; NoWorker where none of them answers and is ready.

        As long as one is, partners are answered: what does not answer takes no calls.
        """
        each = [_told(*told) for told in sorted(reports, key=lambda told: told[0].worker)]
        if not any(told["ready"] for told in each):
            reasons = [f"worker {told['worker']}: {told['reason']}" for told in each]
            raise NoWorker("; ".join(reasons) or "no worker answers")
        return {"wanted": self._wanted, "running": len(each), "each": each}


def _told(report: Report, now: bool) -> dict[str, Any]:
    reason = _reason(report, now)
    why = {} if reason is None else {"reason": reason}
    return {
        "worker": report.worker,
        "pid": report.pid,
        "ready": reason is None,
        **why,
        "parts": report.parts,
    }


def _reason(report: Report, now: bool) -> str | None:
    if not now:
        return "it does not answer"
    if report.stopping:
        return "it is shutting down"
    ill = (
        f"{name}: {part.get('reason', 'not ready')}"
        for name, part in report.parts.items()
        if not part["ready"]
    )
    return next(ill, None)
