"""`clinic-gateway backend verify`, as a practice manager's file meets it."""

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner, Result

from adapters.doctor import verification
from adapters.sample import MAPPING
from gateway.cli import main
from tests.conftest import Template

ABSENT = "('A', 'N')"
TODAY = datetime.now(ZoneInfo("Europe/Paris")).date()


@pytest.fixture
def folder(template: Template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(template.folder, tmp_path / "state"))


def run(folder: Path, *words: str) -> Result:
    config = ("--config", str(folder / "gateway.yaml"))
    return CliRunner().invoke(main, ["backend", "verify", *words, *config])


def verify(folder: Path, text: str) -> Result:
    Path("figures.yaml").write_text(text)
    return run(folder, "figures.yaml")


def told(folder: Path, text: str) -> dict[str, Any]:
    Path("figures.yaml").write_text(text)
    result = run(folder, "figures.yaml", "--json")
    assert result.exit_code in (0, 1), result.output
    return {each["figure"]: each for each in json.loads(result.stdout)}


def all_of(folder: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(folder / "clinic.db")) as connection:
        return connection.execute(statement).fetchall()


def one(folder: Path, statement: str) -> Any:
    return all_of(folder, statement)[0][0]


def change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "clinic.db")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def counts(folder: Path) -> str:
    """What the practice's own screens would say, read from its tables."""
    clients = "SELECT COUNT(*) FROM PERSONNES WHERE GENRE_PERS = 'C' AND ACTIF = 'O'"
    cats = (
        "SELECT COUNT(*) FROM ANIMAUX a JOIN ESPECES e USING (CODE_ESP)"
        " WHERE SUPPRIME = 0 AND e.LIBELLE = 'Chat'"
    )
    paid = "SELECT COUNT(*) FROM FACTURES WHERE ETAT = 'S'"
    vets = all_of(
        folder,
        "SELECT TRIM(COALESCE(CIVILITE, '') || ' ' || TRIM(PRENOM) || ' ' || TRIM(NOM))"
        " FROM PERSONNES WHERE GENRE_PERS = 'V' AND ACTIF = 'O'",
    )
    number, total = all_of(folder, "SELECT NUMERO, TOTAL_TTC FROM FACTURES WHERE ID_FACT = 2")[0]
    return f"""\
clients: {one(folder, clients)}
patients:
  species: {{chat: {one(folder, cats)}}}
vets: [{", ".join(name for (name,) in vets)}]
invoices:
  total: {one(folder, "SELECT COUNT(*) FROM FACTURES")}
  status: {{PAID: {one(folder, paid)}}}
  list:
    - {{number: {number}, total: "{total}", balance: 0}}
"""


def test_figures_that_agree_are_a_line_each_and_exit_0(folder: Path) -> None:
    result = verify(folder, counts(folder))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.count("agrees ") == 7
    assert result.stdout.splitlines()[-1] == "7 agree, 0 differ"


def test_a_figure_that_differs_says_both_numbers_at_its_line(folder: Path) -> None:
    right = counts(folder)
    clients = right.split()[1]
    change(folder, "UPDATE PERSONNES SET ACTIF = 'N' WHERE ID_PERS = 1")
    result = verify(folder, right)
    assert result.exit_code == 1
    served = int(clients) - 1
    assert f"figures.yaml:1:10: served {served}, the file says {clients}" in result.stdout
    assert result.stdout.splitlines()[-1] == "6 agree, 1 differ"


def test_lists_say_what_is_missing_and_what_is_too_many(folder: Path) -> None:
    names = [row[0] for row in all_of(folder, "SELECT LIBELLE FROM TYPES_RDV WHERE ACTIF = 'O'")]
    written = ", ".join(["Magic", *(name.upper() for name in names[1:])])
    figure = told(folder, f"types: [{written}]\n")["types: names"]
    assert figure["outcome"] == "differs"
    assert figure["missing"] == ["Magic"]
    assert figure["surplus"] == [names[0]]
    assert figure["place"] == "figures.yaml:1:8"


def test_what_is_low_is_counted_and_some_of_it_named(folder: Path) -> None:
    low = one(
        folder,
        "SELECT COUNT(*) FROM ARTICLES a WHERE ACTIF = 'O' AND COALESCE((SELECT SUM(CAST(REPLACE("
        "l.QTE, ',', '.') AS REAL)) FROM LOTS l WHERE l.ID_ART = a.ID_ART), 0) <= (SELECT CAST("
        "REPLACE(x.VALEUR, ',', '.') AS REAL) FROM CHAMPS_SUPPL x WHERE x.TABLE_NOM = 'ARTICLES'"
        " AND x.ID_FICHE = a.ID_ART AND x.CHAMP = 'SEUIL')",
    )
    figures = told(folder, f"stock: {{low: {low}, low_names: [No such thing]}}\n")
    assert figures["stock: low"]["outcome"] == "agrees"
    assert figures["stock: low_names"]["missing"] == ["No such thing"]
    assert figures["stock: low_names"]["surplus"] == []


def busy_day(folder: Path) -> tuple[str, int, list[tuple[str, str]]]:
    """A day and a vet who has several appointments then, and these: the time and the animal."""
    day, vet, _ = all_of(
        folder,
        f"SELECT SUBSTR(D_DEBUT, 1, 10), ID_VETO, COUNT(*) FROM RDV WHERE ID_VETO IS NOT NULL"
        f" AND COALESCE(STATUT, 'P') NOT IN {ABSENT} AND D_DEBUT > DATE('now', '-60 days')"
        " AND ID_VETO IN (SELECT ID_PERS FROM PERSONNES WHERE ACTIF = 'O') GROUP BY 1, 2"
        " ORDER BY 3 DESC LIMIT 1",
    )[0]
    rows = all_of(
        folder,
        "SELECT SUBSTR(D_DEBUT, 12, 5), a.NOM FROM RDV r JOIN ANIMAUX a USING (ID_ANIMAL)"
        f" WHERE D_DEBUT LIKE '{day}%' AND ID_VETO = {vet}"
        f" AND COALESCE(STATUT, 'P') NOT IN {ABSENT} ORDER BY 1",
    )
    return day, vet, rows


def test_the_diary_of_a_vet_on_a_day_is_compared_entry_by_entry(folder: Path) -> None:
    day, vet, rows = busy_day(folder)
    name = one(folder, f"SELECT TRIM(NOM) FROM PERSONNES WHERE ID_PERS = {vet}")
    change(folder, "UPDATE ANIMAUX SET SUPPRIME = 0")
    entries = [f"{at.lstrip('0')} {animal.lower()}" for at, animal in rows]

    def file(entries: list[str]) -> str:
        listed = "".join(f"      - {entry}\n" for entry in entries)
        return f"diary:\n  - vet: {name}\n    day: {day}\n    appointments:\n{listed}" + (
            f"appointments:\n  - {{day: {day}, vet: {name}, total: {len(rows)}}}\n"
        )

    assert verify(folder, file(entries)).exit_code == 0
    wrong = told(folder, file(["07:00 Nobody", *entries[1:]]))
    figure = wrong[f"diary of {name} on {day}: appointments"]
    assert figure["missing"] == ["07:00 Nobody"]
    [surplus] = figure["surplus"]
    assert surplus.startswith(f"{rows[0][0]} {rows[0][1]}")
    assert wrong[f"appointments on {day}, {name}"]["outcome"] == "agrees"


def test_free_times_are_those_that_a_partner_is_offered(folder: Path) -> None:
    vet = one(folder, "SELECT MIN(ID_PERS) FROM PERSONNES WHERE GENRE_PERS = 'V' AND ACTIF = 'O'")
    name = one(folder, f"SELECT TRIM(NOM) FROM PERSONNES WHERE ID_PERS = {vet}")
    days = [TODAY + timedelta(days=ahead) for ahead in range(1, 9)]
    served: list[str] = []
    for day in days:
        text = f"diary: [{{vet: {name}, day: {day}, free: []}}]\n"
        figure = told(folder, text)[f"diary of {name} on {day}: free"]
        if served := figure["surplus"]:
            break
    assert served
    right = f"diary: [{{vet: {name}, day: {day}, free: [{', '.join(served)}]}}]\n"
    assert verify(folder, right).exit_code == 0
    fewer = right.replace(f"[{served[0]}, ", "[03:00, ")
    figure = told(folder, fewer)[f"diary of {name} on {day}: free"]
    assert (figure["missing"], figure["surplus"]) == (["03:00"], [served[0]])
    yesterday = TODAY - timedelta(days=1)
    past = told(folder, f"diary: [{{vet: {name}, day: {yesterday}, free: []}}]\n")
    [figure] = past.values()
    assert figure["outcome"] == "not seen"
    assert "days to come alone" in figure["text"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "diary: [{vet: Nobody, day: 2026-01-07, free: []}]\n",
            "Nobody is the name of no vet: Dr ",
        ),
        ("appointments: [{day: 2026-01-07, vet: Dr, total: 1}]\n", "Dr fits several vets: Dr "),
    ],
)
def test_what_could_not_be_looked_at_is_red(folder: Path, text: str, said: str) -> None:
    change(folder, "UPDATE PERSONNES SET CIVILITE = 'Dr' WHERE GENRE_PERS = 'V'")
    # a day to come is looked at, so that the vet's name is all that is wrong
    result = verify(folder, text.replace("2026-01-07", str(TODAY + timedelta(days=7))))
    assert result.exit_code == 1
    assert said in " ".join(result.stdout.split())
    assert "1 could not be looked at" in result.stdout


def test_more_records_than_are_gone_through_are_not_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "MOST", 200)
    [figure] = told(folder, "clients: 200\n").values()
    assert figure["outcome"] == "not seen"
    assert figure["text"].endswith(": 200 clients were gone through, and there are more")
    assert run(folder, "figures.yaml").exit_code == 1


def test_rows_without_an_id_are_told_beside_the_total(folder: Path) -> None:
    clients = one(folder, "SELECT COUNT(*) FROM PERSONNES WHERE GENRE_PERS = 'C' AND ACTIF = 'O'")
    mapping = MAPPING.read_text().replace("key: p.ID_PERS", "key: NULLIF(p.ID_PERS, 1)", 1)
    (folder / "mapping.yaml").write_text(mapping)
    configuration = folder / "gateway.yaml"
    configuration.write_text(configuration.read_text().replace(str(MAPPING), "mapping.yaml"))
    [figure] = told(folder, f"clients: {clients}\n").values()
    assert figure["served"] == clients - 1
    assert figure["text"].endswith("; 1 row has no usable id, so no partner is served them")


def test_a_part_that_the_mapping_leaves_out_is_red(folder: Path) -> None:
    text = MAPPING.read_text()
    stock = text[text.index("  stock:") : text.index("  appointmentTypes:")]
    (folder / "mapping.yaml").write_text(text.replace(stock, ""))
    configuration = folder / "gateway.yaml"
    configuration.write_text(configuration.read_text().replace(str(MAPPING), "mapping.yaml"))
    [figure] = told(folder, "stock: 3\n").values()
    assert figure["outcome"] == "not seen"
    assert "stock is not in the mapping" in figure["text"]


def test_all_mistakes_of_a_file_are_said_at_once_each_at_its_place(folder: Path) -> None:
    text = """\
clients: many
pateints: 3
patients: {status: {ACTIV: 3}}
stock: {low: -1}
invoices:
  list:
    - {number: 0815, total: 1}
    - {number: F-1, total: abc}
    - {number: F-2}
    - {number: F-3, status: PAYED}
diary:
  - vet: Dr X
    day: 2026-13-01
    appointments: [9h30 Rex]
  - {vet: A, day: 2026-12-01}
"""
    result = verify(folder, text)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        f"figures.yaml:{said}"
        for said in (
            "1:10: clients: must be a group of names and values",
            "2:1: pateints is not known here (did you mean patients?)",
            "3:21: ACTIV is no value of status (did you mean ACTIVE?)",
            "4:14: low: must be greater than or equal to 0",
            "7:16: number: must be a text: put it in quotes",
            "8:28: total: must be an amount such as 123.40",
            "9:7: list: says nothing of it: write its total, balance or status",
            "10:29: PAYED is no value of status (did you mean PAID?)",
            "13:10: day: must be a day such as 2026-12-01",
            "14:20: appointments: must begin with a time, such as 09:00 Rex",
            "15:5: diary: says nothing of that day: write appointments or free"
            " (an empty list is [])",
        )
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}\n", "names no figure"),
        ("- 3\n", "must be a group of names and values"),
        ("clients: {}\n", "names no figure"),
        ("vets: *x\n", "an alias"),
    ],
)
def test_a_file_without_figures_is_no_agreement(folder: Path, text: str, said: str) -> None:
    result = verify(folder, text)
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stdout == ""


def test_the_example_is_a_file_that_can_be_used(folder: Path) -> None:
    printed = run(folder, "--example")
    assert printed.exit_code == 0
    result = verify(folder, printed.stdout)
    assert result.exit_code == 1
    assert result.stderr == ""
    assert "differ" in result.stdout.splitlines()[-1]
    assert run(folder).exit_code == 2
    missing = run(folder, "none.yaml")
    assert (missing.exit_code, missing.stderr) == (
        1,
        "none.yaml: cannot be read: no such file or directory\n",
    )
