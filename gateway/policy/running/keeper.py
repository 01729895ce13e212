"""Keeps the policy that runs: one reference, moved on by files that are sound, held by all others.

What is wrong with a file never touches what runs. What a sound one shows less holds at once; what
it shows more waits until its cases pass and, where that is asked for, somebody approves it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from adapters.documents.problems import DocumentErrors, Problem
from gateway.contract.fields import write_instant
from gateway.policy.cases.run import summary
from gateway.policy.policy import Policy
from gateway.policy.rules import no_wider
from gateway.policy.running.file import PATIENCE, STEADY, Examined, Examiner, PolicyFile, Snapshot
from gateway.policy.running.text import write_rules
from gateway.policy.running.versions import HELD, RAN, REFUSED, Event, Version
from gateway.store.base import StoreError

CURRENT, STALE, HELD_BACK = "current", "stale", "held back"
# What a policy that is held back waits for: that its cases pass, then that somebody approves it.
CASES, APPROVAL = "cases", "approval"
# Failing cases that a status names, and characters of what it says of each.
MOST, LONGEST_CASE = 20, 300
# Characters of an event's reason.
LONGEST = 500
# Events that wait for a store that is down; of more the oldest are in the log alone.
MOST_UNWRITTEN = 500


class Watcher(Protocol):
    """Who is told what becomes of the policy."""

    def loaded(self, old: str, new: str, at: datetime) -> None:
        """The policy with the hash `new` runs from now on, after the one with the hash `old`."""

    def refused(self, problems: Sequence[str], running: str, file: str) -> None:
        """The file, with the hash `file`, cannot be taken; what runs goes on."""

    def held(self, waiting: str, running: str, waits_for: str) -> None:
        """What the file shows more waits, for its CASES or for an APPROVAL."""

    def cases(self, failing: Sequence[str], running: str) -> None:
        """The cases of the file that fail, or what is wrong with theirs; none: they pass again."""

    def unchanged(self, running: str) -> None:
        """The file is what runs: once more, or as somebody asked for it to be looked at."""

    def failed(self, error: Exception, said: str) -> None:
        """A fault of ours; `said` may stand in a log."""

    def untold(self, error: Exception, said: str) -> None:
        """The file is followed, but the store can be neither told nor asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyStatus:
    """Which policy runs and since when, and what is wrong with the file.

    `version` is the text of what runs; `waiting` the file's policy where it shows more than may
    run; `problems` what is wrong with the file; `failing` the cases beside the file that fail, or
    what is wrong with theirs.
    """

    policy: Policy
    version: Version
    loaded_at: datetime
    file_hash: str
    waiting: Policy | None = None
    problems: tuple[Problem, ...] = ()
    refused_at: datetime | None = None
    failing: tuple[Problem, ...] = ()

    @property
    def made_of(self) -> tuple[str, str] | None:
        """The hashes of two policies, where only what both show runs."""
        return self.version.made_of

    @property
    def state(self) -> str:
        """`current`, `stale` where the file is refused, or `held back`."""
        return STALE if self.problems else HELD_BACK if self.waiting else CURRENT

    @property
    def waits_for(self) -> str | None:
        """What the waiting policy needs next: CASES that pass, or an APPROVAL."""
        if self.waiting is None:
            return None
        return CASES if self.failing else APPROVAL

    def members(self) -> dict[str, Any]:
        """Returns the status as readiness and `policy status` show it."""
        made_of = {"madeOf": [digest[:12] for digest in self.made_of]} if self.made_of else {}
        return {
            "state": self.state,
            "hash": self.policy.short_hash,
            "file": self.policy.file,
            "fileHash": self.file_hash[:12] or None,
            "loadedAt": write_instant(self.loaded_at),
            "waiting": self.waiting.hash if self.waiting else None,
            "waitsFor": self.waits_for,
            "cases": self._cases(),
            "lastError": self._error(),
        } | made_of

    def _error(self) -> dict[str, Any] | None:
        if not self.problems or self.refused_at is None:
            return None
        first, more = self.problems[0], len(self.problems) - 1
        text = f"{first.text} (and {more} more)" if more else first.text
        at, line = write_instant(self.refused_at), first.line or None
        return {"at": at, "text": text, "file": first.file, "line": line}

    def _cases(self) -> dict[str, Any] | None:
        if not self.failing:
            return None
        problems = [
            {
                "file": problem.file,
                "line": problem.line or None,
                "text": problem.text[:LONGEST_CASE],
            }
            for problem in self.failing[:MOST]
        ]
        more = len(self.failing) - len(problems)
        return {"text": summary(self.failing), "problems": problems, "more": more}


class Keeper:
    """Looks at the file when it is asked to, and decides what runs."""

    def __init__(
        self,
        examiner: Examiner,
        watcher: Watcher,
        now: Callable[[], datetime],
        *,
        approve: bool,
        approved: Callable[[str], Awaitable[bool]],
        steady: float = STEADY,
        patience: float = PATIENCE,
    ) -> None:
        self.unwritten: list[Event] = []
        self._examiner = examiner
        self._watcher = watcher
        self._now = now
        self._approve = approve
        self._approved = approved
        self._file = PolicyFile(examiner, watcher.failed, steady=steady, patience=patience)
        self._unasked = False
        self._status: PolicyStatus | None = None

    @property
    def status(self) -> PolicyStatus:
        """What runs now, and the state of the file."""
        if self._status is None:
            raise RuntimeError("the policy has not begun to run")
        return self._status

    def policy(self) -> Policy:
        """Returns the policy that runs; a request asks once."""
        return self.status.policy

    def written(self, events: Sequence[Event]) -> None:
        """Forgets events that the store has now."""
        self.unwritten[:] = [event for event in self.unwritten if event not in events]

    async def begin(self, found: Snapshot, examined: Examined, last: Version | None) -> None:
        """Runs the file's policy, or the part of it that may run after the `last` one.

        Raises DocumentErrors where its cases fail and nothing ran before, StartRefused where the
        last policy is needed and cannot be read.
        """
        self._file.seen = found
        policy, failing = examined.policy, examined.failing
        if last is None and failing:
            raise DocumentErrors(failing)
        if last is not None and last.hash != policy.hash and (self._approve or failing):
            await self.go_on(last, self._now())
            await self._take(examined, found)
            return
        version, old = _version(policy, found.content), last.hash if last else policy.hash
        if last is None or old != policy.hash:
            self._note(RAN, version.hash, version, _reason(failing))
        self._run(policy, version, old, self._now(), failing)
        if failing:
            self._tell_cases(failing)

    async def go_on(self, last: Version, since: datetime) -> None:
        """Runs what ran before, whatever the file says; raises StartRefused if it is unreadable."""
        before = await asyncio.to_thread(self._examiner.stored, last)
        self._run(before, last, last.hash, since)

    async def look(self, *, asked: bool = False) -> None:
        """Takes the file where it has changed.

        Where somebody `asked`, it tries a refused file and failed cases again, and looks whether a
        waiting policy is approved. Raises StoreError where that is unknown: then ask again.
        """
        wrong = bool(self.status.problems or self.status.failing)
        outcome = await self._file.changed(self.policy(), again=asked and wrong)
        if isinstance(outcome, Examined):
            await self._take(outcome, self._file.seen)
        elif outcome is not None:
            self._refuse(outcome, self._file.seen)
        elif self.status.waits_for == APPROVAL and (asked or self._unasked):
            await self._try_waiting()
        elif asked and self.status.state == CURRENT:
            self._watcher.unchanged(self.policy().hash)

    async def _take(self, examined: Examined, found: Snapshot) -> None:
        """Runs a sound policy, or as much of it as may run."""
        policy, failing = examined.policy, examined.failing
        running, before = self.policy(), self.status.failing
        if policy.hash == running.hash:
            self._stay(examined, found)
        elif await self._may_run(examined):
            self._change(policy, _version(policy, found.content), failing)
        else:
            less = await asyncio.to_thread(self._examiner.common, running, policy)
            if less is not None:
                text, made_of = write_rules(less.rules).encode(), (running.hash, policy.hash)
                self._change(less, _version(less, text, made_of))
            self._hold(examined, found)
        if failing != before:
            self._tell_cases(failing)

    def _stay(self, examined: Examined, found: Snapshot) -> None:
        """Keeps the policy, which is the file's."""
        self._status = PolicyStatus(
            policy=self.policy(),
            version=replace(self.status.version, made_of=None),
            loaded_at=self.status.loaded_at,
            file_hash=found.hash,
            failing=examined.failing,
        )
        self._watcher.unchanged(self.policy().hash)

    async def _may_run(self, examined: Examined) -> bool:
        """Returns whether the whole policy may run now."""
        policy, waits = examined.policy, bool(examined.failing)
        if not self._approve and not waits:
            return True
        if await asyncio.to_thread(no_wider, policy.rules, self.policy().rules):
            return True
        if waits:
            return False
        try:
            approved = await self._approved(policy.hash)
        except StoreError:
            self._unasked = True  # what is shown less need not wait for the store
            return False
        self._unasked = False
        return approved

    async def _try_waiting(self) -> None:
        waiting = self.status.waiting
        approved = waiting is not None and await self._approved(waiting.hash)
        self._unasked = False
        if approved and waiting is not None:
            self._change(waiting, _version(waiting, self._file.seen.content))

    def _change(self, policy: Policy, version: Version, failing: tuple[Problem, ...] = ()) -> None:
        """Runs another policy and notes it for the store."""
        old = self.policy().hash
        self._note(RAN, version.hash, version, _reason(failing))
        self._run(policy, version, old, self._now(), failing)

    def _run(
        self,
        policy: Policy,
        version: Version,
        old: str,
        since: datetime,
        failing: tuple[Problem, ...] = (),
    ) -> None:
        self._status = PolicyStatus(
            policy=policy,
            version=version,
            loaded_at=since,
            file_hash=version.made_of[1] if version.made_of else version.hash,
            failing=failing,
        )
        self._watcher.loaded(old, policy.hash, since)

    def _hold(self, examined: Examined, found: Snapshot) -> None:
        before, waiting, failing = self.status, examined.policy, examined.failing
        waits_for = CASES if failing else APPROVAL
        self._status = replace(
            before, file_hash=found.hash, waiting=waiting, problems=(), failing=failing
        )
        known = before.waiting.hash if before.waiting else None
        if known == waiting.hash and before.waits_for == waits_for:
            return
        version = _version(waiting, found.content)
        self._note(HELD, waiting.hash, version, _reason(failing))
        self._watcher.held(waiting.hash, self.policy().hash, waits_for)

    def _refuse(self, error: DocumentErrors, found: Snapshot) -> None:
        problems = error.problems
        if problems == self.status.problems and found.hash == self.status.file_hash:
            return
        self._status = replace(
            self.status,
            file_hash=found.hash,
            waiting=None,
            problems=problems,
            refused_at=self._now(),
            failing=(),
        )
        self._note(REFUSED, found.hash, reason=str(problems[0])[:LONGEST])
        self._watcher.refused(
            [str(problem) for problem in problems], self.policy().hash, found.hash
        )

    def _tell_cases(self, failing: tuple[Problem, ...]) -> None:
        self._watcher.cases([str(problem) for problem in failing], self.policy().hash)

    def _note(
        self, event: str, digest: str, version: Version | None = None, reason: str | None = None
    ) -> None:
        self.unwritten.append(
            Event(at=self._now(), event=event, hash=digest, version=version, reason=reason)
        )
        del self.unwritten[:-MOST_UNWRITTEN]


def _reason(failing: tuple[Problem, ...]) -> str | None:
    """Returns what an event says of cases that fail."""
    return f"{summary(failing)}: {failing[0]}"[:LONGEST] if failing else None


def _version(policy: Policy, content: bytes, made_of: tuple[str, str] | None = None) -> Version:
    """Returns a policy with its text, as the store keeps it."""
    return Version(hash=policy.hash, content=content, file=policy.file, made_of=made_of)
