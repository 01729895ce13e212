"""Reads dBASE and FoxPro tables: a file with a head and rows of one length, and a file of memos.

A value that is not in its type's form is kept as the text that stands there, so that whoever reads
the copy can tell of it. One bad value is no reason to have no table.

The library `dbf` (0.99), by which the tests write tables, reads neither dBASE IV tables with memos
nor Visual FoxPro tables with texts of varying length, which practices have.
"""

import mmap
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from adapters.copies.code_pages import BY_MARK, TO_SAY_IT
from adapters.copies.tables import Column, CopyError, TornError

VISUAL = frozenset({0x30, 0x31, 0x32})
# The kinds of memo files by the first byte of the table.
MEMOS = {
    0x83: "dbt", 0x8B: "dbt4", 0xCB: "dbt4", 0x30: "fpt", 0x31: "fpt", 0x32: "fpt", 0xF5: "fpt",
}  # fmt: skip
PLAIN = frozenset({0x03, 0x43, 0x63, 0xFB})
_HEAD = struct.Struct("<B3xIHH2xBB12xBB2x")
_FIELD = struct.Struct("<11sc4xBBB13x")
# The Julian day before the first of Python's.
_BEFORE = 1_721_425
_SYSTEM, _NULLABLE, _BINARY = 1, 2, 4
_BLANK = b" \0"
_DELETED, _OVERFLOW = b"**"
# The digits that a number may have to be surely one of 64 bits.
_LONGEST_INTEGER = 19
_INTEGER, _LONG, _DOUBLE, _TWO = map(struct.Struct, ("<i", "<q", "<d", "<II"))
_LOGICAL = {letter.encode(): int(letter in "tTyY") for letter in "tTyYfFnN"}
# Rows that are read at once.
AT_ONCE = 4_096
Decode = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class DbfField:
    """A field of a table, at `start` in each row; its bits in the flags of nulls, where it has."""

    name: str
    kind: str
    start: int
    length: int
    decimals: int
    flags: int
    varies_at: int | None = None
    null_at: int | None = None

    @property
    def end(self) -> int:
        return self.start + self.length


@dataclass(frozen=True, slots=True)
class DbfHead:
    """The head of a table."""

    version: int
    count: int
    length: int
    row: int
    mark: int
    fields: tuple[DbfField, ...]

    @property
    def size(self) -> int:
        """The least bytes that a file with all its rows has."""
        return self.length + self.count * self.row


def read_head(name: str, raw: bytes) -> DbfHead:
    """Returns the head that a table begins with; raises CopyError where it has none of use."""
    if len(raw) < _HEAD.size + 1:
        raise TornError(f"{name} is cut off in its head")
    version, count, length, row, _, encrypted, _, mark = _HEAD.unpack_from(raw)
    if version & 7 == 4:
        raise CopyError(
            f"{name} is of dBASE 7, which is not read: leave it out of the mapping, or have it"
            " exported as dBASE III"
        )
    if version not in MEMOS and version not in PLAIN and version not in VISUAL:
        raise CopyError(f"{name} is no dBASE or FoxPro table, by its first byte ({version:#04x})")
    if encrypted:
        raise CopyError(f"{name} is encrypted: have it decrypted in the practice system")
    if len(raw) < length:
        raise TornError(f"{name} is cut off in its head")
    fields = tuple(_fields(raw[:length], version in VISUAL))
    if not fields or fields[-1].end > row:
        raise CopyError(f"the head of {name} is damaged: its fields do not make a row")
    return DbfHead(version, count, length, row, mark, fields)


def _fields(raw: bytes, visual: bool) -> Iterator[DbfField]:
    start, bits = 1, 0
    for place in range(_HEAD.size, len(raw) - _FIELD.size, _FIELD.size):
        if raw[place] in b"\r\0":
            return
        spelt, letter, length, decimals, flags = _FIELD.unpack_from(raw, place)
        kind = letter.decode("latin-1")
        if kind == "C":  # long texts have their length in both bytes
            length, decimals = length + 256 * decimals, 0
        flags = flags if visual else 0
        varies_at = null_at = None
        if visual and kind in "VQ":
            varies_at, bits = bits, bits + 1
        if flags & _NULLABLE:
            null_at, bits = bits, bits + 1
        name = spelt.partition(b"\0")[0].decode("latin-1").strip()
        yield DbfField(name, kind, start, length, decimals, flags, varies_at, null_at)
        start += length


@dataclass(slots=True)
class DbfTable:
    """A table on this machine, and the file of its memos if it has one.

    `encoding` is the code page of texts; where it is empty, the one that the table names is. With
    `bare` its rows are left out.
    """

    name: str
    path: Path
    memo: Path | None
    encoding: str = ""
    digest: str | None = None
    bare: bool = False
    omitted: list[str] = field(default_factory=list)
    columns: Sequence[Column] = field(init=False)
    head: DbfHead = field(init=False)
    _copied: list[DbfField] = field(init=False)

    def __post_init__(self) -> None:
        with self.path.open("rb") as file:
            self.head = read_head(self.path.name, file.read(65_536))
        visual, self._copied, columns = self.head.version in VISUAL, [], []
        for one in self.head.fields:
            declared = _declared(one, visual)
            if declared is not None:
                self._copied.append(one)
                columns.append(Column(one.name, declared))
            elif not one.flags & _SYSTEM and one.kind != "0":
                self.omitted.append(f"{self.name}.{one.name} (of the type {one.kind})")
        self.columns = columns

    @property
    def is_codeless(self) -> bool:
        has_texts = not self.bare and any(one.kind in "CVM" for one in self._copied)
        return has_texts and not self._codec

    @property
    def _codec(self) -> str:
        return self.encoding or BY_MARK.get(self.head.mark, "")

    def check_whole(self) -> None:
        """Raises TornError where the file ends before the rows that its head counts."""
        size = self.path.stat().st_size
        if size < self.head.size:
            there = max(0, size - self.head.length) // self.head.row
            raise TornError(
                f"{self.path.name} counts {self.head.count} rows and has {there}: where nothing"
                " writes it, have the practice system repair it"
            )

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yields the rows that are not marked as deleted."""
        if self.bare:
            return
        with ExitStack() as stack:
            memos = self._memos(stack)
            decoders = [self._decoder(one, memos) for one in self._copied]
            for row in self._raw():
                yield [decode(row) for decode in decoders]

    def _raw(self) -> Iterator[bytes]:
        head = self.head
        with self.path.open("rb") as file:
            file.seek(head.length)
            for before in range(0, head.count, AT_ONCE):
                wanted = min(AT_ONCE, head.count - before) * head.row
                some = file.read(wanted)
                if len(some) < wanted:
                    self.check_whole()
                for at in range(0, len(some) - head.row + 1, head.row):
                    if some[at] != _DELETED:
                        yield some[at : at + head.row]

    def _decoder(self, one: DbfField, memos: "Memos | None") -> Decode:
        """Returns what makes a field's value of its row."""
        plain = self._plain(one, memos)
        start, end = one.start, one.end
        if one.varies_at is not None:
            flagged = self._flag(one.varies_at)
            inner = plain

            def varying(row: bytes) -> Any:
                return inner(row[start : start + row[end - 1]] if flagged(row) else row[start:end])

            plain_of_row = varying
        else:

            def plain_of_row(row: bytes) -> Any:
                return plain(row[start:end])

        if one.null_at is None:
            return plain_of_row
        is_null = self._flag(one.null_at)
        return lambda row: None if is_null(row) else plain_of_row(row)

    def _flag(self, bit: int) -> Callable[[bytes], bool]:
        flags = next((one for one in self.head.fields if one.kind == "0"), None)
        if flags is None or bit >= flags.length * 8:
            return lambda row: False
        place, mask = flags.start + bit // 8, 1 << bit % 8
        return lambda row: bool(row[place] & mask)

    def _plain(self, one: DbfField, memos: "Memos | None") -> Decode:
        codec = self._codec
        text = partial(_text, codec or f"{self.path.name}: {one.name}", bool(codec))
        kinds: dict[str, Decode] = {
            "C": text,
            "V": text,
            "D": _day,
            "L": _LOGICAL.get,
            "I": lambda raw: _INTEGER.unpack(raw)[0],
            "B": lambda raw: _DOUBLE.unpack(raw)[0],
            "Y": lambda raw: f"{_LONG.unpack(raw)[0] / 10_000:.4f}",
            "T": _moment,
        }
        if one.kind == "M":
            return lambda raw: None if memos is None else memos.text(raw, text)
        return kinds.get(one.kind, _number)

    def _memos(self, stack: ExitStack) -> "Memos | None":
        if not any(one.kind == "M" for one in self._copied):
            return None
        kind = MEMOS.get(self.head.version)
        if self.memo is None or kind is None:
            raise CopyError(
                f"{self.path.name} has memos, and their file (.fpt or .dbt) is not beside it"
            )
        return stack.enter_context(Memos(self.memo, kind))


class Memos:
    """The file of a table's memos, open."""

    def __init__(self, path: Path, kind: str) -> None:
        self._path, self._kind = path, kind

    def __enter__(self) -> "Memos":
        with self._path.open("rb") as file, suppress(ValueError):  # empty
            self._raw: bytes | mmap.mmap = b""
            self._raw = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        places = {"fpt": (6, "big"), "dbt4": (20, "little")}
        self._block = 512
        if self._kind in places:
            at, order = places[self._kind]
            self._block = int.from_bytes(self._raw[at : at + 2], order) or 512  # type: ignore[arg-type]
        return self

    def __exit__(self, *error: object) -> None:
        if isinstance(self._raw, mmap.mmap):
            self._raw.close()

    def text(self, pointer: bytes, text: Decode) -> Any:
        """Returns the memo that a row points at; None where it has none, or one past the end."""
        if len(pointer) == _INTEGER.size:
            number = int.from_bytes(pointer, "little")
        else:
            digits = pointer.strip(_BLANK)
            number = int(digits) if digits.isdigit() else 0
        at = number * self._block
        if not 0 < at < len(self._raw):
            return None
        if self._kind == "dbt":
            end = self._raw.find(b"\x1a", at)
            return text(self._raw[at : end if end >= 0 else len(self._raw)])
        order: Any = "big" if self._kind == "fpt" else "little"
        length = int.from_bytes(self._raw[at + 4 : at + 8], order)
        if self._kind == "dbt4":
            length -= 8
        if length < 0 or at + 8 + length > len(self._raw):
            return None
        return text(self._raw[at + 8 : at + 8 + length])


def _declared(one: DbfField, visual: bool) -> str | None:
    """Returns the type of the field's column; None where it has no value for a partner."""
    if one.flags & _SYSTEM or one.kind == "0" or (one.kind == "B" and not visual):
        return None
    if one.kind == "M":
        return None if one.flags & _BINARY else "TEXT"
    if one.kind in "NF":
        if one.decimals:
            return f"DECIMAL({one.length},{one.decimals})"
        return "INTEGER" if one.length < _LONGEST_INTEGER else "NUMERIC"
    if one.kind in "CV":
        return f"VARCHAR({one.length})"
    simple = {"D": "DATE", "L": "BOOLEAN", "I": "INTEGER", "B": "DOUBLE", "T": "DATETIME"}
    return "DECIMAL(19,4)" if one.kind == "Y" else simple.get(one.kind)


def _text(codec: str, is_known: bool, raw: bytes) -> str:
    """Returns the text in the code page; or in ASCII, where `codec` is the field's place."""
    raw = raw.rstrip(_BLANK)
    if is_known:
        return raw.decode(codec, "replace")
    try:
        return raw.decode("ascii")
    except UnicodeDecodeError as error:
        raise CopyError(
            f"{codec} has letters beyond ASCII, and the table names no code page: {TO_SAY_IT}"
        ) from error


def _number(raw: bytes) -> int | str | None:
    raw = raw.strip(_BLANK)
    if not raw or raw[0] == _OVERFLOW:  # a number that was too long for its field
        return None
    with suppress(ValueError):
        number = int(raw)
        if -(1 << 63) <= number < 1 << 63:
            return number
    # the column's type makes a number of it where it is one
    return raw.decode("latin-1")


def _day(raw: bytes) -> str | None:
    if not raw.strip(b" \00"):
        return None
    shown = raw.decode("latin-1")
    with suppress(ValueError):
        return date(int(shown[:4]), int(shown[4:6]), int(shown[6:])).isoformat()
    return shown


def _moment(raw: bytes) -> str | None:
    days, milliseconds = _TWO.unpack(raw)
    if not days:
        return None
    # FoxPro may store a second as one thousandth less
    minutes, seconds = divmod((milliseconds + 500) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    with suppress(ValueError, OverflowError):
        day = date.fromordinal(days - _BEFORE)
        return f"{day.isoformat()} {hours:02}:{minutes:02}:{seconds:02}"
    return f"{days} {milliseconds}"
