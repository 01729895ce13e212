# ruff: noqa: S101 - it is made of asserts
"""Records that do not exist for who asks: in pages, alone, as what is asked within, in bookings."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import pytest

from adapters.base import Adapter, Condition, Draft, Filter, NotFound, Only, Query, Record
from adapters.conformance.asking import Asking
from adapters.conformance.conditions import conditions, let_be
from adapters.conformance.practice import Practice
from adapters.conformance.records import with_ids

AT_MOST = 6  # conditions of each resource


class Narrowing:
    """What every adapter promises of conditions, as far as it says that it can narrow by them."""

    async def test_pages_hold_all_that_conditions_let_be_and_nothing_else(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        for resource in with_ids(practice):
            records = await asking.everything(resource)
            for only in _served(practice, adapter, resource, records):
                wanted = let_be(records, only)
                found = await asking.narrowed(resource, only, limit=1 + len(wanted) // 3)
                assert found == wanted, f"{resource} with {only}"

    async def test_what_is_hidden_is_not_there_by_its_id_either(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        for resource in with_ids(practice):
            records = await asking.everything(resource)
            for only in _served(practice, adapter, resource, records):
                there = let_be(records, only)
                for record in there[:1]:
                    query = asking.query(resource, id=record["id"], only=only)
                    assert await adapter.read_one(query) == record
                for record in without(records, there)[:1]:
                    with pytest.raises(NotFound):
                        await adapter.read_one(asking.query(resource, id=record["id"], only=only))

    async def test_within_what_is_hidden_is_nothing(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        records = await asking.everything("clients")
        for only in _served(practice, adapter, "clients", records):
            there = let_be(records, only)
            for client in without(records, there)[:1]:
                with pytest.raises(NotFound):
                    await adapter.read_many(_invoices(asking, client, only))
            for client in there[:1]:
                page = await adapter.read_many(_invoices(asking, client, only))
                assert all(each["clientId"] == client["id"] for each in page.records)

    async def test_for_who_is_hidden_nothing_can_be_booked(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        draft = await asking.draft()
        made: Record | None = None
        for resource, public_id in (("clients", draft.client_id), ("patients", draft.patient_id)):
            records = await asking.everything(resource)
            for only in _served(practice, adapter, resource, records):
                narrow = replace(draft, only={resource: only})
                if public_id not in {each["id"] for each in let_be(records, only)}:
                    with pytest.raises(NotFound):
                        await adapter.create_appointment(narrow)
                elif made is None:
                    made = await adapter.create_appointment(narrow)
        if made is None:
            made = await adapter.create_appointment(draft)
        assert await _found(adapter, draft) == [made]

    async def test_a_lost_booking_is_found_whoever_is_hidden_since(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        draft = await Asking(practice, adapter).draft()
        made = await adapter.create_appointment(draft)
        nobody: Only = (Condition("id", "in", ()),)
        hiding = replace(draft, only={"clients": nobody, "patients": nobody})
        assert await _found(adapter, hiding) == [made]

    async def test_what_it_cannot_narrow_by_is_a_problem_with_a_remedy(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        refused = adapter.narrows("clients", (Condition("nothing", "in", ("x",)),))
        assert refused, "a field that is none cannot be a condition"
        assert all(each.text for each in refused)
        assert list(adapter.narrows("clients", ())) == []


def _served(
    practice: Practice, adapter: Adapter, resource: str, records: Sequence[Record]
) -> list[Only]:
    """Conditions of every kind that it takes: one by one, and all kinds of fields at once."""
    every = conditions(records, practice.shapes[resource])
    taken = [each for each in every if not adapter.narrows(resource, (each,))]
    few = islice(taken, 0, None, 1 + len(taken) // AT_MOST)
    return [*((each,) for each in few), tuple(taken[-2:])]


def without(records: Sequence[Record], some: Sequence[Record]) -> list[Record]:
    """The others, by their ids."""
    ids = {each["id"] for each in some}
    return [each for each in records if each["id"] not in ids]


def _invoices(asking: Asking, client: Record, only: Only) -> Query:
    by = (Filter("equals", ("clientId",), client["id"]),)
    within = ("clients", client["id"])
    return asking.query("invoices", within=within, within_only=only, filters=by)


async def _found(adapter: Adapter, draft: Draft) -> list[Record]:
    return list(await adapter.find_appointments(draft, draft.now))
