"""What this machine's audit tells: entries that are looked for, and who has seen a record."""

import asyncio
import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from adapters.documents.problems import DocumentErrors
from gateway.audit.chains import DayFile, day_files
from gateway.audit.entries import AuditLine
from gateway.audit.index import CallView, Index, IndexProgress, uuid_key
from gateway.audit.questions import Days, Occurrences, days_with, first_loss, known_days, readers
from gateway.audit.search import EntryFilter, Search, SearchCursor
from gateway.contract.access import AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.operations import OPERATIONS
from gateway.policy.reading.document import Spots
from gateway.policy.rules import Rules
from gateway.policy.running.text import read_version
from gateway.policy.running.versions import Version, Versions
from gateway.policy.telling.wording import reasons
from gateway.store import Store

# Seconds that are spent on reading for one page.
BUDGET = 0.05
# Days that the index is asked about at once: of keys and records it tells at little cost.
DAYS, DAYS_OF_ALL = 1_000, 8
# To read the text of a policy takes some hundredths of a second.
_REMEMBERED = 64
# Field -> how it was shown: `whole`, or its mask.
Fields = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPage:
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


async def find_entries(
    store: Store,
    folder: Path,
    wanted: EntryFilter,
    most: int,
    place: SearchCursor | None = None,
    budget: float | None = None,
) -> EntryPage:
    """Returns up to `most` from a place on; after so many seconds, what was found by then.

    Something is read each time, so that whoever goes on comes to the end. StoreError, OSError.
    """
    deadline = time.monotonic() + (BUDGET if budget is None else budget)
    search, index = Search(wanted, most, place), None
    rest: Sequence[_Spanned] = await asyncio.to_thread(_spanned, folder, wanted, place)
    files = [each.file for each in rest]
    while True:
        some, rest = _parted(rest, wanted)
        if wanted.is_narrow and some:
            index = index or await _known(store, folder, files)
            some = await index.worth(store, wanted, some)

        def run(some: Sequence[_Spanned] = some) -> bool:
            search.add(each.file for each in some)
            return search.run(deadline)

        in_time = await asyncio.to_thread(run)
        if search.is_full or not in_time or not rest:
            break
        if time.monotonic() >= deadline:
            in_time = False
            break
    place = await asyncio.to_thread(search.rest, rest[0].file if rest else None)
    return EntryPage(entries=search.entries, rest=place, in_time=in_time or search.is_full)


def _spanned(folder: Path, wanted: EntryFilter, place: SearchCursor | None) -> list[_Spanned]:
    """Returns the files that may tell of what is wanted, the newest first."""
    found = []
    in_order = sorted(day_files(folder), key=lambda each: (each.chain, each.day))
    since, until = wanted.since, wanted.until
    for _, chain in groupby(in_order, key=lambda each: each.chain):
        before: date | None = None
        for file in chain:
            # a call that came before midnight may end after it
            first = before or file.day - timedelta(days=1)
            before = file.day
            is_left = place is None or file.day <= place.day
            is_late = since is None or file.day >= since.date()
            if is_left and is_late and (until is None or first <= until.date()):
                found.append(_Spanned(file, first))
    return sorted(found, key=lambda each: each.file, reverse=True)


def _parted(
    files: Sequence[_Spanned], wanted: EntryFilter
) -> tuple[Sequence[_Spanned], Sequence[_Spanned]]:
    """Returns what is looked at next, in whole days, and what is left then."""
    if not wanted.is_narrow:
        return files, []
    most = DAYS if wanted.keys is not None or wanted.record else DAYS_OF_ALL
    days = sorted({each.file.day for each in files}, reverse=True)[:most]
    some = [each for each in files if days and each.file.day >= days[-1]]
    return some, files[len(some) :]


@dataclass(frozen=True, slots=True)
class _Known:
    """What the index has of the files; `is_whole` is whether it has lost nothing."""

    progress: Mapping[str, IndexProgress]
    days: Sequence[date]
    is_whole: bool

    async def worth(
        self, store: Store, wanted: EntryFilter, files: Sequence[_Spanned]
    ) -> Sequence[_Spanned]:
        """Returns the files that may have such an entry, or that the index does not know whole."""
        if not self.is_whole:
            return files
        first, last = min(each.since for each in files), max(each.file.day for each in files)
        days = [day for day in self.days if first <= day <= last]
        found = sorted(await days_with(store, wanted, days))
        return [
            each
            for each in files
            if bisect_left(found, each.since) < bisect_right(found, each.file.day)
            or not self._has(each.file)
        ]

    def _has(self, file: DayFile) -> bool:
        at = self.progress.get(file.chain)
        if at is None or at.day != str(file.day):
            return at is not None and at.day > str(file.day)
        try:
            return at.bytes >= file.path.stat().st_size
        except FileNotFoundError:
            return True


async def _known(store: Store, folder: Path, files: Sequence[DayFile]) -> _Known:
    progress = await Index(store, folder).progress()
    lost = await first_loss(store, files, progress)
    return _Known(progress, await known_days(store), lost is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordReader:
    """One key that was shown a record, by its operations; `name` is None where it is gone.

    `fields` is (policy, level) -> fields; None where the store has lost the policy.
    """

    id: str
    name: str | None
    seen: Sequence[tuple[CallView, Occurrences]]
    fields: Mapping[tuple[str, str], Fields | None]


async def readers_of(
    store: Store, resource: Resource, record: str, days: Days, names: Mapping[str, str]
) -> list[RecordReader]:
    """Returns each key, by when it first saw the record; `names` are those of keys. StoreError."""
    found = await readers(store, record, _operations(resource), days)
    sights = sorted({(view.policy, view.level) for view in found})
    fields = {sight: await fields_seen(store, resource, *sight) for sight in sights}
    by_key: dict[str, list[tuple[CallView, Occurrences]]] = {}
    for view, seen in found.items():
        by_key.setdefault(view.key_id, []).append((view, seen))
    return [
        RecordReader(id=key_id, name=names.get(key_id), seen=seen, fields=fields)
        for key_id, seen in by_key.items()
    ]


async def can_be(store: Store, resource: Resource, record: str) -> bool:
    """Returns whether it is the form of a public id, or once was one of a clinic's own adapter."""
    return uuid_key(record) is not None or bool(
        await readers(store, record, _operations(resource), Days())
    )


async def fields_seen(store: Store, resource: Resource, policy: str, level: str) -> Fields | None:
    """Returns what the policy, by the beginning of its hash, lets be seen at that level.

    None where the store has lost it, or where there is no such level. StoreError.
    """
    version = await Versions(store).find(policy) if policy else None
    try:
        rules = await asyncio.to_thread(_rules, version) if version else None
    except DocumentErrors:
        rules = None
    if rules is None or level not in set(AccessLevel):
        return None
    every = reasons(resource, rules[resource.name], AccessLevel(level), Spots({}, {}, {}))
    return {each.path: each.sight for each in every if each.path and each.sight != "hidden"}


@lru_cache(_REMEMBERED)
def _rules(version: Version) -> Rules:
    return read_version(version)


def _operations(resource: Resource) -> set[str]:
    return {each.id for each in OPERATIONS if each.returns is resource}
