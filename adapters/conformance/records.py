# ruff: noqa: S101 - it is made of asserts
"""Records: what they look like, and how their ids, filters and odd values behave."""

from uuid import uuid4

import pytest

from adapters.base import Adapter, FieldShape, Filter, NotFound
from adapters.conformance.asking import LARGEST_PAGE, NOBODY, Asking, moment
from adapters.conformance.formats import wrong_with
from adapters.conformance.practice import Place, Practice, needs

COMPARED = {"uuid", "boolean"}
FIRST_FEW = 20
NEEDED = {"invoices": {"clientId"}, "stock": {"isLow"}}
NAMES = ("firstName", "lastName")


class Records:
    """What every adapter promises of its records."""

    async def test_it_has_what_the_operations_need(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        assert set(practice.shapes) <= adapter.resources
        for resource, fields in NEEDED.items():
            assert fields <= adapter.filterable[resource]
        for resource, names in adapter.filterable.items():
            assert names <= set(practice.shapes[resource])
        assert adapter.settle >= 0
        assert not (adapter.excludes and adapter.settle), "what excludes others is settled at once"
        await adapter.ping()
        await adapter.check()

    async def test_records_look_as_the_shapes_say(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        for resource in with_ids(practice):
            records = await Asking(practice, adapter).some(resource, limit=LARGEST_PAGE)
            assert records, f"the practice must have some {resource}"
            for record in records:
                assert wrong_with(record, practice.shapes[resource]) == [], resource

    async def test_an_id_leads_back_to_its_record_from_another_process_too(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        here = Asking(practice, adapter)
        other = practice.open()
        try:
            there = Asking(practice, other)
            for resource in with_ids(practice):
                records = (await here.some(resource))[:FIRST_FEW]
                assert (await there.some(resource))[:FIRST_FEW] == records
                for record in records:
                    assert await here.one(resource, record["id"]) == record
                    assert await there.one(resource, record["id"]) == record
        finally:
            await other.aclose()

    async def test_an_id_belongs_to_one_resource(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        owner: dict[str, str] = {}
        for resource in with_ids(practice):
            for record in await asking.some(resource, limit=LARGEST_PAGE):
                assert owner.setdefault(record["id"], resource) == resource
        for resource in with_ids(practice):
            strangers = [each for each, of in owner.items() if of != resource]
            for stranger in (NOBODY, str(uuid4()), strangers[0], strangers[-1]):
                with pytest.raises(NotFound):
                    await asking.one(resource, stranger)

    async def test_a_reference_leads_to_a_record_or_to_none(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        for resource in with_ids(practice):
            for name, shape in practice.shapes[resource].items():
                if shape.refers is None or "[]." in name:
                    continue
                records = [each for each in await asking.some(resource) if each.get(name)]
                found = [
                    await _exists(asking, shape.refers, each[name]) for each in records[:FIRST_FEW]
                ]
                assert not found or any(found), f"no {resource}.{name} leads to {shape.refers}"

    async def test_a_filter_keeps_just_the_records_that_match(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        for resource in with_ids(practice):
            records = await asking.everything(resource)
            for name in adapter.filterable.get(resource, ()):
                shape = practice.shapes[resource][name]
                values = [each[name] for each in records if each[name] is not None]
                if not values or not _is_compared(name, shape):
                    continue
                wanted = [each["id"] for each in records if each[name] == values[0]]
                found = await asking.some(resource, Filter("equals", (name,), values[0]), limit=50)
                assert [each["id"] for each in found] == wanted[:50], f"{resource} by {name}"

    async def test_the_items_that_are_low_are_those_that_say_so(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        low = [each for each in await asking.everything("stock") if each["isLow"]]
        assert low, "the practice must have an item of which there is too little"
        assert await asking.everything("stock", Filter("equals", ("isLow",), True), limit=2) == low

    async def test_since_includes_the_moment_itself(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        for resource in ("clients", "patients"):
            if "updatedAt" not in adapter.filterable.get(resource, ()):
                continue
            records = await asking.everything(resource)
            times = [each["updatedAt"] or "" for each in records]
            known = sorted(filter(None, times))
            for chosen in known[-1:] + known[len(known) // 2 :][:1]:
                since = Filter("since", ("updatedAt",), moment(chosen))
                changed = zip(records, times, strict=True)
                wanted = [each for each, time in changed if time >= chosen]
                assert await asking.everything(resource, since) == wanted, resource

    async def test_a_search_is_of_beginnings_of_words_and_of_all_of_them(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        if not set(NAMES) <= adapter.filterable.get("clients", frozenset()):
            return
        asking = Asking(practice, adapter)
        clients = await asking.everything("clients")
        someone = next(each for each in clients if each["firstName"] and each["lastName"])
        words = f"{someone['lastName'][:3].upper()} {someone['firstName'][:2].lower()}"
        found = await asking.everything("clients", Filter("search", NAMES, words))
        assert someone["id"] in {each["id"] for each in found}
        assert await asking.some("clients", Filter("search", NAMES, f"{words} qqqq")) == []

    async def test_within_what_is_not_there_is_nothing(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        vet = (await asking.some("vets"))[0]["id"]
        client = (await asking.some("clients"))[0]["id"]
        for stranger in (NOBODY, vet):
            by = (Filter("equals", ("clientId",), stranger),)
            with pytest.raises(NotFound):
                await adapter.read_many(
                    asking.query("invoices", within=("clients", stranger), filters=by)
                )
        by = (Filter("equals", ("clientId",), client),)
        page = await adapter.read_many(
            asking.query("invoices", within=("clients", client), filters=by)
        )
        assert all(each["clientId"] == client for each in page.records)

    @needs("write_unknown_code")
    async def test_an_unknown_code_is_null_and_told(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        place = await practice.write_unknown_code()
        await _is_empty(practice, adapter, place)
        assert "unknown code" in _told(practice, place)

    @needs("write_unreadable")
    async def test_an_unreadable_value_is_null_and_told(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        place = await practice.write_unreadable()
        await _is_empty(practice, adapter, place)
        assert "unreadable" in _told(practice, place)

    @needs("write_zero_date")
    async def test_a_zero_date_is_null_and_no_trouble(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        place = await practice.write_zero_date()
        await _is_empty(practice, adapter, place)
        assert _told(practice, place) == []


def with_ids(practice: Practice) -> list[str]:
    """The resources whose records have an id."""
    return [name for name, shapes in practice.shapes.items() if "id" in shapes]


def _is_compared(name: str, shape: FieldShape) -> bool:
    """Whether an operation may ask for records that have just that value; texts are searched."""
    return shape.format in COMPARED or bool(shape.values) or name == "category"


async def _exists(asking: Asking, resource: str, public_id: str) -> bool:
    try:
        return bool((await asking.one(resource, public_id))["id"] == public_id)
    except NotFound:
        return False


async def _is_empty(practice: Practice, adapter: Adapter, place: Place) -> None:
    """The field is null, the record is whole otherwise, and so are those around it."""
    await practice.settle()
    asking = Asking(practice, adapter)
    listed = {each["id"]: each for each in await asking.everything(place.resource)}
    for record in (listed[place.id], await asking.one(place.resource, place.id)):
        assert record[place.field] is None
        assert wrong_with(record, practice.shapes[place.resource]) == []
    others = [each[place.field] for name, each in listed.items() if name != place.id]
    assert any(value is not None for value in others), f"all {place.field} are null"


def _told(practice: Practice, place: Place) -> list[str]:
    """The kinds of trouble that were reported of it."""
    return [
        each.kind
        for each in practice.troubles
        if (each.resource, each.record, each.field) == tuple(place)
    ]
