"""What `policy check` says of one problem, in whatever format: its kind, its line, how far it goes.

Columns count letters from 1; an end is the column behind the last letter.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from adapters.documents.problems import Problem
from gateway.inquiries.policies import lines_of
from gateway.policy.cases.file import LARGEST  # more than a policy may have
from gateway.policy.reading.checked import Checked
from gateway.policy.reading.kinds import KINDS, Kind, Severity

_quoted = re.compile(r"""'(?:[^']|'')*'?|"(?:[^"\\]|\\.)*"?""").match
_word = re.compile(r"(?:[^,\[\]{}#:]|:(?=\S)|(?<!\s)#|\[\]\.?|\([^)]*\))+").match
# What is wrong with another file, such as the configuration.
_OTHER = Kind("not in order", "")
_ENDS: Mapping[str, str] = {"[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One problem with its kind; `source` is its line, `end` 0 where it has no line."""

    problem: Problem
    kind: Kind
    source: str
    end: int

    @property
    def severity(self) -> Severity:
        return self.kind.severity


def entries_of(checked: Checked) -> list[Entry]:
    """Errors and warnings in the order of the file, then notes."""
    return list(_entries([*sorted((*checked.errors, *checked.warnings)), *checked.notes]))


def _entries(problems: Iterable[Problem]) -> Iterator[Entry]:
    known: dict[str, list[str]] = {}
    for problem in problems:
        if problem.file not in known:
            known[problem.file] = _lines(Path(problem.file)) if problem.line else []
        lines = known[problem.file]
        inside = 0 < problem.line <= len(lines)
        source = lines[problem.line - 1] if inside else ""
        end = end_of(source, problem.column) if problem.line else 0
        yield Entry(problem, KINDS.get(problem.code, _OTHER), source, end)


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST)
    except OSError:
        return []
    return lines_of(content)


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
