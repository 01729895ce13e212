"""Looks entries up in the day files: those of one request, the last ones of a key."""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import DecodeError, json

from gateway.audit.files import day_files


def find_entries(folder: Path, request_id: str) -> list[dict[str, Any]]:
    """The entries of a request as JSON members, in the order of time; ids may come twice."""
    needle = b'"requestId":%b,' % json.encode(request_id)
    found = [each for line in _lines(folder, needle) if (each := _entry(line))]
    return sorted(found, key=lambda each: str(each["time"]))


def last_entries(folder: Path, key_id: str, most: int) -> list[dict[str, Any]]:
    """The last entries of a key, the newest first: from the newest days, until there are enough."""
    needle = b'"keyId":%b,' % json.encode(key_id)
    found: list[dict[str, Any]] = []
    newest = sorted({each.day for each in day_files(folder)}, reverse=True)
    for day in newest:
        of_day: list[dict[str, Any]] = []
        for each in day_files(folder):
            if each.day == day:
                of_day += _last_in(each.path, needle, most)
        found += sorted(of_day, key=lambda entry: str(entry["time"]), reverse=True)
        if len(found) >= most:
            break
    return found[:most]


def _last_in(path: Path, needle: bytes, most: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in _backwards(path, needle):
        if entry := _entry(line):
            found.append(entry)
        if len(found) == most:
            break
    return found


def _lines(folder: Path, needle: bytes) -> Iterator[bytes]:
    """Every line with that in it, of the newest files first."""
    for each in reversed(day_files(folder)):
        yield from _backwards(each.path, needle)


def _backwards(path: Path, needle: bytes) -> Iterator[bytes]:
    """The whole lines of a file with that in it, the last first."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            end = len(data)
            while (at := data.rfind(needle, 0, end)) >= 0:
                start = data.rfind(b"\n", 0, at) + 1
                stop = data.find(b"\n", at)
                if stop >= 0:
                    yield data[start:stop]
                end = start


def _entry(line: bytes) -> dict[str, Any] | None:
    """An entry as it was written; None for what is none."""
    try:
        read = json.decode(line)
    except DecodeError:
        return None
    return read if isinstance(read, dict) and "outcome" in read else None
