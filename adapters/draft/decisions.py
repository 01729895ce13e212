"""Decides which guesses are written: what is proven, and what somebody says yes to."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from adapters.base import inside
from adapters.draft.clocks import set_clocks
from adapters.draft.columns import parameters
from adapters.draft.readings import columns_in, sample_of
from adapters.draft.records import SPECIAL
from adapters.draft.resource import fill
from adapters.draft.sources import Guess
from adapters.draft.splits import candidates_of
from adapters.draft.tables import Catalog, Rows

# The rows that are shown with a guess, and how long a value may be there.
SHOWN, WIDE = 3, 40
# The rows among which those with a value are looked for.
LOOKED_AT = 60


@dataclass(frozen=True, slots=True)
class Doubt:
    """A guess to be confirmed: about a table, or about a field of its rows.

    `shown` are the values of three rows; they are for the eyes of whoever answers.
    """

    resource: str
    field: str
    guess: str
    why: str
    others: tuple[str, ...]
    shown: tuple[str, ...] = dataclasses.field(repr=False)
    codes: Mapping[str, str | None] = dataclasses.field(default_factory=dict)


# Answers "yes" or "no", or the name of a table or column that is right instead.
Judge = Callable[[Doubt], str]
YES, NO = "yes", "no"
STANDINGS = ("", "confirmed", "accepted")


def decide(catalog: Catalog, judge: Judge | None, *, accept: bool) -> None:
    """Marks what is written: all that is proven, and what the judge confirms.

    Without a judge nothing else is, unless likely guesses are accepted as they are.
    """
    for resource, rows in list(catalog.chosen.items()):
        for place, each in _with_lists(resource, rows):
            if place != resource and not rows.is_written:
                continue
            kept = each
            if not each.proof:
                said = _of_table(place, each, judge, accept=accept)
                if said not in STANDINGS and place == resource:
                    kept = _instead(catalog, resource, said)
                kept.standing = said if said in STANDINGS else "confirmed"
            if kept.is_written:
                _fields(place, kept, judge, accept=accept)


def _with_lists(resource: str, rows: Rows) -> Iterator[tuple[str, Rows]]:
    yield resource, rows
    for name, inner in rows.lists.items():
        yield f"{resource}.{name}", inner


def _of_table(place: str, rows: Rows, judge: Judge | None, *, accept: bool) -> str:
    if judge is None:
        return "accepted" if accept else ""
    names = [*rows.fields][:4]
    why = f"with {', '.join(names)}" if names else "by its name"
    shown = _shown(rows, names)
    source = f"{rows.source.table.name}"
    if rows.where:
        source = f"{source} where {' AND '.join(rows.where)}"
    said = judge(Doubt(place, "", source, why, rows.others, shown))
    return {YES: "confirmed", NO: ""}.get(said, said)


def _instead(catalog: Catalog, resource: str, table: str) -> Rows:
    """Returns the rows of the table that somebody named, with its own guesses."""
    old, source = catalog.chosen[resource], catalog.named(table)
    if source is None:
        return old
    parts = [each for each in candidates_of(source) if each.resource in ("", resource)]
    rows = Rows(resource, old.shapes, (parts or [source])[0], 1.0)
    catalog.chosen[resource] = rows
    fill(rows, SPECIAL.get(resource))
    set_clocks({resource: rows}, catalog.zone, datetime.now(UTC))
    return rows


def _fields(place: str, rows: Rows, judge: Judge | None, *, accept: bool) -> None:
    for name, guess in list(rows.fields.items()):
        if guess.proof:
            continue
        if judge is None:
            rows.fields[name] = replace(guess, standing="accepted" if accept else "")
            continue
        said = judge(_question(place, name, rows, guess))
        if said == YES:
            rows.fields[name] = replace(guess, standing="confirmed")
        elif said != NO:
            rows.fields[name] = _told(rows, name, said)


def _question(place: str, name: str, rows: Rows, guess: Guess) -> Doubt:
    columns = [column for column in rows.source.table.columns if column != guess.name]
    others = (*guess.others, *(column for column in columns if column not in guess.others))
    text = ", ".join(columns_in(guess))
    codes = guess.parameters.get("codes", {})
    clock = guess.parameters.get("as", "")
    why = f"{guess.why}; {clock}" if clock in ("utc time", "local time") else guess.why
    return Doubt(place, name, text, why, others, _shown(rows, [name]), codes)


def _told(rows: Rows, name: str, column: str) -> Guess:
    """Returns the guess that the field is another column of the rows, as somebody said."""
    source, shape = rows.source, inside(rows.shapes)[name]
    given = parameters(source.profiles[column], shape, f"{rows.place}.{name}")
    if shape.format == "date-time" and rows.source.catalog.is_utc and "as" not in given:
        given["as"] = "utc time"
    return replace(source.guess(column, 1.0, "as told", given), standing="confirmed")


def _shown(rows: Rows, names: list[str]) -> tuple[str, ...]:
    """Returns three different rows as texts, of those that have most of the values."""
    sample = sample_of(rows, names, limit=LOOKED_AT)
    lines = dict[str, int]()
    for row in zip(*(sample.get(name, ()) for name in names), strict=True):
        values = [value for raw in row for value in raw if value is not None and str(value).strip()]
        lines[" | ".join(str(value)[:WIDE] for value in values)] = len(values)
    best = sorted(filter(None, lines), key=lambda line: -lines[line])
    return tuple(best[:SHOWN])
