"""Asks the index who was shown a record, what a key did, and what the index itself lacks."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from gateway.audit.chains import Chains, DayFile, Known, day_files, place_of
from gateway.audit.entries import ANSWERED, FAILED, UNKNOWN
from gateway.audit.index import EPOCH, CallView, Index, IndexProgress, day_of, record_key
from gateway.audit.search import EntryFilter
from gateway.audit.verification import elsewhere
from gateway.store import Store
from gateway.store.tables import audit_calls, audit_days, audit_reads, audit_views

_SUMS = ((audit_days.c.calls, audit_calls), (audit_days.c.reads, audit_reads))
_START, _SECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(seconds=1)
_SECONDS_OF_DAY = 24 * 3600
# Outcomes of calls that may have been shown a record and that are not among its reads.
_UNCOUNTED = (UNKNOWN, FAILED)


@dataclass(slots=True)
class Occurrences:
    """How often something happened, and when first and last (UTC)."""

    times: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """A range of days in UTC, both ends included; an end that is None is open."""

    since: date | None = None
    until: date | None = None


async def readers(
    store: Store, record: str, operations: Collection[str], days: Days
) -> dict[CallView, Occurrences]:
    """Returns who was shown a record by one of the operations. Raises StoreError."""
    by = [audit_views.c[name] for name in CallView._fields]
    of_record = audit_reads.c.record == record_key(record)
    by_operation = audit_views.c.operation.in_(operations)
    views = await _occurrences(store, audit_reads, by, days, of_record, by_operation)
    return {CallView(*view): seen for view, seen in views.items()}


async def deeds(store: Store, key_id: str, days: Days) -> dict[tuple[Any, ...], Occurrences]:
    """Returns a key's calls by operation, outcome and reason. Raises StoreError."""
    by = [audit_views.c.operation, audit_calls.c.outcome, audit_calls.c.reason]
    return await _occurrences(store, audit_calls, by, days, audit_views.c.key_id == key_id)


async def _occurrences(
    store: Store, table: sa.Table, by: Sequence[sa.Column[str]], days: Days, *conditions: Any
) -> dict[tuple[Any, ...], Occurrences]:
    """Returns the sums over all days by some columns, in the order of the first time."""
    # each day by its number, so that the database seeks once for a day and never scans
    some = sa.select(audit_days.c.day)
    if days.since is not None:
        some = some.where(audit_days.c.day >= days.since.toordinal() - EPOCH)
    if days.until is not None:
        some = some.where(audit_days.c.day <= days.until.toordinal() - EPOCH)
    midnight = sa.cast(table.c.day, sa.BigInteger) * _SECONDS_OF_DAY
    first = sa.func.min(midnight + table.c.first)
    query = (
        sa.select(sa.func.sum(table.c.times), first, sa.func.max(midnight + table.c.last), *by)
        .join(audit_views, audit_views.c.id == table.c.view_id)
        .where(table.c.day.in_(some), *conditions)
        .group_by(*by)
        .order_by(first, *by)
    )
    return {
        tuple(what): Occurrences(times, _START + begin * _SECOND, _START + end * _SECOND)
        for times, begin, end, *what in await store.rows(query)
    }


async def has_called(store: Store, key_id: str) -> bool:
    """Returns whether any line of the audit is of that key. Raises StoreError."""
    query = sa.select(audit_views.c.id).where(audit_views.c.key_id == key_id).limit(1)
    # calls without a key have an empty one
    return bool(key_id) and bool(await store.rows(query))


async def known_days(store: Store) -> list[date]:
    """Returns the days that the index has a row of, in order. Raises StoreError."""
    days = sa.select(audit_days.c.day).order_by(audit_days.c.day)
    return [_date(day) for (day,) in await store.rows(days)]


async def days_with(store: Store, conditions: EntryFilter, days: Collection[date]) -> set[date]:
    """Returns those of the days on which there may be such an entry. Raises StoreError."""
    views, calls, reads = sa.select(audit_views.c.id), audit_calls.c, audit_reads.c
    if conditions.keys is not None:
        views = views.where(audit_views.c.key_id.in_(conditions.keys))
    if conditions.operation:
        views = views.where(audit_views.c.operation == conditions.operation)
    sources: list[tuple[sa.Table, Any]] = []
    if conditions.record and conditions.outcome in {"", ANSWERED}:
        sources.append((audit_reads, reads.record == record_key(conditions.record)))
        if not conditions.outcome:
            sources.append((audit_calls, calls.outcome.in_(_UNCOUNTED)))
    else:
        sources.append(
            (audit_calls, calls.outcome == conditions.outcome if conditions.outcome else sa.true())
        )
    # each day by its number, so that the database seeks once for a day and never scans
    numbers, matching = [day.toordinal() - EPOCH for day in days], set[date]()
    async with store.begin() as connection:
        for table, condition in sources:
            query = sa.select(table.c.day).where(table.c.day.in_(numbers), condition).distinct()
            if conditions.keys is not None or conditions.operation:
                query = query.where(table.c.view_id.in_(views))
            matching.update(map(_date, (await connection.execute(query)).scalars()))
    return matching


async def first_loss(
    store: Store, files: Sequence[DayFile], progress: Mapping[str, IndexProgress]
) -> date | None:
    """Returns the first day of which the index has nothing any more, or None. Raises StoreError."""
    taken = (file for file in files if (at := progress.get(file.chain)) and at.day >= str(file.day))
    once = {day_of(str(file.day)) for file in taken}
    parts = [
        sa.and_(sums > 0, ~sa.exists(_of_day(table, table.c.day, audit_days.c.day)))
        for sums, table in _SUMS
    ]
    days = dict(map(tuple, await store.rows(sa.select(audit_days.c.day, sa.or_(*parts)))))
    lost = (once - days.keys()) | {day for day, is_empty in days.items() if is_empty}
    return _date(min(lost)) if lost else None


async def losses(store: Store) -> list[date]:
    """Returns the days that do not add up to what was indexed. Raises StoreError."""
    lost = []
    for day in await known_days(store):
        number = day.toordinal() - EPOCH
        # in one statement: lines may be added meanwhile
        query = sa.select(*(sums - _total(table, number) for sums, table in _SUMS))
        if any(map(any, await store.rows(query.where(audit_days.c.day == number)))):
            lost.append(day)
    return lost


def _total(table: sa.Table, day: int) -> Any:
    return _of_day(table, sa.func.coalesce(sa.func.sum(table.c.times), 0), day).scalar_subquery()


def _of_day(table: sa.Table, what: Any, day: Any) -> sa.Select[Any]:
    """Selects from the rows of a day whose view is known."""
    return sa.select(what).where(table.c.day == day, table.c.view_id == audit_views.c.id)


def _date(day: int) -> date:
    return date.fromordinal(day + EPOCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Lines of one folder that the store knows to be written, and that the index lacks.

    The index has all lines up to `until` (UTC, to the second). `here` is whether the folder is the
    one that was just read, whose files lack the lines too.
    """

    host: str
    here: bool
    lines: int
    until: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """How complete the index is once it has been brought up to date.

    `lines` were added just now. `lost` is the first day of which nothing is left. `unknown` counts
    the folder's chains that the store does not know, as after a restored backup. `in_time` is
    whether there was time for all of this folder.
    """

    lines: int
    gaps: Sequence[Gap]
    lost: date | None
    unknown: int
    in_time: bool = True


async def brought_up(
    store: Store, folder: Path, backlog: Callable[[int], None], within: float | None = None
) -> IndexState:
    """Indexes what is new; `backlog` is told of its bytes first. Raises StoreError and OSError.

    What takes more than `within` seconds is left for another time.
    """
    chains, index = Chains(store), Index(store, folder)
    known = await chains.known()
    others = elsewhere(known, place_of(folder), shared=chains.shared)
    backlog(await index.backlog())
    files = await asyncio.to_thread(day_files, folder)
    lines, in_time = 0, True
    try:
        async with asyncio.timeout(within):
            lines = await index.catch_up()
    except TimeoutError:
        in_time = False
    progress = await index.progress()
    return IndexState(
        lines=lines,
        in_time=in_time,
        gaps=_gaps(known, progress, others),
        lost=await first_loss(store, files, progress),
        unknown=len({file.chain for file in files} - {chain.id for chain in known}),
    )


def _gaps(
    known: Sequence[Known], progress: Mapping[str, IndexProgress], others: Collection[Known]
) -> list[Gap]:
    """Returns the gaps; `known` was read before the files, `others` are of other folders."""
    gaps: dict[tuple[str, str], Gap] = {}
    for chain in sorted(known, key=lambda chain: (chain.place, chain.host)):
        at = progress.get(chain.id)
        lines = chain.head.seq - max(chain.base.seq, at.seq if at else 0)
        if lines > 0:
            until = (at.time if at else chain.begun.isoformat())[:19] + "Z"
            new = Gap(host=chain.host, here=chain not in others, lines=0, until=until)
            gap = gaps.get((chain.place, chain.host), new)
            more = replace(gap, lines=gap.lines + lines, until=min(gap.until, until))
            gaps[chain.place, chain.host] = more
    return list(gaps.values())
