"""What is wrong with a file, at its line and column, and what to write instead."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong with a file: where (line and column count from 1), what, and the remedy.

    Line 0 where there are no lines, as in an environment variable or a file that is not there.
    `code` names the kind of problem, where such have names.
    """

    file: str
    line: int
    column: int
    text: str
    code: str = field(default="", compare=False)

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.text}"


@dataclass(frozen=True, slots=True)
class Found:
    """A problem that a look at a practice system found.

    `only_sampled` where nothing but the records that were looked at says so: others may differ, so
    that it is no more than a warning.
    """

    problem: Problem
    only_sampled: bool = False


class DocumentErrors(Exception):
    """A file that cannot be used, with everything that is wrong with it; never without one."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


def warnings_of(found: Iterable[Found]) -> tuple[Problem, ...]:
    """What only samples say; DocumentErrors with all else where there is any."""
    all_ = list(found)
    certain = [each.problem for each in all_ if not each.only_sampled]
    if certain:
        raise DocumentErrors(certain)
    return tuple(each.problem for each in all_)


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, "" where none is near."""
    words = list(known)
    alike = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return next(iter(alike or [each for each in words if each.lower() == word.lower()]), "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean x?)` where a known word is near, else nothing."""
    near = nearest(word, known)
    return f" (did you mean {near}?)" if near else ""
