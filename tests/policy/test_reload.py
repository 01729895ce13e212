"""A running gateway takes in a changed policy; RELOADS=1000 changes it longer under load."""

import asyncio
import gc
import json
import os
import sqlite3
from contextlib import closing
from getpass import getuser
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.app import build
from gateway.policy.running.follower import POLL
from gateway.policy.running.keeper import PATIENCE, STEADY
from gateway.settings import StartRefused, load_settings
from gateway.store import StoreError
from tests.command import clinic_gateway
from tests.conftest import Begin, RunningGateway, Start
from tests.partner import Partner
from tests.policies import TEXT
from tests.policy.served import command, figures, ready, write
from tests.policy.test_keeper import MIXED, NARROW, WIDE
from tests.waiting import until
from tests.world import SOME_ID, World

pytestmark = pytest.mark.long

RELOADS = int(os.environ.get("RELOADS", "60"))
# Bytes that the process may grow by: what is compiled anew must not stay.
GROWTH = 8_000_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "policies.yaml"
    write(found, TEXT)
    return found


def hash_of(gateway: RunningGateway) -> str:
    return gateway.gateway.keeper.policy().hash


def test_a_change_is_taken_in_within_two_seconds() -> None:
    assert POLL + STEADY + 0.5 < 2
    assert POLL + PATIENCE + 2 * STEADY <= 2


async def test_a_saved_policy_holds_for_the_next_calls(partner_of: Begin, file: Path) -> None:
    partner = await partner_of(World(), policy=file)
    assert "email" in (await partner.get(f"/clients/{SOME_ID}")).data
    before = hash_of(partner.gateway)
    write(file, NARROW)
    await until(lambda: hash_of(partner.gateway) != before)
    answer = await partner.get(f"/clients/{SOME_ID}")
    assert "email" not in answer.data
    assert "email" not in (await partner.get("/openapi.json")).data["components"]["schemas"][
        "Client"
    ]["properties"]  # fmt: skip


async def test_readiness_and_the_figures_tell_how_the_file_stands(
    partner_of: Begin, session: aiohttp.ClientSession, file: Path
) -> None:
    gateway = (await partner_of(World(), policy=file)).gateway
    first = await ready(session, gateway)
    assert first["state"] == "current"
    assert first["hash"] == first["fileHash"] == hash_of(gateway)[:12]
    write(file, TEXT.replace("lastName]", "lastNam]"))
    keeper = gateway.gateway.keeper
    await until(lambda: keeper.status.state == "stale")
    stale = await ready(session, gateway)
    assert (stale["state"], stale["hash"]) == ("stale", first["hash"])
    assert stale["fileHash"] != first["hash"]
    assert "lastNam" in stale["lastError"]["text"]
    said = await figures(session, gateway)
    hashes = f'file_hash="{stale["fileHash"]}",hash="{first["hash"]}"'
    assert f"gateway_policy_info{{{hashes}}} 1.0" in said
    assert "gateway_policy_stale 1.0" in said
    assert 'gateway_policy_reloads_total{outcome="refused"} 1.0' in said
    write(file, NARROW)
    await until(lambda: keeper.status.state == "current")
    said = await figures(session, gateway)
    assert "gateway_policy_stale 0.0" in said
    runs = hash_of(gateway)[:12]
    assert f'gateway_policy_info{{file_hash="{runs}",hash="{runs}"}} 1.0' in said
    assert not any(f'hash="{first["hash"]}"' in line for line in said)
    [loaded] = [each for each in said if each.startswith("gateway_policy_loaded_timestamp_s")]
    assert float(loaded.split()[1]) > 1.7e9


async def test_the_command_line_shows_reloads_and_approves(
    start_gateway: Start, file: Path
) -> None:
    gateway = await start_gateway(policy=file, policy_widening="approve")
    code, shown, _ = await command(gateway, "status", "--json")
    [process] = json.loads(shown)["processes"]
    assert (code, process["pid"], process["state"]) == (0, os.getpid(), "current")
    assert process["hash"] == hash_of(gateway)[:12]

    write(file, MIXED)
    code, shown, _ = await command(gateway, "reload")
    assert (code, "held back" in shown) == (1, True)
    keeper = gateway.gateway.keeper
    assert keeper.status.state == "held back"
    waiting = keeper.status.waiting.hash  # type: ignore[union-attr]
    assert waiting in shown
    code, shown, _ = await command(gateway, "check", str(file))
    assert (code, "in order; " in shown) == (0, True)
    assert "It waits for an approval: `clinic-gateway policy status` says more." in shown

    words = ("--by", "Dr Renaud", "--reason", "the insurer asked")
    code, _, said = await command(gateway, "approve", "0" * 64, *words)
    assert (code, said) == (1, f"the policy {'0' * 64} does not wait: {waiting} does\n")
    for beginning in (waiting[:8], waiting[:12], waiting[:63]):  # another file's may be the same
        assert (await command(gateway, "approve", beginning, *words))[0] == 2
        assert keeper.status.state == "held back"
    code, shown, said = await command(gateway, "approve", waiting, *words)
    assert (code, said, hash_of(gateway)) == (0, "", waiting), shown
    code, _, said = await command(gateway, "approve", waiting, *words)
    assert (code, "nothing to decide" in said) == (1, True)

    write(file, "version: 1\n")
    code, shown, _ = await command(gateway, "reload", "--json")
    [process] = json.loads(shown)["processes"]
    assert (code, process["state"]) == (1, "stale")
    assert process["lastError"]["text"].startswith("appointments is missing")

    await gateway.gateway.follower.aclose()
    code, shown, said = await command(gateway, "status")
    assert (code, shown, said) == (1, "", "no gateway is running on this store\n")


async def test_the_status_tells_whether_the_policy_is_wrong_or_its_cases(
    start_gateway: Start, file: Path
) -> None:
    gateway = await start_gateway(policy=file)
    cases = file.with_name("policies.test.yaml")
    cases.write_text("version: 1\ncases: 5\n")
    code, shown, _ = await command(gateway, "reload")
    lines = shown.splitlines()
    assert (code, lines[-2].startswith("            policies.test.yaml line 2: ")) == (0, True)
    assert lines[-1].split() == ["clinic-gateway", "policy", "test", "says", "more"]
    cases.unlink()
    write(file, TEXT.replace("lastName]", "lastNam]"))
    _, shown, _ = await command(gateway, "reload")
    lines = shown.splitlines()
    assert lines[-2].startswith("  refused   line 13: clients has no field 'lastNam'")
    assert lines[-1].split() == ["clinic-gateway", "policy", "check", "says", "more"]


async def test_the_status_warns_of_a_gateway_that_follows_another_file_than_is_configured(
    start_gateway: Start, file: Path
) -> None:
    gateway = await start_gateway(policy=file)
    configuration = gateway.folder / "gateway.yaml"
    begun = configuration.read_text()
    configuration.write_text(f"{begun}policy: {file}\n")
    assert (await command(gateway, "status"))[2] == ""
    other = file.with_name("other.yaml")
    write(other, TEXT)
    configuration.write_text(f"{begun}policy: {other}\n")
    code, _, said = await command(gateway, "status")
    assert (code, said) == (
        0,
        f"process {os.getpid()} follows {file}, and the configuration names {other} by now:"
        " start the gateway anew\n",
    )


async def test_a_question_makes_no_store(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text("drain: 1\n")
    decisions = ([each, "0" * 64, "--reason", "B"] for each in ("approve", "decline"))
    for words in (["status"], ["reload"], *decisions):
        config = ["--config", str(tmp_path / "gateway.yaml")]
        done = await asyncio.to_thread(clinic_gateway, "policy", *words, *config)
        assert (done.returncode, done.stderr) == (1, "no gateway is running on this store\n")
    assert [each.name for each in tmp_path.iterdir()] == ["gateway.yaml"]  # noqa: ASYNC240


async def test_what_ran_and_who_approved_it_is_kept(start_gateway: Start, file: Path) -> None:
    gateway = await start_gateway(policy=file, policy_widening="approve")
    first = hash_of(gateway)
    write(file, WIDE)
    await command(gateway, "reload")
    waiting = gateway.gateway.keeper.status.waiting.hash  # type: ignore[union-attr]
    await command(gateway, "approve", waiting, "--by", "A", "--reason", "B")
    with closing(sqlite3.connect(gateway.folder / "gateway.db")) as store:
        history = store.execute(
            "SELECT event, hash, who, reason FROM policy_history ORDER BY id"
        ).fetchall()
        versions = dict(store.execute("SELECT hash, content FROM policy_versions").fetchall())
    assert history[-3:] == [
        ("held", waiting, None, None),
        ("approved", waiting, f"shell: {getuser()}", "B (asked by A)"),
        ("ran", waiting, None, None),
    ]
    assert ("ran", first, None, None) in history
    assert versions[waiting].decode() == WIDE
    assert versions[first].decode() == TEXT


async def test_a_policy_that_waits_is_declined_on_the_shell(
    start_gateway: Start, file: Path
) -> None:
    gateway = await start_gateway(policy=file, policy_widening="approve")
    running = hash_of(gateway)
    write(file, WIDE)
    await command(gateway, "reload")
    waiting = gateway.gateway.keeper.status.waiting.hash  # type: ignore[union-attr]
    code, _, said = await command(gateway, "decline", "0" * 64, "--reason", "no")
    assert (code, said) == (1, f"the policy {'0' * 64} does not wait: {waiting} does\n")
    code, shown, said = await command(gateway, "decline", waiting, "--reason", "nobody asked")
    who = f"shell: {getuser()}"
    assert (code, said) == (0, "")
    assert shown == f"{waiting} is declined by {who}; the policy that runs goes on\n"
    assert hash_of(gateway) == running
    _, shown, _ = await command(gateway, "status", "--json")
    [process] = json.loads(shown)["processes"]
    assert process["declined"]["by"] == who
    assert process["declined"]["reason"] == "nobody asked"
    code, _, said = await command(gateway, "approve", waiting, "--reason", "after all")
    assert (code, said, hash_of(gateway)) == (0, "", waiting)


@pytest.mark.parametrize("decision", ["approve", "decline"])
async def test_nothing_is_decided_where_the_audit_cannot_be_written(
    start_gateway: Start, file: Path, decision: str
) -> None:
    gateway = await start_gateway(policy=file, policy_widening="approve")
    running = hash_of(gateway)
    write(file, WIDE)
    await command(gateway, "reload")
    waiting = gateway.gateway.keeper.status.waiting.hash  # type: ignore[union-attr]
    audit = gateway.folder / "audit"
    audit.rename(gateway.folder / "elsewhere")
    audit.touch()
    code, shown, said = await command(gateway, decision, waiting, "--reason", "the insurer asked")
    assert (code, shown) == (1, "")
    assert str(audit) in said
    audit.unlink()
    (gateway.folder / "elsewhere").rename(audit)
    _, shown, _ = await command(gateway, "reload", "--json")
    [process] = json.loads(shown)["processes"]
    assert (process["waiting"], "declined" in process) == (waiting, False)
    assert hash_of(gateway) == running


async def test_an_approval_counts_until_another_policy_has_run(
    start_gateway: Start, file: Path
) -> None:
    gateway = await start_gateway(policy=file, policy_widening="approve")
    write(file, WIDE)
    await command(gateway, "reload")
    waiting = gateway.gateway.keeper.status.waiting.hash  # type: ignore[union-attr]
    await command(gateway, "approve", waiting, "--by", "A", "--reason", "B")
    assert hash_of(gateway) == waiting
    for text in (NARROW, WIDE):
        write(file, text)
        code, shown, _ = await command(gateway, "reload")
    assert (code, "held back" in shown) == (1, True)
    assert hash_of(gateway) != waiting


@pytest.mark.parametrize("damage", ["DELETE FROM policy_versions", "UPDATE policy_versions SET "
    "content = substr(content, 1, length(content) - 32)"])  # fmt: skip
async def test_a_lost_or_cut_text_of_what_ran_last_lets_nothing_wider_run(
    start_gateway: Start, file: Path, damage: str
) -> None:
    write(file, f"{TEXT}  only: {{category: [medication]}}\n")
    gateway = await start_gateway("first", policy=file, policy_widening="approve")
    await gateway.gateway.aclose()
    with closing(sqlite3.connect(gateway.folder / "gateway.db")) as store, store:
        assert store.execute(damage).rowcount > 0
    write(file, TEXT)
    settings = load_settings(gateway.folder / "gateway.yaml", {})
    changed = settings.model_copy(update={"policy": file, "policy_widening": "approve"})
    with pytest.raises(StartRefused, match="that ran last is damaged in the store"):
        await build(changed)


async def test_an_approval_does_not_outlast_a_policy_that_the_store_learns_of_late(
    start_gateway: Start, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = await start_gateway(policy=file, policy_widening="approve")
    keeper, follower = gateway.gateway.follower.keeper, gateway.gateway.follower
    first = hash_of(gateway)
    write(file, WIDE)
    await until(lambda: keeper.status.waiting is not None)
    waiting = keeper.status.waiting.hash  # type: ignore[union-attr]
    await command(gateway, "approve", waiting, "--by", "A", "--reason", "B")
    await until(lambda: hash_of(gateway) == waiting)

    async def down(*_: Any) -> None:
        raise StoreError("locked")

    monkeypatch.setattr(follower.presence, "say", down)
    write(file, TEXT)
    await until(lambda: hash_of(gateway) == first)
    write(file, WIDE)
    await until(lambda: keeper.status.file_hash == waiting)
    assert (keeper.status.state, hash_of(gateway)) == ("held back", first)
    monkeypatch.undo()
    await until(lambda: not keeper.unwritten)
    await command(gateway, "reload")
    assert (keeper.status.state, hash_of(gateway)) == ("held back", first)


async def test_a_store_that_is_down_keeps_no_change_from_running(
    start_gateway: Start,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gateway = await start_gateway(policy=file)
    follower = gateway.gateway.follower

    async def down(*_: Any) -> int:
        raise StoreError("locked")

    monkeypatch.setattr(follower.versions, "revision", down)
    monkeypatch.setattr(follower.presence, "say", down)
    first = hash_of(gateway)
    write(file, NARROW)
    await until(lambda: hash_of(gateway) != first)
    assert [each.event for each in gateway.gateway.keeper.unwritten] == ["ran"]
    await asyncio.sleep(2 * POLL)
    said = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    untold = "the policy's file is followed, but the store can be neither told of it nor asked"
    assert said.count(untold) == 1
    assert "policy loaded" in said
    assert not any("cannot be followed" in each for each in said)
    monkeypatch.undo()
    await until(lambda: not gateway.gateway.keeper.unwritten)


async def test_every_answer_is_wholly_of_one_policy(partner_of: Begin, file: Path) -> None:
    world = World()
    partner = await (await partner_of(world, policy=file)).with_key(limit=100_000_000)
    gateway = partner.gateway
    keeper, follower = gateway.gateway.keeper, gateway.gateway.follower
    keeper.steady = 0.0
    fields: dict[str, frozenset[str]] = {}
    texts = (NARROW, TEXT)
    stop, failed = asyncio.Event(), []
    seen: dict[str, frozenset[str]] = {}
    kinds: dict[frozenset[str], frozenset[str]] = {}
    tally: dict[frozenset[str], int] = {}

    async def ask(client: Partner) -> None:
        while not stop.is_set():
            answer = await client.get("/clients")
            if answer.status != 200 or answer.headers["X-Access-Level"] != "FULL":
                failed.append(answer)
                return
            shown = kinds.setdefault(frozenset(answer.data[0]), frozenset(answer.data[0]))
            tally[shown] = tally.get(shown, 0) + 1
            if tally[shown] % 20 == 1:  # remembering each would be what grows
                seen[answer.headers["X-Request-Id"]] = shown

    async def change(number: int) -> None:
        before = hash_of(gateway)
        write(file.with_name("new"), texts[number % 2])
        file.with_name("new").rename(file)
        follower.ask()
        await until(lambda: hash_of(gateway) != before)
        world.asked.clear()
        policy = gateway.gateway.keeper.policy()
        fields[policy.short_hash] = frozenset(policy.redactor("clients", "FULL").visible)

    clients = [asyncio.create_task(ask(partner)) for _ in range(4)]
    for number in range(10):
        await change(number)
    gc.collect()
    begun = resident()
    for number in range(RELOADS):
        await change(number)
    stop.set()
    await asyncio.gather(*clients)
    gc.collect()
    assert resident() - begun < GROWTH
    assert failed == []
    assert len(fields) == len(set(fields.values())) == 2
    await gateway.gateway.public.runner.server.request_handler.observers.flush()
    audit = {line["requestId"]: line for line in gateway.entries()}
    assert {fields[audit[each]["policy"]] == shown for each, shown in seen.items()} == {True}
    assert {audit[each]["level"] for each in seen} == {"FULL"}
    assert tally.keys() == set(fields.values())


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
