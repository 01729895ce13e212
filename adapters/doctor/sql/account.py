"""What the account may do: all that reading and booking need, and nothing more."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, insert, null, select, text, update
from sqlalchemy.exc import DBAPIError

from adapters.doctor.sql.case import Case, Step
from adapters.documents.document import Place
from adapters.examination import Finding
from adapters.sql.engines.base import Kind
from adapters.sql.mapping import NAMED, Write
from adapters.sql.steps import named_table

_USAGE = "GRANT USAGE ON SEQUENCE, as the page on connecting shows"
# Columns that are numbered by themselves (identity) need no right.
_SERIAL = text(
    "SELECT has_sequence_privilege(pg_get_serial_sequence(CAST(:name AS text),"
    " CAST(:number AS text)), 'USAGE') FROM pg_attribute WHERE attidentity = ''"
    " AND attrelid = to_regclass(CAST(:name AS text)) AND attname = CAST(:number AS text)"
)
_GRANTS = "take from it what the page on connecting does not grant"


def account(case: Case) -> Iterator[Step]:
    """One look at the rights, and one at each table that a booking writes."""
    yield Step("rights", "account", lambda connection: _too_much(connection, case))
    for number, write in enumerate(case.parts.mapping.booking.writes):
        if not case.is_lost("booking", "writes", number):
            yield from _of_write(case, ("booking", "writes", number), write)
    for name in case.parts.mapping.booking.without_transactions:
        yield _undone_by_hand(case, name)


def _too_much(connection: Connection, case: Case) -> Iterator[Finding]:
    more = case.parts.engine.speech.rights(connection)
    for sentence in more:
        yield case.warning(
            "rights", "account", f"{sentence}, which it does not need", (), remedy=_GRANTS
        )
    if not more:
        yield case.ok("rights", "account", "it may do no more than it needs")


def _of_write(case: Case, place: Place, write: Write) -> Iterator[Step]:
    if write.table:
        yield Step("rights", write.table, lambda c: _may_write(c, case, place, write), place)
    else:
        yield Step(
            "rights", write.sequence or "", lambda c: _may_count(c, case, place, write), place
        )
    if write.counter is not None and not NAMED(write.where or ""):
        yield Step("booking", write.counter, lambda c: _one_counter(c, case, place, write), place)


def _may_write(connection: Connection, case: Case, place: Place, write: Write) -> Iterator[Finding]:
    """The whole statement is explained: some rights are only looked at for all its columns."""
    columns = list(write.values) or [write.column or ""]
    rows = named_table(write.table, columns)
    nothing: dict[str, ColumnElement[Any]] = {each: null() for each in columns}
    statement = insert(rows).values(nothing) if write.insert else update(rows).values(nothing)
    what = "insert into" if write.insert else "update"
    speech = case.parts.engine.speech
    try:
        speech.explain(connection, statement, {})
    except DBAPIError as error:
        if speech.kind(error) is not Kind.DENIED:
            raise
        text_ = f"the account may not {what} {write.table}"
        yield case.failed(
            "rights",
            write.table,
            text_,
            place,
            remedy=f"GRANT {what.split(maxsplit=1)[0].upper()} ON {write.table}",
        )
        return
    for each in _unnumbered(connection, write):
        text_ = f"the account may not use the sequence of {write.table}.{each}"
        yield case.failed("rights", write.table, text_, place, remedy=_USAGE)
        return
    yield case.ok("rights", write.table, f"the account may {what} it", place)


def _may_count(connection: Connection, case: Case, place: Place, write: Write) -> Iterator[Finding]:
    name = write.sequence or ""
    may = connection.dialect.name != "postgresql" or connection.scalar(
        select(func.has_sequence_privilege(quoted(connection, name), "USAGE"))
    )
    if may:
        yield case.ok("rights", name, "the account may use it", place)
    else:
        said = f"the account may not use the sequence {name}"
        yield case.failed("rights", name, said, place, remedy=f"GRANT USAGE ON SEQUENCE {name}")


def quoted(connection: Connection, name: str) -> str:
    """A name of the mapping's as the database takes it in a statement."""
    preparer = connection.dialect.identifier_preparer
    return ".".join(preparer.quote(each) for each in name.split("."))


def _unnumbered(connection: Connection, write: Write) -> list[str]:
    """The columns of a new row whose sequence the account may not use; PostgreSQL alone asks."""
    if connection.dialect.name != "postgresql" or write.insert is None:
        return []
    generated = [each for each in write.keys if each not in write.values]
    table = quoted(connection, write.insert)
    return [
        each
        for each in generated
        if connection.scalar(_SERIAL, {"name": table, "number": each}) is False
    ]


def _one_counter(
    connection: Connection, case: Case, place: Place, write: Write
) -> Iterator[Finding]:
    rows = named_table(write.table, [write.column or ""])
    # nosemgrep: sql-is-never-put-together-as-text - the mapping is the clinic's own
    which = text(f"({write.where or '1 = 1'})")
    count = connection.scalar(select(func.count()).select_from(rows).where(which))
    if count == 1:
        yield case.ok("booking", write.table, "its counter is one row", place)
        return
    said = f"the counter is {count} rows, and must be one: no booking can be written"
    yield case.failed(
        "booking", write.table, said, (*place, "where"), remedy="see what its `where` finds"
    )


def _undone_by_hand(case: Case, name: str) -> Step:
    def said(_: Connection) -> Iterator[Finding]:
        told = f"{name} may be without transactions: a booking that stops there is deleted by hand"
        yield case.warning("booking", name, told, ("booking", "without_transactions"))

    return Step("booking", name, said)
