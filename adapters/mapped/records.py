"""Makes records of rows, judges which exist for a key, and fills pages of them.

The reader of each kind of backend adds how rows are asked for.
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
from adapters.mapping.row_conditions import SORTED, all_hold, is_ordered
from adapters.values.convert import Converter, Unreadable

# Stands for a row without a usable id. A page counts it as skipped.
UNUSABLE: Record = {}
OF_IDS = base.FieldShape(format="uuid")
# A value's source, its shape in the contract, and its converter.
Planned = tuple[ValueSource, base.FieldShape, Converter]
Mapped = ResourceMap | ListMap


@dataclass(frozen=True, slots=True)
class RowValue:
    """A value of rows: `plain` finds it, `decode` makes JSON of it. Both raise Unreadable."""

    plain: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    converter: Converter

    def read(self, row: Any) -> Any:
        return self.decode(self.plain(row))

    def shown(self, row: Any) -> Any:
        """Returns the value in its JSON form; None where it cannot be read."""
        try:
            return self.decode(self.plain(row))
        except Unreadable:
            return None


class RowReader(ABC):
    """Makes records of the rows of a resource, or of a list inside its records.

    It is made at the start, of a checked mapping; a list has a `prefix` such as `lines[].`. `names`
    are all fields that the contract has there. Those that the mapping does not fill are null.
    `own_id` is None where there is no key.
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
        self._steps = [(name, value.plain, value.decode) for name, value in self.by_name.items()]
        inner = mapped.lists if isinstance(mapped, ResourceMap) else {}
        self.lists = {
            name: self.__class__(resource, nested, shapes, converters, report, f"{name}[].")
            for name, nested in inner.items()
        }

    @abstractmethod
    def compiled(self, mapped: Mapped, planned: Mapping[str, Planned]) -> dict[str, RowValue]:
        """Returns what reads each value of a row: the key, if any, as `id`, then the fields."""

    def filled(self) -> frozenset[str]:
        """Returns the fields that the mapping fills, those of lists inside included."""
        own = frozenset(self.prefix + name for name in self._judged_by)
        return own.union(*(rows.filled() for rows in self.lists.values()))

    def id_of(self, row: Any) -> str | None:
        """Returns the public id of a row; None where it has no usable one."""
        return None if self.own_id is None else self.own_id.shown(row)

    def record(self, row: Any, owner: str = "") -> Record | None:
        """Returns the record; reports one without a usable id, and returns None.

        An unreadable value is None, and reported. `owner` is the id of the record around the row.
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
        """Returns whether the conditions let the row be a record; reports nothing of it."""
        return not only or all_hold(only, lambda name: self._judged_by[name].shown(row))

    def missing(self) -> base.NotFound:
        return base.NotFound(f"no {self.resource} has that id")

    def refusal(self, condition: base.Condition) -> str | None:
        """Returns why a condition can judge no row; None where it can judge each."""
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
    """A list that does not come to an end."""


class Barren(Endless):
    """A list that may still end, with more pages without rows than one call goes through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """New rows of a list; `last` tells whether it is known that none follow.

    `place` returns the place behind a row, by its number. `end` is the one behind all rows, given
    where the list can go on from a page without any. `keyless` counts rows that have no place.
    """

    rows: Sequence[Any]
    place: Callable[[int], str]
    last: bool
    end: str | None = None
    keyless: int = 0


Batches = AsyncGenerator[Batch, None]


class ResourceReader(ABC):
    """Reads one resource. A page ends at its limit, after `most` rows or `patience` seconds."""

    most: int
    # whether a row under another id than the one that was asked for is nonsense
    exact: ClassVar[bool] = False
    patience = math.inf

    def __init__(self, name: str, rows: RowReader) -> None:
        self.name, self.rows = name, rows

    @abstractmethod
    async def row(self, public_id: str, only: Only) -> Any:
        """Returns the row with that id, before it is judged. Raises NotFound."""

    @abstractmethod
    async def rows_of(self, public_ids: Collection[str]) -> Mapping[str, Any]:
        """Returns the rows that are there, by public id; None for one that cannot be read."""

    @abstractmethod
    async def page(
        self, filters: Sequence[Filter], limit: int, after: str | None, only: Only = ()
    ) -> Page:
        """Returns up to `limit` records that pass the filters, from behind the place `after`.

        Records that the conditions hide are not among them, nor among those skipped.
        """

    async def made(self, rows: Sequence[Any], only: Only) -> Sequence[Record | None]:
        """Returns what `record` makes of each row."""
        return [self.record(row, only) for row in rows]

    def add_lists(self, records: Collection[Record]) -> None:  # noqa: B027 - rows may have them
        """Adds the lists inside records that are fetched for several records together."""

    def record(self, row: Any, only: Only) -> Record | None:
        """Returns the record; None for what does not exist, UNUSABLE for what has no id."""
        if not self.rows.exists(row, only):
            return None
        return self.rows.record(row) or UNUSABLE

    async def one(self, public_id: str, only: Only = ()) -> Record:
        """Returns the record. Raises NotFound also where the conditions let none be."""
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
        """Raises NotFound where there is no such record."""
        await self.one(public_id, only)

    async def pick(
        self, public_ids: Collection[str], names: Sequence[str]
    ) -> dict[str, list[Any] | None]:
        """Returns fields of the records that are there, by public id; None where unreadable."""
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
        """Returns a page of the records that fit, made of so many rows `at_once`.

        With conditions a full page looks for what follows it: it must not tell of hidden records.
        """
        page = _Filling(limit, self.most, time.monotonic() + self.patience, only, fits, at_once)
        is_last = False
        with suppress(Barren):  # the records found are kept, and the next call goes on behind them
            is_last = await self._fill(page, batches)
        self.add_lists(page.records)
        after = None
        if page.behind is not None and not is_last:
            batch, number = page.behind
            after = batch.end if number is None else batch.place(number)
        return Page(records=page.records, after=after, skipped=page.skipped + page.keyless)

    async def _fill(self, page: "_Filling", batches: Batches) -> bool:
        """Returns whether the list ended before the page was full or enough was looked at."""
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
    """A page that is being filled, up to `behind`: a batch and a row's number, or None for all."""

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
        """Whether one call has looked at enough: then the page is short, the next goes on."""
        late = self.behind is not None and time.monotonic() >= self.until
        return late or self.looked >= self.most

    def take(self, record: Record | None, behind: tuple[Batch, int]) -> None:
        self.looked += 1
        self.behind = behind
        if record is UNUSABLE:
            self.skipped += 1
        elif record is not None:
            self.records.append(record)
