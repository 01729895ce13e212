"""Guesses when there is time: hours, and what blocks."""

from typing import Any

from adapters.draft.booking import guess_booking
from adapters.draft.database import Table
from adapters.draft.fields import times
from adapters.draft.guesses import Draft, Guess, Member, RowsGuess
from adapters.draft.likeness import likeness
from adapters.draft.links import Links
from adapters.draft.looks import Look
from adapters.draft.spelling import alias_for, literal, table_name
from adapters.draft.tables import best_reference
from adapters.draft.vocabulary import (
    ABSENCES,
    DAY,
    ENDS,
    HOURS,
    MINUTES,
    STARTS,
    WEEKDAY,
)


def guess_diary(draft: Draft, links: Links) -> None:
    """Fill in the hours, what blocks, and what a booking writes."""
    for table in links.catalog.tables:
        hours = _hours(links, table)
        if hours is not None:
            draft.hours.append(hours)
    appointments = draft.resources.get("appointments")
    if appointments is None:
        return
    draft.busy.append(_appointments(draft, links, appointments))
    draft.busy += [each for t in links.catalog.tables if (each := _absences(links, t)) is not None]
    guess_booking(draft, links, appointments)


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
    return {"source": sql, **given} if given else sql


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
    return {"source": sql, **guess.parameters} if guess.parameters else sql


def _minutes(links: Links, rows: RowsGuess) -> Member:
    table = links.catalog.table(rows.table)
    minutes = table and links.catalog.best(table, MINUTES, ("number", "clock"), least=0.7)
    return {"minutes": (f"{rows.alias}.{links.q(minutes)}", "")} if minutes else {}
