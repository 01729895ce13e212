"""Whatever lies where the policy should be: the last good one goes on, and says so once."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from adapters.documents.problems import Problem
from gateway.contract.access import LEVELS
from gateway.policy.policy import Policy, Version
from gateway.policy.running import keeper
from gateway.policy.running.keeper import Examiner, Keeper, find
from gateway.policy.running.versions import Event
from gateway.settings import StartRefused
from gateway.store.base import StoreError
from tests.heard import Heard
from tests.policies import TEXT, moved

NARROW = moved("clients.email", "never")
WIDE = moved("clients.address", "BASIC")
MIXED = moved("clients.email", "never", WIDE)
AT = datetime(2026, 3, 1, 9, tzinfo=UTC)


@dataclass
class Kept:
    """A keeper of one file, with what it said and who approved what."""

    file: Path
    heard: Heard = field(default_factory=Heard)
    approvals: set[str] = field(default_factory=set)
    store_is_down: bool = False
    wrong: list[Problem] = field(default_factory=list)
    keeper: Keeper = field(init=False)

    async def begin(self, *, approve: bool = False, last: Version | None = None) -> "Kept":
        examiner = Examiner(
            path=self.file, report=lambda trouble: None, verify=lambda policy, path: self.wrong
        )
        self.keeper = Keeper(
            examiner,
            self.heard,
            lambda: AT,
            approve=approve,
            approved=self.approved,
            steady=0.005,
            patience=0.02,
        )
        found = find(self.file)
        await self.keeper.begin(found, examiner.examined(found), last)
        return self

    async def approved(self, digest: str) -> bool:
        if self.store_is_down:
            raise StoreError("locked")
        return digest in self.approvals

    async def write(self, text: str | bytes) -> str:
        """Replace the file and look; how things stand then."""
        self.file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return await self.look()

    async def look(self, *, asked: bool = False) -> str:
        await self.keeper.look(asked=asked)
        return self.keeper.status.state

    @property
    def policy(self) -> Policy:
        return self.keeper.policy()

    def sees(self, path: str, level: str = "STANDARD") -> bool:
        return path in self.policy.redactor("clients", level).visible  # type: ignore[arg-type]

    def events(self) -> list[str]:
        return [each.event for each in self.keeper.unwritten]


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    file = tmp_path / "policies.yaml"
    file.write_text(TEXT)
    return Kept(file)


async def test_a_changed_file_runs_and_an_unchanged_one_does_nothing(kept: Kept) -> None:
    await kept.begin()
    first = kept.policy
    assert await kept.look() == "current"
    assert kept.policy is first
    assert await kept.write(NARROW) == "current"
    assert not kept.sees("email")
    assert kept.policy.hash == kept.keeper.status.file_hash != first.hash
    assert await kept.look() == "current"
    assert (kept.heard.events, kept.events()) == (["policy_loaded"], ["ran", "ran"])


async def test_views_that_did_not_change_are_the_same_objects(kept: Kept) -> None:
    await kept.begin()
    first = kept.policy
    await kept.write(NARROW)
    changed = [
        view for view, made in kept.policy.redactors.items() if made is not first.redactors[view]
    ]
    assert {(name, str(level)) for name, level in changed} == {
        ("clients", "STANDARD"),
        ("clients", "FULL"),
    }


def emptied(file: Path) -> None:
    file.write_text("")


def deleted(file: Path) -> None:
    file.unlink()


def halved(file: Path) -> None:
    file.write_text(NARROW[: len(NARROW) // 2])


def huge(file: Path) -> None:
    file.write_bytes(b"# " + b"x" * 10_000_000)


def deep(file: Path) -> None:
    file.write_text("[" * 20_000)


def no_text(file: Path) -> None:
    file.write_bytes(NARROW.encode() + b"\n# \xff\xfe")


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def a_loop(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


def unsound(file: Path) -> None:
    file.write_text(NARROW.replace("lastName]", "lastNam]"))


SPOILS = {
    emptied: "the file is empty",
    deleted: "cannot be read: no such file or directory",
    halved: "policies.yaml:",
    huge: "the file is larger than 64 KiB",
    deep: ":1:33: this is not YAML: nested",
    no_text: "in an old encoding; save the file as UTF-8",
    a_folder: "cannot be read: is a directory",
    a_pipe: "cannot be read: it is no plain file",
    a_loop: "cannot be read: too many levels of symbolic links",
    unsound: "clients has no field 'lastNam' (did you mean lastName?)",
}


@pytest.mark.parametrize("spoil", SPOILS)
async def test_what_cannot_be_taken_is_said_once_and_the_last_good_one_goes_on(
    kept: Kept, spoil: Callable[[Path], None]
) -> None:
    await kept.begin()
    first = kept.policy
    spoil(kept.file)
    for _ in range(3):
        assert await kept.look() == "stale"
    assert kept.policy is first
    [said] = kept.heard.said
    assert said.startswith(f"policy_refused: {kept.file}")
    assert SPOILS[spoil] in said
    error = kept.keeper.status.members()["lastError"]
    assert error["at"] == "2026-03-01T09:00:00Z"
    assert error["text"] in said or "more)" in error["text"]
    assert kept.events() == ["ran", "refused"]
    if kept.file.is_dir():
        kept.file.rmdir()
    kept.file.unlink(missing_ok=True)
    assert await kept.write(TEXT) == "current"
    assert kept.policy is first
    assert kept.keeper.status.members()["lastError"] is None
    assert await kept.write(NARROW) == "current"
    assert kept.heard.events[1:] == ["policy_unchanged", "policy_loaded"]


async def test_the_refused_line_is_told(kept: Kept) -> None:
    await kept.begin()
    unsound(kept.file)
    await kept.look()
    line = TEXT[: TEXT.index("firstName")].count("\n") + 1
    assert kept.keeper.status.members()["lastError"]["line"] == line


async def test_a_file_that_becomes_whole_in_time_is_never_refused(kept: Kept) -> None:
    await kept.begin()
    kept.keeper.patience, kept.keeper.steady = 60.0, 0.001
    halved(kept.file)
    looking = asyncio.create_task(kept.look())
    await asyncio.sleep(0.05)
    kept.file.write_text(NARROW)
    async with asyncio.timeout(20):
        assert await looking == "current"
    assert kept.heard.events == ["policy_loaded"]


async def test_a_file_that_still_changes_is_not_taken(kept: Kept, tmp_path: Path) -> None:
    """The beginning of a file may be a policy of its own, that shows more than the whole."""
    whole = TEXT + "  only: {category: [food]}\n"
    await kept.begin()
    kept.keeper.patience, kept.keeper.steady = 60.0, 0.2
    kept.file.write_text(TEXT + "  ")
    looking = asyncio.create_task(kept.look())
    await asyncio.sleep(0.05)
    kept.file.write_text(whole)
    async with asyncio.timeout(20):
        await looking
    assert kept.policy.has_rows
    assert kept.heard.events == ["policy_loaded"]


async def test_a_file_that_is_replaced_by_a_rename_is_taken(kept: Kept, tmp_path: Path) -> None:
    await kept.begin()
    (tmp_path / "new").write_text(NARROW)
    (tmp_path / "new").rename(kept.file)
    assert await kept.look() == "current"
    assert not kept.sees("email")


async def test_a_link_that_leads_elsewhere_is_followed(tmp_path: Path) -> None:
    for name, text in (("..one", TEXT), ("..two", NARROW)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "policies.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "policies.yaml").symlink_to("..data/policies.yaml")
    kept = await Kept(tmp_path / "policies.yaml").begin()
    (tmp_path / "..new").symlink_to("..two")
    (tmp_path / "..new").rename(tmp_path / "..data")
    assert await kept.look() == "current"
    assert not kept.sees("email")


async def test_changed_cases_beside_the_file_are_looked_at(kept: Kept) -> None:
    await kept.begin()
    cases, wrong = kept.file.with_name("policies.test.yaml"), Problem("x", 7, 3, "a case fails")
    failing = []
    for text, problems in (
        ("x", [wrong]),
        ("#" * 200_000 + "x", []),
        ("#" * 200_000 + "y", [wrong]),
    ):
        kept.wrong[:] = problems
        cases.write_text(text)
        assert await kept.look() == "current"
        failing.append(bool(kept.keeper.status.failing))
    assert failing == [True, False, True]


async def test_a_fault_of_a_check_is_a_reason_to_go_on_as_before(kept: Kept) -> None:
    await kept.begin()
    kept.keeper.examiner = Examiner(path=kept.file, report=lambda _: None, narrows=None)  # type: ignore[arg-type]
    assert await kept.write(NARROW) == "stale"
    assert kept.sees("email")
    assert kept.heard.events == ["policy_not_followed", "policy_refused"]


async def test_a_policy_that_shows_more_waits_for_its_approval(kept: Kept) -> None:
    await kept.begin(approve=True)
    assert await kept.write(WIDE) == "held back"
    assert not kept.sees("address")
    waiting = kept.keeper.status.members()["waiting"]
    assert waiting == find(kept.file).hash
    assert await kept.look(asked=True) == "held back"
    kept.approvals.add(waiting)
    assert await kept.look() == "held back"
    assert await kept.look(asked=True) == "current"
    assert kept.sees("address")
    assert kept.policy.hash == waiting
    assert kept.heard.events == ["policy_waits_for_approval", "policy_loaded"]


async def test_a_policy_that_shows_less_runs_at_once_and_the_way_back_waits(kept: Kept) -> None:
    await kept.begin(approve=True)
    assert await kept.write(NARROW) == "current"
    assert not kept.sees("email")
    assert await kept.write(TEXT) == "held back"
    assert not kept.sees("email")


async def test_of_a_mixed_change_what_it_hides_holds_at_once(kept: Kept) -> None:
    await kept.begin(approve=True)
    first = kept.policy.hash
    assert await kept.write(MIXED) == "held back"
    assert not kept.sees("email")
    assert not kept.sees("address")
    told = kept.keeper.status.members()
    assert told["madeOf"] == [first[:12], find(kept.file).hash[:12]]
    assert told["hash"] not in told["madeOf"]
    kept.approvals.add(told["waiting"])
    assert await kept.look(asked=True) == "current"
    assert (kept.sees("address"), kept.sees("email")) == (True, False)
    assert "madeOf" not in kept.keeper.status.members()
    assert kept.heard.events == ["policy_loaded", "policy_waits_for_approval", "policy_loaded"]


async def test_a_condition_on_a_field_that_waits_tells_nothing_of_the_field(kept: Kept) -> None:
    """Else whoever writes the file could ask for hidden values, one condition after another."""
    await kept.begin(approve=True)
    only = "  only: {BASIC: {createdAt: {min: 2025-01-01T00:00:00Z}}}\n"
    asking = moved("clients.createdAt", "BASIC").replace("clients:\n", f"clients:\n{only}")
    assert await kept.write(asking) == "held back"
    views = [kept.policy.redactors["clients", each] for each in LEVELS]
    records = [{"createdAt": each} for each in ("2024-03-01T09:00:00Z", "2026-03-01T09:00:00Z")]
    assert [[view.admits(each) for each in records] for view in views] == [
        [False, False],
        [True, True],
        [True, True],
    ]
    again = await Kept(kept.file).begin(approve=True, last=last_of(kept))
    assert not any(map(again.policy.redactors["clients", LEVELS[0]].admits, records))
    kept.approvals.add(find(kept.file).hash)
    assert await kept.look(asked=True) == "current"
    admits = kept.policy.redactors["clients", LEVELS[0]].admits
    assert [admits(each) for each in records] == [False, True]


async def test_a_file_that_is_taken_back_no_longer_waits(kept: Kept) -> None:
    await kept.begin(approve=True)
    await kept.write(WIDE)
    assert await kept.write(TEXT) == "current"
    kept.approvals.add(find(kept.file).hash)
    assert kept.keeper.status.waiting is None


async def test_while_the_store_cannot_be_asked_what_shows_less_holds_all_the_same(
    kept: Kept,
) -> None:
    await kept.begin(approve=True)
    kept.store_is_down = True
    assert await kept.write(MIXED) == "held back"
    assert not kept.sees("email")
    kept.store_is_down = False
    kept.approvals.add(find(kept.file).hash)
    assert await kept.look() == "current"


def last_of(kept: Kept) -> Version:
    ran: list[Event] = [each for each in kept.keeper.unwritten if each.event == "ran"]
    assert ran[-1].version is not None
    return ran[-1].version


async def test_a_restart_goes_on_from_the_policy_that_ran_last(kept: Kept) -> None:
    await kept.begin(approve=True)
    await kept.write(MIXED)
    again = await Kept(kept.file).begin(approve=True, last=last_of(kept))
    assert again.keeper.status.state == "held back"
    assert again.policy.hash == kept.policy.hash
    assert again.keeper.status.members() == kept.keeper.status.members()
    assert again.events() == ["held"]
    kept.file.write_text(TEXT)
    third = await Kept(kept.file).begin(approve=True, last=last_of(kept))
    assert third.keeper.status.state == "held back"
    assert not third.sees("email")


async def test_a_restart_with_a_file_that_shows_more_waits_too(kept: Kept) -> None:
    await kept.begin(approve=True)
    last = last_of(kept)
    kept.file.write_text(WIDE)
    again = await Kept(kept.file).begin(approve=True, last=last)
    assert (again.keeper.status.state, again.sees("address")) == ("held back", False)
    without = await Kept(kept.file).begin(last=last)
    assert (without.keeper.status.state, without.sees("address")) == ("current", True)


async def test_a_last_policy_that_nobody_can_read_stops_the_start(kept: Kept) -> None:
    last = Version(hash="ab" * 32, content=b"a: {", file="x")
    with pytest.raises(StartRefused, match="abababababab that ran last is damaged"):
        await kept.begin(approve=True, last=last)


async def test_a_last_policy_that_is_cut_stops_the_start(kept: Kept) -> None:
    """The beginning of a text may show more than the whole."""
    text = f"{TEXT}  only: {{category: [food]}}\n".encode()
    cut = Version(hash=sha256(text).hexdigest(), content=TEXT.encode(), file="x")
    with pytest.raises(StartRefused, match="that ran last is damaged"):
        await kept.begin(approve=True, last=cut)
    whole = await Kept(kept.file).begin(approve=True, last=replace(cut, content=text))
    assert whole.policy.has_rows


async def test_while_the_store_is_down_the_newest_events_wait_and_no_more_than_so_many(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "MOST_UNWRITTEN", 3)
    await kept.begin()
    hashes = []
    for number in range(5):
        assert await kept.write(f"{TEXT}# {number}\n") == "current"
        hashes.append(kept.policy.hash)
    waiting = list(kept.keeper.unwritten)
    assert [each.hash for each in waiting] == hashes[-3:]
    # while these are being written another one comes, for which the oldest makes room
    await kept.write(f"{TEXT}# one more\n")
    kept.keeper.written(waiting)
    assert [each.hash for each in kept.keeper.unwritten] == [kept.policy.hash]
