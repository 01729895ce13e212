"""What a practice system has and no field is made of is named; what gets out never is."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.base import AdapterOptions
from adapters.doctor import rest, sql
from adapters.examination import Survey
from adapters.rest.adapter import RestAdapter
from adapters.sample import MAPPING
from adapters.sql.adapter import SqlAdapter
from gateway.backend import shapes
from tests.adapters.clinic import copy_to
from tests.adapters.rest.cloud import connect, replaced


async def survey_of(folder: Path, mapping: str, *statements: str) -> Survey:
    database = copy_to(folder, datetime.now(UTC).date())
    with sqlite3.connect(database) as connection:
        for each in statements:
            connection.execute(each)
    connection.close()
    (folder / "mine.yaml").write_text(mapping)
    adapter = SqlAdapter(
        AdapterOptions(
            url=f"sqlite:///{database}",
            mapping=folder / "mine.yaml",
            secret=bytes(32),
            shapes=shapes(),
            report=lambda trouble: None,
        )
    )
    try:
        return await sql.survey(adapter)
    finally:
        await adapter.aclose()


async def left_out(folder: Path, mapping: str, *statements: str) -> dict[str, list[str]]:
    return by_source(await survey_of(folder, mapping, *statements))


def by_source(survey: Survey) -> dict[str, list[str]]:
    """The names that are left out, by the table, or by the resource of the records."""
    told = [each.text.partition(" has what no field is made of") for each in survey.left_out]
    sources = [source.rpartition(" ")[2] for source, _, _ in told]
    return dict(
        zip(sources, (rest.partition(": ")[2].split(", ") for *_, rest in told), strict=True)
    )


async def test_a_column_that_no_field_is_made_of_is_named(tmp_path: Path) -> None:
    found = await left_out(tmp_path, MAPPING.read_text())
    assert "NOTES_INTERNES" in found["CONSULTATIONS"]
    assert "ACTIF" in found["PERSONNES"]
    assert "ADRESSE1" not in found["PERSONNES"]


async def test_a_new_column_is_told_once_it_is_there_and_not_once_it_is_mapped(
    tmp_path: Path,
) -> None:
    column = "ALTER TABLE PERSONNES ADD COLUMN DIAGNOSIS TEXT"
    text = MAPPING.read_text()
    assert "DIAGNOSIS" in (await left_out(tmp_path, text, column))["PERSONNES"]
    mapped = text.replace("firstName: p.PRENOM", "firstName: p.PRENOM || p.diagnosis")
    assert mapped != text
    (tmp_path / "clinic.db").unlink()
    assert "DIAGNOSIS" not in (await left_out(tmp_path, mapped, column))["PERSONNES"]


async def test_a_column_of_the_same_name_in_another_table_is_not_taken_for_it(
    tmp_path: Path,
) -> None:
    column = "ALTER TABLE CONSULTATIONS ADD COLUMN PRENOM TEXT"
    assert "PRENOM" in (await left_out(tmp_path, MAPPING.read_text(), column))["CONSULTATIONS"]


async def test_tables_that_the_mapping_does_not_name_are_not_told(tmp_path: Path) -> None:
    table = "CREATE TABLE SALAIRES (MONTANT TEXT)"
    assert "SALAIRES" not in await left_out(tmp_path, MAPPING.read_text(), table)


async def test_what_a_sub_select_in_the_rows_makes_is_not_told(tmp_path: Path) -> None:
    found = await left_out(tmp_path, MAPPING.read_text())
    assert "QTE" not in found.get("LOTS", ())


async def test_what_the_mapping_fills_is_told(tmp_path: Path) -> None:
    filled = (await survey_of(tmp_path, MAPPING.read_text())).filled
    assert {"id", "phone", "address"} <= filled["clients"]
    assert {"lines[].id", "lines[].unitPrice"} <= filled["invoices"]
    (tmp_path / "clinic.db").unlink()
    text = MAPPING.read_text().replace("      reason: ", "      # reason: ")
    assert "reason" not in (await survey_of(tmp_path, text)).filled["appointments"]


async def test_each_has_its_line_in_the_mapping(tmp_path: Path) -> None:
    text = MAPPING.read_text()
    found = (await survey_of(tmp_path, text)).left_out
    [clients] = [each for each in found if each.text.startswith("the table PERSONNES ")]
    assert text.splitlines()[clients.line - 1].strip() == "from: PERSONNES p"


@pytest.mark.parametrize(
    ("table", "line"),
    [("RDV", "from: RDV r"), ("LIGNES_FACT", "from: LIGNES_FACT l"), ("LOTS", "from: >-")],
)
async def test_a_table_is_told_where_its_own_rows_are_read(
    tmp_path: Path, table: str, line: str
) -> None:
    text = MAPPING.read_text()
    column = f"ALTER TABLE {table} ADD COLUMN NEW TEXT"
    found = (await survey_of(tmp_path, text, column)).left_out
    [told] = [each for each in found if each.text.startswith(f"the table {table} ")]
    assert text.splitlines()[told.line - 1].strip() == line


async def members_left_out(adapter: RestAdapter) -> dict[str, list[str]]:
    return by_source(await rest.survey(adapter))


async def test_a_member_that_no_field_is_made_of_is_named(adapter: RestAdapter) -> None:
    found = await members_left_out(adapter)
    assert "archived" in found["clients"]
    for path in ("href", "name", "name.first", "mail", "phones", "address", "address.street"):
        assert path not in found["clients"]


async def test_a_member_is_named_once_nothing_reads_it_any_more(url: str, tmp_path: Path) -> None:
    change = replaced(("      email: mail\n", ""))
    adapter = connect(url, tmp_path, change)
    assert "mail" in (await members_left_out(adapter))["clients"]
    filled = (await rest.survey(adapter)).filled["clients"]
    assert "email" not in filled
    assert "lastName" in filled
    await adapter.aclose()


async def test_the_names_in_an_expression_count_as_read(url: str, tmp_path: Path) -> None:
    change = replaced(
        ("      firstName: name.first\n", "      firstName: name.first || archived\n")
    )
    adapter = connect(url, tmp_path, change)
    assert "archived" not in (await members_left_out(adapter)).get("clients", ())
    await adapter.aclose()
