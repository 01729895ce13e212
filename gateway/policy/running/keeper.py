"""Keeps the policy that runs, and decides what of a changed policy file may run.

A wrong file changes nothing. What a sound one shows less takes effect at once. What it shows more
waits until its cases pass and, where that is configured, somebody approves it.
"""

import asyncio
import os
import stat
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from errno import EINVAL
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from adapters.base import Report
from adapters.documents.document import LARGEST as LARGEST_FILE
from adapters.documents.problems import DocumentErrors, Problem
from gateway.contract.fields import write_instant
from gateway.events import Events
from gateway.observe.lines import printable
from gateway.policy.cases import LARGEST as LARGEST_CASES
from gateway.policy.cases import UNREADABLE, cases_beside, summary, verify
from gateway.policy.policy import Policy, Version, compile_policy, narrowed, no_wider
from gateway.policy.reading.document import parse_policy, read_version, write_rules
from gateway.policy.running.versions import HELD, RAN, REFUSED, Event
from gateway.settings import StartRefused
from gateway.store.base import StoreError

# Seconds for which a changed file must stay unchanged before it counts as complete.
STEADY = 0.25
# Seconds that a file which is wrong or still changing has to become sound.
PATIENCE = 1.0
CURRENT, STALE, HELD_BACK = "current", "stale", "held back"
# What a policy that is held back waits for: its cases must pass, then somebody must approve it.
CASES, APPROVAL = "cases", "approval"
# The most failing cases that a status names, and characters of each.
MOST, LONGEST_CASE = 20, 300
# The most characters of an event's reason.
LONGEST = 500
# The most events that wait for a store that is down. Older ones are in the log alone.
MOST_UNWRITTEN = 500
Problems = tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The policy file at one moment. Equal snapshots have the same policy and the same cases.

    `content` is empty where the file cannot be read, and `problem` says why. `hash` is the SHA-256
    of the content in hexadecimal digits, "" where the file is too large. `cases` is the hash of the
    file of cases.
    """

    content: bytes
    hash: str
    problem: Problem | None = None
    cases: str = ""


def find(policy: Path) -> Snapshot:
    """Returns the file as it is now. Of a file that is too large it has only the first bytes."""
    try:
        cases = sha256(_read(cases_beside(policy), LARGEST_CASES)).hexdigest()
    except OSError:
        cases = ""
    try:
        content = _read(policy, LARGEST_FILE)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return Snapshot(b"", "", Problem(str(policy), 0, 0, f"cannot be read: {reason}"), cases)
    whole = len(content) <= LARGEST_FILE
    return Snapshot(content, sha256(content).hexdigest() if whole else "", cases=cases)


def _read(path: Path, largest: int) -> bytes:
    """Reads at most one byte more than `largest`; raises OSError for what is no plain file."""
    # does not wait for the writer of a pipe
    with open(path, "rb", opener=lambda name, how: os.open(name, how | os.O_NONBLOCK)) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(EINVAL, "it is no plain file")
        return stream.read(largest + 1)


class Examined(NamedTuple):
    """A sound policy, and the cases beside its file that fail."""

    policy: Policy
    failing: Problems = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """Makes a policy of a file's bytes, or tells all that is wrong with it.

    `verify` returns the cases beside a policy that fail, or what is wrong with their file.
    `narrows` returns the conditions of a policy that the practice system cannot serve.
    """

    path: Path
    report: Report
    verify: Callable[[Policy, Path], Sequence[Problem]] = verify
    narrows: Callable[[Policy], Sequence[Problem]] = lambda policy: ()

    def examined(self, snapshot: Snapshot, like: Policy | None = None) -> Examined:
        """Returns the policy with its failing cases; raises DocumentErrors where it cannot run."""
        policy = self.policy(snapshot, like)
        if unserved := self.narrows(policy):
            raise DocumentErrors(unserved)
        return Examined(policy, self.failing(policy))

    def policy(self, snapshot: Snapshot, like: Policy | None = None) -> Policy:
        """Returns the policy without looking at its cases; raises DocumentErrors."""
        if snapshot.problem is not None:
            raise DocumentErrors([snapshot.problem])
        return parse_policy(snapshot.content, str(self.path), self.report, like)

    def failing(self, policy: Policy) -> Problems:
        """Returns the cases that fail, or the reason why they cannot be tried."""
        try:
            return tuple(self.verify(policy, self.path))
        except Exception as error:  # noqa: BLE001 - our own fault must not keep a field from being hidden
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{PurePath(frame.filename).name}:{frame.lineno}"
            text = f"cannot be tried, a fault of the gateway ({type(error).__name__} at {place})"
            return (Problem(str(cases_beside(self.path)), 0, 0, text, UNREADABLE),)

    def common(self, running: Policy, new: Policy) -> Policy | None:
        """Returns what both policies show; None where that runs already."""
        rules = narrowed(running.rules, new.rules)
        if rules is None:
            return None
        text, made_of = write_rules(rules).encode(), (running.hash, new.hash)
        digest = sha256(text).hexdigest()
        version = Version(hash=digest, content=text, file=new.file, made_of=made_of)
        return compile_policy(version, rules, self.report, running)

    def stored(self, version: Version) -> Policy:
        """Returns the policy that ran last; raises StartRefused where it cannot be read."""
        try:
            rules = read_version(version)
        except DocumentErrors as error:
            raise StartRefused(
                f"the policy {version.hash[:12]} that ran last is damaged in the store, so that"
                " nobody can tell what may run: restore a backup, or start once with"
                " policy_widening: apply and with cases that pass"
            ) from error
        return compile_policy(replace(version, file=str(self.path)), rules, self.report)


@dataclass(frozen=True, slots=True)
class PolicyStatus:
    """The policy that runs, since when, and the state of the file.

    `waiting` is the file's policy where it shows more than may run. `problems` is what is wrong
    with the file, `failing` the cases that fail, or what is wrong with their file.
    """

    policy: Policy
    loaded_at: datetime
    file_hash: str
    waiting: Policy | None = None
    problems: Problems = ()
    refused_at: datetime | None = None
    failing: Problems = ()

    @property
    def state(self) -> str:
        """`current`, `stale` where the file is refused, or `held back`."""
        return STALE if self.problems else HELD_BACK if self.waiting else CURRENT

    @property
    def waits_for(self) -> str | None:
        """What the waiting policy needs next: CASES that pass, or an APPROVAL."""
        return None if self.waiting is None else CASES if self.failing else APPROVAL

    def members(self) -> dict[str, Any]:
        """Returns the status as readiness and `policy status` show it."""
        made_of, cases, error = self.policy.version.made_of, None, None

        def shown(problem: Problem, text: str) -> dict[str, Any]:
            return {"text": text, "file": problem.file, "line": problem.line or None}

        if self.failing:
            listed = [shown(case, case.text[:LONGEST_CASE]) for case in self.failing[:MOST]]
            more = len(self.failing) - len(listed)
            cases = {"text": summary(self.failing), "problems": listed, "more": more}
        if self.problems and self.refused_at is not None:
            first, others = self.problems[0], len(self.problems) - 1
            text = f"{first.text} (and {others} more)" if others else first.text
            error = {"at": write_instant(self.refused_at), **shown(first, text)}
        return {
            "state": self.state,
            "hash": self.policy.short_hash,
            "file": self.policy.file,
            "fileHash": self.file_hash[:12] or None,
            "loadedAt": write_instant(self.loaded_at),
            "waiting": self.waiting.hash if self.waiting else None,
            "waitsFor": self.waits_for,
            "cases": cases,
            "lastError": error,
        } | ({"madeOf": [digest[:12] for digest in made_of]} if made_of else {})


@dataclass(eq=False)
class Keeper:
    """Looks at the file when asked to, and decides what runs.

    With `approve`, what a file shows more waits until `approved` is true of its hash. `steady` and
    `patience` are seconds. `unwritten` are the events that the store does not have yet. `status`
    exists once a policy runs.
    """

    examiner: Examiner
    events: Events
    now: Callable[[], datetime]
    _: KW_ONLY
    approve: bool
    approved: Callable[[str], Awaitable[bool]]
    steady: float = STEADY
    patience: float = PATIENCE
    unwritten: list[Event] = field(default_factory=list)
    status: PolicyStatus = field(init=False)
    _seen: Snapshot = field(default=Snapshot(b"", ""), init=False)  # what was examined last
    _unasked: bool = field(default=False, init=False)

    def policy(self) -> Policy:
        """Returns the policy that runs; a request asks once."""
        return self.status.policy

    def written(self, events: Sequence[Event]) -> None:
        self.unwritten[:] = [event for event in self.unwritten if event not in events]

    async def begin(self, snapshot: Snapshot, examined: Examined, last: Version | None) -> None:
        """Runs the file's policy, or the part of it that may run after the `last` one.

        Raises DocumentErrors where its cases fail and nothing ran before, StartRefused where the
        last policy is needed and cannot be read.
        """
        self._seen, (policy, failing) = snapshot, examined
        if last is None and failing:
            raise DocumentErrors(failing)
        is_new = last is None or last.hash != policy.hash
        if last is not None and is_new and (self.approve or failing):
            await self.go_on(last, self.now())
            await self._take(policy, failing)
            return
        if is_new:
            self._change(policy, failing, old=last.hash if last else "")
        else:
            self._run(policy, self.now(), failing)
        if failing:
            self._tell_cases(failing)

    async def go_on(self, last: Version, since: datetime) -> None:
        """Runs what ran before, whatever the file says; raises StartRefused if it is unreadable."""
        self._run(await asyncio.to_thread(self.examiner.stored, last), since)

    async def look(self, *, asked: bool = False) -> None:
        """Takes the file where it has changed.

        Where somebody `asked`, it tries a refused file and failed cases again, and looks whether a
        waiting policy is approved; where the store cannot tell, the next look asks again.
        """
        wrong = bool(self.status.problems or self.status.failing)
        outcome = await self._changed(again=asked and wrong)
        waiting = self.status.waiting
        if isinstance(outcome, Examined):
            await self._take(*outcome)
        elif outcome is not None:
            self._refuse(outcome)
        elif waiting and self.status.waits_for == APPROVAL and (asked or self._unasked):
            await self._take(waiting)
        elif asked and self.status.state == CURRENT:
            self.events.report("policy_unchanged", running=self.policy().short_hash)

    async def _changed(self, *, again: bool) -> Examined | DocumentErrors | None:
        """Returns what comes of the stable file; None if it is unchanged and not tried `again`."""
        clock = asyncio.get_running_loop().time
        until = clock() + self.patience
        snapshot = await asyncio.to_thread(find, self.examiner.path)
        if again and snapshot == self._seen:
            return await asyncio.to_thread(self._examined, snapshot)
        outcome: Examined | DocumentErrors | None = None
        while snapshot != self._seen:
            await asyncio.sleep(self.steady)
            now = await asyncio.to_thread(find, self.examiner.path)
            if now != snapshot:
                snapshot, outcome = now, None
                if clock() < until:
                    continue
            if outcome is None:
                outcome = await asyncio.to_thread(self._examined, snapshot)
            sound = isinstance(outcome, Examined) and not outcome.failing
            if sound or clock() >= until:
                self._seen = snapshot
                return outcome
        return None

    def _examined(self, snapshot: Snapshot) -> Examined | DocumentErrors:
        """Examines the file, in a thread. Any failure is a reason not to take it."""
        try:
            return self.examiner.examined(snapshot, self.policy())
        except DocumentErrors as error:
            return error
        except Exception as error:  # noqa: BLE001 - what runs goes on, whatever it is
            self.events.report("policy_not_followed", error)
            text = f"it cannot be checked ({type(error).__name__})"
            return DocumentErrors([Problem(str(self.examiner.path), 0, 0, text)])

    async def _take(self, policy: Policy, failing: Problems = ()) -> None:
        """Runs a sound policy, or as much of it as may run."""
        before, running = self.status, self.policy()
        if policy.hash == running.hash:
            is_same = running.version.made_of is None  # else the file is now what both showed
            self._run(running if is_same else policy, before.loaded_at, failing)
            self.events.report("policy_unchanged", running=self.policy().short_hash)
        elif await self._may_run(policy, waits=bool(failing)):
            self._change(policy, failing, old=running.hash)
        else:
            if common := await asyncio.to_thread(self.examiner.common, running, policy):
                self._change(common, old=running.hash)
            self._hold(policy, failing)
        if failing != before.failing:
            self._tell_cases(failing)

    async def _may_run(self, policy: Policy, *, waits: bool) -> bool:
        if not self.approve and not waits:
            return True
        if await asyncio.to_thread(no_wider, policy.rules, self.policy().rules):
            return True
        if waits:
            return False
        try:
            approved = await self.approved(policy.hash)
        except StoreError:
            self._unasked = True  # what shows less does not wait for the store
            return False
        self._unasked = False
        return approved

    def _change(self, policy: Policy, failing: Problems = (), *, old: str) -> None:
        """Runs another policy and notes it for the store; reports it where an `old` one ran."""
        self._note(RAN, policy.version, failing)
        self._run(policy, self.now(), failing)
        if old:
            self.events.report("policy_loaded", old=old[:12], new=policy.short_hash)

    def _run(self, policy: Policy, since: datetime, failing: Problems = ()) -> None:
        _, file_hash = policy.version.made_of or ("", policy.hash)
        self.status = PolicyStatus(policy, since, file_hash, failing=failing)

    def _hold(self, waiting: Policy, failing: Problems) -> None:
        """Lets a policy wait while the running one goes on; reports that once."""
        before, digest = self.status, waiting.hash
        now = replace(before, file_hash=digest, waiting=waiting, problems=(), failing=failing)
        self.status = now
        known = before.waiting.hash if before.waiting else None
        if (known, before.waits_for) == (digest, now.waits_for):
            return
        self._note(HELD, waiting.version, failing)
        more = {"waiting": digest[:12], "running": now.policy.short_hash}
        if now.waits_for == CASES:
            self.events.report("policy_waits_for_cases", **more, waits_for=CASES)
        else:
            more["remedy"] = f"clinic-gateway policy approve {digest} --reason TEXT"
            self.events.report("policy_waits_for_approval", **more, waits_for=APPROVAL)

    def _refuse(self, error: DocumentErrors) -> None:
        problems, digest, before = error.problems, self._seen.hash, self.status
        # nosemgrep: digests-are-compared-in-constant-time - both are our own, neither is a guess
        if problems == before.problems and digest == before.file_hash:
            return
        wrong = replace(before, file_hash=digest, waiting=None, failing=())
        self.status = replace(wrong, problems=problems, refused_at=self.now())
        self._note(REFUSED, digest, problems)
        self.events.report(
            "policy_refused",
            problem=str(problems[0])[:LONGEST],
            problems=len(problems),
            running=before.policy.short_hash,
            file=digest[:12] or None,
        )

    def _tell_cases(self, failing: Problems) -> None:
        running = self.policy().short_hash
        if not failing:
            self.events.report("policy_cases_pass", running=running)
            return
        cases = [printable(str(problem)[:LONGEST_CASE]) for problem in failing[:MOST]]
        self.events.report("policy_cases_fail", failing=len(failing), cases=cases, running=running)

    def _note(self, event: str, what: Version | str, wrong: Sequence[Problem]) -> None:
        """Keeps an event for the store, about a version or the hash of a file without one."""
        version, digest = (what, what.hash) if isinstance(what, Version) else (None, what)
        head = f"{summary(wrong)}: " if version else ""
        reason = f"{head}{wrong[0]}"[:LONGEST] if wrong else None
        made = Event(at=self.now(), event=event, hash=digest, version=version, reason=reason)
        self.unwritten.append(made)
        del self.unwritten[:-MOST_UNWRITTEN]
