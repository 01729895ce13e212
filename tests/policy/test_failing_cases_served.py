"""A gateway whose policy's cases fail: what partners, operators and administrators see of it."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import aiohttp
import pytest

from adapters.documents.problems import DocumentErrors
from gateway.administrators.administrator import Role
from gateway.app import build
from gateway.settings import Settings
from tests.admin.manager import manager_of
from tests.command import clinic_gateway
from tests.conftest import Begin, RunningGateway, Start
from tests.policies import TEXT, cases
from tests.policy.served import command, figures, ready, write
from tests.policy.test_failing_cases import CASES, MIXED, NARROW, STANDARD, WIDE
from tests.waiting import until
from tests.world import SOME_ID, World

pytestmark = pytest.mark.long


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A policy of the test's own, with its cases beside it."""
    (tmp_path / "policies.yaml").write_text(TEXT)
    (tmp_path / "policies.test.yaml").write_text(CASES)
    return tmp_path / "policies.yaml"


async def save(gateway: RunningGateway, file: Path, text: str) -> None:
    """Another policy, once it is looked at and the store knows what came of it."""
    keeper, before = gateway.gateway.keeper, gateway.gateway.keeper.status.file_hash
    write(file, text)
    await until(lambda: keeper.status.file_hash != before and not keeper.unwritten)


async def test_a_hidden_field_is_hidden_from_partners_and_what_waits_is_told_with_its_lines(
    partner_of: Begin,
    session: aiohttp.ClientSession,
    file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    partner = await (await partner_of(World(), policy=file)).with_key(level="STANDARD")
    gateway = partner.gateway
    assert "email" in (await partner.get(f"/clients/{SOME_ID}")).data
    await save(gateway, file, MIXED)
    answer = await partner.get(f"/clients/{SOME_ID}")
    assert not {"email", "address"} & answer.data.keys()

    told = await ready(session, gateway)
    line = CASES[: CASES.index("- name: STANDARD")].count("\n") + 1
    assert (told["state"], told["waitsFor"]) == ("held back", "cases")
    places = [(Path(each["file"]).name, each["line"]) for each in told["cases"]["problems"]]
    assert ("policies.test.yaml", line) in places
    said = await figures(session, gateway)
    assert f"gateway_policy_cases_failing {float(len(places))}" in said
    assert "gateway_policy_stale 1.0" in said
    events = [json.loads(each) for each in capsys.readouterr().err.splitlines()]
    [held] = [each for each in events if each["event"].startswith("policy held back")]
    assert held["waits_for"] == "cases"
    [failing] = [each for each in events if each["event"].startswith("the policy's cases fail")]
    place = f"{file.with_name('policies.test.yaml')}:{line}:3: "
    assert failing["cases"][0].startswith(place)

    code, shown, _ = await command(gateway, "status")
    assert code == 1
    assert "            what it shows more waits until its cases pass" in shown
    assert f"            policies.test.yaml line {line}: STANDARD sees a client: " in shown
    waiting = told["waiting"]
    code, _, refused = await command(gateway, "approve", waiting, "--by", "A", "--reason", "B")
    assert (code, f"{waiting} waits for its cases to pass" in refused) == (1, True)
    with closing(sqlite3.connect(gateway.folder / "gateway.db")) as store:
        query = "SELECT event, hash, reason FROM policy_history ORDER BY id DESC LIMIT 2"
        (event, held_hash, reason), (ran, *_) = store.execute(query).fetchall()
    assert (event, held_hash, ran) == ("held", waiting, "ran")
    assert f"2 of its cases fail: {place}" in reason


async def test_a_policy_that_only_hides_is_in_force_with_a_warning_until_its_cases_are_mended(
    start_gateway: Start, session: aiohttp.ClientSession, file: Path
) -> None:
    gateway = await start_gateway(policy=file)
    await save(gateway, file, NARROW)
    code, shown, _ = await command(gateway, "status")
    assert (code, "  cases     1 of its cases fails\n" in shown) == (0, True)
    assert (await ready(session, gateway))["state"] == "current"
    said = await figures(session, gateway)
    assert "gateway_policy_cases_failing 1.0" in said
    assert "gateway_policy_stale 0.0" in said
    mended = cases(NARROW)
    file.with_name("policies.test.yaml").write_text(mended)
    code, shown, _ = await command(gateway, "reload")
    assert (code, "cases" in shown) == (0, False)
    assert "gateway_policy_cases_failing 0.0" in await figures(session, gateway)


async def test_the_command_line_approves_once_the_cases_pass(
    start_gateway: Start, file: Path
) -> None:
    gateway = await start_gateway(policy=file, policy_widening="approve")
    await save(gateway, file, WIDE)
    keeper, waiting = gateway.gateway.keeper, gateway.gateway.keeper.status.waiting
    assert waiting is not None
    words = ("approve", waiting.hash, "--by", "A", "--reason", "B")
    assert (await command(gateway, *words))[0] == 1
    mended = cases(WIDE)
    file.with_name("policies.test.yaml").write_text(mended)
    await until(lambda: keeper.status.waits_for == "approval")
    code, shown, _ = await command(gateway, "status")
    assert (code, f"policy approve {waiting.hash}" in shown) == (1, True)
    assert (await command(gateway, *words))[0] == 0
    assert gateway.gateway.keeper.policy().hash == waiting.hash


@pytest.mark.parametrize("widening", ["apply", "approve"])
async def test_who_hides_a_field_and_starts_anew_finds_it_hidden(
    start_gateway: Start, file: Path, widening: str
) -> None:
    gateway = await start_gateway(policy=file, policy_widening=widening)
    settings = gateway.gateway.settings
    await gateway.gateway.aclose()
    write(file, MIXED)
    again = await build(settings)
    try:
        visible = again.keeper.policy().redactor("clients", STANDARD).visible
        assert not {"email", "address"} & visible
        assert again.keeper.status.waits_for == "cases"
    finally:
        await again.aclose()


async def test_a_gateway_that_never_ran_does_not_start_where_cases_fail(
    start_gateway: Start, file: Path
) -> None:
    write(file, NARROW)
    with pytest.raises(DocumentErrors, match="STANDARD sees a client: clients"):
        await start_gateway(policy=file)


async def checked(settings: Settings, file: Path, widening: str) -> str:
    """What `policy check` prints, of the configured policy."""
    config = settings.state / "gateway.yaml"
    text = config.read_text().partition("policy:")[0]
    config.write_text(f"{text}policy: {{file: {file}, widening: {widening}}}\n")
    done = await asyncio.to_thread(clinic_gateway, "policy", "check", "--config", str(config))
    assert done.returncode == 1
    assert "error[failed-case]: STANDARD sees a client" in done.stderr
    return done.stdout


async def test_the_check_says_what_takes_effect_at_once_and_what_waits(
    start_gateway: Start, file: Path
) -> None:
    gateway = await start_gateway(policy=file)
    settings, runs = gateway.gateway.settings, gateway.gateway.keeper.policy().short_hash
    await gateway.gateway.aclose()
    write(file, MIXED)
    head = f"{file}: in order, but 2 of its cases fail; `clinic-gateway policy test` lists them\n"
    at_once = (
        f"Compared with the policy that ran last ({runs}), takes effect at once:\n"
        "  clients.email is hidden at STANDARD and FULL\n"
    )
    waits = "  clients.address becomes visible at STANDARD\n"
    said = await checked(settings, file, "apply")
    assert said == f"{head}{at_once}Waits until its cases pass:\n{waits}"
    said = await checked(settings, file, "approve")
    assert said == f"{head}{at_once}Waits until its cases pass and somebody approves it:\n{waits}"
    write(file, NARROW)
    assert (await checked(settings, file, "apply")).endswith("cases pass:\n  nothing\n")


async def test_the_check_of_what_runs_says_that_only_its_cases_are_outdated(
    start_gateway: Start, file: Path
) -> None:
    gateway = await start_gateway(policy=file)
    await save(gateway, file, NARROW)
    settings = gateway.gateway.settings
    await gateway.gateway.aclose()
    assert "It is the policy that runs: mend its cases" in await checked(settings, file, "apply")


@pytest.mark.parametrize(("language", "widening"), [("en", "apply"), ("fr", "approve")])
async def test_the_panel_names_the_cases_and_what_waits_for_them(
    start_gateway: Start,
    session: aiohttp.ClientSession,
    file: Path,
    language: str,
    widening: str,
) -> None:
    gateway = await start_gateway(policy=file, policy_widening=widening)
    manager = await manager_of(gateway, session, role=Role.OPERATOR, language=language)
    await save(gateway, file, MIXED)
    page = await manager.get("/policy")
    line = CASES[: CASES.index("- name: STANDARD")].count("\n") + 1
    assert f"policies.test.yaml:{line}:3" in page.plain
    assert 'action="/policy/approve"' not in page.text
    words = {
        "en": ("Cases that fail", "What waits for its cases", "comes into force by itself"),
        "fr": ("Cas qui échouent", "Ce qui attend ses cas", "cela peut être approuvé ici"),
    }
    for each in words[language]:
        assert each in page.plain
    standing = gateway.gateway.keeper.status
    assert standing.waiting is not None
    form = {"hash": standing.waiting.hash, "running": standing.policy.hash, "reason": "x"}
    forged = await manager.send("/policy/approve", {"csrf": page.csrf, **form})
    assert forged.status == 422
    assert "address" not in gateway.gateway.keeper.policy().redactor("clients", STANDARD).visible
