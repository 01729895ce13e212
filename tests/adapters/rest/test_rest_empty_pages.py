"""Lists with empty pages in them: a call ends where it is, and the next goes on from there."""

from pathlib import Path

import pytest

from adapters.base import BackendNonsense, Record
from tests.adapters.clinic import ask
from tests.adapters.rest.cloud import connect, listening, new_cloud
from tests.adapters.rest.ill_clouds import SiftingCloud


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
