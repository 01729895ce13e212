"""Reads the tables of an Access file with the programs of mdbtools, each in its time.

The programs get the path behind the options of their own, and no shell. What they print is read as
it comes, so that a large table takes no memory.
"""

import csv
import io
import re
import shutil
import signal
import subprocess  # nosec B404
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import IO, Any, cast

from adapters.copies.tables import Column, CopyError, TornError

PROGRAMS = ("mdb-schema", "mdb-export", "mdb-count")
# Seconds for the structure of a file, and for the rows of one table.
QUICK, LONG = 60.0, 900.0
# The bytes of a table's rows as text, at most, for each byte of the file, and beside them.
TIMES_THE_FILE, BESIDE = 20, 64 << 20
LONGEST_STRUCTURE = 16 << 20
# What stands for no value: no text of a practice has it.
NULL = "\x1anull\x1a"
MOMENT = "%Y-%m-%d %H:%M:%S"
# The day of a time without a day.
NO_DAY = "1899-12-30 "
GUID = "CHAR(36)"
_TABLE = re.compile(r"CREATE TABLE \[(.+)\]").fullmatch
_COLUMN = re.compile(
    r"\t\[(?P<name>.+)\]\t+(?P<kind>[A-Za-z/_0-9 ]+?)(?: \((?P<size>[0-9]+)(?:, (?P<scale>[0-9]+))?"
    r"\))?(?: NOT NULL)?,? *"
).fullmatch
_TYPES = {
    "Boolean": "BOOLEAN",
    "Byte": "INTEGER",
    "Integer": "INTEGER",
    "Long Integer": "INTEGER",
    "Currency": "DECIMAL(19,4)",
    "Single": "DOUBLE",
    "Double": "DOUBLE",
    "DateTime": "DATETIME",
    "Replication ID": GUID,
    "Memo/Hyperlink": "TEXT",
}
csv.field_size_limit(1 << 30)


@dataclass(slots=True)
class AccessTable:
    """A table of an Access file on this machine."""

    path: Path
    name: str
    encoding: str = ""
    bare: bool = False
    columns: list[Column] = field(default_factory=list)
    omitted: list[str] = field(default_factory=list)
    digest: str | None = None
    is_codeless: bool = False

    def add(self, name: str, kind: str, size: str | None, scale: str | None) -> None:
        """Adds a column of that type; one without a value for a partner is left out."""
        declared = _TYPES.get(kind)
        if kind == "Text":
            declared = f"VARCHAR({size})"
        elif kind == "Numeric":
            declared = f"DECIMAL({size},{scale})"
        if declared is None:
            kind = "attachment, large number or the like" if kind.startswith("Unknown") else kind
            self.omitted.append(f"{self.name}.{name} (of the type {kind})")
        else:
            self.columns.append(Column(name, declared))

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yields all rows. Raises TornError where they are fewer or more than the table counts."""
        if self.bare or not self.columns:
            return
        many = 0
        most = TIMES_THE_FILE * self.path.stat().st_size + BESIDE
        # an id of 16 bytes counts as binary
        binary = "hex" if any(one.declared == GUID for one in self.columns) else "strip"
        options = ("-b", binary, "-D", MOMENT, "-T", MOMENT, "-0", NULL)
        told = ["mdb-export", *options, str(self.path), self.name]
        with _running(told, self.encoding, LONG) as printed:
            table = csv.reader(_bounded(printed, most, self.name))
            names = next(table, [])
            try:
                places = [(names.index(one.name), _reads(one)) for one in self.columns]
            except ValueError as error:
                raise TornError(f"the columns of {self.name} cannot be read") from error
            for row in table:
                if len(row) != len(names):
                    raise TornError(f"a row of {self.name} cannot be read")
                many += 1
                yield [None if row[at] == NULL else read(row[at]) for at, read in places]
        counted = _said(["mdb-count", str(self.path), self.name], self.encoding).strip()
        if counted != str(many):
            raise TornError(
                f"{self.name} counts {counted} rows and has {many}: where nothing writes it, have"
                " Access compact and repair the file"
            )


def read_tables(path: Path, encoding: str) -> list[AccessTable]:
    """Returns the tables of an Access file; raises CopyError where it has none to be read."""
    tables: list[AccessTable] = []
    told = ["mdb-schema", "--no-relations", "--no-indexes", str(path), "access"]
    for line in _said(told, encoding).splitlines():
        if begins := _TABLE(line):
            tables.append(AccessTable(path, begins[1], encoding))
        elif tables and (it := _COLUMN(line)):
            tables[-1].add(it["name"], it["kind"], it["size"], it["scale"])
    # what Access keeps for itself, of deleted tables too; and what programs take for an option
    tables = [one for one in tables if not one.name.startswith(("~", "MSys", "USys", "-"))]
    if not tables:
        raise CopyError(
            "it has no tables of its own: where it only links to those of another file, name that"
            " file (often ..._be.mdb or ..._be.accdb)"
        )
    return tables


def _reads(one: Column) -> Any:
    if one.declared == "DATETIME":
        return lambda text: text.removeprefix(NO_DAY)
    if one.declared == GUID:
        return lambda text: bytes.fromhex(text).decode("ascii").strip("{}")
    return str


def _bounded(lines: IO[str], most: int, name: str) -> Iterator[str]:
    """Yields the lines; raises CopyError once they are longer than any true table's would be."""
    for line in lines:
        most -= len(line)
        if most < 0:
            raise CopyError(f"{name} has no end: have Access compact and repair the file")
        yield line


def _said(told: Sequence[str], encoding: str) -> str:
    with _running(told, encoding, QUICK) as printed:
        text = printed.read(LONGEST_STRUCTURE + 1)
        if len(text) > LONGEST_STRUCTURE:
            raise CopyError(f"{told[0]} says too much of the file")
        return text


@contextmanager
def _running(told: Sequence[str], encoding: str, seconds: float) -> Iterator[IO[str]]:
    """Yields what a program prints; raises CopyError where it fails or takes too long."""
    found = shutil.which(told[0])
    if found is None:
        raise CopyError(f"the program {told[0]} is not installed: apt-get install mdbtools")
    environment = {"LC_ALL": "C.UTF-8"}
    if encoding:  # of the texts of Access 97; later ones are Unicode
        environment["MDB_JET3_CHARSET"] = encoding
    # a list of words: a program of mdbtools, options of ours, a path and a name
    program = subprocess.Popen(  # noqa: S603  # nosec B603
        [found, *told[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    limit = Timer(seconds, program.kill)
    limit.start()
    try:
        # newline: those inside of a text are the text's own
        printing = cast(IO[bytes], program.stdout)
        with io.TextIOWrapper(printing, "utf-8", "replace", newline="") as printed:
            yield printed
        code = program.wait()
    finally:
        limit.cancel()
        with suppress(OSError):
            program.kill()
        program.wait()
    if code == -signal.SIGKILL:
        raise CopyError(f"{told[0]} did not end in {seconds:g} seconds")
    if code:
        raise CopyError(
            f"{told[0]} cannot read it: it is no Access file, is damaged, or is encrypted (take the"
            " password away in Access)"
        )
