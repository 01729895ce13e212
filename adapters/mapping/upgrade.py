"""Rewrites a mapping of version 1 in the form of version 2; comments and layout stay."""

import re

from adapters.documents.document import Document, Place
from adapters.mapping.hours import WEEKDAYS

# What version 2 calls a name of version 1, by its whole place; * is any part.
_RENAMED: tuple[tuple[Place, str], ...] = (
    (("booking", "writes"), "steps"),
    (("booking", "calls"), "steps"),
    (("diary", "free"), "slots"),
    *(
        ((*place, old), "source")
        for old in ("sql", "path")
        for place in (
            ("resources", "*", "key"),
            ("resources", "*", "list", "key"),
            ("resources", "*", "fields", "*"),
            ("resources", "*", "lists", "*", "key"),
            ("resources", "*", "lists", "*", "fields", "*"),
            ("diary", "*", "*", "*"),
            ("booking", "calls", "*", "keep", "*"),
        )
    ),
)
_SCALAR = re.compile(r""""[^"\\]*"|'[^']*'|[0-9:]+""").match
Edit = tuple[int, int, str, str]


def upgraded(document: Document, text: str) -> str:
    """Returns the text of a mapping, which `document` was read from, in the form of version 2.

    Returns it unchanged where it is no mapping of version 1. What it does not know how to rewrite
    stays as it is, and is refused at its line when the mapping is loaded.
    """
    if not isinstance(document.data, dict) or document.data.get("version") != 1:
        return text
    lines = text.splitlines(keepends=True)
    edits = [(*document.marks["version",], "1", "2")]
    edits += [
        (*document.keys[place], str(place[-1]), name)
        for old, name in _RENAMED
        for place in document.keys_like(old)
    ]
    for place in document.keys_like(("diary", "hours", "*", "days")):
        hours = document.data["diary"]["hours"][place[2]]
        if "start" in hours and "end" in hours:
            for number, day in enumerate(hours["days"]):
                mark = document.marks[(*place, number)]
                edits.append((*mark, str(day), WEEKDAYS[int(day) - 1]))
            edits += _one_text(document, lines, place[:-1])
    for line, column, given, new in sorted(edits, reverse=True):
        written = lines[line - 1]
        at = column - 1
        if written.startswith(given, at):
            lines[line - 1] = f"{written[:at]}{new}{written[at + len(given) :]}"
    return "".join(line for line in lines if line != _GONE)


# What is left of a line that had nothing but the end of written hours.
_GONE = "\0\n"


def _one_text(document: Document, lines: list[str], place: Place) -> list[Edit]:
    """Makes `start` and `end` of written hours one `times`; nothing where they are spelt oddly."""
    start, end = _pair(document, lines, place, "start"), _pair(document, lines, place, "end")
    if start is None or end is None:
        return []
    (line, column, written, begins), (last, at, over, ends) = start, end
    times = (line, column, written, f'times: ["{begins}-{ends}"]')
    rest = lines[last - 1][at - 1 + len(over) :]
    before = lines[last - 1][: at - 1]
    if not before.strip(" ") and re.fullmatch(r"\s*(#.*)?\n?", rest):
        return [times, (last, 1, lines[last - 1], _GONE)]
    if found := re.match(r"\s*,\s*", rest):
        return [times, (last, at, over + found[0], "")]
    if found := re.search(r",\s*$", before):
        return [times, (last, found.start() + 1, found[0] + over, "")]
    return []


def _pair(
    document: Document, lines: list[str], place: Place, name: str
) -> tuple[int, int, str, str] | None:
    """Where a plain name and its scalar stand in one line: all that is written, and the value."""
    line, column = document.keys[(*place, name)]
    value_line, value_column = document.marks[(*place, name)]
    written = lines[line - 1]
    scalar = _SCALAR(written, value_column - 1)
    if line != value_line or not written.startswith(name, column - 1) or scalar is None:
        return None
    return line, column, written[column - 1 : scalar.end()], scalar[0].strip("\"'")
