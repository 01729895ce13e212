"""What refuses a start: one sentence with the remedy."""

from collections.abc import Iterable
from pathlib import Path

from adapters.documents.document import read_document
from adapters.documents.problems import DocumentErrors, Problem


class StartRefused(Exception):
    """Why the gateway does not start: one sentence, with the remedy.

    `setting` is the one that would have to be another, where there is such a one.
    """

    def __init__(self, text: str, setting: str = "") -> None:
        super().__init__(text)
        self.setting = setting


def lacking(mapping: Path, wanted: Iterable[tuple[tuple[str, ...], str]]) -> DocumentErrors:
    """What a mapping does not offer, each at its place there or where it should stand."""
    document = read_document(mapping)

    def problem(place: tuple[str, ...], text: str) -> Problem:
        remedy = f"write {'.'.join(place)}"
        if place in document.marks:
            remedy = "it is mapped, but no list can be filtered by it (see filters and sift)"
        return document.problem(place, f"{text}: {remedy}", at_key=True)

    return DocumentErrors(problem(*each) for each in wanted)
