"""Loads the policy file of a command, and reports its problems as text, JSON or SARIF 2.1.0.

Columns count letters from 1. An end is the column after the last letter.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from os.path import realpath
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

import click
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

import gateway
from adapters.documents.problems import Check, DocumentErrors, Problem, Severity
from gateway.cli.command import Run
from gateway.cli.output import fail, legible, problem_data, say, say_json
from gateway.cli.values import FILE
from gateway.events import counted
from gateway.inquiries.policies import lines_of
from gateway.policy.cases import LARGEST  # more than a policy may have
from gateway.policy.policy import Policy
from gateway.policy.reading import CHECKS
from gateway.policy.reading.checks import Checked
from gateway.policy.reading.document import load_policy

WIDEST = 100
SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
_ENDS = {"[": "]", "{": "}"}
_OWN_NAME = "policies.yaml"
file_argument = click.argument("file", required=False, type=FILE)
_quoted = re.compile(r"""'(?:[^']|'')*'?|"(?:[^"\\]|\\.)*"?""").match
_word = re.compile(r"(?:[^,\[\]{}#:]|:(?=\S)|(?<!\s)#|\[\]\.?|\([^)]*\))+").match


def loaded(run: Run, file: Path | None) -> Policy:
    """Returns the policy; prints its problems and ends the command where it has any."""
    path = chosen(run, file)
    try:
        return load_policy(path, lambda trouble: None)
    except DocumentErrors as error:
        refuse(run, error)


def chosen(run: Run, file: Path | None) -> Path:
    """Returns the named file, or the configured one; ends where the configuration is wrong."""
    if file is not None:
        return file
    try:
        used = run.settings.policy
    except DocumentErrors as error:
        refuse(run, error)
    here = Path.cwd() / _OWN_NAME
    if here.exists() and realpath(here) != realpath(used):
        other = f"{_OWN_NAME} in this folder is another file"
        say(f"note: this is about {used}, which is in use; {other}", err=True)
    return used


def refuse(run: Run, error: DocumentErrors) -> NoReturn:
    """Prints what is wrong with a file, and ends the command."""
    if run.as_json:
        say_json(as_data(Checked(file=error.problems[0].file, errors=error.problems)), indent=2)
    fail(str(error))


def annotations(checked: Checked) -> Iterator[tuple[Problem, Check[Any], str, int]]:
    """Yields problems with their check, their line, and the column where they end, else 0."""

    @cache
    def lines(file: str) -> list[str]:
        try:
            with Path(file).open("rb") as stream:
                return lines_of(stream.read(LARGEST))
        except OSError:
            return []

    for problem in [*sorted((*checked.errors, *checked.warnings)), *checked.notes]:
        source, end = "", 0
        if problem.line:
            [source] = lines(problem.file)[problem.line - 1 : problem.line] or [""]
            end = end_of(source, problem.column)
        yield problem, problem.check, source, end


def end_of(line: str, column: int) -> int:
    """Returns the column where the word, quoted text or bracket at a column ends."""
    rest = line[column - 1 :]
    if not rest:
        return column + 1
    if match := _quoted(rest):
        return column + match.end()
    if rest[0] not in _ENDS:
        match = _word(rest)
        return column + (len(match[0].rstrip()) or 1 if match else 1)
    depth, opens = 0, rest[0]
    for number, letter in enumerate(rest, 1):
        depth += (letter == opens) - (letter == _ENDS[opens])
        if not depth:
            return column + number
    return column + len(rest.rstrip())


def as_data(checked: Checked) -> dict[str, Any]:
    """Returns the problems as JSON. `ok` is whether a gateway would take the whole file."""
    data: dict[str, Any] = {"ok": not checked.errors, "file": checked.file}
    if checked.policy is not None:
        data["hash"] = checked.policy.hash
    data |= {"problems": [], "warnings": []} | ({"notes": []} if checked.notes else {})
    names = {Severity.ERROR: "problems", Severity.WARNING: "warnings", Severity.NOTE: "notes"}
    for problem, check, _, end in annotations(checked):
        data[names[check.severity]].append(problem_data(problem) | {"endColumn": end})
    return data


def as_sarif(checked: Checked) -> dict[str, Any]:
    """Returns the problems as one SARIF run, with a rule for every check."""
    rules = [
        {
            "id": check.code,
            "shortDescription": {"text": check.title},
            "fullDescription": {"text": check.help},
            "help": {"text": check.help},
            "defaultConfiguration": {"level": check.severity.value},
        }
        for check in CHECKS.values()
    ]
    name = "clinic-gateway policy check"
    run = {
        "tool": {"driver": {"name": name, "version": gateway.__version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(problem, end) for problem, _, _, end in annotations(checked)],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(problem: Problem, end: int) -> dict[str, Any]:
    path, here = Path(problem.file), Path.cwd()
    # relative inside this folder, as code hosts require
    if path.is_absolute() and not path.is_relative_to(here):
        uri = path.as_uri()
    else:
        uri = quote((path.relative_to(here) if path.is_absolute() else path).as_posix())
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if problem.line:
        place["region"] = {
            "startLine": problem.line,
            "startColumn": problem.column,
            "endLine": problem.line,
            "endColumn": end,
        }
    return {
        "ruleId": problem.code,
        "ruleIndex": list(CHECKS).index(problem.code),
        "level": CHECKS[problem.code].severity.value,
        "message": {"text": problem.text},
        "locations": [{"physicalLocation": place}],
    }


def print_problems(checked: Checked) -> None:
    """Prints the problems on stderr, with help once for each check, and how many there are."""
    console, helped = Console(stderr=True, highlight=False), set[str]()
    counts = Counter[Severity]()
    for problem, check, source, end in annotations(checked):
        counts[check.severity] += 1
        for line in _block(problem, check.severity, source, end):
            console.print(line, soft_wrap=True)
        if problem.code not in helped:
            console.print(Text.assemble(("      = help: ", "blue"), check.help), soft_wrap=True)
        helped.add(problem.code)
    if counts:
        every = [counted(counts[severity], severity) for severity in Severity if counts[severity]]
        console.print(Text(", ".join(every)), soft_wrap=True)


def _block(problem: Problem, severity: Severity, source: str, end: int) -> Iterator[Text]:
    """Yields the problem, its line, cut to WIDEST, and carets under the word."""
    place = str(problem).removesuffix(f": {problem.text}")
    kind, colour = f"{severity}[{problem.code}]", f"bold {_COLOURS[severity]}"
    yield Text.assemble((legible(place), "bold"), ": ", (kind, colour), ": ", legible(problem.text))
    if problem.line:
        start = problem.column - 1
        first = max(0, start - WIDEST // 2) if len(source) > WIDEST else 0
        shown = legible(source[first : first + WIDEST])
        # in cells of a terminal: a letter may take two
        before = cell_len(shown[: start - first])
        width = max(1, cell_len(shown[start - first : end - 1 - first]))
        yield Text.assemble((f"{problem.line:5} | ", "blue"), shown)
        yield Text.assemble(("      | ", "blue"), " " * before, ("^" * width, colour))
