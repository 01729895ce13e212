"""Finds addresses, telephones and e-mail addresses that stand in tables of their own."""

from dataclasses import replace

from adapters.draft.resource import about
from adapters.draft.sources import Guess, TableSource
from adapters.draft.tables import Rows
from adapters.draft.vocabulary import PHRASES, likeness

PARTS = ("street", "postcode", "town")


def contacts(rows: Rows) -> None:
    """Adds what the row itself lacks, from the tables that lead to it."""
    for table in rows.source.catalog.others:
        wanted = [field for field in ("email", "phone", "address") if field not in rows.fields]
        if not wanted:
            return
        source = table.beside(*rows.source.aliases)
        leads = about(source, rows) if _may_be_contacts(source) else None
        if leads is None:
            continue
        for field in wanted:
            guess = _address(source, leads) if field == "address" else _value(source, field, leads)
            if guess is not None:
                rows.fields[field] = guess


def _may_be_contacts(source: TableSource) -> bool:
    kinds = {profile.kind for profile in source.profiles.values()}
    is_address = likeness(source.called, PHRASES["addresses"]) >= 0.8
    return bool({"email", "phone"} & kinds) or is_address


def _value(source: TableSource, field: str, leads: tuple[str, str]) -> Guess | None:
    """Returns the only column with such values, of the newest row."""
    columns = [name for name, profile in source.profiles.items() if profile.kind == field]
    columns = [name for name in columns if source.alike(name, PHRASES["not_phones"]) < 0.7]
    has_kinds = any(
        profile.is_code and source.alike(name, PHRASES["kind"]) >= 0.6
        for name, profile in source.profiles.items()
    )
    if len(columns) != 1 or has_kinds:
        return None
    sql = source.select(source.column(columns[0]), *_its(source, leads), first_by=_first(source))
    return source.guess(columns[0], 0.75, f"the rows of {source.table.name}", sql=sql)


def _address(source: TableSource, leads: tuple[str, str]) -> Guess | None:
    """Returns street, postcode and town of the first row that is in force."""
    parts = [name for part in PARTS if (name := source.best(part, ("text", "number"), least=0.8))]
    if len({*parts}) < 2 or source.best("street", ("text",), least=0.8) is None:
        return None
    where, first = _its(source, leads), _first(source)
    sql = tuple(
        f"({source.select(source.column(name), *where, first_by=first)})"
        for name in dict.fromkeys(parts)
    )
    given = {"as": "joined text", "separator": ", "}
    guess = source.guess(parts[0], 0.75, f"the rows of {source.table.name}", given, sql)
    return replace(guess, column=f"{source.table.name}.{parts[0]}")


def _its(source: TableSource, leads: tuple[str, str]) -> list[str]:
    return [f"{source.column(leads[0])} = {leads[1]}", *source.existing()]


def _first(source: TableSource) -> str:
    preferred = source.best("preferred", ("flag",))
    order = [f"{source.column(preferred)} DESC"] if preferred else []
    order += [source.column(name) for name in source.single_key]
    return ", ".join(order or [source.column(next(iter(source.table.columns)))])
