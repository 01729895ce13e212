"""The latest time that a state has seen: no clock that is set back revives a key."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner

from gateway.app import build
from gateway.cli import main
from gateway.inquiries.keys import KeyBook, Which
from gateway.keys.ring import REST, LatestTime
from gateway.keys.store import LATEST, KeyStore, OddTime
from gateway.settings import StartRefused, load_settings
from gateway.store import Store, open_store
from tests.command import clinic_gateway
from tests.conftest import Start, Template
from tests.heard import Heard
from tests.partner import Partner

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Clocks:
    """Both clocks of a machine; `set` moves the wall clock alone."""

    def __init__(self) -> None:
        self.wall, self.ticks = NOON, 0.0

    def now(self) -> datetime:
        return self.wall

    def clock(self) -> float:
        return self.ticks

    def pass_(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.ticks += seconds

    def set(self, **time: float) -> None:
        self.wall += timedelta(**time)


async def begun(store: Store, clocks: Clocks) -> tuple[LatestTime, Heard]:
    told = Heard()
    latest = LatestTime(KeyStore(store), told, clocks.now, clocks.clock)
    await latest.turn()
    return latest, told


async def test_time_never_runs_back_and_that_is_told_once(store: Store) -> None:
    clocks = Clocks()
    latest, told = await begun(store, clocks)
    clocks.set(hours=-3)
    for _ in range(2):
        clocks.pass_(60)
        await latest.turn()
        assert latest.at(clocks.now()) == NOON
    assert told.details == [
        {
            "clock": (NOON - timedelta(hours=3, seconds=-60)).isoformat(timespec="seconds"),
            "latest": NOON.isoformat(timespec="seconds"),
        }
    ]
    # and for a process that begins then
    assert (await begun(store, clocks))[0].at(clocks.now()) == NOON
    clocks.set(hours=3)
    assert latest.at(clocks.now()) == clocks.now()


async def test_a_clock_that_is_ahead_for_a_moment_is_not_remembered(store: Store) -> None:
    clocks = Clocks()
    latest, told = await begun(store, clocks)
    clocks.set(days=3000)
    for _ in range(5):
        clocks.pass_(60)
        await latest.turn()
    clocks.set(days=-3000)
    await latest.turn()
    assert latest.at(clocks.now()) == clocks.now()
    assert (await KeyStore(store).latest_time()) == clocks.now()
    assert not told.said


async def test_a_clock_that_stays_ahead_is_believed_after_an_hour(store: Store) -> None:
    clocks = Clocks()
    latest, _ = await begun(store, clocks)
    clocks.set(hours=5)
    clocks.pass_(60)
    await latest.turn()
    clocks.pass_(REST)
    await latest.turn()
    assert (await KeyStore(store).latest_time()) == clocks.now()


async def test_a_start_by_a_clock_that_is_ahead_is_not_remembered_for_an_hour(store: Store) -> None:
    clocks = Clocks()
    await begun(store, clocks)
    clocks.set(days=3)
    latest, _ = await begun(store, clocks)
    for _ in range(3):
        clocks.pass_(REST / 4)
        await latest.turn()
    # a key that ends meanwhile ends by the machine's clock all the same
    assert latest.at(clocks.now()) == clocks.now()
    assert await KeyStore(store).latest_time() == NOON
    clocks.set(days=-1)
    await latest.turn()
    assert await KeyStore(store).latest_time() == NOON
    clocks.pass_(REST / 4)
    await latest.turn()
    assert await KeyStore(store).latest_time() == clocks.now()


async def test_another_start_within_the_hour_does_not_remember_it_either(store: Store) -> None:
    clocks = Clocks()
    await begun(store, clocks)
    clocks.set(hours=2)
    for _ in range(3):
        await begun(store, clocks)
        clocks.pass_(6)
    assert await KeyStore(store).latest_time() == NOON
    clocks.set(hours=-2)
    await begun(store, clocks)
    assert await KeyStore(store).latest_time() == clocks.now()


async def test_an_earlier_time_that_was_accepted_holds_for_what_runs(store: Store) -> None:
    clocks = Clocks()
    latest, _ = await begun(store, clocks)
    clocks.set(days=-30)
    clocks.pass_(60)
    await latest.turn()
    assert latest.at(clocks.now()) == NOON
    await KeyStore(store).accept_time(clocks.now())
    clocks.pass_(60)
    await latest.turn()
    assert latest.at(clocks.now()) == clocks.now()


async def test_a_key_that_has_ended_stays_so_when_the_clock_is_set_back(
    start_gateway: Start, session: aiohttp.ClientSession
) -> None:
    ahead = [timedelta()]
    running = await start_gateway(now=lambda: datetime.now(UTC) + ahead[0])
    partner = Partner(running, session, None)
    ends = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    ending = await partner.with_key(expires=ends)
    assert (await ending.get("/clients")).status == 200
    ahead[0] = timedelta(hours=2)
    assert (await ending.get("/clients")).status == 401
    await KeyStore(running.gateway.store).advance_time(datetime.now(UTC) + ahead[0])
    ahead[0] = timedelta(hours=-1)
    # a start under the clock that was set back
    await running.gateway.ring._latest.turn()
    assert (await ending.get("/clients")).status == 401
    lasting = await partner.with_key()
    assert (await lasting.get("/clients")).status == 200


def typed(folder: Path, *words: str) -> str:
    done = CliRunner().invoke(main, [*words, "--config", str(folder / "gateway.yaml")])
    assert done.exit_code == 0, done.output
    return done.output


async def test_commands_call_a_key_expired_that_ended_by_the_latest_time(
    template: Template, tmp_path: Path
) -> None:
    folder = shutil.copytree(template.folder, tmp_path / "state")
    now = datetime.now(UTC)

    async def run(*words: str) -> str:
        return await asyncio.to_thread(typed, folder, *words)

    ends = (now + timedelta(hours=1)).isoformat()
    key = ("keys", "create", "--name", "Ending", "--permission", "STOCK_READ", "--level", "BASIC")
    assert "until" in await run(*key, "--expires", ends)
    assert "in order: keys end by this machine's clock" in await run("state", "clock")
    store = open_store(folder / "gateway.db")
    await KeyStore(store).advance_time(now + timedelta(hours=3, seconds=90))
    for words in (("keys", "list"), ("keys", "show", "Ending")):
        [told] = [line for line in (await run(*words)).splitlines() if "until" in line] or [""]
        assert not told, told
        assert "expired" in await run(*words)
    listed = await KeyBook(KeyStore(store)).find("Ending", Which.EXPIRED, now)
    assert [each.key.name for each in listed.keys] == ["Ending"]
    await store.aclose()
    said = await run("state", "clock")
    assert "the clock is 3:0" in said
    assert "behind: keys end by the latest time seen" in said
    said = await run("state", "clock", "--accept")
    assert "valid again: Ending" in said
    assert "until" in await run("keys", "show", "Ending")


@pytest.mark.parametrize("kept", ["rubbish", "2026-11-20", "0001-01-01T00:00:00+01:00"])
async def test_what_is_no_time_is_never_taken_for_the_latest(store: Store, kept: str) -> None:
    await store.set_meta(LATEST, kept)
    with pytest.raises(OddTime, match="state clock --accept"):
        await KeyStore(store).latest_time()
    await KeyStore(store).accept_time(NOON)
    assert await KeyStore(store).latest_time() == NOON


def test_a_latest_time_that_is_none_is_named_until_the_clock_is_accepted(
    template: Template, tmp_path: Path
) -> None:
    folder = shutil.copytree(template.folder, tmp_path / "state")
    key = ("keys", "create", "--permission", "STOCK_READ", "--level", "BASIC", "--name")
    where = ("--config", str(folder / "gateway.yaml"))
    assert clinic_gateway(*key, "X", *where).returncode == 0
    with closing(sqlite3.connect(folder / "gateway.db")) as store, store:
        store.execute("UPDATE meta SET value = 'rubbish' WHERE name = ?", [LATEST])
    before = clinic_gateway("audit", "deeds", *where).stdout
    for words in (
        ("serve",),
        ("state", "check"),
        ("state", "clock"),
        ("keys", "list"),
        (*key, "Y"),
        ("keys", "rotate", "X"),
        ("keys", "update", "X", "--limit", "5"),
    ):
        done = clinic_gateway(*words, *where)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert done.stderr.startswith(f"{folder}/gateway.db keeps as `latest time`"), done
        assert done.stderr.endswith("run `clinic-gateway state clock --accept`\n")
    assert clinic_gateway("audit", "deeds", *where).stdout == before
    assert "X is revoked" in clinic_gateway("keys", "revoke", "X", "--yes", *where).stdout
    assert "accepted: " in clinic_gateway("state", "clock", "--accept", *where).stdout
    assert clinic_gateway("state", "check", *where).returncode == 0


def year_10026() -> datetime:
    raise ValueError("year 10026 is out of range")


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (lambda: datetime(2226, 1, 1, tzinfo=UTC), "says 2226-01-01T00:00:00Z, which is too far"),
        (lambda: datetime(1970, 1, 1, tzinfo=UTC), "which is before this program was made: set it"),
        (year_10026, "the machine's clock is of no use (year 10026 is out of range): set it"),
    ],
)
async def test_a_start_by_an_absurd_clock_is_refused(
    template: Template, tmp_path: Path, now: Callable[[], datetime], said: str
) -> None:
    folder = shutil.copytree(template.folder, tmp_path / "state")
    with pytest.raises(StartRefused) as refused:
        await build(load_settings(folder / "gateway.yaml", {}), now=now)
    assert said in str(refused.value)


async def test_a_start_far_behind_is_refused_until_the_clock_is_accepted(
    template: Template, tmp_path: Path
) -> None:
    folder = shutil.copytree(template.folder, tmp_path / "state")
    settings = load_settings(folder / "gateway.yaml", {})
    store = open_store(folder / "gateway.db")
    await KeyStore(store).advance_time(datetime.now(UTC) + timedelta(days=3))
    await store.aclose()
    with pytest.raises(StartRefused, match="clinic-gateway state clock --accept"):
        await build(settings)
    words = ["--config", str(folder / "gateway.yaml"), "state", "clock", "--accept", "--json"]
    done = await asyncio.to_thread(CliRunner().invoke, main, words)
    assert json.loads(done.stdout)["accepted"], done.output
    await (await build(settings)).aclose()
