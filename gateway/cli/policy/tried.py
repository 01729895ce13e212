"""What the cases beside a policy say of it, as a start of the gateway would try them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

from adapters.problems import Problem
from gateway.policy.cases.run import verify
from gateway.policy.policy import Policy
from gateway.policy.reading.checked import Checked

FAILED, UNREADABLE = "failed-case", "bad-cases"


def with_cases(checked: Checked, path: Path) -> Checked:
    """The same with its cases that fail, in their own file; as it is where there is no policy."""
    if checked.policy is None:
        return checked
    return replace(checked, errors=(*checked.errors, *tried(checked.policy, path)))


def tried(policy: Policy, path: Path) -> Sequence[Problem]:
    """The cases beside `path` that fail, or what is wrong with their file; each with its kind."""
    return [
        each if each.code == FAILED else replace(each, code=UNREADABLE)
        for each in verify(policy, path)
    ]


def refused(problems: Sequence[Problem], command: str) -> str:
    """What such problems mean, and the command that says more of them."""
    failed = sum(each.code == FAILED for each in problems)
    what = "its cases cannot be read"
    if failed:
        what = f"{failed} of its cases {'fails' if failed == 1 else 'fail'}"
    return f"{what}, so no gateway takes it: {command}"


def try_again(file: Path | None) -> str:
    """The command that tries the cases of a file, or of the configured policy."""
    command = "clinic-gateway policy test"
    return f"{command} {quote(str(file))}" if file else command
