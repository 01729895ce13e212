"""Reads the records of a resource, whichever way its rows are fetched.

What a row of a database or an object of JSON becomes, which records exist for who asks, how a page
is filled and what is skipped stands here once; the reader of each kind of backend says how rows are
asked for.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from dataclasses import field as member
from typing import Any, ClassVar

from adapters import base
from adapters.base import Filter, Only, Page, Record, Trouble
from adapters.ids.seal import Id
from adapters.mapping.converters import Converters
from adapters.mapping.models import ListMap, ResourceMap, ValueSource
from adapters.mapping.narrowing import SORTED, all_hold, is_ordered
from adapters.values.convert import Converter, Unreadable

# Stands for a row that has no usable id: a page counts it as skipped.
UNUSABLE: Record = {}
OF_IDS = base.FieldShape(format="uuid")
# Where a value stands, what it is in the contract, and what reads it.
Planned = tuple[ValueSource, base.FieldShape, Converter]
Mapped = ResourceMap | ListMap


@dataclass(frozen=True, slots=True)
class RowValue:
    """A value of a row: `plain` finds it as it is kept, `decode` gives its JSON form.

    Both raise Unreadable.
    """

    plain: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    converter: Converter

    def read(self, row: Any) -> Any:
        return self.decode(self.plain(row))

    def shown(self, row: Any) -> Any:
        """The value in its JSON form; None where it can't be read."""
        try:
            return self.decode(self.plain(row))
        except Unreadable:
            return None


class RowReader(ABC):
    """Makes records of the rows of a resource, or of a list inside its records.

    It is made once, when the gateway starts, of a mapping that was checked; `prefix` is such as
    `lines[].` for a list. `names` are all fields that the contract has there; those that no field
    of the mapping fills are null. `own_id` is the record's own id, None where there is no key.
    """

    lists: Mapping[str, "RowReader"]

    def __init__(
        self,
        resource: str,
        mapped: Mapped,
        shapes: Mapping[str, base.FieldShape],
        converters: Converters,
        report: base.Report,
        prefix: str = "",
    ) -> None:
        self.resource, self.prefix, self.report = resource, prefix, report
        self.mapped = mapped
        self.shapes = base.inside(shapes, prefix)
        self.names, self.has_id = tuple(self.shapes), "id" in self.shapes
        lists = () if prefix else base.lists_in(shapes)
        self.blank: Record = dict.fromkeys((*self.names, *lists))
        self.ids = converters.ids(f"{resource}/{prefix}".removesuffix("[].").rstrip("/"))
        planned: dict[str, Planned] = {}
        if mapped.key is not None:
            planned["id"] = mapped.key, OF_IDS, Id(self.ids, own=True)
        for name, source in mapped.fields.items():
            converter = converters.make(source, self.shapes[name], columns=len(source.expressions))
            planned[name] = source, self.shapes[name], converter
        self._judged_by = self.compiled(mapped, planned)
        self.by_name = {name: self._judged_by[name] for name in mapped.fields}
        self.own_id = self._judged_by.get("id")
        self._steps = [(name, found.plain, found.decode) for name, found in self.by_name.items()]
        inner = mapped.lists if isinstance(mapped, ResourceMap) else {}
        self.lists = {
            name: self.__class__(resource, each, shapes, converters, report, f"{name}[].")
            for name, each in inner.items()
        }

    @abstractmethod
    def compiled(self, mapped: Mapped, planned: Mapping[str, Planned]) -> dict[str, RowValue]:
        """What finds and reads each value in a row: the key, if any, as `id`, then the fields."""

    def filled(self) -> frozenset[str]:
        """The fields that the mapping fills, those of lists inside included."""
        own = frozenset(self.prefix + name for name in self._judged_by)
        return own.union(*(rows.filled() for rows in self.lists.values()))

    def id_of(self, row: Any) -> str | None:
        """The public id of a row; None where it has no usable one."""
        return None if self.own_id is None else self.own_id.shown(row)

    def record(self, row: Any, owner: str = "") -> Record | None:
        """The record; None, reported, where it has no usable id. What can't be read is None.

        `owner` is the public id of the record that the row is inside.
        """
        record = self.blank.copy()
        if self.has_id:
            record["id"] = self.id_of(row)
            if record["id"] is None:
                self.report(Trouble("no id", self.resource, f"{self.prefix}id", owner))
                return None
        for name, plain, decode in self._steps:
            try:
                record[name] = decode(plain(row))
            except Unreadable as error:
                at = owner or record.get("id") or ""
                self.report(Trouble(error.kind, self.resource, self.prefix + name, at))
        return record

    def exists(self, row: Any, only: Only = ()) -> bool:
        """Whether the row is a record that exists for who asks; nothing of it is reported."""
        return not only or all_hold(only, lambda name: self._judged_by[name].shown(row))

    def missing(self) -> base.NotFound:
        return base.NotFound(f"no {self.resource} has that id")

    def refusal(self, condition: base.Condition) -> str | None:
        """Why no row can be judged by a condition; None where each can."""
        field, shape = f"{self.resource}.{condition.field}", self.shapes.get(condition.field)
        why = None
        if shape is None:
            why = "is no field of the record itself: leave it out of `only`"
        elif shape.many:
            why = "holds several values, not one: leave it out of `only`"
        elif is_ordered(condition) and shape.format not in SORTED:
            why = f"is a {shape.format}, which does not sort: name its values in `only`"
        elif condition.field not in self._judged_by:
            why = "is not in the mapping, so that no record would exist: map it, or leave it out"
            why += " of `only`"
        return None if why is None else f"{field} {why}"


class Endless(base.BackendNonsense):
    """The list does not come to an end."""


class Barren(Endless):
    """It may yet: so many pages without rows are enough for one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows that are new, and whether it is known that none follow.

    `place` gives the place behind the row of a number; `end` is the one behind all, where one can
    go on from a page without rows. `keyless` counts rows that have no place among the others.
    """

    rows: Sequence[Any]
    place: Callable[[int], str]
    last: bool
    end: str | None = None
    keyless: int = 0


Batches = AsyncGenerator[Batch, None]


class ResourceReader(ABC):
    """Reads one resource: a record by its id, or a page of records.

    A page is full with its limit, or short once `most` rows were looked at or `patience` is over.
    """

    most: int
    # whether a row under another id than the one that was asked for is nonsense
    exact: ClassVar[bool] = False
    patience = math.inf

    def __init__(self, name: str, rows: RowReader) -> None:
        self.name, self.rows = name, rows

    @abstractmethod
    async def row(self, public_id: str, only: Only) -> Any:
        """The row with that id, before it is judged; NotFound."""

    @abstractmethod
    async def rows_of(self, public_ids: Collection[str]) -> Mapping[str, Any]:
        """The rows of those records that are there; None for one that cannot be read."""

    @abstractmethod
    async def page(
        self, filters: Sequence[Filter], limit: int, after: str | None, only: Only = ()
    ) -> Page:
        """Up to `limit` records that the filters let through, from behind the place `after`.

        What the conditions let not be is not among them, nor in what is skipped.
        """

    async def made(self, rows: Sequence[Any], only: Only) -> Sequence[Record | None]:
        """As `record`, of some rows of a list."""
        return [self.record(row, only) for row in rows]

    def add_lists(self, records: Collection[Record]) -> None:  # noqa: B027 - rows may have them
        """Add the lists inside records that are fetched for several of them together."""

    def record(self, row: Any, only: Only) -> Record | None:
        """The record of a row; None for what does not exist, UNUSABLE for what has no id."""
        if not self.rows.exists(row, only):
            return None
        return self.rows.record(row) or UNUSABLE

    async def one(self, public_id: str, only: Only = ()) -> Record:
        """The record with that id; NotFound, also where the conditions let none be."""
        record = self.record(await self.row(public_id, only), only)
        if record is None:
            raise self.rows.missing()
        if record is UNUSABLE:
            raise base.BackendNonsense(f"a record of {self.name} has no usable id")
        if self.exact and record["id"] != public_id:
            raise base.BackendNonsense(f"asked for one of {self.name}, the backend gives another")
        self.add_lists((record,))
        return record

    async def exists(self, public_id: str, only: Only = ()) -> None:
        """NotFound where there is no such record."""
        await self.one(public_id, only)

    async def pick(
        self, public_ids: Collection[str], names: Sequence[str]
    ) -> dict[str, list[Any] | None]:
        """Some fields of those of the records that are there, by public id, unreported.

        None stands for all where one of them is unreadable.
        """
        picked: dict[str, list[Any] | None] = {}
        fields = [self.rows.by_name[name] for name in names]
        for public_id, row in (await self.rows_of(public_ids)).items():
            picked[public_id] = None
            if row is not None:
                with suppress(Unreadable):
                    picked[public_id] = [field.read(row) for field in fields]
        return picked

    async def filled(
        self,
        batches: Batches,
        limit: int,
        only: Only,
        fits: Callable[[Record], bool] = lambda record: True,
        at_once: int = 1,
    ) -> Page:
        """A page of the records that fit, from so many rows `at_once`.

        With conditions a full page looks for what follows it: it must not tell of hidden records.
        """
        page = _Filling(limit, self.most, time.monotonic() + self.patience, only, fits, at_once)
        is_last = False
        with suppress(Barren):  # what was found is kept, and the next call goes on behind it
            is_last = await self._fill(page, batches)
        self.add_lists(page.records)
        after = None
        if page.behind is not None and not is_last:
            batch, number = page.behind
            after = batch.end if number is None else batch.place(number)
        return Page(records=page.records, after=after, skipped=page.skipped + page.keyless)

    async def _fill(self, page: "_Filling", batches: Batches) -> bool:
        """Whether the list came to its end before the page was full, or enough was looked at."""
        only, step = page.only, page.at_once
        async with aclosing(batches):
            async for batch in batches:
                page.keyless += batch.keyless
                for begin in range(0, len(batch.rows), step):
                    if page.is_enough or (page.is_full and not only):
                        return False
                    made = await self.made(batch.rows[begin : begin + step], only)
                    for number, record in enumerate(made, begin):
                        counts = record is not None and (record is UNUSABLE or page.fits(record))
                        if page.is_full and (counts or not only):
                            return False
                        page.take(record if counts else None, (batch, number))
                if batch.last:
                    return True
                page.behind = page.behind if batch.end is None else (batch, None)
                if page.is_enough or (page.is_full and not batch.rows and not only):
                    return False
        return True


@dataclass(slots=True)
class _Filling:
    """A page that is being filled.

    `behind` is the row, by its batch, up to which it goes; all of the batch where there is none.
    """

    limit: int
    most: int
    until: float
    only: Only
    fits: Callable[[Record], bool]
    at_once: int
    records: list[Record] = member(default_factory=list)
    skipped: int = 0
    keyless: int = 0
    looked: int = 0
    behind: tuple[Batch, int | None] | None = None

    @property
    def is_full(self) -> bool:
        return len(self.records) + self.skipped >= self.limit

    @property
    def is_enough(self) -> bool:
        """Whether this is enough for one call: the page may be short, the next goes on."""
        late = self.behind is not None and time.monotonic() >= self.until
        return late or self.looked >= self.most

    def take(self, record: Record | None, behind: tuple[Batch, int]) -> None:
        self.looked += 1
        self.behind = behind
        if record is UNUSABLE:
            self.skipped += 1
        elif record is not None:
            self.records.append(record)
