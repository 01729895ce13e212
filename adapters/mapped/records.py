"""Makes records of rows, judges which exist for a key, and fills pages of them.

The reader of each kind of backend adds how rows are asked for.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from adapters import base
from adapters.base import Filter, Formed, FormedRecord, Only, Page, Record, Trouble
from adapters.ids.seal import Id
from adapters.mapped.generated import Make, Member, RowValue, compiled, source_text
from adapters.mapping.converters import Converters
from adapters.mapping.explanation import converter_of, source_of
from adapters.mapping.models import ListMap, ResourceMap, ValueSource
from adapters.mapping.row_conditions import SORTED, all_hold, is_ordered
from adapters.values.convert import Converter, Unreadable

# Stands for a row without a usable id. A page counts it as skipped.
UNUSABLE: Record = {}
OF_IDS = base.FieldShape(format="uuid")
# The most sets of fields for which a resource keeps what makes its records.
MOST_MAKERS = 32
# A value's source, its shape in the contract, and its converter.
Planned = tuple[ValueSource, base.FieldShape, Converter]
Mapped = ResourceMap | ListMap
# Names of fields as the contract has them; None for all.
Fields = frozenset[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordMaker:
    """What makes records with some of the fields: all at once, or value by value.

    `form` has the paths of what they hold, in the order of the contract; `source` is the text of
    `make`. Value by value it takes a copy of `blank`, the `steps`, and the lists `inside`.
    """

    make: Make
    source: str
    form: tuple[str, ...]
    blank: Record
    steps: Sequence[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]]
    inside: Mapping[str, "RecordMaker"]


class RowReader(ABC):
    """Makes records of the rows of a resource, or of a list inside its records.

    It is made at the start, of a checked mapping; a list has a `prefix` such as `lines[].`. `names`
    are all fields that the contract has there. Those that the mapping does not fill are null.
    `own_id` is None where there is no key. Where rows that were asked for may be no records, since
    the mapping has a condition for them, it `is_selective`.
    """

    is_selective = False

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
        self._paths = tuple(path for path in shapes if path.startswith(prefix))
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
        names = dict.fromkeys(it.removeprefix(prefix).split("[].")[0] for it in self._paths)
        self._numbers = {name: number for number, name in enumerate(names)}
        # the members that are values, shared by all sets of fields
        self._members: dict[str, Member] = {}
        for name, (source, shape, _) in planned.items():
            if name in names:
                about = f"{source_of(source)}, as {converter_of(source, shape)}"
                member = Member(name, self._numbers[name], about)
                self._members[name] = member.of_value(self._judged_by[name], shape)
        inner = mapped.lists if isinstance(mapped, ResourceMap) else {}
        self.lists = {
            name: self.__class__(resource, nested, shapes, converters, report, f"{name}[].")
            for name, nested in inner.items()
        }
        self.maker = lru_cache(MOST_MAKERS)(self._maker)
        self.maker(None)

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

    def list_member(self, member: Member, make: Make) -> Member:
        """Returns the member as a list in the row; null where it is fetched by itself."""
        return member

    def _maker(self, fields: Fields) -> RecordMaker:
        """Returns what makes records with these fields. The id, where there is one, is in all."""
        own_id = f"{self.prefix}id"
        form = [it for it in self._paths if fields is None or it in fields or it == own_id]
        names = dict.fromkeys(it.removeprefix(self.prefix).split("[].")[0] for it in form)
        inside = {name: rows.maker(fields) for name, rows in self.lists.items() if name in names}
        members, paths = list[Member](), list[str]()
        for name in names:
            member = self._members.get(name) or Member(name, self._numbers[name])
            members.append(
                self.list_member(member, inside[name].make) if name in inside else member
            )
            prefix = f"{name}[]."
            unmapped = [path for path in form if path.startswith(prefix)]
            of_list = inside[name].form if name in inside else unmapped
            paths += [f"{self.prefix}{name}"] if name in self.shapes else of_list
        source = source_text(members)
        values = [(name, self.by_name[name]) for name in names if name in self.by_name]
        return RecordMaker(
            make=compiled(source, members),
            source=source,
            form=tuple(paths),
            blank=dict.fromkeys(names),
            steps=[(name, value.plain, value.decode) for name, value in values],
            inside=inside,
        )

    def records(self, rows: Sequence[Any], fields: Fields = None) -> list[Record | None]:
        """Returns what `record` makes of each row; Formed where each is in the contract's form."""
        maker = self.maker(fields)
        made, refused = maker.make(rows)
        if not refused:
            return Formed(made, maker.form)
        for number in refused:
            made[number] = self.record(rows[number], maker)
        return made

    def record(self, row: Any, maker: RecordMaker, owner: str = "") -> Record | None:
        """Returns the record, read value by value; reports one without a usable id, returns None.

        An unreadable value is None, and reported. `owner` is the id of the record around the row.
        """
        record = maker.blank.copy()
        if self.has_id:
            record["id"] = self.id_of(row)
            if record["id"] is None:
                self.report(Trouble("no id", self.resource, f"{self.prefix}id", owner))
                return None
        for name, plain, decode in maker.steps:
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


class Batch(NamedTuple):
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
# Tells whether all of these records are what was asked for.
Fits = Callable[[Sequence[Record]], bool]
# Makes records of rows, as `ResourceReader.made` does.
MadeOf = Callable[[Sequence[Any], Only, Fields], Awaitable[Sequence[Record | None]]]


class ResourceReader(ABC):
    """Reads one resource. A page ends at its limit, after `most` rows or `patience` seconds."""

    most: int
    # whether a row under another id than the one that was asked for is nonsense
    exact: ClassVar[bool] = False
    patience = math.inf

    def __init__(self, name: str, rows: RowReader) -> None:
        self.name, self.rows = name, rows

    @abstractmethod
    async def row(self, public_id: str, only: Only, fields: Fields = None) -> Any:
        """Returns the row with that id, before it is judged. Raises NotFound.

        It may lack what no record with these fields, and none of the conditions, needs.
        """

    @abstractmethod
    async def rows_of(self, public_ids: Collection[str]) -> Mapping[str, Any]:
        """Returns the rows that are there, by public id; None for one that cannot be read."""

    @abstractmethod
    async def page(
        self,
        filters: Sequence[Filter],
        limit: int,
        after: str | None,
        only: Only = (),
        fields: Fields = None,
    ) -> Page:
        """Returns up to `limit` records that pass the filters, from behind the place `after`.

        Records that the conditions hide are not among them, nor among those skipped.
        """

    async def made(
        self, rows: Sequence[Any], only: Only, fields: Fields
    ) -> Sequence[Record | None]:
        """Returns the record of each row; None for what does not exist, UNUSABLE without an id.

        It is Formed where all records are in the contract's form.
        """
        if not only and not self.rows.is_selective:
            return self.records(rows, fields)
        exist = [self.judged(row, only) for row in rows]
        made = self.records([row for row, does in zip(rows, exist, strict=True) if does], fields)
        each = iter(made)
        outcomes = [next(each) if does else UNUSABLE if does is None else None for does in exist]
        return Formed(outcomes, made.form) if isinstance(made, Formed) else outcomes

    def judged(self, row: Any, only: Only) -> bool | None:
        """Returns whether the row is a record; None, once reported, where that is not clear."""
        return self.rows.exists(row, only)

    async def add_lists(self, records: Collection[Record], fields: Fields) -> bool:
        """Adds the lists inside records that are fetched for several records together.

        Returns whether all that is in them is in the contract's form.
        """
        return True

    def records(self, rows: Sequence[Any], fields: Fields) -> list[Record | None]:
        """Returns the record of each row that exists; UNUSABLE for one without a usable id."""
        made = self.rows.records(rows, fields)
        if not isinstance(made, Formed):
            return [UNUSABLE if record is None else record for record in made]
        return made

    def record(self, row: Any, only: Only, fields: Fields = None) -> Record | None:
        """Returns the record; None for what does not exist, UNUSABLE for what has no id."""
        if (only or self.rows.is_selective) and not self.rows.exists(row, only):
            return None
        made = self.records((row,), fields)
        return FormedRecord(made[0], made.form) if made[0] and isinstance(made, Formed) else made[0]

    async def one(self, public_id: str, only: Only = (), fields: Fields = None) -> Record:
        """Returns the record. Raises NotFound also where the conditions let none be."""
        record = self.asked(await self.row(public_id, only, fields), public_id, only, fields)
        return record if await self.add_lists((record,), fields) else dict(record)

    def asked(self, row: Any, public_id: str, only: Only, fields: Fields) -> Record:
        """Returns the record of the row that came for an id; raises what `one` does."""
        record = self.record(row, only, fields)
        if record is None:
            raise self.rows.missing()
        if record is UNUSABLE:
            raise base.BackendNonsense(f"a record of {self.name} has no usable id")
        if self.exact and record["id"] != public_id:
            raise base.BackendNonsense(f"asked for one of {self.name}, the backend gives another")
        return record

    async def exists(self, public_id: str, only: Only = ()) -> None:
        """Raises NotFound where there is no such record."""
        await self.one(public_id, only, frozenset())

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
        fields: Fields,
        fits: Fits | None = None,
        at_once: int = 0,
        made: MadeOf | None = None,
    ) -> Page:
        """Returns a page of the records that fit, made `at_once` of so many rows where it is given.

        With conditions a full page looks for what follows it: it must not tell of hidden records.
        """
        page = _Filling(limit, self.most, time.monotonic() + self.patience, only, fits, at_once)
        try:
            is_last = await self._fill(page, batches, fields, made or self.made)
        except Barren:  # the records found are kept, and the next call goes on behind them
            is_last = False
        finally:
            await batches.aclose()
        records = page.records
        if await self.add_lists(records, fields) and page.is_formed:
            records = Formed(records, self.rows.maker(fields).form)
        after = None
        if page.behind is not None and not is_last:
            batch, number = page.behind
            after = batch.end if number is None else batch.place(number)
        return Page(records=records, after=after, skipped=page.skipped + page.keyless)

    async def _fill(
        self, page: "_Filling", batches: Batches, fields: Fields, made_of: MadeOf
    ) -> bool:
        """Returns whether the list ended before the page was full or enough was looked at."""
        only = page.only
        async for batch in batches:
            page.keyless += batch.keyless
            begin, rows = 0, batch.rows
            while begin < len(rows):
                if page.is_enough or (page.is_full and not only):
                    return False
                made = await made_of(rows[begin : begin + page.step], only, fields)
                if not page.takes(made, batch, begin):
                    return False
                begin += len(made)
            if batch.last:
                return True
            page.behind = page.behind if batch.end is None else (batch, None)
            if page.is_enough or (page.is_full and not rows and not only):
                return False
        return True


class _Filling:
    """A page that is being filled, up to `behind`: a batch and a row's number, or None for all."""

    def __init__(
        self,
        limit: int,
        most: int,
        until: float,
        only: Only,
        fits: Fits | None,
        at_once: int,
    ) -> None:
        self.limit, self.most, self.until = limit, most, until
        self.only, self.fits, self.at_once = only, fits, at_once
        self.records: list[Record] = []
        self.skipped = self.keyless = self.looked = 0
        self.behind: tuple[Batch, int | None] | None = None
        self.is_formed = True

    @property
    def is_full(self) -> bool:
        return len(self.records) + self.skipped >= self.limit

    @property
    def is_enough(self) -> bool:
        """Whether one call has looked at enough: then the page is short, the next goes on."""
        late = self.behind is not None and time.monotonic() >= self.until
        return late or self.looked >= self.most

    @property
    def step(self) -> int:
        """How many rows are made records at once: no more than there is room for, but one."""
        return self.at_once or max(1, self.limit - len(self.records) - self.skipped)

    def takes(self, made: Sequence[Record | None], batch: Batch, begin: int) -> bool:
        """Takes what was made of rows of the batch; returns whether the page may take more."""
        self.is_formed = self.is_formed and isinstance(made, Formed)
        fits = self.fits
        if not self.at_once and not self.is_full and all(made) and (fits is None or fits(made)):  # type: ignore[arg-type]  # each is a record
            self.records.extend(made)  # type: ignore[arg-type]  # as above
            self.looked += len(made)
            self.behind = (batch, begin + len(made) - 1)
            return True
        for number, record in enumerate(made, begin):
            counts = record is not None and (record is UNUSABLE or fits is None or fits((record,)))
            if self.is_full and (counts or not self.only):
                return False
            self.looked += 1
            self.behind = (batch, number)
            if record is UNUSABLE:
                self.skipped += 1
            elif record is not None and counts:
                self.records.append(record)
        return True
