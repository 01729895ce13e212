"""Problems for programs, as JSON."""

from collections.abc import Iterable
from typing import Any

from gateway.cli.policy.entries import Entry, entries_of
from gateway.policy.reading.checked import Checked
from gateway.policy.reading.kinds import Severity


def as_data(checked: Checked) -> dict[str, Any]:
    """What was found; `ok` says whether a gateway would take the whole file."""
    entries = entries_of(checked)
    found: dict[str, Any] = {"ok": not checked.errors, "file": checked.file}
    if checked.policy is not None:
        found["hash"] = checked.policy.hash
    names = {"problems": Severity.ERROR, "warnings": Severity.WARNING}
    if checked.notes:
        names["notes"] = Severity.NOTE
    for name, severity in names.items():
        found[name] = _listed(each for each in entries if each.severity is severity)
    return found


def _listed(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    return [
        {
            "file": each.problem.file,
            "line": each.problem.line,
            "column": each.problem.column,
            "endColumn": each.end,
            "text": each.problem.text,
            "code": each.problem.code,
            "severity": each.severity.value,
            "help": each.kind.help,
        }
        for each in entries
    ]
