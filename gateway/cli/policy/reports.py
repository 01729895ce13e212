"""What `policy check` says of a file: for people, as JSON, and as SARIF 2.1.0 for code hosts.

Columns count letters from 1; an end is the column behind the last letter.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

import gateway
from adapters.documents.problems import Check, Problem, Severity
from gateway.cli.lines import legible
from gateway.inquiries.policies import lines_of
from gateway.policy.cases.file import LARGEST  # more than a policy may have
from gateway.policy.reading.checks import CHECKS, Checked

WIDEST = 100
SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_COLOURS = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.NOTE: "bold cyan",
}
_ENDS = {"[": "]", "{": "}"}
# What is wrong with another file, such as the configuration.
_OTHER: Check[Any] = Check("", "not in order", "")
_CODES = list(CHECKS)
_quoted = re.compile(r"""'(?:[^']|'')*'?|"(?:[^"\\]|\\.)*"?""").match
_word = re.compile(r"(?:[^,\[\]{}#:]|:(?=\S)|(?<!\s)#|\[\]\.?|\([^)]*\))+").match


@dataclass(frozen=True, slots=True)
class Annotation:
    """One problem with its check; `source` is its line, `end` 0 where it has no line."""

    problem: Problem
    check: Check[Any]
    source: str
    end: int


def annotations(checked: Checked) -> Iterator[Annotation]:
    """Errors and warnings in the order of the file, then notes."""
    known: dict[str, list[str]] = {}
    for problem in [*sorted((*checked.errors, *checked.warnings)), *checked.notes]:
        if problem.file not in known:
            known[problem.file] = _lines(Path(problem.file)) if problem.line else []
        lines = known[problem.file]
        source = lines[problem.line - 1] if 0 < problem.line <= len(lines) else ""
        end = end_of(source, problem.column) if problem.line else 0
        yield Annotation(problem, CHECKS.get(problem.code, _OTHER), source, end)


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as stream:
            return lines_of(stream.read(LARGEST))
    except OSError:
        return []


def end_of(line: str, column: int) -> int:
    """Where the word, quoted text or bracket that begins at the column ends."""
    rest = line[column - 1 :]
    if not rest:
        return column + 1
    if found := _quoted(rest):
        return column + found.end()
    if rest[0] in _ENDS:
        return column + _closed(rest)
    found = _word(rest)
    return column + (len(found[0].rstrip()) or 1 if found else 1)


def _closed(rest: str) -> int:
    """How many letters a bracket holds within its line, itself included."""
    depth, opens = 0, rest[0]
    for number, letter in enumerate(rest, 1):
        depth += (letter == opens) - (letter == _ENDS[opens])
        if not depth:
            return number
    return len(rest.rstrip())


def as_data(checked: Checked) -> dict[str, Any]:
    """What was found, for programs; `ok` says whether a gateway would take the whole file."""
    data: dict[str, Any] = {"ok": not checked.errors, "file": checked.file}
    if checked.policy is not None:
        data["hash"] = checked.policy.hash
    data |= {"problems": [], "warnings": []} | ({"notes": []} if checked.notes else {})
    names = {Severity.ERROR: "problems", Severity.WARNING: "warnings", Severity.NOTE: "notes"}
    for found in annotations(checked):
        severity = found.check.severity
        about = {"endColumn": found.end, "severity": severity.value, "help": found.check.help}
        data[names[severity]].append(asdict(found.problem) | about)
    return data


def as_sarif(checked: Checked) -> dict[str, Any]:
    """One run, with a rule for every check there is."""
    driver = {
        "name": "clinic-gateway policy check",
        "version": gateway.__version__,
        "rules": [_rule(check) for check in CHECKS.values()],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(found) for found in annotations(checked)],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(check: Check[Any]) -> dict[str, Any]:
    return {
        "id": check.code,
        "shortDescription": {"text": check.title},
        "fullDescription": {"text": check.help},
        "help": {"text": check.help},
        "defaultConfiguration": {"level": check.severity.value},
    }


def _result(found: Annotation) -> dict[str, Any]:
    problem = found.problem
    place: dict[str, Any] = {"artifactLocation": {"uri": _address(Path(problem.file))}}
    if problem.line:
        place["region"] = {
            "startLine": problem.line,
            "startColumn": problem.column,
            "endLine": problem.line,
            "endColumn": found.end,
        }
    return {
        "ruleId": problem.code,
        "ruleIndex": _CODES.index(problem.code),
        "level": found.check.severity.value,
        "message": {"text": problem.text},
        "locations": [{"physicalLocation": place}],
    }


def _address(path: Path) -> str:
    """The file's address: relative where it lies in this folder, as hosts want it."""
    if not path.is_absolute():
        return quote(path.as_posix())
    here = Path.cwd()
    return quote(path.relative_to(here).as_posix()) if path.is_relative_to(here) else path.as_uri()


def print_annotations(found: Sequence[Annotation]) -> None:
    """Each on stderr, with help once for each check, then how many; colours on a terminal only."""
    console, helped = Console(stderr=True, highlight=False), set[str]()
    for annotation in found:
        for line in _block(annotation, with_help=annotation.problem.code not in helped):
            console.print(line, soft_wrap=True)
        helped.add(annotation.problem.code)
    count = Counter(annotation.check.severity for annotation in found)
    told = [f"{n} {severity}{'s' * (n > 1)}" for severity in Severity if (n := count[severity])]
    console.print(Text(", ".join(told)), soft_wrap=True)


def _block(found: Annotation, *, with_help: bool) -> Iterator[Text]:
    """The problem, its line, a caret under the word, and the help."""
    problem, colour = found.problem, _COLOURS[found.check.severity]
    place = str(problem).removesuffix(f": {problem.text}")
    kind = f"{found.check.severity}[{problem.code}]"
    yield Text.assemble((legible(place), "bold"), ": ", (kind, colour), ": ", legible(problem.text))
    if problem.line:
        shown, before, width = _window(found)
        yield Text.assemble((f"{problem.line:5} | ", "blue"), shown)
        yield Text.assemble(("      | ", "blue"), " " * before, ("^" * width, colour))
    if with_help:
        yield Text.assemble(("      = help: ", "blue"), found.check.help)


def _window(found: Annotation) -> tuple[str, int, int]:
    """What is shown of the line, and where and how wide its carets are, in cells."""
    source, start = found.source, found.problem.column - 1
    first = max(0, start - WIDEST // 2) if len(source) > WIDEST else 0
    shown = legible(source[first : first + WIDEST])
    before = cell_len(shown[: start - first])
    word = shown[start - first : found.end - 1 - first]
    return shown, before, max(1, cell_len(word))
