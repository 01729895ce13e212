"""What every adapter promises, whatever practice system stands behind it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from openapi_schema_validator import OAS31Validator

from adapters.base import Adapter, Filter, NotFound, SlotTaken
from adapters.cached import Cached, Kept, Memory
from adapters.guarded import Guarded, Limits
from gateway.contract.openapi import document
from gateway.contract.operations import OPERATIONS
from gateway.contract.resources import RESOURCES, Resource
from tests.adapters.clinic import NOW, a_draft, ask, connect, copy_to, everything, slots


def guarded(folder: Path) -> Adapter:
    return Guarded(connect(copy_to(folder)), Limits())


def cached(folder: Path) -> Adapter:
    """All that can be read is remembered."""
    kept = [
        Kept(resource=each.name, many=many, seconds=60)
        for each in RESOURCES
        for many in (False, True)
    ]
    return Cached(guarded(folder), kept, Memory(10_000, 1 << 24))


PRACTICES: dict[str, Callable[[Path], Adapter]] = {
    "sql, SQLite": lambda folder: connect(copy_to(folder)),
    "sql, SQLite, guarded": guarded,
    "sql, SQLite, cached and guarded": cached,
}
WITH_IDS = [each for each in RESOURCES if "id" in each.paths]
SCHEMAS = document(public_url="https://clinic.example")["components"]["schemas"]
NOBODY = "00000000-0000-0000-0000-000000000000"


@pytest.fixture(params=PRACTICES)
async def adapter(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Adapter]:
    opened = PRACTICES[request.param](tmp_path)
    yield opened
    await opened.aclose()


async def test_it_answers_and_filters_what_the_operations_need(adapter: Adapter) -> None:
    assert {each.returns.name for each in OPERATIONS} <= adapter.resources
    assert adapter.filterable["invoices"] >= {"clientId"}
    assert adapter.filterable["stock"] >= {"isLow"}
    await adapter.ping()
    await adapter.check()


@pytest.mark.parametrize("resource", WITH_IDS, ids=lambda each: each.name)
async def test_records_are_what_the_contract_says_of_them(
    adapter: Adapter, resource: Resource
) -> None:
    records = (await adapter.read_many(ask(resource.name, limit=100))).records
    assert records
    for record in records:
        assert set(record) <= {each.name for each in resource.fields}
        assert str(UUID(record["id"])) == record["id"]
        if resource.title in SCHEMAS:
            whole = {each.name: record.get(each.name) for each in resource.fields}
            OAS31Validator(SCHEMAS[resource.title]).validate(whole)
        assert await adapter.read_one(ask(resource.name, id=record["id"])) == record


@pytest.mark.parametrize("resource", WITH_IDS, ids=lambda each: each.name)
async def test_pages_hold_every_record_once_in_one_order_whatever_their_size(
    adapter: Adapter, resource: Resource
) -> None:
    small = await everything(adapter, resource.name, limit=173)
    large = await everything(adapter, resource.name, limit=200)
    assert small == large
    assert await everything(adapter, resource.name, limit=1 + len(large) // 40) == large
    assert len({record["id"] for record in large}) == len(large)


@pytest.mark.parametrize("resource", WITH_IDS, ids=lambda each: each.name)
async def test_what_names_nothing_is_not_found(adapter: Adapter, resource: Resource) -> None:
    elsewhere = "vets" if resource.name != "vets" else "clients"
    other = (await adapter.read_many(ask(elsewhere, limit=1))).records[0]["id"]
    for stranger in (NOBODY, str(uuid4()), other):
        with pytest.raises(NotFound):
            await adapter.read_one(ask(resource.name, id=stranger))


async def test_a_filter_keeps_just_the_records_that_match(adapter: Adapter) -> None:
    for resource in WITH_IDS:
        for name in adapter.filterable[resource.name]:
            field = resource.at(name)
            if field.format.name not in {"text", "uuid", "boolean"} or field.many:
                continue
            records = await everything(adapter, resource.name, limit=200)
            value = next((each[name] for each in records if each[name] is not None), None)
            if value is None:
                continue
            wanted = [each["id"] for each in records if each[name] == value][:50]
            filters = (Filter("equals", (name,), value),)
            found = await adapter.read_many(ask(resource.name, filters=filters))
            assert [each["id"] for each in found.records] == wanted, (resource.name, name)


async def test_since_is_inclusive_and_a_search_is_of_all_words(adapter: Adapter) -> None:
    clients = await everything(adapter, "clients", limit=200)
    newest = max(each["updatedAt"] for each in clients)
    since = ask("clients", filters=(Filter("since", ("updatedAt",), _moment(newest)),))
    assert {each["updatedAt"] for each in (await adapter.read_many(since)).records} == {newest}
    someone = next(each for each in clients if each["firstName"] and each["lastName"])
    words = f"{someone['lastName'][:3].upper()} {someone['firstName'][:2]}"
    both = ("firstName", "lastName")
    search = ask("clients", limit=200, filters=(Filter("search", both, words),))
    assert someone["id"] in {each["id"] for each in (await adapter.read_many(search)).records}
    nobody = ask("clients", filters=(Filter("search", both, f"{words} qqqq"),))
    assert (await adapter.read_many(nobody)).records == []


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_a_booking_takes_its_slot_reads_back_and_can_be_found(adapter: Adapter) -> None:
    draft = await a_draft(adapter)
    assert not await adapter.find_appointments(draft, NOW)
    made = await adapter.create_appointment(draft)
    assert (made["vetId"], made["patientId"]) == (draft.vet_id, draft.patient_id)
    assert (made["status"], _moment(made["scheduledAt"])) == ("SCHEDULED", draft.scheduled_at)
    assert await adapter.read_one(ask("appointments", id=made["id"])) == made
    assert list(await adapter.find_appointments(draft, NOW)) == [made]
    free = await slots(adapter, draft.vet_id, draft.scheduled_at.date())
    assert made["scheduledAt"] not in [each["startTime"] for each in free]
    with pytest.raises(SlotTaken):
        await adapter.create_appointment(draft)


async def test_who_is_not_there_is_not_found_and_books_nothing(adapter: Adapter) -> None:
    draft = await a_draft(adapter)
    before = await slots(adapter, draft.vet_id, draft.scheduled_at.date())
    for stranger in (
        replace(draft, client_id=NOBODY),
        replace(draft, patient_id=NOBODY),
        replace(draft, vet_id=NOBODY),
        replace(draft, appointment_type_id=NOBODY),
        replace(draft, client_id=draft.vet_id),
    ):
        with pytest.raises(NotFound):
            await adapter.create_appointment(stranger)
    assert await slots(adapter, draft.vet_id, draft.scheduled_at.date()) == before


async def test_of_many_at_once_one_gets_the_slot(adapter: Adapter) -> None:
    draft = await a_draft(adapter)
    shifted = replace(draft, scheduled_at=draft.scheduled_at + timedelta(seconds=1))
    tries = [adapter.create_appointment(each) for each in [draft] * 20 + [shifted] * 5]
    ends = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(each, dict) for each in ends) == 1
    assert sum(isinstance(each, SlotTaken) for each in ends) == 24
