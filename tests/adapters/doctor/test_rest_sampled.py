"""A start and a check say the same, whichever records the backend happens to give first."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.doctor.rest import examine
from adapters.documents.problems import DocumentErrors
from adapters.examination import Examination, Verdict
from adapters.rest.adapter import RestAdapter
from adapters.rest.backend import AT_ONCE
from examples.json_cloud.backend import Cloud
from tests.adapters.clinic import NOW, ask
from tests.adapters.rest.cloud import connect, listening, new_cloud, replaced

pytestmark = pytest.mark.long

Changes = tuple[tuple[str, str], ...]
# Of what is said of a mapping: whether it is a refusal, and the place and the words.
Told = set[tuple[str, str]]


async def at_start(adapter: RestAdapter) -> tuple[Told, Told]:
    """What a start refuses, and what it warns of."""
    try:
        warned = await adapter.check()
    except DocumentErrors as error:
        return {(f"{each.line}:{each.column}", each.text) for each in error.problems}, set()
    return set(), {(f"{each.line}:{each.column}", each.text) for each in warned}


async def in_check(adapter: RestAdapter, verdict: Verdict) -> Told:
    """What `backend check` says of calls and paths."""
    return {
        (each.place.partition(".yaml:")[2], each.text)
        async for each in examine(adapter, Examination(now=NOW))
        if each.verdict is verdict and each.check in ("mapping", "calls")
    }


def lose(rows: str, *names: str, first: int | None = None) -> Callable[[Cloud], None]:
    """The first so many rows of a kind, or all, lack members, as those without a value do."""

    def change(cloud: Cloud) -> None:
        for each in list(getattr(cloud.records, rows).values())[:first]:
            for name in names:
                each.pop(name, None)

    return change


def nothing(cloud: Cloud) -> None:
    """The cloud as it is."""


WARNED: dict[str, tuple[Callable[[Cloud], None], Changes, str]] = {
    "a member that no record has": (
        lose("owners", "mail"),
        (),
        "no record of the backend has mail",
    ),
    "a key that no record has": (
        nothing,
        (("key: {source: href,", "key: {source: hrefs,"),),
        "no record of the backend has hrefs (did you mean href?): hrefs leads to nothing",
    ),
    "a detail that no record has": (
        nothing,
        (("location: shelf", "location: shelves"),),
        "no record of the backend has shelves",
    ),
    "a member inside a list": (
        nothing,
        (("quantity: count", "quantity: counted"),),
        "no record of the backend has counted (did you mean count?)",
    ),
    "a part of an expression": (lose("owners", "phones"), (), "part of the expression leads to"),
}


@pytest.mark.parametrize("case", WARNED.values(), ids=WARNED)
async def test_a_path_that_no_sampled_record_fills_is_a_warning_in_both(
    case: tuple[Callable[[Cloud], None], Changes, str], tmp_path: Path
) -> None:
    change, mapping, said = case
    cloud = new_cloud()
    change(cloud)
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path, replaced(*mapping))
        refused, warned = await at_start(adapter)
        assert refused == set()
        assert any(said in text for _, text in warned), warned
        assert warned <= await in_check(adapter, Verdict.WARNING)
        await adapter.aclose()


@pytest.mark.parametrize("missing", [0, 1, AT_ONCE, AT_ONCE + 1, 60])
async def test_records_that_come_first_without_a_member_stop_no_start(
    missing: int, tmp_path: Path
) -> None:
    """Stock is read one by one: a start looks at fewer of them than a check does."""
    cloud = new_cloud()
    lose("stock", "shelf", "code", "best_before", first=missing)(cloud)
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path)
        refused, warned = await at_start(adapter)
        assert refused == set()
        assert bool(warned) == (missing >= AT_ONCE)
        page = await adapter.read_many(ask("stock"))
        assert page.records[0]["location"] is None or not missing
        await adapter.aclose()


EMPTY: dict[str, dict[str, Any]] = {
    "owners": {"count": 0, "results": [], "offset": 0},
    "animals": {"page": 1, "animals": []},
    "visits": {"visits": []},
    "reports": {"rows": [], "cursor": None},
    "bills": {"bills": []},
    "stock": {"ids": []},
}


@pytest.mark.parametrize("name", EMPTY)
async def test_an_empty_list_stops_no_start(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def empty(request: web.Request) -> web.Response:
        return web.json_response(EMPTY[name])

    cloud = new_cloud()
    monkeypatch.setattr(cloud, name, empty)
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path)
        assert await at_start(adapter) == (set(), set())
        await adapter.aclose()


class Terse(Cloud):
    """Leaves out a list that is empty, as some backends do."""

    async def bills(self, request: web.Request) -> web.Response:
        return web.json_response({"page": {}})

    async def absences(self, request: web.Request) -> web.Response:
        return web.json_response({"page": {}})


async def test_an_empty_list_that_is_left_out_is_a_warning_with_its_remedy(tmp_path: Path) -> None:
    async with listening(Terse(new_cloud().records)) as url:
        adapter = connect(url, tmp_path)
        refused, warned = await at_start(adapter)
        assert refused == set()
        remedy = "where the backend leaves an empty list out, write items: NAME || `[]`"
        assert {text.endswith(remedy) for _, text in warned} == {True}
        lines = {place for place, _ in warned}
        assert len(lines) == 2
        found = [each async for each in examine(adapter, Examination(now=NOW))]
        told = {each.place.partition(".yaml:")[2] for each in found if remedy in each.text}
        assert told == lines
        assert {each.verdict for each in found if remedy in each.text} == {Verdict.WARNING}
        await adapter.aclose()


class Vacant(Cloud):
    """Has no calendar of some vets."""

    without: frozenset[str] = frozenset()

    async def week(self, request: web.Request) -> web.Response:
        if request.match_info["id"].lower() in self.without:
            return web.json_response({"error": "no week"}, status=404)
        return await super().week(request)


@pytest.mark.parametrize("lost", ["the first", "all but the last", "all"])
async def test_a_vet_without_a_calendar_stops_no_start(lost: str, tmp_path: Path) -> None:
    cloud = Vacant(new_cloud().records)
    vets = [str(each).lower() for each in cloud.records.vets]
    gone = {"the first": vets[:1], "all but the last": vets[:-1], "all": vets}[lost]
    cloud.without = frozenset(gone)
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path)
        refused, warned = await at_start(adapter)
        assert {"/week: it answers 404" in text for _, text in refused | warned} == {True}
        assert bool(refused) == (lost == "all")
        await adapter.aclose()


class Bundled(Cloud):
    """Leaves out a list that is empty, beside the links of its page."""

    async def bills(self, request: web.Request) -> web.Response:
        return web.json_response({"link": [{"relation": "self", "url": str(request.url)}]})


async def test_the_links_of_a_page_are_not_taken_for_its_list(tmp_path: Path) -> None:
    async with listening(Bundled(new_cloud().records)) as url:
        adapter = connect(url, tmp_path)
        refused, warned = await at_start(adapter)
        assert refused == set()
        assert len(warned) == 1
        await adapter.aclose()


class Leaky(Cloud):
    """Lists items of the stock that are gone when they are asked for."""

    gone = 0

    async def stock_item(self, request: web.Request) -> web.Response:
        number = [str(each) for each in self.records.stock].index(request.match_info["id"])
        if number < self.gone:
            return web.json_response({"error": "gone"}, status=404)
        return await super().stock_item(request)


@pytest.mark.parametrize(
    ("gone", "starts"),
    [(1, True), (AT_ONCE - 1, True), (AT_ONCE, True), (40, True), (1_000, False)],
)
async def test_a_record_that_is_gone_stops_no_start(
    gone: int, starts: bool, tmp_path: Path
) -> None:
    cloud = Leaky(new_cloud().records)
    cloud.gone = gone
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path)
        refused, _ = await at_start(adapter)
        assert (refused == set()) == starts
        await adapter.aclose()
