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


class DocumentErrors(Exception):
    """A file that cannot be used, with everything that is wrong with it; never without one."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, "" where none is near."""
    words = list(known)
    alike = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return next(iter(alike or [each for each in words if each.lower() == word.lower()]), "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean x?)` where a known word is near, else nothing."""
    near = nearest(word, known)
    return f" (did you mean {near}?)" if near else ""
