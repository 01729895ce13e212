"""`policy diff` and `policy explain` over the store of a gateway that ran and answered."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.app import build
from gateway.settings import load_settings, shipped_policy
from tests.command import clinic_gateway
from tests.conftest import CONFIGURATION, RunningGateway, Template
from tests.partner import Partner

TEXT = shipped_policy().read_text(encoding="utf-8")
WIDER = TEXT.replace("[id, firstName, lastName]", "[id, firstName, lastName, phone]").replace(
    "[phone, email,", "[email,"
)
MASKED = TEXT.replace("[id, firstName, lastName]", "[id, firstName, lastName, {phone: last(2)}]")


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[RunningGateway]:
    gateway = await build(load_settings(folder / "gateway.yaml", {}))
    try:
        await gateway.start()
        yield RunningGateway(gateway, folder, {})
    finally:
        await gateway.drain()
        await gateway.aclose()


async def used(folder: Path) -> dict[str, Any]:
    """A gateway runs, two keys are made, and one of them asks; what they are, and what it got."""
    async with served(folder) as gateway, aiohttp.ClientSession() as session:
        nobody = Partner(gateway, session, None)
        basic = await nobody.with_key(level="BASIC", scopes={"stock": "FULL"})
        await nobody.with_key(level="FULL", permissions=["STOCK_READ"])
        listed = [await basic.get("/clients", limit="2") for _ in range(3)]
        one = await basic.get(f"/clients/{listed[0].data[0]['id']}")
        refused = await basic.get("/clients", search="x")
        return {
            "key": basic._key_id,
            "request": one.headers["X-Request-Id"],
            "refused": refused.headers["X-Request-Id"],
        }


@pytest.fixture(scope="module")
def ran(template: Template, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("ran") / "clinic"
    shutil.copytree(template.folder, folder)
    (folder / "policies.yaml").write_text(TEXT, encoding="utf-8")
    (folder / "gateway.yaml").write_text(f"{CONFIGURATION}policy: policies.yaml\n")
    told = asyncio.run(used(folder))
    (folder / "wider.yaml").write_text(WIDER, encoding="utf-8")
    (folder / "masked.yaml").write_text(MASKED, encoding="utf-8")
    return told | {"folder": folder}


def run(ran: dict[str, Any], *words: str) -> Any:
    config = ("--config", str(ran["folder"] / "gateway.yaml"))
    return clinic_gateway("policy", words[0], *config, *words[1:])


def test_a_change_names_the_keys_that_it_touches_and_how_often_they_were_answered(
    ran: dict[str, Any],
) -> None:
    found = run(ran, "diff", "running", str(ran["folder"] / "wider.yaml"))
    assert (found.returncode, found.stderr) == (0, "")
    head, change, summary = found.stdout.splitlines()
    assert head.startswith("running (")
    assert change == (
        "clients.phone becomes visible at BASIC: 1 active key gains it (A test's partner),"
        " seen in about 4 answers of the last 30 days"
    )
    assert summary == "1 change (1 shows more): wider"
    told = json.loads(
        run(ran, "diff", "running", str(ran["folder"] / "wider.yaml"), "--json").stdout
    )
    assert told["widens"] is True
    [only] = told["changes"]
    assert (only["resource"], only["field"], only["levels"]) == ("clients", "phone", ["BASIC"])
    assert [each["id"] for each in only["keys"]] == [ran["key"]]
    assert only["answers"] == 4


def test_a_pipeline_can_let_narrower_policies_through_alone(ran: dict[str, Any]) -> None:
    wider = str(ran["folder"] / "wider.yaml")
    refused = run(ran, "diff", "running", wider, "--fail-on-widening")
    assert refused.returncode == 1
    assert refused.stderr == f"{wider} shows more than running\n"
    assert run(ran, "diff", wider, "running", "--fail-on-widening").returncode == 0


def test_a_hash_that_is_cut_too_short_is_asked_for_in_more_digits(ran: dict[str, Any]) -> None:
    found = run(ran, "diff", "0e44", "running")
    text = "there is no file 0e44; of the hash of a policy that ran, write at least 8 digits\n"
    assert (found.returncode, found.stderr) == (1, text)


def test_a_policy_that_ran_is_shown_as_a_file_is(ran: dict[str, Any]) -> None:
    told = json.loads(run(ran, "show", "running", "--json").stdout)
    assert told["file"] == "running"
    assert told["resources"]["clients"]["phone"] == {"BASIC": False, "STANDARD": True, "FULL": True}
    short = told["hash"][:12]
    assert json.loads(run(ran, "show", short, "--json").stdout) == told | {"file": short}
    assert run(ran, "show", short).stdout.startswith(f"{short}, hash {short}\n")
    unknown = run(ran, "show", "0" * 8)
    text = "no policy that ran here has a hash that begins with 00000000\n"
    assert (unknown.returncode, unknown.stdout, unknown.stderr) == (1, "", text)


def test_what_changes_is_also_said_key_by_key(ran: dict[str, Any]) -> None:
    found = run(ran, "diff", "running", str(ran["folder"] / "masked.yaml"), "--keys")
    assert found.stdout.splitlines()[1:] == [
        f"A test's partner ({ran['key']})",
        "  clients.phone becomes visible as last(2) at BASIC",
        "1 change (1 shows more): wider",
    ]


def test_the_configured_file_is_compared_with_what_ran_where_none_is_named(
    ran: dict[str, Any],
) -> None:
    assert run(ran, "diff").stdout.splitlines()[1:] == ["no key sees anything else"]
    digest = json.loads(run(ran, "diff", "--json").stdout)["old"]["hash"]
    assert run(ran, "diff", digest[:10]).stdout.splitlines()[1:] == ["no key sees anything else"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("0123456789", "no policy that ran here has a hash that begins with 0123456789"),
        ("missing.yaml", "missing.yaml: cannot be read: no such file or directory"),
    ],
)
def test_a_policy_that_is_not_there_is_named(ran: dict[str, Any], name: str, said: str) -> None:
    found = run(ran, "diff", name)
    assert (found.returncode, found.stderr) == (1, f"{said}\n")


def test_two_files_are_compared_where_no_gateway_ever_ran(tmp_path: Path) -> None:
    for name, text in (("old.yaml", TEXT), ("new.yaml", WIDER)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "gateway.yaml").write_text("state: none\n")
    config = ("--config", str(tmp_path / "gateway.yaml"))
    found = clinic_gateway(
        "policy", "diff", *config, str(tmp_path / "old.yaml"), str(tmp_path / "new.yaml")
    )
    assert found.stdout.splitlines()[1:] == [
        "clients.phone becomes visible at BASIC",
        "1 change (1 shows more): wider; no keys are known here (name the configuration: --config)",
    ]
    assert not (tmp_path / "none").exists()
    alone = clinic_gateway("policy", "diff", *config)
    assert alone.returncode == 1
    assert "no policy has run so far" in alone.stderr


def test_a_note_says_where_the_cases_of_the_new_file_fail(tmp_path: Path) -> None:
    for name, text in (("old.yaml", TEXT), ("new.yaml", MASKED)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    shutil.copy(shipped_policy().with_name("policies.test.yaml"), tmp_path / "new.test.yaml")
    (tmp_path / "gateway.yaml").write_text("state: none\n")
    old, new = str(tmp_path / "old.yaml"), str(tmp_path / "new.yaml")
    words = ("policy", "diff", "--config", str(tmp_path / "gateway.yaml"))
    text = (
        f"{new}: 3 of its cases fail, so what it shows more waits until they pass:"
        f" clinic-gateway policy test {new}"
    )
    found = clinic_gateway(*words, old, new)
    assert (found.returncode, found.stdout.splitlines()[-1]) == (0, f"note: {text}")
    assert json.loads(clinic_gateway(*words, old, new, "--json").stdout)["notes"] == [text]
    assert "note: " not in clinic_gateway(*words, new, old).stdout


def test_each_field_is_explained_by_its_line_and_the_keys_own_level(ran: dict[str, Any]) -> None:
    found = run(ran, "explain", "--key", ran["key"], "--operation", "get_client")
    assert (found.returncode, found.stderr) == (0, "")
    lines = found.stdout.splitlines()
    assert lines[0] == f"get_client for A test's partner ({ran['key']})"
    assert lines[1] == "level BASIC: the key's level; it has no scope for clients"
    row = TEXT.splitlines().index("  BASIC: [id, firstName, lastName]") + 1
    [name] = [each.split() for each in lines if each.startswith("  firstName")]
    assert name[1:5] == ["whole", "BASIC", "opens", "it"]
    assert name[5] == f"({ran['folder'] / 'policies.yaml'}:{row}:15)"
    [phone] = [each.split() for each in lines if each.startswith("  phone")]
    assert phone[1:5] == ["hidden", "STANDARD", "opens", "it"]


def test_the_scope_that_decides_is_named(ran: dict[str, Any]) -> None:
    words = ("explain", "--key", ran["key"], "--operation", "list_stock")
    assert "level FULL: the key's scope stock=FULL" in run(ran, *words).stdout
    told = json.loads(run(ran, *words, "--json").stdout)
    assert {each["sight"] for each in told["fields"]} == {"whole", "all"}


def test_a_key_without_the_permission_is_told_so(ran: dict[str, Any]) -> None:
    listed = json.loads(
        clinic_gateway(
            "keys", "list", "--json", "--config", str(ran["folder"] / "gateway.yaml")
        ).stdout
    )
    [other] = [each["id"] for each in listed if each["id"] != ran["key"]]
    found = run(ran, "explain", "--key", other, "--operation", "get_client")
    assert "the key lacks CLIENT_READ: every call is 403" in found.stdout


def test_another_policy_explains_what_it_would_show(ran: dict[str, Any]) -> None:
    masked = str(ran["folder"] / "masked.yaml")
    words = ("--key", ran["key"], "--operation", "get_client", "--policy", masked)
    [phone] = [
        each for each in run(ran, "explain", *words).stdout.splitlines() if "  phone" in each
    ]
    assert "last(2)" in phone
    assert "BASIC masks it; whole from STANDARD on" in phone


def test_an_answer_that_went_out_is_explained_by_the_policy_of_its_time(
    ran: dict[str, Any],
) -> None:
    told = json.loads(run(ran, "explain", "--request", ran["request"], "--json").stdout)
    assert (told["operation"], told["level"]) == ("get_client", "BASIC")
    assert told["answer"]["outcome"] == "answered"
    assert told["policy"]["hash"].startswith(told["answer"]["policy"])
    sights = {each["field"]: each["sight"] for each in told["fields"] if each["field"]}
    assert (sights["firstName"], sights["phone"]) == ("whole", "hidden")
    refused = run(ran, "explain", "--request", ran["refused"])
    when = told["answer"]["time"][:10]
    assert refused.stdout.splitlines()[1].startswith(f"answer of {when}T")
    assert refused.stdout.splitlines()[1].endswith("Z: refused, 0 records")
    assert f"\npolicy {told['policy']['hash'][:12]}, as it ran\n" in refused.stdout
    unknown = run(ran, "explain", "--request", "never-sent")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "knows no answer with the request id never-sent" in unknown.stderr


def test_yesterdays_answer_is_explained_by_yesterdays_policy(ran: dict[str, Any]) -> None:
    folder = ran["folder"]
    (folder / "policies.yaml").write_text(WIDER, encoding="utf-8")

    async def again() -> None:
        async with served(folder):
            pass

    asyncio.run(again())
    told = json.loads(run(ran, "explain", "--request", ran["request"], "--json").stdout)
    sights = {each["field"]: each["sight"] for each in told["fields"] if each["field"]}
    assert sights["phone"] == "hidden"
    # the file has other lines by now
    assert told["policy"]["place"] == told["policy"]["hash"][:12]
    now = run(ran, "explain", "--key", ran["key"], "--operation", "get_client", "--json")
    sights = {each["field"]: each["sight"] for each in json.loads(now.stdout)["fields"]}
    assert sights["phone"] == "whole"


def test_an_answer_is_explained_though_nobody_can_read_its_key_any_more(
    ran: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "clinic"
    shutil.copytree(ran["folder"], folder)
    with closing(sqlite3.connect(folder / "gateway.db")) as store, store:
        store.execute("UPDATE keys SET level = 'odd'")
    found = run({"folder": folder}, "explain", "--request", ran["request"])
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("get_client for a key that is gone\n")


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--key", "x"),
        ("--operation", "get_client"),
        ("--key", "x", "--operation", "get_client", "--request", "y"),
    ],
)
def test_half_a_question_is_wrong_use(ran: dict[str, Any], words: tuple[str, ...]) -> None:
    assert run(ran, "explain", *words).returncode == 2
