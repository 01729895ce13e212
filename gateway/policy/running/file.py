"""The policy's file: its bytes at one moment, and the policy or the problems that come of them."""

import os
import stat
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from errno import EINVAL
from hashlib import sha256
from pathlib import Path, PurePath

from adapters.base import Report
from adapters.documents.document import LARGEST
from adapters.documents.problems import DocumentErrors, Problem
from gateway.policy.cases.file import LARGEST as LARGEST_CASES
from gateway.policy.cases.run import UNREADABLE, cases_beside, verify
from gateway.policy.policy import Policy, Version, compile_policy, narrowed
from gateway.policy.reading.document import parse_policy, read_version, write_rules
from gateway.settings import StartRefused


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The policy file at one moment; equal snapshots have the same policy and the same cases.

    `content` is empty where nothing can be read, and `problem` says why. `hash` is the SHA-256 of
    the content in hexadecimal digits, "" where the whole of it was not read; `cases` that of the
    file of cases.
    """

    content: bytes
    hash: str
    problem: Problem | None = None
    cases: str = ""


def find(policy: Path) -> Snapshot:
    """Returns the file as it is now, of a file that is too large only its first bytes."""
    try:
        cases = sha256(_read(cases_beside(policy), LARGEST_CASES)).hexdigest()
    except OSError:
        cases = ""
    try:
        content = _read(policy, LARGEST)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return Snapshot(b"", "", Problem(str(policy), 0, 0, f"cannot be read: {reason}"), cases)
    whole = len(content) <= LARGEST
    return Snapshot(content, sha256(content).hexdigest() if whole else "", cases=cases)


def _read(path: Path, largest: int) -> bytes:
    """Returns at most one byte more than the largest; raises OSError for what is no plain file."""
    # a pipe is not waited for
    with open(path, "rb", opener=lambda name, how: os.open(name, how | os.O_NONBLOCK)) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(EINVAL, "it is no plain file")
        return stream.read(largest + 1)


@dataclass(frozen=True, slots=True)
class Examined:
    """A sound policy, and the cases beside its file that fail."""

    policy: Policy
    failing: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """Makes a policy of a file's bytes, or says all that is wrong with it.

    `verify` returns the cases beside a policy that fail, or what is wrong with their file;
    `narrows` the conditions of a policy that the practice system cannot serve.
    """

    path: Path
    report: Report
    verify: Callable[[Policy, Path], Sequence[Problem]] = verify
    narrows: Callable[[Policy], Sequence[Problem]] = lambda policy: ()

    def examined(self, found: Snapshot, like: Policy | None = None) -> Examined:
        """Returns the policy with its failing cases; raises DocumentErrors where it cannot run."""
        policy = self.policy(found, like)
        if unserved := self.narrows(policy):
            raise DocumentErrors(unserved)
        return Examined(policy, self.failing(policy))

    def policy(self, found: Snapshot, like: Policy | None = None) -> Policy:
        """Returns the policy without looking at its cases; raises DocumentErrors."""
        if found.problem is not None:
            raise DocumentErrors([found.problem])
        return parse_policy(found.content, str(self.path), self.report, like)

    def failing(self, policy: Policy) -> tuple[Problem, ...]:
        """Returns the cases that fail, or the reason why they cannot be tried."""
        try:
            return tuple(self.verify(policy, self.path))
        except Exception as error:  # noqa: BLE001 - a fault of ours keeps no field from being hidden
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
