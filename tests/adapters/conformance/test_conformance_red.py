"""The suite turns red on adapters of which each breaks one promise: else it would prove nothing."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4, uuid5

import msgspec
import pytest

from adapters.base import (
    Adapter,
    AdapterError,
    BackendTimeout,
    BackendUnavailable,
    Draft,
    Filter,
    NotFound,
    Only,
    Page,
    Query,
    Record,
    SlotTaken,
    Watched,
)
from adapters.conformance import AdapterConformance
from adapters.conformance.pages import let_be
from adapters.conformance.practice import Probe
from adapters.documents.problems import Problem
from tests.adapters.sample_practice import PARIS, SampleClinic
from tests.adapters.waits import HURRIED


def in_paris(day: date, hour: int) -> datetime:
    return datetime.combine(day, time(hour), PARIS).astimezone(UTC)


class Faithful:
    """The inner adapter, as it is: each of the others changes one thing."""

    def __init__(self, inner: Adapter, practice: SampleClinic) -> None:
        self.inner, self.practice = inner, practice

    @property
    def resources(self) -> frozenset[str]:
        return self.inner.resources

    @property
    def filterable(self) -> Mapping[str, frozenset[str]]:
        return self.inner.filterable

    @property
    def books(self) -> bool:
        return self.inner.books

    @property
    def excludes(self) -> bool:
        return self.inner.excludes

    @property
    def settle(self) -> float:
        return self.inner.settle

    @property
    def default_length(self) -> timedelta | None:
        return self.inner.default_length

    def narrows(self, resource: str, only: Only) -> Sequence[Problem]:
        return self.inner.narrows(resource, only)

    async def read_one(self, query: Query) -> Record:
        return await self.inner.read_one(query)

    async def read_many(self, query: Query) -> Page:
        return await self.inner.read_many(query)

    async def create_appointment(self, draft: Draft) -> Record:
        return await self.inner.create_appointment(draft)

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        return await self.inner.find_appointments(draft, since)

    async def find_overwritten(self, appointments: Sequence[str]) -> Watched:
        return await self.inner.find_overwritten(appointments)

    async def check(self) -> Sequence[Problem]:
        return await self.inner.check()

    async def ping(self) -> None:
        await self.inner.ping()

    async def aclose(self) -> None:
        await self.inner.aclose()


class LosesTheLastOfAPage(Faithful):
    async def read_many(self, query: Query) -> Page:
        page = await self.inner.read_many(query)
        if page.after is None:
            return page
        return Page(records=page.records[:-1], after=page.after, skipped=page.skipped + 1)


class TellsTheFirstTwice(Faithful):
    async def read_many(self, query: Query) -> Page:
        page = await self.inner.read_many(query)
        return Page(records=page.records[:1] + page.records, after=page.after)


class CountsItsWayThroughPages(Faithful):
    """Pages by offset, over rows that come in front."""

    async def read_many(self, query: Query) -> Page:
        if query.resource != "clients" or query.filters:
            return await self.inner.read_many(query)
        begin = int(query.after or 0)
        every = await self.inner.read_many(msgspec.structs.replace(query, limit=9_999, after=None))
        end = begin + query.limit
        after = str(end) if end < len(every.records) else None
        return Page(records=every.records[begin:end], after=after)


class AsksForEachRecord(Faithful):
    async def read_many(self, query: Query) -> Page:
        page = await self.inner.read_many(query)
        for each in page.records if query.resource != "slots" else ():
            ask = Query(resource=query.resource, now=query.now, id=each["id"])
            await self.inner.read_one(ask)
        return page


class Changes(Faithful):
    """Each record a little changed."""

    def changed(self, record: Record) -> Record:
        raise NotImplementedError

    async def read_one(self, query: Query) -> Record:
        return self.changed(await self.inner.read_one(query))

    async def read_many(self, query: Query) -> Page:
        page = await self.inner.read_many(query)
        records = [self.changed(each) for each in page.records]
        return Page(records=records, after=page.after, skipped=page.skipped)


class PassesCodesThrough(Changes):
    def changed(self, record: Record) -> Record:
        return record | {"status": record["status"] or "?"} if "status" in record else record


class PassesZeroDatesThrough(Changes):
    def changed(self, record: Record) -> Record:
        if "birthDate" not in record:
            return record
        return record | {"birthDate": record["birthDate"] or "0000-00-00"}


class PassesOddDaysThrough(Changes):
    def changed(self, record: Record) -> Record:
        if "birthDate" not in record:
            return record
        return record | {"birthDate": record["birthDate"] or "2020-02-31"}


class MakesMoneyANumber(Changes):
    def changed(self, record: Record) -> Record:
        return record | {"total": float(record["total"] or 0)} if "total" in record else record


class GivesDecimals(Changes):
    def changed(self, record: Record) -> Record:
        weight = record.get("weightKg")
        return record if weight is None else record | {"weightKg": Decimal(str(weight))}


class LeavesTheZoneOut(Changes):
    def changed(self, record: Record) -> Record:
        created = (record.get("createdAt") or "").removesuffix("Z")
        return record | {"createdAt": created} if created else record


class ShowsAColumnMore(Changes):
    def changed(self, record: Record) -> Record:
        return record | {"passport": "12"} if "firstName" in record else record


class SpoilsALine(Changes):
    def changed(self, record: Record) -> Record:
        for line in record.get("lines", ()):
            line["patientId"] = "7"
        return record


class ForgetsItsIds(Faithful):
    """Ids that the next process does not know."""

    def __init__(self, inner: Adapter, practice: SampleClinic) -> None:
        super().__init__(inner, practice)
        self.salt, self.known = uuid4(), dict[str, str]()

    def shown(self, record: Record) -> Record:
        given = str(uuid5(self.salt, record["id"]))
        self.known[given] = record["id"]
        return record | {"id": given}

    async def read_one(self, query: Query) -> Record:
        inner = self.known.get(query.id, str(UUID(int=0)))
        return self.shown(await self.inner.read_one(msgspec.structs.replace(query, id=inner)))

    async def read_many(self, query: Query) -> Page:
        page = await self.inner.read_many(query)
        return Page(records=[self.shown(each) for each in page.records], after=page.after)


class AnswersWithNothing(Faithful):
    async def read_one(self, query: Query) -> Record:
        try:
            return await self.inner.read_one(query)
        except NotFound:
            return {}


class MixesCallersUp(Faithful):
    """What one asks is kept where another may write over it."""

    async def read_one(self, query: Query) -> Record:
        self.query = query
        await asyncio.sleep(0)
        return await self.inner.read_one(self.query)


class LacksStock(Faithful):
    @property
    def resources(self) -> frozenset[str]:
        return self.inner.resources - {"stock"}


class TakesWhoeverIsMeant(Faithful):
    """No look at what an answer is within."""

    async def read_many(self, query: Query) -> Page:
        return await self.inner.read_many(msgspec.structs.replace(query, within=None))


class FiltersOtherwise(Faithful):
    """Each filter changed."""

    def otherwise(self, each: Filter) -> Filter:
        raise NotImplementedError

    async def read_many(self, query: Query) -> Page:
        filters = tuple(self.otherwise(each) for each in query.filters)
        return await self.inner.read_many(msgspec.structs.replace(query, filters=filters))


class LeavesTheMomentOut(FiltersOtherwise):
    def otherwise(self, each: Filter) -> Filter:
        return replace(each, value=each.value + timedelta(seconds=1))


class SearchesTheFirstWord(FiltersOtherwise):
    def otherwise(self, each: Filter) -> Filter:
        return replace(each, value=each.value.split()[0]) if each.match == "search" else each


class ForgetsFilters(Faithful):
    async def read_many(self, query: Query) -> Page:
        return await self.inner.read_many(msgspec.structs.replace(query, filters=()))


class ChangesSlots(Faithful):
    """Free times a little changed."""

    def slots(self, query: Query, found: list[Record]) -> list[Record]:
        raise NotImplementedError

    async def read_many(self, query: Query) -> Page:
        page = await self.inner.read_many(query)
        if query.resource != "slots":
            return page
        return Page(records=self.slots(query, page.records))


class OffersOddLengths(ChangesSlots):
    def slots(self, query: Query, found: list[Record]) -> list[Record]:
        return [each | {"endTime": found[-1]["endTime"]} for each in found]


class OffersNothingOfNobody(Faithful):
    async def read_many(self, query: Query) -> Page:
        try:
            return await self.inner.read_many(query)
        except NotFound:
            return Page(records=[])


class IgnoresThePresent(Faithful):
    async def read_many(self, query: Query) -> Page:
        past = datetime(2026, 1, 1, tzinfo=UTC)
        return await self.inner.read_many(msgspec.structs.replace(query, now=past))


class CountsOnTheWall(ChangesSlots):
    """The hour that a long day has twice is no hour, as is the one that a short day has not."""

    def slots(self, query: Query, found: list[Record]) -> list[Record]:
        return [each for each in found if not self.after_change(query.values["date"], each)]

    def after_change(self, day: date, slot: Record) -> bool:
        begin, noon = (in_paris(day, hour) for hour in (0, 12))
        real = noon - begin
        start = datetime.fromisoformat(slot["startTime"])
        return real != timedelta(hours=12) and start >= begin + timedelta(hours=4)


class LosesNights(ChangesSlots):
    def slots(self, query: Query, found: list[Record]) -> list[Record]:
        day: date = query.values["date"]
        dawn = in_paris(day, 6)
        return [each for each in found if datetime.fromisoformat(each["startTime"]) >= dawn]


class LetsCancelledBlock(ChangesSlots):
    """What was taken once stays taken."""

    def __init__(self, inner: Adapter, practice: SampleClinic) -> None:
        super().__init__(inner, practice)
        self.least: dict[tuple[Any, ...], set[str]] = {}

    def slots(self, query: Query, found: list[Record]) -> list[Record]:
        known = (query.values["vetId"], query.values["date"])
        starts = {each["startTime"] for each in found}
        left = self.least[known] = self.least.get(known, starts) & starts
        return [each for each in found if each["startTime"] in left]


class OffersWhatIsTaken(ChangesSlots):
    """What was free once stays free."""

    def __init__(self, inner: Adapter, practice: SampleClinic) -> None:
        super().__init__(inner, practice)
        self.first: dict[str, list[Record]] = {}

    def slots(self, query: Query, found: list[Record]) -> list[Record]:
        return self.first.setdefault(repr(query.values), found)


class DoublesSlots(ChangesSlots):
    def slots(self, query: Query, found: list[Record]) -> list[Record]:
        return [each for each in found for _ in range(2)]


class SwallowsSlotTaken(Faithful):
    async def create_appointment(self, draft: Draft) -> Record:
        try:
            return await self.inner.create_appointment(draft)
        except SlotTaken:
            return {"id": str(UUID(int=1))}


class BooksOverOthers(Faithful):
    async def create_appointment(self, draft: Draft) -> Record:
        try:
            return await self.inner.create_appointment(draft)
        except SlotTaken:
            end = draft.scheduled_at + timedelta(minutes=30)
            return {"scheduledAt": draft.scheduled_at.isoformat(), "endTime": end.isoformat()}


class CallsEverythingTaken(Faithful):
    async def create_appointment(self, draft: Draft) -> Record:
        try:
            return await self.inner.create_appointment(draft)
        except AdapterError as error:
            raise SlotTaken("no") from error


class BooksAnotherTime(Faithful):
    async def create_appointment(self, draft: Draft) -> Record:
        made = await self.inner.create_appointment(draft)
        return made | {"scheduledAt": made["endTime"]}


class FindsNothingOfIt(Faithful):
    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        return []


class SeesNoDesk(Faithful):
    async def find_overwritten(self, appointments: Sequence[str]) -> Watched:
        return Watched()


class RaisesAsItLikes(Faithful):
    """What goes wrong, in other words."""

    def raised(self, error: AdapterError) -> Exception:
        raise NotImplementedError

    async def read_one(self, query: Query) -> Record:
        try:
            return await self.inner.read_one(query)
        except (BackendUnavailable, BackendTimeout) as error:
            raise self.raised(error) from error

    async def create_appointment(self, draft: Draft) -> Record:
        try:
            return await self.inner.create_appointment(draft)
        except BackendUnavailable as error:
            raise self.raised(error) from error


class LeaksTheDriver(RaisesAsItLikes):
    def raised(self, error: AdapterError) -> Exception:
        return sqlite3.OperationalError("unable to open database file")


class SaysNotThere(RaisesAsItLikes):
    def raised(self, error: AdapterError) -> Exception:
        return NotFound("no such thing")


class QuotesValues(Faithful):
    async def create_appointment(self, draft: Draft) -> Record:
        try:
            return await self.inner.create_appointment(draft)
        except BackendUnavailable as error:
            raise BackendUnavailable(f"cannot write {draft.reason}") from error


class HasNoDeadline(Faithful):
    async def ping(self) -> None:
        try:
            await self.inner.ping()
        except AdapterError:
            await asyncio.sleep(3)
            raise


class StaysDown(Faithful):
    down = False

    async def ping(self) -> None:
        try:
            await self.inner.ping()
        except AdapterError:
            self.down = True
        if self.down:
            raise BackendUnavailable("down")


class KeepsRoomForTheGone(Faithful):
    """Who leaves does not give back the place."""

    def __init__(self, inner: Adapter, practice: SampleClinic) -> None:
        super().__init__(inner, practice)
        self.room = asyncio.Semaphore(8)

    async def read_many(self, query: Query) -> Page:
        await self.room.acquire()
        page = await self.inner.read_many(query)
        self.room.release()
        return page


class TellsNobody(Faithful):
    """No report of what could not be read."""

    async def read_one(self, query: Query) -> Record:
        record = await self.inner.read_one(query)
        self.practice.troubles.clear()
        return record


class ShowsTheHiddenInPages(Faithful):
    async def read_many(self, query: Query) -> Page:
        return await self.inner.read_many(msgspec.structs.replace(query, only=()))


class TakesTheHiddenOutOfPages(Faithful):
    """Only once a page has been read: so it is short."""

    async def read_many(self, query: Query) -> Page:
        page = await self.inner.read_many(msgspec.structs.replace(query, only=()))
        records = let_be(page.records, query.only)
        return Page(records=records, after=page.after, skipped=page.skipped)


class ShowsTheHiddenAlone(Faithful):
    async def read_one(self, query: Query) -> Record:
        return await self.inner.read_one(msgspec.structs.replace(query, only=()))


class AnswersWithinTheHidden(Faithful):
    async def read_many(self, query: Query) -> Page:
        return await self.inner.read_many(msgspec.structs.replace(query, within_only=()))


class BooksForTheHidden(Faithful):
    async def create_appointment(self, draft: Draft) -> Record:
        return await self.inner.create_appointment(replace(draft, only={}))


class FindsForNobodyHidden(Faithful):
    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        return [] if draft.only else await self.inner.find_appointments(draft, since)


class SaysItCanNarrowByAnything(Faithful):
    def narrows(self, resource: str, only: Only) -> Sequence[Problem]:
        return []


PAGES = "test_pages_of_any_size_hold_each_record_once_in_one_order"
LOOKS = "test_records_look_as_the_shapes_say"
DOWN = "test_a_system_that_is_down_is_reported_until_it_is_back"
RACE = "test_of_many_at_once_in_two_processes_one_gets_the_time"
NARROW = "test_pages_hold_just_what_conditions_let_be"
BOOKS = "test_a_booking_takes_its_time_reads_back_and_can_be_found"
BROKEN: tuple[tuple[type[Faithful], str], ...] = (
    (LosesTheLastOfAPage, PAGES),
    (TellsTheFirstTwice, PAGES),
    (LosesTheLastOfAPage, "test_pages_of_one_lose_nothing"),
    (CountsItsWayThroughPages, "test_nothing_is_lost_or_told_twice_while_rows_are_added"),
    (AsksForEachRecord, "test_a_page_costs_the_same_however_many_records_it_has"),
    (PassesCodesThrough, "test_an_unknown_code_is_null_and_told"),
    (TellsNobody, "test_an_unknown_code_is_null_and_told"),
    (PassesOddDaysThrough, "test_an_unreadable_value_is_null_and_told"),
    (TellsNobody, "test_an_unreadable_value_is_null_and_told"),
    (PassesZeroDatesThrough, "test_a_zero_date_is_null_and_no_trouble"),
    (MakesMoneyANumber, LOOKS),
    (GivesDecimals, LOOKS),
    (LeavesTheZoneOut, LOOKS),
    (ShowsAColumnMore, LOOKS),
    (SpoilsALine, LOOKS),
    (ForgetsItsIds, "test_an_id_leads_to_its_record_from_another_process_too"),
    (ForgetsItsIds, "test_a_reference_leads_to_a_record_or_to_none"),
    (AnswersWithNothing, "test_an_id_belongs_to_one_resource"),
    (TakesWhoeverIsMeant, "test_within_what_is_not_there_is_nothing"),
    (ForgetsFilters, "test_a_filter_keeps_just_the_records_that_match"),
    (ForgetsFilters, "test_the_items_that_are_low_are_those_that_say_so"),
    (LeavesTheMomentOut, "test_since_includes_the_moment_itself"),
    (SearchesTheFirstWord, "test_a_search_finds_the_beginnings_of_all_its_words"),
    (DoublesSlots, "test_free_times_are_in_order_and_without_doubles"),
    (IgnoresThePresent, "test_what_has_begun_is_not_free"),
    (CountsOnTheWall, "test_days_of_23_and_25_hours_lose_and_double_nothing"),
    (LosesNights, "test_a_night_shift_belongs_to_two_days"),
    (OffersWhatIsTaken, "test_a_night_shift_belongs_to_two_days"),
    (
        LetsCancelledBlock,
        "test_an_appointment_blocks_its_time_until_it_is_cancelled",
    ),
    (
        OffersWhatIsTaken,
        "test_an_appointment_blocks_its_time_until_it_is_cancelled",
    ),
    (OffersWhatIsTaken, "test_an_absence_blocks_all_of_the_days_it_covers"),
    (OffersWhatIsTaken, BOOKS),
    (BooksAnotherTime, BOOKS),
    (FindsNothingOfIt, BOOKS),
    (SwallowsSlotTaken, BOOKS),
    (SwallowsSlotTaken, RACE),
    (CallsEverythingTaken, "test_who_is_not_there_is_not_found_and_books_nothing"),
    (CallsEverythingTaken, "test_for_an_animal_that_has_died_nothing_is_booked"),
    (SwallowsSlotTaken, "test_only_a_time_that_is_offered_can_be_booked"),
    (SeesNoDesk, "test_what_the_desk_writes_over_a_booking_is_found"),
    (LeaksTheDriver, DOWN),
    (SaysNotThere, DOWN),
    (CallsEverythingTaken, DOWN),
    (QuotesValues, DOWN),
    (StaysDown, DOWN),
    (HasNoDeadline, "test_a_slow_system_costs_no_more_than_the_patience"),
    (LeaksTheDriver, "test_nonsense_is_said_to_be_so"),
    (LacksStock, "test_it_has_what_the_operations_need"),
    (OffersNothingOfNobody, "test_who_or_what_is_not_there_has_no_free_times"),
    (OffersOddLengths, "test_every_type_of_appointment_has_its_length"),
    (BooksOverOthers, "test_neighbours_at_once_never_overlap"),
    (BooksOverOthers, RACE),
    (MixesCallersUp, "test_many_callers_at_once_are_all_answered"),
    (KeepsRoomForTheGone, "test_callers_who_leave_keep_nothing"),
    (ShowsTheHiddenInPages, NARROW),
    (TakesTheHiddenOutOfPages, NARROW),
    (ShowsTheHiddenAlone, "test_what_is_hidden_is_not_there_by_its_id_either"),
    (AnswersWithinTheHidden, "test_within_what_is_hidden_is_nothing"),
    (BooksForTheHidden, "test_for_who_is_hidden_nothing_can_be_booked"),
    (FindsForNobodyHidden, "test_a_lost_booking_is_found_whoever_is_hidden_since"),
    (SaysItCanNarrowByAnything, "test_what_it_cannot_narrow_by_is_a_problem_with_a_remedy"),
)


class Suite(AdapterConformance):
    many = 600


class BrokenClinic(SampleClinic):
    def __init__(self, folder: Path, broken: type[Faithful]) -> None:
        super().__init__(folder, HURRIED)
        self.broken = broken

    def open(self) -> Adapter:
        return self.broken(super().open(), self)


@pytest.fixture
async def clinic(tmp_path: Path, broken: type[Faithful]) -> AsyncIterator[BrokenClinic]:
    made = BrokenClinic(tmp_path, broken)
    with made.counting():
        yield made
    await made.ailing.aclose()


def test_every_promise_is_broken_once() -> None:
    promises = {each for each in dir(AdapterConformance) if each.startswith("test_")}
    assert {promise for _, promise in BROKEN} == promises


@pytest.mark.parametrize(
    ("broken", "promise"), BROKEN, ids=[f"{each.__name__}-{name}" for each, name in BROKEN]
)
@pytest.mark.long
async def test_a_broken_promise_turns_it_red(clinic: BrokenClinic, promise: str) -> None:
    adapter = clinic.open()
    try:
        with pytest.raises((AssertionError, pytest.fail.Exception, AdapterError, TimeoutError)):
            await getattr(Suite(), promise)(Probe(clinic, adapter))
    finally:
        await adapter.aclose()
