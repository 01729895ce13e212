"""Long cursors and links of a backend: kept in the gateway's store, and found there again."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.base import LONGEST_AFTER, BackendNonsense, IdTable
from adapters.rest.paging import LONGEST_KEPT, SHELF, PlaceShelf
from tests.adapters.clinic import SECRET, ask
from tests.adapters.rest.cloud import connect, listening, new_cloud
from tests.adapters.rest.ill_clouds import WordyCloud
from tests.adapters.shelf import Shelf

LIMITS = {"vets": 1, "consultations": 7}


@pytest.fixture
async def wordy(cloud: WordyCloud) -> AsyncIterator[str]:
    async with listening(cloud) as url:
        yield url


@pytest.fixture
def cloud() -> WordyCloud:
    return WordyCloud(new_cloud().records)


async def through(url: str, folder: Path, resource: str, shelf: IdTable | None) -> list[str]:
    """The ids of a list, each page of it read by an adapter that was just started."""
    found: list[str] = []
    after: str | None = None
    while True:
        adapter = connect(url, folder, ids=shelf)
        page = await adapter.read_many(ask(resource, limit=LIMITS[resource], after=after))
        await adapter.aclose()
        found += [each["id"] for each in page.records]
        after = page.after
        if after is None:
            return found
        assert len(after) <= LONGEST_AFTER
        assert after.isascii()


@pytest.mark.parametrize("resource", LIMITS)
async def test_a_list_with_long_cursors_or_links_goes_on_after_a_restart(
    wordy: str, tmp_path: Path, resource: str
) -> None:
    async with listening(new_cloud()) as plain:
        expected = await through(plain, tmp_path, resource, None)
    shelf = Shelf()
    assert await through(wordy, tmp_path, resource, shelf) == expected
    # besides the places only the vets' UUIDs, which the cloud has in upper case
    assert {name for name, _ in shelf.kept} - {"vets"} == {SHELF}


async def test_a_link_is_kept_without_the_backends_address(
    cloud: WordyCloud, wordy: str, tmp_path: Path
) -> None:
    cloud.words = "x" * 150
    assert len(f"{wordy}/vets?start=2&words={cloud.words}") > 190
    shelf = Shelf()
    adapter = connect(wordy, tmp_path, ids=shelf)
    after = (await adapter.read_many(ask("vets", limit=1))).after
    await adapter.aclose()
    assert after is not None
    assert "127.0.0.1" not in after
    assert {name for name, _ in shelf.kept} == {"vets"}  # a UUID in upper case, and no place


async def test_a_place_that_the_store_does_not_know_is_said() -> None:
    place = json.dumps(["x" * LONGEST_AFTER, ""])
    name = await PlaceShelf(SECRET, Shelf()).short(place)
    for table in (Shelf(), None):
        with pytest.raises(BackendNonsense, match="Begin the list anew"):
            await PlaceShelf(SECRET, table).whole(name)


async def test_a_place_without_bounds_is_not_kept() -> None:
    shelf = Shelf()
    with pytest.raises(BackendNonsense, match="too long"):
        await PlaceShelf(SECRET, shelf).short(json.dumps(["x" * LONGEST_KEPT]))
    assert shelf.kept == {}


async def test_a_kept_place_has_another_name_under_another_secret() -> None:
    place = json.dumps(["x" * LONGEST_AFTER, ""])
    names = {await PlaceShelf(secret, None).short(place) for secret in (SECRET, bytes(32))}
    assert len(names) == 2
