"""Records of several calls: joined one by one or by the page, and lines that see their record."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.base import Condition, Filter, NotFound
from adapters.documents.problems import DocumentErrors
from adapters.ids.seal import SealedIds
from adapters.rest.adapter import RestAdapter
from examples.json_cloud.backend import Cloud
from tests.adapters.clinic import SECRET, ask
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
    ],
)
def test_what_is_wrong_with_a_join_is_said_at_its_line(
    join: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(DocumentErrors, match=rf"mapping\.yaml:\d+:\d+: .*{said}"):
        connect("http://127.0.0.1:1/v2", tmp_path, joined(f"    joins:\n      {join}\n", "note"))
