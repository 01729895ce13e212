"""What is wrong with a file, at its line and column, and the checks that find it."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic, TypeVar

SubjectT = TypeVar("SubjectT")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong with a file: where (line and column count from 1), what, and the remedy.

    Line 0 where there are no lines, as in an environment variable or a file that is not there.
    `code` names the check that the file fails, where checks have names. It is `only_sampled` where
    nothing but the records that were looked at says so: others may differ, so it is a warning.
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
    """One row of a table of checks; the code is for good, since reports and pages name it.

    `title` is a few words, `help` one sentence on what to know or to do. `find` yields what fails
    the check in a subject; a check without it is made where the file is read.
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
    """A file that cannot be used, with everything that is wrong with it; never without one."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


def warnings_of(found: Sequence[Problem]) -> Sequence[Problem]:
    """Returns what only samples say; raises DocumentErrors with all else where there is any."""
    if certain := [problem for problem in found if not problem.only_sampled]:
        raise DocumentErrors(certain)
    return found


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, "" where none is near."""
    words = list(known)
    alike = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return next(iter(alike or [known for known in words if known.lower() == word.lower()]), "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean x?)` where a known word is near, else nothing."""
    near = nearest(word, known)
    return f" (did you mean {near}?)" if near else ""


def hint(word: str, known: Iterable[str]) -> str:
    """The known word that is near; where none is, all of them."""
    words = list(known)
    return did_you_mean(word, words) or f"; it must be one of {', '.join(words)}"
