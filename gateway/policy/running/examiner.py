"""Makes a policy of what lies in its file, or says all that is wrong with it for this gateway."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.base import Report
from adapters.problems import DocumentErrors, Problem
from gateway.policy.policy import Policy
from gateway.policy.reading.document import parse_policy
from gateway.policy.running.found import Found

# What is wrong with a sound policy for this gateway: its cases, or rows that nobody can tell apart.
Verify = Callable[[Policy, Path], Sequence[Problem]]


Narrows = Callable[[Policy], Sequence[Problem]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """Makes a policy of a file's bytes, or says all that is wrong with it."""

    path: Path
    report: Report
    verify: Verify = lambda policy, path: ()
    narrows: Narrows = lambda policy: ()

    def policy(self, found: Found, like: Policy | None = None) -> Policy:
        """The policy by itself; DocumentErrors."""
        if found.problem is not None:
            raise DocumentErrors([found.problem])
        return parse_policy(found.content, str(self.path), self.report, like)

    def problems(self, policy: Policy) -> list[Problem]:
        """What its cases say of it, and the practice system."""
        return [*self.verify(policy, self.path), *self.narrows(policy)]
