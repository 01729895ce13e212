"""Guesses what is known of invoices alone: their lines, their payments, and what is left to pay."""

from dataclasses import replace

from adapters.base import FieldShape
from adapters.draft.fields import columns_of
from adapters.draft.guesses import Guess, RowsGuess
from adapters.draft.resource import ResourceGuess, in_brackets, key_of
from adapters.draft.spelling import alias_for, select, table_name
from adapters.draft.vocabulary import (
    LINES,
    PAYMENTS,
)


def invoices(of: ResourceGuess) -> None:
    _list(of, "lines", LINES, "invoices.lines")
    payments = _list(of, "payments", PAYMENTS, "invoices.payments")
    total, paid = of.fields.get("total"), of.fields.get("amountPaid")
    if paid is None and payments is not None and "amount" in payments.fields:
        paid = _sum(of, payments, "amount")
    if paid is not None:
        of.fields["amountPaid"] = paid
    if total is not None and paid is not None and "balance" not in of.fields:
        sql = f"{of.number(total)} - COALESCE({in_brackets(of.number(paid))}, 0)"
        of.fields["balance"] = replace(
            total,
            sql=sql,
            score=0.7,
            why="total less what was paid",
            column="total-paid",
            others=(),
        )


def _sum(of: ResourceGuess, rows: RowsGuess, field: str) -> Guess:
    amount, parent = rows.fields[field], rows.parent
    key = of.column(of.found.key[0])
    link = parent.sql if parent else ""
    sql = select(f"SUM({of.number(amount)})", rows.from_, f"{link} = {key}")
    return replace(
        amount, sql=sql, score=0.75, why=f"the sum of {amount.column}", others=(), parameters={}
    )


def _list(
    of: ResourceGuess, name: str, words: tuple[tuple[str, ...], ...], place: str
) -> RowsGuess | None:
    """The table whose rows belong to a record, by its name and what it refers to."""
    found = of.child(words)
    if found is None:
        return None
    table, column, score = found
    alias = alias_for(table.name, [of.rows.alias])
    shapes: dict[str, FieldShape] = {
        each.partition("[].")[2]: shape
        for each, shape in of.shapes.items()
        if each.startswith(f"{name}[].")
    }
    taken = {column, *(table.key if len(table.key) == 1 else ())}
    rows = RowsGuess(
        table=table.name,
        score=score,
        from_=f"{table_name(of.links.dialect, table)} {alias}",
        alias=alias,
        key=key_of(of.links, table, alias),
        parent=Guess(
            sql=f"{alias}.{of.links.q(column)}",
            score=score,
            why="by its name",
            column=f"{table.name}.{column}",
        ),
        fields=columns_of(of.catalog, table, alias, place, shapes, taken),
    )
    if "patientId" in shapes:
        patient = of.links.reference(table, alias, "patients")
        if patient is not None:
            rows.fields["patientId"] = patient
    of.rows.lists[name] = rows
    return rows
