"""Rewrites a mapping of version 1 in the form of version 2; comments and layout stay."""

import re
from collections.abc import Iterator
from typing import Any

from adapters.documents.document import Document, Place

# Names of version 1, by where they stand (* is any part), and what version 2 calls them.
_RENAMED: tuple[tuple[str, Place, str], ...] = (
    ("sql", ("resources",), "source"),
    ("sql", ("diary",), "source"),
    ("path", ("resources",), "source"),
    ("path", ("diary",), "source"),
    ("path", ("booking", "calls"), "source"),
    ("writes", ("booking",), "steps"),
    ("calls", ("booking",), "steps"),
    ("free", ("diary",), "slots"),
)
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
Edit = tuple[int, int, str, str]
_SCALAR = r"""(?:"[^"]*"|'[^']*'|[^\s,}#]+)"""


def upgraded(document: Document, text: str) -> str:
    """Returns the text of a mapping, which `document` was read from, in the form of version 2.

    Returns it unchanged where it is no mapping of version 1.
    """
    if not isinstance(document.data, dict) or document.data.get("version") != 1:
        return text
    lines = text.splitlines(keepends=True)
    edits = [*_renames(document), *_weekdays(document), (*document.marks["version",], "1", "2")]
    for line, column, old, new in sorted(edits, reverse=True):
        written = lines[line - 1]
        at = column - 1 + written.startswith(('"', "'"), column - 1)
        if written.startswith(old, at):
            lines[line - 1] = f"{written[:at]}{new}{written[at + len(old) :]}"
    for place, item in reversed([*_written_hours(document)]):
        _one_text(lines, document, place, item)
    return "".join(lines)


def _renames(document: Document) -> Iterator[Edit]:
    for place, (line, column) in document.keys.items():
        for old, within, new in _RENAMED:
            named = place[-1] == old and place[: len(within)] == within
            # a field, a code or a kept value may have that name too
            if named and place[-2] not in ("fields", "codes", "keep", "query", "body"):
                yield line, column, old, new


def _weekdays(document: Document) -> Iterator[Edit]:
    """The numbers of weekdays, in hours that are written in the file."""
    for place, item in _written_hours(document):
        for number, day in enumerate(item["days"]):
            line, column = document.marks[(*place, "days", number)]
            yield line, column, str(day), _DAYS[int(day) - 1]


def _one_text(lines: list[str], document: Document, place: Place, item: dict[str, Any]) -> None:
    """Makes `start` and `end` of written hours one `times`."""
    begins, _ = document.keys[(*place, "start")]
    ends, _ = document.keys[(*place, "end")]
    times = f'times: ["{item["start"]}-{item["end"]}"]'
    lines[begins - 1] = re.sub(rf"\bstart\s*:\s*{_SCALAR}", times, lines[begins - 1], count=1)
    if re.match(r"\s*end\s*:", lines[ends - 1]):
        del lines[ends - 1]
    else:
        pair = rf"(,\s*end\s*:\s*{_SCALAR})|(\bend\s*:\s*{_SCALAR}\s*,?\s*)"
        lines[ends - 1] = re.sub(pair, "", lines[ends - 1], count=1)


def _written_hours(document: Document) -> Iterator[tuple[Place, dict[str, Any]]]:
    diary = document.data.get("diary")
    hours = diary.get("hours") if isinstance(diary, dict) else None
    for number, item in enumerate(hours if isinstance(hours, list) else ()):
        if isinstance(item, dict) and {"days", "start", "end"} <= item.keys():
            yield ("diary", "hours", number), item
