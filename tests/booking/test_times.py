"""Free times, but for those that may have been booked, nobody knows; and how long types last."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.base import BackendUnavailable, OutcomeUnknown, Page, Query, Record
from gateway.booking.times import IN_DOUBT, TYPES_AGAIN, TYPES_KEPT, FreeTimes, Lengths
from gateway.store import StoreError
from tests.booking.clinic import DAY, NOW, WINDOW, World


def slot(start: datetime, minutes: int = 30) -> Record:
    ends = start + timedelta(minutes=minutes)
    return {"startTime": written(start), "endTime": written(ends)}


def written(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Pages:
    """An adapter that gives the same records to whoever asks, or fails."""

    resources = filterable = books = excludes = settle = narrows = check = None

    def __init__(self, records: Sequence[Record]) -> None:
        self.records, self.asked, self.fails = list(records), 0, False
        self.default_length: timedelta | None = None

    async def read_one(self, query: Query) -> Record:
        return self.records[0]

    async def read_many(self, query: Query) -> Page:
        self.asked += 1
        if self.fails:
            raise BackendUnavailable("down")
        at = int(query.after or 0)
        after = str(at + 1) if at + 1 < len(self.records) else None
        if query.resource == "slots":
            return Page(records=self.records)
        return Page(records=self.records[at : at + 1], after=after)


STARTS = [NOW + DAY + timedelta(minutes=minutes) for minutes in (-30, -15, 0, 15, 30)]


async def offered(blocked: FreeTimes, vet: str = "v") -> list[datetime]:
    query = Query(resource="slots", now=NOW, values={"vetId": vet, "date": STARTS[0].date()})
    page = await blocked.read_many(query)
    return [datetime.fromisoformat(each["startTime"]) for each in page.records]


async def test_times_that_may_have_been_booked_are_not_offered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: Any = Pages([slot(each) for each in STARTS])
    now = 0.0
    blocked = FreeTimes(pages, world.store, WINDOW, clock=lambda: now)
    assert await offered(blocked) == STARTS
    assert await blocked.read_one(Query(resource="slots", now=NOW)) == slot(STARTS[0])
    world.clinic.answers = [OutcomeUnknown("lost")]
    with pytest.raises(OutcomeUnknown):
        await world.book()
    now = 1.0
    assert await offered(blocked) == [STARTS[0], STARTS[-1]]
    assert await offered(blocked, "another vet") == STARTS

    def fail() -> None:
        raise StoreError("it is down")

    with monkeypatch.context() as patched:  # reads go on
        patched.setattr(world.store, "glance", fail)
        now = 2.0
        assert await offered(blocked) == [STARTS[0], STARTS[-1]]
    assert (await world.book()).record["id"] == "a0"
    now = 5.0
    assert await offered(blocked) == STARTS


async def test_a_type_lasts_as_it_says_and_what_nobody_says_two_hours() -> None:
    pages: Any = Pages([
        {"id": "a", "durationMinutes": 20},
        {"id": "b", "durationMinutes": None},
        {"id": "c", "durationMinutes": 45},
    ])  # fmt: skip
    now = 0.0
    lengths = Lengths(pages, clock=lambda: now)
    for type_id, lasts in (("a", 20), ("c", 45), ("b", 120), ("x", 120), (None, 120)):
        assert await lengths.of(type_id, NOW) == timedelta(minutes=lasts)
    assert pages.asked == 3
    pages.default_length = timedelta(minutes=20)
    assert await lengths.of(None, NOW) == timedelta(minutes=20)
    pages.records[0]["durationMinutes"] = 25
    now = TYPES_KEPT
    assert await lengths.of("a", NOW) == timedelta(minutes=25)
    pages.fails = True
    now += TYPES_KEPT
    assert await lengths.of("a", NOW) == timedelta(minutes=25)
    assert await lengths.of("x", NOW) == IN_DOUBT
    asked = pages.asked
    now += TYPES_AGAIN
    assert await lengths.of("x", NOW) == IN_DOUBT
    assert pages.asked == asked + 1


async def test_a_type_that_cannot_be_read_lasts_as_the_longest_where_that_is_longer() -> None:
    pages: Any = Pages([{"id": "a", "durationMinutes": 240}, {"id": "b", "durationMinutes": None}])
    lengths = Lengths(pages)
    for type_id, lasts in (("a", 240), ("b", 240), ("x", 240), (None, 120)):
        assert await lengths.of(type_id, NOW) == timedelta(minutes=lasts)
