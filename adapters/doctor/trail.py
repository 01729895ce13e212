"""Follows each value of one record: from the row, by the mapping's line, to what is served."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from itertools import chain
from typing import Any

from adapters.documents.document import Document, Place
from adapters.mapped.generated import RowValue
from adapters.mapped.records import RowReader
from adapters.mapping.explanation import converter_of, source_of
from adapters.mapping.models import ValueSource
from adapters.values.convert import Codes, Unreadable, bits, plain

NOT_MAPPED = "null: it is not in the mapping"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """How one field of a record came about.

    `field` is such as `phone` or `lines[0].total`, `path` the same without the number. `raw` is the
    value in the row, a list of several columns. `place` is `file:line:column` of the mapping.
    `note` tells of a code, or of why the value is null; `leads` of where a reference leads.
    """

    field: str
    path: str
    value: Any
    raw: Any = None
    source: str = ""
    place: str = ""
    converter: str = ""
    note: str = ""
    refers: str | None = None
    leads: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One row of the practice system, whether or not it is a record.

    `row` is as the reader takes it, `lists` has the rows of the lists inside it, and `whole` all
    that the practice system gives of it, by name. `hidden` says why it is no record, "" if it is.
    """

    row: Any
    lists: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    whole: Mapping[str, Any] = field(default_factory=dict)
    hidden: str = ""


def trails(document: Document, resource: str, rows: RowReader, found: Found) -> list[Trail]:
    """Returns the trail of each field of a record, those of the lists inside it at the end."""
    place: Place = ("resources", resource)
    made = list(_of_row(document, resource, rows, found.row, place, ""))
    for name, inner in rows.lists.items():
        for number, row in enumerate(found.lists.get(name, ())):
            at, prefix = (*place, "lists", name), f"{name}[{number}]."
            made += _of_row(document, resource, inner, row, at, prefix)
    for name in sorted({path.split("[].")[0] for path in rows.filled() if "[]." in path}):
        if not found.lists.get(name):
            trail = Trail(field=f"{name}[]", path=f"{name}[]", value=[], note="no rows in the list")
            made.append(replace(trail, place=_place_of(document, (*place, "lists", name))))
    return made


def _of_row(
    document: Document, resource: str, rows: RowReader, row: Any, place: Place, prefix: str
) -> Iterator[Trail]:
    mapped = rows.mapped
    for name, shape in rows.shapes.items():
        own = name == "id" and rows.own_id is not None
        value = rows.own_id if own else rows.by_name.get(name)
        source = mapped.key if own else mapped.fields.get(name)
        named = {"field": prefix + name, "path": rows.prefix + name}
        if value is None or source is None:
            yield Trail(**named, value=None, note=NOT_MAPPED)
            continue
        at = (*place, "key") if own else (*place, "fields", name)
        how = f"{source.ids} of {resource}" if own else converter_of(source, shape)
        raw, made, note = _followed(value, source, row)
        yield Trail(
            **named,
            value=made,
            raw=raw,
            source=source_of(source),
            place=_place_of(document, at),
            converter=how,
            note=note,
            refers=None if own else shape.refers,
        )


def _place_of(document: Document, place: Place) -> str:
    problem = document.problem(place, "")
    return f"{problem.file}:{problem.line}:{problem.column}"


def _followed(value: RowValue, source: ValueSource, row: Any) -> tuple[Any, Any, str]:
    """Returns the raw value, what the converter makes of it, and a note."""
    try:
        raw = value.plain(row)
    except Unreadable:
        return None, None, "null: the expression finds nothing that can be read in this row"
    shown = as_shown(raw)
    try:
        made = value.decode(raw)
    except Unreadable as error:
        why = "its codes do not name it" if error.kind == "unknown code" else "it cannot be read"
        return shown, None, f"null: {why} ({error.kind})"
    if isinstance(value.converter, Codes):
        return shown, made, _of_code(source, raw, made)
    empty = raw is None or (isinstance(raw, tuple) and all(part is None for part in raw))
    if made is None:
        return shown, None, "null: the row has no value" if empty else "null: it stands for none"
    return shown, made, ""


def _of_code(source: ValueSource, raw: Any, made: Any) -> str:
    code = plain(bits(raw))
    if code is None:
        told = "''" if "" in (source.codes or {}) else ""
        return f"code {told}: {_word(made)}" if told else "null: the row has no value"
    return f"code {code}: {_word(made)}"


def _word(value: Any) -> str:
    return "null" if value is None else str(value)


def as_shown(raw: Any) -> Any:
    """Returns a raw value as JSON can hold it; bytes that are no text as hexadecimal digits."""
    if isinstance(raw, Mapping):
        return {str(name): as_shown(member) for name, member in raw.items()}
    if isinstance(raw, tuple | list):
        return [as_shown(part) for part in raw]
    return raw if isinstance(raw, bool | int | float | str | None) else _text_of(raw)


def _text_of(raw: Any) -> str:
    if isinstance(raw, bytes | bytearray | memoryview):
        data = bytes(raw)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return f"0x{data.hex()}"
    if isinstance(raw, datetime):
        return raw.isoformat(" ")
    return f"{raw:f}" if isinstance(raw, Decimal) and raw.is_finite() else str(raw)


def ids_in(made: Sequence[Trail]) -> dict[str, set[str]]:
    """Returns the ids that the trails refer to, by resource."""
    found: dict[str, set[str]] = {}
    for trail in made:
        if trail.refers and trail.value:
            values = trail.value if isinstance(trail.value, list) else [trail.value]
            found.setdefault(trail.refers, set()).update(chain(values))
    return found
