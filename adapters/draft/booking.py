"""Guesses what a booking writes: the row to insert, a counter, what is still needed."""

from typing import Any

from adapters.draft.database import Column, Table
from adapters.draft.guesses import Draft, Guess, Member, RowsGuess, Step
from adapters.draft.likeness import likeness, tokens
from adapters.draft.links import Links
from adapters.draft.spelling import literal
from adapters.draft.vocabulary import COUNTERS, REFERENCE, TABLES, VALUE

# What a booking has for the fields of an appointment.
DRAFTED = (
    "patientId",
    "clientId",
    "vetId",
    "appointmentTypeId",
    "scheduledAt",
    "endTime",
    "reason",
    "isUrgent",
    "createdAt",
)
REFERENCE_LENGTH = 16
PLACEHOLDER = "TODO"


def guess_booking(draft: Draft, links: Links, rows: RowsGuess) -> None:
    """Fill in the steps of a booking, and where its reference stands."""
    table = links.catalog.table(rows.table)
    if table is None:
        return
    values: dict[str, tuple[Any, str]] = {}
    for field in DRAFTED:
        guess = rows.fields.get(field)
        if guess is not None:
            values.update(_drafted(table, rows, field, guess))
    values.update(_status(links, rows))
    steps = _numbers(links, table, values)
    _reference(draft, links, table, rows, values)
    values.update(_still_needed(table, values))
    lines = [("insert", table.name, ""), ("name", "appointment", "")]
    if len(table.key) == 1 and table.key[0] not in values:
        sure = table.column(table.key[0]).has_default
        said = (
            "the database numbers it" if sure else "TODO: if the database numbers it; or a counter"
        )
        lines.insert(1, ("key", table.key[0], said))
    elif table.key:
        lines.insert(1, ("key", table.key[0], ""))
    written = tuple((name, value, said) for name, (value, said) in values.items())
    draft.steps = [*steps, Step(lines=tuple(lines), values=written)]


def _drafted(table: Table, rows: RowsGuess, field: str, guess: Guess) -> Member:
    """The columns of the appointment's own table that a field is read from."""
    own, _, column = guess.column.partition(".")
    if own != table.name or str(guess.sql).startswith(("SELECT", "CASE")):
        return {}
    given = {
        key: each
        for key, each in guess.parameters.items()
        if key in ("yes", "no", "pattern", "as", "unit")
    }
    if "plus" in guess.parameters:
        return {column: ({"draft": "minutes"}, "")}
    if isinstance(guess.sql, tuple):
        names = [each.rpartition(".")[2].strip('"`[]') for each in guess.sql]
        if field != "scheduledAt":
            return dict.fromkeys(names, (PLACEHOLDER, f"TODO: a part of the key {field}"))
        day, _, clock = guess.parameters.get("pattern", "%Y-%m-%d %H:%M:%S").partition(" ")
        return {
            names[0]: ({"draft": field, "pattern": day}, ""),
            names[-1]: ({"draft": field, "pattern": clock}, ""),
        }
    return {column: ({"draft": field, **given}, "")}


def _status(links: Links, rows: RowsGuess) -> Member:
    status = rows.fields.get("status")
    if status is not None and status.own:
        return _explained(links, status)
    if status is None or status.column.partition(".")[0] != rows.table:
        return {}
    codes = status.parameters.get("codes", {})
    planned = [code for code, value in codes.items() if value == "SCHEDULED" and code]
    if not planned:
        return {status.column.partition(".")[2]: ("TODO", "TODO: the code of a new appointment")}
    return {status.column.partition(".")[2]: (planned[0], "likely: the code of a new appointment")}


def _explained(links: Links, status: Guess) -> Member:
    """The key of the label that a new appointment has."""
    name, _, label = status.column.partition(".")
    labels, codes = links.catalog.table(name), status.parameters.get("codes", {})
    if labels is not None and len(labels.key) == 1:
        pairs = zip(labels.values(labels.key[0]), labels.values(label), strict=True)
        for key, said in pairs:
            if codes.get(str(said).strip()) == "SCHEDULED" and isinstance(key, int | str):
                return {status.own: (key, "likely: the code of a new appointment")}
    return {status.own: ("TODO", "TODO: the code of a new appointment")}


def _numbers(links: Links, table: Table, values: Member) -> list[Step]:
    """A counter or a sequence that seems to count appointments."""
    steps = []
    for each in links.catalog.tables:
        if likeness(links.catalog.called(each), COUNTERS) < 0.8:
            continue
        name = next((c.name for c in each.columns if c.kind == "text" and c.codes), None)
        column = links.catalog.best(each, VALUE, ("number", "epoch", "flag"), least=0.5)
        column = column or next((c.name for c in each.columns if c.kind == "integer"), None)
        codes = links.catalog.look(each, name).codes if name else ()
        best = max(codes, key=lambda c: likeness(tokens(c), TABLES["appointments"]), default="")
        if column is None or name is None or likeness(tokens(best), TABLES["appointments"]) < 0.6:
            continue
        where = f"{links.q(name)} = {literal(best)}"
        lines = [
            ("counter", each.name, "guess"),
            ("where", where, ""),
            ("column", column, ""),
            ("name", "number", ""),
        ]
        steps.append(Step(lines=tuple(lines)))
    for sequence in links.catalog.database.sequences:
        alike = likeness(tokens(sequence), TABLES["appointments"]) >= 0.6
        if alike and not steps and not _is_own(table, sequence):
            steps.append(Step(lines=(("sequence", sequence, "guess"), ("name", "number", ""))))
    column = _numbered(links, table, values)
    if steps and column is not None:
        values[column] = ({"sql": ":number"}, "TODO: how is the number written?")
    return steps[:1] if column is not None else []


def _is_own(table: Table, sequence: str) -> bool:
    """Whether the sequence numbers the table's own key."""
    return len(table.key) == 1 and sequence == f"{table.name}_{table.key[0]}_seq"


def _numbered(links: Links, table: Table, values: Member) -> str | None:
    wanted = (("num",), ("number",), ("numero",), ("nummer",), ("nr",), ("no",))
    for each in table.columns:
        is_unique = (each.name,) in table.unique
        if each.name in values or each.name in table.key:
            continue
        if links.catalog.alike(table, each.name, wanted) >= 0.8 or (
            is_unique and set(tokens(each.name)) & {"num", "nr", "no"}
        ):
            return each.name
    return None


def _reference(draft: Draft, links: Links, table: Table, rows: RowsGuess, values: Member) -> None:
    column = links.catalog.best(table, REFERENCE, least=0.7)
    if column is None or column in values or table.column(column).kind != "text":
        return
    if (table.column(column).length or REFERENCE_LENGTH) >= REFERENCE_LENGTH:
        draft.reference = f"{rows.alias}.{links.q(column)}"
        values[column] = {"draft": "reference"}, ""


def _still_needed(table: Table, values: Member) -> Member:
    """Columns that must be written and have no default: the clinic knows what to write."""
    return {
        each.name: (_placeholder(each), f"TODO: {each.name} must be written; what with?")
        for each in table.columns
        if not each.nullable
        and not each.has_default
        and each.name not in values
        and not (len(table.key) == 1 and each.name in table.key and each.kind == "integer")
    }


def _placeholder(column: Column) -> Any:
    return {"integer": 0, "number": 0, "boolean": False}.get(column.kind, "TODO")
