"""Ways through a long list: where they go on, and where they end."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters.base import BackendNonsense, Record
from adapters.mapping.models import Paging
from adapters.mapping.paths import path
from adapters.rest.backend import Answer, Params
from adapters.rest.paging import Pager
from tests.adapters.clinic import ask
from tests.adapters.rest.cloud import connect, listening, new_cloud
from tests.adapters.rest.ill_clouds import SiftingCloud


def made(style: dict[str, Any] | None) -> Pager:
    paging = None if style is None else Paging.model_validate(style)
    return Pager(paging, path("rows"), path("id"), "GET /rows")


class Backend:
    """Pages of a list of rows, as its style has them."""

    def __init__(self, count: int, most: int = 10) -> None:
        self.rows = [{"id": number} for number in range(count)]
        self.most = most
        self.asked: list[Params] = []

    async def offset(self, params: Params, link: str | None) -> Answer:
        self.asked.append(params)
        values = dict(params)
        begin, size = values["o"], min(values["l"], self.most)
        return Answer({"rows": self.rows[begin : begin + size], "n": len(self.rows)})

    async def page(self, params: Params, link: str | None) -> Answer:
        self.asked.append(params)
        begin = (dict(params)["p"] - 1) * self.most
        return Answer({"rows": self.rows[begin : begin + self.most]})

    async def by_link(self, params: Params, link: str | None) -> Answer:
        begin = int(link.rpartition("=")[2]) if link else 0
        more = f'</rows?s=0>; rel="first", </rows?s={begin + self.most}>; title="a"; rel="next"'
        ends = begin + self.most >= len(self.rows)
        header = "" if ends else more
        return Answer({"rows": self.rows[begin : begin + self.most]}, header)


async def through(way: Pager, ask: Any, wanted: int = 1000) -> list[int]:
    return [row["id"] async for batch in way.batches(ask, None, wanted) for row in batch.rows]


async def places_of(way: Pager, ask: Any, wanted: int) -> AsyncIterator[str]:
    async for batch in way.batches(ask, None, wanted):
        for number in range(len(batch.rows)):
            yield batch.place(number)


OFFSET = {"by": "offset", "offset": "o", "limit": "l", "most": 10}
PAGE = {"by": "page", "page": "p", "most": 10}
LINK = {"by": "link", "header": True}
CURSOR = {"by": "cursor", "cursor": "c", "next": "next"}


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 20, 37])
async def test_every_row_comes_once_whatever_the_style(count: int) -> None:
    expected = list(range(count))
    backend = Backend(count)
    assert await through(made(OFFSET), backend.offset) == expected
    assert await through(made(OFFSET), backend.offset, wanted=3) == expected
    assert await through(made(OFFSET | {"total": "n"}), backend.offset) == expected
    assert await through(made(PAGE), backend.page) == expected
    assert await through(made(LINK), backend.by_link) == expected


async def test_a_server_that_gives_fewer_than_asked_for_hides_nothing() -> None:
    backend = Backend(37, most=4)
    assert await through(made(OFFSET), backend.offset) == list(range(37))


@pytest.mark.parametrize("style", [OFFSET, PAGE, LINK], ids=lambda each: str(each["by"]))
@pytest.mark.parametrize("stop", range(23))
async def test_from_every_place_it_goes_on_behind_the_row(style: dict[str, Any], stop: int) -> None:
    backend = Backend(23)
    ask = {"offset": backend.offset, "page": backend.page, "link": backend.by_link}[style["by"]]
    way = made(style)
    places = [place async for place in places_of(way, ask, 100)]
    assert all(len(each) <= 200 and each.isascii() for each in places)
    rest = [row["id"] async for batch in way.batches(ask, places[stop], 100) for row in batch.rows]
    assert rest == list(range(stop + 1, 23))


async def test_a_list_that_is_one_answer_goes_on_behind_the_row_too() -> None:
    rows = [{"id": number} for number in range(5)]

    async def ask(params: Params, link: str | None) -> Answer:
        return Answer({"rows": rows})

    way = made(None)
    places = [place async for place in places_of(way, ask, 9)]
    rows.insert(0, {"id": 9})
    rest = [row["id"] async for batch in way.batches(ask, places[1], 9) for row in batch.rows]
    assert rest == [2, 3, 4]


async def test_a_backend_that_knows_no_offset_is_found_out() -> None:
    backend = Backend(30)

    async def ask(params: Params, link: str | None) -> Answer:
        return Answer({"rows": backend.rows})

    with pytest.raises(BackendNonsense, match="does the backend know o"):
        await through(made(OFFSET), ask)


async def test_a_backend_that_knows_no_page_is_found_out() -> None:
    backend, calls = Backend(10), []

    async def ask(params: Params, link: str | None) -> Answer:
        calls.append(params)
        assert len(calls) < 20, "it would ask for ever"
        return Answer({"rows": backend.rows})

    with pytest.raises(BackendNonsense, match="does the backend know p"):
        await through(made(PAGE), ask)


async def test_a_next_page_that_was_read_already_ends_with_an_error() -> None:
    async def ask(params: Params, link: str | None) -> Answer:
        return Answer({"rows": [{"id": 1}]}, '</rows?s=1>; rel="next"')

    with pytest.raises(BackendNonsense, match="read already"):
        await through(made(LINK), ask)


async def test_what_is_no_array_is_said() -> None:
    async def ask(params: Params, link: str | None) -> Answer:
        return Answer({"rows": {"id": 1}})

    with pytest.raises(BackendNonsense, match="no array"):
        await through(made(None), ask)


async def test_new_cursors_to_empty_pages_without_end_are_found_out() -> None:
    calls: list[Params] = []

    async def ask(params: Params, link: str | None) -> Answer:
        calls.append(params)
        assert len(calls) < 50, "it would ask for ever"
        return Answer({"rows": [], "next": len(calls)})

    with pytest.raises(BackendNonsense, match="does the backend know c"):
        await through(made(CURSOR), ask)


async def test_a_few_empty_pages_end_no_list() -> None:
    async def ask(params: Params, link: str | None) -> Answer:
        at = int(dict(params).get("c", 0))
        rows = [] if at % 5 else [{"id": at}]
        return Answer({"rows": rows, "next": at + 1 if at < 20 else None})

    assert await through(made(CURSOR), ask) == [0, 5, 10, 15, 20]


async def test_a_page_number_that_is_ignored_is_found_out() -> None:
    backend = Backend(10)

    async def deaf(params: Params, link: str | None) -> Answer:
        return await backend.page((("p", 1),), link)

    with pytest.raises(BackendNonsense, match="does the backend know p"):
        await through(made(PAGE), deaf)


@pytest.mark.parametrize(
    ("empty", "lag", "pages"), [(3, 0.0, 1), (12, 0.0, 2), (25, 0.0, 3), (8, 0.15, 3)]
)
async def test_empty_pages_lose_nothing_however_many_and_slow(
    empty: int, lag: float, pages: int, tmp_path: Path
) -> None:
    cloud = SiftingCloud(new_cloud().records, empty, lag)
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path, timeout=1.0)
        found: list[Record] = []
        after, number = None, 0
        while number == 0 or after is not None:
            page = await adapter.read_many(ask("consultations", after=after))
            found, after, number = found + page.records, page.after, number + 1
        assert len({each["id"] for each in found}) == len(found) == 6
        assert number >= pages
        await adapter.aclose()


async def test_empty_pages_behind_a_full_one_are_left_to_the_next_call(tmp_path: Path) -> None:
    cloud = SiftingCloud(new_cloud().records, 8, 0.0)
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path)
        page = await adapter.read_many(ask("consultations", limit=3))
        assert (len(page.records), cloud.pages) == (3, 2)
        page = await adapter.read_many(ask("consultations", limit=3, after=page.after))
        assert (len(page.records), page.after) == (3, None)
        await adapter.aclose()


async def test_empty_pages_without_end_are_found_out_over_several_calls(tmp_path: Path) -> None:
    cloud = SiftingCloud(new_cloud().records, 10_000, 0.0)
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path)
        after: str | None = None
        for _ in range(9):
            after = (await adapter.read_many(ask("consultations", after=after))).after
        with pytest.raises(BackendNonsense, match="does the backend know after"):
            await adapter.read_many(ask("consultations", after=after))
        assert cloud.pages <= 101
        await adapter.aclose()


async def test_no_more_than_a_page_is_asked_for_until_too_few_rows_were_of_use() -> None:
    backend = Backend(37)
    await through(made(OFFSET), backend.offset, wanted=3)
    assert [dict(params)["l"] for params in backend.asked] == [4, *[10] * 5]


async def test_a_place_is_ascii_whatever_the_backends_cursor_is() -> None:
    async def answer(params: Params, link: str | None) -> Answer:
        return Answer({"rows": [{"id": 1}, {"id": 2}], "next": None if params else "é\u2028"})

    way = made({"by": "cursor", "cursor": "c", "next": "next"})
    [first, last] = [batch async for batch in way.batches(answer, None, 1)]
    assert (first.end, last.place(0).isascii()) == (r'["\u00e9\u2028",""]', True)
