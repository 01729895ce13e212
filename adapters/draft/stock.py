"""Guesses what is known of stock alone: batches, suppliers, and what is low."""

from dataclasses import replace

from adapters.draft.database import Table
from adapters.draft.fields import columns_of
from adapters.draft.guesses import Guess
from adapters.draft.likeness import likeness, tokens
from adapters.draft.resource import ResourceGuess, in_brackets
from adapters.draft.spelling import alias_for, first_of, number, select, table_name
from adapters.draft.vocabulary import (
    BATCHES,
    COMPANY,
    ID,
    LAST_NAME,
    MOVES,
    SUPPLIERS,
)


def stock(of: ResourceGuess) -> None:
    for words in (BATCHES, MOVES):
        found = of.child(words)
        if found is not None:
            _batches(of, *found)
    _supplier(of)
    quantity, least = of.fields.get("quantity"), of.fields.get("reorderThreshold")
    if quantity is not None and least is not None and "isLow" not in of.fields:
        one, other = in_brackets(of.number(quantity)), _threshold(of, least)
        sql = f"CASE WHEN {one} <= {other} THEN 1 ELSE 0 END"
        score = min(quantity.score, least.score)
        of.fields["isLow"] = replace(
            quantity,
            sql=sql,
            score=score,
            why="quantity <= threshold",
            column="quantity<=least",
            others=(),
            parameters={},
        )


def _threshold(of: ResourceGuess, least: Guess) -> str:
    is_text = least.column.partition(":")[2] != ""
    sql = in_brackets(str(least.sql))
    return number(sql, is_text=True) if is_text else of.number(least)


def _batches(of: ResourceGuess, table: Table, column: str, score: float) -> None:
    """The quantity, the next date and the number, out of the rows of what is in stock."""
    alias = alias_for(table.name, [of.rows.alias])
    shapes = {name: of.shapes[name] for name in ("quantity", "expiresAt", "batchNumber")}
    found = columns_of(of.catalog, table, alias, "stock", {**of.shapes}, [column, *table.key])
    rest = (
        f"FROM {table_name(of.links.dialect, table)} {alias}"
        f" WHERE {alias}.{of.links.q(column)} = {of.column(of.found.key[0])}"
    )
    expires = found.get("expiresAt")
    by = str(expires.sql) if expires else f"{alias}.{of.links.q(column)}"
    name = expires.column.partition(".")[2] if expires else ""
    later = f"{rest} AND {of.links.unset(alias, table, name, is_set=True)}" if expires else rest
    for field in shapes:
        each = found.get(field)
        if each is None or field in of.fields:
            continue
        if field == "quantity":
            sql = f"SELECT COALESCE(SUM({of.number(each)}), 0) {rest}"
        else:
            sql = first_of(of.links.dialect, str(each.sql), later, by)
        why = f"from {table.name}"
        of.fields[field] = replace(each, sql=sql, score=min(each.score, 0.8), why=why)


def _supplier(of: ResourceGuess) -> None:
    """The name of the supplier, where the row only has its key."""
    party = of.links.chosen.get("clients")
    if "supplier" in of.fields or party is None or party.kind is None:
        return
    for column in of.table.columns:
        words = [each for each in tokens(column.name) if each not in ID]
        if len(words) == len(tokens(column.name)) or likeness(words, SUPPLIERS) < 0.7:
            continue
        alias = alias_for(party.table.name, [of.rows.alias])
        name = _name_of(of, party.table, alias)
        if name is None:
            continue
        where = f"{alias}.{of.links.q(party.key[0])} = {of.column(column.name)}"
        sql = select(name, f"{table_name(of.links.dialect, party.table)} {alias}", where)
        of.fields["supplier"] = Guess(
            sql=sql, score=0.7, why="by its name", column=f"{of.table.name}.{column.name}"
        )


def _name_of(of: ResourceGuess, table: Table, alias: str) -> str | None:
    last = of.catalog.best(table, LAST_NAME, ("text",), least=0.7)
    company = of.catalog.best(table, COMPANY, ("text",), least=0.7)
    names = [f"{alias}.{of.links.q(each)}" for each in (company, last) if each]
    if len(set(names)) == 2:
        return f"COALESCE(NULLIF(TRIM({names[0]}), ''), {names[1]})"
    return names[0] if names else None
