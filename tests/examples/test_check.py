"""`clinic-gateway backend check` finds nothing in the examples that would fail a partner."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from examples.launch import Example
from examples.mariadb_eav.__main__ import EXAMPLE as MARIADB
from examples.postgres_slots.__main__ import EXAMPLE as POSTGRES
from gateway.cli import main
from tests.examples.clinic import made


@pytest.mark.parametrize(("example", "kind"), [(MARIADB, "mysql"), (POSTGRES, "postgresql")])
def test_an_example_is_green_and_a_booking_is_rehearsed(
    example: Example, kind: str, tmp_path: Path
) -> None:
    with made(example, kind, tmp_path / "state") as clinic:
        configuration = str(clinic.folder / "gateway.yaml")
        command = ["backend", "check", "--booking", "--json", "--config", configuration]
        result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [each for each in found if each["verdict"] == "failed"] == []
    [rehearsed] = [each for each in found if each["subject"] == "rehearsal"]
    assert "undone" in rehearsed["text"]
