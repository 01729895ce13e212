"""`clinic-gateway backend learn booking`, as an integrator runs it."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from gateway.cli import main
from tests.conftest import Template


@pytest.fixture
def folder(template: Template, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template.folder, tmp_path / "state"))


@pytest.fixture
def keys(folder: Path) -> list[str]:
    """Appointments that the desk made as its program does."""
    with closing(sqlite3.connect(folder / "clinic.db")) as desk, desk:
        rows = desk.execute(
            "SELECT ID_RDV FROM RDV WHERE REF_EXT IS NULL AND STATUT = 'P' AND ID_TYPE IS NOT NULL"
            " ORDER BY ID_RDV DESC LIMIT 3"
        )
        return [str(key) for (key,) in rows]


def learn(folder: Path, *words: str) -> Result:
    config = ("--config", str(folder / "gateway.yaml"))
    return CliRunner().invoke(main, ["backend", "learn", "booking", *words, *config])


def named(keys: list[str]) -> list[str]:
    return [word for key in keys for word in ("--appointment", key)]


def test_the_booking_of_the_named_appointments_is_printed(folder: Path, keys: list[str]) -> None:
    result = learn(folder, *named(keys))
    assert (result.exit_code, result.stderr) == (0, "")
    booking = yaml.safe_load(result.stdout)["booking"]
    values = next(step["values"] for step in booking["steps"] if step.get("insert") == "RDV")
    assert values["ID_ANIMAL"] == {"draft": "patientId"}
    assert values["D_DEBUT"] == {"draft": "scheduledAt"}
    data = json.loads(learn(folder, *named(keys), "--json").stdout)
    assert (data["appointments"], data["yaml"]) == (keys, result.stdout)


def test_the_newest_are_learnt_without_names(folder: Path) -> None:
    result = learn(folder, "--newest", "4")
    assert result.exit_code == 0, result.output
    assert "Learnt from 4 appointments" in result.stdout


def test_it_goes_into_a_new_file_and_into_no_other(folder: Path, keys: list[str]) -> None:
    output = folder / "booking.yaml"
    assert learn(folder, *named(keys), "--output", str(output)).exit_code == 0
    text = output.read_text()
    assert yaml.safe_load(text)["booking"]["steps"]
    again = learn(folder, "--output", str(output))
    assert (again.exit_code, output.read_text()) == (1, text)
    assert "exists already; name a new file with --output" in again.stderr


def test_an_unknown_key_is_refused(folder: Path) -> None:
    result = learn(folder, "--appointment", "99999999")
    assert result.exit_code == 1
    assert "no appointment has the key 99999999" in result.stderr
    assert "the newest are" in result.stderr
