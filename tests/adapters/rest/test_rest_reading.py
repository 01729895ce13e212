"""Reading over HTTP: what a backend shows, leaves out, ignores, or hands over by mistake."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from adapters.base import (
    BackendNonsense,
    BackendTimeout,
    Condition,
    Filter,
    Formed,
    NotFound,
    Query,
    Trouble,
)
from adapters.doctor.rest import examine
from adapters.documents.problems import DocumentErrors
from adapters.examination import Examination, Verdict
from adapters.rest.adapter import RestAdapter
from adapters.rest.resource import fitting
from examples.json_cloud.backend import Cloud
from examples.json_cloud.records import made
from tests.adapters.clinic import NOW, TODAY, ask, everything, slots
from tests.adapters.rest.cloud import MAPPING, connect, listening, new_cloud, replaced
from tests.adapters.shelf import Shelf


async def test_fact_20_an_embedded_record_never_comes_out_as_a_value(
    url: str, tmp_path: Path, cloud: Cloud
) -> None:
    troubles: list[Trouble] = []
    change = replaced(("      breed: race\n", "      breed: owner\n"))
    adapter = connect(url, tmp_path, change, troubles)
    records = (await adapter.read_many(ask("patients", limit=5))).records
    assert [each["breed"] for each in records] == [None] * 5
    found = {(each.kind, each.field, each.record) for each in troubles}
    assert found == {("unreadable", "breed", each["id"]) for each in records}
    await adapter.aclose()


async def test_an_unknown_code_is_no_value_and_is_reported(
    url: str, tmp_path: Path, cloud: Cloud
) -> None:
    troubles: list[Trouble] = []
    adapter = connect(url, tmp_path, troubles=troubles)
    cloud.records.animals[1]["state"] = "lost"
    record = (await adapter.read_many(ask("patients", limit=1))).records[0]
    assert record["status"] is None
    assert troubles == [Trouble("unknown code", "patients", "status", record["id"])]
    await adapter.aclose()


async def test_a_field_that_a_list_is_sifted_by_is_read_though_nobody_looks_at_it(
    adapter: RestAdapter,
) -> None:
    [one, *_] = (await adapter.read_many(ask("clients"))).records
    by = Filter("search", ("firstName", "lastName"), one["lastName"])
    page = await adapter.read_many(ask("clients", filters=(by,), fields=frozenset({"email"})))
    assert one["id"] in [each["id"] for each in page.records]
    assert isinstance(page.records, Formed)
    assert page.records.form == ("id", "firstName", "lastName", "email")


async def test_what_the_backend_is_asked_by_needs_no_look_at_further_rows(
    adapter: RestAdapter,
) -> None:
    owner = Filter("equals", ("clientId",), (await everything(adapter, "clients"))[0]["id"])
    patients = adapter.readers["patients"]._listing
    assert patients.asking([owner])[1]
    assert not patients.asking([owner], (Condition("status", "in", ("ACTIVE",)),))[1]
    low = Filter("equals", ("isLow",), True)
    assert not adapter.readers["stock"]._listing.asking([low])[1]


async def test_a_row_without_an_id_is_left_out_and_counted(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    cloud.records.kinds[2]["id"] = None
    page = await adapter.read_many(ask("appointmentTypes"))
    assert (len(page.records), page.skipped) == (2, 1)


async def test_a_match_does_not_look_into_what_is_too_long(tmp_path: Path) -> None:
    cloud = new_cloud()
    cloud.records.animals[1]["name"] = "a" * 100_000
    slow = (
        "      name: name\n      species",
        '      name: {source: name, match: "(a+)b"}\n      species',
    )
    async with listening(cloud) as address:
        adapter = connect(address, tmp_path, replaced(slow))
        begun = time.monotonic()
        record = (await adapter.read_many(ask("patients", limit=1))).records[0]
        assert record["name"] is None
        assert time.monotonic() - begun < 1
        await adapter.aclose()


async def test_a_row_that_is_no_object_is_left_out_and_counted(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    cloud.records.kinds[2] = None  # type: ignore[assignment]
    page = await adapter.read_many(ask("appointmentTypes"))
    assert (len(page.records), page.skipped) == (2, 1)


async def test_a_row_that_the_condition_cannot_be_asked_of_fails_no_list(
    url: str, tmp_path: Path, cloud: Cloud
) -> None:
    change = replaced(("where: archived == `false`", "where: \"contains(mail, '@')\""))
    troubles: list[Trouble] = []
    adapter = connect(url, tmp_path, change, troubles)
    for each in cloud.records.owners.values():
        each["mail"] = "a@example.org"
    next(iter(cloud.records.owners.values()))["mail"] = None
    page = await adapter.read_many(ask("clients", limit=5))
    assert (len(page.records), page.skipped) == (4, 1)
    assert troubles == [Trouble("unreadable", "clients", "where", "")]
    await adapter.aclose()


async def test_an_answer_that_the_items_path_cannot_be_asked_of_is_nonsense(
    url: str, tmp_path: Path
) -> None:
    item = 'one: {get: "/vets/{id}", item: data}'
    adapter = connect(url, tmp_path, replaced((item, item.replace("data}", '"keys(label)"}'))))
    vet = (await adapter.read_many(ask("vets"))).records[0]["id"]
    with pytest.raises(BackendNonsense, match="no record in the answer"):
        await adapter.read_one(ask("vets", id=vet))
    await adapter.aclose()


async def test_what_may_block_does(url: str, tmp_path: Path, cloud: Cloud) -> None:
    adapter = connect(url, tmp_path)
    vet = (await adapter.read_many(ask("vets"))).records[0]["id"]
    usual = await slots(adapter, vet, TODAY)
    await adapter.aclose()
    change = replaced(("where: state != 'cancelled'", "where: \"!starts_with(note_, 'x')\""))
    adapter = connect(url, tmp_path, change)
    assert await slots(adapter, vet, TODAY) == usual
    await adapter.aclose()


async def test_fact_20_a_parameter_that_the_backend_ignores_shows_no_more(
    url: str, tmp_path: Path, cloud: Cloud
) -> None:
    client = 'filters: {clientId: {query: owner, form: "/v2/owners/{}"}}'
    adapter = connect(url, tmp_path, replaced((client, client.replace("query: owner", "query: x"))))
    owner = (await adapter.read_many(ask("clients", limit=3))).records[2]["id"]
    found = await everything(adapter, "patients", Filter("equals", ("clientId",), owner))
    assert {each["clientId"] for each in found} == {owner}
    assert len(found) == 2
    await adapter.aclose()


async def test_another_record_than_the_one_asked_for_is_not_shown(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    first = (await adapter.read_many(ask("patients", limit=1))).records[0]["id"]
    cloud.records.animals[1] = cloud.records.animals[2]
    with pytest.raises(BackendNonsense, match="another"):
        await adapter.read_one(ask("patients", id=first))


async def test_what_the_mapping_leaves_out_does_not_exist(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    listed = await everything(adapter, "clients", limit=200)
    first = listed[0]["id"]
    assert len(listed) == sum(not each["archived"] for each in cloud.records.owners.values())
    cloud.records.owners[1]["archived"] = True
    with pytest.raises(NotFound):
        await adapter.read_one(ask("clients", id=first))


async def test_an_id_of_nobody_costs_no_call(adapter: RestAdapter, cloud: Cloud) -> None:
    with pytest.raises(NotFound):
        await adapter.read_one(ask("clients", id="00000000-0000-0000-0000-000000000000"))
    assert cloud.calls == []


async def test_an_unknown_client_has_no_list_of_invoices(adapter: RestAdapter) -> None:
    nobody = "00000000-0000-0000-0000-000000000000"
    filters = (Filter("equals", ("clientId",), nobody),)
    query = Query(resource="invoices", now=NOW, filters=filters, within=("clients", nobody))
    with pytest.raises(NotFound):
        await adapter.read_many(query)
    alone = Query(resource="invoices", now=NOW, filters=filters)
    assert (await adapter.read_many(alone)).records == []


async def test_fact_20_one_call_an_item_is_made_a_few_at_a_time(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    assert len(await everything(adapter, "stock", limit=200)) == len(cloud.records.stock)
    assert 2 <= cloud.busiest <= 8
    calls = len(cloud.calls)
    await adapter.read_many(ask("stock", limit=8))
    assert len(cloud.calls) - calls <= 1 + 8


async def test_sifting_stops_and_goes_on_without_losing_anything(
    adapter: RestAdapter, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = (Filter("equals", ("isLow",), True),)
    whole = await adapter.read_many(ask("stock", limit=200, filters=low))
    assert whole.after is None
    monkeypatch.setattr(adapter.readers["stock"], "most", 16)
    found, after, pages = [], None, 0
    while pages == 0 or after is not None:
        calls = len(cloud.calls)
        page = await adapter.read_many(ask("stock", limit=200, filters=low, after=after))
        assert len(cloud.calls) - calls <= 1 + 16
        found, after, pages = found + page.records, page.after, pages + 1
    assert (found, pages) == (whole.records, 3)


STYLES = ["clients", "patients", "consultations", "invoices", "stock"]


@pytest.mark.parametrize("resource", STYLES)
async def test_nothing_is_lost_or_repeated_while_rows_are_added(
    adapter: RestAdapter, cloud: Cloud, resource: str
) -> None:
    kept = {
        "clients": cloud.records.owners,
        "patients": cloud.records.animals,
        "consultations": cloud.records.reports,
        "invoices": cloud.records.bills,
        "stock": cloud.records.stock,
    }[resource]
    before = {each["id"] for each in await everything(adapter, resource, limit=200)}
    seen: list[str] = []
    after, number = None, 0
    while number == 0 or after is not None:
        page = await adapter.read_many(ask(resource, limit=17, after=after))
        seen += [each["id"] for each in page.records]
        after = page.after
        number += 1
        key = max(kept) + 1
        row = {**next(iter(kept.values())), "id": key}
        rows = dict(kept)
        kept.clear()  # at the beginning or at the end
        if resource in ("clients", "patients", "invoices") and number % 2:
            kept.update({key: row, **rows})
        else:
            kept.update({**rows, key: row})
        assert number < 60
    assert len(seen) == len(set(seen))
    assert before <= set(seen)


async def test_nothing_is_lost_while_rows_are_removed_from_a_list_by_offset(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    all_of = [each["id"] for each in await everything(adapter, "clients", limit=200)]
    page = await adapter.read_many(ask("clients", limit=40))
    seen = [each["id"] for each in page.records]
    for key in (3, 4, 41):  # behind, and the next one
        del cloud.records.owners[key]
    while page.after is not None:
        page = await adapter.read_many(ask("clients", limit=40, after=page.after))
        seen += [each["id"] for each in page.records]
    assert seen == [each for number, each in enumerate(all_of, 1) if number != 41]


async def test_all_calls_of_one_read_share_its_time(url: str, tmp_path: Path) -> None:
    adapter = connect(url, tmp_path, timeout=0.001)
    with pytest.raises(BackendTimeout):
        await adapter.read_many(ask("stock", limit=200))
    await adapter.aclose()


PLANTED: dict[str, tuple[str, str, str]] = {
    "a call that is not there": ("one: /owners/{id}", "one: /owners/{id}", ""),
    "a list that is not there": ("      get: /owners\n", "      get: /ownerz\n", "404"),
    "an array elsewhere": ("      items: results\n", "      items: result\n", "no array"),
    "a diary that is not there": ("    - get: /visits\n", "    - get: /visitz\n", "404"),
}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
async def test_a_check_says_at_its_line_what_the_backend_lacks(
    url: str, tmp_path: Path, planted: tuple[str, str, str]
) -> None:
    right, wrong, said = planted
    adapter = connect(url, tmp_path, replaced((right, wrong)))
    if not said:
        await adapter.check()
    else:
        with pytest.raises(DocumentErrors) as raised:
            await adapter.check()
        text = (tmp_path / "mapping.yaml").read_text()
        line = text[: text.index(wrong.strip())].count("\n") + 1
        problems = [each for each in raised.value.problems if said in each.text]
        assert problems, raised.value
        assert abs(problems[0].line - line) <= 1
    await adapter.aclose()


async def test_hours_may_be_written_down_for_some_vets_or_for_all(
    url: str, tmp_path: Path, cloud: Cloud
) -> None:
    first, second = list(cloud.records.vets)[:2]
    asked = MAPPING.read_text()
    hours = asked[asked.index("    - get: /vets/{vet}/week") : asked.index("  busy:")]
    written = (
        '    - {days: [mon-sun], times: ["22:00-02:00"]}\n'
        f'    - {{days: [mon-sun], times: ["08:00-09:00"], vets: [{first}]}}\n'
    )
    adapter = connect(url, tmp_path, replaced((hours, written)))
    day = NOW.date() + timedelta(days=30)
    times = [
        {each["startTime"][11:16] for each in await slots(adapter, vet.lower(), day)}
        for vet in (first, second)
    ]
    assert times[0] - times[1] == {"06:00", "06:15", "06:30"}
    assert {"20:00", "22:00", "23:30"} <= times[1]
    assert "23:45" not in times[1]
    await adapter.aclose()


async def test_an_absence_blocks_and_what_cannot_be_read_does_too(
    url: str, tmp_path: Path, cloud: Cloud
) -> None:
    troubles: list[Trouble] = []
    adapter = connect(url, tmp_path, troubles=troubles)
    away, other = list(cloud.records.vets)[1], list(cloud.records.vets)[2]
    day = NOW.date() + timedelta(days=5)
    assert day.isoweekday() < 6
    assert await slots(adapter, away.lower(), day) == []
    assert await slots(adapter, other.lower(), day) != []
    cloud.records.absences.append({"vet": other, "from": "soon", "to": None})
    assert await slots(adapter, other.lower(), day) == []
    assert set(troubles) == {Trouble("unreadable", "slots", "diary.busy", "")}
    await adapter.aclose()


class StrictCloud(Cloud):
    """It gives a vet for the UUID in upper case, as it keeps it, and for no other spelling."""

    async def vet(self, request: web.Request) -> web.Response:
        if request.match_info["id"] not in self.records.vets:
            raise web.HTTPNotFound
        return await super().vet(request)


@pytest.fixture
async def strict() -> AsyncIterator[str]:
    async with listening(StrictCloud(made(TODAY))) as address:
        yield address


async def test_a_uuid_in_upper_case_is_sent_so_by_a_gateway_that_never_listed_it(
    strict: str, tmp_path: Path
) -> None:
    shelf = Shelf()
    first = connect(strict, tmp_path, ids=shelf)
    vets = (await first.read_many(ask("vets"))).records
    await first.aclose()
    again = connect(strict, tmp_path, ids=shelf)
    assert [await again.read_one(ask("vets", id=each["id"])) for each in vets] == list(vets)
    await again.aclose()


async def test_a_uuid_that_was_met_in_another_record_leads_to_its_own(
    strict: str, tmp_path: Path
) -> None:
    shelf = Shelf()
    first = connect(strict, tmp_path, ids=shelf)
    [seen, *_] = (await first.read_many(ask("appointments"))).records
    await first.aclose()
    again = connect(strict, tmp_path, ids=shelf)
    assert (await again.read_one(ask("vets", id=seen["vetId"])))["id"] == seen["vetId"]
    with pytest.raises(NotFound):
        await again.read_one(ask("vets", id=f"{seen['vetId'][:-4]}0000"))
    await again.aclose()


async def test_the_doctor_keeps_no_id_and_refuses_none(
    strict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.ids.table.MOST_WAITING", 1)
    shelf = Shelf()
    adapter = connect(strict, tmp_path, ids=shelf)
    looked = Examination(now=NOW, booking=False, rows=100)
    found = [each async for each in examine(adapter, looked)]
    assert [e for e in found if e.subject == "vets" and e.verdict == Verdict.FAILED] == []
    assert not shelf.kept
    await adapter.aclose()


def test_a_record_is_what_was_asked_for_where_each_filter_fits_it() -> None:
    since = Filter("since", ("at",), datetime(2026, 3, 1, 9, 0, 0, 1, UTC))
    fits = fitting([since])
    assert fits([])
    assert fits([{"at": "2026-03-01T09:00:01Z"}, {"at": "2027-01-01T00:00:00Z"}])
    for other in ("2026-03-01T09:00:00Z", None):
        assert not fits([{"at": "2026-03-01T09:00:01Z"}, {"at": other}])
    state = Filter("equals", ("state",), "OPEN")
    both = fitting([since, state])
    record = {"at": "2026-03-01T09:00:01Z", "state": "OPEN"}
    assert fitting([state])([record, record])
    assert both([record])
    for other in ("SHUT", None):
        assert not fitting([state])([record, {**record, "state": other}])
        assert not both([{**record, "state": other}])
    words = Filter("search", ("first", "last"), "zoe mar")
    assert fitting([words])([{"first": "Zoé", "last": "Martin"}])
    assert not fitting([words])(
        [{"first": "Zoé", "last": "Martin"}, {"first": "Zoé", "last": None}]
    )
