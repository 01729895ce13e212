"""What becomes of the policy while the gateway runs."""

from collections.abc import Sequence
from datetime import datetime

from gateway.observe.lines import printable
from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics

# Cases that a line names, and characters of what it says of each.
_MOST, _LONGEST = 20, 300
# By what a policy that is held back waits for.
_REMEDIES = {
    "cases": "clinic-gateway policy test names the cases that fail",
    "approval": "clinic-gateway policy approve {waiting} --reason TEXT",
}


class PolicyNews:
    """Says on stderr, and in the figures, what becomes of the policy and of its file."""

    def __init__(self, metrics: Metrics, events: Events) -> None:
        self._metrics = metrics
        self._events = events

    def loaded(self, old: str, new: str, at: datetime) -> None:
        self._metrics.policy(new[:12], new[:12])
        self._metrics.policy_loaded(at)
        self._metrics.policy_stale(is_stale=False)
        if old != new:
            self._metrics.policy_reload("loaded")
            self._events.info("policy loaded", old=old[:12], new=new[:12])

    def refused(self, problems: Sequence[str], running: str, file: str) -> None:
        self._metrics.policy(running[:12], file[:12])
        self._metrics.policy_reload("refused")
        self._metrics.policy_stale(is_stale=True)
        self._metrics.policy_cases(0)
        self._events.warn(
            "policy refused; the last good one goes on",
            problem=problems[0][:500],
            problems=len(problems),
            running=running[:12],
            file=file[:12] or None,
        )

    def held(self, waiting: str, running: str, waits_for: str) -> None:
        self._metrics.policy(running[:12], waiting[:12])
        self._metrics.policy_reload("held back")
        self._metrics.policy_stale(is_stale=True)
        self._events.warn(
            "policy held back: it shows more than the one that runs",
            waiting=waiting[:12],
            running=running[:12],
            waits_for=waits_for,
            remedy=_REMEDIES[waits_for].format(waiting=waiting),
        )

    def cases(self, failing: Sequence[str], running: str) -> None:
        self._metrics.policy_cases(len(failing))
        if not failing:
            self._events.info("the policy's cases pass again", running=running[:12])
            return
        self._events.warn(
            "the policy's cases fail: what its file shows more waits until they pass",
            failing=len(failing),
            cases=[printable(each[:_LONGEST]) for each in failing[:_MOST]],
            running=running[:12],
            remedy="change the cases where the change of the policy is meant, or the policy",
        )

    def unchanged(self, running: str) -> None:
        self._metrics.policy(running[:12], running[:12])
        self._metrics.policy_stale(is_stale=False)
        self._events.info("policy unchanged: the file is the one that runs", running=running[:12])

    def failed(self, error: Exception, said: str) -> None:
        event = "the policy cannot be followed; the last good one goes on"
        self._events.fault(event, error, said=said)

    def untold(self, error: Exception, said: str) -> None:
        event = "the policy's file is followed, but the store can be neither told of it nor asked"
        remedy = "free its disk, or get it to run: approvals wait until then"
        self._events.fault(event, error, said=said, remedy=remedy)

    def untaken(self, error: Exception) -> None:
        event = "the policy that was handed on cannot be taken; the last one goes on"
        self._events.fault(event, error, said=str(error)[:_LONGEST])

    def unsaid(self, error: Exception) -> None:
        event = "the store cannot be told which policy runs here"
        remedy = "free its disk, or get it to run: calls are served by the right policy meanwhile"
        self._events.fault(event, error, said=str(error)[:_LONGEST], remedy=remedy)
