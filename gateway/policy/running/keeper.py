"""Keeps the policy that runs: one reference, moved on by files that are sound, held by all others.

What is wrong with a file never touches what runs. What a sound one shows less holds at once; what
it shows more waits until its cases pass and, where that is asked for, somebody approves it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

from adapters.documents.problems import DocumentErrors, Problem
from gateway.policy.cases.run import summary
from gateway.policy.policy import Policy
from gateway.policy.rules import no_wider
from gateway.policy.running.examiner import Examined, Examiner
from gateway.policy.running.file import PATIENCE, STEADY, PolicyFile
from gateway.policy.running.found import Found
from gateway.policy.running.standing import APPROVAL, CASES, CURRENT, Standing
from gateway.policy.running.versions import HELD, RAN, REFUSED, Event, Version
from gateway.policy.running.watcher import Watcher
from gateway.policy.running.writer import write_rules
from gateway.store.base import StoreError

# Characters of an event's reason.
LONGEST = 500
# Events that wait for a store that is down; of more the oldest are in the log alone.
MOST_UNWRITTEN = 500


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
        self._standing: Standing | None = None
        self._policy: Policy | None = None
        self._version: Version | None = None

    @property
    def running(self) -> Version:
        """The text of what runs."""
        if self._version is None:
            raise RuntimeError("the policy has not begun to run")
        return self._version

    @property
    def standing(self) -> Standing:
        """How things are now."""
        if self._standing is None:
            raise RuntimeError("the policy has not begun to run")
        return self._standing

    def written(self, events: Sequence[Event]) -> None:
        """The store has these now; others may have come meanwhile."""
        self.unwritten[:] = [each for each in self.unwritten if each not in events]

    def policy(self) -> Policy:
        """What runs; a request asks once."""
        if self._policy is None:
            raise RuntimeError("the policy has not begun to run")
        return self._policy

    async def begin(self, found: Found, examined: Examined, last: Version | None) -> None:
        """Run the file's policy, or what may run of it after the one that ran last.

        DocumentErrors where its cases fail and nothing ran before; StartRefused where what ran
        last is needed and cannot be read.
        """
        self._file.seen = found
        policy, failing = examined.policy, examined.failing
        if last is None and failing:
            raise DocumentErrors(failing)
        if last is not None and last.hash != policy.hash and (self._approve or failing):
            await self.go_on(last, self._now())
            await self._take(examined, found)
            return
        now = self._now()
        self._put(Standing(policy=policy, loaded_at=now, file_hash=found.hash, failing=failing))
        self._version = _version(policy, found.content)
        if last is None or last.hash != policy.hash:
            self._ran(self._version)
        self._watcher.loaded(last.hash if last else policy.hash, policy.hash, now)
        if failing:
            self._tell_cases(failing)

    async def go_on(self, last: Version, since: datetime) -> None:
        """Run what ran before, whatever the file says: that is looked at the next time.

        StartRefused where it cannot be read.
        """
        before = await asyncio.to_thread(self._examiner.stored, last)
        file_hash = last.made_of[1] if last.made_of else last.hash
        self._put(
            Standing(policy=before, loaded_at=since, file_hash=file_hash, made_of=last.made_of)
        )
        self._version = last
        self._watcher.loaded(last.hash, last.hash, since)

    async def look(self, *, asked: bool = False) -> None:
        """Take the file as it is now, unless it is as it was.

        Where somebody asked for it, a file that was refused and cases that failed are tried again,
        and a policy that waits may have been approved. StoreError where that cannot be found out:
        then ask again.
        """
        wrong = bool(self.standing.problems or self.standing.failing)
        outcome = await self._file.changed(self.policy(), again=asked and wrong)
        if isinstance(outcome, Examined):
            await self._take(outcome, self._file.seen)
        elif outcome is not None:
            self._refuse(outcome, self._file.seen)
        elif self.standing.waits_for == APPROVAL and (asked or self._unasked):
            await self._try_waiting()
        elif asked and self.standing.state == CURRENT:
            self._watcher.unchanged(self.policy().hash)

    async def _take(self, examined: Examined, found: Found) -> None:
        """Run a sound policy, or as much of it as may run."""
        policy, failing, before = examined.policy, examined.failing, self.standing.failing
        if policy.hash == self.standing.policy.hash:
            self._stay(examined, found)
        elif await self._may_run(examined):
            self._run(policy, _version(policy, found.content), failing)
        else:
            running = self.policy()
            less = await asyncio.to_thread(self._examiner.common, running, policy)
            if less is not None:
                text, made_of = write_rules(less.rules).encode(), (running.hash, policy.hash)
                self._run(less, _version(less, text, made_of))
            self._hold(examined, found)
        if failing != before:
            self._tell_cases(failing)

    def _stay(self, examined: Examined, found: Found) -> None:
        """What the file says runs already."""
        self._version = replace(self.running, made_of=None)
        standing = Standing(
            policy=self.policy(),
            loaded_at=self.standing.loaded_at,
            file_hash=found.hash,
            failing=examined.failing,
        )
        self._put(standing)
        self._watcher.unchanged(standing.policy.hash)

    async def _may_run(self, examined: Examined) -> bool:
        """Whether the whole of it may run by now."""
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
        waiting = self.standing.waiting
        approved = waiting is not None and await self._approved(waiting.hash)
        self._unasked = False
        if approved and waiting is not None:
            self._run(waiting, _version(waiting, self._file.seen.content))

    def _run(self, policy: Policy, version: Version, failing: tuple[Problem, ...] = ()) -> None:
        old, now, made_of = self.policy(), self._now(), version.made_of
        standing = Standing(
            policy=policy,
            loaded_at=now,
            file_hash=made_of[1] if made_of else policy.hash,
            made_of=made_of,
            failing=failing,
        )
        self._put(standing)
        self._ran(version, failing)
        self._watcher.loaded(old.hash, policy.hash, now)

    def _ran(self, version: Version, failing: tuple[Problem, ...] = ()) -> None:
        self._version = version
        self._note(RAN, version.hash, version=version, reason=_reason(failing))

    def _hold(self, examined: Examined, found: Found) -> None:
        before, waiting, failing = self.standing, examined.policy, examined.failing
        waits_for = CASES if failing else APPROVAL
        self._put(
            replace(before, file_hash=found.hash, waiting=waiting, problems=(), failing=failing)
        )
        known = before.waiting.hash if before.waiting else None
        if known == waiting.hash and before.waits_for == waits_for:
            return
        version = _version(waiting, found.content)
        self._note(HELD, waiting.hash, version=version, reason=_reason(failing))
        self._watcher.held(waiting.hash, self.policy().hash, waits_for)

    def _refuse(self, error: DocumentErrors, found: Found) -> None:
        problems = error.problems
        if problems == self.standing.problems and found.hash == self.standing.file_hash:
            return
        self._put(
            replace(
                self.standing,
                file_hash=found.hash,
                waiting=None,
                problems=problems,
                refused_at=self._now(),
                failing=(),
            )
        )
        self._note(REFUSED, found.hash, reason=str(problems[0])[:LONGEST])
        self._watcher.refused([str(each) for each in problems], self.policy().hash, found.hash)

    def _tell_cases(self, failing: tuple[Problem, ...]) -> None:
        self._watcher.cases([str(each) for each in failing], self.policy().hash)

    def _put(self, standing: Standing) -> None:
        self._standing, self._policy = standing, standing.policy

    def _note(
        self, event: str, digest: str, *, version: Version | None = None, reason: str | None = None
    ) -> None:
        self.unwritten.append(
            Event(at=self._now(), event=event, hash=digest, version=version, reason=reason)
        )
        del self.unwritten[:-MOST_UNWRITTEN]


def _reason(failing: tuple[Problem, ...]) -> str | None:
    """What an event says of cases that fail."""
    return f"{summary(failing)}: {failing[0]}"[:LONGEST] if failing else None


def _version(policy: Policy, content: bytes, made_of: tuple[str, str] | None = None) -> Version:
    """A policy with its text, as the store keeps it."""
    return Version(hash=policy.hash, content=content, file=policy.file, made_of=made_of)
