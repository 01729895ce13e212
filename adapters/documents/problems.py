"""Problems in files, each at its line and column, and the checks that find them."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic, TypeVar

SubjectT = TypeVar("SubjectT")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong with a file: where (line and column count from 1), what, and the remedy.

    The line is 0 where there are none, as in an environment variable or a file that is not there.
    `code` names the check that the file fails, if it has a name. A problem that is `only_sampled`
    was seen in some records alone. Others may differ, so it is a warning.
    """

    file: str
    line: int
    column: int
    text: str
    code: str = field(default="", compare=False)
    only_sampled: bool = field(default=False, compare=False)

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


def run(checks: Iterable[Check[SubjectT]], subject: SubjectT) -> Iterator[Problem]:
    """Yields what fails the checks, each with its code."""
    for check in checks:
        for problem in check.find(subject) if check.find else ():
            yield replace(problem, code=check.code)


class DocumentErrors(Exception):
    """A file cannot be used; the error carries all its problems, of which there is at least one."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


def warnings_of(problems: Sequence[Problem]) -> Sequence[Problem]:
    """Returns problems that only samples show. Raises DocumentErrors with the others, if any."""
    if certain := [problem for problem in problems if not problem.only_sampled]:
        raise DocumentErrors(certain)
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
