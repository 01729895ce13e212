# ruff: noqa: S101 - it is made of asserts
"""Pages: every record once, what a page costs, and only those that conditions let be."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any

import pytest

from adapters.base import (
    Adapter,
    Condition,
    Draft,
    FieldShape,
    Filter,
    NotFound,
    Only,
    Page,
    Query,
    Record,
)
from adapters.conformance.practice import LARGEST_PAGE, Probe, needs
from adapters.conformance.records import with_ids

ADDED_AT_ONCE = 20
EVERY = 10  # pages


class PagePromises:
    """What every adapter promises of its pages.

    `many` is how many rows a list gets that is read while others are added; `asked_per_page` how
    many statements or requests a page may cost beside one for each list inside its records.
    `in_parts` names what the practice system hands out only a few at a time, or one by one: it
    may cost more.
    """

    many = 10_000
    asked_per_page = 1
    in_parts: frozenset[str] = frozenset()

    async def test_pages_hold_every_record_once_in_one_order_whatever_their_size(
        self, probe: Probe
    ) -> None:
        for resource in with_ids(probe):
            large = await probe.everything(resource)
            assert len({record["id"] for record in large}) == len(large), resource
            assert await probe.everything(resource, limit=173) == large, resource
            small = 1 + len(large) // 40
            assert await probe.everything(resource, limit=small) == large, resource

    async def test_pages_of_one_lose_nothing(self, probe: Probe) -> None:
        for resource in ("vets", "appointmentTypes"):
            assert await probe.everything(resource, limit=1) == await probe.everything(resource)

    @needs("add_clients")
    async def test_nothing_is_lost_or_told_twice_while_rows_are_added(self, probe: Probe) -> None:
        there = await probe.everything("clients")
        await probe.practice.add_clients(self.many, front=False)
        await probe.practice.settle()
        first = [each["id"] for each in await probe.everything("clients")]
        assert len(first) == len(there) + self.many
        second = await self._read_while_added(probe)
        assert len(set(second)) == len(second)
        known = set(first)
        assert [each for each in second if each in known] == first

    async def _read_while_added(self, probe: Probe) -> list[str]:
        """The ids of all clients; every few pages some are added before and some behind."""
        found: list[str] = []
        after, number = None, 0
        while number == 0 or after is not None:
            query = probe.query("clients", limit=LARGEST_PAGE, after=after)
            page = await probe.adapter.read_many(query)
            found += [each["id"] for each in page.records]
            after, number = page.after, number + 1
            if number % EVERY == 2:
                await probe.practice.add_clients(ADDED_AT_ONCE, front=True)
                await probe.practice.add_clients(ADDED_AT_ONCE, front=False)
            assert number * LARGEST_PAGE < 3 * self.many + 10_000, "the pages have no end"
        return found

    @needs("asked")
    async def test_a_page_costs_the_same_however_many_records_it_has(self, probe: Probe) -> None:
        for resource in set(with_ids(probe)) - self.in_parts:
            await probe.adapter.ping()  # a connection's first words are no page's
            page = await probe.adapter.read_many(probe.query(resource, limit=1))
            small, _ = await self._cost(probe, resource, 2)
            large, page = await self._cost(probe, resource, 50)
            lists = {
                path.split("[].")[0] for path in probe.practice.shapes[resource] if "[]." in path
            }
            assert large == small, f"{len(page.records)} {resource} cost more than 2"
            assert large <= self.asked_per_page + len(lists), resource

    async def _cost(self, probe: Probe, resource: str, limit: int) -> tuple[int, Page]:
        await probe.practice.settle()
        before = await probe.practice.asked()
        page = await probe.adapter.read_many(probe.query(resource, limit=limit))
        return await probe.practice.asked() - before, page


_BOUNDS: Mapping[str, Callable[[str], Any]] = {
    "date-time": datetime.fromisoformat,
    "date": date.fromisoformat,
    **dict.fromkeys(("number", "integer", "money", "percent"), Decimal),
}
_READ: Mapping[type, Callable[[str], Any]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    Decimal: Decimal,
}
_COMPARED = {"min": operator.ge, "max": operator.le, "above": operator.gt, "below": operator.lt}
ORDERED = ("min", "max", "above", "below")
MEMBERS = ("in", "not in")


def let_be(records: Sequence[Record], only: Only) -> list[Record]:
    """The records that exist for who has these conditions."""
    return [each for each in records if all(_meets(each[one.field], one) for one in only)]


def _meets(value: Any, condition: Condition) -> bool:
    if value is None:
        return False
    if condition.test in MEMBERS:
        return (value in condition.value) is (condition.test == "in")
    bound, read = condition.value, _READ[type(condition.value)]
    return bool(_COMPARED[condition.test](read(str(value)), bound))


def conditions(records: Sequence[Record], shapes: Mapping[str, FieldShape]) -> Iterator[Condition]:
    """For each field with a value: which it may be, which not, and from or up to where."""
    for turn, (name, shape) in enumerate(shapes.items()):
        if "[]." in name or shape.many:
            continue
        values = sorted({each[name] for each in records if each[name] is not None}, key=str)
        if not values:
            continue
        middle = values[len(values) // 2]
        yield Condition(name, "in", (middle,))
        yield Condition(name, "not in", (middle, values[0]))
        read = _BOUNDS.get(shape.format)
        if read is not None:
            yield Condition(name, ORDERED[turn % len(ORDERED)], read(str(middle)))
            yield Condition(name, ORDERED[(turn + 1) % len(ORDERED)], read(str(middle)))


AT_MOST = 6  # conditions of each resource


class NarrowingPromises:
    """What every adapter promises of conditions, as far as it says that it can narrow by them."""

    async def test_pages_hold_all_that_conditions_let_be_and_nothing_else(
        self, probe: Probe
    ) -> None:
        for resource in with_ids(probe):
            records = await probe.everything(resource)
            for only in _served(probe, resource, records):
                wanted = let_be(records, only)
                found = await probe.narrowed(resource, only, limit=1 + len(wanted) // 3)
                assert found == wanted, f"{resource} with {only}"

    async def test_what_is_hidden_is_not_there_by_its_id_either(self, probe: Probe) -> None:
        for resource in with_ids(probe):
            records = await probe.everything(resource)
            for only in _served(probe, resource, records):
                there = let_be(records, only)
                for record in there[:1]:
                    query = probe.query(resource, id=record["id"], only=only)
                    assert await probe.adapter.read_one(query) == record
                for record in without(records, there)[:1]:
                    with pytest.raises(NotFound):
                        await probe.adapter.read_one(
                            probe.query(resource, id=record["id"], only=only)
                        )

    async def test_within_what_is_hidden_is_nothing(self, probe: Probe) -> None:
        records = await probe.everything("clients")
        for only in _served(probe, "clients", records):
            there = let_be(records, only)
            for client in without(records, there)[:1]:
                with pytest.raises(NotFound):
                    await probe.adapter.read_many(_invoices(probe, client, only))
            for client in there[:1]:
                page = await probe.adapter.read_many(_invoices(probe, client, only))
                assert all(each["clientId"] == client["id"] for each in page.records)

    async def test_for_who_is_hidden_nothing_can_be_booked(self, probe: Probe) -> None:
        draft = await probe.draft()
        made: Record | None = None
        for resource, public_id in (("clients", draft.client_id), ("patients", draft.patient_id)):
            records = await probe.everything(resource)
            for only in _served(probe, resource, records):
                narrow = replace(draft, only={resource: only})
                if public_id not in {each["id"] for each in let_be(records, only)}:
                    with pytest.raises(NotFound):
                        await probe.adapter.create_appointment(narrow)
                elif made is None:
                    made = await probe.adapter.create_appointment(narrow)
        if made is None:
            made = await probe.adapter.create_appointment(draft)
        assert await _found(probe.adapter, draft) == [made]

    async def test_a_lost_booking_is_found_whoever_is_hidden_since(self, probe: Probe) -> None:
        draft = await probe.draft()
        made = await probe.adapter.create_appointment(draft)
        nobody: Only = (Condition("id", "in", ()),)
        hiding = replace(draft, only={"clients": nobody, "patients": nobody})
        assert await _found(probe.adapter, hiding) == [made]

    async def test_what_it_cannot_narrow_by_is_a_problem_with_a_remedy(self, probe: Probe) -> None:
        refused = probe.adapter.narrows("clients", (Condition("nothing", "in", ("x",)),))
        assert refused, "a field that is none cannot be a condition"
        assert all(each.text for each in refused)
        assert list(probe.adapter.narrows("clients", ())) == []


def _served(probe: Probe, resource: str, records: Sequence[Record]) -> list[Only]:
    """Conditions of every kind that it takes: one by one, and all kinds of fields at once."""
    every = conditions(records, probe.practice.shapes[resource])
    taken = [each for each in every if not probe.adapter.narrows(resource, (each,))]
    few = islice(taken, 0, None, 1 + len(taken) // AT_MOST)
    return [*((each,) for each in few), tuple(taken[-2:])]


def without(records: Sequence[Record], some: Sequence[Record]) -> list[Record]:
    """The others, by their ids."""
    ids = {each["id"] for each in some}
    return [each for each in records if each["id"] not in ids]


def _invoices(probe: Probe, client: Record, only: Only) -> Query:
    by = (Filter("equals", ("clientId",), client["id"]),)
    within = ("clients", client["id"])
    return probe.query("invoices", within=within, within_only=only, filters=by)


async def _found(adapter: Adapter, draft: Draft) -> list[Record]:
    return list(await adapter.find_appointments(draft, draft.now))
