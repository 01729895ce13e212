"""Guesses which column is which field of a resource, and how its values are written."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from adapters.base import FieldShape
from adapters.draft.database import Table
from adapters.draft.guesses import Guess
from adapters.draft.likeness import likeness, tokens
from adapters.draft.looks import Look, is_code
from adapters.draft.spelling import quoted
from adapters.draft.tables import Catalog
from adapters.draft.vocabulary import CODE_WORDS, ID, NOT_PHONES, WORDS

LEAST = 0.5
_FITS: dict[str, dict[str, float]] = {
    "date-time": {"moment": 1, "epoch": 0.9, "day": 0.7},
    "date": {"day": 1, "moment": 0.9, "epoch": 0.6},
    "boolean": {"flag": 1, "number": 0.2},
    "number": {"number": 1},
    "integer": {"number": 1, "clock": 0.6},
    "money": {"number": 1},
    "percent": {"number": 1},
    "email": {"email": 1, "text": 0.4},
    "color": {"colour": 1, "number": 0.8, "text": 0.3},
    "text": {"text": 1, "number": 0.6, "flag": 0.3, "phone": 0.4, "email": 0.1, "colour": 0.4},
    "enum": {"flag": 0.8, "text": 0.2, "number": 0.2},
    "phone": {"phone": 1, "number": 0.7, "text": 0.5},
}
_SELF_READ = {
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M",
}
_ZEROS = ("0000-00-00", "1900-01-01", "1000-01-01")
# Texts that may well be numbers.
_NUMBERS = {"microchip", "number", "reference", "batchNumber"}


def columns_of(
    catalog: Catalog,
    table: Table,
    alias: str,
    resource: str,
    shapes: Mapping[str, FieldShape],
    taken: Iterable[str] = (),
) -> dict[str, Guess]:
    """The best column of each field that has one; no column serves two."""
    used, guesses = set(taken), {}
    scored = sorted(_scored(catalog, table, resource, shapes, used), reverse=True)
    for score, _, field, column in scored:
        if field in guesses or column in used:
            continue
        used.add(column)
        others = tuple(c for s, _, f, c in scored if f == field and c != column and s >= 0.6)[:2]
        look = catalog.look(table, column)
        named = catalog.alike(table, column, WORDS[resource].get(field, ()))
        why = "by its name" if named >= 0.5 else "by its values"
        is_odd = unreadable(look, shapes[field].format)
        if is_odd:
            why = f"TODO: days written as {look.pattern}; make YYYY-MM-DD of it in SQL"
        guesses[field] = Guess(
            sql=f"{alias}.{quoted(catalog.dialect, column)}",
            score=0.55 if is_odd else score,
            why=why,
            column=f"{table.name}.{column}",
            others=others,
            parameters=parameters(look, shapes[field], f"{resource}.{field}"),
        )
    return guesses


def _scored(
    catalog: Catalog,
    table: Table,
    resource: str,
    shapes: Mapping[str, FieldShape],
    taken: set[str],
) -> Iterator[tuple[float, int, str, str]]:
    for field, wanted in WORDS[resource].items():
        for place, column in enumerate(table.columns):
            if column.name in taken:
                continue
            fit = _fit(catalog, table, column.name, field, shapes[field])
            name = catalog.alike(table, column.name, wanted)
            if (field == "email" and fit == 1) or (field == "phone" and fit == 1):
                name = max(name, 0.45)
            if field == "phone" and likeness(tokens(column.name), NOT_PHONES[:1]) > 0.6:
                continue
            score = 0.75 * name + 0.25 * fit
            if fit and name >= 0.45 and score >= LEAST:
                yield score, -place, field, column.name


def _fit(catalog: Catalog, table: Table, column: str, field: str, shape: FieldShape) -> float:
    """How well the values fit the field; 0 where they can't be it."""
    look, declared = catalog.look(table, column), table.column(column)
    if shape.values:
        return 1.0 if is_code(look) else _FITS["enum"].get(look.kind, 0)
    if field == "phone":
        return _FITS["phone"].get(look.kind, 0)
    if look.longest == 0 and declared.kind == "text":
        return 0.4  # a text without a value may be anything
    fit = _FITS[shape.format].get(look.kind, 0.0)
    if shape.format == "text" and field in _NUMBERS and look.kind in ("number", "phone"):
        return 1.0
    is_key = look.kind == "number" and len(tokens(column)) > 1 and set(tokens(column)) & ID
    if shape.format == "text" and is_key and field not in _NUMBERS:
        return 0.0  # a key of another table, whatever it is called
    return fit


def parameters(look: Look, shape: FieldShape, place: str) -> dict[str, Any]:
    """How the converter of the field has to read such values."""
    if shape.values:
        return {"codes": codes_of(look, place)}
    if shape.format in ("date-time", "date"):
        return times(look, shape.format)
    if shape.format == "boolean" and look.yes and look.yes not in ((1,), (True,)):
        return {"yes": list(look.yes), "no": list(look.no)}
    if shape.format == "email" or not shape.many:
        return {}
    return {"separator": ";"}


def times(look: Look, form: str) -> dict[str, Any]:
    """The converter of a time, and its pattern."""
    found: dict[str, Any] = {}
    if form == "date-time" and look.kind == "epoch":
        found["as"] = "epoch"
        if look.milliseconds:
            found["unit"] = "milliseconds"
        return found
    if form == "date-time" and look.zoned:
        found["as"] = "zoned time"
    # a time by a pattern without hours cannot be read back: see `unreadable`
    if look.pattern is not None and look.pattern not in _SELF_READ and not unreadable(look, form):
        found["pattern"] = look.pattern
    strange = [each for each in look.zeros if each[:10] not in _ZEROS]
    if strange:
        found["zero"] = [*_ZEROS, *sorted({each[:10] for each in strange})]
    return found


def unreadable(look: Look, form: str) -> bool:
    """Whether these are days in a spelling of which a time can't be made without the clinic."""
    pattern = look.pattern
    return form == "date-time" and bool(pattern) and pattern not in _SELF_READ and not look.has_time


def codes_of(look: Look, place: str) -> dict[str, str | None]:
    """Each code that was seen, with the value that it most likely stands for, or None."""
    if not is_code(look):
        return {}
    table = {code: meaning(code, place) for code in look.codes if code}
    if look.blank and place == "appointments.status":
        table[""] = "SCHEDULED"
    return table


def meaning(code: str, place: str) -> str | None:
    """The value of an enumeration that the code most likely stands for."""
    scored = [(likeness(tokens(code), words), value) for value, words in CODE_WORDS[place].items()]
    score = max((score for score, _ in scored), default=0.0)
    best = [value for each, value in scored if each == score]
    return best[0] if score >= 0.7 else None
