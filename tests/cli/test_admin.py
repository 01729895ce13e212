"""`clinic-gateway admin`: who may use the panel, from the gateway's own machine."""

import asyncio
import getpass
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from errno import ENOSPC
from pathlib import Path
from typing import TypeVar

import pytest
from argon2 import Type, extract_parameters
from click.testing import CliRunner, Result

from gateway.administrators.administrator import AdministratorStore, Credential, Role
from gateway.administrators.log import DONE, FAILED, Deed, DeedLog
from gateway.administrators.passwords import FREE, LONGEST, SHORTEST, AttemptLimiter, of_name
from gateway.audit.entries import ChainHead
from gateway.cli import main
from gateway.store import Store, open_store
from tests.admin.manager import guessed
from tests.states import begin_state

T = TypeVar("T")
WORD = "correct horse battery"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "gateway.yaml"
    file.write_text("state: .\n")
    begin_state(file)
    return file


def admin(config: Path, *words: str, typed: str = "") -> Result:
    return CliRunner().invoke(main, ["--config", str(config), "admin", *words], input=typed)


def test_a_chosen_password_is_kept_as_a_hash_that_is_dear_to_guess(config: Path) -> None:
    admin(config, "password", "Claire", typed=WORD)
    kept = in_store(config, lambda store: AdministratorStore(store).find("Claire"))
    assert kept is not None
    cost = extract_parameters(kept.password)
    assert cost.type is Type.ID
    assert (cost.memory_cost, cost.time_cost) >= (64 * 1024, 3)


@pytest.mark.parametrize(
    ("is_there", "words", "said"),
    [
        (False, ("password", "Denis"), "somebody else has added Denis meanwhile: to give"),
        (True, ("password", "Denis"), "somebody else has removed Denis meanwhile: to add"),
        (True, ("remove", "Denis"), "nobody has the name Denis; `clinic-gateway admin list`"),
    ],
)
def test_two_commands_at_once_are_told_of_each_other(
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_there: bool,
    words: tuple[str, ...],
    said: str,
) -> None:
    admin(config, "password", "Claire", "--one-time")
    if is_there:
        admin(config, "password", "Denis", "--one-time")
    find = AdministratorStore.find

    async def overtaken(self: AdministratorStore, name: str) -> Credential | None:
        found = await find(self, name)
        if found is None:
            await self.add(name, Role.ADMIN, "", datetime.now(UTC), one_time=False)
        else:
            await self.remove(found.administrator.id)
        return found

    monkeypatch.setattr(AdministratorStore, "find", overtaken)
    done = admin(config, *words, typed=WORD)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(said)


def test_somebody_is_added_given_another_role_and_removed(config: Path) -> None:
    assert "nobody yet" in admin(config, "list").stdout
    assert admin(config, "password", "Claire", typed=WORD).stdout == "Claire is added\n"
    once = admin(config, "password", "Denis", "--one-time", "--role", "auditor", "--json")
    told = json.loads(once.stdout)
    assert told["added"]
    assert len(told["password"]) >= SHORTEST
    again = admin(config, "password", "claire", "--role", "admin", typed=WORD + "!")
    assert again.stdout == "claire has a new password\n"
    listed = json.loads(admin(config, "list", "--json").stdout)
    assert [(each["name"], each["role"], each["hasToChoose"]) for each in listed] == [
        ("Claire", "admin", False),
        ("Denis", "auditor", True),
    ]
    assert admin(config, "remove", "Denis").stdout == "Denis is removed\n"
    assert "Denis" not in admin(config, "list").stdout
    assert json.loads(admin(config, "sessions", "--json").stdout) == []
    assert json.loads(admin(config, "sessions", "--end", "--json").stdout) == {"ended": 0}


def test_whoever_is_kept_out_by_guesses_is_let_in_by_a_new_password(config: Path) -> None:
    async def waits(guesses: int) -> bool:
        store = open_store(config.with_name("gateway.db"))
        try:
            await guessed(store, "Claire", guesses)
            return bool(await AttemptLimiter(store).try_now(of_name("Claire"), datetime.now(UTC)))
        finally:
            await store.aclose()

    admin(config, "password", "Claire", typed=WORD)
    assert asyncio.run(waits(FREE + 5))
    assert asyncio.run(waits(0))
    admin(config, "password", "CLAIRE", typed=WORD + "!")
    assert not asyncio.run(waits(0))


@pytest.mark.parametrize(
    ("words", "typed", "said"),
    [
        (("password", "Claire"), "short", f"{SHORTEST} to {LONGEST} characters"),
        (("password", "Claire"), "a" * 20, "easily guessed"),
        (("password", "Claire"), "", f"{SHORTEST} to {LONGEST} characters"),
        (("password", "Claire\tPetit<"), WORD, "write a name"),
        (("password", "Claire", "--role", "boss"), WORD, "admin, operator, auditor"),
        (("remove", "Nobody"), "", "nobody has the name Nobody"),
    ],
)
def test_what_is_wrong_is_said_with_its_remedy(
    config: Path, words: tuple[str, ...], typed: str, said: str
) -> None:
    done = admin(config, *words, typed=typed)
    assert done.exit_code != 0
    assert said in done.stderr
    assert json.loads(admin(config, "list", "--json").stdout) == []


def test_one_who_manages_keys_is_always_left(config: Path) -> None:
    admin(config, "password", "Claire", typed=WORD)
    assert "role admin" in admin(config, "remove", "Claire").stderr
    change = ("password", "Claire", "--role", "auditor")
    assert "role admin" in admin(config, *change, typed=WORD).stderr
    [claire] = json.loads(admin(config, "list", "--json").stdout)
    assert claire["role"] == "admin"
    assert admin(config, "password", "Denis", "--role", "auditor", typed=WORD).exit_code == 0
    assert admin(config, "remove", "Denis").exit_code == 0


def test_the_first_one_manages_keys(config: Path) -> None:
    done = admin(config, "password", "Claire", "--role", "auditor", typed=WORD)
    assert done.exit_code == 1
    assert "add the first one with --role admin" in done.stderr
    assert json.loads(admin(config, "list", "--json").stdout) == []


def test_role_and_password_change_together_or_not_at_all(config: Path) -> None:
    admin(config, "password", "Claire", typed=WORD)
    before = in_store(config, lambda store: AdministratorStore(store).find("Claire"))
    admin(config, "password", "Claire", "--role", "auditor", typed=WORD + "!")
    assert in_store(config, lambda store: AdministratorStore(store).find("Claire")) == before
    admin(config, "password", "Denis", typed=WORD)
    admin(config, "password", "Claire", "--role", "auditor", typed=WORD + "!")
    after = in_store(config, lambda store: AdministratorStore(store).find("Claire"))
    assert before is not None
    assert after is not None
    assert after.administrator.role == "auditor"
    assert after.password != before.password


def in_store(config: Path, work: Callable[[Store], Awaitable[T]]) -> T:
    async def done() -> T:
        store = open_store(config.parent / "gateway.db")
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(done())


def deeds(config: Path) -> Sequence[Deed]:
    """What the log has, the oldest first."""
    return in_store(config, lambda store: DeedLog(store).last(99))[::-1]


def test_what_a_command_does_is_logged_and_sealed_before_and_after_it(config: Path) -> None:
    admin(config, "password", "Claire", typed=WORD)
    admin(config, "password", "Claire", "--role", "auditor", typed=WORD)
    admin(config, "password", "claire", "--one-time")
    admin(config, "sessions", "--end")
    admin(config, "password", "Denis", "--role", "operator", typed=WORD)
    admin(config, "remove", "Denis")
    found = deeds(config)
    assert {each.who for each in found} == {f"shell: {getpass.getuser()}"}
    assert [(each.deed, each.outcome, each.details) for each in found] == [
        ("administrator added", DONE, {"role": "admin"}),
        ("password reset", FAILED, {"name": "Claire", "role": "auditor"}),
        ("password reset", DONE, {"name": "Claire"}),
        ("sessions ended", DONE, {"sessions": 0}),
        ("administrator added", DONE, {"role": "operator"}),
        ("administrator removed", DONE, {"name": "Denis"}),
    ]
    files = sorted((config.parent / "audit").glob("*.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    sealed = [(each["deed"], each["result"]) for each in lines if each.get("kind") == "deed"]
    wanted = [(each.deed, result) for each in found for result in ("begun", each.outcome)]
    assert sorted(sealed) == sorted(wanted)
    verified = CliRunner().invoke(main, ["--config", str(config), "audit", "verify"])
    assert verified.exit_code == 0, verified.output


def test_where_the_audit_cannot_be_written_a_command_does_nothing(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> ChainHead:
        raise OSError(ENOSPC, os.strerror(ENOSPC))

    admin(config, "password", "Claire", typed=WORD)
    admin(config, "password", "Denis", typed=WORD)
    with monkeypatch.context() as patched:
        patched.setattr("gateway.audit.buffer.Writer.write", full)
        done = admin(config, "remove", "Denis")
    assert done.exit_code != 0
    assert "cannot be written" in done.stderr
    assert "Denis" in admin(config, "list").stdout
