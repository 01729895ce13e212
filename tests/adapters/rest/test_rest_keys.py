"""UUIDs of a backend's own, where it takes no notice that another case means the same."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from adapters.base import NotFound
from adapters.doctor.rest import examine
from adapters.examination import Examination, Verdict
from examples.json_cloud.backend import Cloud
from examples.json_cloud.records import made
from tests.adapters.clinic import NOW, TODAY, ask
from tests.adapters.rest.cloud import connect, listening
from tests.adapters.shelf import Shelf


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
    monkeypatch.setattr("adapters.ids.tabled.MOST_WAITING", 1)
    shelf = Shelf()
    adapter = connect(strict, tmp_path, ids=shelf)
    looked = Examination(now=NOW, booking=False, rows=100)
    found = [each async for each in examine(adapter, looked)]
    assert [e for e in found if e.subject == "vets" and e.verdict == Verdict.FAILED] == []
    assert not shelf.kept
    await adapter.aclose()
