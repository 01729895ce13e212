"""The sample clinic through its mapping: every oddity undone, pages whole, statements counted."""

import asyncio
import shutil
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import Connection

from adapters.base import (
    AdapterOptions,
    BackendNonsense,
    BackendTimeout,
    BackendUnavailable,
    Condition,
    Filter,
    Formed,
    FormedRecord,
    NotFound,
    Record,
    Trouble,
)
from adapters.documents.problems import DocumentErrors
from adapters.sample import MAPPING
from adapters.sql.adapter import SqlAdapter
from adapters.sql.engines.lanes import MOST_WAITING
from gateway.backend import shapes
from tests.adapters.asked import asked
from tests.adapters.clinic import NOW, SECRET, a_draft, ask, connect, everything, run

COUNTS = {
    "clients": 300,
    "patients": 450,
    "vets": 6,
    "appointmentTypes": 8,
    "appointments": 2_500,
    "consultations": 1_200,
    "invoices": 1_500,
    "stock": 120,
}


@pytest.mark.parametrize(("resource", "count"), COUNTS.items())
async def test_a_resource_is_read_whole_once_each_and_alone_as_in_the_list(
    adapter: SqlAdapter, resource: str, count: int
) -> None:
    records = await everything(adapter, resource)
    assert len({record["id"] for record in records}) == len(records) == count
    for record in records[:: len(records) // 5]:
        assert await adapter.read_one(ask(resource, id=record["id"])) == record


async def test_blank_names_companies_and_preferred_numbers_come_out_clean(
    adapter: SqlAdapter, database: Path
) -> None:
    clients = await everything(adapter, "clients")
    assert all(client["lastName"] == client["lastName"].strip() != "" for client in clients)
    assert any(client["firstName"] is None for client in clients)
    faxes = {
        row[0].strip() for row in run(database, "SELECT VALEUR FROM COORDONNEES WHERE TYPE='X'")
    }
    assert not faxes & {client["phone"] for client in clients}


async def test_what_nobody_looks_at_is_left_out_of_a_record(adapter: SqlAdapter) -> None:
    whole = (await adapter.read_many(ask("invoices", limit=5))).records
    names = frozenset({"total", "lines[].total", "dueAt"})
    page = await adapter.read_many(ask("invoices", limit=5, fields=names))
    lines = [
        [{name: line[name] for name in ("id", "total")} for line in it["lines"]] for it in whole
    ]
    assert any(lines)
    wanted = [
        {"id": it["id"], "lines": own, "dueAt": it["dueAt"], "total": it["total"]}
        for it, own in zip(whole, lines, strict=True)
    ]
    assert page.records == wanted
    assert [list(it) for it in page.records] == [["id", "lines", "dueAt", "total"]] * 5
    assert isinstance(page.records, Formed)
    assert page.records.form == ("id", "lines[].id", "lines[].total", "dueAt", "total")
    one = await adapter.read_one(ask("invoices", id=whole[0]["id"], fields=names))
    assert (one, isinstance(one, FormedRecord)) == (wanted[0], True)
    await adapter.aclose()


async def test_a_column_that_nobody_looks_at_is_not_read(adapter: SqlAdapter) -> None:
    [whole] = (await adapter.read_many(ask("patients", limit=1))).records
    names, alive = frozenset({"name"}), Condition("status", "in", (whole["status"],))
    with asked() as heard:
        page = await adapter.read_many(ask("patients", limit=1, fields=names, only=(alive,)))
        one = await adapter.read_one(ask("patients", id=whole["id"], fields=names, only=(alive,)))
        await adapter.read_one(ask("patients", id=whole["id"], fields=names))
    assert page.records == [one] == [{"id": whole["id"], "name": whole["name"]}]
    assert ["CHAMPS_SUPPL" in each.text for each in heard] == [False] * 3
    # what a condition judges is read all the same
    assert ["DT_DECES" in each.text.partition("WHERE")[0] for each in heard] == [True, True, False]
    other = Condition("status", "not in", (whole["status"],))
    with pytest.raises(NotFound):
        await adapter.read_one(ask("patients", id=whole["id"], fields=names, only=(other,)))


async def test_an_end_that_is_looked_at_is_told_beside_its_start(adapter: SqlAdapter) -> None:
    [whole] = (await adapter.read_many(ask("appointments", limit=1))).records
    query = ask("appointments", id=whole["id"], fields=frozenset({"endTime"}))
    times = {name: whole[name] for name in ("id", "scheduledAt", "endTime")}
    assert await adapter.read_one(query) == times


async def test_internal_notes_stand_in_no_record(adapter: SqlAdapter) -> None:
    assert "INTERNE" not in str(await everything(adapter, "consultations"))


async def test_a_deleted_row_is_neither_listed_nor_found(
    adapter: SqlAdapter, database: Path
) -> None:
    first = (await adapter.read_many(ask("clients", limit=1))).records[0]
    run(database, "UPDATE PERSONNES SET ACTIF = 'N' WHERE ID_PERS = (SELECT MIN(ID_PERS)"
        " FROM PERSONNES WHERE GENRE_PERS = 'C' AND ACTIF = 'O')")  # fmt: skip
    assert (await adapter.read_many(ask("clients", limit=1))).records[0] != first
    with pytest.raises(NotFound):
        await adapter.read_one(ask("clients", id=first["id"]))


async def test_a_code_that_no_table_names_becomes_none_and_is_reported_by_id(
    adapter: SqlAdapter, troubles: list[Trouble]
) -> None:
    appointments = await everything(adapter, "appointments")
    unknown = [each["id"] for each in appointments if each["status"] is None]
    assert len(unknown) == 3
    named = [each for each in troubles if each.field == "status"]
    assert named == [Trouble("unknown code", "appointments", "status", each) for each in unknown]


async def test_paid_and_balance_add_up_to_the_total(adapter: SqlAdapter) -> None:
    for invoice in await everything(adapter, "invoices"):
        names = ("total", "amountPaid", "balance", "subtotal", "taxTotal")
        total, paid, balance, subtotal, tax = (_cents(invoice[name]) for name in names)
        assert total == paid + balance == subtotal + tax
        assert paid == sum(_cents(payment["amount"]) for payment in invoice["payments"])


async def test_a_draft_without_totals_has_the_sums_of_its_lines(adapter: SqlAdapter) -> None:
    draft = Filter("equals", ("status",), "DRAFT")
    drafts = await everything(adapter, "invoices", draft)
    assert len(drafts) > 10
    for invoice in drafts:
        lines = [(_cents(each["total"]), Decimal(each["taxRate"])) for each in invoice["lines"]]
        assert _cents(invoice["subtotal"]) == sum(total for total, _ in lines)
        tax = sum(int((total * rate / 100).quantize(1, ROUND_HALF_UP)) for total, rate in lines)
        assert _cents(invoice["taxTotal"]) == tax


def _cents(amount: str) -> int:
    return int(amount.replace(".", ""))


async def test_low_stock_compares_numbers_not_text(adapter: SqlAdapter) -> None:
    low = await everything(adapter, "stock", Filter("equals", ("isLow",), True))
    assert len(low) == 15
    assert all(item["quantity"] <= item["reorderThreshold"] for item in low)
    others = [item for item in await everything(adapter, "stock") if item not in low]
    assert all(
        item["reorderThreshold"] is None or item["quantity"] > item["reorderThreshold"]
        for item in others
    )


async def test_search_takes_beginnings_of_words_and_ignores_case_and_accents(
    adapter: SqlAdapter,
) -> None:
    names = ("firstName", "lastName")

    async def found(words: str) -> list[Record]:
        return await everything(adapter, "clients", Filter("search", names, words))

    francois = await found("franc")
    assert francois
    assert francois == await found("FRANÇ")
    assert all("fran" in f"{each['firstName']} {each['lastName']}".lower() for each in francois)
    one = francois[0]
    both = await found(f"{one['lastName']} {(one['firstName'] or '')[:2]}")
    assert one in both
    assert await found("rançois") == []
    assert await found("%_") == await found("--") == []


async def test_updated_since_is_inclusive(adapter: SqlAdapter) -> None:
    patients = await everything(adapter, "patients")
    newest = max(patient["updatedAt"] for patient in patients)
    moment = datetime.fromisoformat(newest)
    at = await everything(adapter, "patients", Filter("since", ("updatedAt",), moment))
    later = moment + timedelta(seconds=1)
    after = await everything(adapter, "patients", Filter("since", ("updatedAt",), later))
    assert [each["updatedAt"] for each in at] == [newest]
    assert after == []


async def test_a_foreign_or_forged_id_is_not_found_without_a_statement(
    adapter: SqlAdapter, tmp_path: Path
) -> None:
    client = (await adapter.read_many(ask("clients", limit=1))).records[0]["id"]
    (tmp_path / "clinic.db").unlink()
    for forged in (str(uuid4()), "00000000-0000-8000-8000-000000000000", client):
        with pytest.raises(NotFound):
            await adapter.read_one(ask("patients", id=forged))


async def test_a_page_and_a_record_cost_a_fixed_number_of_statements(
    adapter: SqlAdapter, database: Path
) -> None:
    wanted = {"clients": 1, "invoices": 3, "appointments": 1}
    for resource, statements in wanted.items():
        for limit in (1, 50, 200):
            with asked() as first:
                page = await adapter.read_many(ask(resource, limit=limit))
            with asked() as second:
                await adapter.read_many(ask(resource, limit=limit, after=page.after))
            assert len(first) == len(second) == statements
        with asked() as single:
            await adapter.read_one(ask(resource, id=page.records[0]["id"]))
        assert len(single) == statements


async def test_no_row_is_lost_or_repeated_while_rows_are_added(
    adapter: SqlAdapter, database: Path
) -> None:
    before = {record["id"] for record in await everything(adapter, "stock")}
    seen: list[str] = []
    after, turn = None, 0
    while True:
        page = await adapter.read_many(ask("stock", limit=10, after=after))
        seen += [record["id"] for record in page.records]
        run(database, "INSERT INTO ARTICLES (LIBELLE, ACTIF, ID_ART) VALUES ('new', 'O', ?)", -turn)
        run(database, "INSERT INTO ARTICLES (LIBELLE, ACTIF) VALUES ('new', 'O')")
        turn, after = turn + 1, page.after
        if after is None or turn > 50:
            break
    assert len(seen) == len(set(seen))
    assert before <= set(seen)


async def test_a_row_without_a_usable_id_is_left_out_and_counted(
    database: Path, troubles: list[Trouble]
) -> None:
    run(database, "CREATE TABLE T2 AS SELECT * FROM TYPES_RDV")
    run(database, "UPDATE T2 SET ID_TYPE = 'no short key' WHERE ID_TYPE ="
        " (SELECT MAX(ID_TYPE) FROM T2 WHERE ACTIF = 'O')")  # fmt: skip
    run(database, "DROP TABLE TYPES_RDV")
    run(database, "ALTER TABLE T2 RENAME TO TYPES_RDV")
    adapter = connect(database, troubles)
    page = await adapter.read_many(ask("appointmentTypes"))
    await adapter.aclose()
    assert (len(page.records), page.skipped) == (7, 1)
    assert troubles == [Trouble("no id", "appointmentTypes", "id", "")]


@pytest.mark.parametrize("limit", [3, 50])
async def test_rows_without_a_key_are_left_out_and_counted_with_the_first_page(
    database: Path, troubles: list[Trouble], limit: int
) -> None:
    run(database, "CREATE TABLE T2 AS SELECT * FROM TYPES_RDV")
    run(database, "INSERT INTO T2 (LIBELLE, ACTIF) VALUES ('a', 'O'), ('b', 'O'), ('c', 'N')")
    run(database, "DROP TABLE TYPES_RDV")
    run(database, "ALTER TABLE T2 RENAME TO TYPES_RDV")
    adapter = connect(database, troubles)
    first = await adapter.read_many(ask("appointmentTypes", limit=limit))
    assert (len(first.records), first.skipped) == (min(limit, 8), 2)
    assert troubles == [Trouble("no id", "appointmentTypes", "id", "")] * 2
    if first.after is not None:
        second = await adapter.read_many(ask("appointmentTypes", limit=limit, after=first.after))
        assert second.skipped == 0
    only_a = ask("appointmentTypes", filters=(Filter("equals", ("name",), "a"),))
    assert (await adapter.read_many(only_a)).skipped == 1
    await adapter.aclose()


@pytest.mark.parametrize("folder", ["50% off", "a?b", "x#y", "%41"])
async def test_a_path_is_taken_as_it_is(database: Path, folder: str) -> None:
    place = database.parent / folder
    place.mkdir()
    adapter = connect(Path(shutil.copy(database, place / "c?mode=ro.db")))
    await adapter.ping()
    await adapter.aclose()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:///clinic.db?mode=ro", "takes nothing behind a ?"),
        ("sqlite:///:memory:", "must name the database's file"),
        ("sqlite://", "must name the database's file"),
        ("clinic.db", "must be a database address"),
    ],
)
def test_an_address_that_names_no_file_is_refused(url: str, said: str) -> None:
    options = AdapterOptions(
        url=url, mapping=MAPPING, secret=SECRET, shapes=shapes(), report=lambda _: None
    )
    with pytest.raises(DocumentErrors, match=said.replace("?", r"\?")):
        SqlAdapter(options)


@pytest.mark.parametrize("odd", [2.5, "no short key", "zz no short key"])
@pytest.mark.parametrize("limit", [1, 2, 3, 8, 50])
async def test_an_odd_key_where_a_page_ends_loses_no_row_and_repeats_none(
    database: Path, odd: object, limit: int
) -> None:
    run(database, "CREATE TABLE T2 AS SELECT * FROM TYPES_RDV WHERE ACTIF = 'O'")
    run(database, "INSERT INTO T2 (ID_TYPE, LIBELLE, ACTIF) VALUES (?, 'a', 'O')", odd)
    run(database, "DROP TABLE TYPES_RDV")
    run(database, "ALTER TABLE T2 RENAME TO TYPES_RDV")
    adapter = connect(database)
    found: list[Record] = []
    skipped, after = 0, None
    while True:
        page = await adapter.read_many(ask("appointmentTypes", limit=limit, after=after))
        found, skipped, after = found + page.records, skipped + page.skipped, page.after
        if after is None:
            break
    await adapter.aclose()
    assert len({each["id"] for each in found}) == len(found) == 8
    assert skipped == 1


async def test_the_lines_of_a_list_find_their_record_though_its_key_is_a_text_there(
    adapter: SqlAdapter, database: Path, troubles: list[Trouble]
) -> None:
    before = await everything(adapter, "invoices")
    run(database, "CREATE TABLE L2 AS SELECT ID_LIGNE, CAST(ID_FACT AS TEXT) AS ID_FACT, LIBELLE,"
        " QTE, PU_HT, TAUX_TVA, TOTAL_HT, LIEN FROM LIGNES_FACT")  # fmt: skip
    run(database, "DROP TABLE LIGNES_FACT")
    run(database, "ALTER TABLE L2 RENAME TO LIGNES_FACT")
    run(database, "CREATE INDEX L2_FACT ON LIGNES_FACT (ID_FACT)")
    assert [each["lines"] for each in await everything(adapter, "invoices")] == [
        each["lines"] for each in before
    ]
    assert not [each for each in troubles if each.field == "lines"]


async def test_a_code_for_no_value_is_filtered_as_it_is_read(database: Path) -> None:
    text = MAPPING.read_text().replace("{B: DRAFT, E: ISSUED,", '{"": ISSUED, B: DRAFT, E: ISSUED,')
    run(database, "UPDATE FACTURES SET ETAT = NULL WHERE ETAT = 'E' AND ID_FACT % 2 = 0")
    adapter = connect(database, mapping=text)
    issued = await everything(adapter, "invoices", Filter("equals", ("status",), "ISSUED"))
    shown = [each for each in await everything(adapter, "invoices") if each["status"] == "ISSUED"]
    await adapter.aclose()
    assert issued == shown
    assert run(database, "SELECT count(*) FROM FACTURES WHERE ETAT IS NULL")[0][0] > 5


async def test_an_id_that_an_expression_gives_as_a_text_is_filtered_as_it_is_read(
    database: Path,
) -> None:
    text = MAPPING.read_text().replace("clientId: f.ID_PERS", "clientId: TRIM(f.ID_PERS)")
    adapter = connect(database, mapping=text)
    payer = (await adapter.read_many(ask("invoices", limit=1))).records[0]["clientId"]
    found = await everything(adapter, "invoices", Filter("equals", ("clientId",), payer))
    await adapter.aclose()
    assert found
    assert {each["clientId"] for each in found} == {payer}


async def test_a_database_that_is_put_in_the_place_of_another_is_the_one_that_is_read(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    await asyncio.gather(
        *(adapter.read_many(ask("clients")) for _ in range(adapter.engine.reader.size * 4))
    )
    other = Path(shutil.copy(database, database.with_name("restored.db")))
    run(other, "UPDATE PERSONNES SET PRENOM = 'Restored'")
    shutil.move(other, database)
    for _ in range(adapter.engine.reader.size * 2):
        clients = (await adapter.read_many(ask("clients", limit=3))).records
        assert {each["firstName"] for each in clients} == {"Restored"}
    made = await adapter.create_appointment(draft)
    assert await adapter.read_one(ask("appointments", id=made["id"])) == made
    shutil.move(database, other)
    for work in (adapter.ping(), adapter.read_many(ask("clients")),
                 adapter.create_appointment(draft)):  # fmt: skip
        with pytest.raises(BackendUnavailable, match="does not exist"):
            await work


async def test_a_backend_that_is_gone_is_unavailable_and_no_empty_file_appears(
    tmp_path: Path,
) -> None:
    adapter = connect(tmp_path / "nowhere.db")
    with pytest.raises(BackendUnavailable):
        await adapter.ping()
    await adapter.aclose()
    assert not (tmp_path / "nowhere.db").exists()


async def test_a_corrupt_file_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "clinic.db").write_bytes(b"no database" * 1000)
    adapter = connect(tmp_path / "clinic.db")
    with pytest.raises(BackendUnavailable):
        await adapter.read_many(ask("clients"))
    await adapter.aclose()


async def test_a_table_that_is_not_there_is_nonsense(adapter: SqlAdapter, database: Path) -> None:
    run(database, "DROP TABLE LIGNES_FACT")
    with pytest.raises(BackendNonsense):
        await adapter.read_many(ask("invoices"))
    assert (await adapter.read_many(ask("clients"))).records  # the thread goes on


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


async def test_a_statement_that_takes_too_long_is_stopped(database: Path) -> None:
    adapter = connect(database, timeout=0.05)
    with pytest.raises(BackendTimeout):
        await adapter.engine.read(lambda connection: connection.exec_driver_sql(ENDLESS))
    await adapter.aclose()


async def test_what_waits_too_long_for_its_turn_is_unavailable_and_never_asked(
    database: Path,
) -> None:
    adapter = connect(database, timeout=1.5)  # long after those that wait have given up
    asked: list[int] = []

    def endless(connection: Connection) -> None:
        connection.exec_driver_sql(ENDLESS)

    slow = [
        asyncio.create_task(adapter.engine.read(endless)) for _ in range(adapter.engine.reader.size)
    ]
    await asyncio.sleep(0)
    adapter.engine.reader._room._patience = 0.1
    late = [
        asyncio.create_task(adapter.engine.read(lambda _: asked.append(1)))
        for _ in range(MOST_WAITING)
    ]
    await asyncio.sleep(0)
    with pytest.raises(BackendUnavailable, match="too much is waiting"):
        await adapter.engine.read(lambda _: asked.append(1))
    await adapter.ping()  # on a lane of its own
    ends = await asyncio.gather(*slow, *late, return_exceptions=True)
    await adapter.aclose()
    assert {type(each) for each in ends[: adapter.engine.reader.size]} == {BackendTimeout}
    assert {str(each) for each in ends[adapter.engine.reader.size :]} == {
        "the practice system was busy with other calls"
    }
    assert asked == []


async def test_no_error_quotes_a_value(adapter: SqlAdapter, database: Path) -> None:
    with pytest.raises(BackendNonsense) as raised:
        await adapter.engine.read(
            lambda it: it.exec_driver_sql("SELECT json_extract('0612345678', '$.x[')")
        )
    assert "0612345678" not in str(raised.value)
    assert "SQLITE_ERROR" in str(raised.value)


async def test_a_reader_cannot_write(adapter: SqlAdapter) -> None:
    with pytest.raises((BackendNonsense, BackendUnavailable)):
        await adapter.engine.read(lambda it: it.exec_driver_sql("DELETE FROM RDV"))


async def test_reads_at_the_same_time_do_not_disturb_each_other(adapter: SqlAdapter) -> None:
    pages = await asyncio.gather(*(adapter.read_many(ask("invoices")) for _ in range(30)))
    assert all(page == pages[0] for page in pages)
    assert NOW.tzinfo is not None


async def test_a_text_in_another_encoding_is_none_and_reported_and_harms_no_other_record(
    adapter: SqlAdapter, database: Path, troubles: list[Trouble]
) -> None:
    before = await everything(adapter, "clients")
    run(database, "UPDATE PERSONNES SET ADRESSE1 = CAST(X'636865E2' AS TEXT), ADRESSE2 = NULL,"
        " CODE_POSTAL = NULL, VILLE = NULL WHERE ID_PERS = (SELECT MIN(ID_PERS) FROM PERSONNES"
        " WHERE GENRE_PERS = 'C' AND ACTIF = 'O')")  # fmt: skip
    troubles.clear()
    after = await everything(adapter, "clients")
    assert after == [{**before[0], "address": None}, *before[1:]]
    assert Trouble("unreadable", "clients", "address", before[0]["id"]) in troubles
    words = Filter("search", ("firstName", "lastName"), str(before[1]["lastName"]))
    assert before[1] in await everything(adapter, "clients", words)


async def test_a_search_is_not_stopped_by_a_text_in_another_encoding(
    adapter: SqlAdapter, database: Path
) -> None:
    before = await everything(adapter, "clients")
    run(database, "UPDATE PERSONNES SET NOM = CAST(X'E9' AS TEXT) WHERE ID_PERS ="
        " (SELECT MIN(ID_PERS) FROM PERSONNES WHERE GENRE_PERS = 'C' AND ACTIF = 'O')")  # fmt: skip
    words = Filter("search", ("firstName", "lastName"), str(before[1]["lastName"]))
    assert before[1] in await everything(adapter, "clients", words)


@pytest.mark.parametrize("limit", [1, 3, 50])
async def test_a_row_that_a_join_doubles_is_one_record_and_reported(
    database: Path, troubles: list[Trouble], limit: int
) -> None:
    run(database, "CREATE TABLE T2 AS SELECT * FROM TYPES_RDV")
    run(database, "INSERT INTO T2 SELECT * FROM T2 WHERE ACTIF = 'O'")
    run(database, "DROP TABLE TYPES_RDV")
    run(database, "ALTER TABLE T2 RENAME TO TYPES_RDV")
    adapter = connect(database, troubles)
    ids = [each["id"] for each in await everything(adapter, "appointmentTypes", limit=limit)]
    await adapter.aclose()
    assert len(ids) == len(set(ids)) == 8
    assert set(troubles) <= {Trouble("doubled row", "appointmentTypes", "id", "")}
    assert troubles or limit == 1
