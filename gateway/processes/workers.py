"""The workers as the operations process knows them: are they there, can they do their work."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.observe.merged import Snapshot, exposition, lasting, merged
from gateway.processes.reports import Report
from gateway.processes.sums import Sums, keep_sums, kept_sums
from gateway.purposes import NotReady, Purpose

# A worker's report, and whether it has just made it.
Told = tuple[Report, bool]
# Of so many that are not there any more the last word is known by itself: one may come again.
MOST_GONE = 200
# Seconds that the disk has to take the sums.
PATIENCE = 0.5


class Workers:
    """Judges and adds up what the workers report; `own` are the operations process's figures.

    `file` has what was counted before this process began.
    """

    def __init__(self, own: Callable[[], Snapshot], wanted: int, file: Path) -> None:
        self._own = own
        self._wanted = wanted
        self._file = file
        before = kept_sums(file)
        self._ended: Snapshot = before.ended
        self._gone: dict[int, Snapshot] = before.each
        self._keeping: asyncio.Task[None] | None = None

    def ended(self, report: Report) -> None:
        """A worker is gone, or comes again: what it counted counts, once."""
        self._gone.pop(report.pid, None)
        self._gone[report.pid] = lasting(report.figures)
        while len(self._gone) > MOST_GONE:
            oldest = next(iter(self._gone))
            self._ended = merged((self._ended, self._gone.pop(oldest)))

    def figures(self, reports: Sequence[Told]) -> bytes:
        """Those of all processes together, in Prometheus' text form."""
        return exposition(self.snapshot(reports))

    def snapshot(self, reports: Sequence[Told]) -> Snapshot:
        """The same, as plain data."""
        living = {report.pid: report.figures for report, _ in reports}
        each = self._gone | living
        return merged((self._ended, self._own(), *each.values()))

    async def keep(self, reports: Sequence[Told]) -> None:
        """Have the process that comes next count on; a disk that hangs holds up nobody for long."""
        if self._keeping is None or self._keeping.done():
            living = {report.pid: lasting(report.figures) for report, _ in reports}
            ended = merged((self._ended, lasting(self._own())))
            sums = Sums(ended=ended, each=self._gone | living)
            self._keeping = asyncio.create_task(asyncio.to_thread(keep_sums, self._file, sums))
        await asyncio.wait([self._keeping], timeout=PATIENCE)

    def told(self, reports: Sequence[Told]) -> Mapping[str, Any]:
        """The workers for readiness; NotReady, with why of each, where none of them is ready.

        As long as one is, partners are answered: what does not answer takes no calls. So a purpose
        is stopped where all workers stop it.
        """
        each = [_told(*told) for told in sorted(reports, key=lambda told: told[0].worker)]
        if not any(told["ready"] for told in each):
            reasons = _together((told["worker"], told["reason"]) for told in each)
            stopped = [p for p in Purpose if all(p in told["stops"] for told in each)]
            raise NotReady("; ".join(reasons) or "no worker answers", stopped)
        return {"wanted": self._wanted, "running": len(each), "each": each}


def _together(reasons: Iterable[tuple[int, str]]) -> list[str]:
    """Each reason once, with the numbers of its workers."""
    whose: dict[str, list[int]] = {}
    for worker, reason in reasons:
        whose.setdefault(reason, []).append(worker)
    return [
        f"worker{'s' if len(workers) > 1 else ''} {', '.join(map(str, workers))}: {reason}"
        for reason, workers in whose.items()
    ]


def _told(report: Report, now: bool) -> dict[str, Any]:
    reason = _reason(report, now)
    why = {} if reason is None else {"stops": _stopped(report, now), "reason": reason}
    return {
        "worker": report.worker,
        "pid": report.pid,
        "ready": reason is None,
        **why,
        "parts": report.parts,
    }


def _stopped(report: Report, now: bool) -> list[Purpose]:
    """The purposes for which the worker takes no calls."""
    if not now or report.stopping:
        return list(Purpose)
    stops = {purpose for part in report.parts.values() for purpose in part.get("stops", ())}
    return [purpose for purpose in Purpose if purpose in stops]


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
