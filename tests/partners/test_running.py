"""What docs/partners.md prints is run as it is printed, by a partner of a running demo."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from zoneinfo import ZoneInfo

import pytest

from tests.partners import node
from tests.partners.page import CLIENTS, blocks, lines
from tests.partners.wire import bad_wire
from tests.test_demo import Demo

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        shutil.which("curl") is None or shutil.which("bash") is None,
        reason="needs curl and bash, to type the lines of docs/partners.md as they stand",
    ),
]
TOOLS = Path(sys.executable).parent


@dataclass(frozen=True)
class Clinic:
    """A demo as a partner knows it, and its practice database."""

    environment: dict[str, str]
    database: Path

    def get(self, address: str) -> Any:
        key = {"X-API-Key": self.environment["KEY"]}
        with urlopen(Request(f"{self.environment['BASE']}{address}", headers=key)) as answer:
            return json.load(answer)

    def ask(self, statement: str, *values: object) -> Any:
        with closing(sqlite3.connect(self.database)) as connection, connection:
            return connection.execute(statement, values).fetchone()

    def bookings(self) -> int:
        [count] = self.ask("SELECT COUNT(*) FROM RDV")
        return int(count)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    demo = Demo(tmp_path_factory.mktemp("demo") / "state", "--json", until="\n")
    shown = json.loads(demo.text)
    known = {"BASE": shown["base"], "KEY": shown["keys"]["FULL"], **shown["ids"]}
    made = Clinic(known, demo.state / "clinic.db")
    known["DAY"] = quiet_day(made)
    yield made
    demo.stop()


def quiet_day(clinic: Clinic) -> str:
    """A day that has room for all that is booked here."""
    kind = clinic.get("/appointments/types")[0]["id"]
    for ahead in range(7, 60):
        day = datetime.now(UTC).date() + timedelta(days=ahead)
        query = f"vetId={clinic.environment['VET']}&date={day}&appointmentTypeId={kind}"
        if len(clinic.get(f"/appointments/available-slots?{query}")) > 8:
            return str(day)
    raise LookupError("the demo's veterinarian is never free")


def run(line: str, folder: Path, environment: dict[str, str]) -> str:
    """What a line of the shell prints; it must end well, and say nothing on stderr."""
    path = f"{TOOLS}{os.pathsep}{os.environ['PATH']}"
    quiet = {"NPM_CONFIG_LOGLEVEL": "error"}  # npm has its own to say about its user's settings
    done = subprocess.run(
        ["bash", "-e", "-c", line], cwd=folder,
        env={**os.environ, **environment, **quiet, "PATH": path},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), f"{line}\n{done.stdout}"
    return done.stdout


class Reader:
    """Types the curl blocks one after the other; an `export` is filled from what was shown."""

    def __init__(self, clinic: Clinic, folder: Path) -> None:
        self.environment = {name: clinic.environment[name] for name in ("BASE", "KEY", "VET")}
        self.said: list[str] = []
        self._clinic = clinic
        self._folder = folder
        self._choices: dict[str, Callable[[], str]] = {
            "PATIENT": lambda: self._animal()["id"],
            "CLIENT": lambda: self._animal()["clientId"],
            "DAY": lambda: clinic.environment["DAY"],
            "TYPE": lambda: json.loads(self.said[-1].splitlines()[-1])[0]["id"],
            "SLOT": lambda: json.loads(self.said[-1])[0]["startTime"],
            "ORDER": lambda: "booking-1001",
            "APPOINTMENT": lambda: body(self.said[-1])["id"],
        }

    def type(self, block: str) -> None:
        if block.startswith("export "):
            for name in re.findall(r"(\w+)=", block):
                self.environment[name] = self._choices[name]()
        else:
            self.said.append(run(block, self._folder, self.environment))

    def animals(self) -> list[dict[str, Any]]:
        pages = (self._folder / "patients.jsonl").read_text().splitlines()
        return [animal for page in pages for animal in json.loads(page)]

    def _animal(self) -> dict[str, Any]:
        wanted = self._clinic.environment["PATIENT"]
        return next(each for each in self.animals() if each["id"] == wanted)


def body(answer: str) -> dict[str, Any]:
    """The body of an answer that is shown with its headers."""
    read: dict[str, Any] = json.loads(answer.strip().splitlines()[-1])
    return read


def animals_of(clinic: Clinic) -> int:
    [count] = clinic.ask("SELECT COUNT(*) FROM ANIMAUX WHERE SUPPRIME = 0")
    return int(count)


def test_the_curl_lines_read_every_animal_and_book_once(clinic: Clinic, tmp_path: Path) -> None:
    before, reader = clinic.bookings(), Reader(clinic, tmp_path)
    for block in blocks("With curl", "sh"):
        reader.type(block)
    *_, booked, read = reader.said
    booking = next(each for each in blocks("With curl", "sh") if "Idempotency-Key" in each)
    again = run(booking, tmp_path, reader.environment)
    assert len({each["id"] for each in reader.animals()}) == animals_of(clinic)
    assert booked.startswith("HTTP/1.1 201")
    assert "Idempotent-Replayed" not in booked
    assert json.loads(read) == body(booked) == body(again)
    assert body(booked)["scheduledAt"] == reader.environment["SLOT"]
    assert "Idempotent-Replayed: true" in again
    assert clinic.bookings() == before + 1


def check_quick_start(clinic: Clinic, line: str, folder: Path) -> None:
    """It reads and books over a wire that is busy at first and then loses the booking's answer."""
    before = clinic.bookings()
    with bad_wire(clinic.environment["BASE"]) as wire:
        given = {"BASE": wire.base, **{name: clinic.environment[name] for name in ("KEY", "VET")}}
        said = run(line, folder, given)
    assert len(wire.busy) == 1
    assert wire.lost == [201]
    assert f"{animals_of(clinic)} animals\n" in said
    assert said.endswith("asked again, told again: true\n")
    made = re.search(r"^booked (\S+)", said, re.MULTILINE)
    assert made is not None
    assert clinic.get(f"/appointments/{made[1]}")["vetId"] == clinic.environment["VET"]
    assert clinic.bookings() == before + 1


def test_the_python_quick_start_books_once_though_an_answer_is_lost(
    clinic: Clinic, tmp_path: Path
) -> None:
    [code] = blocks("With Python", "python")
    (tmp_path / "quickstart.py").write_text(code)
    [line] = lines("With Python")
    check_quick_start(clinic, line, tmp_path)


def test_a_copy_takes_in_what_changed_and_forgets_what_is_gone_when_it_is_made_anew(
    clinic: Clinic, tmp_path: Path
) -> None:
    [code] = blocks("Keeping a copy up to date", "python")
    (tmp_path / "sync.py").write_text(code)
    first = run("python sync.py", tmp_path, clinic.environment)
    assert run("python sync.py", tmp_path, clinic.environment) == first.replace(
        first.split()[0], "0", 1
    )
    began = datetime.now(UTC)
    now = began.astimezone(ZoneInfo("Europe/Paris")).strftime("%Y-%m-%d %H:%M:%S")
    [changed, gone] = some_clients(clinic)
    clinic.ask("UPDATE PERSONNES SET PRENOM = 'Zoé', DT_MODIF = ? WHERE ID_PERS = ?", now, changed)
    clinic.ask("UPDATE PERSONNES SET ACTIF = 'N' WHERE ID_PERS = ?", gone)
    some = run("python sync.py", tmp_path, clinic.environment)
    whole = run("python sync.py --whole", tmp_path, clinic.environment)
    count = int(first.split()[0])
    assert some == f"1 of {count} clients came\n"
    assert whole == f"{count - 1} of {count - 1} clients came\n"
    kept = json.loads((tmp_path / "clients.json").read_text())["records"]
    since = began.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert sum(each["updatedAt"] >= since for each in kept.values()) == 1


def some_clients(clinic: Clinic) -> Any:
    condition = "GENRE_PERS = 'C' AND ACTIF = 'O'"
    return clinic.ask(f"SELECT MIN(ID_PERS), MAX(ID_PERS) FROM PERSONNES WHERE {condition}")


@pytest.fixture(scope="module")
def described(clinic: Clinic, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the document as the key sees it."""
    folder = tmp_path_factory.mktemp("described")
    [line] = lines("What to ask the clinic for")
    run(line, folder, clinic.environment)
    return folder


@pytest.mark.skipif(
    not (TOOLS / "openapi-python-client").exists(),
    reason="needs openapi-python-client, which requirements-dev.lock has: make installs it",
)
def test_a_generated_python_client_has_sound_types_and_books(
    clinic: Clinic, described: Path
) -> None:
    folder = described
    installs, generates = lines("Generated for Python")
    assert installs == "pip install openapi-python-client"
    said = run(generates, folder, {})
    assert said == "Generating clinic_client\n"
    for file in ("booking.py", "refusals.py"):
        shutil.copyfile(CLIENTS / "python" / file, folder / file)
    assert faults_of(folder) == []
    assert badly_named(folder) == []
    before = clinic.bookings()
    booked, seen = run("python refusals.py", folder, clinic.environment).splitlines()
    assert re.fullmatch(r"booked \S+ SCHEDULED", booked)
    assert json.loads(seen) == {
        "same": True,
        "replayed": "true",
        "conflict": [409, "Time slot conflict"],
        "notFound": [404, "Resource not found"],
        "wrong": [400, ["reason"]],
        "animal": True,
    }
    assert clinic.bookings() == before + 1


def faults_of(folder: Path) -> list[str]:
    """What mypy finds; `client.py` is the generator's own, whatever the document says."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "clinic_client",
         "booking.py", "refusals.py"],
        cwd=folder, env={**os.environ, "PYTHONPATH": ""}, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    *found, last = done.stdout.splitlines()
    assert re.match(r"Success|Found \d+ errors? in", last), done.stdout + done.stderr
    return [each for each in found if not each.startswith("clinic_client/client.py:")]


def badly_named(folder: Path) -> list[str]:
    """Models whose names the generator had to make up, as the document has none for them."""
    files = {each.stem for each in (folder / "clinic_client" / "models").glob("*.py")}
    assert files >= {"appointment_status", "client_record", "invoice_line", "stock_item"}
    return sorted(each for each in files if re.search(r"_\d+$|_type_\d|s_item$", each))


@pytest.fixture(scope="module")
def typescript(described: Path) -> Path:
    """All TypeScript of the page and of the tests, compiled together by the page's own lines."""
    node.install()
    folder = described
    (folder / "node_modules").symlink_to(node.FOLDER / "node_modules")
    [code], [options] = blocks("With TypeScript", "ts"), blocks("With TypeScript", "json")
    (folder / "quickstart.mts").write_text(code)
    (folder / "tsconfig.json").write_text(options)
    for file in ("booking.mts", "refusals.mts"):
        shutil.copyfile(node.FOLDER / file, folder / file)
    generates, compiles = [
        each for each in lines("Generated for TypeScript") if each.startswith("npx")
    ]
    assert compiles in lines("With TypeScript")
    said = run(generates, folder, {})
    assert "warn" not in said.lower()
    run(compiles, folder, {})
    return folder


def last_line(heading: str) -> str:
    return lines(heading)[-1]


def test_the_typescript_quick_start_books_once_though_an_answer_is_lost(
    clinic: Clinic, typescript: Path
) -> None:
    check_quick_start(clinic, last_line("With TypeScript"), typescript)


def test_a_generated_typescript_client_compiles_and_books(clinic: Clinic, typescript: Path) -> None:
    before = clinic.bookings()
    booked = run(last_line("Generated for TypeScript"), typescript, clinic.environment)
    made = re.fullmatch(r"booked (\S+) SCHEDULED\n", booked)
    assert made is not None
    given = {**clinic.environment, "APPOINTMENT": made[1]}
    assert json.loads(run("node built/refusals.mjs", typescript, given)) == {
        "status": "SCHEDULED",
        "conflict": [409, "Time slot conflict"],
        "notFound": [404, "Resource not found"],
        "wrong": [400, ["scheduledAt"]],
        "animal": True,
    }
    assert clinic.bookings() == before + 1
