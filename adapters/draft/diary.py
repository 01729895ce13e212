"""Guesses the diary and the booking: when there is time, what blocks it, what is written."""

from collections.abc import Iterator
from typing import Any

from adapters.draft.columns import TIMES, time_parameters
from adapters.draft.database import Table
from adapters.draft.decisions import YES, Doubt, Judge
from adapters.draft.document import TODO, Members, Noted, lines_of
from adapters.draft.hours import share_within
from adapters.draft.resource import key_of
from adapters.draft.sources import Guess, TableSource, literal
from adapters.draft.tables import Catalog, Rows
from adapters.draft.vocabulary import PHRASES, TABLES, likeness, phrases, tokens

# The fields of an appointment that a draft has values for, and the length of its reference.
_FIELDS = "patientId clientId vetId appointmentTypeId scheduledAt endTime reason isUrgent createdAt"
DRAFTED = _FIELDS.split()
# What a diary cannot do without.
NEEDED = ("appointments", "vets", "appointmentTypes")
REFERENCE_LENGTH = 16
NUMBERS = phrases("num, number, numero, nummer, nr, no")
_NEW = "the code of a new appointment"


def guess_diary(
    catalog: Catalog, judge: Judge | None = None, *, accept: bool = False
) -> tuple[Members, Members]:
    """Returns the diary (hours and what blocks) and the booking (what it writes).

    Each is a comment where it is neither accepted nor confirmed; no data prove what a booking
    writes.
    """
    diary, booking = _guessed(catalog)
    if accept:
        return diary, booking
    missing = [name for name in NEEDED if not _is_written(catalog, name)]
    fields = catalog.chosen["appointments"].fields if "appointments" in catalog.chosen else {}
    lacking = [name for name in ("vetId", "scheduledAt") if not _is_there(fields.get(name))]
    if missing or lacking:
        what = ", ".join([*missing, *(f"appointments.{name}" for name in lacking)])
        return _left_out(diary, f"left out without {what}"), _left_out(booking, "left out")
    if judge is None:
        return _left_out(diary, "left out until somebody confirms it"), _left_out(
            booking, "left out"
        )
    if not _is_confirmed(judge, "diary", diary):
        return _left_out(diary, "left out"), _left_out(booking, "left out")
    clients = all(_is_written(catalog, name) for name in ("clients", "patients"))
    if not clients or not _is_confirmed(judge, "booking", booking):
        booking = _left_out(booking, "left out")
    return diary, booking


def _is_there(guess: Guess | None) -> bool:
    return guess is not None and guess.is_written


def _is_written(catalog: Catalog, name: str) -> bool:
    return name in catalog.chosen and catalog.chosen[name].is_written


def _is_confirmed(judge: Judge, name: str, group: Members) -> bool:
    told, members = "what a booking writes", group.get(name, {})
    if name == "diary":
        # hours that no table has are an example, and not likely
        sources = [*members.get("hours", ()), *members.get("slots", ())]
        is_found = any("from" in source for source in sources)
        told = "hours, and what blocks a vet" if is_found else "what blocks a vet"
    lines = [line for line in lines_of(group) if not line.lstrip().startswith("#") or TODO in line]
    return judge(Doubt(name, "", name, told, (), tuple(lines))) == YES


def _left_out(group: Members, said: str) -> Members:
    left = Members()
    if group:
        left.open(group, said)
    return left


def _guessed(catalog: Catalog) -> tuple[Members, Members]:
    diary = Members(step=Noted(15, "TODO: minutes from one possible start to the next"))
    diary["duration"] = Noted(30, "TODO: minutes of a booking without a type")
    hours = [hours for source in catalog.others if (hours := _hours(source))]
    rows = catalog.chosen.get("appointments")
    if rows is not None and rows.free:
        diary["slots"] = [_slots(rows, rows.free)]
    elif not hours:
        diary.remark(
            "TODO: no table with working hours was found: write them here, or name the table."
        )
        hours = [Members(days=["mon-fri"], times=["09:00-12:00", "14:00-18:00"])]
    if hours:
        diary["hours"] = hours
    if rows is None:
        diary.remark("TODO: name what blocks a veterinarian: appointments, absences.")
        missing = Members()
        missing.remark("TODO: booking is missing: which rows does an appointment need?")
        return Members(diary=diary), missing
    absences = [absence for source in catalog.sources if (absence := _absence(source))]
    diary["busy"] = [_appointments(rows), *absences]
    return Members(diary=diary), Members(booking=_booking(rows))


def _slots(rows: Rows, free: tuple[str, tuple[str, ...]]) -> Members:
    """Returns the rows that stand for free times."""
    source = rows.source
    members = Members({"from": Noted(str(source), f"{free[0]} says which are free")})
    members["where"] = source.is_one_of(*free)
    members["key"] = source.column(rows.keys[0])
    for name, field in (("vet", "vetId"), ("start", "scheduledAt"), ("end", "endTime")):
        if field in rows.fields:
            members[name] = rows.fields[field].value
    return members


def _hours(source: TableSource) -> Members | None:
    """Returns a table with a vet, a weekday or a date, and two times of day; None for another."""
    start = source.best("starts", ("clock",), least=0.5)
    end = source.best("ends", ("clock",), least=0.5)
    if start is None or end is None or start == end:
        return None
    vet = source.reference("vets")
    weekday = source.best("weekday", ("number",))
    day = weekday or source.best("day", ("day", "moment"), least=0.5)
    if vet is None or day is None:
        return None
    certainty = "likely" if likeness(source.called, PHRASES["hours"]) >= 0.6 else "guess"
    within = share_within(source, vet.name, day, start, end) if weekday else None
    said = f"{certainty}: by its columns"
    if within is not None:
        said = f"sure: {within:.0%} of the appointments lie within them"
    members = _from(source, said, vet)
    if weekday:
        seen = ", ".join(source.profiles[day].codes)
        told = f"TODO: 1 must be Monday; seen: {seen}" if within is None else "1 is Monday"
        members["weekday"] = Noted(source.column(day), told)
    else:
        members["day"] = source.column(day)
    members["start"] = source.column(start)
    members["end"] = Noted(source.column(end), "not after the start: it ends on the next day")
    return members


def _from(source: TableSource, said: str, vet: Guess | None) -> Members:
    members = Members({"from": Noted(str(source), said)})
    if conditions := [*source.existing()]:
        members["where"] = " AND ".join(conditions)
    if vet is not None:
        members["vet"] = source.column(vet.name)
    return members


def _absence(source: TableSource) -> Members | None:
    start = source.best("starts", TIMES, least=0.5)
    end = source.best("ends", TIMES, least=0.5)
    alike = likeness(source.called, PHRASES["absences"])
    if alike < 0.55 or start is None or end is None:
        return None
    members = _from(source, "likely: by its name", source.reference("vets"))
    for name, column in (("start", start), ("end", end)):
        sql, given = source.column(column), time_parameters(source.profiles[column], "date-time")
        members[name] = {"source": sql, **given} if given else sql
    members["endless"] = Noted(True, "TODO: is a vet without an end away for good?")
    return members


def _appointments(rows: Rows) -> Members:
    """Returns what blocks: appointments that are neither cancelled nor missed."""
    members = Members({"from": f"{rows.source}{rows.joins}"})
    conditions = [*rows.where]
    status = rows.fields.get("status")
    if status is not None and isinstance(status.sql, str):
        codes = status.parameters.get("codes", {}).items()
        free = [code for code, value in codes if value in ("CANCELLED", "NO_SHOW")]
        if free:
            source = rows.source.catalog.named(status.table)
            kind = source.table.columns[status.name].kind if source is not None else "text"
            spelt = ", ".join(literal(code, kind) for code in free)
            other = "''" if spelt.startswith("'") else "-1"
            conditions.append(f"COALESCE({status.sql}, {other}) NOT IN ({spelt})")
    if conditions:
        members["where"] = Noted(" AND ".join(conditions), "TODO: which ones do not block?")
    members["key"] = Noted(key_of(rows.source).value, "the appointment's own")
    for name, field in (("vet", "vetId"), ("start", "scheduledAt"), ("end", "endTime")):
        guess = rows.fields.get(field)
        if guess is not None:
            sorts = guess.parameters.get("pattern", "%Y").startswith("%Y")
            comment = "" if sorts else "TODO: make YYYY-MM-DD of it, which sorts"
            members[name] = Noted(guess.value, comment)
    if "end" not in members or "plus" in rows.fields["endTime"].parameters:
        members.pop("end", None)
        minutes = rows.source.best("minutes", ("number", "clock"), least=0.7)
        members |= {"minutes": rows.source.column(minutes)} if minutes else {}
    members.setdefault("start", Noted("NULL", "TODO: when does it start?"))
    return members


def _booking(rows: Rows) -> Members:
    source = rows.source
    table, key = source.table, source.table.key
    booking, values = Members(appointment="appointment"), Members()
    for field in DRAFTED:
        if field in rows.fields:
            values |= _drafted(table.name, field, rows.fields[field])
    values |= _status(rows)
    numbered = (name for name in table.columns if name not in (*values, *key))
    number = next((name for name in numbered if _is_number(source, name)), None)
    counter = next(_counters(source), None) if number is not None else None
    if counter is not None and number is not None:
        values[number] = Noted({"sql": ":number"}, "TODO: how is the number written?")
    reference = source.best("reference", least=0.7)
    column = table.columns[reference] if reference and reference not in values else None
    has_room = column and (column.length or REFERENCE_LENGTH) >= REFERENCE_LENGTH
    if column and has_room and column.kind == "text":
        booking["reference"] = Noted(source.column(column.name), "likely: by its name")
        values[column.name] = {"draft": "reference"}
    else:
        booking.remark("reference: ???  # TODO: has a column room for 16 letters and digits?")
    values |= _still_needed(table, values)
    if rows.free:
        state, codes = rows.free
        free = source.is_one_of(state, codes).replace(f"{source.alias}.", "")
        where = f"{source.quoted(key[0])} = :slot AND {free}"
        update = Members(update=table.name, where=where, name="appointment", values=values)
        booking["steps"] = [update | {"for": "slot"}]
        return booking
    insert = Members(insert=table.name)
    if key:
        comment = "TODO: if the database numbers it; or a counter"
        comment = "the database numbers it" if table.columns[key[0]].has_default else comment
        insert["key"] = Noted(key[0], "" if len(key) > 1 or key[0] in values else comment)
    insert |= {"name": "appointment"} | ({"values": values} if values else {})
    booking["steps"] = [*([counter] if counter else []), insert]
    return booking


def _still_needed(table: Table, values: Members) -> dict[str, Noted]:
    """Returns the columns that must be written and have no default, for the clinic to decide."""
    placeholders = {"integer": 0, "number": 0, "boolean": False}
    return {
        name: Noted(
            placeholders.get(column.kind, "TODO"), f"TODO: {name} must be written; what with?"
        )
        for name, column in table.columns.items()
        if not (column.nullable or column.has_default or name in values or "." in name)
        and (table.key != (name,) or column.kind != "integer")
    }


def _drafted(table: str, field: str, guess: Guess) -> dict[str, Any]:
    """Returns the columns of the appointment's own table that a field is read from."""
    if guess.table != table or str(guess.sql).startswith(("SELECT", "CASE")):
        return {}
    if "plus" in guess.parameters:
        return {guess.name: {"draft": "minutes"}}
    if isinstance(guess.sql, tuple):
        names = [sql.rpartition(".")[2].strip('"`[]') for sql in guess.sql]
        if field != "scheduledAt":
            return dict.fromkeys(names, Noted("TODO", f"TODO: a part of the key {field}"))
        day, _, clock = guess.parameters.get("pattern", "%Y-%m-%d %H:%M:%S").partition(" ")
        pairs = ((names[0], day), (names[-1], clock))
        return {name: {"draft": field, "pattern": pattern} for name, pattern in pairs}
    spelt = ("yes", "no", "pattern", "as", "unit")
    given = {key: value for key, value in guess.parameters.items() if key in spelt}
    return {guess.name: {"draft": field, **given}}


def _status(rows: Rows) -> dict[str, Noted]:
    """Returns the code of a new appointment, or the key of its label."""
    status = rows.fields.get("status")
    if status is None or not (status.own or status.table == rows.source.table.name):
        return {}
    source, codes = rows.source.catalog.named(status.table), status.parameters.get("codes", {})
    planned = [code for code, value in codes.items() if value == "SCHEDULED" and code]
    if status.own and source is not None:
        table = source.table
        key = table.key[0] if len(table.key) == 1 else status.name
        pairs = zip(table.columns[key].seen, table.columns[status.name].seen, strict=True)
        planned = [
            code for code, label in pairs if str(label).strip() in planned and key != status.name
        ]
    given = Noted(planned[0], f"likely: {_NEW}") if planned else Noted("TODO", f"TODO: {_NEW}")
    return {status.own or status.name: given}


def _counters(source: TableSource) -> Iterator[Members]:
    """Yields counters, then sequences, that seem to count appointments."""
    names = TABLES["appointments"]
    for other in source.catalog.sources:
        columns = other.table.columns.values()
        name = next((c.name for c in columns if c.kind == "text" and c.codes), None)
        if likeness(other.called, PHRASES["counters"]) < 0.8 or name is None:
            continue
        column = other.best("value", ("number", "epoch", "flag"), least=0.5)
        column = column or next((c.name for c in columns if c.kind == "integer"), None)
        codes = other.profiles[name].codes
        best = max(codes, key=lambda code: likeness(tokens(code), names), default="")
        if column is not None and likeness(tokens(best), names) >= 0.6:
            where, counter = f"{other.quoted(name)} = {literal(best)}", other.table.name
            counted = Noted(counter, "guess")
            yield Members(counter=counted, where=where, column=column, name="number")
    own = {f"{source.table.name}_{key}_seq" for key in source.single_key}
    for sequence in source.catalog.database.sequences:
        if likeness(tokens(sequence), names) >= 0.6 and sequence not in own:
            yield Members(sequence=Noted(sequence, "guess"), name="number")


def _is_number(source: TableSource, column: str) -> bool:
    is_unique = (column,) in source.table.unique
    is_number = is_unique and not {"num", "nr", "no"}.isdisjoint(tokens(column))
    return is_number or source.alike(column, NUMBERS) >= 0.8
