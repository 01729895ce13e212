"""Compares what is served with figures that a practice knows from its own screens.

Every count goes through all records. Where that has to end before the end, nothing was compared.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from adapters.base import Adapter, AdapterError, Filter, NotFound, Query, Record
from adapters.doctor.figures import (
    RESOURCES,
    DayFigure,
    DiaryFigure,
    FigureFile,
    InvoiceFigure,
    NamedFigures,
    Part,
    StockFigures,
)
from adapters.doctor.labels import NAMED, own_name
from adapters.doctor.outcome import LISTED, Figure, Outcome, Unseen
from adapters.documents.document import Document, Place
from adapters.examination import counted, short
from adapters.mapped.adapter import MappedAdapter
from adapters.values.convert import all_begin, fold

# Records of a resource that are gone through at most, and of a page.
MOST, PAGE = 500_000, 200
# As so many records counts a page that has fewer, so that empty pages come to an end, too.
LEAST = 20
# Statuses of appointments that take no time.
VOID = frozenset({"CANCELLED", "NO_SHOW"})


@dataclass(slots=True)
class Tally:
    """What was counted in one pass through all records of a resource."""

    total: int = 0
    skipped: int = 0
    by: dict[str, Counter[str]] = field(default_factory=dict)
    spelt: dict[str, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    low: list[str] = field(default_factory=list)
    ids: dict[str, list[str]] = field(default_factory=dict)


async def verified(
    adapter: Adapter, figures: FigureFile, document: Document, zone: ZoneInfo, now: datetime
) -> AsyncIterator[Figure]:
    """Yields what came of each figure, in the order of the parts of a file."""
    if isinstance(adapter, MappedAdapter):
        for _, ids in adapter.converters.tabled:  # they are shown to nobody
            ids.keep_none()
    asked = Asked(adapter, document, zone, now)
    for name, part in figures.parts.items():
        async for figure in asked.counted(name, part):
            yield figure
    for number, day in enumerate(figures.appointments):
        yield await asked.day(("appointments", number), day)
    for number, diary in enumerate(figures.diary):
        async for figure in asked.diary(("diary", number), diary):
            yield figure


class Asked:
    """The questions of one verification; what was read once is kept."""

    def __init__(self, adapter: Adapter, document: Document, zone: ZoneInfo, now: datetime) -> None:
        self._adapter, self._document = adapter, document
        self._zone, self._now = zone, now
        self._vets: list[Record] | None = None
        self._days: dict[date, list[Record]] = {}
        self._names: dict[tuple[str, str], str] = {}

    def _figure(
        self,
        place: Place,
        figure: str,
        said: Any,
        served: Any,
        *,
        at_key: bool = False,
        note: str = "",
    ) -> Figure:
        outcome = Outcome.AGREES if said == served else Outcome.DIFFERS
        at = self._place(place, at_key=at_key)
        return Figure(figure=figure, place=at, outcome=outcome, said=said, served=served, note=note)

    def _place(self, place: Place, *, at_key: bool = False) -> str:
        problem = self._document.problem(place, "", at_key=at_key)
        return f"{problem.file}:{problem.line}:{problem.column}"

    def _unseen(self, place: Place, figure: str, said: Any, why: object) -> Figure:
        note = f"could not be looked at: {short(why) if isinstance(why, Exception) else why}"
        return Figure(
            figure=figure, place=self._place(place), outcome=Outcome.UNSEEN, said=said, note=note
        )

    async def _every(
        self, resource: str, fields: Iterable[str], *filters: Filter
    ) -> AsyncIterator[tuple[list[Record], int]]:
        """Yields all records, page by page, with how many of each page were left out.

        Raises Unseen where they do not come to an end, or the mapping has none.
        """
        if resource not in self._adapter.resources:
            raise Unseen(f"{resource} is not in the mapping, so none is served")
        after, seen = None, 0
        wanted = frozenset(("id", *fields))
        while True:
            query = Query(
                resource=resource, now=self._now, filters=filters, limit=PAGE, after=after,
                fields=wanted,
            )  # fmt: skip
            try:
                page = await self._adapter.read_many(query)
            except AdapterError as error:
                raise Unseen(short(error)) from error
            seen += max(LEAST, len(page.records) + page.skipped)
            yield page.records, page.skipped
            if page.after is None:
                return
            if seen >= MOST or page.after == after:
                raise Unseen(f"{seen:,} {resource} were gone through, and there are more")
            after = page.after

    async def counted(self, name: str, part: Part) -> AsyncIterator[Figure]:
        """Yields the figures of one part of the file that counts records."""
        said, tally = list(_said(name, part)), Tally()
        numbers = {it.number for it in getattr(part, "list_", ())}
        try:
            tally = await self._tally(RESOURCES[name], part, numbers)
            why = ""
        except Unseen as error:
            why = str(error)
        for place, figure, value in said:
            if why:
                yield self._unseen(place, figure, value, why)
            elif isinstance(value, list):
                whole = place[-1] != "low_names"
                yield self._listed(
                    place, figure, value, tally.names if whole else tally.low, whole=whole
                )
            else:
                served = _counted_by(place, tally)
                note = _note(place, tally, value, served)
                yield self._figure(place, figure, value, served, at_key=len(place) > 2, note=note)
        for number, invoice in enumerate(getattr(part, "list_", ())):
            place = (name, "list", number)
            if why:
                yield self._unseen(place, f"invoice {invoice.number}", None, why)
                continue
            async for one in self._invoice(place, invoice, tally.ids.get(invoice.number, [])):
                yield one

    async def _tally(self, resource: str, part: Part, numbers: set[str]) -> Tally:
        tally = Tally(by={name: Counter() for name in part.by})
        takes_names = isinstance(part, NamedFigures)
        fields = [*part.by, *NAMED[resource], *(("isLow",) if resource == "stock" else ())]
        async for records, skipped in self._every(resource, fields):
            tally.skipped += skipped
            tally.total += len(records)
            for record in records:
                for name, counter in tally.by.items():
                    value = record.get(name)
                    counter[_folded(value)] += 1
                    tally.spelt.setdefault(_folded(value), str(value or "none"))
                if takes_names:
                    tally.names.append(own_name(resource, record))
                if record.get("isLow"):
                    tally.low.append(own_name(resource, record))
                if (own := str(record.get("number") or "")) in numbers:
                    tally.ids.setdefault(own, []).append(record["id"])
        return tally

    def _listed(
        self, place: Place, figure: str, said: list[str], served: Sequence[str], *, whole: bool
    ) -> Figure:
        """Returns what came of a list of names, which has all of them or (not `whole`) some."""
        left = Counter(map(_folded, served))
        missing = []
        # whole names come first, then long parts, as a part of one may begin others too
        for name in sorted(said, key=lambda each: (not left[_folded(each)], -len(each))):
            fitting = [each for each in left if left[each] and all_begin(name, [each])]
            whole_or_part = [_folded(name)] if left[_folded(name)] else fitting
            if len(whole_or_part) == 1:
                left[whole_or_part[0]] -= 1
            else:
                missing.append(name)
        surplus = []
        for name in served if whole else ():
            if left[_folded(name)]:
                left[_folded(name)] -= 1
                surplus.append(name)
        outcome = Outcome.DIFFERS if missing or surplus else Outcome.AGREES
        return Figure(
            figure=figure,
            place=self._place(place),
            outcome=outcome,
            said=list(said),
            served=list(served),
            missing=tuple(missing),
            surplus=tuple(surplus),
        )

    async def _invoice(
        self, place: Place, invoice: InvoiceFigure, ids: Sequence[str]
    ) -> AsyncIterator[Figure]:
        name = f"invoice {invoice.number}"
        if len(ids) != 1:
            found = f"{len(ids)} invoices have this number" if ids else "no invoice has this number"
            at = self._place((*place, "number"))
            yield Figure(figure=name, place=at, outcome=Outcome.DIFFERS, note=found)
            return
        query = Query(resource="invoices", now=self._now, id=ids[0])
        try:
            record = await self._adapter.read_one(query)
        except AdapterError as error:
            yield self._unseen(place, name, None, error)
            return
        for field_ in ("total", "balance", "status"):
            if (value := getattr(invoice, field_)) is not None:
                said = str(value)
                yield self._figure((*place, field_), f"{name}: {field_}", said, record.get(field_))

    async def _vet(self, name: str) -> Record:
        """Returns the vet of that name. Raises Unseen where it fits none, or several."""
        if self._vets is None:
            vets = list[Record]()
            async for records, _ in self._every("vets", ("name",)):
                vets += records
            self._vets = vets
        exact = [vet for vet in self._vets if _folded(vet.get("name")) == _folded(name)]
        fitting = exact or [vet for vet in self._vets if all_begin(name, [vet.get("name")])]
        if len(fitting) != 1:
            known = ", ".join(str(vet.get("name")) for vet in (fitting or self._vets)[:LISTED])
            how = "fits several vets" if fitting else "is the name of no vet"
            raise Unseen(f"{name} {how}: {known}")
        return fitting[0]

    async def _on(self, day: date) -> list[Record]:
        """Returns the appointments that begin on a day of the clinic's and take time."""
        if day not in self._days:
            begins = datetime.combine(day, time(), self._zone).astimezone(UTC)
            ends = datetime.combine(day + timedelta(days=1), time(), self._zone).astimezone(UTC)
            filters = list[Filter]()
            if "scheduledAt" in self._adapter.filterable.get("appointments", ()):
                filters.append(Filter("since", ("scheduledAt",), begins))
            fields = ("scheduledAt", "status", "vetId", "patientId", "clientId")
            found = list[Record]()
            async for records, _ in self._every("appointments", fields, *filters):
                for record in records:
                    at = record.get("scheduledAt")
                    if at and begins <= datetime.fromisoformat(at) < ends:
                        found.append(record)
            self._days[day] = found
        return [record for record in self._days[day] if record.get("status") not in VOID]

    async def day(self, place: Place, figure: DayFigure) -> Figure:
        """Returns what came of the number of appointments on a day."""
        name = f"appointments on {figure.day}" + (f", {figure.vet}" if figure.vet else "")
        try:
            vet = await self._vet(figure.vet) if figure.vet else None
            records = await self._on(figure.day)
        except Unseen as error:
            return self._unseen(place, name, figure.total, error)
        served = [it for it in records if vet is None or it.get("vetId") == vet["id"]]
        return self._figure((*place, "total"), name, figure.total, len(served))

    async def diary(self, place: Place, figure: DiaryFigure) -> AsyncIterator[Figure]:
        """Yields what came of a vet's appointments, and free times, on a day."""
        name = f"diary of {figure.vet} on {figure.day}"
        looks: list[tuple[str, Any, Callable[..., Awaitable[Figure]]]] = []
        if figure.appointments is not None:
            looks.append(("appointments", figure.appointments, self._appointments))
        if figure.free is not None:
            looks.append(("free", figure.free, self._free))
        for part, said, look in looks:
            try:
                yield await look((*place, part), f"{name}: {part}", figure, said)
            except (Unseen, AdapterError) as error:
                yield self._unseen((*place, part), f"{name}: {part}", said, error)

    async def _appointments(
        self, place: Place, name: str, figure: DiaryFigure, said: list[str]
    ) -> Figure:
        """Compares each entry with an appointment at its time whose animal or owner fits it."""
        vet = await self._vet(figure.vet)
        records = [it for it in await self._on(figure.day) if it.get("vetId") == vet["id"]]
        left = sorted([await self._entry(record) for record in records])
        count, missing = len(left), []
        for entry in said:
            at, _, words = entry.partition(" ")
            fits = (it for it in left if it[0] == at and (not words or all_begin(words, [it[1]])))
            if found := next(fits, None):
                left.remove(found)
            else:
                missing.append(entry)
        surplus = [f"{at} {who}".strip() for at, who in left]
        return Figure(
            figure=name,
            place=self._place(place),
            outcome=Outcome.DIFFERS if missing or surplus else Outcome.AGREES,
            said=list(said),
            served=count,
            missing=tuple(missing),
            surplus=tuple(surplus),
        )

    async def _entry(self, record: Record) -> tuple[str, str]:
        """Returns when an appointment begins on the clinic's clock, and whose it is."""
        names = [await self._name(it, record.get(f"{it[:-1]}Id")) for it in ("patients", "clients")]
        return self._clock(record["scheduledAt"]), ", ".join(filter(None, names))

    async def _name(self, resource: str, public_id: str | None) -> str:
        if not public_id or resource not in self._adapter.resources:
            return ""
        at = resource, public_id
        if at not in self._names:
            query = Query(resource=resource, now=self._now, id=public_id)
            try:
                record = await self._adapter.read_one(query)
                self._names[at] = own_name(resource, record)
            except NotFound:  # hidden: the time is all that is known
                self._names[at] = ""
        return self._names[at]

    def _clock(self, instant: str) -> str:
        return f"{datetime.fromisoformat(instant).astimezone(self._zone):%H:%M}"

    async def _free(self, place: Place, name: str, figure: DiaryFigure, said: list[str]) -> Figure:
        """Compares the free times of a day to come, or what is left of today."""
        if "slots" not in self._adapter.resources:
            raise Unseen("the mapping has no diary, so no free time is offered")
        here = self._now.astimezone(self._zone)
        if figure.day < here.date():
            raise Unseen("free times are offered of today and of days to come alone")
        vet = await self._vet(figure.vet)
        kind = None if figure.type is None else await self._type(figure.type)
        values = {"vetId": vet["id"], "date": figure.day, "appointmentTypeId": kind}
        query = Query(resource="slots", now=self._now, values=values)
        page = await self._adapter.read_many(query)
        served = [self._clock(slot["startTime"]) for slot in page.records]
        passed = [it for it in said if figure.day == here.date() and it < f"{here:%H:%M}"]
        coming = [it for it in said if it not in passed]
        made = self._listed(place, name, coming, served, whole=True)
        if not passed:
            return made
        return replace(made, note=f"without {len(passed)} that have passed")

    async def _type(self, name: str) -> str:
        """Returns the id of the appointment type of that name. Raises Unseen."""
        found = list[Record]()
        async for records, _ in self._every("appointmentTypes", ("name",)):
            found += records
        fitting = [it for it in found if _folded(it.get("name")) == _folded(name)]
        if len(fitting) != 1:
            how = (
                "is the name of several appointment types" if fitting else "is no appointment type"
            )
            raise Unseen(f"{name} {how}: {', '.join(str(it.get('name')) for it in found[:LISTED])}")
        return str(fitting[0]["id"])


def _said(name: str, part: Part) -> Iterable[tuple[Place, str, Any]]:
    """Yields each figure of a part: its place in the file, its name, and what the file says."""
    if part.total is not None:
        yield (name, "total"), f"{name}: total", part.total
    if isinstance(part, NamedFigures) and part.names is not None:
        yield (name, "names"), f"{name}: names", part.names
    for field_ in part.by:
        for value, count in getattr(part, field_).items():
            yield (name, field_, value), f"{name}: {field_} {value}", count
    if isinstance(part, StockFigures):
        if part.low is not None:
            yield (name, "low"), f"{name}: low", part.low
        if part.low_names:
            yield (name, "low_names"), f"{name}: low_names", part.low_names


def _counted_by(place: Place, tally: Tally) -> int:
    if place[-1] == "total" and len(place) == 2:
        return tally.total
    if place[-1] == "low" and len(place) == 2:
        return len(tally.low)
    return tally.by[str(place[1])][_folded(place[2])]


def _note(place: Place, tally: Tally, said: int, served: int) -> str:
    """Returns what else is to be known of a count; of a value that nothing has, the others."""
    if place[-1] == "total" and len(place) == 2:
        skipped = counted(tally.skipped, "row", "have")
        return f"{skipped} no usable id, so no partner is served them" if tally.skipped else ""
    if len(place) == 2 or served or not said:
        return ""
    known = tally.by[str(place[1])].most_common(LISTED)
    others = ", ".join(f"{tally.spelt[value]} {count:,}" for value, count in known)
    return f"served are {others}" if others else "nothing is served"


def _folded(value: Any) -> str:
    """Returns a name as it is compared: without case, accents and signs."""
    return "" if value is None else " ".join(fold(str(value)).split())
