"""The README's first edit of the demo's policy, typed as it stands, and its way back."""

import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.test_demo import README, Demo, shell

pytestmark = pytest.mark.long

WITHIN = 30.0
PROGRAM = ".venv/bin/clinic-gateway --config .demo/gateway.yaml"
needs_curl = pytest.mark.skipif(
    any(shutil.which(each) is None for each in ("curl", "bash", "sed")),
    reason="needs curl, bash and sed, to type the README's lines as they stand",
)


class Typed:
    """A demo, and the README's lines about hiding a field, typed into a shell beside it."""

    def __init__(self, demo: Demo) -> None:
        self._demo = demo
        self._here = {
            ".venv/bin/clinic-gateway": f"{sys.executable} -m gateway",
            ".demo": str(demo.state),
        }
        part = README.partition("### Hide a field\n")[2].partition("\n## ")[0]
        found = re.findall(r"```sh\n(.*?)```", part, re.DOTALL)
        self.hides, self.takes_back, [self.approves] = ([*each.splitlines()] for each in found)

    def type(self, line: str) -> str:
        for printed, path in self._here.items():
            line = line.replace(printed, path)
        return shell(f"{line} || true", self._demo.exports)

    def status(self) -> dict[str, Any]:
        """How the gateway stands with its policy."""
        said = self.type(
            ".venv/bin/clinic-gateway --config .demo/gateway.yaml policy status --json"
        )
        [process] = json.loads(said)["processes"]
        found: dict[str, Any] = process
        return found

    def waits_until(self, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The status once it is so: a busy machine may take longer than the README says."""
        until = time.monotonic() + WITHIN
        while not is_so(told := self.status()):
            assert time.monotonic() < until, told
            time.sleep(0.1)
        return told


@pytest.fixture
def typed(tmp_path: Path) -> Iterator[Typed]:
    demo = Demo(tmp_path / "demo")
    yield Typed(demo)
    demo.stop()


@needs_curl
def test_the_readmes_first_edit_hides_at_once_and_names_the_cases_and_its_way_back_waits(
    typed: Typed,
) -> None:
    edit, sleep, ask, status = typed.hides
    assert sleep == "sleep 2"
    made = typed.type(
        f"{PROGRAM} keys create --json --name S --permission CLIENT_READ --level STANDARD"
    )
    standard = ask.replace("$FULL", json.loads(made)["key"])
    begun = typed.status()["hash"]
    seen = typed.waits_until(lambda told: '"email"' in typed.type(standard))
    assert '"email"' in typed.type(ask)

    typed.type(edit)
    told = typed.waits_until(lambda told: told["hash"] != seen["hash"])
    assert begun == seen["hash"]
    for line in (ask, standard):
        answer = typed.type(line)
        assert '"email"' not in answer
        assert '"lastName"' in answer
    assert (told["state"], told["hash"]) == ("current", told["fileHash"])
    said = typed.type(status)
    lines = (typed._demo.state / "policies.test.yaml").read_text().splitlines()
    named = re.findall(r"policies\.test\.yaml line (\d+): (.*?): clients\.email: hidden", said)
    assert len(named) == 3
    assert all(f"name: {name}" in lines[int(number) - 1] for number, name in named)

    back, sleep, status = typed.takes_back
    assert sleep == "sleep 2"
    typed.type(back)
    told = typed.waits_until(lambda told: told["state"] == "held back")
    assert (told["waitsFor"], told["cases"]) == ("approval", None)
    assert '"email"' not in typed.type(ask)
    assert f"policy approve {told['waiting']}" in typed.type(status)
    typed.type(typed.approves.replace("HASH", told["waiting"]))
    typed.waits_until(lambda told: told["state"] == "current")
    assert '"email"' in typed.type(ask)


@needs_curl
def test_the_panels_manual_leads_to_a_change_that_waits_for_an_approval(typed: Typed) -> None:
    """Its steps: the address of clients opens at STANDARD, then two cases are told so."""
    file = typed._demo.state / "policies.yaml"
    head, clients = file.read_text().split("\nclients:", 1)
    moved = clients.replace("updatedAt]", "updatedAt, address]", 1).replace("[address]", "[]", 1)
    file.write_text(f"{head}\nclients:{moved}")
    told = typed.waits_until(lambda told: told["waitsFor"] == "cases")
    cases = typed._demo.state / "policies.test.yaml"
    lines = cases.read_text().splitlines()
    for problem in told["cases"]["problems"]:
        at = next(n for n in range(problem["line"], len(lines)) if "sees:" in lines[n])
        lines[at] = lines[at].replace("email,", "email, address,")
    cases.write_text("\n".join(lines))
    told = typed.waits_until(lambda told: told["waitsFor"] == "approval")
    assert (told["state"], told["cases"]) == ("held back", None)
