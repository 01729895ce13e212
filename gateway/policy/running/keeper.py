"""Keeps the policy that runs: one reference, moved on by files that are sound, held by all others.

What is wrong with a file never touches what runs. Where a change that shows more waits for somebody
to approve it, what it shows less holds at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Protocol

from adapters.problems import DocumentErrors, Problem
from gateway.policy.policy import Policy, compile_policy
from gateway.policy.rules import Rules, no_wider
from gateway.policy.running.decision import narrowed
from gateway.policy.running.examiner import Examiner
from gateway.policy.running.found import Found, find
from gateway.policy.running.standing import CURRENT, Standing
from gateway.policy.running.stored import read_version
from gateway.policy.running.versions import HELD, RAN, REFUSED, Event, Version
from gateway.policy.running.writer import write_rules
from gateway.settings import StartRefused
from gateway.store.base import StoreError

# Seconds for which a changed file must stay as it is, before it counts as written.
STEADY = 0.25
# Seconds that a file which is wrong, or goes on changing, has to become whole.
PATIENCE = 1.0
# Events that wait for a store that is down; of more the oldest are in the log alone.
MOST_UNWRITTEN = 500


class Watcher(Protocol):
    """Who is told what becomes of the policy."""

    def loaded(self, old: str, new: str, at: datetime) -> None:
        """The policy with the hash `new` runs from now on, after the one with the hash `old`."""

    def refused(self, problems: Sequence[str], running: str, file: str) -> None:
        """The file, with the hash `file`, cannot be taken; what runs goes on."""

    def held(self, waiting: str, running: str) -> None:
        """What the file shows more waits for an approval."""

    def unchanged(self, running: str) -> None:
        """The file is what runs: once more, or as somebody asked for it to be looked at."""

    def failed(self, error: Exception, said: str) -> None:
        """A fault of ours; `said` may stand in a log."""

    def untold(self, error: Exception, said: str) -> None:
        """The file is followed, but the store can be neither told nor asked."""


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
        self._steady = steady
        self._patience = patience
        self._unasked = False
        self._seen = Found(b"", "")
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

    async def begin(self, found: Found, policy: Policy, last: Version | None) -> None:
        """Run the file's policy, or what may run of it after the one that ran last.

        StartRefused where that one cannot be read.
        """
        self._seen = found
        if self._approve and last is not None and last.hash != policy.hash:
            await self.go_on(last, self._now())
            await self._take(policy, found)
            return
        self._put(Standing(policy=policy, loaded_at=self._now(), file_hash=found.hash))
        self._version = Version(hash=policy.hash, content=found.content, file=policy.file)
        if last is None or last.hash != policy.hash:
            self._ran(policy, found.content)
        self._watcher.loaded(last.hash if last else policy.hash, policy.hash, self._now())

    async def go_on(self, last: Version, since: datetime) -> None:
        """Run what ran before, whatever the file says: that is looked at the next time.

        StartRefused where it cannot be read.
        """
        before = await asyncio.to_thread(self._stored, last)
        file_hash = last.made_of[1] if last.made_of else last.hash
        self._put(
            Standing(policy=before, loaded_at=since, file_hash=file_hash, made_of=last.made_of)
        )
        self._version = last

    async def look(self, *, asked: bool = False) -> None:
        """Take the file as it is now, unless it is as it was.

        Where somebody asked for it, a file that was refused is tried again, and one that waits may
        have been approved. StoreError where that cannot be found out: then ask again.
        """
        settled = await self._settled(again=asked and bool(self.standing.problems))
        if settled is not None:
            found, outcome = settled
            self._seen = found
            if isinstance(outcome, Policy):
                await self._take(outcome, found)
            else:
                self._refuse(outcome, found)
        elif self.standing.waiting is not None and (asked or self._unasked):
            await self._try_waiting(self.standing.waiting)
        elif asked and self.standing.state == CURRENT:
            self._watcher.unchanged(self.policy().hash)

    async def _settled(self, *, again: bool) -> tuple[Found, Policy | DocumentErrors] | None:
        """The file once it stays as it is, and what comes of it; None where it is as it was."""
        clock = asyncio.get_running_loop().time
        until = clock() + self._patience
        found = await self._find()
        if again and found == self._seen:
            return found, await asyncio.to_thread(self._examined, found)
        outcome: Policy | DocumentErrors | None = None
        while found != self._seen:
            await asyncio.sleep(self._steady)
            now = await self._find()
            if now != found:
                found, outcome = now, None
                if clock() < until:
                    continue
            if outcome is None:
                outcome = await asyncio.to_thread(self._examined, found)
            if isinstance(outcome, Policy) or clock() >= until:
                return found, outcome
        return None

    async def _find(self) -> Found:
        return await asyncio.to_thread(find, self._examiner.path)

    def _examined(self, found: Found) -> Policy | DocumentErrors:
        """In a thread of its own; whatever goes wrong there is a reason not to take the file."""
        try:
            policy = self._examiner.policy(found, self.policy())
            problems = self._examiner.problems(policy)
        except DocumentErrors as error:
            return error
        except Exception as error:  # noqa: BLE001 - what runs goes on, whatever it is
            self._watcher.failed(error, "")
            text = f"it cannot be checked ({type(error).__name__})"
            return DocumentErrors([Problem(str(self._examiner.path), 0, 0, text)])
        return DocumentErrors(problems) if problems else policy

    async def _take(self, policy: Policy, found: Found) -> None:
        """Run a sound policy, or as much of it as may run."""
        standing = self.standing
        if policy.hash == standing.policy.hash:
            self._version = replace(self.running, made_of=None)
            self._put(
                replace(standing, file_hash=found.hash, waiting=None, problems=(), made_of=None)
            )
            if standing.state != CURRENT:
                self._watcher.unchanged(policy.hash)
        elif not self._approve or await self._may_run(policy):
            self._run(policy, found.content)
        else:
            less = await asyncio.to_thread(self._common, standing.policy, policy)
            if less is not None:
                made_of = (standing.policy.hash, policy.hash)
                self._run(less, write_rules(less.rules).encode(), made_of)
            self._hold(policy, found)

    async def _may_run(self, policy: Policy) -> bool:
        running = self.policy().rules
        if await asyncio.to_thread(no_wider, policy.rules, running):
            return True
        try:
            approved = await self._approved(policy.hash)
        except StoreError:
            self._unasked = True  # what is shown less need not wait for the store
            return False
        self._unasked = False
        return approved

    async def _try_waiting(self, waiting: Policy) -> None:
        approved = await self._approved(waiting.hash)
        self._unasked = False
        if approved:
            self._run(waiting, self._seen.content)

    def _common(self, running: Policy, new: Policy) -> Policy | None:
        """What both show, as a policy; None where that is what runs."""
        rules = narrowed(running.rules, new.rules)
        return None if rules is None else self._compiled(rules, running)

    def _compiled(self, rules: Rules, like: Policy | None = None) -> Policy:
        digest = sha256(write_rules(rules).encode()).hexdigest()
        examiner = self._examiner
        return compile_policy(str(examiner.path), digest, rules, examiner.report, like)

    def _stored(self, version: Version) -> Policy:
        """What ran last, as the contract is now."""
        examiner = self._examiner
        try:
            rules = read_version(version)
        except DocumentErrors as error:
            raise StartRefused(
                f"the policy {version.hash[:12]} that ran last is damaged in the store, so that"
                " nobody can tell what may run: restore a backup, or start once with"
                " policy_widening: apply"
            ) from error
        return compile_policy(str(examiner.path), version.hash, rules, examiner.report)

    def _run(self, policy: Policy, content: bytes, made_of: tuple[str, str] | None = None) -> None:
        old, now = self.policy(), self._now()
        file_hash = made_of[1] if made_of else policy.hash
        self._put(Standing(policy=policy, loaded_at=now, file_hash=file_hash, made_of=made_of))
        self._ran(policy, content, made_of)
        self._watcher.loaded(old.hash, policy.hash, now)

    def _ran(self, policy: Policy, content: bytes, made_of: tuple[str, str] | None = None) -> None:
        version = Version(hash=policy.hash, content=content, file=policy.file, made_of=made_of)
        self._version = version
        self._note(RAN, policy.hash, version=version)

    def _hold(self, waiting: Policy, found: Found) -> None:
        before = self.standing.waiting
        self._put(replace(self.standing, file_hash=found.hash, waiting=waiting, problems=()))
        if before is not None and before.hash == waiting.hash:
            return
        version = Version(hash=waiting.hash, content=found.content, file=waiting.file)
        self._note(HELD, waiting.hash, version=version)
        self._watcher.held(waiting.hash, self.policy().hash)

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
            )
        )
        self._note(REFUSED, found.hash, reason=str(problems[0])[:500])
        self._watcher.refused([str(each) for each in problems], self.policy().hash, found.hash)

    def _put(self, standing: Standing) -> None:
        self._standing, self._policy = standing, standing.policy

    def _note(
        self, event: str, digest: str, *, version: Version | None = None, reason: str | None = None
    ) -> None:
        self.unwritten.append(
            Event(at=self._now(), event=event, hash=digest, version=version, reason=reason)
        )
        del self.unwritten[:-MOST_UNWRITTEN]
