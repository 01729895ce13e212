"""Guesses when there is time and what a booking writes: hours, what blocks, the rows to insert."""

from typing import Any

from adapters.sql.draft.database import Column, Table
from adapters.sql.draft.fields import times
from adapters.sql.draft.guesses import Draft, Guess, RowsGuess, Step
from adapters.sql.draft.likeness import likeness, tokens
from adapters.sql.draft.links import Links
from adapters.sql.draft.looks import Look
from adapters.sql.draft.spelling import alias_for, literal, table_name
from adapters.sql.draft.tables import best_reference
from adapters.sql.draft.vocabulary import (
    ABSENCES,
    COUNTERS,
    DAY,
    ENDS,
    HOURS,
    MINUTES,
    REFERENCE,
    STARTS,
    TABLES,
    VALUE,
    WEEKDAY,
)

Member = dict[str, tuple[Any, str]]
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


def guess_diary(draft: Draft, links: Links) -> None:
    """Fill in the hours, what blocks, and the writes of a booking."""
    for table in links.catalog.tables:
        hours = _hours(links, table)
        if hours is not None:
            draft.hours.append(hours)
    appointments = draft.resources.get("appointments")
    if appointments is None:
        return
    draft.busy.append(_appointments(draft, links, appointments))
    draft.busy += [each for t in links.catalog.tables if (each := _absences(links, t)) is not None]
    _booking(draft, links, appointments)


def _vet(links: Links, table: Table, alias: str) -> str | None:
    found = best_reference(links.catalog, table, "vets", links.chosen)
    return None if found is None else f"{alias}.{links.q(found[1])}"


def _hours(links: Links, table: Table) -> Member | None:
    """A table with a vet, a weekday or a date, and two times of day."""
    catalog, alias = links.catalog, alias_for(table.name, ())
    name = likeness(catalog.called(table), HOURS)
    start = catalog.best(table, STARTS, ("clock",), least=0.5)
    end = catalog.best(table, ENDS, ("clock",), least=0.5)
    vet = _vet(links, table, alias)
    chosen = {each.table.name for each in links.chosen.values()}
    if start is None or end is None or vet is None or start == end or table.name in chosen:
        return None
    weekday = catalog.best(table, WEEKDAY, ("number",), least=0.6)
    day = catalog.best(table, DAY, ("day", "moment"), least=0.5)
    if weekday is None and day is None:
        return None
    said = "likely: by its columns" if name >= 0.6 else "guess: by its columns"
    found: Member = {"from": (f"{table_name(links.dialect, table)} {alias}", said)}
    found.update(_only(links, table, alias))
    found["vet"] = vet, ""
    if weekday is not None:
        seen = ", ".join(catalog.look(table, weekday).codes)
        found["weekday"] = f"{alias}.{links.q(weekday)}", f"TODO: 1 must be Monday; seen: {seen}"
    else:
        found["day"] = f"{alias}.{links.q(str(day))}", ""
    found["start"] = f"{alias}.{links.q(start)}", ""
    found["end"] = f"{alias}.{links.q(end)}", "not after the start: it ends on the next day"
    return found


def _only(links: Links, table: Table, alias: str) -> Member:
    conditions = [sql for sql, _ in links.existing(table, alias)]
    return {"where": (" AND ".join(conditions), "")} if conditions else {}


def _absences(links: Links, table: Table) -> Member | None:
    catalog, alias = links.catalog, alias_for(table.name, ())
    start = catalog.best(table, STARTS, ("moment", "day", "epoch"), least=0.5)
    end = catalog.best(table, ENDS, ("moment", "day", "epoch"), least=0.5)
    if likeness(catalog.called(table), ABSENCES) < 0.55 or start is None or end is None:
        return None
    found: Member = {"from": (f"{table_name(links.dialect, table)} {alias}", "likely: by its name")}
    found.update(_only(links, table, alias))
    vet = _vet(links, table, alias)
    if vet is not None:
        found["vet"] = vet, ""
    for name, column in (("start", start), ("end", end)):
        found[name] = _time(f"{alias}.{links.q(column)}", catalog.look(table, column)), ""
    found["endless"] = True, "TODO: is a vet without an end away for good?"
    return found


def _time(sql: str, look: Look) -> Any:
    given = times(look, "date-time")
    return {"sql": sql, **given} if given else sql


def _appointments(draft: Draft, links: Links, rows: RowsGuess) -> Member:
    """What blocks: appointments that are neither cancelled nor missed."""
    found: Member = {"from": (rows.from_, "")}
    conditions = [sql for sql, _ in rows.where]
    status = rows.fields.get("status")
    if status is not None and isinstance(status.sql, str):
        free = [
            code
            for code, value in status.parameters.get("codes", {}).items()
            if value in ("CANCELLED", "NO_SHOW")
        ]
        conditions += [_not_in(links, rows, status, free)] if free else []
    if conditions:
        found["where"] = " AND ".join(conditions), "TODO: which ones do not block?"
    if rows.key is not None:
        found["key"] = _whole(rows.key), "the appointment's own"
    for name, field in (("vet", "vetId"), ("start", "scheduledAt"), ("end", "endTime")):
        guess = rows.fields.get(field)
        if guess is not None:
            pattern = guess.parameters.get("pattern", "%Y")
            said = "" if pattern.startswith("%Y") else "TODO: make YYYY-MM-DD of it, which sorts"
            found[name] = _whole(guess), said
    if "end" not in found or "plus" in rows.fields["endTime"].parameters:
        found.pop("end", None)
        found.update(_minutes(links, rows))
    if "start" not in found:
        found["start"] = "NULL", "TODO: when does it start?"
    return found


def _not_in(links: Links, rows: RowsGuess, status: Guess, free: list[str]) -> str:
    table = links.catalog.table(status.column.partition(".")[0])
    column = status.column.partition(".")[2]
    kind = table.column(column).kind if table is not None else "text"
    is_number = kind == "integer" or (kind == "boolean" and all(map(str.isdecimal, free)))
    codes = ", ".join(each if is_number else literal(each) for each in free)
    other = "-1" if is_number else "''"
    return f"COALESCE({status.sql}, {other}) NOT IN ({codes})"


def _whole(guess: Guess) -> Any:
    sql = list(guess.sql) if isinstance(guess.sql, tuple) else guess.sql
    return {"sql": sql, **guess.parameters} if guess.parameters else sql


def _minutes(links: Links, rows: RowsGuess) -> Member:
    table = links.catalog.table(rows.table)
    minutes = table and links.catalog.best(table, MINUTES, ("number", "clock"), least=0.7)
    return {"minutes": (f"{rows.alias}.{links.q(minutes)}", "")} if minutes else {}


def _booking(draft: Draft, links: Links, rows: RowsGuess) -> None:
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
