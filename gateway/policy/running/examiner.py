"""Makes a policy of what lies in its file, or says all that is wrong with it for this gateway."""

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePath

from adapters.base import Report
from adapters.documents.problems import DocumentErrors, Problem
from gateway.policy.cases.run import UNREADABLE, cases_beside
from gateway.policy.policy import Policy, compile_policy
from gateway.policy.reading.document import parse_policy
from gateway.policy.rules import Rules
from gateway.policy.running.decision import narrowed
from gateway.policy.running.found import Found
from gateway.policy.running.stored import read_version
from gateway.policy.running.versions import Version
from gateway.policy.running.writer import write_rules
from gateway.settings import StartRefused

# The cases beside a policy that fail, or what is wrong with their file.
Verify = Callable[[Policy, Path], Sequence[Problem]]
# The conditions of a policy that the practice system cannot serve.
Narrows = Callable[[Policy], Sequence[Problem]]


@dataclass(frozen=True, slots=True)
class Examined:
    """A sound policy, and the cases beside its file that fail."""

    policy: Policy
    failing: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """Makes a policy of a file's bytes, or says all that is wrong with it."""

    path: Path
    report: Report
    verify: Verify = lambda policy, path: ()
    narrows: Narrows = lambda policy: ()

    def examined(self, found: Found, like: Policy | None = None) -> Examined:
        """The policy with its failing cases; DocumentErrors where no gateway can run it."""
        policy = self.policy(found, like)
        unserved = self.narrows(policy)
        if unserved:
            raise DocumentErrors(unserved)
        return Examined(policy, self.failing(policy))

    def policy(self, found: Found, like: Policy | None = None) -> Policy:
        """The policy by itself; DocumentErrors."""
        if found.problem is not None:
            raise DocumentErrors([found.problem])
        return parse_policy(found.content, str(self.path), self.report, like)

    def failing(self, policy: Policy) -> tuple[Problem, ...]:
        """The cases that fail; where they cannot be tried, for whatever reason, that."""
        try:
            return tuple(self.verify(policy, self.path))
        except Exception as error:  # noqa: BLE001 - a fault of ours keeps no field from being hidden
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{PurePath(frame.filename).name}:{frame.lineno}"
            text = f"cannot be tried, a fault of the gateway ({type(error).__name__} at {place})"
            return (Problem(str(cases_beside(self.path)), 0, 0, text, UNREADABLE),)

    def common(self, running: Policy, new: Policy) -> Policy | None:
        """What both show, as a policy; None where that is what runs."""
        rules = narrowed(running.rules, new.rules)
        if rules is None:
            return None
        digest = sha256(write_rules(rules).encode()).hexdigest()
        return self._compiled(digest, rules, running)

    def stored(self, version: Version) -> Policy:
        """What ran last, as the contract is now; StartRefused where it cannot be read."""
        try:
            return self._compiled(version.hash, read_version(version))
        except DocumentErrors as error:
            raise StartRefused(
                f"the policy {version.hash[:12]} that ran last is damaged in the store, so that"
                " nobody can tell what may run: restore a backup, or start once with"
                " policy_widening: apply and with cases that pass"
            ) from error

    def _compiled(self, digest: str, rules: Rules, like: Policy | None = None) -> Policy:
        return compile_policy(str(self.path), digest, rules, self.report, like)
