"""The files of a practice system, and the tables in a copy of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from adapters.copies.access_tables import read_tables
from adapters.copies.dbf_tables import DbfTable
from adapters.copies.tables import CopyError, SourceTable

# The bytes of a table that have its head, whatever its fields.
LONGEST_HEAD = 1 << 16
_MEMO_ENDS = (".fpt", ".dbt")


@dataclass(frozen=True, slots=True)
class Source:
    """Where the files are, and in which code page, if the files do not say so themselves.

    Only tables whose names are in the text `named` are read; of the others the copy has the
    columns. Where it is None, all are read.
    """

    kind: str
    path: Path
    encoding: str = ""
    named: str | None = None

    def files(self) -> Sequence[Path]:
        """Returns the files to copy; raises OSError, and CopyError where there are none."""
        if self.kind == "access":
            return [self.path]
        tables, memos = self._tables_and_memos()
        chosen = [file for file in tables if self._is_named(file.stem)]
        if not chosen:
            raise CopyError(f"the mapping names no table of {self.path}")
        found = (memos.get(file.stem.lower()) for file in chosen)
        return [*chosen, *(memo for memo in found if memo is not None)]

    def tables(self, folder: Path, digests: Mapping[str, str]) -> Sequence[SourceTable]:
        """Returns the tables of the copied files in the folder, by name; raises CopyError."""
        if self.kind == "access":
            inside = read_tables(folder / self.path.name, self.encoding)
            for one in inside:
                if not self._is_named(one.name):
                    one.bare, one.omitted = True, []
            return inside
        made: list[SourceTable] = []
        tables, memos = _sorted_out(self.path / name for name in sorted(digests))
        for file in tables:
            memo = memos.get(file.stem.lower())
            digest = digests[file.name] + (digests[memo.name] if memo else "")
            copy, beside = folder / file.name, memo and folder / memo.name
            if not copy.exists():  # it did not change, and its rows are not asked for
                copy, beside = _head_of(file, folder), None
            made.append(DbfTable(file.stem, copy, beside, self.encoding, digest=digest))
        return [*made, *self._bare(folder)]

    def _bare(self, folder: Path) -> Iterator[SourceTable]:
        """Yields the tables that are not named, as far as they have a head of use."""
        with suppress(OSError, CopyError):
            for file in self._tables_and_memos()[0]:
                if not self._is_named(file.stem):
                    with suppress(OSError, CopyError):
                        bare = DbfTable(file.stem, _head_of(file, folder), None, bare=True)
                        bare.omitted = []
                        yield bare

    def check(self, folder: Path) -> Callable[[], None]:
        """Returns what raises TornError where the files in the folder cannot be whole."""

        def check() -> None:
            for copy in sorted(folder.iterdir()):
                if self.kind == "dbf" and copy.suffix.lower() == ".dbf":
                    DbfTable(copy.stem, copy, None).check_whole()

        return check

    def _is_named(self, table: str) -> bool:
        return self.named is None or table.lower() in self.named

    def _tables_and_memos(self) -> tuple[list[Path], dict[str, Path]]:
        if not self.path.is_dir():
            self.path.stat()
            raise CopyError(f"{self.path} is no folder: name the folder that holds the tables")
        tables, memos = _sorted_out(sorted(self.path.iterdir()))
        names = [file.stem.lower() for file in tables]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise CopyError(f"{self.path} has two tables {twice}: move one away")
        if not tables:
            raise CopyError(f"{self.path} holds no table (.dbf)")
        return tables, memos


def _sorted_out(files: Iterable[Path]) -> tuple[list[Path], dict[str, Path]]:
    """Returns the tables, and the files of memos by their stems."""
    every = list(files)
    memos = {file.stem.lower(): file for file in every if file.suffix.lower() in _MEMO_ENDS}
    return [file for file in every if file.suffix.lower() == ".dbf"], memos


def _head_of(file: Path, folder: Path) -> Path:
    """Copies the head of a table alone."""
    head = folder / f"{file.name}.head"
    with file.open("rb") as read:
        head.write_bytes(read.read(LONGEST_HEAD))
    return head
