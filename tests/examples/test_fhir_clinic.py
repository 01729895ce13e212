"""The FHIR clinic: a real product's interface, read and booked in by the shipped mapping."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.base import AdapterOptions, Draft, Filter, Query, Record, SlotTaken, Trouble
from adapters.doctor.rest import examine
from adapters.examination import Examination, Verdict
from adapters.rest.adapter import RestAdapter
from examples.fhir_clinic import server
from examples.fhir_clinic.records import OWNERS, ZONE, Desk, connected, made
from gateway.backend import shapes
from tests.adapters.clinic import SECRET
from tests.adapters.shelf import Shelf

pytestmark = pytest.mark.long

MAPPING = Path(server.__file__).with_name("mapping.yaml")
NOW = datetime.now(ZONE)
DAY = (NOW + timedelta(days=2)).date()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server whose tokens live two seconds, so that they are renewed all the time."""
    with server.serving(token_lives=2) as found:
        yield found


@pytest.fixture
def desk(address: str) -> Desk:
    logged_in = connected(address)
    logged_in.fill(made(NOW.date()))  # the same again: slots are free, whoever took them
    for entry in logged_in.ask("GET", "Appointment?_count=20").get("entry", ()):
        logged_in.ask("DELETE", f"Appointment/{entry['resource']['id']}")
    return logged_in


@asynccontextmanager
async def opened(address: str, **more: Any) -> AsyncIterator[RestAdapter]:
    troubles: list[Trouble] = []
    options = AdapterOptions(
        url=address,
        mapping=MAPPING,
        secret=SECRET,
        shapes=shapes(),
        report=troubles.append,
        credentials={"user": server.CLIENT, "password": server.SECRET},
        ids=Shelf(),
        **more,
    )
    adapter = RestAdapter(options)
    try:
        yield adapter
    finally:
        await adapter.aclose()
    assert troubles == []


def ask(resource: str, **more: Any) -> Query:
    return Query(resource=resource, now=NOW, **more)


async def everything(adapter: RestAdapter, resource: str, **more: Any) -> list[Record]:
    records, after = list[Record](), None
    while True:
        page = await adapter.read_many(ask(resource, limit=7, after=after, **more))
        records += page.records
        if (after := page.after) is None:
            return records


async def times(adapter: RestAdapter, vet: str, kind: str | None = None) -> list[tuple[str, str]]:
    values = {"vetId": vet, "date": DAY} | ({"appointmentTypeId": kind} if kind else {})
    page = await adapter.read_many(ask("slots", values=values))
    return [(slot["startTime"], slot["endTime"]) for slot in page.records]


async def a_draft(adapter: RestAdapter, kind: str | None, number: int = 0) -> Draft:
    patient = (await everything(adapter, "patients"))[number]
    vet = (await everything(adapter, "vets"))[0]["id"]
    start, _ = (await times(adapter, vet, kind))[0]
    return Draft(
        client_id=patient["clientId"],
        patient_id=patient["id"],
        vet_id=vet,
        scheduled_at=datetime.fromisoformat(start),
        appointment_type_id=kind,
        reason="Boite depuis hier",
        now=NOW,
        reference=f"REF{number:013d}",
    )


async def kind_of(adapter: RestAdapter, minutes: int) -> str:
    kinds = await everything(adapter, "appointmentTypes")
    return next(str(kind["id"]) for kind in kinds if kind["durationMinutes"] == minutes)


def states(desk: Desk) -> dict[str, str]:
    """The states of the slots that are not free, by their starts."""
    found = desk.ask("GET", "Slot?status=busy&_count=20").get("entry", ())
    return {it["resource"]["start"]: it["resource"]["status"] for it in found}


async def test_fact_34_all_records_are_read_over_pages_and_tokens(address: str, desk: Desk) -> None:
    async with opened(address) as adapter:
        assert [str(problem) for problem in await adapter.check()] == []
        clients = await everything(adapter, "clients")
        assert len(clients) == OWNERS - OWNERS // 20
        patients = await everything(adapter, "patients")
        assert len(patients) == OWNERS + OWNERS // 2
        client = clients[0]
        owned = Filter("equals", ("clientId",), client["id"])
        mine = await everything(adapter, "patients", filters=(owned,))
        assert mine
        assert mine == [each for each in patients if each["clientId"] == client["id"]]
        bills = await everything(adapter, "invoices", filters=(owned,))
        assert [line["taxRate"] for line in bills[0]["lines"]] == ["20.00"]
        assert bills[0]["lines"][0]["patientId"] in {each["id"] for each in mine}
        assert bills[0]["clientId"] == client["id"]
        await asyncio.sleep(2.1)  # the token has ended
        await adapter.ping()
        assert adapter.parts.backend.logins.count >= 2


async def test_fact_34_a_search_of_two_words_finds_whom_it_names(address: str, desk: Desk) -> None:
    async with opened(address) as adapter:
        search = Filter("search", ("firstName", "lastName"), "kar bru")
        found = await everything(adapter, "clients", filters=(search,))
        assert {(each["firstName"], each["lastName"]) for each in found} == {("Karim", "Brun")}


async def test_fact_34_a_long_visit_takes_each_slot_of_its_time(address: str, desk: Desk) -> None:
    async with opened(address) as adapter:
        kind = await kind_of(adapter, 60)
        draft = await a_draft(adapter, kind)
        before = await times(adapter, draft.vet_id, kind)
        assert len(before) == 24 - 2
        record = await adapter.create_appointment(draft)
        assert record["status"] == "SCHEDULED"
        assert (record["clientId"], record["appointmentTypeId"]) == (draft.client_id, kind)
        assert len(states(desk)) == 3
        [kept] = desk.ask("GET", "Appointment")["entry"]
        assert len(kept["resource"]["slot"]) == 3
        assert "comment" not in kept["resource"]
        assert await times(adapter, draft.vet_id, kind) == before[3:]
        again = replace(draft, reference="ANOTHER000000000")
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(again)
        assert [it["id"] for it in await adapter.find_appointments(draft, NOW)] == [record["id"]]


async def test_fact_34_a_visit_without_type_or_reason_sends_neither(
    address: str, desk: Desk
) -> None:
    async with opened(address) as adapter:
        draft = replace(await a_draft(adapter, None), reason=None)
        record = await adapter.create_appointment(draft)
        assert (record["appointmentTypeId"], record["reason"]) == (None, None)
        [kept] = desk.ask("GET", "Appointment")["entry"]
        assert not {"description", "serviceType"} & kept["resource"].keys()


async def test_fact_34_a_slot_that_the_desk_takes_meanwhile_is_409_and_frees_the_others(
    address: str, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(address) as adapter:
        kind = await kind_of(adapter, 60)
        draft = await a_draft(adapter, kind, 1)
        write, seen = adapter.parts.backend.write, list[str]()

        async def raced(request: Any, *more: Any, **names: Any) -> Any:
            seen.append(request.label)
            if len(seen) == 2:  # the second slot was read, and is now taken by the desk
                key = request.target.rpartition("/")[2]
                slot = desk.ask("GET", f"Slot/{key}")
                await asyncio.to_thread(desk.ask, "PUT", f"Slot/{key}", slot | {"status": "busy"})
            return await write(request, *more, **names)

        monkeypatch.setattr(adapter.parts.backend, "write", raced)
        with pytest.raises(SlotTaken, match="412"):
            await adapter.create_appointment(draft)
        assert len(seen) == 3  # two slots were tried, and one given back
        assert len(states(desk)) == 1  # that of the desk
        assert "entry" not in desk.ask("GET", "Appointment")


async def test_fact_34_several_at_once_make_one_booking(address: str, desk: Desk) -> None:
    async with opened(address) as adapter, opened(address) as other:
        kind = await kind_of(adapter, 60)
        first = await a_draft(adapter, kind)
        await other.learn("appointmentTypes", [kind])
        await everything(other, "appointmentTypes")
        drafts = [replace(first, reference=f"AT{number:014d}") for number in range(6)]
        tries = [
            (adapter if number % 2 else other).create_appointment(draft)
            for number, draft in enumerate(drafts)
        ]
        made = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(isinstance(each, dict) for each in made) == 1
        assert sum(isinstance(each, SlotTaken) for each in made) == 5
        assert len(states(desk)) == 3


async def test_fact_34_the_check_finds_nothing_to_mend(address: str, desk: Desk) -> None:
    async with opened(address) as adapter:
        found = [it async for it in examine(adapter, Examination(now=NOW))]
        assert [it for it in found if it.verdict is Verdict.FAILED] == []


async def test_fact_34_the_check_tells_the_servers_own_error(address: str) -> None:
    async with opened(address) as adapter:
        wrong = replace(adapter.options, credentials={"user": server.CLIENT, "password": "wrong"})
    refused = RestAdapter(wrong)
    found = [it async for it in examine(refused, Examination(now=NOW))]
    await refused.aclose()
    assert any("invalid_client" in it.text for it in found if it.verdict is Verdict.FAILED)
    assert not any("wrong" in it.text for it in found)
