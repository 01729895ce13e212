"""What the account may do: all that reading and booking need, and nothing more."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, insert, null, select, text, update
from sqlalchemy.exc import DBAPIError

from adapters.doctor.case import CheckStep
from adapters.doctor.sql.case import SqlCase
from adapters.documents.document import Place
from adapters.examination import Finding
from adapters.mapping.models import NAMED, StepMap
from adapters.sql.booking import named_table
from adapters.sql.engines.base import ErrorKind
from adapters.sql.session import SqlSession

_USAGE = "GRANT USAGE ON SEQUENCE, as the page on connecting shows"
# Columns that are numbered by themselves (identity) need no right.
_SERIAL = text(
    "SELECT has_sequence_privilege(pg_get_serial_sequence(CAST(:name AS text),"
    " CAST(:number AS text)), 'USAGE') FROM pg_attribute WHERE attidentity = ''"
    " AND attrelid = to_regclass(CAST(:name AS text)) AND attname = CAST(:number AS text)"
)
_GRANTS = "take from it what the page on connecting does not grant"


def account(case: SqlCase) -> Iterator[CheckStep]:
    """One look at the rights, and one at each table that a booking writes."""
    yield CheckStep("rights", "account", lambda session: _too_much(session.connection, case))
    for number, write in enumerate(case.core.mapping.booking.steps):
        if not case.is_lost("booking", "steps", number):
            yield from _of_write(case, ("booking", "steps", number), write)
    for name in case.core.mapping.booking.without_transactions:
        yield _undone_by_hand(case, name)


def _too_much(connection: Connection, case: SqlCase) -> Iterator[Finding]:
    more = case.speech.rights(connection)
    for sentence in more:
        yield case.warning(
            "rights", "account", f"{sentence}, which it does not need", (), remedy=_GRANTS
        )
    if not more:
        yield case.ok("rights", "account", "it may do no more than it needs")


def _of_write(case: SqlCase, place: Place, write: StepMap) -> Iterator[CheckStep]:
    if write.table:
        yield CheckStep(
            "rights",
            write.table,
            lambda session: _may_write(session.connection, case, place, write),
            place,
        )
    else:
        yield CheckStep(
            "rights",
            write.sequence or "",
            lambda session: _may_count(session.connection, case, place, write),
            place,
        )
    if write.counter is not None and not NAMED(write.where or ""):
        yield CheckStep(
            "booking",
            write.counter,
            lambda session: _one_counter(session.connection, case, place, write),
            place,
        )


def _may_write(
    connection: Connection, case: SqlCase, place: Place, write: StepMap
) -> Iterator[Finding]:
    """The whole statement is explained: some rights are only looked at for all its columns."""
    columns = list(write.values) or [write.column or ""]
    rows = named_table(write.table, columns)
    nothing: dict[str, ColumnElement[Any]] = {each: null() for each in columns}
    statement = insert(rows).values(nothing) if write.insert else update(rows).values(nothing)
    what = "insert into" if write.insert else "update"
    speech = case.speech
    try:
        speech.explain(connection, statement, {})
    except DBAPIError as error:
        if speech.kind(error) is not ErrorKind.DENIED:
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


def _may_count(
    connection: Connection, case: SqlCase, place: Place, write: StepMap
) -> Iterator[Finding]:
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


def _unnumbered(connection: Connection, write: StepMap) -> list[str]:
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
    connection: Connection, case: SqlCase, place: Place, write: StepMap
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


def _undone_by_hand(case: SqlCase, name: str) -> CheckStep:
    def said(_: SqlSession) -> Iterator[Finding]:
        told = f"{name} may be without transactions: a booking that stops there is deleted by hand"
        yield case.warning("booking", name, told, ("booking", "without_transactions"))

    return CheckStep("booking", name, said)
