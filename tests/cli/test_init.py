"""`clinic-gateway init`, answered as an operator would."""

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from adapters.doctor.sql.first_look import read_grants, write_grants
from adapters.mapping.loader import load_mapping
from adapters.sample import MAPPING
from gateway.backend import shapes
from gateway.cli import main
from tests.adapters.clinic import copy_to


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    copy_to(tmp_path, datetime.now(UTC).date())
    return tmp_path


def init(*answers: str) -> Result:
    return CliRunner().invoke(main, ["init"], input="".join(f"{each}\n" for each in answers))


@pytest.mark.long
def test_it_goes_from_a_database_to_a_key_and_resumes_where_it_stopped(folder: Path) -> None:
    begun = init("sqlite:///clinic.db", "Europe/Paris", "no")
    assert begun.exit_code == 1
    assert "$ clinic-gateway backend draft --zone Europe/Paris --output clinic.yaml" in begun.output
    assert "again: it goes on here" in begun.output
    configuration = folder / "gateway.yaml"
    assert stat.S_IMODE(configuration.stat().st_mode) == 0o600
    (folder / "clinic.yaml").write_text(MAPPING.read_text().replace("p.PRENOM", "p.NO_NAME"))
    stopped = init("yes")
    assert stopped.exit_code == 1
    assert "Go through clinic.yaml with the lines above" in stopped.output
    (folder / "clinic.yaml").write_text(MAPPING.read_text())  # as the integrator mends it
    again = init("yes", "Insurer", "CLIENT_READ APPOINTMENT_READ", "BASIC", "manager", "no")
    assert again.exit_code == 0, again.output
    assert "Address" not in again.output
    assert "clinic.yaml is there already." in again.output
    assert "rehearsed and undone" in again.output
    assert "nothing here would fail a partner" in again.output
    assert "\nvk_" in again.output
    assert "manager is added" in again.output
    assert "Serve it with: clinic-gateway serve" in again.output
    last = init("no")
    assert last.exit_code == 0, last.output
    assert "clinic.yaml was checked with this database, and has not changed since." in last.output
    assert "There are keys already" in last.output
    assert "Somebody can sign in already" in last.output
    (folder / "clinic.yaml").write_text(MAPPING.read_text() + "# changed\n")
    assert "$ clinic-gateway backend check --booking" in init("yes", "no").output


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (["oracle://db/clinic"], "begins with oracle, which is not known"),
        (["postgresql://gateway:word@db/clinic"], "leave the password out"),
        (["sqlite:///nowhere.db"], "does not exist"),
        ([], "Nobody answers"),
        (["sqlite:///clinic.db", "Europe/Nowhere"], "Europe/Nowhere: "),
    ],
)
def test_a_wrong_answer_is_told(answers: list[str], said: str) -> None:
    result = init(*answers)
    assert result.exit_code == 1
    assert said in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("own", "asked"),
    [("Europe/Lisbon", " [Europe/Lisbon]:"), ("UTC", ":"), ("Etc/UTC", ":")],
)
def test_the_zone_that_is_offered_is_the_machines_own(
    monkeypatch: pytest.MonkeyPatch, own: str, asked: str
) -> None:
    drafted = list[str]()
    monkeypatch.setattr("gateway.cli.init.own_zone", lambda: own)
    monkeypatch.setattr("gateway.cli.init.Guide._typed", lambda _, *words: drafted.extend(words))
    result = init("sqlite:///clinic.db", "")
    assert f"The clock on the clinic's wall, such as Europe/Paris{asked}\n" in result.output
    assert drafted[2:4] == (["--zone", "Europe/Lisbon"] if own == "Europe/Lisbon" else [])


async def test_the_rights_are_those_that_the_mapping_needs(tmp_path: Path) -> None:
    text = MAPPING.read_text().replace("insert: RDV\n", "insert: Appointment-Book\n")
    (tmp_path / "clinic.yaml").write_text(text)
    mapping, _ = load_mapping(tmp_path / "clinic.yaml", shapes(), "sql")
    for url, reads, writes in (
        ("sqlite:///clinic.db", [], []),
        (
            "mysql://gate@db/practice",
            ["GRANT SELECT ON practice.* TO gate;"],
            [
                "GRANT UPDATE ON practice.`COMPTEURS` TO gate;",
                "GRANT INSERT ON practice.`Appointment-Book` TO gate;",
                "GRANT INSERT ON practice.`RDV_JOURNAL` TO gate;",
            ],
        ),
        (
            "postgresql://gate@db/practice",
            [
                "GRANT USAGE ON SCHEMA public TO gate;",
                "GRANT SELECT ON ALL TABLES IN SCHEMA public TO gate;",
            ],
            [
                'GRANT UPDATE ON "COMPTEURS" TO gate;',
                'GRANT INSERT ON "Appointment-Book" TO gate;',
                'GRANT INSERT ON "RDV_JOURNAL" TO gate;',
            ],
        ),
        (
            "firebird://gate@db//practice.fdb",
            ["GRANT SELECT ON TABLE_NAME TO gate;  -- for each table that is read"],
            [
                'GRANT UPDATE ON "COMPTEURS" TO gate;',
                'GRANT INSERT ON "Appointment-Book" TO gate;',
                'GRANT INSERT ON "RDV_JOURNAL" TO gate;',
                "GRANT UPDATE ON PERSONNES TO gate;",  # a booking locks the row of its vet
            ],
        ),
    ):
        assert await read_grants(url) == reads
        assert await write_grants(url, mapping) == writes
    # so it does where the mapping's own lock is of schedules, and a vet may have none
    booking = mapping.booking.model_copy(update={"lock": "UPDATE S SET N = N WHERE N = :schedule"})
    locking = mapping.model_copy(update={"booking": booking})
    assert await write_grants(url, locking) == writes
