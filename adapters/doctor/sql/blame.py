"""What of a mapping makes a database read a whole table, and the columns for an index."""

import re
from collections.abc import Iterator
from typing import Any

from adapters.doctor.sql.case import SqlCase
from adapters.documents.document import Place

NAME = r"(?:\w+|\"[^\"]+\"|`[^`]+`|\[[^\]]+\])"
_COLUMN = re.compile(rf"(?:(\w+)\.)?({NAME})").fullmatch


def blamed(case: SqlCase, place: Place, alias: str, table: str) -> tuple[Place, list[str]]:
    """What of the mapping makes it scan, and the columns that an index should have."""
    for at, expressions in _compared(case, place):
        columns = [
            each[2]
            for e in expressions
            if (each := _COLUMN(e)) and (each[1] or alias).lower() == alias.lower()
        ]
        if columns and (at[0] != "diary" or _names(case, at[:3], table)):
            return at, columns
    for at, written in _pieces(case, place):
        found = _compared_in(written, alias)
        if found:
            return at, found
    return place, []


def _compared(case: SqlCase, place: Place) -> Iterator[tuple[Place, list[str]]]:
    """Expressions that the gateway itself compares, by their places."""
    mapping = case.core.mapping
    if place[0] == "diary":
        for kind in ("busy", "slots"):
            for number, each in enumerate(getattr(mapping.diary, kind)):
                owner = each.owner.text if each.owner else ""
                yield (
                    ("diary", kind, number, "start"),
                    [*([owner] if owner else []), each.start.text],
                )
        for number, hours in enumerate(mapping.diary.hours):
            yield ("diary", "hours", number), [hours.owner.text if hours.owner else ""]
    elif place[0] == "booking":
        yield place, [mapping.booking.reference or ""]
    else:
        resource = mapping.resources[str(place[1])]
        if "fields" in place:
            yield place, list(resource.fields[str(place[3])].source)
        elif "lists" in place:
            yield (*place, "parent"), list(resource.lists[str(place[3])].parent or ())
        else:
            yield (*place, "key"), list(resource.key.source)


def _names(case: SqlCase, place: Place, table: str) -> bool:
    """Whether the rows at a place are of that table."""
    source = getattr(case.core.mapping.diary, str(place[1]))[place[2]]
    return (
        re.search(rf"\b{re.escape(table.strip(chr(34)))}\b", source.from_ or "", re.IGNORECASE)
        is not None
    )


def _pieces(case: SqlCase, place: Place) -> Iterator[tuple[Place, str]]:
    """The SQL of the mapping there, piece by piece."""
    if place[0] != "resources":
        return
    rows_: Any = case.core.mapping.resources[str(place[1])]
    base = place[:2]
    if "lists" in place:
        rows_, base = rows_.lists[str(place[3])], place[:4]
    for name, each in rows_.fields.items():
        yield (*base, "fields", name), " ".join(each.expressions)
    yield (*base, "from"), rows_.from_
    yield (*base, "where"), rows_.where or ""


def _compared_in(written: str, alias: str) -> list[str]:
    """The columns of a table that a piece of SQL compares with something else's."""
    name = re.escape(alias)
    either = rf"\b{name}\.(\w+)\s*=|=\s*{name}\.(\w+)\b"
    found = [one or other for one, other in re.findall(either, written, re.IGNORECASE)]
    return list(dict.fromkeys(found))[:2]
