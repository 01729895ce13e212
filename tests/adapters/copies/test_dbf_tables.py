"""Tables that `dbf` writes, and some that desktop products left in other forms."""

import datetime as dt
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import dbf
import pytest

from adapters.copies.dbf_tables import DbfTable
from adapters.copies.tables import CopyError, TornError
from tests.adapters.copies.dbf_files import open_dbf, write_dbf


def written(path: Path, fields: str, rows: list[tuple[Any, ...]], kind: str, page: str) -> DbfTable:
    memo = write_dbf(path, fields, rows, kind, page)
    return DbfTable(path.stem, path, memo)


def all_of(table: DbfTable) -> list[list[Any]]:
    return [list(row) for row in table.rows()]


def patched(path: Path, place: int, data: bytes) -> None:
    whole = bytearray(path.read_bytes())
    whole[place : place + len(data)] = data
    path.write_bytes(whole)


def test_a_dbase_iii_table_is_read_with_its_types(tmp_path: Path) -> None:
    day = dt.date(2024, 2, 29)
    table = written(
        tmp_path / "animal.dbf",
        "id N(6,0); name C(20); born D; weight N(7,2); alive L; notes M",
        [(7, "Bärli", day, 12.5, True, "Frißt\r\nnicht"), (8, "", None, None, None, "")],
        "db3",
        "cp850",
    )
    assert [(one.name, one.declared) for one in table.columns] == [
        ("ID", "INTEGER"),
        ("NAME", "VARCHAR(20)"),
        ("BORN", "DATE"),
        ("WEIGHT", "DECIMAL(7,2)"),
        ("ALIVE", "BOOLEAN"),
        ("NOTES", "TEXT"),
    ]
    assert all_of(table) == [
        [7, "Bärli", "2024-02-29", "12.50", 1, "Frißt\r\nnicht"],
        [8, "", None, None, None, ""],
    ]


def test_a_foxpro_table_is_read_with_its_memos(tmp_path: Path) -> None:
    rows = [(number, "é" * number * 40) for number in range(1, 30)]
    table = written(tmp_path / "note.dbf", "id N(6,0); text M", rows, "fp", "cp1252")
    assert all_of(table) == [list(row) for row in rows]


def test_a_visual_foxpro_table_is_read_with_its_own_types(tmp_path: Path) -> None:
    moment = dt.datetime(2026, 3, 29, 9, 30)  # noqa: DTZ001
    table = written(
        tmp_path / "visit.dbf",
        "id I; at T; price Y; weight B; paid L null; note M; name C(10) null",
        [
            (1, moment, Decimal("12.34"), 4.25, True, "ök", "Ann"),
            (-2, None, Decimal("-0.05"), 0.0, dbf.Null, "", dbf.Null),
        ],
        "vfp",
        "cp1252",
    )
    assert all_of(table) == [
        [1, "2026-03-29 09:30:00", "12.3400", 4.25, 1, "ök", "Ann"],
        [-2, None, "-0.0500", 0.0, None, "", None],
    ]


def test_deleted_rows_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.dbf"
    table = written(path, "id N(3,0)", [(number,) for number in range(10)], "db3", "cp850")
    with open_dbf(path) as opened:
        for number in (0, 4, 9):
            dbf.delete(opened[number])
    assert [row[0] for row in table.rows()] == [1, 2, 3, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("page", "text"),
    [("cp437", "Åse"), ("cp850", "Øre ß"), ("cp852", "Łódź"), ("cp866", "Пёс"),
     ("cp1250", "Žižka"), ("cp1251", "Кот"), ("cp1252", "Zoë €"), ("cp1253", "Σκύλος")],
)  # fmt: skip
def test_texts_are_read_in_the_code_page_that_the_head_names(
    tmp_path: Path, page: str, text: str
) -> None:
    table = written(tmp_path / "t.dbf", "name C(20)", [(text,)], "db3", page)
    assert all_of(table) == [[text]]


def test_an_encoding_that_is_given_counts_more_than_the_heads(tmp_path: Path) -> None:
    path = tmp_path / "t.dbf"
    written(path, "name C(20)", [("Müller",)], "db3", "cp850")
    patched(path, 29, b"\x03")  # the head says cp1252, as a later program wrote it
    assert all_of(DbfTable("t", path, None)) != [["Müller"]]
    assert all_of(DbfTable("t", path, None, "cp850")) == [["Müller"]]


def test_letters_without_a_code_page_are_no_guess(tmp_path: Path) -> None:
    path = tmp_path / "kunden.dbf"
    written(path, "name C(20)", [("Muller",), ("Müller",)], "db3", "cp850")
    patched(path, 29, b"\0")
    with pytest.raises(CopyError, match=r"kunden\.dbf: NAME has letters .* \?encoding=cp850") as it:
        all_of(DbfTable("kunden", path, None))
    assert "ller" not in str(it.value)
    assert all_of(DbfTable("kunden", path, None, "cp850")) == [["Muller"], ["Müller"]]


def test_one_bad_value_leaves_the_other_rows_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.dbf"
    table = written(
        path,
        "born D; count N(5,0); price N(8,2)",
        [(dt.date(2020, 1, 1), 1, 1.5)] * 3,
        "db3",
        "cp850",
    )
    second = table.head.length + table.head.row + 1
    patched(path, second, b"2019  31" + b" 1 2 " + b"    1,50")
    assert all_of(table) == [
        ["2020-01-01", 1, "1.50"],
        ["2019  31", "1 2", "1,50"],
        ["2020-01-01", 1, "1.50"],
    ]


def test_a_number_too_long_for_its_field_is_none(tmp_path: Path) -> None:
    path = tmp_path / "t.dbf"
    table = written(path, "count N(5,0)", [(1,)], "db3", "cp850")
    patched(path, table.head.length + 1, b"*****")
    assert all_of(table) == [[None]]


def test_a_table_that_ends_before_its_rows_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "t.dbf"
    table = written(path, "id N(3,0)", [(number,) for number in range(10)], "db3", "cp850")
    patched(path, 4, struct.pack("<I", 12))  # a head that was written before the rows
    torn = DbfTable("t", path, None)
    with pytest.raises(TornError, match=r"t\.dbf counts 12 rows and has 10"):
        torn.check_whole()
    with pytest.raises(TornError):
        all_of(torn)
    table.check_whole()


def test_rows_behind_those_that_the_head_counts_are_not_there_yet(tmp_path: Path) -> None:
    path = tmp_path / "t.dbf"
    written(path, "id N(3,0)", [(number,) for number in range(10)], "db3", "cp850")
    patched(path, 4, struct.pack("<I", 8))
    assert len(all_of(DbfTable("t", path, None))) == 8


def test_a_memo_that_leads_past_the_end_is_none(tmp_path: Path) -> None:
    path = tmp_path / "t.dbf"
    table = written(path, "id N(3,0); note M", [(1, "one"), (2, "two")], "fp", "cp1252")
    (tmp_path / "t.fpt").write_bytes((tmp_path / "t.fpt").read_bytes()[:576])
    assert all_of(table) == [[1, "one"], [2, None]]


def test_a_dbase_iv_memo_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.dbf"
    written(path, "id N(3,0); note M", [(1, "later")], "db3", "cp850")
    patched(path, 0, b"\x8b")
    block = b"\xff\xff\x08\0" + struct.pack("<I", 8 + 5) + b"Hallo"
    (tmp_path / "t.dbt").write_bytes(
        struct.pack("<5I", 2, 0, 0, 0, 0) + struct.pack("<H", 512) + bytes(490) + block
    )
    assert all_of(DbfTable("t", path, tmp_path / "t.dbt")) == [[1, "Hallo"]]


def test_a_memo_file_that_is_gone_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.dbf"
    written(path, "id N(3,0); note M", [(1, "one")], "db3", "cp850")
    with pytest.raises(CopyError, match=r"t\.dbf has memos, and their file"):
        all_of(DbfTable("t", path, None))


@pytest.mark.parametrize(
    ("place", "data", "said"),
    [(0, b"\x04", "is of dBASE 7"), (0, b"P", "is no dBASE or FoxPro table"),
     (15, b"\1", "is encrypted"), (10, b"\2\0", "is damaged")],
)  # fmt: skip
def test_what_is_no_table_of_ours_is_told(
    tmp_path: Path, place: int, data: bytes, said: str
) -> None:
    path = tmp_path / "t.dbf"
    written(path, "id N(3,0)", [(1,)], "db3", "cp850")
    patched(path, place, data)
    with pytest.raises(CopyError, match=said):
        DbfTable("t", path, None)


def test_fields_without_a_value_for_partners_are_left_out_and_named(tmp_path: Path) -> None:
    table = written(tmp_path / "t.dbf", "id I; picture G", [(1,)], "vfp", "cp1252")
    assert [one.name for one in table.columns] == ["ID"]
    assert table.omitted == ["t.PICTURE (of the type G)"]
    assert all_of(table) == [[1]]


def test_a_varying_text_has_its_own_length(tmp_path: Path) -> None:
    """No program at hand writes fields of type V: a head and two rows by hand."""
    fields = [("NAME", b"V", 10, 0), ("_NullFlags", b"0", 1, 5)]
    described = b"".join(
        struct.pack("<11sc4xBBB13x", name.encode(), kind, length, 0, flags)
        for name, kind, length, flags in fields
    )
    length = 32 + len(described) + 1 + 263
    head = struct.pack("<B3xIHH20x", 0x32, 2, length, 1 + 11)
    head = head[:29] + b"\x03" + head[30:]
    rows = b" " + b"Ann" + bytes(6) + b"\x03" + b"\1" + b" " + b"Wilhelmine" + b"\0"
    path = tmp_path / "t.dbf"
    path.write_bytes(head + described + b"\r" + bytes(263) + rows)
    assert all_of(DbfTable("t", path, None)) == [["Ann"], ["Wilhelmine"]]
