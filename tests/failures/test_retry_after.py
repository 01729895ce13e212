"""Who waits as long as `Retry-After` says is not refused a second time for the same reason."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import aiohttp
from pydantic import SecretStr

from adapters.sample import MAPPING
from gateway.settings import BackendSettings
from tests.conftest import Start, Template
from tests.partner import Answer, Partner

# Seconds: long enough for a second call to find it, and not a whole number.
PAUSE = 2.4


async def test_who_obeys_while_the_practice_database_is_locked_is_refused_once_by_the_pause(
    start_gateway: Start, template: Template, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    clinic = Path(shutil.copy(template.folder / "clinic.db", tmp_path / "clinic.db"))
    backend = BackendSettings(
        url=SecretStr(f"sqlite:///{clinic}"),
        mapping=MAPPING,
        timeout=0.2,
        breaker_failures=3,
        breaker_pause=PAUSE,
    )
    gateway = await start_gateway(backend=backend)
    partner = await Partner(gateway, session, None).with_key()
    assert (await partner.get("/clients", limit="1")).status == 200
    with closing(sqlite3.connect(clinic, isolation_level=None)) as desk:
        desk.execute("BEGIN EXCLUSIVE")
        for _ in range(3):
            first = await partner.get("/clients", limit="1")
        second = await partner.get("/clients", limit="1")
        desk.execute("ROLLBACK")
    refused = [each for each in (first, second) if each.status == 503]
    # each is told what is left of the pause, whether it began with this call or before
    assert second in refused
    assert all(1 <= int(each.headers["Retry-After"]) <= 3 for each in refused)

    async def obeys(told: Answer) -> int:
        await asyncio.sleep(int(told.headers["Retry-After"]))
        return (await partner.get("/clients", limit="1")).status

    # all at once: one of them tries, and the others wait for what it finds
    assert await asyncio.gather(*(obeys(each) for each in [second] * 10)) == [200] * 10
