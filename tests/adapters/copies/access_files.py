"""Writes small Access files (Jet 4), as far as the programs of mdbtools read them.

The form is that of mdbtools' own description of the format: pages of 4 KiB, of which the first is
the head, one describes each table, and the others hold rows. There are no indices.
"""

import shutil
import struct
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

needs_mdbtools = pytest.mark.skipif(
    shutil.which("mdb-export") is None, reason="mdb-export comes with mdbtools"
)
PAGE = 4_096
# The catalogue of tables stands on a page that is always the same.
CATALOGUE = 2
KINDS = {
    "boolean": (0x01, 0), "byte": (0x02, 1), "integer": (0x03, 2), "long": (0x04, 4),
    "currency": (0x05, 8), "double": (0x07, 8), "datetime": (0x08, 8), "guid": (0x0F, 16),
    "text": (0x0A, None), "ole": (0x0B, None), "memo": (0x0C, None),
}  # fmt: skip
_PACKED = {"byte": "<B", "integer": "<h", "long": "<i", "double": "<d"}
_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001 - on the clock of the clinic's wall
Columns = dict[str, str]


def write_access(path: Path, tables: dict[str, tuple[Columns, Sequence[Sequence[Any]]]]) -> None:
    """Writes a file with the tables: for each its columns (name: kind), and its rows."""
    pages = [_head(), bytes(PAGE), bytes(PAGE)]
    catalogue = []
    for name, (columns, rows) in tables.items():
        number = _add_table(pages, None, columns, rows, "N")
        catalogue.append([number, name, 1, 0, None])
    known = {"Id": "long", "Name": "text", "Type": "integer", "Flags": "long", "LvProp": "ole"}
    _add_table(pages, CATALOGUE, known, catalogue, "S")
    path.write_bytes(b"".join(pages))


def _head() -> bytes:
    secret = bytearray(128)
    struct.pack_into("<H", secret, 0x3C - 0x18, 1252)
    plain = b"\0\1\0\0Standard Jet DB\0" + struct.pack("<I", 1)
    whole = plain + _rc4(b"\xc7\xda\x39\x6b", bytes(secret))
    return whole.ljust(PAGE, b"\0")


def _rc4(key: bytes, data: bytes) -> bytes:
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


def _add_table(
    pages: list[bytes],
    number: int | None,
    columns: Columns,
    rows: Sequence[Sequence[Any]],
    kind: str,
) -> int:
    if number is None:
        pages.append(b"")
        number = len(pages) - 1
    first = len(pages)
    pages.extend(_data_pages(number, [_row(columns, row) for row in rows]))
    used = bytearray(PAGE - 64)
    for page in range(first, len(pages)):
        used[5 + page // 8] |= 1 << page % 8
    pages.append(next(_data_pages(1, [bytes(used)])))
    pages[number] = _description(columns, len(rows), kind, (len(pages) - 1) << 8)
    return number


def _data_pages(table: int, rows: Sequence[bytes]) -> Iterator[bytes]:
    left = list(rows)
    while left:
        page, end, offsets = bytearray(PAGE), PAGE, []
        while left and end - len(left[0]) >= 14 + 2 * (len(offsets) + 1):
            row = left.pop(0)
            end -= len(row)
            page[end : end + len(row)] = row
            offsets.append(end)
        free = end - 14 - 2 * len(offsets)
        page[:14] = struct.pack("<BBHIIH", 1, 1, free, table, 0, len(offsets))
        page[14 : 14 + 2 * len(offsets)] = struct.pack(f"<{len(offsets)}H", *offsets)
        yield bytes(page)


def _description(columns: Columns, count: int, kind: str, used: int) -> bytes:
    described, names, fixed, varying = b"", b"", 0, 0
    for place, (name, typed) in enumerate(columns.items()):
        code, size = KINDS[typed]
        is_fixed, length = size is not None, {"text": 510}.get(typed, size or 0)
        described += struct.pack(
            "<BIHHHIBB4xHH",
            *(code, 0, place, varying, place, 0, 2 | is_fixed, 0, fixed if is_fixed else 0, length),
        )
        fixed, varying = fixed + (size or 0), varying + (not is_fixed)
        spelt = name.encode("utf-16-le")
        names += struct.pack("<H", len(spelt)) + spelt
    head = struct.pack("<BBHII", 2, 1, 0, 0, 63 + len(described) + len(names))
    head += struct.pack("<II4x4x4x8x", 0, count)
    many = len(columns)
    head += struct.pack("<BHHHIIII", ord(kind), many, varying, many, 0, 0, used, used)
    return (head + described + names).ljust(PAGE, b"\0")


def _row(columns: Columns, row: Sequence[Any]) -> bytes:
    fixed, varying, mask = b"", [], 0
    for place, (kind, value) in enumerate(zip(columns.values(), row, strict=True)):
        size = KINDS[kind][1]
        if value is not None and value is not False:
            mask |= 1 << place
        if size is None:
            varying.append(b"" if value is None else _varying(kind, value))
        else:
            fixed += bytes(size) if value is None or not size else _fixed(kind, value)
    data, offsets = struct.pack("<H", len(row)) + fixed, []
    for one in varying:
        offsets.append(len(data))
        data += one
    offsets.append(len(data))
    data += b"".join(struct.pack("<H", offset) for offset in reversed(offsets))
    data += struct.pack("<H", len(varying))
    return data + mask.to_bytes((len(row) + 7) // 8, "little")


def _varying(kind: str, value: Any) -> bytes:
    data: bytes = value.encode("utf-16-le") if isinstance(value, str) else value
    if kind == "text":
        return data
    return struct.pack("<III", len(data) | 0x80000000, 0, 0) + data


def _fixed(kind: str, value: Any) -> bytes:
    if kind == "datetime":
        return struct.pack("<d", (value - _EPOCH).total_seconds() / 86_400)
    if kind == "currency":
        return struct.pack("<q", round(value * 10_000))
    if kind == "guid":
        return bytes(value)
    return struct.pack(_PACKED[kind], value)
