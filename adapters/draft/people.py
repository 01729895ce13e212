"""Guesses what is known of clients, veterinarians and animals alone: names, addresses, deaths."""

from dataclasses import replace

from adapters.draft.guesses import Guess
from adapters.draft.likeness import tokens
from adapters.draft.resource import ResourceGuess
from adapters.draft.vocabulary import (
    ADDRESS_PARTS,
    COMPANY,
    DEATH,
    FIRST_NAME,
    ID,
    LAST_NAME,
    NAME_PREFIX,
    TITLE,
)


def clients(of: ResourceGuess) -> None:
    _one_name(of)
    _company(of)
    _prefixed(of)
    _address(of)


def _one_name(of: ResourceGuess) -> None:
    """A column such as `Last,First`, where there is none for the first name."""
    last = of.fields.get("lastName")
    if last is None or "firstName" in of.fields or ":" in last.column:
        return
    values = [str(e) for e in of.table.values(last.column.partition(".")[2]) if e]
    if values and sum("," in each for each in values) > 0.6 * len(values):
        given = {"as": "part of text", "separator": ","}
        of.fields["lastName"] = replace(last, parameters={**given, "part": 1})
        of.fields["firstName"] = replace(
            last, parameters={**given, "part": 2}, score=0.7, why="the part behind the comma"
        )


def _prefixed(of: ResourceGuess) -> None:
    """A column such as `tussenvoegsel`, whose `van der` belongs before the last name."""
    last = of.fields.get("lastName")
    prefix = of.catalog.best(of.table, NAME_PREFIX, ("text",), least=0.8)
    if last is not None and prefix is not None and not last.parameters:
        sql = (of.column(prefix), str(last.sql))
        given = {"as": "joined text", "separator": " "}
        of.fields["lastName"] = replace(last, sql=sql, parameters=given)


def _company(of: ResourceGuess) -> None:
    last = of.fields.get("lastName")
    company = of.catalog.best(of.table, COMPANY, ("text",), least=0.7)
    if last is None or company is None or last.column.endswith(f".{company}"):
        return
    if not last.parameters:
        sql = f"COALESCE(NULLIF(TRIM({last.sql}), ''), {of.column(company)})"
        of.fields["lastName"] = replace(last, sql=sql)


def _address(of: ResourceGuess) -> None:
    address = of.fields.get("address")
    if address is None or ":" in address.column:
        return
    first, *others = ADDRESS_PARTS
    used = {each.column.partition(".")[2] for n, each in of.fields.items() if n != "address"}
    used |= {each.name for each in of.table.columns if set(tokens(each.name)) & ID}
    used |= {*of.table.key, of.found.kind or ""}
    parts = [
        each.name
        for wanted in (first, *others)
        for each in of.table.columns
        if of.catalog.alike(of.table, each.name, wanted) >= 0.8 and each.name not in used
    ]
    parts = list(dict.fromkeys(parts))
    if len(parts) > 1:
        sql = tuple(map(of.column, parts))
        given = {"as": "joined text", "separator": ", "}
        of.fields["address"] = replace(address, sql=sql, parameters=given)


def vets(of: ResourceGuess) -> None:
    parts = [
        of.catalog.best(of.table, wanted, ("text",), least=least)
        for wanted, least in (
            (TITLE, 0.8),
            (FIRST_NAME, 0.7),
            (NAME_PREFIX, 0.8),
            (LAST_NAME, 0.7),
        )
    ]
    names = list(dict.fromkeys(each for each in parts if each))
    _, first, _, last = parts
    if first is None or last is None or first == last:
        return
    of.fields["name"] = Guess(
        sql=tuple(map(of.column, names)),
        score=0.85,
        why="first and last name",
        column=f"{of.table.name}.{last}",
        parameters={"as": "joined text", "separator": " "},
    )


def patients(of: ResourceGuess) -> None:
    if "clientId" not in of.fields and isinstance(of.rows.key, Guess):
        owner = of.links.owner(of.table, of.rows.alias, of.column(of.found.key[0]))
        if owner is not None:
            of.fields["clientId"] = owner
    died = of.catalog.best(of.table, DEATH, ("moment", "day", "flag"), least=0.7)
    if died is None:
        return
    status, dead = of.fields.get("status"), _dead(of, died)
    codes = dict(status.parameters.get("codes", {})) if status else {"A": "ACTIVE"}
    if "DECEASED" in codes.values():
        return
    alive = f"ELSE {status.sql}" if status else "ELSE 'A'"
    name = status.column.partition(".")[2] if status else died
    look = of.catalog.look(of.table, name) if status and not status.own else None
    if look is not None and look.kind == "flag" and status is not None:
        said = of.links.flag(look.yes[0], of.table.column(name).kind)
        alive = f"WHEN {status.sql} = {said} THEN 'A' ELSE 'I'"
        codes = {"A": "ACTIVE", "I": "INACTIVE"}
    of.fields["status"] = Guess(
        sql=f"CASE WHEN {dead} THEN 'D' {alive} END",
        score=0.7,
        why=f"with {died}",
        column=status.column if status else f"{of.table.name}.{died}",
        parameters={"codes": {**codes, "D": "DECEASED"}},
    )


def _dead(of: ResourceGuess, column: str) -> str:
    look = of.catalog.look(of.table, column)
    if look.kind == "flag":
        said = of.links.flag(look.yes[0], of.table.column(column).kind)
        return f"{of.column(column)} = {said}"
    return of.links.unset(of.rows.alias, of.table, column, is_set=True)
