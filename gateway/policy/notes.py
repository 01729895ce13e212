"""What is wrong with a policy file, collected on one walk through it."""

from dataclasses import replace

from adapters.document import Document, Place
from adapters.problems import Problem


class Notes:
    """The problems of one document, each at its place and of a kind of its own."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []

    def say(self, place: Place, code: str, text: str, *, at_key: bool = False) -> None:
        """Note a problem; `code` is one of those in gateway.policy.kinds."""
        problem = self.document.problem(place, text, at_key=at_key)
        self.problems.append(replace(problem, code=code))

    def absent(self, place: Place, code: str, text: str) -> None:
        """Note that a name is missing there, unless it may be in what is not kept."""
        if place not in self.document.partial:
            self.say(place, code, text, at_key=True)

    def line(self, place: Place) -> int:
        """The line at which something stands."""
        return self.document.marks[place][0]
