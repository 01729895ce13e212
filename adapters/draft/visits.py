"""Guesses what is known of appointments alone: whose they are, and when they begin and end."""

from dataclasses import replace

from adapters.draft.guesses import Guess
from adapters.draft.resource import ResourceGuess
from adapters.draft.spelling import alias_for, select, table_name
from adapters.draft.vocabulary import (
    DAY,
    MINUTES,
    TIME_OF_DAY,
)


def appointments(of: ResourceGuess) -> None:
    patient = of.fields.get("patientId")
    if "clientId" not in of.fields and patient is not None and isinstance(patient.sql, str):
        found = _owner_of(of, patient.sql)
        if found is not None:
            of.fields["clientId"] = found
    _two_columns(of)
    _end(of)
    status = of.fields.get("status")
    if status is not None and "displayStatus" not in of.fields:
        codes = {} if status.own else status.parameters.get("codes", {})
        said = {c: v and v.replace("_", " ").capitalize() for c, v in codes.items()}
        why = "the status in English; write it as your clients read it"
        given = {"codes": said} if said else {}
        score, why = (0.7, "the status's label") if status.own else (0.55, why)
        of.fields["displayStatus"] = replace(status, why=why, score=score, parameters=given)


def _owner_of(of: ResourceGuess, patient: str) -> Guess | None:
    """The owner of the animal: of its own row, or of who owns it."""
    animals = of.links.chosen.get("patients")
    if animals is None:
        return None
    alias = alias_for(animals.table.name, [of.rows.alias])
    owner = of.links.reference(animals.table, alias, "clients")
    if owner is None:
        return of.links.owner(of.table, of.rows.alias, patient)
    name = table_name(of.links.dialect, animals.table)
    key = f"{alias}.{of.links.q(animals.key[0])}"
    sql = select(str(owner.sql), f"{name} {alias}", f"{key} = {patient}")
    return replace(owner, sql=sql, score=owner.score - 0.1, why="the owner of the animal")


def _two_columns(of: ResourceGuess) -> None:
    """A day and a time of day that make one time."""
    start = of.fields.get("scheduledAt")
    if start is not None and of.catalog.look(of.table, start.column.partition(".")[2]).has_time:
        return
    day = of.catalog.best(of.table, DAY, ("day", "moment"), least=0.5)
    clock = of.catalog.best(of.table, TIME_OF_DAY, ("clock",), least=0.5)
    if day is not None and clock is not None:
        of.fields["scheduledAt"] = Guess(
            sql=(of.column(day), of.column(clock)),
            score=0.75,
            why="a day and a time of day",
            column=f"{of.table.name}.{day}",
            parameters={"as": "local time", **_patterns(of, day, clock)},
        )


def _patterns(of: ResourceGuess, day: str, clock: str) -> dict[str, str]:
    """How the two are written, where they don't read by themselves."""
    pattern = of.catalog.look(of.table, day).pattern
    if pattern in (None, "%Y-%m-%d"):
        return {}
    has_seconds = of.catalog.look(of.table, clock).longest > len("00:00")
    return {"pattern": f"{pattern} {'%H:%M:%S' if has_seconds else '%H:%M'}"}


def _end(of: ResourceGuess) -> None:
    minutes = of.catalog.best(of.table, MINUTES, ("number", "clock"), least=0.7)
    start = of.fields.get("scheduledAt")
    if "endTime" in of.fields or minutes is None or start is None:
        return
    of.fields["endTime"] = replace(
        start,
        score=0.7,
        why="the start and the minutes",
        column=f"{of.table.name}.{minutes}",
        parameters={**start.parameters, "plus": of.column(minutes)},
    )
