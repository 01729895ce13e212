"""What the cases beside a policy say of it, as a gateway would try them."""

from dataclasses import replace
from pathlib import Path
from shlex import quote

from gateway.policy.cases.run import verify
from gateway.policy.reading.checked import Checked


def with_cases(checked: Checked, path: Path) -> Checked:
    """The same with its cases that fail, in their own file; as it is where there is no policy."""
    if checked.policy is None:
        return checked
    return replace(checked, errors=(*checked.errors, *verify(checked.policy, path)))


def try_again(file: Path | None) -> str:
    """The command that tries the cases of a file, or of the configured policy."""
    command = "clinic-gateway policy test"
    return f"{command} {quote(str(file))}" if file else command
