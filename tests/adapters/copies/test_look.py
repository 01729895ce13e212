"""Looks at files, as the program makes them: each is a copy that is whole, or the former one."""

import multiprocessing
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from adapters.copies import look as looks
from adapters.copies import snapshot
from adapters.copies.look import Outcome, Request, copy_of, look, read_note
from adapters.copies.sources import Source
from tests.adapters.copies.access_files import needs_mdbtools, write_access
from tests.adapters.copies.dbf_files import open_dbf, write_dbf

# A moment that is past for sure, as far as file servers tell times.
LONG_AGO = time.time() - 3600


@pytest.fixture
def practice(tmp_path: Path) -> Path:
    folder = tmp_path / "practice"
    folder.mkdir()
    write_dbf(folder / "CLIENT.DBF", "id N(6,0); name C(20)", [(1, "Ann"), (2, "Bob")])
    write_dbf(folder / "animal.dbf", "id N(6,0); client N(6,0); note M", [(7, 1, "tame")])
    age(folder)
    return folder


@pytest.fixture
def asked(practice: Path, tmp_path: Path) -> Request:
    return Request(kind="dbf", path=str(practice), folder=str(tmp_path / "copy"), pauses=(0.0, 0.0))


def age(folder: Path) -> None:
    for file in folder.iterdir():
        os.utime(file, (LONG_AGO, LONG_AGO))


def settle(request: Request) -> None:
    """Makes the copy one whose files were seen long before as they are."""
    note = read_note(request)
    assert note is not None
    looks._write(copy_of(request), structs.replace(note, since=dict.fromkeys(note.since, LONG_AGO)))


def rows(request: Request, sql: str) -> list[Any]:
    with closing(sqlite3.connect(copy_of(request))) as copy:
        return copy.execute(sql).fetchall()


def test_all_tables_are_copied(asked: Request) -> None:
    assert look(asked).kind == "made"
    assert rows(asked, "SELECT * FROM client JOIN animal ON animal.client = client.id") == [
        (1, "Ann", 7, 1, "tame")
    ]


@needs_mdbtools
def test_an_access_file_is_copied(tmp_path: Path) -> None:
    write_access(tmp_path / "p.mdb", {"Client": ({"ID": "long", "Due": "currency"}, [[1, 12.5]])})
    asked = Request(kind="access", path=str(tmp_path / "p.mdb"), folder=str(tmp_path / "copy"))
    assert look(asked).kind == "made"
    assert rows(asked, "SELECT ID, Due, typeof(Due) FROM Client WHERE Due > 9") == [
        (1, 12.5, "real")
    ]


def test_only_the_gateways_user_reads_the_copy(asked: Request) -> None:
    look(asked)
    folder = Path(asked.folder)
    assert folder.stat().st_mode & 0o077 == 0
    assert {file.name: file.stat().st_mode & 0o077 for file in folder.iterdir()} == {
        copy_of(asked).name: 0,
        copy_of(asked).with_suffix(".json").name: 0,
        "lock": 0,
    }


def test_files_that_are_the_same_are_not_copied_again(asked: Request) -> None:
    first = look(asked)
    made = copy_of(asked).stat().st_ino
    second = look(asked)
    assert second.kind == "same"
    assert second.verified > first.verified
    assert copy_of(asked).stat().st_ino == made


def test_a_change_is_copied_and_a_copy_that_is_open_stays_as_it_is(
    asked: Request, practice: Path
) -> None:
    look(asked)
    with closing(sqlite3.connect(copy_of(asked))) as before:
        before.execute("BEGIN")
        assert before.execute("SELECT count(*) FROM client").fetchall() == [(2,)]
        with open_dbf(practice / "CLIENT.DBF") as table:
            table.append((3, "Cid"))
        age(practice)
        assert look(asked).kind == "made"
        assert before.execute("SELECT count(*) FROM client").fetchall() == [(2,)]
    assert rows(asked, "SELECT count(*), sum(id) FROM client") == [(3, 6)]
    assert rows(asked, "SELECT note FROM animal") == [("tame",)]


def test_only_tables_that_changed_are_copied_again_and_whole(
    asked: Request, practice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(asked)
    settle(asked)
    copy, names = snapshot._copy, []

    def heard(source: Path, target: Path) -> str:
        names.append(source.name)
        return copy(source, target)

    monkeypatch.setattr(snapshot, "_copy", heard)
    with open_dbf(practice / "CLIENT.DBF") as table:
        table.append((3, "Cid"))
    age(practice)
    assert look(asked).kind == "made"
    assert names == ["CLIENT.DBF"] * 2  # as it is new
    names.clear()
    settle(asked)
    # of a table and its memos only one file changed
    memo = practice / "animal.dbt"
    memo.write_bytes(memo.read_bytes().replace(b"tame", b"wild"))
    os.utime(memo, (LONG_AGO + 60, LONG_AGO + 60))
    assert look(asked).kind == "made"
    assert sorted(names) == ["animal.dbf", "animal.dbf", "animal.dbt", "animal.dbt"]
    assert rows(asked, "SELECT note FROM animal") == [("wild",)]
    assert rows(asked, "SELECT count(*) FROM client") == [(3,)]
    names.clear()
    settle(asked)
    assert look(structs.replace(asked, whole=0.0)).kind == "same"
    assert len(names) == 3


def test_a_change_that_the_file_server_does_not_tell_is_copied_in_time(
    asked: Request, practice: Path
) -> None:
    look(asked)
    settle(asked)
    file = practice / "CLIENT.DBF"
    file.write_bytes(file.read_bytes().replace(b"Ann", b"Eva"))
    age(practice)
    assert look(asked).kind == "same"
    assert look(structs.replace(asked, whole=0.0)).kind == "made"
    assert rows(asked, "SELECT name FROM client") == [("Eva",), ("Bob",)]


def test_files_that_were_touched_alone_are_not_copied_again(asked: Request, practice: Path) -> None:
    look(asked)
    for file in practice.iterdir():
        os.utime(file, (LONG_AGO + 60, LONG_AGO + 60))
    assert look(asked).kind == "same"


def test_other_wishes_make_another_copy(asked: Request) -> None:
    look(asked)
    wished = structs.replace(asked, wishes=[["client"], ["client", "id"], ["id"], ["nope"]])
    assert look(wished).kind == "made"
    found = rows(wished, "SELECT name FROM sqlite_master WHERE type = 'index' ORDER BY name")
    names = ['"CLIENT" ("ID")', '"animal" ("CLIENT", "ID")', '"animal" ("ID")']
    assert found == [(name,) for name in names]


def test_tables_that_no_mapping_names_have_columns_and_no_rows(
    asked: Request, practice: Path
) -> None:
    named = structs.replace(asked, named="from client c")
    look(named)
    assert rows(named, "SELECT count(*) FROM animal") == [(0,)]
    assert rows(named, "SELECT name FROM pragma_table_info('animal')") == [
        ("ID",), ("CLIENT",), ("NOTE",),
    ]  # fmt: skip
    # and what becomes of them makes no new copy
    with open_dbf(practice / "animal.dbf") as table:
        table.append((8, 2, ""))
    assert look(named).kind == "same"


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda folder: (folder / "CLIENT.DBF").write_bytes(b""), "CLIENT.DBF is cut off"),
        (lambda folder: (folder / "animal.dbt").unlink(), "its file"),
        (lambda folder: [file.unlink() for file in folder.iterdir()], "holds no table"),
        (lambda folder: folder.rename(folder.with_name("away")), "No such file"),
    ],
)
def test_a_source_that_cannot_be_read_leaves_the_former_copy(
    asked: Request, practice: Path, harm: Any, said: str
) -> None:
    first = look(asked)
    harm(practice)
    if practice.exists():
        age(practice)
    outcome = look(asked)
    assert outcome.kind == "failed"
    assert said.replace("its file", "their file") in outcome.why
    assert outcome.verified == first.verified
    assert rows(asked, "SELECT count(*) FROM client") == [(2,)]


def test_a_copy_of_another_source_is_none(asked: Request, tmp_path: Path) -> None:
    look(asked)
    other = look(structs.replace(asked, path=str(tmp_path / "other")))
    assert (other.kind, other.verified) == ("failed", 0.0)


def test_a_note_that_is_not_of_this_copy_counts_for_nothing(asked: Request) -> None:
    look(asked)
    copy = copy_of(asked)
    other = copy.with_name("other")
    other.write_bytes(b"")
    other.replace(copy)
    assert look(asked).kind == "made"


def test_a_disk_that_is_full_leaves_the_former_copy(
    asked: Request, practice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(asked)

    def full(*_: object) -> None:
        raise sqlite3.OperationalError

    monkeypatch.setattr(looks, "build", full)
    with open_dbf(practice / "CLIENT.DBF") as table:
        table.append((3, "Cid"))
    age(practice)
    assert "the copy cannot be written" in look(asked).why
    assert rows(asked, "SELECT count(*) FROM client") == [(2,)]
    assert {file.name for file in Path(asked.folder).iterdir()} == {
        copy_of(asked).name, copy_of(asked).with_suffix(".json").name, "lock",
    }  # fmt: skip


def test_only_one_process_looks_at_a_time(asked: Request) -> None:
    first = look(asked)
    with looks._alone(Path(asked.folder)) as is_alone:
        assert is_alone
        assert look(asked) == Outcome("busy", first.verified)


def test_a_file_that_changes_while_it_is_read_is_read_again(
    asked: Request, practice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, times = snapshot._copy, []

    def written_meanwhile(source: Path, target: Path) -> str:
        digest = copy(source, target)
        if source.name == "animal.dbf" and not times:
            times.append(1)
            with open_dbf(practice / "CLIENT.DBF") as table:  # which was copied before
                table.append((3, "Cid"))
            age(practice)
        return digest

    monkeypatch.setattr(snapshot, "_copy", written_meanwhile)
    assert "written each time" in look(asked).why
    times.clear()
    assert look(structs.replace(asked, pauses=(0.0, 0.0, 0.0))).kind == "made"
    assert rows(asked, "SELECT count(*) FROM client") == [(4,)]


@pytest.mark.parametrize("behind", [0.0, 5.0, 7200.0, -7200.0])
def test_a_file_that_was_changed_just_now_is_read_twice_whatever_the_servers_clock_shows(
    asked: Request, practice: Path, monkeypatch: pytest.MonkeyPatch, behind: float
) -> None:
    """A second change within the same second may leave the time of change as it is."""
    copy, many, tables = snapshot._copy, structs.replace(asked, pauses=(0.0,) * 3), ("a", "b")
    now = (time.time() - behind) // 2 * 2

    def write(value: str) -> None:
        for name in tables:
            write_dbf(practice / f"{name}.dbf", "id C(1)", [value])
            os.utime(practice / f"{name}.dbf", (now, now))

    def written_meanwhile(source: Path, target: Path) -> str:
        digest = copy(source, target)
        if source.name == "a.dbf" and not times:
            times.append(1)
            write("2")
        return digest

    write("1")
    times: list[int] = []
    monkeypatch.setattr(snapshot, "_copy", written_meanwhile)
    assert "written each time" in look(asked).why
    times.clear()
    write("1")
    assert look(many).kind == "made"
    assert rows(many, "SELECT * FROM a, b") == [("2", "2")]


def test_a_table_that_is_away_after_it_was_copied_is_in_the_copy(
    asked: Request, practice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FoxPro packs a table into a new one, which then takes its name."""
    made = looks._made

    def while_it_is_away(*given: Any, **more: Any) -> Outcome:
        (practice / "CLIENT.DBF").rename(practice / "CLIENT.TMP")
        try:
            return made(*given, **more)
        finally:
            (practice / "CLIENT.TMP").rename(practice / "CLIENT.DBF")

    monkeypatch.setattr(looks, "_made", while_it_is_away)
    assert look(asked).kind == "made"
    assert rows(asked, "SELECT count(*) FROM client") == [(2,)]


def test_a_table_that_is_away_for_a_moment_is_not_taken_for_removed(
    asked: Request, practice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(asked)
    settle(asked)
    files, calls = Source.files, []

    def away(source: Source) -> list[Path]:
        calls.append(1)
        return [one for one in files(source) if len(calls) > 3 or one.name != "CLIENT.DBF"]

    monkeypatch.setattr(Source, "files", away)
    look(asked)
    assert len(calls) > 3
    assert rows(asked, "SELECT count(*) FROM client") == [(2,)]
    (practice / "CLIENT.DBF").unlink()
    assert look(asked).kind == "made"
    assert rows(asked, "SELECT count(*) FROM sqlite_master WHERE name = 'CLIENT'") == [(0,)]


def test_indices_have_names_of_their_own(asked: Request, practice: Path) -> None:
    for name, column in (("a", "b_c"), ("a_b", "c")):
        write_dbf(practice / f"{name}.dbf", f"{column} C(1)", ["1"])
    assert look(structs.replace(asked, wishes=[["b_c"], ["c"]])).kind == "made"


@pytest.mark.parametrize(
    ("given", "codeless"),
    [({}, ["old"]), ({"encoding": "cp850"}, []), ({"named": "client"}, [])],
)
def test_tables_whose_letters_are_unknown_are_told(
    asked: Request, practice: Path, given: dict[str, str], codeless: list[str]
) -> None:
    for name, kind in (("old", "C(1)"), ("numbers", "N(1,0)")):
        file = practice / f"{name}.dbf"
        write_dbf(file, f"it {kind}", [(None,)])
        raw = bytearray(file.read_bytes())
        raw[29] = 0  # where the code page is named
        file.write_bytes(raw)
    request = structs.replace(asked, **given)
    assert look(request).codeless == codeless
    assert look(request).codeless == codeless


def test_a_file_that_was_new_when_it_was_read_is_read_once_more(
    asked: Request, practice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file server that tells times by the second: the size and the time stay as they are."""
    many = structs.replace(asked, pauses=(0.0, 0.0))
    file = practice / "CLIENT.DBF"
    os.utime(file)
    now = file.stat().st_mtime
    assert look(many).kind == "made"
    file.write_bytes(file.read_bytes().replace(b"Ann", b"Eva"))
    os.utime(file, (now, now))
    assert look(many).kind == "made"
    assert rows(asked, "SELECT name FROM client") == [("Eva",), ("Bob",)]


def desk(folder: str, going: Any) -> None:
    """Books at the desk: a row of the first table, then one of the second that names it."""
    with (
        open_dbf(Path(folder, "CLIENT.DBF")) as clients,
        open_dbf(Path(folder, "animal.dbf")) as animals,
    ):
        number = 100
        while going.is_set():
            number += 1
            clients.append((number, f"name {number}"))
            animals.append((number, number, f"note {number} " * 30))
            for table in (clients, animals):
                table._meta.dfd.flush()
                if table._meta.mfd is not None:
                    table._meta.mfd.flush()
            time.sleep(0.6 if number % 7 == 0 else 0.002)


def test_a_mapping_that_is_tried_has_a_copy_of_its_own(asked: Request) -> None:
    look(asked)
    tried = structs.replace(asked, named="from client c")
    assert look(tried).kind == "made"
    assert rows(asked, "SELECT count(*) FROM animal") == [(1,)]
    assert look(asked).kind == "same"
    # until nobody looks at it any more
    for file in (copy_of(tried), copy_of(tried).with_suffix(".json")):
        os.utime(file, (LONG_AGO, LONG_AGO))
    look(asked)
    assert not copy_of(tried).exists()
    assert copy_of(asked).exists()


@pytest.mark.timeout(120)
def test_a_source_that_a_desk_keeps_writing_is_never_half_read(
    asked: Request, practice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = snapshot._copy

    def slowly(source: Path, target: Path) -> str:
        digest = copy(source, target)
        time.sleep(0.02)  # as over a network
        return digest

    monkeypatch.setattr(snapshot, "_copy", slowly)
    spawning = multiprocessing.get_context("spawn")
    going = spawning.Event()
    going.set()
    writer = spawning.Process(target=desk, args=(str(practice), going))
    writer.start()
    many = structs.replace(asked, pauses=(0.0, 0.05, 0.1, 0.2, 0.2, 0.3, 0.3))
    seen, until = set(), time.monotonic() + 60
    try:
        while len(seen) < 4 and time.monotonic() < until:
            outcome = look(many)
            assert outcome.kind in ("made", "failed", "same"), outcome
            assert (
                outcome.kind != "failed"
                or "written each time" in outcome.why
                or ("counts" in outcome.why)
            ), outcome
            if outcome.verified:
                [(clients, animals)] = rows(
                    asked, "SELECT (SELECT count(*) FROM client), (SELECT count(*) FROM animal)"
                )
                assert clients == animals + 1
                assert rows(
                    asked,
                    "SELECT count(*) FROM animal a WHERE a.id > 100 AND"
                    " (a.note IS NULL OR a.note NOT LIKE 'note ' || a.id || ' %')",
                ) == [(0,)]
                assert rows(
                    asked,
                    "SELECT count(*) FROM animal a LEFT JOIN client c ON c.id = a.client"
                    " WHERE c.id IS NULL",
                ) == [(0,)]
                seen.add(animals)
    finally:
        going.clear()
        writer.join(20)
    assert len(seen) >= 2
    age(practice)
    assert look(asked).kind != "failed"
    with open_dbf(practice / "animal.dbf") as table:
        assert rows(asked, "SELECT count(*) FROM animal") == [(len(table),)]
