"""Problems as SARIF 2.1.0, which code hosts and editors show beside the file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import gateway
from gateway.cli.policy.entries import Entry
from gateway.policy.reading.kinds import KINDS, Kind

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_CODES = list(KINDS)


def as_sarif(entries: Sequence[Entry]) -> dict[str, Any]:
    """One run, with a rule for every kind there is."""
    driver = {
        "name": "clinic-gateway policy check",
        "version": gateway.__version__,
        "rules": [_rule(code, kind) for code, kind in KINDS.items()],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(each) for each in entries],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str, kind: Kind) -> dict[str, Any]:
    return {
        "id": code,
        "shortDescription": {"text": kind.title},
        "fullDescription": {"text": kind.help},
        "help": {"text": kind.help},
        "defaultConfiguration": {"level": kind.severity.value},
    }


def _result(entry: Entry) -> dict[str, Any]:
    problem = entry.problem
    place: dict[str, Any] = {"artifactLocation": {"uri": uri_of(problem.file)}}
    if problem.line:
        place["region"] = {
            "startLine": problem.line,
            "startColumn": problem.column,
            "endLine": problem.line,
            "endColumn": entry.end,
        }
    return {
        "ruleId": problem.code,
        "ruleIndex": _CODES.index(problem.code),
        "level": entry.kind.severity.value,
        "message": {"text": problem.text},
        "locations": [{"physicalLocation": place}],
    }


def uri_of(file: str) -> str:
    """The file's address: relative where it lies in this folder, as hosts want it."""
    path = Path(file)
    if path.is_absolute() and not path.is_relative_to(Path.cwd()):
        return path.as_uri()
    return quote(within(file))


def within(file: str) -> str:
    """The path from this folder on, where the file lies in it."""
    path = Path(file)
    inside = path.is_absolute() and path.is_relative_to(Path.cwd())
    return (path.relative_to(Path.cwd()) if inside else path).as_posix()
