"""One thing wrong with a file that is no YAML, and the words that several of them share."""

from typing import NamedTuple

NO_YAML = "this is not YAML: "
TWICE = (
    "a second `name: value` stands in one line: give it a line of its own, write {a: b}, or put the"
    " text in quotes if the colon is part of it"
)


class Fault(NamedTuple):
    """A line of the file and a column, both from 0, what is wrong there, and of which kind."""

    line: int
    column: int
    text: str
    code: str = "not-yaml"
