"""What a database cannot be asked is a note and not green: without a dialect, and SQL Server."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.doctor.case import Look
from adapters.doctor.sql import clock, examine
from adapters.documents.problems import DocumentErrors
from adapters.examination import Examination, Finding, Verdict
from adapters.sql.engines.base import ErrorKind, ServerClock
from adapters.sql.engines.mssql import MssqlSpeech
from adapters.sql.engines.odbc_speech import PlainSpeech
from adapters.sql.engines.sqlite import SqliteLane, SqliteSpeech
from tests.adapters.asked import asked
from tests.adapters.sql.rooms import NOW, changed
from tests.races.practice import practice

LOCK = "booking:\n", "booking:\n  lock: UPDATE vet SET name = name WHERE id = :vet\n"


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteLane, "speech", PlainSpeech())
    monkeypatch.setattr(PlainSpeech, "kind", lambda *_: ErrorKind.STATEMENT)


async def findings(folder: Path, *pairs: tuple[str, str]) -> list[Finding]:
    with practice("sqlite", folder) as made:
        adapter = made.open(folder, changed(made.mapping, *pairs))
        try:
            return [each async for each in examine(adapter, Examination(now=NOW))]
        finally:
            await adapter.aclose()


@pytest.mark.usefixtures("plain")
async def test_without_a_dialect_what_cannot_be_told_is_not_green(tmp_path: Path) -> None:
    with asked() as said:
        found = await findings(tmp_path, LOCK)
    untold = [each for each in found if each.check in ("rights", "clock", "plans")]
    assert {each.verdict for each in untold} == {Verdict.NOTE}
    assert {(each.check, each.subject) for each in untold} == {
        ("rights", "account"),
        *(("rights", table) for table in ("appointment", "attendance", "journal")),
        ("clock", "server"),
        ("plans", "statements"),
    }
    [lock] = [each for each in found if each.subject == "lock"]
    assert (lock.verdict, lock.text) == (
        Verdict.NOTE,
        "it cannot be tried here without locking: a rehearsal runs it",
    )
    assert not [each for each in said if each.text.startswith("UPDATE vet")]


@pytest.mark.usefixtures("plain")
async def test_without_a_dialect_the_columns_of_new_rows_are_looked_for(tmp_path: Path) -> None:
    with practice("sqlite", tmp_path) as made:
        text = changed(
            made.mapping, LOCK, ("        source: gateway\n", "        sorce: gateway\n")
        )
        adapter = made.open(tmp_path, text)
        with pytest.raises(DocumentErrors, match="sorce") as raised:
            await adapter.check()
        await adapter.aclose()
    [problem] = raised.value.problems
    assert "sorce" in text.splitlines()[problem.line - 1]


async def test_where_there_are_no_plans_no_statement_is_green(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQL Server has none beside work."""
    monkeypatch.setattr(SqliteSpeech, "has_plans", MssqlSpeech.has_plans)
    [plans] = [each for each in await findings(tmp_path) if each.check == "plans"]
    assert plans.verdict is Verdict.NOTE


@pytest.mark.parametrize(
    ("apart", "verdict"),
    [
        (timedelta(hours=2, seconds=3), Verdict.OK),
        (timedelta(hours=-9, minutes=-30), Verdict.OK),
        (timedelta(minutes=7), Verdict.WARNING),
        (timedelta(days=-2000), Verdict.WARNING),
    ],
)
async def test_a_server_that_tells_no_utc_is_compared_but_for_its_zone(
    apart: timedelta, verdict: Verdict
) -> None:
    shown = ServerClock(f"{datetime.now(UTC) + apart:%Y-%m-%d %H:%M:%S}", "", "its machine's")
    case: Any = SimpleNamespace(
        speech=SimpleNamespace(clock=lambda connection: shown),
        session=SimpleNamespace(connection=None),
        adapter=SimpleNamespace(
            diary=SimpleNamespace(zone=UTC), document=SimpleNamespace(data={}), mapping=None
        ),
    )
    document: Any = None
    look = Look(document, "clock", "server")
    await clock(case, look)
    [told] = look.findings
    assert told.verdict is verdict
    is_near = apart > timedelta(days=-1)
    assert ("whole quarters of an hour are not compared" in told.text) is is_near
