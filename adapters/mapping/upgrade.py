"""Rewrites a mapping of version 1 in the form of version 2; comments and layout stay."""

import re

from adapters.documents.document import Document, Place
from adapters.mapping.hours import WEEKDAYS

# The names of version 1 by their whole place, where * is any part, and those of version 2.
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
    """Returns the text of a mapping, from which `document` was read, in the form of version 2.

    Returns it unchanged where it is no mapping of version 1. What cannot be rewritten stays as it
    is, and is refused at its line when the mapping is loaded.
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


# Marks a line that had only the end of written hours, to be removed.
_GONE = "\0\n"


def _one_text(document: Document, lines: list[str], place: Place) -> list[Edit]:
    """Makes `start` and `end` of written hours one `times`, unless they are spelt oddly."""
    start, end = _pair(document, lines, place, "start"), _pair(document, lines, place, "end")
    if start is None or end is None:
        return []
    (line, column, written, begins), (last, at, over, ends) = start, end
    times = (line, column, written, f'times: ["{begins}-{ends}"]')
    rest = lines[last - 1][at - 1 + len(over) :]
    before = lines[last - 1][: at - 1]
    if not before.strip(" ") and re.fullmatch(r"\s*(#.*)?\n?", rest):
        return [times, (last, 1, lines[last - 1], _GONE)]
    if comma := re.match(r"\s*,\s*", rest):
        return [times, (last, at, over + comma[0], "")]
    if comma := re.search(r",\s*$", before):
        return [times, (last, comma.start() + 1, comma[0] + over, "")]
    return []


def _pair(
    document: Document, lines: list[str], place: Place, name: str
) -> tuple[int, int, str, str] | None:
    """Returns the mark of a name and value in one line, all its text, and the value; or None."""
    line, column = document.keys[(*place, name)]
    value_line, value_column = document.marks[(*place, name)]
    written = lines[line - 1]
    scalar = _SCALAR(written, value_column - 1)
    if line != value_line or not written.startswith(name, column - 1) or scalar is None:
        return None
    return line, column, written[column - 1 : scalar.end()], scalar[0].strip("\"'")
