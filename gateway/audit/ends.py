"""The last lines of processes that died: verified, and the store is told of them.

A process tells the store of its head beside its writing. What it wrote last before it was killed
nobody has told; until somebody does, it could be cut off unnoticed.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path

from gateway.audit.chain import Head
from gateway.audit.chains import Chains, Known
from gateway.audit.files import DayFile, day_files, is_open
from gateway.audit.secrets import Secret
from gateway.audit.walk import Broken, Walk, rest

# Bytes that hold the last line of a file, whatever it is.
_LONGEST = 128 << 10
_seq = re.compile(rb'\{"seq":([0-9]{1,18}),').match
_mac = re.compile(rb'.*,"mac":"([0-9a-f]{64})"\}\n').fullmatch


class Ends:
    """Of the chains of one folder; each that has ended is looked at once."""

    def __init__(self, chains: Chains, folder: Path, now: Callable[[], datetime]) -> None:
        self._chains = chains
        self._folder = folder
        self._now = now
        self._settled: set[str] = set()

    async def record(self, secrets: Callable[[], Sequence[Secret]]) -> None:
        """Tell the store of what it does not know yet. StoreError, OSError.

        What is not as it was written stays as it is: `audit verify` says so.
        """
        files = sorted(day_files(self._folder), key=lambda each: (each.chain, each.day))
        own = {chain: list(group) for chain, group in groupby(files, key=lambda each: each.chain)}
        for each in await self._chains.known():
            if each.ended or each.id in self._settled or not _is_dead(own.get(each.id, [])):
                continue
            if _last_seq(own[each.id][-1].path) > each.head.seq:
                await self._record(each, own[each.id], secrets())
            self._settled.add(each.id)

    async def _record(
        self, known: Known, files: Sequence[DayFile], secrets: Sequence[Secret]
    ) -> None:
        try:
            walk = await asyncio.to_thread(_walked, self._folder, known, files, secrets)
        except (Broken, FileNotFoundError):
            return
        if walk.head.seq > known.head.seq:
            await self._chains.advance(known.id, walk.head, self._now(), ended=walk.ended)


def _is_dead(files: Sequence[DayFile]) -> bool:
    """Whether nobody writes any more; a file without a byte may just be begun."""
    return bool(files) and files[-1].path.stat().st_size > 0 and not is_open(files[-1].path)


def _walked(
    folder: Path, known: Known, files: Sequence[DayFile], secrets: Sequence[Secret]
) -> Walk:
    """Along what may go beyond the recorded head, from a file that holds it or follows it."""
    walk = Walk(folder, known, secrets, rest)
    for at in range(len(files) - 1, -1, -1):
        first = _first(files[at].path)
        if first is None or first.seq > known.head.seq + 1:
            continue
        walk.join(None if first.seq == known.head.seq + 1 else first)
        for each in walk.remaining(files[at:]):
            walk.file(each)
        break
    return walk


def _first(path: Path) -> Head | None:
    """The first line's number and mac, unverified."""
    with path.open("rb") as lines:
        return _head(lines.readline())


def _last_seq(path: Path) -> int:
    """The number of the last whole line, unverified; 0 where there is none."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _LONGEST))
        lines = file.read().split(b"\n")[:-1]
    head = _head(lines[-1] + b"\n") if lines else None
    return 0 if head is None else head.seq


def _head(line: bytes) -> Head | None:
    seq, mac = _seq(line), _mac(line)
    return Head(int(seq[1]), bytes.fromhex(mac[1].decode())) if seq and mac else None
