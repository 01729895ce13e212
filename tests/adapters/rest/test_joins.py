"""Records of several calls: joined one by one or by the page, and lines that see their record."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from aiohttp import web

from adapters.base import (
    BackendNonsense,
    BackendUnavailable,
    Condition,
    Filter,
    NotFound,
    Trouble,
)
from adapters.doctor.rest import examine
from adapters.documents.problems import DocumentErrors
from adapters.examination import Examination, Verdict
from adapters.ids.seal import SealedIds
from adapters.mapping.converters import Converters
from adapters.mapping.models import JoinMap, ResourceMap
from adapters.rest.adapter import RestAdapter
from adapters.rest.backend import Answer, Ask, Params
from adapters.rest.joins import Join
from adapters.rest.requests import Templates
from examples.json_cloud.backend import Cloud
from tests.adapters.clinic import NOW, SECRET, ask
from tests.adapters.rest.cloud import connect, listening, new_cloud, replaced

OF_EACH = """    joins:
      chart: {get: "/animals/{of}", of: animal.id}
"""
OF_MANY = """    joins:
      type: {get: /kinds, query: {id: {given: of}}, of: kind, key: id, most: 2}
"""


def joined(text: str, field: str) -> Any:
    return replaced(
        ("    key: id\n    fields:\n      clientId: {source: animal.owner.href",
         f"{text}    key: id\n    fields:\n      clientId: {{source: animal.owner.href"),
        ("      reason: note\n", f"      reason: {field}\n"),
    )  # fmt: skip


@asynccontextmanager
async def opened(cloud: Cloud, folder: Path, change: Any) -> AsyncIterator[RestAdapter]:
    async with listening(cloud) as url:
        adapter = connect(url, folder, change)
        try:
            yield adapter
        finally:
            await adapter.aclose()


def count(cloud: Cloud, path: str) -> int:
    return sum(path in call for call in cloud.calls)


async def test_each_record_is_joined_with_the_answer_of_a_call(tmp_path: Path) -> None:
    cloud = new_cloud()
    async with opened(cloud, tmp_path, joined(OF_EACH, "chart.name")) as adapter:
        page = await adapter.read_many(ask("appointments", limit=10))
        animals = cloud.records.animals
        visits = list(cloud.records.visits.values())[:10]
        names = [animals[visit["animal"]]["name"] for visit in visits]
        assert [record["reason"] for record in page.records] == names
        one = await adapter.read_one(ask("appointments", id=page.records[0]["id"]))
        assert one["reason"] == names[0]


async def test_a_page_of_records_is_joined_by_one_call_for_many(tmp_path: Path) -> None:
    cloud = new_cloud()
    for number, visit in cloud.records.visits.items():
        visit["kind"] = number % 3 + 1
    async with opened(cloud, tmp_path, joined(OF_MANY, "type.label")) as adapter:
        page = await adapter.read_many(ask("appointments", limit=10))
        labels = [cloud.records.kinds[number % 3 + 1]["label"] for number in range(1, 11)]
        assert [record["reason"] for record in page.records] == labels
        assert count(cloud, "/kinds") == 2  # three kinds, two in a call


async def test_what_is_not_asked_for_is_not_joined(tmp_path: Path) -> None:
    cloud = new_cloud()
    async with opened(cloud, tmp_path, joined(OF_EACH, "chart.name")) as adapter:
        no_fields = frozenset({"id"})
        await adapter.read_many(ask("appointments", limit=3, fields=no_fields))
        assert count(cloud, "/animals/") == 0
        only = (Condition("reason", "in", ("Moka",)),)
        public_id = SealedIds(SECRET, "appointments").seal(1)
        cloud.records.animals[cloud.records.visits[1]["animal"]]["name"] = "Moka"
        await adapter.read_one(ask("appointments", id=public_id, fields=no_fields, only=only))
        cloud.records.animals[cloud.records.visits[1]["animal"]]["name"] = "Nala"
        with pytest.raises(NotFound):
            await adapter.read_one(ask("appointments", id=public_id, fields=no_fields, only=only))


async def test_what_a_call_does_not_know_is_no_value(tmp_path: Path) -> None:
    cloud = new_cloud()
    cloud.records.visits[1]["kind"] = 99
    del cloud.records.animals[cloud.records.visits[2]["animal"]]["name"]
    async with opened(cloud, tmp_path, joined(OF_MANY, "type.label")) as adapter:
        page = await adapter.read_many(ask("appointments", limit=2))
        assert page.records[0]["reason"] is None
        assert page.records[1]["reason"] is not None


class Moody(Cloud):
    """Has no chart of some animals."""

    async def animal(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["id"] == "2":
            return web.json_response({}, status=404)
        return await super().animal(request)


async def test_a_record_whose_other_call_finds_nothing_is_still_there(tmp_path: Path) -> None:
    cloud = Moody(new_cloud().records)
    async with opened(cloud, tmp_path, joined(OF_EACH, "chart.name")) as adapter:
        page = await adapter.read_many(ask("appointments", limit=2))
        assert page.records[0]["reason"] is None  # the first visit is that of animal 2
        assert page.records[1]["reason"] is not None


OF_SECOND = "/animals/2$"


class FalteringCloud(Cloud):
    """Breaks off at an animal or item whose path, with a $ behind it, has `bad` in it."""

    status_of_bad, bad = 500, ""

    async def animal(self, request: web.Request) -> web.StreamResponse:
        return self._broken(request) or await super().animal(request)

    async def stock_item(self, request: web.Request) -> web.Response:
        return self._broken(request) or await super().stock_item(request)

    def _broken(self, request: web.Request) -> web.Response | None:
        is_bad = self.bad in f"{request.path}$"
        return web.json_response({}, status=self.status_of_bad) if is_bad else None


@asynccontextmanager
async def broken(
    folder: Path, change: Any, bad: str, status: int = 500
) -> AsyncIterator[tuple[RestAdapter, list[Trouble]]]:
    cloud, troubles = FalteringCloud(new_cloud().records), list[Trouble]()
    cloud.bad, cloud.status_of_bad = bad, status
    async with listening(cloud) as url:
        adapter = connect(url, folder, change, troubles)
        yield adapter, troubles
        await adapter.aclose()


async def test_a_call_that_fails_for_one_record_is_no_value_in_a_list(tmp_path: Path) -> None:
    async with broken(tmp_path, joined(OF_EACH, "chart.name"), OF_SECOND) as (adapter, troubles):
        page = await adapter.read_many(ask("appointments", limit=2))
        first, second = page.records  # the first visit is that of animal 2
        assert (first["reason"], second["reason"] is None) == (None, False)
        assert troubles == [Trouble("unreadable", "appointments", "reason", first["id"])]
        with pytest.raises(BackendNonsense, match="500"):
            await adapter.read_one(ask("appointments", id=first["id"]))


@pytest.mark.parametrize("status", [503, 401])
async def test_a_backend_that_is_down_joins_no_nulls(tmp_path: Path, status: int) -> None:
    change = joined(OF_EACH, "chart.name")
    async with broken(tmp_path, change, OF_SECOND, status) as (adapter, _):
        with pytest.raises((BackendUnavailable, BackendNonsense), match=str(status)):
            await adapter.read_many(ask("appointments", limit=2))


async def test_a_backend_is_up_whatever_is_joined(tmp_path: Path) -> None:
    join = '    joins: {chart: {get: "/animals/{of}", of: id}}\n    fields: {name: chart.name'
    change = replaced(("  ping: /status\n", ""), ("    fields: {name: label, dur", f"{join}, dur"))
    async with broken(tmp_path, change, "/animals/") as (adapter, _):
        await adapter.ping()


async def test_what_is_asked_by_a_call_that_failed_is_no_null(tmp_path: Path) -> None:
    text = f"""{OF_EACH}      again: {{get: "/animals/{{of}}", of: chart.id}}
"""
    async with broken(tmp_path, joined(text, "again.name"), OF_SECOND) as (adapter, troubles):
        first, second = (await adapter.read_many(ask("appointments", limit=2))).records
        assert (first["reason"], second["reason"] is None) == (None, False)
        assert troubles == [Trouble("unreadable", "appointments", "reason", first["id"])]


@pytest.mark.parametrize("limit", [1, 20])
async def test_calls_that_all_fail_fail_the_list(limit: int, tmp_path: Path) -> None:
    change, moka = joined(OF_EACH, "chart.name"), (Condition("reason", "in", ("Moka",)),)
    sure = (Condition("name", "in", ("a",)),)
    for name, bad, only in (("appointments", "/animals/", moka), ("stock", "/stock/", sure)):
        async with broken(tmp_path, change, bad) as (adapter, _):
            for conditions in ((), only):
                with pytest.raises(BackendNonsense, match="it answers 500"):
                    await adapter.read_many(ask(name, limit=limit, only=conditions))


async def test_what_cannot_be_judged_is_left_out_of_a_list_and_told(tmp_path: Path) -> None:
    change, cloud = joined(OF_EACH, "chart.name"), new_cloud()
    names = [animal["name"] for animal in cloud.records.animals.values()]
    known = Condition("reason", "in", tuple(names))
    async with broken(tmp_path, change, OF_SECOND) as (adapter, troubles):
        query = ask("appointments", limit=2, only=(known,))
        assert (await adapter.read_many(query)).skipped == 1
        assert troubles == [Trouble("unreadable", "appointments", "reason", "")]
        hiding = Condition("id", "not in", (SealedIds(SECRET, "appointments").seal(1),))
        query = ask("appointments", limit=2, only=(known, hiding))
        assert (await adapter.read_many(query)).skipped == 0
    code = str(next(iter(cloud.records.stock)))
    async with broken(tmp_path, change, f"/stock/{code}$") as (adapter, troubles):
        query = ask("stock", limit=200, only=(Condition("isLow", "in", (True, False)),))
        page = await adapter.read_many(query)
        assert (len(page.records), page.skipped) == (len(cloud.records.stock) - 1, 1)
        assert [trouble.field for trouble in troubles] == ["one"]


async def test_a_condition_on_a_call_that_fails_leaves_the_record_out(tmp_path: Path) -> None:
    text = f"{OF_EACH}    where: chart.name != 'x'\n"
    async with broken(tmp_path, joined(text, "chart.name"), OF_SECOND) as (adapter, troubles):
        page = await adapter.read_many(ask("appointments", limit=2))
        assert (len(page.records), page.skipped) == (1, 1)
        assert [trouble.field for trouble in troubles] == ["where"]
        first = SealedIds(SECRET, "appointments").seal(1)
        with pytest.raises(BackendNonsense):
            await adapter.read_one(ask("appointments", id=first))


async def test_what_fails_for_one_record_stops_no_start(tmp_path: Path) -> None:
    change = joined(OF_EACH, "chart.name")
    async with broken(tmp_path, change, OF_SECOND) as (adapter, _):
        [warning] = await adapter.check()
        assert (warning.code, "GET /animals/{of}: it answers 500" in warning.text) == (
            "doubtful-answer",
            True,
        )
        text = (tmp_path / "mapping.yaml").read_text()
        assert warning.line == text[: text.index("chart: {")].count("\n") + 1
        found = [it async for it in examine(adapter, Examination(now=NOW))]
        told = [it for it in found if "GET /animals/{of}: it answers 500" in it.text]
        assert {(it.code, it.verdict) for it in told} == {("doubtful-answer", Verdict.FAILED)}
    async with broken(tmp_path, change, "/animals/") as (adapter, _):
        with pytest.raises(DocumentErrors, match=r"GET /animals/\{of\}: it answers 500"):
            await adapter.check()


async def test_a_record_whose_own_call_fails_is_left_out_of_a_list(tmp_path: Path) -> None:
    change = replaced(("sift: [isLow, category, name]", "sift: [isLow, name]"))
    cloud = new_cloud()
    code = str(next(iter(cloud.records.stock)))
    async with broken(tmp_path, change, f"/stock/{code}$") as (adapter, troubles):
        page = await adapter.read_many(ask("stock", limit=200))
        assert (len(page.records), page.skipped) == (len(cloud.records.stock) - 1, 1)
        [trouble] = troubles
        assert (trouble.kind, trouble.resource, trouble.field) == ("unreadable", "stock", "one")
        [warning] = await adapter.check()
        assert (warning.code, "GET /stock/{id}" in warning.text) == ("doubtful-answer", True)


async def test_a_record_of_a_list_is_joined_once(tmp_path: Path) -> None:
    text = """    where: kind.label != 'x'
    joins:
      kind: {get: /kinds, query: {id: {given: of}}, of: kind, key: id}
"""
    change = joined(text, "kind.label")

    def without_one(mapping: str) -> str:
        one = '    one: {get: "/visits/{id}", item: data}\n'
        plain = "      appointmentTypeId: kind\n"
        return replaced((one, ""), (plain, ""))(change(mapping))

    cloud = new_cloud()
    cloud.records.visits[1]["kind"] = 2
    async with opened(cloud, tmp_path, without_one) as adapter:
        first = SealedIds(SECRET, "appointments").seal(1)
        record = await adapter.read_one(ask("appointments", id=first))
        assert record["reason"] == cloud.records.kinds[2]["label"]
        picked = await adapter.readers["appointments"].pick([first], ["reason"])
        assert picked == {first: [record["reason"]]}


async def test_no_row_is_lost_behind_the_most_that_one_call_looks_at() -> None:
    rows = [{"id": number, "name": number} for number in range(5_001)]

    class Paged:
        def pages(self, *_: object) -> Ask:
            async def answer(more: Params, link: str | None) -> Answer:
                begin = (dict(more)["page"] - 1) * 1_000
                return Answer(rows[begin : begin + 1_000])

            return answer

    page = {"by": "page", "page": "page", "most": 1_000}
    call = {"get": "/owners", "query": {"id": {"given": "of"}}, "of": "owner", "key": "id"}
    resource = ResourceMap.model_validate({"key": "id", "fields": {"name": "owner.name"}})
    templates = Templates(Converters(ZoneInfo("UTC"), bytes(32)), {})
    join = Join("owner", JoinMap.model_validate(call | {"page": page}), resource, templates)
    with pytest.raises(BackendNonsense, match="2 records have more than 5,000 rows"):
        await join.told([{"owner": 10}, {"owner": 5_000}], Paged())  # type: ignore[arg-type]
    del rows[0]
    told = await join.told([{"owner": 10}, {"owner": 5_000}], Paged())  # type: ignore[arg-type]
    assert [row["name"] for row in told] == [10, 5_000]


async def test_a_line_sees_the_record_around_it(tmp_path: Path) -> None:
    change = replaced(
        ("        items: rows\n", "        items: rows\n        within: bill\n"),
        (
            "          description: text\n",
            "          description: \"join(' ', [bill.ref, text])\"\n",
        ),
    )
    async with opened(new_cloud(), tmp_path, change) as adapter:
        clients = (await adapter.read_many(ask("clients", limit=2))).records
        owned = Filter("equals", ("clientId",), clients[1]["id"])
        record = (await adapter.read_many(ask("invoices", filters=(owned,)))).records[0]
        assert record["lines"][0]["description"] == f"{record['number']} Acte"


@pytest.mark.parametrize(
    ("join", "said"),
    [
        ("chart: {get: /animals, of: animal.id}", "of is sent nowhere"),
        ('chart: {get: "/animals/{id}", of: animal.id}', "nothing here is called id"),
        ('chart: {get: "/animals/{of}"}', "of is missing"),
        ('chart: {get: "/animals/{of}", of: animal.id, items: x}', "items goes with a key"),
        ('chart: {get: "/animals/{of}", of: animal.id, many: true}', "many goes with a key"),
        ('chart: {get: "/animals/{of}", of: animal.id, key: id}', "a path asks for one record"),
        ("chart: {get: /a, query: {a: {given: of}}, of: b, key: c, item: d}", "item goes with"),
        ("chart: {get: /a, query: {a: {given: of}}, of: 'b['}", "JMESPath"),
        ('kind: {get: "/kinds/{of}", of: kind}', "appointmentTypeId reads kind as a value, which"),
        (
            'first: {get: "/a/{of}", of: a}\n      second: {get: "/b/{of}", of: first}',
            "joins.second reads first as a value",
        ),
    ],
)
def test_what_is_wrong_with_a_join_is_said_at_its_line(
    join: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(DocumentErrors, match=rf"mapping\.yaml:\d+:\d+: .*{said}"):
        connect("http://127.0.0.1:1/v2", tmp_path, joined(f"    joins:\n      {join}\n", "note"))


def test_a_join_may_be_a_value_itself_and_be_asked_for_by_what_it_hides(tmp_path: Path) -> None:
    text = '    joins:\n      note: {get: "/notes/{of}", of: note, item: text}\n'
    connect("http://127.0.0.1:1/v2", tmp_path, joined(text, "note"))
    with pytest.raises(DocumentErrors, match="reason reads note as a value"):
        connect("http://127.0.0.1:1/v2", tmp_path, joined(text.replace(", item: text", ""), "note"))
