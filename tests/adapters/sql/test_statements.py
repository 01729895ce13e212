"""Statements are compiled once for each shape: none holds a value of another call."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Select, bindparam, literal_column, select
from sqlalchemy.dialects.mssql.mssqlpython import MSDialect_mssqlpython
from sqlalchemy.dialects.sqlite import dialect as sqlite

from adapters.base import Condition, Filter, Only
from adapters.sql.adapter import SqlAdapter, SqlSession
from adapters.sql.engines.connection import HeardConnection
from adapters.sql.engines.mssql import MssqlSpeech
from adapters.sql.engines.statements import (
    MOST_SHAPES,
    Compiled,
    Parameters,
    ShapedStatement,
    Statements,
)
from adapters.sql.records import SqlReader
from tests.adapters.asked import asked
from tests.adapters.clinic import ask, connect
from tests.adapters.servers import mariadb_database, postgres_database
from tests.adapters.sql import test_conditions_servers as servers
from tests.adapters.sql.test_conditions import MAPPING, odd, of_values, with_things
from tests.adapters.sql.test_sql_adapter_servers import SCHEMA
from tests.adapters.sql.test_sql_adapter_servers import connect as connect_server

WORDS = ("elan", "el", "e l", "nobody here", "", "ÉLAN")
SINCE = "2026-03-29T01:00:00Z", "2026-10-25T00:30:00Z", "2027-01-01T00:00:00Z"


class Stock:
    """A practice's stock with odd values, and an adapter of it in a loop of its own."""

    def __init__(self, adapter: SqlAdapter) -> None:
        self.loop, self.adapter = asyncio.new_event_loop(), adapter
        filterable = adapter.filterable["stock"]
        self.values = {name: each for name, each in servers.VALUES.items() if name in filterable}

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)


@pytest.fixture(scope="module", params=["sqlite", "postgresql", "mariadb"])
def stock(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Stock]:
    folder = tmp_path_factory.mktemp("stock")
    if request.param == "sqlite":
        made = Stock(connect(odd(folder), mapping=with_things(MAPPING.read_text())))
        yield made
    else:
        words = servers.WORDS[request.param]
        database = postgres_database if request.param == "postgresql" else mariadb_database
        with database(*(each.format(**words) for each in (*SCHEMA, *servers.THINGS))) as url:
            made = Stock(connect_server(url, folder, servers._mapping()))
            yield made
            made.run(made.adapter.aclose())
            made.loop.close()
            return
    made.run(made.adapter.aclose())
    made.loop.close()


@st.composite
def _asked(draw: Any, stock: Stock) -> tuple[list[Filter], Only, int, bool]:
    """Filters, conditions, a limit, and whether the next page is asked for too."""
    filters = []
    for _ in range(draw(st.integers(0, 2))):
        kind = draw(st.sampled_from(["equals", "equals", "since", "around", "search"]))
        if kind == "search":
            filters.append(Filter(kind, ("name",), draw(st.sampled_from(WORDS))))
        elif kind == "equals":
            name = draw(st.sampled_from(sorted(stock.values)))
            filters.append(Filter(kind, (name,), draw(st.sampled_from(stock.values[name]))))
        else:
            moment = datetime.fromisoformat(draw(st.sampled_from(SINCE)))
            filters.append(Filter(kind, ("updatedAt",), moment))
    conditions: list[Condition] = []
    for _ in range(draw(st.integers(0, 2))):
        name = draw(st.sampled_from(sorted(servers.VALUES)))
        conditions.append(draw(st.sampled_from(list(of_values(name, servers.VALUES[name])))))
    served = [each for each in conditions if not stock.adapter.narrows("stock", (each,))]
    return filters, tuple(served), draw(st.integers(1, 4)), draw(st.booleans())


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_kept_statement_gives_what_one_gives_that_is_built_anew(
    stock: Stock, data: st.DataObject
) -> None:
    filters, only, limit, goes_on = data.draw(_asked(stock))
    adapter = stock.adapter

    async def both(session: SqlSession) -> None:
        heard = HeardConnection(adapter.engine.opened(session.connection))
        reader = SqlSession(adapter, heard).reader("stock")
        page = await reader.page(filters, limit, None, only)
        if goes_on and page.after is not None:
            await reader.page(filters, limit, page.after, only)
        for record in page.records[:1]:
            await reader.exists(record["id"], only)
        await reader.rows_of([record["id"] for record in page.records])
        for question in heard.questions:
            kept = await session.opened.rows(question)
            anew = session.connection.execute(*question.built()).all()
            assert list(map(tuple, kept)) == list(map(tuple, anew)), question

    stock.run(adapter.look(both))
    pages = [
        stock.run(adapter.read_many(ask("stock", filters=filters, only=only, limit=limit)))
        for adapter.engine.reader.statements in (adapter.engine.reader.statements, Statements())
    ]
    assert pages[0] == pages[1]


def test_what_is_looked_at_is_the_same_whatever_else_is_read(stock: Stock) -> None:
    whole = stock.run(stock.adapter.read_many(ask("stock", limit=20))).records
    for name in ("quantity", "updatedAt", "isLow", "category"):
        query = ask("stock", limit=20, fields=frozenset({name}))
        told = stock.run(stock.adapter.read_many(query)).records
        assert told == [{"id": record["id"], name: record[name]} for record in whole]


def test_calls_that_differ_in_their_values_alone_have_one_statement(stock: Stock) -> None:
    texts = set()
    for limit, name in ((1, "Élan"), (3, "x"), (4, "ÉLAN")):
        filters = (Filter("equals", ("name",), name),)
        with asked() as said:
            stock.run(stock.adapter.read_many(ask("stock", filters=filters, limit=limit)))
        texts.add(said[0].text)
        assert any(name in str(value) for value in said[0].bound)
    assert len(texts) == 1
    assert "Élan" not in texts.pop()


def _question(shape: Any, *values: Any) -> ShapedStatement:
    def build(parameters: Parameters) -> Select[Any]:
        wanted = literal_column("a").in_(parameters.take(len(values)))
        return select(literal_column("7")).where(wanted, literal_column("b") == 5)

    return ShapedStatement(shape, values, build)


def test_values_come_in_the_drivers_order_with_the_constants_of_the_shape() -> None:
    made = Statements().compiled(_question("two", "x", "y"), sqlite())
    assert "IN (?, ?)" in made.text
    assert made.bound(("p", "q")) == ("p", "q", 5)
    for values in ((), ("p",), ("p", "q", "r")):
        with pytest.raises(RuntimeError, match="values for a statement that has 2"):
            made.bound(values)


def test_a_value_that_a_dialect_would_write_into_the_text_is_refused() -> None:
    def build(parameters: Parameters) -> Select[Any]:
        written = bindparam(parameters.named("x"), literal_execute=True)
        return select(literal_column("a")).where(literal_column("b") == written)

    with pytest.raises(RuntimeError, match="would hold values of one call"):
        Compiled(build, sqlite())


def test_where_a_limit_is_written_out_it_belongs_to_the_shape(stock: Stock) -> None:
    """As TOP is in SQL Server."""
    reader = SqlReader(stock.adapter.readers["stock"].table, MssqlSpeech())
    questions = [reader.page([], None, size) for size in (3, 51)]
    dialect = MSDialect_mssqlpython(paramstyle="qmark")
    texts = [Statements().compiled(question, dialect).text for question in questions]
    assert [text.split()[:3] for text in texts] == [["SELECT", "TOP", "3"], ["SELECT", "TOP", "51"]]
    assert questions[0].shape != questions[1].shape
    assert questions[0].values == questions[1].values == ()


def test_no_more_statements_are_kept_than_there_is_room_for() -> None:
    kept, dialect = Statements(), sqlite()
    first = kept.compiled(_question(0, "x"), dialect)
    assert kept.compiled(_question(0, "y"), dialect) is first
    for shape in range(1, MOST_SHAPES + 1):
        kept.compiled(_question(shape, "x"), dialect)
    assert len(kept._kept) == MOST_SHAPES
    assert kept.compiled(_question(0, "x"), dialect) is not first
