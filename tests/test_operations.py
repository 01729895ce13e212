"""The operations manual: what it names is there, what it has typed works, its unit fits."""

import ast
import re
import shlex
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from configparser import RawConfigParser
from functools import cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.events import event_table
from gateway.observe.metrics import FIGURES
from gateway.settings import GROUPS, Settings, load_settings, names
from gateway.web.connection_limiter import SPARE_FILES
from tests.command import clinic_gateway
from tests.conftest import Template
from tests.observe.test_documented import rules
from tests.tables import ROOT, samples

PAGE = "\n".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("operations", "panel"))
README = (ROOT / "README.md").read_text()
UNIT = ROOT / "examples" / "clinic-gateway.service"
BLOCKS = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROSE = BLOCKS.sub("", PAGE)
SPANS = [" ".join(each.split()) for each in re.findall(r"`([^`]+)`", PROSE)]
# Programs whose command lines stand between ticks too.
PROGRAMS = {"clinic-gateway", "docker", "make", "pg_restore", "pip", "systemctl", "audit"}
NAMES = {"clinic-gateway", "/opt/clinic-gateway/bin/clinic-gateway"}
# What else is called like the gateway: its account and its unit.
OTHERS = ("useradd", "systemctl", "journalctl", "install", "docker")


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCKS.findall(PAGE) if found == kind]


def commands() -> Iterator[list[str]]:
    """Every command line of the gateway's own on the page, without the program's name."""
    lines = "\n".join(blocks("sh")).replace("\\\n", " ").splitlines()
    for text in [*lines, *(each for each in SPANS if each.startswith("clinic-gateway "))]:
        words = shlex.split(text)
        called = [at for at, word in enumerate(words[:-1]) if word in NAMES]
        if called and not text.startswith(OTHERS):
            yield words[called[-1] + 1 :]


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_a_command_of_the_page_is_one_with_these_options(words: list[str]) -> None:
    if words[0] == "--config":
        words = words[2:]
    group, at = main, 0
    while isinstance(group, click.Group):
        found = group.get_command(click.Context(group), words[at])
        assert found is not None, words[at]
        group, at = found, at + 1  # type: ignore[assignment]
    said = CliRunner().invoke(main, [*words[:at], "--help"])
    assert said.exit_code == 0
    for option in [each for each in words[at:] if each.startswith("--")]:
        assert option in said.output, option


@pytest.mark.parametrize("text", blocks("yaml"))
def test_the_yaml_of_the_page_is_a_configuration_that_would_be_taken(
    text: str, tmp_path: Path
) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(text)
    assert load_settings(config, {})


def test_every_setting_variable_and_figure_that_is_named_is_there() -> None:
    settings = {name for name, _ in names()}
    of_groups = rf"(?:{'|'.join(GROUPS)})\.\w+"
    files = {"audit.key", "audit.jsonl"}
    named = {each for each in SPANS if re.fullmatch(of_groups, each)} - files
    assert len(named) > 10
    assert named <= settings
    variables = set(re.findall(r"\bGATEWAY_[A-Z_]+", PAGE))
    derived = {"GATEWAY_" + each.upper().replace(".", "_") for each in settings}
    assert variables - derived == {"GATEWAY_SERVICE_HOST", "GATEWAY_PORT"}
    told = {*FIGURES, *(sample for name in FIGURES for sample in samples(name))}
    assert set(re.findall(r"\bgateway_[a-z_]+", PAGE)) <= told


def test_every_alarm_that_is_named_is_one() -> None:
    alarms = {each["alert"] for each in rules()}
    shape = re.compile(r"(?<![\w`])(?:[A-Z][a-z]+){2,}(?![\w`])")
    others = {"OpenTelemetry"}
    named = set(shape.findall(re.sub(r"`[^`]+`", "", PROSE)))
    assert named - others <= alarms
    assert len(named & alarms) > 10


@cache
def texts() -> str:
    """Every text of the code, f-strings with dots in the place of what they take in."""
    found = []
    for file in [*ROOT.glob("gateway/**/*.py"), *ROOT.glob("adapters/**/*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = [getattr(each, "value", "") for each in node.values]
                found.append("".join(each if isinstance(each, str) else "..." for each in parts))
    found += [kind.text for kind in event_table().event.values()]
    return "\n".join(" ".join(each.split()) for each in found)


def said_by_the_gateway() -> list[str]:
    """Spans of several words that are neither a command nor a setting with its value."""
    return [
        each
        for each in SPANS
        if re.match(r"[A-Za-z][\w']* [\w.']+ ", each)
        and each.split()[0] not in PROGRAMS
        and not re.search(r"[/=]|--", each)
        and not each.startswith("EVALSHA")
    ]


@pytest.mark.parametrize("text", sorted(set(said_by_the_gateway())))
def test_a_sentence_that_the_page_quotes_is_one_of_the_gateways(text: str) -> None:
    for part in re.split(r" ?\.\.\. ?", text):
        assert part.strip(": ") in texts()


def test_there_are_enough_of_these_sentences() -> None:
    assert len(said_by_the_gateway()) > 15


def test_every_link_and_file_of_the_project_that_is_named_is_there() -> None:
    for page, folder in ((PAGE, ROOT / "docs"), (README, ROOT)):
        anchors = {slug(each) for each in re.findall(r"^#+ (.+)$", page, re.MULTILINE)}
        for target in re.findall(r"\]\(([^)]+)\)", page):
            path, _, anchor = target.partition("#")
            if not path.startswith("http"):
                assert (folder / path).exists(), target
            assert path or anchor in anchors, target
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", PAGE + README)) <= targets


def slug(head: str) -> str:
    """How a heading is linked to."""
    return re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-")


def test_the_messages_of_a_refused_downgrade_are_the_stores_own(
    template: Template, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    shutil.copytree(template.folder, state)
    with sqlite3.connect(state / "gateway.db") as store:
        store.execute("UPDATE alembic_version SET version_num = '0999'")
    store.close()
    done = clinic_gateway("keys", "list", "--config", str(state / "gateway.yaml"))
    assert done.returncode == 1
    [shown] = [text for text in blocks("text") if "later version" in text]
    assert outline(shown) == outline(done.stderr)


def outline(text: str) -> str:
    """A message without its path and its numbers."""
    return " ".join(re.sub(r"^/\S+|\b\d{4}\b", "", text.strip()).split())


def test_the_backup_that_the_page_types_is_whole_and_can_be_restored(
    template: Template, tmp_path: Path
) -> None:
    """While another connection has the latest changes in the log beside the database."""
    state, backup = tmp_path / "state", str(tmp_path / "backup")
    shutil.copytree(template.folder, state)
    config = str(state / "gateway.yaml")
    open_ = sqlite3.connect(state / "gateway.db")
    assert open_.execute("SELECT count(*) FROM keys").fetchone()
    made = clinic_gateway(
        *("keys", "create", "--name", "Kept", "--permission", "CLIENT_READ", "--level", "BASIC"),
        *("--config", config),
    )
    assert made.returncode == 0, made.stderr
    lines = [shlex.split(each) for each in "".join(blocks("sh")).splitlines()]
    [back_up] = [words[1:] for words in lines if words[1:3] == ["state", "backup"]]
    assert clinic_gateway(*back_up[:2], backup, "--config", config).returncode == 0
    open_.close()
    for each in state.glob("gateway.db*"):
        each.unlink()
    [restore] = [words[1:] for words in lines if words[3:5] == ["state", "restore"]]
    assert restore[0] == "--config"
    restored = clinic_gateway("--config", config, *restore[2:-1], backup)
    assert restored.returncode == 0, restored.stderr
    listed = clinic_gateway("keys", "list", "--config", config)
    assert listed.returncode == 0
    assert "Kept" in listed.stdout


def unit() -> RawConfigParser:
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNIT)
    return parser


def test_the_unit_gives_the_gateway_the_time_and_the_files_that_it_takes() -> None:
    service, settings = unit()["Service"], Settings()
    ends = settings.shutdown_delay + 2 * settings.drain + 20
    assert float(service["TimeoutStopSec"]) >= ends
    assert int(service["LimitNOFILE"]) >= settings.connections + SPARE_FILES
    # the parent alone is told, and tells its children
    assert (service["KillMode"], service["KillSignal"]) == ("mixed", "SIGTERM")
    assert service["ExecReload"].split()[1] == "-HUP"
    assert "SIGUSR2" in UNIT.read_text()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="comes with systemd")
def test_systemd_takes_the_unit_and_finds_it_well_shut(tmp_path: Path) -> None:
    own = tmp_path / UNIT.name
    own.write_text(UNIT.read_text().replace("/opt/clinic-gateway/bin/clinic-gateway", "/bin/true"))
    verified = subprocess.run(
        ["systemd-analyze", "verify", own], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", own],
        capture_output=True,
        text=True,
        check=True,
    )
    [exposed] = re.findall(r"exposure level for [\w.-]+: ([\d.]+)", judged.stdout)
    assert float(exposed) <= 2
