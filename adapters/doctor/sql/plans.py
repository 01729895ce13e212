"""Looks at the plan of each call: what scans a big table, and the index against it."""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy import Connection, Select, func, literal_column, select
from sqlalchemy.exc import DBAPIError

from adapters.base import Filter
from adapters.doctor.case import Look
from adapters.doctor.sql.booking import quoted
from adapters.doctor.sql.rows import SqlCase
from adapters.documents.document import Place
from adapters.examination import Verdict, counted
from adapters.mapped.clock_change import KnownTimes
from adapters.mapping.models import BusyMap
from adapters.sql.adapter import SqlSession
from adapters.sql.booking import named_table
from adapters.sql.columns import sql
from adapters.sql.engines.connection import HeardConnection

# Rows of a table above which a scan is a warning, and above which it is a failure.
BIG, HUGE = 5_000, 100_000
_NAME = r"(?:\w+|\"[^\"]+\"|`[^`]+`|\[[^\]]+\])"
_COLUMN = re.compile(rf"(?:(\w+)\.)?({_NAME})").fullmatch
_NO_ALIAS = "ON|WHERE|LEFT|RIGHT|INNER|CROSS|JOIN|ORDER|GROUP|LIMIT|FULL|HAVING|UNION"
_TABLES = re.compile(
    rf"(?:\b(?:FROM|JOIN)\s+|,\s*)((?:{_NAME}\.)?{_NAME})"
    rf"(?:\s+(?:AS\s+)?(?!(?:{_NO_ALIAS})\b)(\w+))?",
    re.IGNORECASE,
).findall
_QUOTES = '"`[]'
_UNUSED = (
    "{} has an index on {}, which cannot serve here: look for a join without a condition"
    " (CROSS JOIN), and for functions around columns, in `from` and `where`"
)
Call = Callable[[SqlSession], Awaitable[Any]]


def plans(case: SqlCase) -> Iterator[Look]:
    if case.speech.has_plans:
        yield from _of_calls(case)
    else:
        look = case.look("plans", "statements", None)
        look.judge(Verdict.NOTE, "which of them read a whole table cannot be told here")
        yield look
    for number, busy in enumerate(case.adapter.mapping.diary.busy):
        place = ("diary", "busy", number)
        if busy.end is not None and busy.longest is None and not case.is_lost(*place):
            yield case.look("plans", "busy", partial(_unbounded, busy), *place)


def _of_calls(case: SqlCase) -> Iterator[Look]:
    for name in case.readable():
        reader = case.adapter.readers[name]
        # beyond a million hashed ids, some have been forgotten again
        ids = (record["id"] for record in case.samples.get(name, ()) if record.get("id"))
        if known := [shown for shown in ids if reader.table.ids.keys(shown)]:
            one = _one(name, known[len(known) // 2])
            nested = [("resources", name, "lists", inner) for inner in reader.table.lists]
            places: list[Place] = [("resources", name), *nested]
            yield _look(case, "a single read", name, one, *places)
            yield _look(case, "a page", name, _page(name), *places, strict=False)
    for name in ("patients", "invoices"):
        clients = filter(None, (record["clientId"] for record in case.samples.get(name, ())))
        if (client := next(clients, None)) and not case.is_lost("resources", name):
            page = _page(name, Filter("equals", ("clientId",), client))
            place: Place = ("resources", name, "fields", "clientId")
            yield _look(case, "a list by clientId", name, page, place, strict=False)
    vets, now, diary = case.vets(), case.examination.now, case.adapter.diary
    if vets and not case.is_lost("diary") and not case.is_lost("resources", "vets"):
        day = now.astimezone(diary.zone).date() + timedelta(days=1)
        values = {"vetId": vets[0], "date": day, "appointmentTypeId": None}
        slots = partial(diary.slots, values=values, now=now, known=KnownTimes())
        yield _look(case, "a day's slots", "slots", slots, ("diary",))
    reference = case.adapter.mapping.booking.reference
    if reference and not case.is_lost("booking") and not case.is_lost("resources", "appointments"):

        async def marked(session: SqlSession) -> None:
            await session.reader("appointments").marked(
                sql(reference), case.adapter.mark("0" * 16), 1
            )

        yield _look(case, "a look for a reference", "booking", marked, ("booking", "reference"))


def _one(name: str, public_id: str) -> Call:
    return lambda session: session.reader(name).one(public_id)


def _page(name: str, *filters: Filter) -> Call:
    return lambda session: session.reader(name).page(filters, 50, None)


def _look(
    case: SqlCase, what: str, subject: str, call: Call, *places: Place, strict: bool = True
) -> Look:
    """Returns a look at a call's statements; `places` say where each of them comes from.

    Unless `strict`, what goes along an index may go through the whole table.
    """
    return case.look("plans", subject, partial(_plan, what, call, places, strict), *places[0])


async def _plan(
    what: str, call: Call, places: Sequence[Place], strict: bool, case: SqlCase, look: Look
) -> None:
    connection = case.session.connection
    heard = HeardConnection(case.engine.opened(connection))
    await call(SqlSession(case.adapter, heard))
    statements = [question.built() for question in heard.questions]
    for number, (statement, parameters) in enumerate(statements):
        place = places[min(number, len(places) - 1)]
        for step in case.speech.explain(connection, statement, parameters):
            # what is read along an index ends with the page
            in_order = place[0] == "resources" and not strict and step.index
            if step.scans and not in_order:
                table, alias = _real(step.table, str(statement))
                count = _count(connection, table)
                if count > BIG:
                    many = f"more than {HUGE:,}" if count > HUGE else f"{count:,}"
                    text = f"{what} reads the whole of {table}, {many} rows"
                    verdict = Verdict.FAILED if strict and count > HUGE else Verdict.WARNING
                    at, remedy = _blamed(case, place, alias, table)
                    look.judge(verdict, text, place=at, remedy=remedy)
    # two statements may give the same finding
    look.findings[:] = {(f.text, f.place): f for f in look.findings}.values()
    if not look.findings:
        many = counted(len(statements), "statement")
        look.ok(f"{what}: {many}, no big table is read whole")


def _real(name: str, written: str) -> tuple[str, str]:
    """Returns the table behind a name in a plan, and its name in the statement."""
    for table, alias in _TABLES(written):
        schema, _, bare = table.rpartition(".")
        bare = bare.strip(_QUOTES)
        if name.lower() in (alias.lower(), bare.lower()):
            named = name if bare.lower() == name.lower() else bare
            return f"{schema.strip(_QUOTES)}.{named}" if schema else named, alias or bare
    return name, name


def _count(connection: Connection, table: str) -> int:
    """Returns the rows of a table, up to one more than HUGE; 0 for what is no table."""
    some: Select[Any] = select(literal_column("1").label("one"))
    limited = some.select_from(named_table(table, ())).limit(HUGE + 1).subquery()
    try:
        with connection.begin_nested():
            return connection.execute(select(func.count()).select_from(limited)).scalar_one()
    except DBAPIError:
        return 0


async def _unbounded(busy: BusyMap, case: SqlCase, look: Look) -> None:
    count = _count(case.session.connection, (busy.from_ or "").split(maxsplit=1)[0])
    if count > BIG:
        text = f"it holds {counted(min(count, HUGE), 'row')} or more,"
        remedy = "write `longest` (days), so that an index on start serves"
        look.warning(f"{text} and says nowhere how long one can last", remedy=remedy)


def _blamed(case: SqlCase, place: Place, alias: str, table: str) -> tuple[Place, str]:
    """Returns the place that makes it scan, and the remedy: an index where columns are compared."""
    for at, columns in _columns(case, place, alias, table):
        if columns and case.engine.copy is None:  # a copy has one for plain columns
            name = "_".join([table.rpartition(".")[2], *columns])
            bare = re.sub(r"\W+", "_", name).strip("_").lower()
            named = quoted(case.session.connection, table)
            if _is_indexed(case, table, columns):
                return at, _UNUSED.format(table, ", ".join(columns))
            return at, f"CREATE INDEX {bare} ON {named} ({', '.join(columns)})"
    return place, "compare plain columns, which an index can serve"


def _is_indexed(case: SqlCase, table: str, columns: Sequence[str]) -> bool:
    """Returns whether an index of the table begins with the columns, in whatever order."""
    wanted = {column.strip(_QUOTES).lower() for column in columns}
    known = case.speech.indexes(case.session.connection, table)
    return any({name.lower() for name in index[: len(wanted)]} == wanted for index in known)


def _columns(
    case: SqlCase, place: Place, alias: str, table: str
) -> Iterator[tuple[Place, list[str]]]:
    """Yields places in the mapping, with the columns of the table by which they find rows."""
    for at, expressions in _compared(case, place, table):
        matches = filter(None, map(_COLUMN, expressions))
        yield at, [match[2] for match in matches if (match[1] or alias).lower() == alias.lower()]
    if place[0] == "resources":
        base = place[: 4 if "lists" in place else 2]
        mapped: Any = case.rows(".".join(map(str, base[1::2]))).mapped
        pieces: dict[Place, str] = {
            ("fields", name): " ".join(field.expressions) for name, field in mapped.fields.items()
        }
        # columns that a piece of SQL compares with another table's
        either = rf"\b{re.escape(alias)}\.(\w+)\s*=|=\s*{re.escape(alias)}\.(\w+)\b"
        pieces |= {("from",): mapped.from_, ("where",): mapped.where or ""}
        for inner, written in pieces.items():
            columns = [one or other for one, other in re.findall(either, written, re.IGNORECASE)]
            yield (*base, *inner), list(dict.fromkeys(columns))[:2]


def _compared(case: SqlCase, place: Place, table: str) -> Iterator[tuple[Place, Sequence[str]]]:
    """Yields places in the mapping, with the table's expressions that the gateway compares."""
    mapping = case.adapter.mapping
    if place[0] == "diary":
        named = re.compile(rf"\b{re.escape(table.strip(chr(34)))}\b", re.IGNORECASE).search
        for kind, starts in (("busy", ["start"]), ("slots", ["start"]), ("hours", [])):
            for number, source in enumerate(getattr(mapping.diary, kind)):
                if named(source.from_ or ""):
                    owner = [source.owner.text] if source.owner else []
                    at: Place = ("diary", kind, number, *starts)
                    yield at, [*owner, *(getattr(source, start).text for start in starts)]
    elif place[0] == "booking":
        yield place, [mapping.booking.reference or ""]
    else:
        resource = mapping.resources[str(place[1])]
        if "fields" in place:
            yield place, resource.fields[str(place[3])].source
        elif "lists" in place:
            yield (*place, "parent"), resource.lists[str(place[3])].parent or ()
        else:
            yield (*place, "key"), resource.key.source
