"""How the database comes at the rows of each call: what scans a big table, and the index for it."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy import Connection, Executable, Select, event, func, literal_column, select
from sqlalchemy.exc import DBAPIError

from adapters.base import Filter
from adapters.doctor.case import CheckStep
from adapters.doctor.findings import rows
from adapters.doctor.sql.account import quoted
from adapters.doctor.sql.blame import NAME, blamed
from adapters.doctor.sql.case import SqlCase
from adapters.documents.document import Place
from adapters.examination import Finding, Verdict
from adapters.mapped.repeated import KnownTimes
from adapters.sql.booking import named_table
from adapters.sql.columns import sql
from adapters.sql.records import SqlReader
from adapters.sql.session import SqlSession

# Rows of a table that may be read for one call, and those from which on it fails a partner.
BIG, HUGE = 5_000, 100_000
# Filters by which a partner may ask, of fields that refer to another resource.
REFERRING = (("patients", "clientId"), ("invoices", "clientId"))
_NO_ALIAS = "ON|WHERE|LEFT|RIGHT|INNER|CROSS|JOIN|ORDER|GROUP|LIMIT|FULL|HAVING|UNION"
_TABLES = re.compile(
    rf"(?:\b(?:FROM|JOIN)\s+|,\s*)((?:{NAME}\.)?{NAME})"
    rf"(?:\s+(?:AS\s+)?(?!(?:{_NO_ALIAS})\b)(\w+))?",
    re.IGNORECASE,
).findall
_QUOTES = '"`[]'

Call = Callable[[SqlSession], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call whose statements are looked at: `places` say where each of them comes from."""

    what: str
    subject: str
    call: Call
    places: tuple[Place, ...]
    strict: bool = True


def plans(case: SqlCase) -> Iterator[CheckStep]:
    """One look at each kind of call."""
    for asked in _calls(case):
        run = partial(_plan, case=case, asked=asked)
        yield CheckStep("plans", asked.subject, run, asked.places[0])
    for number, busy in enumerate(case.core.mapping.diary.busy):
        place = ("diary", "busy", number)
        if busy.end is not None and busy.longest is None and not case.is_lost(*place):
            look = partial(_unbounded, case=case, source=busy.from_ or "", place=place)
            yield CheckStep("plans", "busy", look, place)


def _calls(case: SqlCase) -> Iterator[AskedCall]:
    for name, reader in case.readers():
        yield from _of_resource(case, name, reader)
    for name, field in REFERRING:
        yield from _filtered(case, name, field)
    yield from _of_diary(case)


def _of_resource(case: SqlCase, name: str, reader: SqlReader) -> Iterator[AskedCall]:
    records = [each for each in case.samples.get(name, ()) if each.get("id")]
    # of more than a million hashed ids some have been forgotten again
    records = [each for each in records if reader.table.ids.keys(each["id"])]
    if not records:
        return
    shown = records[len(records) // 2]["id"]
    nested = tuple(("resources", name, "lists", each.name) for each in reader.children)
    places = (("resources", name), *nested)
    yield AskedCall("a single read", name, lambda session: session.one(name, shown), places)
    yield AskedCall(
        "a page", name, lambda session: session.page(name, (), 50, None, ()), places, strict=False
    )


def _filtered(case: SqlCase, name: str, field: str) -> Iterator[AskedCall]:
    wanted = next((each[field] for each in case.samples.get(name, ()) if each[field]), None)
    if wanted is None or case.is_lost("resources", name):
        return
    filters = [Filter("equals", (field,), wanted)]
    place = ("resources", name, "fields", field)
    yield AskedCall(
        f"a list by {field}",
        name,
        partial(_page, name=name, filters=filters),
        (place,),
        strict=False,
    )


def _of_diary(case: SqlCase) -> Iterator[AskedCall]:
    known = case.vets()
    if known and not case.is_lost("diary") and not case.is_lost("resources", "vets"):
        now = case.examination.now
        day = now.astimezone(case.core.diary.zone).date() + timedelta(days=1)
        wanted = {"vetId": known[0], "date": day, "appointmentTypeId": None}
        yield AskedCall(
            "a day's slots",
            "slots",
            lambda session: case.core.diary.slots(session, wanted, now, KnownTimes()),
            (("diary",),),
        )
    reference = case.core.mapping.booking.reference
    if (
        reference is not None
        and not case.is_lost("booking")
        and not case.is_lost("resources", "appointments")
    ):
        reader = case.adapter.readers["appointments"]
        mark = sql(reference)
        yield AskedCall(
            "a look for a reference",
            "booking",
            lambda session: _marked(session, reader, mark),
            (("booking", "reference"),),
        )


async def _plan(session: SqlSession, case: SqlCase, asked: AskedCall) -> AsyncIterator[Finding]:
    connection = session.connection
    with _heard(connection) as statements:
        await asked.call(session)
    found = []
    for number, (statement, parameters) in enumerate(list(statements)):
        place = asked.places[min(number, len(asked.places) - 1)]
        found += list(_scans(connection, case, asked, place, statement, parameters))
    for finding in {(each.text, each.place): each for each in found}.values():
        yield finding
    if not found:
        many = "1 statement" if len(statements) == 1 else f"{len(statements)} statements"
        yield case.ok(
            "plans",
            asked.subject,
            f"{asked.what}: {many}, no big table is read whole",
        )


@contextmanager
def _heard(connection: Connection) -> Iterator[list[tuple[Executable, dict[str, Any]]]]:
    """The statements that are run meanwhile, with their parameters."""
    heard: list[tuple[Executable, dict[str, Any]]] = []

    def hear(_: Connection, statement: Any, __: Any, parameters: Any, ___: Any) -> None:
        heard.append((statement, dict(parameters)))

    event.listen(connection, "before_execute", hear)
    try:
        yield heard
    finally:
        event.remove(connection, "before_execute", hear)


def _scans(
    connection: Connection,
    case: SqlCase,
    asked: AskedCall,
    place: Place,
    statement: Executable,
    parameters: dict[str, Any],
) -> Iterator[Finding]:
    written = str(statement)
    for step in case.speech.explain(connection, statement, parameters):
        if not step.scans or (
            place[0] == "resources" and not asked.strict and _in_order(step.index)
        ):
            continue
        table, alias = _real(step.table, written)
        count = _count(connection, table)
        if count <= BIG:
            continue
        at, columns = blamed(case, place, alias, table)
        verdict = Verdict.FAILED if asked.strict and count > HUGE else Verdict.WARNING
        many = f"more than {HUGE:,}" if count > HUGE else f"{count:,}"
        remedy = _index(connection, table, columns)
        said = f"{asked.what} reads the whole of {table}, {many} rows"
        yield case.judged(
            verdict,
            "plans",
            asked.subject,
            said,
            at,
            remedy=remedy or "compare plain columns, which an index can serve",
        )


def _index(connection: Connection, table: str, columns: list[str]) -> str:
    """The statement that makes the index; "" where there is nothing to be indexed."""
    if not columns:
        return ""
    name = "_".join([table.rpartition(".")[2], *columns])
    bare = re.sub(r"\W+", "_", name).strip("_").lower()
    return f"CREATE INDEX {bare} ON {quoted(connection, table)} ({', '.join(columns)})"


def _in_order(index: str) -> bool:
    """A page that is read along an index ends with the page."""
    return bool(index)


def _real(name: str, written: str) -> tuple[str, str]:
    """The table behind a name in a plan, and the name by which the statement knows it."""
    for table, alias in _TABLES(written):
        schema, _, bare = table.rpartition(".")
        named = name if bare.strip(_QUOTES).lower() == name.lower() else bare.strip(_QUOTES)
        if name.lower() in (alias.lower(), bare.strip(_QUOTES).lower()):
            whole = f"{schema.strip(_QUOTES)}.{named}" if schema else named
            return whole, alias or bare.strip(_QUOTES)
    return name, name


def _count(connection: Connection, table: str) -> int:
    """The rows of a table, up to one more than HUGE; 0 for what is none."""
    some: Select[Any] = select(literal_column("1").label("one"))
    limited = some.select_from(named_table(table, ())).limit(HUGE + 1).subquery()
    try:
        with connection.begin_nested():
            return connection.execute(select(func.count()).select_from(limited)).scalar_one()
    except DBAPIError:
        return 0


def _unbounded(session: SqlSession, case: SqlCase, source: str, place: Place) -> Iterator[Finding]:
    table = source.split(maxsplit=1)[0]
    count = _count(session.connection, table)
    if count > BIG:
        said = f"it holds {rows(min(count, HUGE))} or more, and says nowhere how long one can last"
        remedy = "write `longest` (days), so that an index on start serves"
        yield case.warning("plans", "busy", said, place, remedy=remedy)


async def _marked(session: SqlSession, reader: SqlReader, mark: Any) -> None:
    reader.marked(session.connection, mark, "0" * 16, 1)


async def _page(session: SqlSession, name: str, filters: Sequence[Filter]) -> None:
    await session.page(name, filters, 50, None, ())
