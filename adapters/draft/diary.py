"""When there is time, what blocks it, and what a booking writes."""

from collections.abc import Iterator

from adapters.draft.columns import time_parameters
from adapters.draft.database import Column, Table
from adapters.draft.document import Guess, MappingGuess, Members, RowsGuess, WriteGuess
from adapters.draft.links import existing
from adapters.draft.tables import Catalog, TableSource, literal
from adapters.draft.vocabulary import PHRASES, TABLES, likeness, tokens

# What a booking has for the fields of an appointment, and the length of its reference.
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
_NEW = "the code of a new appointment"


def guess_diary(guess: MappingGuess, catalog: Catalog) -> None:
    """Fill in the hours, what blocks, and what a booking writes."""
    sources = [catalog.source(table) for table in catalog.tables]
    guess.hours = [hours for source in sources if (hours := _hours(catalog, source))]
    rows = guess.resources.get("appointments")
    if rows is None:
        return
    absences = [absence for source in sources if (absence := _absence(catalog, source))]
    guess.busy = [_appointments(catalog, rows), *absences]
    _guess_booking(guess, catalog, rows)


def _hours(catalog: Catalog, source: TableSource) -> Members | None:
    """A table with a vet, a weekday or a date, and two times of day."""
    table = source.table
    start = catalog.best(table, PHRASES["starts"], ("clock",), least=0.5)
    end = catalog.best(table, PHRASES["ends"], ("clock",), least=0.5)
    vet = catalog.reference(table, "vets")
    weekday = catalog.best(table, PHRASES["weekday"], ("number",))
    day = catalog.best(table, PHRASES["day"], ("day", "moment"), least=0.5)
    if start is None or end is None or vet is None or start == end or not (weekday or day):
        return None
    if table not in catalog.others:
        return None
    sure = "likely" if likeness(catalog.called(table), PHRASES["hours"]) >= 0.6 else "guess"
    found = _from(catalog, source, f"{sure}: by its columns")
    found["vet"] = source.column(vet.column), ""
    if weekday is not None:
        seen = ", ".join(catalog.profile(table, weekday).codes)
        found["weekday"] = source.column(weekday), f"TODO: 1 must be Monday; seen: {seen}"
    else:
        found["day"] = source.column(str(day)), ""
    found["start"] = source.column(start), ""
    found["end"] = source.column(end), "not after the start: it ends on the next day"
    return found


def _from(catalog: Catalog, source: TableSource, said: str) -> Members:
    found: Members = {"from": (str(source), said)}
    conditions = [sql for sql, _ in existing(catalog, source)]
    return found | ({"where": (" AND ".join(conditions), "")} if conditions else {})


def _absence(catalog: Catalog, source: TableSource) -> Members | None:
    table = source.table
    kinds = ("moment", "day", "epoch")
    start = catalog.best(table, PHRASES["starts"], kinds, least=0.5)
    end = catalog.best(table, PHRASES["ends"], kinds, least=0.5)
    alike = likeness(catalog.called(table), PHRASES["absences"])
    if alike < 0.55 or start is None or end is None:
        return None
    found = _from(catalog, source, "likely: by its name")
    vet = catalog.reference(table, "vets")
    if vet is not None:
        found["vet"] = source.column(vet.column), ""
    for name, column in (("start", start), ("end", end)):
        sql, given = (
            source.column(column),
            time_parameters(catalog.profile(table, column), "date-time"),
        )
        found[name] = {"source": sql, **given} if given else sql, ""
    found["endless"] = True, "TODO: is a vet without an end away for good?"
    return found


def _appointments(catalog: Catalog, rows: RowsGuess) -> Members:
    """What blocks: appointments that are neither cancelled nor missed."""
    found: Members = {"from": (rows.from_, "")}
    conditions = [sql for sql, _ in rows.where]
    status = rows.fields.get("status")
    if status is not None and isinstance(status.sql, str):
        codes = status.parameters.get("codes", {}).items()
        free = [code for code, value in codes if value in ("CANCELLED", "NO_SHOW")]
        conditions += [_not_in(catalog, status, free)] if free else []
    if conditions:
        found["where"] = " AND ".join(conditions), "TODO: which ones do not block?"
    found["key"] = rows.key.value, "the appointment's own"
    for name, field in (("vet", "vetId"), ("start", "scheduledAt"), ("end", "endTime")):
        guess = rows.fields.get(field)
        if guess is not None:
            sorts = guess.parameters.get("pattern", "%Y").startswith("%Y")
            found[name] = guess.value, "" if sorts else "TODO: make YYYY-MM-DD of it, which sorts"
    if "end" not in found or "plus" in rows.fields["endTime"].parameters:
        found.pop("end", None)
        found |= _minutes(catalog, rows)
    return {**found, "start": found.get("start", ("NULL", "TODO: when does it start?"))}


def _not_in(catalog: Catalog, status: Guess, free: list[str]) -> str:
    table = catalog.table(status.table)
    kind = table.column(status.name).kind if table is not None else "text"
    is_number = kind == "integer" or (kind == "boolean" and all(map(str.isdecimal, free)))
    codes = ", ".join(code if is_number else literal(code) for code in free)
    other = "-1" if is_number else "''"
    return f"COALESCE({status.sql}, {other}) NOT IN ({codes})"


def _minutes(catalog: Catalog, rows: RowsGuess) -> Members:
    table = catalog.table(rows.table)
    if table is None:
        return {}
    minutes = catalog.best(table, PHRASES["minutes"], ("number", "clock"), least=0.7)
    return {"minutes": (catalog.source(table).column(minutes), "")} if minutes else {}


def _guess_booking(guess: MappingGuess, catalog: Catalog, rows: RowsGuess) -> None:
    """Fill in the steps of a booking, and where its reference stands."""
    table = catalog.chosen["appointments"].table
    values: Members = {}
    for field in DRAFTED:
        if field in rows.fields:
            values |= _drafted(table, field, rows.fields[field])
    values |= _status(catalog, rows)
    numbered = _numbered(catalog, table, values)
    steps = list(_counters(catalog, table)) if numbered is not None else []
    if steps and numbered is not None:
        values[numbered] = {"sql": ":number"}, "TODO: how is the number written?"
    column = catalog.best(table, PHRASES["reference"], least=0.7)
    if column is not None and column not in values and _holds_a_reference(table.column(column)):
        guess.reference = catalog.source(table).column(column)
        values[column] = {"draft": "reference"}, ""
    values |= _still_needed(table, values)
    lines: Members = {"insert": (table.name, "")}
    if table.key:
        lines["key"] = table.key[0], _numbering(table, values)
    lines["name"] = "appointment", ""
    guess.writes = [*steps[:1], WriteGuess(lines, values)]


def _holds_a_reference(column: Column) -> bool:
    return column.kind == "text" and (column.length or REFERENCE_LENGTH) >= REFERENCE_LENGTH


def _numbering(table: Table, values: Members) -> str:
    if len(table.key) > 1 or table.key[0] in values:
        return ""
    if table.column(table.key[0]).has_default:
        return "the database numbers it"
    return "TODO: if the database numbers it; or a counter"


def _drafted(table: Table, field: str, guess: Guess) -> Members:
    """The columns of the appointment's own table that a field is read from."""
    if guess.table != table.name or str(guess.sql).startswith(("SELECT", "CASE")):
        return {}
    if "plus" in guess.parameters:
        return {guess.name: ({"draft": "minutes"}, "")}
    if isinstance(guess.sql, tuple):
        names = [sql.rpartition(".")[2].strip('"`[]') for sql in guess.sql]
        if field != "scheduledAt":
            return dict.fromkeys(names, ("TODO", f"TODO: a part of the key {field}"))
        day, _, clock = guess.parameters.get("pattern", "%Y-%m-%d %H:%M:%S").partition(" ")
        return {
            names[0]: ({"draft": field, "pattern": day}, ""),
            names[-1]: ({"draft": field, "pattern": clock}, ""),
        }
    spelt = ("yes", "no", "pattern", "as", "unit")
    given = {key: value for key, value in guess.parameters.items() if key in spelt}
    return {guess.name: ({"draft": field, **given}, "")}


def _status(catalog: Catalog, rows: RowsGuess) -> Members:
    """The code of a new appointment, or the key of the label that it has."""
    status = rows.fields.get("status")
    if status is None or not (status.own or status.table == rows.table):
        return {}
    table, codes = catalog.table(status.table), status.parameters.get("codes", {})
    planned = [code for code, value in codes.items() if value == "SCHEDULED" and code]
    if status.own and table is not None:
        key = table.key[0] if len(table.key) == 1 else status.name
        pairs = zip(table.values(key), table.values(status.name), strict=True)
        planned = [
            code for code, label in pairs if str(label).strip() in planned and key != status.name
        ]
    given = (planned[0], f"likely: {_NEW}") if planned else ("TODO", f"TODO: {_NEW}")
    return {status.own or status.name: given}


def _counters(catalog: Catalog, table: Table) -> Iterator[WriteGuess]:
    """Counters, else sequences, that seem to count appointments."""
    wanted = TABLES["appointments"]
    for other in catalog.tables:
        name = next((c.name for c in other.columns if c.kind == "text" and c.codes), None)
        if likeness(catalog.called(other), PHRASES["counters"]) < 0.8 or name is None:
            continue
        column = catalog.best(other, PHRASES["value"], ("number", "epoch", "flag"), least=0.5)
        column = column or next((c.name for c in other.columns if c.kind == "integer"), None)
        codes = catalog.profile(other, name).codes
        best = max(codes, key=lambda code: likeness(tokens(code), wanted), default="")
        if column is not None and likeness(tokens(best), wanted) >= 0.6:
            where = f"{catalog.source(other).quoted(name)} = {literal(best)}"
            lines = {"counter": (other.name, "guess"), "where": (where, "")}
            yield WriteGuess({**lines, "column": (column, ""), "name": ("number", "")})
    own = f"{table.name}_{table.key[0]}_seq" if len(table.key) == 1 else ""
    for sequence in catalog.database.sequences:
        if likeness(tokens(sequence), wanted) >= 0.6 and sequence != own:
            yield WriteGuess({"sequence": (sequence, "guess"), "name": ("number", "")})


def _numbered(catalog: Catalog, table: Table, values: Members) -> str | None:
    """The column with a number that people read."""
    wanted = (("num",), ("number",), ("numero",), ("nummer",), ("nr",), ("no",))
    for column in table.columns:
        is_unique = (column.name,) in table.unique
        if column.name in values or column.name in table.key:
            continue
        is_number = is_unique and set(tokens(column.name)) & {"num", "nr", "no"}
        if is_number or catalog.alike(table, column.name, wanted) >= 0.8:
            return column.name
    return None


def _still_needed(table: Table, values: Members) -> Members:
    """Columns that must be written and have no default: the clinic knows what to write."""
    placeholders = {"integer": 0, "number": 0, "boolean": False}
    return {
        column.name: (
            placeholders.get(column.kind, "TODO"),
            f"TODO: {column.name} must be written; what with?",
        )
        for column in table.columns
        if not (column.nullable or column.has_default or column.name in values)
        and (table.key != (column.name,) or column.kind != "integer")
    }
