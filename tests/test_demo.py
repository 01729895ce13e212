"""The demo as a newcomer meets it: what it prints works as printed, and the README's lines too."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from gateway.cli.demo import CONFIGURATION, prepare
from gateway.settings import load_settings, shipped_policy
from tests.command import Forked, serving

pytestmark = pytest.mark.long

README = (Path(__file__).parent.parent / "README.md").read_text()


class Demo:
    """A demo in a process of its own; `text` is what it printed until it was ready.

    One that is `typed` is started as its user does, by a Python of its own.
    """

    def __init__(
        self, state: Path, *more: str, until: str = "Ctrl-C ends", typed: bool = False
    ) -> None:
        self.state = state
        words = ["demo", "--port", "0", "--operations-port", "0", "--state", str(state), *more]
        self._process: subprocess.Popen[str] | Forked = _typed(words) if typed else serving(*words)
        self.text = ""
        while until not in self.text:
            line = self._process.stdout.readline()  # type: ignore[union-attr]
            assert line, self._process.stderr.read()  # type: ignore[union-attr]
            self.text += line

    @property
    def exports(self) -> dict[str, str]:
        return dict(re.findall(r"^export (\w+)=(\S+)$", self.text, re.MULTILINE))

    def stop(self, by: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """The exit code and what was said on stderr."""
        self._process.send_signal(by)
        _, said = self._process.communicate(timeout=20)
        return self._process.returncode, said


def _typed(words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gateway", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture(params=[False], ids=["forked"])
def demo(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Demo]:
    started = Demo(tmp_path / "demo", typed=request.param)
    yield started
    if started._process.poll() is None:
        started.stop()


def shell(line: str, exports: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", line], env={**os.environ, **exports}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return done.stdout


def curl_lines() -> list[str]:
    """The README's curl lines, in their order."""
    blocks = re.findall(r"```sh\n(.*?)```", README.partition("### Hide a field")[0], re.DOTALL)
    whole = "\n".join(blocks).replace("\\\n", " ")
    return [line for line in whole.splitlines() if line.startswith("curl")]


def key_lines() -> list[str]:
    """The README's lines about keys, in their order."""
    part = README.partition("## Keys")[2].partition("## Serve")[0]
    blocks = re.findall(r"```sh\n(.*?)```", part, re.DOTALL)
    return "".join(blocks).replace("\\\n", " ").splitlines()


@pytest.mark.parametrize("demo", [True], indirect=True, ids=["typed"])
def test_it_shows_the_same_client_at_both_levels_and_ends_well(demo: Demo) -> None:
    shown = dict(re.findall(r"^(BASIC|FULL): (.*)$", demo.text, re.MULTILINE))
    basic, full = (json.loads(shown[level]) for level in ("BASIC", "FULL"))
    assert "lastName" in basic
    assert "address" not in basic
    assert "address" in full
    assert basic.items() < full.items()
    code, said = demo.stop()
    assert code == 0
    assert "Traceback" not in said
    assert "told to end" not in said


@pytest.mark.parametrize("demo", [True], indirect=True, ids=["typed"])
def test_it_ends_with_its_terminal(demo: Demo) -> None:
    code, said = demo.stop(signal.SIGHUP)
    assert code == 0
    assert "SIGHUP" not in said


@pytest.mark.skipif(
    shutil.which("curl") is None or shutil.which("bash") is None,
    reason="needs curl and bash, to type the README's lines as they stand",
)
def test_the_readmes_lines_read_a_client_twice_and_book_up_to_the_conflict(demo: Demo) -> None:
    answers = [shell(line, demo.exports) for line in curl_lines()]
    assert len(answers) == 6
    assert all(answer.endswith("\n") for answer in answers)
    basic, full, types, slots, made, again = answers
    assert '"phone"' not in basic
    assert '"phone"' in full
    assert '"durationMinutes"' in types
    assert demo.exports["SLOT"] == json.loads(slots)[0]["startTime"]
    assert made.startswith("HTTP/1.1 201 Created")
    assert again.startswith("HTTP/1.1 409 Conflict")
    assert '{"message":"Time slot conflict"}' in again
    for line in [each for each in demo.text.splitlines() if each.startswith("curl")]:
        answer = shell(line, {})
        assert '"lastName"' in answer
        assert answer.endswith("}\n")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash, to type the README's lines")
def test_the_readmes_lines_make_list_rotate_and_revoke_a_key_of_the_demo(demo: Demo) -> None:
    here = {".venv/bin/clinic-gateway": f"{sys.executable} -m gateway", ".demo": str(demo.state)}
    exports: dict[str, str] = {}
    said = []
    for line in key_lines():
        typed = line
        for printed, path in here.items():
            assert printed in line
            typed = typed.replace(printed, path)
        said.append(shell(typed, exports))
        exports["ID"] = re.findall(r"^id +(\S+)$", said[0], re.MULTILINE)[0]
    created, listed, rotated, revoked = said
    assert "Insurer X" in created
    assert "Demo BASIC" in listed
    assert exports["ID"] in listed
    assert "secrets" in rotated
    assert "revokedAt" in revoked


def test_a_second_start_gives_new_secrets_and_keeps_the_old_for_a_day(
    demo: Demo, tmp_path: Path
) -> None:
    first = demo.exports
    demo.stop()
    again = Demo(tmp_path / "demo")
    second = again.exports
    assert (first["CLIENT"], first["VET"]) == (second["CLIENT"], second["VET"])
    assert first["FULL"] != second["FULL"]
    both = [{**second, "FULL": secret} for secret in (first["FULL"], second["FULL"])]
    if shutil.which("curl"):
        for exports in both:
            line = 'curl -s -o /dev/null -w "%{http_code}" -H "X-API-Key: $FULL" $BASE/stock/low'
            assert shell(line, exports) == "200"
    again.stop()
    kept = b"".join(file.read_bytes() for file in (tmp_path / "demo").rglob("*") if file.is_file())
    for secret in (first["FULL"], first["BASIC"], second["FULL"], second["BASIC"]):
        assert secret.encode() not in kept


def test_what_it_writes_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        demo = Demo(tmp_path / "demo", typed=True)
    finally:
        os.umask(before)
    written = [tmp_path / "demo", *(tmp_path / "demo").iterdir()]
    rights = {file.name: file.stat().st_mode & 0o077 for file in written}
    assert "open to others" not in demo.stop()[1]
    assert rights == dict.fromkeys(rights, 0)
    assert rights.keys() >= {"clinic.db", "clinic.yaml", "gateway.yaml", "gateway.db"}
    assert rights.keys() >= {"policies.yaml", "policies.test.yaml"}


def test_its_policy_is_a_copy_of_its_own_that_is_not_overwritten(tmp_path: Path) -> None:
    configuration = prepare(tmp_path / "demo")
    own, shipped = tmp_path / "demo" / "policies.yaml", shipped_policy()
    assert load_settings(configuration).policy == own
    assert own.read_bytes() == shipped.read_bytes()
    cases = own.with_name("policies.test.yaml")
    assert cases.read_bytes() == shipped.with_name(cases.name).read_bytes()
    own.write_text(f"# mine\n{own.read_text()}")
    prepare(tmp_path / "demo")
    assert own.read_text().startswith("# mine")


def test_a_demo_whose_configuration_names_no_policy_goes_on_with_the_shipped_one(
    tmp_path: Path,
) -> None:
    text = CONFIGURATION.read_text().replace("  file: policies.yaml\n", "")
    (tmp_path / "gateway.yaml").write_text(text)
    assert load_settings(prepare(tmp_path)).policy == shipped_policy()
    assert not (tmp_path / "policies.yaml").exists()


def test_a_folder_that_others_may_read_is_used_and_warned_of(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo").chmod(0o755)
    said = Demo(tmp_path / "demo").stop()[1]
    assert said.count("the state folder is open to others") == 1
    assert f"chmod 700 {tmp_path}/demo" in said


def test_as_json_it_hands_over_what_another_program_needs(tmp_path: Path) -> None:
    demo = Demo(tmp_path / "demo", "--json", until="\n")
    shown = json.loads(demo.text)
    assert shown.keys() == {"base", "operations", "admin", "keys", "ids"}
    assert shown["ids"].keys() == {"CLIENT", "PATIENT", "VET", "DAY", "SLOT"}
    for level, secret in shown["keys"].items():
        request = Request(
            f"{shown['base']}/clients/{shown['ids']['CLIENT']}", headers={"X-API-Key": secret}
        )
        with urlopen(request) as answer:
            assert answer.headers["X-Access-Level"] == level
    with urlopen(f"{shown['base']}/openapi.json") as described:
        assert json.load(described)["servers"] == [{"url": shown["base"]}]
    with urlopen(f"{shown['operations']}/readyz") as ready:
        assert json.load(ready)["ready"] is True
    assert demo.stop()[0] == 0
