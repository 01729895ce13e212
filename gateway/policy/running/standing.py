"""How things stand with the policy: what runs, since when, and what is the matter with the file."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.documents.problems import Problem
from gateway.contract.fields import write_instant
from gateway.policy.cases.run import summary
from gateway.policy.policy import Policy

CURRENT, STALE, HELD_BACK = "current", "stale", "held back"
# What a policy that is held back waits for: that its cases pass, then that somebody approves it.
CASES, APPROVAL = "cases", "approval"
# Failing cases that are told one by one, and characters of what is told of each.
MOST, LONGEST = 20, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What runs and since when, and what is the matter with the file.

    `made_of` are the hashes of the two policies of which only what both show runs; `waiting` is the
    file's policy where it shows more than may run; `problems` what is wrong with the file;
    `failing` the cases beside the file that fail, or what is wrong with theirs.
    """

    policy: Policy
    loaded_at: datetime
    file_hash: str
    made_of: tuple[str, str] | None = None
    waiting: Policy | None = None
    problems: tuple[Problem, ...] = ()
    refused_at: datetime | None = None
    failing: tuple[Problem, ...] = ()

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

    def told(self) -> dict[str, Any]:
        """The same as readiness and `policy status` show it."""
        made_of = {"madeOf": [each[:12] for each in self.made_of]} if self.made_of else {}
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
            {"file": each.file, "line": each.line or None, "text": each.text[:LONGEST]}
            for each in self.failing[:MOST]
        ]
        more = len(self.failing) - len(problems)
        return {"text": summary(self.failing), "problems": problems, "more": more}
