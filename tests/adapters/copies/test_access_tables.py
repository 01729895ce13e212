"""Access files, read by the programs of mdbtools."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from adapters.copies import access_tables
from adapters.copies.access_tables import read_tables
from adapters.copies.tables import CopyError, TornError
from tests.adapters.copies.access_files import Columns, needs_mdbtools, write_access

pytestmark = needs_mdbtools
moment = dt.datetime
ANIMAL: Columns = {
    "ID": "long", "Name": "text", "Born": "datetime", "Opens": "datetime", "Balance": "currency",
    "Alive": "boolean", "Notes": "memo", "Photo": "ole", "Weight": "double", "Guid": "guid",
}  # fmt: skip


def written(path: Path, *rows: list[Any], columns: Columns = ANIMAL) -> Path:
    write_access(path, {"Animal": (columns, rows)})
    return path


def test_values_are_read_with_their_types(tmp_path: Path) -> None:
    nine = moment(1899, 12, 30, 9, 0)
    guid = bytes(range(16))
    first = [7, "Bärli", moment(2020, 2, 29, 8, 15), nine, 12.5, True, 'Zwei\r\n"Zeilen", ja',
             b"BM", 4.25, guid]  # fmt: skip
    file = written(tmp_path / "p.mdb", first, [8, *[None] * 4, False, *[None] * 4])
    [animal] = read_tables(file, "")
    assert [(one.name, one.declared) for one in animal.columns] == [
        ("ID", "INTEGER"),
        ("Name", "VARCHAR(255)"),
        ("Born", "DATETIME"),
        ("Opens", "DATETIME"),
        ("Balance", "DECIMAL(19,4)"),
        ("Alive", "BOOLEAN"),
        ("Notes", "TEXT"),
        ("Weight", "DOUBLE"),
        ("Guid", "CHAR(36)"),
    ]
    assert animal.omitted == ["Animal.Photo (of the type OLE)"]
    whole, empty = (list(row) for row in animal.rows())
    assert whole[:-1] == ["7", "Bärli", "2020-02-29 08:15:00", "09:00:00", "12.5000", "1",
                          'Zwei\r\n"Zeilen", ja', "4.25"]  # fmt: skip
    assert whole[-1] == "03020100-0504-0706-08090A0B0C0D0E0F"
    assert empty == ["8", None, None, None, None, "0", None, None, None]


def test_names_with_blanks_and_signs_are_read(tmp_path: Path) -> None:
    write_access(
        tmp_path / "p.mdb",
        {
            "Order Details": ({"Preis (netto)": "long"}, [[1]]),
            "Größe/Kürzel": ({"-x": "long"}, [[2]]),
            "-0": ({"a": "long"}, [[3]]),  # which the programs would take for an option
        },
    )
    tables = read_tables(tmp_path / "p.mdb", "")
    assert {table.name: [list(row) for row in table.rows()] for table in tables} == {
        "Order Details": [["1"]],
        "Größe/Kürzel": [["2"]],
    }


def test_what_is_no_access_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "p.mdb").write_bytes(b"no database" * 1000)
    with pytest.raises(CopyError, match="it is no Access file, is damaged, or is encrypted"):
        read_tables(tmp_path / "p.mdb", "")


def test_a_front_end_without_tables_is_told(tmp_path: Path) -> None:
    write_access(tmp_path / "p.mdb", {})
    with pytest.raises(CopyError, match="it has no tables of its own: where it only links"):
        read_tables(tmp_path / "p.mdb", "")


def test_tables_that_access_keeps_for_itself_are_left_out(tmp_path: Path) -> None:
    tables = {name: ({"a": "long"}, [[1]]) for name in ("~TMPCLP1", "USysX", "Animal")}
    write_access(tmp_path / "p.mdb", tables)
    assert [table.name for table in read_tables(tmp_path / "p.mdb", "")] == ["Animal"]


def test_a_table_that_has_other_rows_than_it_counts_is_torn(tmp_path: Path) -> None:
    file = written(tmp_path / "p.mdb", *[[number] for number in range(900)], columns={"ID": "long"})
    whole = bytearray(file.read_bytes())
    described = whole.index(b"\2\1", 3 * 4096)
    whole[described + 16 : described + 20] = (901).to_bytes(4, "little")
    file.write_bytes(whole)
    [animal] = read_tables(file, "")
    with pytest.raises(TornError, match="Animal counts 901 rows and has 900"):
        list(animal.rows())


def test_a_program_that_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "p.mdb", [1], columns={"ID": "long"})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CopyError, match="mdb-schema is not installed: apt-get install mdbtools"):
        read_tables(file, "")


def fake(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "mdb-schema"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, "exec sleep 600", monkeypatch)
    monkeypatch.setattr(access_tables, "QUICK", 0.2)
    with pytest.raises(CopyError, match=r"mdb-schema did not end in 0\.2 seconds"):
        read_tables(tmp_path / "p.mdb", "")


def test_a_program_that_never_stops_talking_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, "exec yes", monkeypatch)
    monkeypatch.setattr(access_tables, "LONGEST_STRUCTURE", 10_000)
    with pytest.raises(CopyError, match="mdb-schema says too much"):
        read_tables(tmp_path / "p.mdb", "")


def test_rows_without_an_end_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[number] for number in range(900)]
    [animal] = read_tables(written(tmp_path / "p.mdb", *rows, columns={"ID": "long"}), "")
    monkeypatch.setattr(access_tables, "TIMES_THE_FILE", 0)
    monkeypatch.setattr(access_tables, "BESIDE", 100)
    with pytest.raises(CopyError, match="Animal has no end"):
        list(animal.rows())
