"""The entries of this machine's audit that somebody looks for, a page at a time."""

import asyncio
import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path

from gateway.audit.chains import DayFile, day_files
from gateway.audit.entries import AuditLine
from gateway.audit.index import Index, IndexProgress
from gateway.audit.questions import days_with, first_loss, known_days
from gateway.audit.search import EntryFilter, Search, SearchCursor
from gateway.store import Store

# Seconds that are spent on reading for one page.
BUDGET = 0.05
# Days that the index is asked about at once: of keys and records it tells at little cost.
DAYS, DAYS_OF_ALL = 1_000, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Entries, the newest first; `rest` is where to go on, None where there are no more.

    `in_time` is whether there was time to find as many as were asked for, or all.
    """

    entries: Sequence[AuditLine]
    rest: SearchCursor | None
    in_time: bool


@dataclass(frozen=True, slots=True)
class _Spanned:
    """A file, and the first day whose calls it may tell of: where those before it end."""

    file: DayFile
    since: date

    def has_one(self, days: Sequence[date]) -> bool:
        """Whether one of the days, in their order, is of it."""
        return bisect_left(days, self.since) < bisect_right(days, self.file.day)


async def find_entries(
    store: Store,
    folder: Path,
    wanted: EntryFilter,
    most: int,
    place: SearchCursor | None = None,
    budget: float | None = None,
) -> Found:
    """As many, from that place on; after so many seconds, what was found by then.

    Something is read each time, so that whoever goes on comes to the end. StoreError, OSError.
    """
    deadline = time.monotonic() + (BUDGET if budget is None else budget)
    files = [each for each in await asyncio.to_thread(_spanned, folder) if _may_have(each, wanted)]
    files = [each for each in files if place is None or each.file.day <= place.day]
    search, index = Search(wanted, most, place), None
    rest: Sequence[_Spanned] = files
    while True:
        some, rest = _parted(rest, wanted)
        if wanted.is_narrow and some:
            index = index or await _Known.of(store, folder, [each.file for each in files])
            some = await index.worth(store, wanted, some)

        def searched(some: Sequence[_Spanned] = some) -> bool:
            search.add(each.file for each in some)
            return search.run(deadline)

        in_time = await asyncio.to_thread(searched)
        if search.is_full or not in_time or not rest:
            break
        if time.monotonic() >= deadline:
            in_time = False
            break
    place = await asyncio.to_thread(search.rest, rest[0].file if rest else None)
    return Found(entries=search.entries, rest=place, in_time=in_time or search.is_full)


def _spanned(folder: Path) -> list[_Spanned]:
    """All files, the newest first."""
    found = []
    in_order = sorted(day_files(folder), key=lambda each: (each.chain, each.day))
    for _, chain in groupby(in_order, key=lambda each: each.chain):
        before: date | None = None
        for each in chain:
            # a call that came before midnight may end after it
            found.append(_Spanned(each, before or each.day - timedelta(days=1)))
            before = each.day
    return sorted(found, key=lambda each: each.file, reverse=True)


def _may_have(spanned: _Spanned, wanted: EntryFilter) -> bool:
    """Whether its days are not all past what is wanted."""
    since, until = wanted.since, wanted.until
    return (since is None or spanned.file.day >= since.date()) and (
        until is None or spanned.since <= until.date()
    )


def _parted(
    files: Sequence[_Spanned], wanted: EntryFilter
) -> tuple[Sequence[_Spanned], Sequence[_Spanned]]:
    """What is looked at next, in whole days, and what is left then."""
    if not wanted.is_narrow:
        return files, []
    most = DAYS if wanted.keys is not None or wanted.record else DAYS_OF_ALL
    days = sorted({each.file.day for each in files}, reverse=True)[:most]
    some = [each for each in files if days and each.file.day >= days[-1]]
    return some, files[len(some) :]


@dataclass(frozen=True, slots=True)
class _Known:
    """What the index has of the files, where it has not lost anything."""

    progress: Mapping[str, IndexProgress]
    days: Sequence[date]
    is_whole: bool

    @classmethod
    async def of(cls, store: Store, folder: Path, files: Sequence[DayFile]) -> "_Known":
        progress = await Index(store, folder).progress()
        lost = await first_loss(store, files, progress)
        return cls(progress, await known_days(store), lost is None)

    async def worth(
        self, store: Store, wanted: EntryFilter, files: Sequence[_Spanned]
    ) -> Sequence[_Spanned]:
        """Those that may have such an entry, or of which the index does not know all."""
        if not self.is_whole:
            return files
        first, last = min(each.since for each in files), max(each.file.day for each in files)
        days = [each for each in self.days if first <= each <= last]
        found = sorted(await days_with(store, wanted, days))
        return [each for each in files if each.has_one(found) or not self._has(each.file)]

    def _has(self, file: DayFile) -> bool:
        at = self.progress.get(file.chain)
        if at is None or at.day != str(file.day):
            return at is not None and at.day > str(file.day)
        return at.bytes >= _size(file)


def _size(file: DayFile) -> int:
    try:
        return file.path.stat().st_size
    except FileNotFoundError:
        return 0
