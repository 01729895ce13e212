"""What is to be said of a policy file, collected on one walk through it."""

from collections.abc import Callable
from dataclasses import replace

from adapters.documents.document import Document, Place
from adapters.documents.problems import Problem


class Notes:
    """The problems of one document, each at its place and of a kind of its own."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._said: list[tuple[Place, Problem]] = []

    @property
    def problems(self) -> list[Problem]:
        """All that was noted."""
        return [problem for _, problem in self._said]

    def say(self, place: Place, code: str, text: str, *, at_key: bool = False) -> None:
        """Note a problem; `code` is one of those in gateway.policy.reading.kinds."""
        problem = self.document.problem(place, text, at_key=at_key)
        self._said.append((place, replace(problem, code=code)))

    def say_at(self, line: int, column: int, code: str, text: str) -> None:
        """The same where nothing stands."""
        self._said.append(((), Problem(self.document.file, line, column, text, code)))

    def absent(self, place: Place, code: str, text: str) -> None:
        """Note that a name is missing there, unless it may be in what is not kept."""
        if place not in self.document.partial:
            self.say(place, code, text, at_key=True)

    def forget(self, is_moot: Callable[[Place, str], bool]) -> None:
        """Take back what follows from something else, by its place and code."""
        self._said = [each for each in self._said if not is_moot(each[0], each[1].code)]

    def line(self, place: Place) -> int:
        """The line at which something stands."""
        return self.document.marks[place][0]
