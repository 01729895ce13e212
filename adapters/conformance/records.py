# ruff: noqa: S101 - it is made of asserts
"""Records: what they look like, and how their ids, filters and odd values behave."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any
from uuid import uuid4

import pytest

from adapters.base import FieldShape, Filter, NotFound, Record
from adapters.conformance.practice import (
    LARGEST_PAGE,
    NOBODY,
    Place,
    Practice,
    Probe,
    moment,
    needs,
)

Check = Callable[[Any], bool]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _written(pattern: str, read: Callable[[str], object] = str) -> Check:
    """A text of that pattern that `read` does not refuse."""
    matches = re.compile(pattern).fullmatch

    def check(value: Any) -> bool:
        if not isinstance(value, str) or matches(value) is None:
            return False
        try:
            read(value)
        except ValueError:
            return False
        return True

    return check


_TWO_PLACES = _written(r"-?[0-9]+\.[0-9]{2}")
FORMATS: Mapping[str, Check] = {
    "uuid": _written("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    "text": lambda value: isinstance(value, str),
    "email": _written(r"[^@\s]+@[^@\s]+"),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": _number,
    "date-time": _written("[0-9-]{10}T[0-9:]{8}Z", datetime.fromisoformat),
    "date": _written("[0-9]{4}-[0-9]{2}-[0-9]{2}", date.fromisoformat),
    "money": _TWO_PLACES,
    "percent": _TWO_PLACES,
    "color": _written("#[0-9A-Fa-f]{6}"),
}


def wrong_with(record: Record, shapes: Mapping[str, FieldShape]) -> list[str]:
    """What is wrong with a record of those shapes, one sentence each; [] where nothing is."""
    unknown = set(record) - {path.split("[].")[0] for path in shapes}
    found = [f"{name} is no field" for name in sorted(unknown)]
    for path, shape in shapes.items():
        if path == "id" or path.endswith(".id"):
            found += [f"{path} is missing" for value in _at(record, path) if value is None]
        kind = f"one of {', '.join(shape.values)}" if shape.values else shape.format
        found += [f"{path} is {value!r}, no {kind}" for value in _odd(record, path, shape)]
    return found


def _odd(record: Record, path: str, shape: FieldShape) -> Iterator[Any]:
    for value in _at(record, path):
        members = value if isinstance(value, list) else [value]
        right = shape.many is isinstance(value, list) and all(
            FORMATS[shape.format](member) and (not shape.values or member in shape.values)
            for member in members
        )
        if value is not None and not right:
            yield value


def _at(record: Record, path: str) -> Iterator[Any]:
    """The values at a path such as `phone` or `lines[].total`; what is missing is None."""
    name, _, rest = path.partition("[].")
    if not rest:
        yield record.get(name)
        return
    for each in record.get(name) or ():
        yield from _at(each, rest)


COMPARED = {"uuid", "boolean"}
FIRST_FEW = 20
NEEDED = {"invoices": {"clientId"}, "stock": {"isLow"}}
NAMES = ("firstName", "lastName")


class RecordPromises:
    """What every adapter promises of its records."""

    async def test_it_has_what_the_operations_need(self, probe: Probe) -> None:
        assert set(probe.practice.shapes) <= probe.adapter.resources
        for resource, fields in NEEDED.items():
            assert fields <= probe.adapter.filterable[resource]
        for resource, names in probe.adapter.filterable.items():
            assert names <= set(probe.practice.shapes[resource])
        assert probe.adapter.settle >= 0
        assert not (probe.adapter.excludes and probe.adapter.settle), (
            "what excludes others is settled at once"
        )
        await probe.adapter.ping()
        await probe.adapter.check()

    async def test_records_look_as_the_shapes_say(self, probe: Probe) -> None:
        for resource in with_ids(probe):
            records = await probe.some(resource, limit=LARGEST_PAGE)
            assert records, f"the practice must have some {resource}"
            for record in records:
                assert wrong_with(record, probe.practice.shapes[resource]) == [], resource

    async def test_an_id_leads_back_to_its_record_from_another_process_too(
        self, probe: Probe
    ) -> None:
        other = probe.practice.open()
        try:
            there = Probe(probe.practice, other)
            for resource in with_ids(probe):
                records = (await probe.some(resource))[:FIRST_FEW]
                assert (await there.some(resource))[:FIRST_FEW] == records
                for record in records:
                    assert await probe.one(resource, record["id"]) == record
                    assert await there.one(resource, record["id"]) == record
        finally:
            await other.aclose()

    async def test_an_id_belongs_to_one_resource(self, probe: Probe) -> None:
        owner: dict[str, str] = {}
        for resource in with_ids(probe):
            for record in await probe.some(resource, limit=LARGEST_PAGE):
                assert owner.setdefault(record["id"], resource) == resource
        for resource in with_ids(probe):
            strangers = [each for each, of in owner.items() if of != resource]
            for stranger in (NOBODY, str(uuid4()), strangers[0], strangers[-1]):
                with pytest.raises(NotFound):
                    await probe.one(resource, stranger)

    async def test_a_reference_leads_to_a_record_or_to_none(self, probe: Probe) -> None:
        for resource in with_ids(probe):
            for name, shape in probe.practice.shapes[resource].items():
                if shape.refers is None or "[]." in name:
                    continue
                records = [each for each in await probe.some(resource) if each.get(name)]
                found = [
                    await _exists(probe, shape.refers, each[name]) for each in records[:FIRST_FEW]
                ]
                assert not found or any(found), f"no {resource}.{name} leads to {shape.refers}"

    async def test_a_filter_keeps_just_the_records_that_match(self, probe: Probe) -> None:
        for resource in with_ids(probe):
            records = await probe.everything(resource)
            for name in probe.adapter.filterable.get(resource, ()):
                shape = probe.practice.shapes[resource][name]
                values = [each[name] for each in records if each[name] is not None]
                if not values or not _is_compared(name, shape):
                    continue
                wanted = [each["id"] for each in records if each[name] == values[0]]
                found = await probe.some(resource, Filter("equals", (name,), values[0]), limit=50)
                assert [each["id"] for each in found] == wanted[:50], f"{resource} by {name}"

    async def test_the_items_that_are_low_are_those_that_say_so(self, probe: Probe) -> None:
        low = [each for each in await probe.everything("stock") if each["isLow"]]
        assert low, "the practice must have an item of which there is too little"
        assert await probe.everything("stock", Filter("equals", ("isLow",), True), limit=2) == low

    async def test_since_includes_the_moment_itself(self, probe: Probe) -> None:
        for resource in ("clients", "patients"):
            if "updatedAt" not in probe.adapter.filterable.get(resource, ()):
                continue
            records = await probe.everything(resource)
            times = [each["updatedAt"] or "" for each in records]
            known = sorted(filter(None, times))
            for chosen in known[-1:] + known[len(known) // 2 :][:1]:
                since = Filter("since", ("updatedAt",), moment(chosen))
                changed = zip(records, times, strict=True)
                wanted = [each for each, time in changed if time >= chosen]
                assert await probe.everything(resource, since) == wanted, resource

    async def test_a_search_is_of_beginnings_of_words_and_of_all_of_them(
        self, probe: Probe
    ) -> None:
        if not set(NAMES) <= probe.adapter.filterable.get("clients", frozenset()):
            return
        clients = await probe.everything("clients")
        someone = next(each for each in clients if each["firstName"] and each["lastName"])
        words = f"{someone['lastName'][:3].upper()} {someone['firstName'][:2].lower()}"
        found = await probe.everything("clients", Filter("search", NAMES, words))
        assert someone["id"] in {each["id"] for each in found}
        assert await probe.some("clients", Filter("search", NAMES, f"{words} qqqq")) == []

    async def test_within_what_is_not_there_is_nothing(self, probe: Probe) -> None:
        vet = (await probe.some("vets"))[0]["id"]
        client = (await probe.some("clients"))[0]["id"]
        for stranger in (NOBODY, vet):
            by = (Filter("equals", ("clientId",), stranger),)
            with pytest.raises(NotFound):
                await probe.adapter.read_many(
                    probe.query("invoices", within=("clients", stranger), filters=by)
                )
        by = (Filter("equals", ("clientId",), client),)
        page = await probe.adapter.read_many(
            probe.query("invoices", within=("clients", client), filters=by)
        )
        assert all(each["clientId"] == client for each in page.records)

    @needs("write_unknown_code")
    async def test_an_unknown_code_is_null_and_told(self, probe: Probe) -> None:
        place = await probe.practice.write_unknown_code()
        await _is_empty(probe, place)
        assert "unknown code" in _told(probe.practice, place)

    @needs("write_unreadable")
    async def test_an_unreadable_value_is_null_and_told(self, probe: Probe) -> None:
        place = await probe.practice.write_unreadable()
        await _is_empty(probe, place)
        assert "unreadable" in _told(probe.practice, place)

    @needs("write_zero_date")
    async def test_a_zero_date_is_null_and_no_trouble(self, probe: Probe) -> None:
        place = await probe.practice.write_zero_date()
        await _is_empty(probe, place)
        assert _told(probe.practice, place) == []


def with_ids(probe: Probe) -> list[str]:
    """The resources whose records have an id."""
    return [name for name, shapes in probe.practice.shapes.items() if "id" in shapes]


def _is_compared(name: str, shape: FieldShape) -> bool:
    """Whether an operation may ask for records that have just that value; texts are searched."""
    return shape.format in COMPARED or bool(shape.values) or name == "category"


async def _exists(probe: Probe, resource: str, public_id: str) -> bool:
    try:
        return bool((await probe.one(resource, public_id))["id"] == public_id)
    except NotFound:
        return False


async def _is_empty(probe: Probe, place: Place) -> None:
    """The field is null, the record is whole otherwise, and so are those around it."""
    await probe.practice.settle()
    listed = {each["id"]: each for each in await probe.everything(place.resource)}
    for record in (listed[place.id], await probe.one(place.resource, place.id)):
        assert record[place.field] is None
        assert wrong_with(record, probe.practice.shapes[place.resource]) == []
    others = [each[place.field] for name, each in listed.items() if name != place.id]
    assert any(value is not None for value in others), f"all {place.field} are null"


def _told(practice: Practice, place: Place) -> list[str]:
    """The kinds of trouble that were reported of it."""
    return [
        each.kind
        for each in practice.troubles
        if (each.resource, each.record, each.field) == tuple(place)
    ]
