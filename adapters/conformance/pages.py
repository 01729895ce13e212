# ruff: noqa: S101 - it is made of asserts
"""Tests pages: each has every record once, costs little, and obeys conditions."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from adapters.base import Condition, FieldShape, NotFound, Only, Page, Record, lists_in
from adapters.conformance.practice import LARGEST_PAGE, Probe, needs

ADDED_AT_ONCE = 20
EVERY = 10  # pages
AT_MOST = 6  # conditions of each resource
# Makes a bound of a value in its JSON form, by the field's format.
_BOUNDS: Mapping[str, Callable[[str], Any]] = {
    "date-time": datetime.fromisoformat,
    "date": date.fromisoformat,
    **dict.fromkeys(("number", "integer", "money", "percent"), Decimal),
}
_COMPARED = {"min": operator.ge, "max": operator.le, "above": operator.gt, "below": operator.lt}
ORDERED = ("min", "max", "above", "below")
MEMBERS = ("in", "not in")


class PagePromises:
    """Tests of what every adapter promises about its pages.

    `many` clients are added before their list is read while others are added. `asked_per_page` is
    how many statements or requests a page may cost, beside one for each list inside its records.
    `in_parts` names resources that the practice system hands out in small parts, at any cost.
    """

    many = 10_000
    asked_per_page = 1
    in_parts: frozenset[str] = frozenset()

    async def test_pages_of_any_size_hold_each_record_once_in_one_order(self, probe: Probe) -> None:
        async for resource, large in probe.all_of_each():
            assert len({record["id"] for record in large}) == len(large), resource
            assert await probe.everything(resource, limit=173) == large, resource
            assert await probe.everything(resource, limit=1 + len(large) // 40) == large, resource

    async def test_pages_of_one_lose_nothing(self, probe: Probe) -> None:
        for resource in ("vets", "appointmentTypes"):
            assert await probe.everything(resource, limit=1) == await probe.everything(resource)

    @needs("add_clients")
    async def test_nothing_is_lost_or_told_twice_while_rows_are_added(self, probe: Probe) -> None:
        there = await probe.everything("clients")
        await probe.practice.add_clients(self.many, front=False)
        await probe.practice.settle()
        first = [client["id"] for client in await probe.everything("clients")]
        assert len(first) == len(there) + self.many
        # every few pages, some are added before the others and some behind them
        second: list[str] = []
        after, number = None, 0
        while number == 0 or after is not None:
            page = await probe.page("clients", limit=LARGEST_PAGE, after=after)
            second += [client["id"] for client in page.records]
            after, number = page.after, number + 1
            if number % EVERY == 2:
                await probe.practice.add_clients(ADDED_AT_ONCE, front=True)
                await probe.practice.add_clients(ADDED_AT_ONCE, front=False)
            assert number * LARGEST_PAGE < 3 * self.many + 10_000, "the pages have no end"
        assert len(set(second)) == len(second)
        known = set(first)
        assert [client for client in second if client in known] == first

    @needs("asked")
    async def test_a_page_costs_the_same_however_many_records_it_has(self, probe: Probe) -> None:
        for resource in set(probe.resources) - self.in_parts:
            await probe.adapter.ping()  # a connection's first statements belong to no page
            await probe.page(resource, limit=1)
            small, _ = await self._cost(probe, resource, 2)
            large, page = await self._cost(probe, resource, 50)
            lists = lists_in(probe.practice.shapes[resource])
            assert large == small, f"{len(page.records)} {resource} cost more than 2"
            assert large <= self.asked_per_page + len(lists), resource

    async def _cost(self, probe: Probe, resource: str, limit: int) -> tuple[int, Page]:
        await probe.practice.settle()
        before = await probe.practice.asked()
        page = await probe.page(resource, limit=limit)
        return await probe.practice.asked() - before, page


def let_be(records: Sequence[Record], only: Only) -> list[Record]:
    """Returns the records that meet all conditions."""
    return [record for record in records if all(_meets(record, condition) for condition in only)]


def _meets(record: Record, condition: Condition) -> bool:
    if (value := record[condition.field]) is None:
        return False
    if condition.test in MEMBERS:
        return (value in condition.value) is (condition.test == "in")
    kind = type(condition.value)
    bounded = getattr(kind, "fromisoformat", kind)(str(value))
    return bool(_COMPARED[condition.test](bounded, condition.value))


def conditions(records: Sequence[Record], shapes: Mapping[str, FieldShape]) -> Iterator[Condition]:
    """Yields conditions on each field with a value: values it may or may not have, and bounds."""
    for turn, (name, shape) in enumerate(shapes.items()):
        if "[]." in name or shape.many:
            continue
        values = sorted({record[name] for record in records if record[name] is not None}, key=str)
        if not values:
            continue
        middle = values[len(values) // 2]
        yield Condition(name, "in", (middle,))
        yield Condition(name, "not in", (middle, values[0]))
        if read := _BOUNDS.get(shape.format):
            for test in (ORDERED * 2)[turn % 4 :][:2]:
                yield Condition(name, test, read(str(middle)))


class NarrowingPromises:
    """Tests of what every adapter promises about conditions that it can narrow by."""

    async def test_pages_hold_just_what_conditions_let_be(self, probe: Probe) -> None:
        async for resource, records in probe.all_of_each():
            for only, there, _ in _narrowed(probe, resource, records):
                kept = await probe.everything(resource, only=only, limit=1 + len(there) // 3)
                assert kept == there, f"{resource} with {only}"

    async def test_what_is_hidden_is_not_there_by_its_id_either(self, probe: Probe) -> None:
        async for resource, records in probe.all_of_each():
            for only, there, hidden in _narrowed(probe, resource, records):
                for record in there[:1]:
                    assert await probe.one(resource, record["id"], only) == record
                for record in hidden[:1]:
                    with pytest.raises(NotFound):
                        await probe.one(resource, record["id"], only)

    async def test_within_what_is_hidden_is_nothing(self, probe: Probe) -> None:
        for only, there, hidden in _narrowed(probe, "clients", await probe.everything("clients")):
            for client in hidden[:1]:
                with pytest.raises(NotFound):
                    await probe.invoices_of(client["id"], only)
            for client in there[:1]:
                await probe.invoices_of(client["id"], only)

    async def test_for_who_is_hidden_nothing_can_be_booked(self, probe: Probe) -> None:
        draft = await probe.draft()
        made: Record | None = None
        for resource, public_id in (("clients", draft.client_id), ("patients", draft.patient_id)):
            for only, _, hidden in _narrowed(probe, resource, await probe.everything(resource)):
                narrow = replace(draft, only={resource: only})
                if public_id in {record["id"] for record in hidden}:
                    with pytest.raises(NotFound):
                        await probe.adapter.create_appointment(narrow)
                elif made is None:
                    made = await probe.adapter.create_appointment(narrow)
        if made is None:
            made = await probe.adapter.create_appointment(draft)
        assert await probe.bookings_of(draft) == [made]

    async def test_a_lost_booking_is_found_whoever_is_hidden_since(self, probe: Probe) -> None:
        draft = await probe.draft()
        made = await probe.adapter.create_appointment(draft)
        nobody: Only = (Condition("id", "in", ()),)
        hiding = replace(draft, only={"clients": nobody, "patients": nobody})
        assert await probe.bookings_of(hiding) == [made]

    async def test_what_it_cannot_narrow_by_is_a_problem_with_a_remedy(self, probe: Probe) -> None:
        refused = probe.adapter.narrows("clients", (Condition("nothing", "in", ("x",)),))
        assert refused, "a field that is none cannot be a condition"
        assert all(problem.text for problem in refused)
        assert list(probe.adapter.narrows("clients", ())) == []


def _narrowed(
    probe: Probe, resource: str, records: Sequence[Record]
) -> Iterator[tuple[Only, list[Record], list[Record]]]:
    """Yields conditions that the adapter takes, the records that meet them, and the others."""
    every = conditions(records, probe.practice.shapes[resource])
    taken = [condition for condition in every if not probe.adapter.narrows(resource, (condition,))]
    few = taken[:: 1 + len(taken) // AT_MOST]
    for only in [*((condition,) for condition in few), tuple(taken[-2:])]:
        there = let_be(records, only)
        ids = {record["id"] for record in there}
        yield only, there, [record for record in records if record["id"] not in ids]
