"""The copy as it is kept: by a program of its own, which may fail, hang or be killed."""

import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from adapters.base import BackendUnavailable, CopyNews, CopyRules
from adapters.copies import keeper as keeping
from adapters.copies.keeper import CopyKeeper, in_words
from adapters.copies.look import LOCK, Request, _alone
from tests.adapters.copies.dbf_files import open_dbf, write_dbf
from tests.waiting import until

LONG_AGO = time.time() - 3600


@pytest.fixture
def practice(tmp_path: Path) -> Path:
    folder = tmp_path / "practice"
    folder.mkdir()
    write_dbf(folder / "client.dbf", "id N(6,0)", [(1,), (2,)])
    os.utime(folder / "client.dbf", (LONG_AGO, LONG_AGO))
    return folder


def add(practice: Path, number: int) -> None:
    with open_dbf(practice / "client.dbf") as table:
        table.append((number,))
    os.utime(practice / "client.dbf", (LONG_AGO + number, LONG_AGO + number))


def take_away(practice: Path) -> None:
    practice.rename(practice.with_name("away"))


def put_back(practice: Path) -> None:
    practice.with_name("away").rename(practice)


@pytest.fixture
def news() -> list[CopyNews]:
    return []


Make = Callable[..., Any]


@pytest.fixture
def kept(practice: Path, tmp_path: Path, news: list[CopyNews]) -> Make:
    @asynccontextmanager
    async def made(**more: Any) -> AsyncIterator[CopyKeeper]:
        request = Request(kind="dbf", path=str(practice), folder="", pauses=(0.0, 0.0))
        rules = {"folder": tmp_path / "copy", "refresh": 0.05, "heard": news.append, **more}
        keeper = CopyKeeper(request, CopyRules(**rules))
        try:
            yield keeper
        finally:
            await keeper.aclose()

    return made


def count(keeper: CopyKeeper) -> int:
    with closing(sqlite3.connect(keeper.path)) as copy:
        return int(copy.execute("SELECT count(*) FROM client").fetchone()[0])


async def test_the_first_call_waits_for_the_first_copy(kept: Make) -> None:
    async with kept() as keeper:
        await keeper.usable()
        assert count(keeper) == 2


async def test_what_changes_is_in_the_copy_soon(kept: Make, practice: Path) -> None:
    async with kept() as keeper:
        await keeper.usable()
        add(practice, 3)
        await until(lambda: count(keeper) == 3)


async def test_a_source_that_is_away_leaves_the_copy_and_is_told_once(
    kept: Make, practice: Path, news: list[CopyNews]
) -> None:
    async with kept() as keeper:
        await keeper.usable()
        take_away(practice)
        await until(lambda: keeper._failures >= 2)
        await keeper.usable()
        assert count(keeper) == 2
        assert keeper.why == "practice: No such file or directory"
        put_back(practice)
        await until(lambda: not keeper.why)
    assert [(bool(one.why), one.age is not None) for one in news] == [(True, True), (False, True)]


async def test_a_copy_that_grew_too_old_serves_no_more_until_there_is_a_new_one(
    kept: Make, practice: Path
) -> None:
    async with kept(stale_after=1.0) as keeper:
        await keeper.usable()
        take_away(practice)
        await until(lambda: (keeper.age or 0) > 1)
        with pytest.raises(
            BackendUnavailable, match=r"old, and backend\.stale_after is 1 s: pract"
        ):
            await keeper.usable()
        put_back(practice)
        await until(lambda: (keeper.age or 9) < 1)
        await keeper.usable()


async def test_without_any_copy_the_reason_is_told(kept: Make, practice: Path) -> None:
    shutil.rmtree(practice)
    async with kept() as keeper:
        with pytest.raises(BackendUnavailable, match=r"there is no copy of .*: practice: No such"):
            await keeper.usable()


async def test_a_call_waits_no_longer_than_it_is_to(
    kept: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs(monkeypatch)
    async with kept(waits=0.05) as keeper:
        with pytest.raises(BackendUnavailable, match="it is being made"):
            await keeper.usable()


def hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the program one that does nothing for long."""
    monkeypatch.setattr(keeping, "_start", lambda *_: sleeping())


def sleeping() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "600"], start_new_session=True)


async def test_a_program_that_hangs_holds_nothing_up_and_is_ended(
    kept: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with kept() as keeper:
        await keeper.usable()
    hangs(monkeypatch)
    monkeypatch.setattr(keeping, "PATIENCE", 0.05)
    monkeypatch.setattr(keeping, "LONGEST", 0.3)
    async with kept() as keeper:
        await keeper.usable()  # by the copy of before
        await until(lambda: "a look at the files took more than" in keeper.why)
        assert count(keeper) == 2


async def test_a_program_that_is_killed_is_told(
    kept: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> subprocess.Popen[bytes]:
        program = sleeping()
        program.kill()
        return program

    monkeypatch.setattr(keeping, "_start", killed)
    async with kept() as keeper:
        with pytest.raises(BackendUnavailable, match="the copying program ended with -9"):
            await keeper.usable()


async def test_the_end_ends_the_program(kept: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = []

    def slow(*_: object) -> subprocess.Popen[bytes]:
        programs.append(sleeping())
        return programs[-1]

    monkeypatch.setattr(keeping, "_start", slow)
    async with kept(waits=0.01) as keeper:
        with pytest.raises(BackendUnavailable):
            await keeper.usable()
        await until(lambda: bool(programs))
    assert programs[0].returncode == -signal.SIGKILL


async def test_the_copy_of_another_process_serves_too(
    kept: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "BUSY", 0.05)
    async with kept() as first:
        await first.usable()
    with _alone(tmp_path / "copy"):
        assert (tmp_path / "copy" / LOCK).exists()
        async with kept() as second:
            await second.usable()
            assert count(second) == 2
            assert not second.why


async def test_without_a_folder_the_copy_goes_with_its_keeper(kept: Make) -> None:
    async with kept(folder=None) as keeper:
        await keeper.usable()
        assert keeper.path.parent.stat().st_mode & 0o077 == 0
    assert not keeper.path.parent.exists()


async def test_the_program_has_no_secret_of_the_environment(
    kept: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, str] = {}
    start = subprocess.Popen

    def spied(*words: Any, **more: Any) -> Any:
        seen.update(more["env"])
        return start(*words, **more)

    monkeypatch.setenv("GATEWAY_BACKEND_SECRET", "x" * 64)
    monkeypatch.setattr(subprocess, "Popen", spied)
    async with kept() as keeper:
        await keeper.usable()
    assert seen
    assert not any(name.startswith("GATEWAY_") for name in seen)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_root_looks_as_the_user_whose_the_state_is(nobodys: Path) -> None:
    request = Request(kind="dbf", path=str(nobodys / "practice"), folder="", pauses=(0.0, 0.0))
    rules = CopyRules(folder=nobodys / "copy")
    keeper = CopyKeeper(request, rules)
    try:
        await keeper.usable()
        assert owners(nobodys / "copy") == {pwd.getpwnam("nobody").pw_uid}
    finally:
        await keeper.aclose()
    # what that user may not read is no copy
    give_to_root(nobodys / "practice")
    keeper = CopyKeeper(request, rules)
    try:
        await keeper.usable()
        await until(lambda: "Permission denied" in keeper.why)
    finally:
        await keeper.aclose()


@pytest.fixture
def nobodys(practice: Path) -> Iterator[Path]:
    """A folder of another user's, with the practice inside."""
    nobody = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(practice, Path(folder, "practice"))
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        yield Path(folder)


def give_to_root(folder: Path) -> None:
    folder.chmod(0o700)
    os.chown(folder, 0, 0)


def owners(folder: Path) -> set[int]:
    return {file.stat().st_uid for file in folder.iterdir()}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(40, "40 seconds"), (119, "119 seconds"), (720, "12 minutes"), (7200, "2 hours"),
     (200_000, "2 days")],
)  # fmt: skip
def test_an_age_is_told_as_people_do(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
