"""A practice in files, read by a copy: the same mapping over dBASE tables and an Access file."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from adapters.base import (
    AdapterOptions,
    BackendNonsense,
    BackendUnavailable,
    CopyRules,
    Filter,
    Query,
)
from adapters.doctor import doctor_of
from adapters.documents.problems import DocumentErrors
from adapters.draft import draft_mapping
from adapters.examination import Examination
from adapters.sql.adapter import SqlAdapter
from adapters.sql.engines import open_engine, wrong_with
from gateway.backend import shapes
from tests.adapters.clinic import SECRET
from tests.adapters.copies.access_files import needs_mdbtools, write_access
from tests.adapters.copies.dbf_files import open_dbf, write_dbf
from tests.adapters.copies.desktop import MAPPING, as_access, as_dbf
from tests.waiting import until

NOW = datetime(2026, 3, 2, 7, tzinfo=UTC)
Write = Callable[[Path], str]
KINDS = [
    pytest.param(lambda folder: as_dbf(folder / "praxis"), id="dbf"),
    pytest.param(
        lambda folder: as_access(folder / "praxis.mdb"), id="access", marks=needs_mdbtools
    ),
]


def options(folder: Path, url: str, mapping: str = MAPPING, **rules: Any) -> AdapterOptions:
    (folder / "clinic.yaml").write_text(mapping)
    return AdapterOptions(
        url=url,
        mapping=folder / "clinic.yaml",
        secret=SECRET,
        shapes=shapes(),
        report=lambda trouble: None,
        copy=CopyRules(folder=folder / "copy", **rules),
    )


async def page(adapter: SqlAdapter, resource: str, *filters: Filter) -> list[dict[str, Any]]:
    query = Query(resource=resource, now=NOW, filters=filters)
    return (await adapter.read_many(query)).records


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Callable[..., SqlAdapter]]:
    adapters: list[SqlAdapter] = []

    def make(*given: Any, **more: Any) -> SqlAdapter:
        adapters.append(SqlAdapter(options(tmp_path, *given, **more)))
        return adapters[-1]

    yield make
    for adapter in adapters:
        await adapter.aclose()


@pytest.mark.parametrize("write", KINDS)
async def test_records_lists_filters_and_times_are_those_of_the_files(
    tmp_path: Path, write: Write, opened: Callable[..., SqlAdapter]
) -> None:
    adapter = opened(write(tmp_path))
    assert await adapter.check() == []
    clients = await page(adapter, "clients")
    assert {(one["firstName"], one["lastName"], one["phone"]) for one in clients} == {
        ("Jörg", "Müller", "030 1"),
        ("Anke", "Groß", "030 2"),
        (None, "Weiß", None),
    }
    ids = {one["lastName"]: one["id"] for one in clients}
    [bear, cat] = sorted(
        await page(adapter, "patients", Filter("equals", ("clientId",), ids["Müller"])),
        key=lambda one: one["name"],
    )
    assert (bear["name"], bear["species"], bear["birthDate"], bear["weightKg"], bear["breed"]) == (
        "Bärli", "DOG", "2020-02-29", 12.5, "beißt",
    )  # fmt: skip
    assert (cat["name"], cat["birthDate"], cat["breed"]) == ("Mia", None, None)
    found = await page(adapter, "clients", Filter("search", ("lastName", "firstName"), "anke"))
    assert [one["lastName"] for one in found] == ["Groß"]
    visits = await page(adapter, "appointments")
    assert {one["scheduledAt"] for one in visits} == {
        "2026-03-02T08:00:00Z",
        "2026-03-02T09:15:00Z",
    }
    vets = {one["name"]: one["id"] for one in await page(adapter, "vets")}
    values = {"vetId": vets["Dr. Köhler"], "date": NOW.date(), "appointmentTypeId": None}
    slots = (await adapter.read_many(Query(resource="slots", now=NOW, values=values))).records
    starts = [one["startTime"] for one in slots]
    assert "2026-03-02T08:00:00Z" not in starts
    assert "2026-03-02T08:30:00Z" in starts


async def test_ids_outlive_a_new_copy(tmp_path: Path, opened: Callable[..., SqlAdapter]) -> None:
    adapter = opened(as_dbf(tmp_path / "praxis"), refresh=0.05)
    await adapter.check()
    before = {one["lastName"]: one["id"] for one in await page(adapter, "clients")}
    with open_dbf(tmp_path / "praxis" / "KUNDEN.DBF") as table:
        table.append((4, "Ute", "Adler", ""))

    async def is_there() -> bool:
        return len(await page(adapter, "clients")) == 4

    await until(is_there)
    after = {one["lastName"]: one["id"] for one in await page(adapter, "clients")}
    assert after | before == after
    one = await adapter.read_one(Query(resource="clients", now=NOW, id=before["Groß"]))
    assert one["lastName"] == "Groß"


async def test_a_read_sees_one_copy_from_its_start_to_its_end(tmp_path: Path) -> None:
    url = as_dbf(tmp_path / "praxis")
    rules = CopyRules(folder=tmp_path / "copy", refresh=0.05)
    engine = open_engine(url, timeout=30, booking_timeout=30, copy=rules)
    count, begun, go_on = text("SELECT count(*) FROM kunden"), threading.Event(), threading.Event()

    def twice(connection: Any) -> tuple[int, int]:
        first = connection.scalar(count)
        begun.set()
        assert go_on.wait(30)
        return first, connection.scalar(count)

    try:
        await engine.ping()
        reading = asyncio.create_task(engine.read(twice))
        await asyncio.to_thread(begun.wait, 30)
        with open_dbf(tmp_path / "praxis" / "KUNDEN.DBF") as table:
            table.append((4, "Ute", "Adler", ""))

        async def is_new() -> bool:
            return await engine.inspect(lambda connection: connection.scalar(count)) == 4

        await until(is_new)
        go_on.set()
        assert await reading == (3, 3)
        assert await engine.read(lambda connection: connection.scalar(count)) == 4
    finally:
        go_on.set()
        await engine.aclose()


async def test_nothing_can_be_written(tmp_path: Path) -> None:
    engine = open_engine(as_dbf(tmp_path / "praxis"), timeout=5, booking_timeout=5)
    try:
        with pytest.raises(BackendNonsense, match="would not reach the practice system"):
            await engine.book(lambda connection: None)
        with pytest.raises(BackendUnavailable, match="SQLITE_READONLY"):
            await engine.read(lambda connection: connection.execute(text("DELETE FROM kunden")))
    finally:
        await engine.aclose()


def test_bookings_are_refused_at_their_line(tmp_path: Path) -> None:
    booking = "booking:\n  appointment: a\n  steps: []\n"
    with pytest.raises(DocumentErrors) as it:
        SqlAdapter(options(tmp_path, as_dbf(tmp_path / "praxis"), MAPPING + booking))
    line = MAPPING.count("\n") + 1
    assert (line, "files are read by a copy, and take no bookings: leave out booking") in [
        (problem.line, problem.text) for problem in it.value.problems
    ]


@pytest.mark.parametrize("key", ["k.rowid", "ROWID", 'k."_rowid_"', "oid"])
async def test_the_number_of_a_row_is_no_key(
    tmp_path: Path, key: str, opened: Callable[..., SqlAdapter]
) -> None:
    url, wrong = as_dbf(tmp_path / "praxis"), MAPPING.replace("key: k.KDNR", f"key: '{key}'")
    adapter = opened(url, wrong)
    with pytest.raises(DocumentErrors) as it:
        await adapter.check()
    [problem] = it.value.problems
    assert (problem.line, problem.code) == (6, "copied")
    doctor = doctor_of(adapter)
    assert doctor is not None
    findings = [one async for one in doctor.examine(adapter, Examination(now=NOW))]
    assert [one.subject for one in findings if one.code == "copied"] == ["clients.key"]


async def test_a_column_that_is_called_like_the_number_of_a_row_is_a_key(
    tmp_path: Path, opened: Callable[..., SqlAdapter]
) -> None:
    url = as_dbf(tmp_path / "praxis")
    write_dbf(tmp_path / "praxis" / "ARZT.DBF", "OID N(6,0); NAME C(30)", [(7, "Dr. Lind")])
    head = MAPPING.partition("  clients:")[0]
    mapping = f"{head}  vets: {{from: ARZT a, key: a.OID, fields: {{name: a.NAME}}}}\n"
    adapter = opened(url, mapping)
    assert await adapter.check() == []
    assert len(await page(adapter, "vets")) == 1


async def test_a_table_without_a_code_page_is_told_before_it_has_a_letter_beyond_ascii(
    tmp_path: Path, opened: Callable[..., SqlAdapter]
) -> None:
    url, file = as_dbf(tmp_path / "praxis"), tmp_path / "praxis" / "ART.DBF"
    raw = bytearray(file.read_bytes())
    raw[29] = 0
    file.write_bytes(raw)
    adapter = opened(url)
    [warning] = await adapter.check()
    assert (warning.file, warning.code) == ("backend.url", "no-code-page")
    assert warning.text.startswith("ART: no code page is named there, so no copy can be made once")
    assert "?encoding=cp1252 (Windows)" in warning.text
    doctor = doctor_of(adapter)
    assert doctor is not None
    findings = [one async for one in doctor.examine(adapter, Examination(now=NOW))]
    [told] = [one for one in findings if one.subject == "copy" and one.verdict == "warning"]
    assert told.text in warning.text
    assert "?encoding=cp1252 (Windows)" in told.remedy
    assert await opened(f"{url}?encoding=cp850").check() == []


async def test_no_read_scans_a_large_table(
    tmp_path: Path, opened: Callable[..., SqlAdapter]
) -> None:
    url = as_dbf(tmp_path / "praxis")
    animals = [(number // 2, number % 2, f"Tier {number}", "H", None, 1.0, "") for number in
               range(2, 6_000)]  # fmt: skip
    clients = [(number, "", f"Kunde {number}", "") for number in range(4, 6_000)]
    for name, rows in (("TIERE", animals), ("KUNDEN", clients)):
        with open_dbf(tmp_path / "praxis" / f"{name}.DBF") as table:
            for row in rows:
                table.append(row)
    adapter = opened(url)
    doctor = doctor_of(adapter)
    assert doctor is not None
    findings = [one async for one in doctor.examine(adapter, Examination(now=NOW))]
    plans = [one for one in findings if one.check == "plans"]
    assert plans
    assert [one.text for one in plans if one.verdict != "ok"] == []
    copy = next(one for one in findings if one.subject == "copy")
    assert copy.verdict == "ok"


async def test_an_old_copy_is_told_by_the_check_and_the_doctor(
    tmp_path: Path, opened: Callable[..., SqlAdapter]
) -> None:
    adapter = opened(as_dbf(tmp_path / "praxis"), refresh=0.05)
    assert await adapter.check() == []
    (tmp_path / "praxis").rename(tmp_path / "away")
    copy = adapter.engine.copy
    assert copy is not None
    await until(lambda: bool(copy.why))
    [warning] = await adapter.check()
    assert str(warning).startswith("backend.url: the copy of /")
    assert warning.text.endswith("as no new one can be made: praxis: No such file or directory")
    doctor = doctor_of(adapter)
    assert doctor is not None
    findings = [one async for one in doctor.examine(adapter, Examination(now=NOW))]
    [told] = [one for one in findings if one.subject == "copy"]
    assert told.verdict == "warning"
    assert "no new copy can be made: praxis: No such file" in told.text


@needs_mdbtools
async def test_what_the_copy_does_not_hold_is_a_note_for_tables_of_the_mapping(
    tmp_path: Path, opened: Callable[..., SqlAdapter]
) -> None:
    columns = {"ID": "long", "Foto": "ole"}
    write_access(
        tmp_path / "p.mdb", {"Kunde": (columns, [[1, b""]]), "Rest": (columns, [[1, b""]])}
    )
    head = MAPPING.partition("  clients:")[0]
    mapping = f"{head}  clients: {{from: Kunde, key: ID, fields: {{lastName: ID}}}}\n"
    adapter = opened(f"access:///{tmp_path}/p.mdb", mapping)
    doctor = doctor_of(adapter)
    assert doctor is not None
    findings = [one async for one in doctor.examine(adapter, Examination(now=NOW))]
    [note] = [one for one in findings if one.verdict == "note" and one.subject == "copy"]
    assert note.text == "the copy does not hold Kunde.Foto (of the type OLE)"


async def test_a_draft_is_made_of_a_copy_that_goes_with_it(tmp_path: Path) -> None:
    url = as_dbf(tmp_path / "praxis")
    drafted, _ = await draft_mapping(url, shapes(), "Europe/Berlin", "")
    assert "from: KUNDEN" in drafted
    assert "lastName: " in drafted
    assert "\nbooking:" not in drafted
    assert "# files are read by a copy, and take no bookings" in drafted


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("access://", "must name the file, such as access:////srv/practice.mdb"),
        ("dbf://host/share", "must name the folder of the tables, such as dbf:////srv/practice"),
        ("dbf:////srv/x?codepage=850", "has an option 'codepage' that is not known: encoding is"),
        ("dbf:////srv/x?encoding=cp8500", "has an encoding 'cp8500' that is not known: write one"),
    ],
)
def test_a_wrong_address_is_told(url: str, said: str) -> None:
    assert any(one.startswith(said) for one in wrong_with(url))


@needs_mdbtools
def test_a_program_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrong_with("access:////srv/x.mdb") == []
    monkeypatch.setenv("PATH", "/nowhere")
    [said] = wrong_with("access:////srv/x.mdb")
    assert said.endswith("apt-get install mdbtools")
