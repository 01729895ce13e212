"""A next page that a mapping does not follow: told, refused, and never a shorter list."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.base import BackendNonsense
from adapters.doctor.rest import examine
from adapters.examination import Examination, Verdict
from adapters.rest.backend import Answer
from adapters.rest.paging import next_told
from examples.json_cloud.backend import Cloud
from tests.adapters.clinic import NOW, ask
from tests.adapters.rest.cloud import connect, listening, new_cloud, replaced

BUSY = "      items: visits\n      where: state"
PAGE = "page: {by: link, next: links.next}"


class Capped(Cloud):
    """Gives two visits of a day at a time, with a link to the next ones."""

    async def visits(self, request: web.Request) -> web.Response:
        found = await super().visits(request)
        assert isinstance(found.text, str)
        visits = json.loads(found.text)["visits"]
        begin = int(request.query.get("begin", "0"))
        links: dict[str, Any] = {}
        if begin + 2 < len(visits):
            links["next"] = str(request.url.update_query(begin=begin + 2))
        return web.json_response({"visits": visits[begin : begin + 2], "links": links})


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"next": "/a?page=2"}, "next"),
        ({"links": {"next": {"href": "/a?page=2"}}}, "links.next"),
        ({"link": [{"relation": "self"}, {"relation": "next", "url": "/b"}]}, "link.next"),
        ({"_links": {"next": {"href": "/b"}}}, "_links.next"),
        ({"meta": {"next_cursor": "abc"}}, "meta.next_cursor"),
        ({"@odata.nextLink": "/b"}, "@odata.nextLink"),
        ({"pagination": {"has_more": True}}, "pagination.has_more"),
        ({"next": None, "links": {"next": ""}, "has_more": False}, ""),
        ({"link": [{"relation": "self", "url": "/a"}]}, ""),
        ({"next": {"day": "2026-01-01"}, "links": "next"}, ""),
        ([{"next": "/a"}], ""),
    ],
)  # fmt: skip
def test_what_tells_of_a_next_page_is_seen(data: Any, told: str) -> None:
    assert next_told(Answer(data)) == told
    assert next_told(Answer({}, link='<https://x/?page=2>; rel="next"')) == "its header Link"


async def test_fact_34_a_diary_whose_pages_are_not_followed_is_refused_not_shortened(
    tmp_path: Path,
) -> None:
    cloud = Capped(new_cloud().records)
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path)
        vet = (await adapter.read_many(ask("vets"))).records[0]["id"]
        day = max({it["starts_at"][:10] for it in cloud.records.visits.values()}, key=days(cloud))
        with pytest.raises(BackendNonsense, match=r"links\.next tells of a next page"):
            await slots(adapter, vet, day)
        found = [it async for it in examine(adapter, Examination(now=NOW))]
        told = [it for it in found if "tells of a next page" in it.text]
        assert {it.verdict for it in told} == {Verdict.FAILED}
        assert {it.code for it in told} == {"page-not-followed"}
        assert {it.subject for it in told} >= {"appointments"}
        # more visits of a day may come later: a start is not refused for them
        assert "page-not-followed" in {it.code for it in await adapter.check()}
        await adapter.aclose()


async def test_fact_34_links_of_the_diary_are_followed(tmp_path: Path) -> None:
    cloud = Capped(new_cloud().records)
    change = replaced(
        (BUSY, BUSY.replace("visits", f"visits\n      {PAGE}")),
        ("list: {get: /visits, items: visits}", f"list: {{get: /visits, items: visits, {PAGE}}}"),
    )
    day = max({it["starts_at"][:10] for it in cloud.records.visits.values()}, key=days(cloud))
    async with listening(cloud) as url, listening(new_cloud()) as whole:
        capped, other = connect(url, tmp_path, change), connect(whole, tmp_path / "..")
        vets = (await other.read_many(ask("vets"))).records
        for vet in vets:
            assert await slots(capped, vet["id"], day) == await slots(other, vet["id"], day)
        assert await capped.check() == []
        await capped.aclose()
        await other.aclose()


def days(cloud: Cloud) -> Any:
    return lambda day: sum(it["starts_at"][:10] == day for it in cloud.records.visits.values())


async def slots(adapter: Any, vet: str, day: str) -> list[Any]:
    values = {"vetId": vet, "date": date.fromisoformat(day)}
    return list((await adapter.read_many(ask("slots", values=values))).records)
