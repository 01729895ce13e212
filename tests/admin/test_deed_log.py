"""The log of what administrators did: found by an index, and no older than the audit."""

from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from gateway.administrators.log import Deed, DeedLog
from gateway.assembly.kit import Kit, keep_audit
from gateway.audit.upkeep import Upkeep
from gateway.settings import Settings
from gateway.store import Store, open_store

NOW = datetime(2026, 3, 10, 0, 30, tzinfo=UTC)


async def store_at(folder: Path, stack: AsyncExitStack) -> Store:
    store = open_store(folder / "gateway.db")
    stack.push_async_callback(store.aclose)
    await store.migrate()
    return store


@pytest.mark.parametrize("column", ["deed", "who"])
async def test_the_newest_of_one_kind_or_name_are_found_without_reading_all(
    tmp_path: Path, column: str
) -> None:
    async with AsyncExitStack() as stack:
        store = await store_at(tmp_path, stack)
        asked = f"SELECT * FROM admin_deeds WHERE {column} = 'a' ORDER BY id DESC LIMIT 50"
        async with store.begin() as connection:
            plan = [
                row.detail for row in await connection.execute(text(f"EXPLAIN QUERY PLAN {asked}"))
            ]
    assert plan == [f"SEARCH admin_deeds USING INDEX admin_deeds_by_{column} ({column}=?)"]


async def test_what_is_older_than_the_audit_is_dropped_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        store = await store_at(tmp_path, stack)
        log = DeedLog(store)
        for days in (1, 2, 3):
            at = NOW - timedelta(days=days)
            await log.add(Deed(at=at, who="Claire", deed="signed in", details={"days": days}))
        settings = Settings.model_validate({"state": tmp_path, "audit": {"keep_days": 2}})
        (tmp_path / "audit").mkdir()
        (tmp_path / "audit.key").write_text("0" * 64 + "\n")
        (tmp_path / "audit.key").chmod(0o600)
        kit = Kit(settings, stack, lambda: NOW)
        kept = list[Upkeep]()

        def start(upkeep: Upkeep) -> None:
            kept.append(upkeep)

        monkeypatch.setattr(Upkeep, "start", start)
        keep_audit(kit, store)
        await kept[0].turn()
        assert [each.details["days"] for each in await log.last(9)] == [2, 1]
