"""Problems as commands of GitHub's workflows, which show them beside the lines of a change."""

from gateway.cli.lines import legible
from gateway.cli.policy.as_sarif import within
from gateway.cli.policy.entries import Entry
from gateway.policy.reading.kinds import Severity


def as_command(entry: Entry) -> str:
    """One line: `::error file=policies.yaml,line=3,...::clients has no field ...`."""
    problem = entry.problem
    members = {"file": within(problem.file)}
    if problem.line:
        members |= {
            "line": str(problem.line),
            "endLine": str(problem.line),
            "col": str(problem.column),
            "endColumn": str(entry.end),
        }
    members["title"] = f"{problem.code}: {entry.kind.title}"
    listed = ",".join(f"{name}={_member(value)}" for name, value in members.items())
    command = "notice" if entry.severity is Severity.NOTE else entry.severity
    return f"::{command} {listed}::{_escaped(f'{problem.text} ({entry.kind.help})')}"


def _escaped(text: str) -> str:
    return legible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _member(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
