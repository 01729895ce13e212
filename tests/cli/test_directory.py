"""`clinic-gateway vets`, `sample` and `settings`, and the command line as a whole."""

import asyncio
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner, Result

import gateway
from adapters.base import Page, Query
from adapters.sample import MAPPING
from gateway.cli import COMMANDS, main
from gateway.cli.backend import PAGES_MOST, WITH_IDS
from gateway.cli.policy import policy
from gateway.settings import names
from tests.conftest import RunningGateway, Template
from tests.partner import Partner
from tests.states import begin_state
from tests.world import WORLDS, World

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@pytest.fixture
def folder(template: Template, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template.folder, tmp_path / "state"))


def run(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--config", str(folder / "gateway.yaml")])


def told(folder: Path, *words: str) -> Any:
    result = run(folder, *words, "--json")
    assert result.exit_code == 0, result.stderr
    found: Any = json.loads(result.stdout)
    return found


async def test_the_vets_are_those_whose_slots_can_be_asked_for(
    running_gateway: RunningGateway, partner: Partner
) -> None:
    vets = await asyncio.to_thread(told, running_gateway.folder, "vets")
    assert len(vets) == 6
    assert all(list(vet) == ["id", "name"] and vet["name"] for vet in vets)
    for vet in vets:
        query = {"vetId": vet["id"], "date": "2126-01-07"}
        assert (await partner.get("/appointments/available-slots", **query)).status == 200
    lines = (await asyncio.to_thread(run, running_gateway.folder, "vets")).stdout.splitlines()
    assert lines == [f"{vet['name']}  {vet['id']}" for vet in vets]


def test_vets_that_are_not_mapped_are_said_to_be(template: Template, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(template.folder, tmp_path / "clinic"))
    rows = "{from: PERSONNES p, key: p.ID_PERS, fields: {lastName: p.NOM}}"
    only = f"version: 2\nzone: Europe/Paris\nresources:\n  clients: {rows}\n"
    (folder / "clients.yaml").write_text(only)
    file = folder / "gateway.yaml"
    settings = yaml.safe_load(file.read_text())
    settings["backend"]["mapping"] = str(folder / "clients.yaml")
    file.write_text(yaml.safe_dump(settings))
    for words in (["vets"], ["sample", "vets"]):
        result = run(folder, *words)
        assert result.exit_code == 1
        assert "vets is not in the mapping" in result.stderr


@pytest.mark.parametrize("name", ["a?b%20c#d", "é è", "%", "a@b:c+d"])
def test_everything_may_lie_in_a_folder_of_any_name(
    template: Template, tmp_path: Path, name: str
) -> None:
    folder = Path(shutil.copytree(template.folder, tmp_path / name))
    assert len(told(folder, "vets")) == 6
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_file_whose_name_is_no_text_is_told_of_as_json_too(folder: Path) -> None:
    name = os.fsdecode(b"\xff.yaml")
    result = run(folder, "policy", "test", "--json", "--cases", str(folder / name))
    assert result.exit_code == 1
    [problem] = json.loads(result.stdout)["problems"]
    assert problem["file"] == str(folder / name)
    assert "there are no cases here" in problem["text"]


@pytest.mark.parametrize("resource", WITH_IDS)
def test_a_sample_is_a_list_of_public_ids_and_names_and_goes_on(
    folder: Path, resource: str
) -> None:
    found = told(folder, "sample", resource, "--limit", "3")
    records = found["records"]
    assert len({each["id"] for each in records}) == 3
    assert all(UUID.fullmatch(each["id"]) and each["name"] for each in records)
    printed = run(folder, "sample", resource, "--limit", "3")
    assert printed.stdout.splitlines() == [f"{each['id']}  {each['name']}" for each in records]
    assert printed.stderr == f"there are more: --after {found['after']}\n"
    more = told(folder, "sample", resource, "--limit", "3", "--after", found["after"])["records"]
    assert more
    assert more == told(folder, "sample", resource, "--limit", "6")["records"][3:]


def test_a_sample_of_appointments_tells_when_and_with_whom(folder: Path) -> None:
    [first] = told(folder, "sample", "appointments", "--limit", "1")["records"]
    vets = [each["name"] for each in told(folder, "vets")]
    assert re.match(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z [A-Z_]+, .+ .+", first["name"])
    assert any(first["name"].endswith(f", {name}") for name in vets)


@pytest.mark.parametrize("after", ["xyz", "{}", "[1, 2]"])
def test_a_place_that_no_sample_printed_is_refused(folder: Path, after: str) -> None:
    result = run(folder, "sample", "clients", "--after", after)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--after takes the place that `sample` printed" in result.stderr


async def test_a_sampled_id_is_the_one_that_partners_use(
    running_gateway: RunningGateway, partner: Partner
) -> None:
    for resource, path in (("clients", "/clients/"), ("stock", "/stock/")):
        found = await asyncio.to_thread(told, running_gateway.folder, "sample", resource)
        sampled = [record["id"] for record in found["records"]]
        assert (await partner.get(path + sampled[0])).data["id"] == sampled[0]
        assert len(sampled) == 10


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Path]:
    """A practice system with 450 of everything, whose every tenth row has no usable id."""

    def many(query: Query) -> Page:
        start = int(query.after or 0)
        end = start + query.limit
        records = [
            {"id": f"id-{n}", "name": f"Vet {n}"} for n in range(start, min(end, 450)) if n % 10
        ]
        return Page(records=records, after=str(end) if end < 450 else None)

    WORLDS["crowd"] = World(many=many)
    (tmp_path / "gateway.yaml").write_text(
        "state: .\nbackend:\n  adapter: tests.world:WorldAdapter\n  url: crowd\n"
    )
    begin_state(tmp_path / "gateway.yaml")
    yield tmp_path
    del WORLDS["crowd"]


def test_all_vets_are_listed_and_a_sample_has_as_many_as_were_asked_for(crowd: Path) -> None:
    listed = [each["id"] for each in told(crowd, "vets")]
    assert len(listed) == len(set(listed)) == 405
    sampled = told(crowd, "sample", "clients", "--limit", "200")["records"]
    assert [each["id"] for each in sampled] == listed[:200]
    assert "at most 200" in run(crowd, "sample", "--help").stdout


def test_a_practice_system_whose_pages_never_end_is_not_asked_for_ever(crowd: Path) -> None:
    endless = WORLDS["crowd"]
    endless.many = lambda query: Page(records=[], after="again")
    assert told(crowd, "vets") == []
    assert len(endless.asked) == PAGES_MOST


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sample", "client"], "client is no resource (did you mean clients?)"),
        (["sample", "x"], "x is no resource; it can be appointments, clients"),
        (["sample", "clients", "--limit", "0"], "1<=x<=200"),
        (["sample"], "RESOURCE"),
        (["vet"], "vet is no command (did you mean vets?)"),
        (["keys", "creat"], "creat is no command (did you mean create?)"),
        (["policy", "xyz"], f"xyz is no command; it can be {', '.join(policy.loads)}"),
        (["vets", "--jsn"], "--json"),
        (["openapi", "--level", "LOW"], "LOW is no level; it can be BASIC, STANDARD, FULL"),
    ],
)
def test_wrong_use_is_2_and_names_the_remedy(folder: Path, words: list[str], said: str) -> None:
    result = run(folder, *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("words", [["vets"], ["sample", "clients"]])
def test_what_the_database_lacks_is_said_with_its_place(folder: Path, words: list[str]) -> None:
    text = MAPPING.read_text().replace("from: LIGNES_FACT l", "from: LIGNES l")
    (folder / "mapping.yaml").write_text(text)
    configuration = folder / "gateway.yaml"
    configuration.write_text(configuration.read_text().replace(str(MAPPING), "mapping.yaml"))
    result = run(folder, *words)
    line = text[: text.index("from: LIGNES l")].count("\n") + 1
    lacking = f"{folder}/mapping.yaml:{line}:15: the database says: no such table: LIGNES"
    assert (result.exit_code, result.stdout) == (1, "")
    assert lacking in result.stderr.splitlines()


def test_a_practice_system_that_is_down_is_a_sentence(folder: Path) -> None:
    (folder / "clinic.db").unlink()
    for words in (["vets"], ["sample", "clients"]):
        result = run(folder, *words)
        assert result.exit_code == 1
        gone = "STATE/clinic.db does not exist; is backend.url the right file?"
        said = f"the practice system cannot be read: {gone}"
        assert result.stderr.replace(str(folder), "STATE") == f"{said}\n"


def test_every_setting_is_printed_with_its_meaning_and_no_secret(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_BACKEND_SECRET", "ab" * 32)
    monkeypatch.setenv("GATEWAY_BACKEND_URL", "postgresql://reader:hunter2@db/clinic")
    monkeypatch.setenv("GATEWAY_DRAIN", "3")
    rows = {row["name"]: row for row in told(folder, "settings")}
    assert list(rows) == [name for name, _ in names()]
    assert all(row["help"] and row["variable"].startswith("GATEWAY_") for row in rows.values())
    assert rows["drain"]["value"] == 3.0
    assert rows["backend.url"]["value"] == "postgresql://reader:********@db/clinic"
    assert rows["backend.secret"]["value"] == "********"
    assert rows["store"]["value"] == str(folder / "gateway.db")
    sources = {name: row["source"] for name, row in rows.items()}
    assert {name for name, each in sources.items() if each == "environment"} == {
        "drain", "backend.secret", "backend.url",
    }  # fmt: skip
    assert (sources["state"], sources["backend.mapping"]) == ("file", "file")
    assert (sources["store"], sources["backend.timeout"]) == ("default", "default")
    assert "\n    GATEWAY_DRAIN (now: environment)\n" in run(folder, "settings").stdout
    for words in (["settings"], ["settings", "--json"]):
        printed = run(folder, *words).stdout
        assert "hunter2" not in printed
        assert "abab" not in printed
    for url in (
        "odbc://gate@/?dsn=c&PWD=hunter2&x=1",
        "odbc:///?dsn=c&Password=hunter@2;Key=hunter2",
    ):
        monkeypatch.setenv("GATEWAY_BACKEND_URL", url)
        shown = {row["name"]: row for row in told(folder, "settings")}["backend.url"]["value"]
        assert shown.startswith("odbc://")
        assert "dsn=c" in shown
        assert "hunter" not in shown
        assert shown.endswith("&x=1") is url.endswith("&x=1")


def leaves(command: click.Command, *words: str) -> Iterator[tuple[str, ...]]:
    """Every command that does something, by the words that name it."""
    if not isinstance(command, click.Group):
        yield words
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from leaves(below, *words, name)


@pytest.mark.parametrize("words", list(leaves(main)), ids=" ".join)
def test_every_command_takes_a_configuration_and_all_that_print_take_json(
    words: tuple[str, ...],
) -> None:
    described = CliRunner().invoke(main, [*words, "--help"])
    assert described.exit_code == 0
    assert "--config FILE" in described.stdout
    assert ("--json" in described.stdout) is (words not in (("serve",), ("init",)))


def test_the_help_names_every_command_and_what_it_may_be_asked_for() -> None:
    whole = CliRunner().invoke(main, ["--help"]).stdout
    for name in COMMANDS:
        assert f"  {name} " in whole
    sampled = CliRunner().invoke(main, ["sample", "--help"]).stdout
    assert all(each in sampled for each in WITH_IDS)
    version = CliRunner().invoke(main, ["--version"]).stdout
    assert version == f"clinic-gateway, version {gateway.__version__}\n"


def test_the_configuration_may_stand_before_or_after_the_command(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ["--config", str(folder / "gateway.yaml")]
    before = CliRunner().invoke(main, [*config, "vets"])
    monkeypatch.chdir(folder)
    beside = CliRunner().invoke(main, ["vets"])
    assert before.exit_code == beside.exit_code == 0
    assert before.stdout == beside.stdout == run(folder, "vets").stdout
