"""Problems in files, each at its line and column, and the checks that find them."""

import difflib
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from string import Template
from typing import Any, Generic, TypeVar

SubjectT = TypeVar("SubjectT")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong with a file: where (line and column count from 1), what, and the remedy.

    The line is 0 where there are none, as in an environment variable or a file that is not there.
    `code` names the check that the file fails, if it has a name.
    """

    file: str
    line: int
    column: int
    text: str
    code: str = field(default="", compare=False)
    check: "Check[Any]" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "check", _KNOWN[self.code])

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.text}"


class Severity(StrEnum):
    """An `error` keeps a file from being used; a `warning` is worth a look; a `note` tells."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Check(Generic[SubjectT]):
    """One row of a table of checks. Its code never changes, as reports and pages name it.

    `title` is a few words, `help` one sentence on what to know or to do. `find` yields what fails
    the check in a subject. A check without it is made where the file is read.
    """

    code: str
    title: str
    help: str
    severity: Severity = Severity.ERROR
    find: Callable[[SubjectT], Iterable[Problem]] | None = None


# Every check there is; what is wrong with a file without checks is an error, too.
_KNOWN: dict[str, Check[Any]] = {"": Check("", "not in order", "")}


def read_checks(module: str, table: str = "checks.toml", **words: str) -> Mapping[str, Check[Any]]:
    """Returns the checks of a table beside a module, and keeps them; `words` replace `$names`."""
    found: dict[str, Check[Any]] = {}
    text = Path(module).with_name(table).read_text(encoding="utf-8")
    for code, row in tomllib.loads(text).items():
        told = Template(row["help"]).substitute(words)
        found[code] = Check(code, row["title"], told, Severity(row.get("severity", "error")))
    _KNOWN.update(found)
    return found


def run(checks: Iterable[Check[SubjectT]], subject: SubjectT) -> Iterator[Problem]:
    """Yields what fails the checks, each with its code."""
    for check in checks:
        for problem in check.find(subject) if check.find else ():
            yield replace(problem, code=check.code)


class Misfit(ValueError):
    """A value that a model does not take, and the code of the check that it fails."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class DocumentErrors(Exception):
    """A file cannot be used; the error carries all its problems, of which there is at least one."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


def warnings_of(problems: Sequence[Problem]) -> Sequence[Problem]:
    """Returns problems that are warnings. Raises DocumentErrors with the errors, if any."""
    if errors := [problem for problem in problems if problem.check.severity is Severity.ERROR]:
        raise DocumentErrors(errors)
    return problems


def nearest(word: str, known: Iterable[str]) -> str:
    """Returns the known word that was probably meant; "" where none is near."""
    words = list(known)
    alike = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return next(iter(alike or [known for known in words if known.lower() == word.lower()]), "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns ` (did you mean x?)` where a known word is near, else an empty text."""
    near = nearest(word, known)
    return f" (did you mean {near}?)" if near else ""


def hint(word: str, known: Iterable[str]) -> str:
    """Returns a hint at the known word that is near; where none is, at all of them."""
    words = list(known)
    return did_you_mean(word, words) or f"; it must be one of {', '.join(words)}"
