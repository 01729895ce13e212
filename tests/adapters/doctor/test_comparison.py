"""A record beside its row: what it is named by, how each field came about, and what hides it."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path

import pytest

from adapters.base import Query
from adapters.doctor import doctor_of
from adapters.doctor.comparison import (
    Comparison,
    Finder,
    Several,
    Unfound,
    compared,
    finder_of,
)
from adapters.doctor.conditions import split_at
from adapters.doctor.trail import Trail
from adapters.mapped.adapter import MappedAdapter
from adapters.sample import MAPPING
from adapters.sql.adapter import SqlAdapter
from examples.json_cloud.backend import PASSWORD, Cloud
from tests.adapters.clinic import NOW, connect
from tests.adapters.rest.cloud import connect as connect_cloud
from tests.adapters.rest.cloud import replaced
from tests.adapters.shelf import Shelf
from tests.adapters.small_practice import small_practice, small_server
from tests.adapters.waits import PATIENT

EVERY = (
    *("clients", "patients", "appointments", "consultations", "invoices", "stock"),
    *("appointmentTypes", "vets"),
)


def run(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def one(database: Path, statement: str) -> str:
    with closing(sqlite3.connect(database)) as connection:
        return str(connection.execute(statement).fetchone()[0])


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@asynccontextmanager
async def finding(adapter: MappedAdapter) -> AsyncIterator[Finder]:
    async with aclosing(adapter):
        made = finder_of(adapter)  # type: ignore[arg-type]  # both kinds are adapters
        assert made is not None
        async with aclosing(made.adapter):
            yield made


@pytest.fixture
async def finder(database: Path) -> AsyncIterator[Finder]:
    async with finding(connect(database)) as made:
        yield made


@pytest.fixture
async def cloud_finder(url: str, tmp_path: Path) -> AsyncIterator[Finder]:
    async with finding(connect_cloud(url, tmp_path, ids=Shelf())) as made:
        yield made


async def test_an_adapter_that_is_derived_of_a_mapped_one_is_compared_as_such(
    database: Path,
) -> None:
    adapter = connect(database)
    adapter.__class__ = type("Derived", (SqlAdapter,), {"__module__": "clinic_x"})
    async with finding(adapter) as made:
        assert isinstance(made, Finder)
        assert doctor_of(adapter) is not None


def trail(found: Comparison, field: str) -> Trail:
    return next(each for each in found.fields if each.field == field)


async def is_beside_its_row(finder: Finder, resource: str) -> None:
    page = await finder.adapter.read_many(_query(resource))
    served = page.records[0]
    found = await compared(finder, resource, served["id"], NOW)
    assert found.record == await finder.adapter.read_one(_query(resource, served["id"]))
    assert found.unserved == ""
    assert {each.field: each.value for each in found.fields if "[" not in each.field} == {
        name: value for name, value in found.record.items() if not _is_list(value)
    }
    again = await compared(finder, resource, str(found.key), NOW)
    assert again.id == served["id"]
    mapped = [each for each in found.fields if each.source]
    file = finder.adapter.document.file
    assert all(each.place.startswith(f"{file}:") and each.converter for each in mapped)
    assert found.row
    assert found.asked


@pytest.mark.parametrize("resource", EVERY)
async def test_a_record_of_each_resource_is_beside_its_row_by_its_own_key(
    finder: Finder, resource: str
) -> None:
    await is_beside_its_row(finder, resource)


@pytest.mark.parametrize("resource", EVERY)
async def test_a_json_record_of_each_resource_is_beside_its_row_too(
    cloud_finder: Finder, resource: str
) -> None:
    await is_beside_its_row(cloud_finder, resource)


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
async def test_so_is_one_on_a_server_and_a_hidden_one_and_one_that_is_not_there(
    kind: str, tmp_path: Path
) -> None:
    with small_server(kind, tmp_path) as made:
        async with small_practice(made, tmp_path, PATIENT) as practice:
            adapter = practice.open()
            assert isinstance(adapter, MappedAdapter)
            async with finding(adapter) as finder:
                for resource in EVERY:
                    await is_beside_its_row(finder, resource)
                with pytest.raises(Unfound, match="has the key 987654"):
                    await compared(finder, "clients", "987654", NOW)
                with pytest.raises(Unfound, match="has the key nobody-at-all"):
                    await compared(finder, "clients", "nobody-at-all", NOW)


def _query(resource: str, public_id: str = "") -> Query:
    return Query(resource=resource, now=NOW, id=public_id, limit=3)


def _is_list(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


async def test_a_code_its_line_and_what_a_reference_leads_to_are_told(
    finder: Finder, database: Path
) -> None:
    text = MAPPING.read_text()
    key = one(database, "SELECT ID_RDV FROM RDV WHERE STATUT = 'T' AND ID_VETO IS NOT NULL LIMIT 1")
    found = await compared(finder, "appointments", key, NOW)
    status = trail(found, "status")
    line = line_of(text, "        source: COALESCE(r.STATUT, 'P')")
    assert (status.raw, status.value, status.note) == ("T", "COMPLETED", "code T: COMPLETED")
    assert status.place == f"{MAPPING}:{line}:9"
    assert status.source == "COALESCE(r.STATUT, 'P')"
    vet = trail(found, "vetId")
    name = one(
        database,
        "SELECT TRIM(NOM) FROM PERSONNES WHERE ID_PERS ="
        f" (SELECT ID_VETO FROM RDV WHERE ID_RDV = {key})",
    )
    assert name in vet.leads
    assert found.row["ID_RDV"] == int(key)


async def test_an_unknown_code_and_what_cannot_be_read_are_null_and_say_why(
    finder: Finder, database: Path
) -> None:
    run(database, "UPDATE RDV SET STATUT = 'X', D_FIN = 'soon', URGENT = '?' WHERE ID_RDV = 3")
    found = await compared(finder, "appointments", "3", NOW)
    assert found.record is not None
    assert [trail(found, name).value for name in ("status", "endTime")] == [None, None]
    assert trail(found, "status").note == "null: its codes do not name it (unknown code)"
    assert trail(found, "status").raw == "X"
    assert trail(found, "endTime").note == "null: it cannot be read (unreadable)"
    assert trail(found, "endTime").raw == "soon"


async def test_lines_and_payments_of_an_invoice_have_each_their_trail(
    finder: Finder, database: Path
) -> None:
    number = one(database, "SELECT NUMERO FROM FACTURES WHERE ID_FACT = 2")
    found = await compared(finder, "invoices", number, NOW)
    assert (found.key, found.name) == (2, number)
    assert found.record is not None
    for position, line in enumerate(found.record["lines"]):
        for name, value in line.items():
            assert trail(found, f"lines[{position}].{name}").value == value
    rate = trail(found, "lines[0].taxRate")
    assert (rate.path, rate.source) == ("lines[].taxRate", "l.TAUX_TVA")
    assert len([each for each in found.asked if "\nFROM LIGNES_FACT l" in each]) == 1


async def test_a_row_that_where_hides_is_said_with_the_condition_that_hides_it(
    finder: Finder, database: Path
) -> None:
    key = one(database, "SELECT ID_PERS FROM PERSONNES WHERE ACTIF <> 'O' AND GENRE_PERS = 'C'")
    found = await compared(finder, "clients", key, NOW)
    line = line_of(MAPPING.read_text(), "where: p.GENRE_PERS = 'C'")
    assert found.record is None
    assert found.unserved == f"`where` hides it ({MAPPING}:{line}:12): p.ACTIF = 'O' does not hold"
    assert trail(found, "lastName").value
    by_id = await compared(finder, "clients", found.id, NOW)
    assert by_id.unserved == found.unserved
    vet = one(database, "SELECT ID_PERS FROM PERSONNES WHERE GENRE_PERS = 'V' AND ACTIF = 'O'")
    other = await compared(finder, "clients", vet, NOW)
    assert other.unserved.endswith("p.GENRE_PERS = 'C' does not hold")


async def test_the_clinics_clock_in_a_condition_is_known_when_it_hides_a_row(
    database: Path,
) -> None:
    where = "where: p.GENRE_PERS = 'C' AND p.ACTIF = 'O'"
    text = MAPPING.read_text()
    assert where in text
    mapping = text.replace(where, "where: '{living}'").replace(
        "resources:\n",
        "expressions:\n  living: p.GENRE_PERS = 'C' AND p.DT_CREATION < :now\nresources:\n",
        1,
    )
    run(database, "UPDATE PERSONNES SET DT_CREATION = '2990-01-01 00:00:00' WHERE ID_PERS = 1")
    async with finding(connect(database, mapping=mapping)) as finder:
        served = await compared(finder, "clients", "12", NOW)
        hidden = await compared(finder, "clients", "1", NOW)
    assert served.record is not None
    assert served.row
    assert hidden.unserved.endswith("p.DT_CREATION < :now does not hold")


async def test_a_reference_that_leads_nowhere_or_to_a_hidden_record_says_so(
    finder: Finder, database: Path
) -> None:
    hidden = one(database, "SELECT ID_ANIMAL FROM ANIMAUX WHERE SUPPRIME = 1")
    run(
        database,
        f"UPDATE RDV SET ID_ANIMAL = {hidden}, ID_VETO = 999999 WHERE ID_RDV = 3",
    )
    found = await compared(finder, "appointments", "3", NOW)
    assert trail(found, "vetId").leads == "leads nowhere: no row of vets has that key"
    animal = trail(found, "patientId").leads
    assert animal.startswith("leads to a hidden record of patients: `where` hides it (")
    assert animal.endswith("a.SUPPRIME = 0 does not hold")


async def test_a_row_that_a_join_leaves_out_is_said_as_such(database: Path) -> None:
    mapping = MAPPING.read_text().replace(
        "from: ANIMAUX a LEFT JOIN ESPECES e", "from: ANIMAUX a JOIN ESPECES e"
    )
    key = one(database, "SELECT ID_ANIMAL FROM ANIMAUX WHERE SUPPRIME = 0")
    run(database, f"UPDATE ANIMAUX SET CODE_ESP = 'NONE' WHERE ID_ANIMAL = {key}")
    async with finding(connect(database, mapping=mapping)) as finder:
        with pytest.raises(Unfound, match="a join of `from` leaves it out"):
            await compared(finder, "patients", key, NOW)


async def test_words_find_one_record_or_list_several(finder: Finder, database: Path) -> None:
    run(database, "UPDATE PERSONNES SET NOM = 'Quartzberg', PRENOM = 'Ada' WHERE ID_PERS = 12")
    assert (await compared(finder, "clients", "ada quartz", NOW)).key == 12
    run(database, "UPDATE PERSONNES SET NOM = 'Quartzberg', PRENOM = 'Bo' WHERE ID_PERS = 1")
    with pytest.raises(Several, match="choose one by its id") as several:
        await compared(finder, "clients", "quartz", NOW)
    assert sorted(name for _, name in several.value.matches) == ["Ada Quartzberg", "Bo Quartzberg"]
    # the whole name of one of them is meant
    assert (await compared(finder, "clients", "Bo Quartzberg", NOW)).key == 1


async def test_a_number_that_is_a_key_and_the_name_of_another_is_asked_about(
    finder: Finder, database: Path
) -> None:
    run(database, "UPDATE FACTURES SET NUMERO = '2' WHERE ID_FACT = 3")
    with pytest.raises(Several) as several:
        await compared(finder, "invoices", "2", NOW)
    assert len(several.value.matches) == 2
    assert several.value.matches[0][1] == "has the key 2"


async def test_appointments_are_found_by_the_name_of_their_animal(
    finder: Finder, database: Path
) -> None:
    animal = one(database, "SELECT ID_ANIMAL FROM RDV WHERE ID_RDV = 3")
    run(database, f"UPDATE ANIMAUX SET NOM = 'Zyxwvut' WHERE ID_ANIMAL = {animal}")
    run(database, f"DELETE FROM RDV WHERE ID_ANIMAL = {animal} AND ID_RDV <> 3")
    assert (await compared(finder, "appointments", "zyxw", NOW)).key == 3


async def test_what_names_nothing_says_why(finder: Finder) -> None:
    vet = (await finder.adapter.read_many(_query("vets"))).records[0]["id"]
    with pytest.raises(Unfound, match="is an id of vets, not of clients"):
        await compared(finder, "clients", vet, NOW)
    with pytest.raises(Unfound, match="no record of clients has the key 987654"):
        await compared(finder, "clients", "987654", NOW)
    nobodys = "00000000-0000-8000-8000-000000000000"
    with pytest.raises(Unfound, match="no row of clients has that id"):
        await compared(finder, "clients", nobodys, NOW)
    with pytest.raises(Unfound, match="an empty word"):
        await compared(finder, "clients", " ", NOW)


async def test_the_columns_of_one_key_are_parted_by_a_slash(database: Path) -> None:
    mapping = MAPPING.read_text().replace("key: a.ID_ART", "key: [a.ID_ART, a.FAMILLE]")
    family = one(database, "SELECT FAMILLE FROM ARTICLES WHERE ID_ART = 5")
    async with finding(connect(database, mapping=mapping, ids=Shelf())) as finder:
        found = await compared(finder, "stock", f"5/{family}", NOW)
        assert found.record is not None
        assert (found.key, found.row["ID_ART"]) == ([5, family], 5)
        with pytest.raises(Unfound, match="has the key 5/NONE"):
            await compared(finder, "stock", "5/NONE", NOW)
        again = await compared(finder, "stock", found.id, NOW)
        assert again.id == found.id


async def test_a_field_that_is_not_mapped_says_so(database: Path) -> None:
    mapping = MAPPING.read_text().replace("      firstName: p.PRENOM\n", "")
    async with finding(connect(database, mapping=mapping)) as finder:
        found = await compared(finder, "clients", "1", NOW)
    first = trail(found, "firstName")
    assert (first.value, first.source, first.note) == (None, "", "null: it is not in the mapping")


async def test_the_json_of_a_record_is_its_row_and_no_secret_is_in_its_calls(
    cloud: Cloud, url: str, tmp_path: Path
) -> None:
    async with finding(connect_cloud(url, tmp_path, ids=Shelf())) as finder:
        found = await compared(finder, "clients", "1", NOW)
        assert found.row == cloud.records.owners[1] | {"href": f"{url}/owners/1"}
        assert trail(found, "id").raw == "1"
        assert trail(found, "firstName").raw == found.row["name"]["first"]
        assert f"GET {url}/owners/1 -> 200" in found.asked
        assert not any(PASSWORD in each for each in found.asked)
        cloud.records.owners[1]["archived"] = True
        hidden = await compared(finder, "clients", found.id, NOW)
        assert hidden.record is None
        assert hidden.unserved.endswith("archived == `false` does not hold")
        animal = await compared(finder, "patients", "1", NOW)
        assert trail(animal, "species").note.startswith("code ")
        assert animal.name
        bill = await compared(finder, "invoices", str(next(iter(cloud.records.bills))), NOW)
        assert trail(bill, "lines[0].total").value == bill.record["lines"][0]["total"]  # type: ignore[index]


async def test_a_json_record_that_only_a_list_has_is_found_though_where_hides_it(
    cloud: Cloud, url: str, tmp_path: Path
) -> None:
    change = replaced(
        ("    one: /owners/{id}\n", ""),
        ("where: archived == `false`", "where: archived == `false` && mail != 'x@example.org'"),
    )
    cloud.records.owners[2]["mail"] = "x@example.org"
    async with finding(connect_cloud(url, tmp_path, change, ids=Shelf())) as finder:
        found = await compared(finder, "clients", "2", NOW)
    assert found.record is None
    assert found.unserved.endswith("mail != 'x@example.org' does not hold")


async def test_secrets_in_a_call_are_masked(cloud: Cloud, url: str, tmp_path: Path) -> None:
    change = replaced(
        ("one: /owners/{id}", 'one: {get: "/owners/{id}", query: {k: {secret: password}}}')
    )
    async with finding(connect_cloud(url, tmp_path, change, ids=Shelf())) as finder:
        found = await compared(finder, "clients", "1", NOW)
        assert f"GET {url}/owners/1?k=******** -> 200" in found.asked
        assert not any("session" in each and PASSWORD in each for each in finder.asked)


@pytest.mark.parametrize(
    ("where", "word", "parts"),
    [
        ("a = 1 AND b = 2", "and", ["a = 1", "b = 2"]),
        ("a = 'x and y' and (b = 1 AND c = 2)", "and", ["a = 'x and y'", "(b = 1 AND c = 2)"]),
        ("a BETWEEN 1 AND 2 AND b = 3", "and", ["a BETWEEN 1 AND 2", "b = 3"]),
        ("a = 1 AND b = 2 OR c = 3", "and", ["a = 1 AND b = 2 OR c = 3"]),
        (
            "CASE WHEN a = 1 AND b = 2 OR c THEN 1 ELSE 0 END = 1 AND d",
            "and",
            ["CASE WHEN a = 1 AND b = 2 OR c THEN 1 ELSE 0 END = 1", "d"],
        ),
        ("brand = 'a' and standard", "and", ["brand = 'a'", "standard"]),
        ("a == `1` && b[?c && d]", "&&", ["a == `1`", "b[?c && d]"]),
        ("a || b && c", "&&", ["a || b && c"]),
        ("a = 1", "and", ["a = 1"]),
        ("((a = 1 AND b = ')'))", "and", ["a = 1", "b = ')'"]),
        ("(a = 1) AND (b = 2)", "and", ["(a = 1)", "(b = 2)"]),
        ("(a", "and", ["(a"]),
    ],
)
def test_a_condition_is_parted_where_all_parts_must_hold(
    where: str, word: str, parts: list[str]
) -> None:
    assert split_at(where, word) == parts
