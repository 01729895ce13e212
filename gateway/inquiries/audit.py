"""Searches this machine's audit, tells who has seen a record, and verifies the audit."""

import asyncio
import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache, partial
from pathlib import Path

from adapters.documents.problems import DocumentErrors
from gateway.audit import chains
from gateway.audit.entries import AuditLine, key_file, read_secrets
from gateway.audit.index import CallView, Index, IndexProgress, uuid_key
from gateway.audit.questions import Days, Occurrences, days_with, first_loss, known_days, readers
from gateway.audit.search import EntryFilter, SearchCursor, end_of, search
from gateway.audit.verification import REST, ChainVerdict, elsewhere, is_foreign, verify
from gateway.contract.access import AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.operations import OPERATIONS
from gateway.policy.policy import HIDDEN
from gateway.policy.reading.document import read_version
from gateway.policy.running.versions import Versions
from gateway.settings import Settings
from gateway.store import Store

# Seconds that the search for one page may take.
BUDGET = 0.05
# Days that the index is asked about at once. Questions about keys and records are cheap.
DAYS, DAYS_OF_ALL = 1_000, 8
# Field -> how it was shown: `whole` or a mask.
Fields = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPage:
    """Entries, the newest first. `rest` is where to go on, None where there are no more.

    `in_time`: there was time to find as many as were asked for, or all.
    """

    entries: Sequence[AuditLine]
    rest: SearchCursor | None
    in_time: bool


# A file, and the first day whose calls it may hold.
_Spanned = tuple[chains.DayFile, date]


async def find_entries(
    store: Store,
    folder: Path,
    wanted: EntryFilter,
    most: int,
    place: SearchCursor | None = None,
    budget: float | None = None,
) -> EntryPage:
    """Returns up to `most` entries from a place on; fewer when `budget` seconds are over.

    Something is read each time, so that repeated calls reach the end. Raises StoreError, OSError.
    """
    deadline = time.monotonic() + (BUDGET if budget is None else budget)
    entries: list[AuditLine] = []
    rest: Sequence[_Spanned] = await asyncio.to_thread(_spanned, folder, wanted, place)
    known = None
    if wanted.is_narrow and rest:
        progress = await Index(store, folder).progress()
        if await first_loss(store, [file for file, _ in rest], progress) is None:
            known = partial(_worth, store, wanted, progress, await known_days(store))
    while True:
        some, rest = _parted(rest, wanted)
        if known is not None and some:
            some = await known(some)
        files = [file for file, _ in some]
        cursor = await asyncio.to_thread(search, files, wanted, entries, most, deadline, place)
        is_full = len(entries) == most
        if cursor is None and rest and (is_full or time.monotonic() >= deadline):
            day = rest[0][0].day
            cursor = SearchCursor(day=day, until=end_of(day), left={})
        if cursor is not None or not rest:
            return EntryPage(entries=entries, rest=cursor, in_time=is_full or cursor is None)


def _spanned(folder: Path, wanted: EntryFilter, place: SearchCursor | None) -> list[_Spanned]:
    """Returns the files that may hold what is wanted, the newest first."""
    files = []
    before: chains.DayFile | None = None
    for file in sorted(chains.day_files(folder), key=lambda file: (file.chain, file.day)):
        # a call that came before midnight may end after it
        is_same = before is not None and before.chain == file.chain
        first = before.day if before and is_same else file.day - timedelta(days=1)
        before = file
        is_left = place is None or file.day <= place.day
        is_late = wanted.since is None or file.day >= wanted.since.date()
        if is_left and is_late and (wanted.until is None or first <= wanted.until.date()):
            files.append((file, first))
    return sorted(files, reverse=True)


def _parted(
    files: Sequence[_Spanned], wanted: EntryFilter
) -> tuple[Sequence[_Spanned], Sequence[_Spanned]]:
    """Returns the files that are searched next, in whole days, and the rest."""
    most = DAYS if wanted.keys is not None or wanted.record else DAYS_OF_ALL
    days = sorted({file.day for file, _ in files}, reverse=True)[
        : most if wanted.is_narrow else None
    ]
    some = [spanned for spanned in files if days and spanned[0].day >= days[-1]]
    return some, files[len(some) :]


async def _worth(
    store: Store,
    wanted: EntryFilter,
    progress: Mapping[str, IndexProgress],
    days: Sequence[date],
    files: Sequence[_Spanned],
) -> Sequence[_Spanned]:
    """Returns the files that may have such an entry, or that the index has not read whole."""
    first, last = min(since for _, since in files), max(file.day for file, _ in files)
    hits = sorted(await days_with(store, wanted, [day for day in days if first <= day <= last]))

    def is_worth(file: chains.DayFile, since: date) -> bool:
        at = progress.get(file.chain)
        if bisect_left(hits, since) < bisect_right(hits, file.day) or at is None:
            return True
        if at.day != str(file.day):
            return at.day < str(file.day)
        with suppress(FileNotFoundError):
            return at.bytes < file.path.stat().st_size
        return False

    return [(file, since) for file, since in files if is_worth(file, since)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordReader:
    """A key that saw a record. `name` is None if it is gone, fields are None if their policy is."""

    id: str
    name: str | None
    seen: Sequence[tuple[CallView, Occurrences]]
    fields: Mapping[tuple[str, str], Fields | None]


async def readers_of(
    store: Store, resource: Resource, record: str, days: Days, names: Mapping[str, str]
) -> list[RecordReader]:
    """Returns the keys that saw a record; `names` is key id -> name. Raises StoreError."""
    views = await readers(store, record, _operations(resource), days)
    sights = sorted({(view.policy, view.level) for view in views})
    fields = {sight: await _fields_seen(store, resource, *sight) for sight in sights}
    by_key: dict[str, list[tuple[CallView, Occurrences]]] = {}
    for view, seen in views.items():
        by_key.setdefault(view.key_id, []).append((view, seen))
    return [
        RecordReader(id=key_id, name=names.get(key_id), seen=seen, fields=fields)
        for key_id, seen in by_key.items()
    ]


async def can_be(store: Store, resource: Resource, record: str) -> bool:
    """Returns whether a record's id is a UUID, or was once shown by a clinic's own adapter."""
    return uuid_key(record) is not None or bool(
        await readers(store, record, _operations(resource), Days())
    )


def _operations(resource: Resource) -> set[str]:
    return {operation.id for operation in OPERATIONS if operation.returns is resource}


async def _fields_seen(store: Store, resource: Resource, policy: str, level: str) -> Fields | None:
    """Returns what the policy whose hash begins so shows at a level; None where it is lost."""
    version = await Versions(store).find(policy) if policy else None
    if version is None or level not in set(AccessLevel):
        return None
    try:
        rules = await asyncio.to_thread(_rules, version)
    except DocumentErrors:
        return None
    seen = rules[resource.name].sights(AccessLevel(level))
    return {path: str(seen[path]) for path in resource.paths if seen[path] is not HIDDEN}


# reading the text of a policy takes some hundredths of a second
_rules = lru_cache(64)(read_version)


class Stopped(Exception):
    """Nobody waits for the outcome any more."""


class VerifyProgress:
    """How many lines a thread has verified, of how many. It makes the thread rest in between."""

    def __init__(self) -> None:
        self.lines = self.all = self.before = 0
        self.stops = False

    def __call__(self, lines: int) -> None:
        """Counts the lines of one chain so far; raises Stopped where nobody waits."""
        if self.stops:
            raise Stopped
        self.lines = self.before + lines
        time.sleep(REST)


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The verdict on each chain. `others` are the chains of other folders, verified there."""

    verdicts: Sequence[ChainVerdict]
    others: Sequence[chains.Known]

    @property
    def is_sound(self) -> bool:
        """Whether every line is as it was written, and none is missing."""
        return not any(verdict.broken for verdict in self.verdicts)


async def verify_audit(
    settings: Settings, store: Store, progress: VerifyProgress | None = None
) -> AuditReport:
    """Compares each chain here with the store. Raises StartRefused, StoreError, OSError."""
    folder, kept = chains.audit_folder(settings), chains.Chains(store)
    before = await asyncio.to_thread(chains.files_by_chain, folder)
    known, place, shared = await kept.known(), chains.place_of(folder), kept.shared
    others = elsewhere(known, place, shared=shared)
    mine = [chain for chain in known if chain not in others]
    secrets = read_secrets(key_file(settings)) if mine else ()
    counts = progress or VerifyProgress()
    counts.all = sum(max(0, chain.head.seq - chain.base.seq) for chain in mine)

    def verdicts() -> list[ChainVerdict]:
        done = []
        for verdict in verify(folder, before, mine, secrets, progress):
            done.append(verdict)
            counts.lines = counts.before = counts.before + verdict.lines
        return done

    try:
        results = await asyncio.to_thread(verdicts)
    except asyncio.CancelledError:
        counts.stops = True
        raise
    if is_foreign(known, place, shared=shared):
        text = f"{folder / chains.PLACE}: the store knows no folder of that name"
        results.append(ChainVerdict(chain="", broken=text))
    return AuditReport(results, others)
