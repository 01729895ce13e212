"""What SQL Server is sent, compared as text: no server and no driver is needed."""

from pathlib import Path
from typing import Any

from sqlalchemy import column, insert, table, text, update
from sqlalchemy.dialects.mssql.mssqlpython import MSDialect_mssqlpython
from sqlalchemy.exc import DBAPIError

from adapters.mapping.models import RowSource
from adapters.sql.checks import checks_of
from adapters.sql.columns import rows_of, sql
from adapters.sql.engines import mssql
from adapters.sql.engines.base import ErrorKind, given
from adapters.sql.engines.mssql import MssqlSpeech, without_parameters
from tests.races.practice import practice

SPEECH = MssqlSpeech()
VISITS = RowSource.model_validate({"from": "dbo.visit v JOIN [a b] x ON x.id = v.id",
                              "where": "v.note LIKE '%10:30%'"})  # fmt: skip


def shown(statement: Any, **keys: Any) -> str:
    dialect = MSDialect_mssqlpython(paramstyle="qmark")
    compiled = statement.compile(
        dialect=dialect, compile_kwargs={"render_postcompile": True}, **keys
    )
    return " ".join(str(compiled).split())


def test_a_record_a_page_and_a_list_are_read() -> None:
    one = rows_of(VISITS, sql("v.id")).where(sql("v.id") == given("key", 1)).limit(1)
    assert shown(one) == (
        "SELECT TOP 1 (v.id) FROM dbo.visit v JOIN [a b] x ON x.id = v.id"
        " WHERE (v.note LIKE '%10:30%') AND (v.id) = ?"
    )
    after = sql("v.id") > given("after", "7")
    page = rows_of(VISITS, sql("v.id")).where(after).order_by(sql("v.id")).limit(51)
    assert shown(page).startswith("SELECT TOP 51 (v.id) FROM dbo.visit v")
    assert shown(page).endswith("AND (v.id) > ? ORDER BY (v.id)")
    parents = sql("v.id").in_(given("parents", [1, 2], expanding=True))
    assert shown(rows_of(VISITS, sql("v.id")).where(parents)).endswith("(v.id) IN (?, ?)")


def test_a_row_is_written_and_a_counter_moved() -> None:
    visit = table("visit", column("left"), column("starts"))
    assert shown(insert(visit), column_keys=["left", "starts"]) == (
        "INSERT INTO visit ([left], starts) VALUES (?, ?)"
    )
    number: Any = column("value")
    moved = update(table("counter", number)).values({number: number + 1}).where(sql("name = 'a'"))
    assert shown(moved) == "UPDATE counter SET value=(counter.value + ?) WHERE (name = 'a')"


def test_texts_are_searched_trimmed_and_looked_at_for_dates() -> None:
    searched = shown(SPEECH.searchable(sql("v.name")))
    assert searched.startswith("concat(N' ', replace(replace(")
    inner = "left(coalesce(convert(NVARCHAR(4000), (v.name), 121), N''), ?)"
    assert f"{inner} COLLATE Latin1_General_CI_AI" in searched
    assert ", N'''', N' ')" in searched
    assert searched.endswith("NCHAR(160), N' ')) COLLATE Latin1_General_CI_AI")
    assert shown(SPEECH.trimmed(sql("v.name"))) == (
        "trim(CONCAT(N' ', NCHAR(9), NCHAR(10), NCHAR(11), NCHAR(12), NCHAR(13), NCHAR(160))"
        " FROM convert(NVARCHAR(4000), (v.name), 121))"
    )
    assert shown(SPEECH.undated(sql("v.starts"))) == (
        "convert(NVARCHAR(4000), (v.starts), 121) NOT LIKE"
        " N'[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]%'"
    )


def test_the_lock_is_the_transactions() -> None:
    assert shown(mssql._LOCK) == (
        "DECLARE @got int; EXEC @got = sp_getapplock @Resource = ?, @LockMode = 'Exclusive',"
        " @LockOwner = 'Transaction', @LockTimeout = ?; SELECT @got"
    )


def test_a_statement_is_looked_at_without_its_parameters() -> None:
    page = rows_of(VISITS, sql("v.id")).where(sql("v.id") == given("key")).limit(51)
    bare = " ".join(without_parameters(page, []).split())
    assert bare.startswith("SELECT TOP 51 (v.id)")
    assert bare.endswith("(v.note LIKE '%10:30%') AND (v.id) = NULL")
    row = insert(table("visit", column("left")))
    assert without_parameters(row, ["left"]) == "INSERT INTO visit ([left]) VALUES (NULL)"
    assert without_parameters(text("SELECT :a + 1"), ["a"]) == "SELECT NULL + 1"


def test_a_condition_is_tried_as_a_booking_takes_it(tmp_path: Path) -> None:
    """SQL Server has no value that is true."""
    conditions = ("      if: {sql: ':minutes > 20'}\n", "        - {if: {sql: ':minutes > 30'}}\n")
    with practice("sqlite", tmp_path) as made:
        journal = "    - insert: journal\n"
        text = made.mapping.replace(
            journal, f"{journal}{conditions[0]}      each:\n{conditions[1]}"
        )
        adapter = made.open(tmp_path, text)
    tried = [shown(each.statement) for each in checks_of(adapter.mapping) if "if" in each.place]
    assert tried == [f"SELECT (CASE WHEN (? > {least}) THEN 1 ELSE 0 END)" for least in (30, 20)]


class Said(Exception):
    def __init__(self, driver: str, server: str) -> None:
        super().__init__(f"Driver Error: {driver}; DDBC Error: {server}")
        self.driver_error, self.ddbc_error = driver, server


def _error(driver: str, server: str) -> DBAPIError:
    return DBAPIError("SELECT 1", None, Said(driver, f"[Microsoft][SQL Server]{server}"))


def test_what_the_server_says_is_understood_and_its_codes_quote_no_value() -> None:
    kinds = {
        "Transaction (Process ID 5) was deadlocked on lock resources": ErrorKind.AGAIN,
        "Lock request time out period exceeded.": ErrorKind.BUSY,
        "Violation of UNIQUE KEY constraint 'u'. The duplicate key is (061).": ErrorKind.DUPLICATE,
        "The SELECT permission was denied on the object 't'": ErrorKind.DENIED,
        "Invalid column name 'nothing'.": ErrorKind.STATEMENT,
        "Conversion failed when converting date and/or time from character string.": (
            ErrorKind.UNFIT
        ),
        "String or binary data would be truncated in table 'RDV'": ErrorKind.LONG,
    }
    for said, kind in kinds.items():
        error = _error("Syntax error or access violation", said)
        assert SPEECH.kind(error) is kind
        assert SPEECH.code(error) == "Syntax error or access violation"
    unknown = _error("Column not found", "Invalid column name\n 'nothing'.")
    assert SPEECH.complaint(unknown) == "Invalid column name 'nothing'."
    assert SPEECH.complaint(_error("Timeout expired", "Query timeout expired")) is None
