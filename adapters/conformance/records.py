# ruff: noqa: S101 - it is made of asserts
"""Tests what records look like, and how their ids, filters and odd values behave."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import date, datetime
from types import GenericAlias
from typing import Annotated, Any, Literal
from uuid import uuid4

import pydantic
import pytest

from adapters.base import FieldShape, Filter, NotFound, Record, inside, lists_in
from adapters.conformance.practice import LARGEST_PAGE, NOBODY, Place, Probe, moment, needs

COMPARED = {"uuid", "boolean"}
FIRST_FEW = 20
NEEDED = {"invoices": {"clientId"}, "stock": {"isLow"}}
NAMES = ("firstName", "lastName")


def _text(pattern: str, read: Callable[[str], object] = str) -> Any:
    """Returns the type of a text that has that pattern and that `read` accepts."""
    return Annotated[
        str, pydantic.StringConstraints(pattern=f"^({pattern})$"), pydantic.AfterValidator(read)
    ]


def _plain_number(value: object) -> object:
    """Returns a JSON number; raises ValueError for others, as a Decimal would become a text."""
    if type(value) not in (int, float):
        raise ValueError("must be an int or a float")
    return value


_TWO_PLACES = _text(r"-?[0-9]+\.[0-9]{2}")
FORMATS: Mapping[str, Any] = {
    "uuid": _text("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    "text": str,
    "email": _text(r"[^@\s]+@[^@\s]+"),
    "boolean": bool,
    "integer": int,
    "number": Annotated[pydantic.FiniteFloat, pydantic.BeforeValidator(_plain_number)],
    "date-time": _text("[0-9-]{10}T[0-9:]{8}Z", datetime.fromisoformat),
    "date": _text("[0-9]{4}-[0-9]{2}-[0-9]{2}", date.fromisoformat),
    "money": _TWO_PLACES,
    "percent": _TWO_PLACES,
    "color": _text("#[0-9A-Fa-f]{6}"),
}


def _model(shapes: Mapping[str, FieldShape], prefix: str = "") -> type[pydantic.BaseModel]:
    """Returns the model of a record, or of a list's record, whose other fields are ignored."""
    one_of: Any = Literal
    fields: dict[str, Any] = {}
    for name, shape in inside(shapes, prefix).items():
        kind = one_of[shape.values] if shape.values else FORMATS[shape.format]
        kind = GenericAlias(list, kind) if shape.many else kind
        fields[name] = (kind, ...) if name == "id" else (kind | None, None)
    for name in () if prefix else lists_in(shapes):
        fields[name] = (GenericAlias(list, _model(shapes, f"{name}[].")) | None, None)
    config = pydantic.ConfigDict(strict=True, extra="ignore" if prefix else "forbid")
    return pydantic.create_model("Shape", __config__=config, **fields)


def wrong_with(records: Sequence[Record], shapes: Mapping[str, FieldShape]) -> list[str]:
    """Returns what is wrong with records of those shapes, a sentence each; [] where nothing is."""
    kind: Any = GenericAlias(list, _model(shapes))
    try:
        pydantic.TypeAdapter(kind).validate_python(list(records))
    except pydantic.ValidationError as error:
        errors = error.errors()
        return [f"{'.'.join(map(str, e['loc']))} is {e['input']!r}: {e['msg']}" for e in errors]
    return []


class RecordPromises:
    """Tests of what every adapter promises about its records."""

    async def test_it_has_what_the_operations_need(self, probe: Probe) -> None:
        adapter = probe.adapter
        assert set(probe.practice.shapes) <= adapter.resources
        for resource, fields in NEEDED.items():
            assert fields <= adapter.filterable[resource]
        for resource, names in adapter.filterable.items():
            assert names <= set(probe.practice.shapes[resource])
        assert adapter.settle >= 0
        assert not (adapter.excludes and adapter.settle), "what excludes others is settled at once"
        await adapter.ping()
        await adapter.check()

    async def test_records_look_as_the_shapes_say(self, probe: Probe) -> None:
        for resource in probe.resources:
            records = await probe.some(resource, limit=LARGEST_PAGE)
            assert records, f"the practice must have some {resource}"
            assert wrong_with(records, probe.practice.shapes[resource]) == [], resource

    async def test_an_id_leads_to_its_record_from_another_process_too(self, probe: Probe) -> None:
        async with aclosing(probe.practice.open()) as other:
            there = Probe(probe.practice, other)
            for resource in probe.resources:
                records = (await probe.some(resource))[:FIRST_FEW]
                assert (await there.some(resource))[:FIRST_FEW] == records
                for record in records:
                    assert await probe.one(resource, record["id"]) == record
                    assert await there.one(resource, record["id"]) == record

    async def test_an_id_belongs_to_one_resource(self, probe: Probe) -> None:
        owner: dict[str, str] = {}
        for resource in probe.resources:
            for record in await probe.some(resource, limit=LARGEST_PAGE):
                assert owner.setdefault(record["id"], resource) == resource
        for resource in probe.resources:
            strangers = [public_id for public_id, of in owner.items() if of != resource]
            for stranger in (NOBODY, str(uuid4()), strangers[0], strangers[-1]):
                with pytest.raises(NotFound):
                    await probe.one(resource, stranger)

    async def test_a_reference_leads_to_a_record_or_to_none(self, probe: Probe) -> None:
        for resource in probe.resources:
            for name, shape in probe.practice.shapes[resource].items():
                if shape.refers is None or "[]." in name:
                    continue
                ids = [record[name] for record in await probe.some(resource) if record.get(name)]
                leads = [await _exists(probe, shape.refers, target) for target in ids[:FIRST_FEW]]
                assert not leads or any(leads), f"no {resource}.{name} leads to {shape.refers}"

    async def test_a_filter_keeps_just_the_records_that_match(self, probe: Probe) -> None:
        async for resource, records in probe.all_of_each():
            for name in probe.adapter.filterable.get(resource, ()):
                shape = probe.practice.shapes[resource][name]
                values = [record[name] for record in records if record[name] is not None]
                # operations ask for records with exactly such a value; texts are searched
                is_compared = shape.format in COMPARED or shape.values or name == "category"
                if not values or not is_compared:
                    continue
                ids = [record["id"] for record in records if record[name] == values[0]]
                matches = await probe.some(resource, Filter("equals", (name,), values[0]), limit=50)
                assert [record["id"] for record in matches] == ids[:50], f"{resource} by {name}"

    async def test_the_items_that_are_low_are_those_that_say_so(self, probe: Probe) -> None:
        low = [item for item in await probe.everything("stock") if item["isLow"]]
        assert low, "the practice must have an item of which there is too little"
        assert await probe.everything("stock", Filter("equals", ("isLow",), True), limit=2) == low

    async def test_since_includes_the_moment_itself(self, probe: Probe) -> None:
        for resource in ("clients", "patients"):
            if "updatedAt" not in probe.adapter.filterable.get(resource, ()):
                continue
            records = await probe.everything(resource)
            times = [record["updatedAt"] or "" for record in records]
            known = sorted(filter(None, times))
            for chosen in known[-1:] + known[len(known) // 2 :][:1]:
                since = Filter("since", ("updatedAt",), moment(chosen))
                changed = zip(records, times, strict=True)
                expected = [record for record, time in changed if time >= chosen]
                assert await probe.everything(resource, since) == expected, resource

    async def test_a_search_finds_the_beginnings_of_all_its_words(self, probe: Probe) -> None:
        if not set(NAMES) <= probe.adapter.filterable.get("clients", frozenset()):
            return
        clients = await probe.everything("clients")
        someone = next(client for client in clients if client["firstName"] and client["lastName"])
        words = f"{someone['lastName'][:3].upper()} {someone['firstName'][:2].lower()}"
        matches = await probe.everything("clients", Filter("search", NAMES, words))
        assert someone["id"] in {client["id"] for client in matches}
        assert await probe.some("clients", Filter("search", NAMES, f"{words} qqqq")) == []

    async def test_within_what_is_not_there_is_nothing(self, probe: Probe) -> None:
        client = (await probe.some("clients"))[0]["id"]
        for stranger in (NOBODY, (await probe.some("vets"))[0]["id"]):
            with pytest.raises(NotFound):
                await probe.invoices_of(stranger)
        await probe.invoices_of(client)

    @needs("write_unknown_code")
    async def test_an_unknown_code_is_null_and_told(self, probe: Probe) -> None:
        assert "unknown code" in await _troubles_of(probe, probe.practice.write_unknown_code())

    @needs("write_unreadable")
    async def test_an_unreadable_value_is_null_and_told(self, probe: Probe) -> None:
        assert "unreadable" in await _troubles_of(probe, probe.practice.write_unreadable())

    @needs("write_zero_date")
    async def test_a_zero_date_is_null_and_no_trouble(self, probe: Probe) -> None:
        assert await _troubles_of(probe, probe.practice.write_zero_date()) == []


async def _exists(probe: Probe, resource: str, public_id: str) -> bool:
    try:
        return bool((await probe.one(resource, public_id))["id"] == public_id)
    except NotFound:
        return False


async def _troubles_of(probe: Probe, writing: Awaitable[Place]) -> list[str]:
    """Returns the kinds of trouble that are reported about what the desk writes.

    Asserts that its field is null, and that the record and the others are otherwise whole.
    """
    place = await probe.settled(writing)
    listed = {record["id"]: record for record in await probe.everything(place.resource)}
    twice = [listed[place.id], await probe.one(place.resource, place.id)]
    assert [record[place.field] for record in twice] == [None, None]
    assert wrong_with(twice, probe.practice.shapes[place.resource]) == []
    others = [record[place.field] for name, record in listed.items() if name != place.id]
    assert any(value is not None for value in others), f"all {place.field} are null"
    return [
        trouble.kind
        for trouble in probe.practice.troubles
        if (trouble.resource, trouble.record, trouble.field) == place
    ]
