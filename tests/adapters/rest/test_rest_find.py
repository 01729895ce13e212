"""A booking is looked up through all pages that the backend has, and never half."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.base import Draft, OutcomeUnknown
from adapters.rest import adapter as adapter_module
from adapters.rest.adapter import RestAdapter
from tests.adapters.clinic import a_draft
from tests.adapters.rest.cloud import connect, listening, new_cloud, replaced
from tests.adapters.rest.ill_clouds import LeafingCloud

FIND = "find: {get: /visits, query: {ref: {draft: reference}}, items: visits}"
PAGED = FIND.removesuffix("}") + ", page: {by: page, page: page, most: 10}}"
REFERENCE = "  reference: ext_ref\n"
WITH = replaced((FIND, PAGED), (REFERENCE, f"{REFERENCE}  settle: 0\n"))
WITHOUT = replaced((FIND, PAGED), (REFERENCE, "  settle: 0\n"))
BOTH = pytest.mark.parametrize("adapter", [WITH, WITHOUT], ids=["with", "without"], indirect=True)


@pytest.fixture
def cloud() -> LeafingCloud:
    return LeafingCloud(new_cloud().records)


@pytest.fixture
async def adapter(
    cloud: LeafingCloud, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[RestAdapter]:
    async with listening(cloud) as url:
        opened = connect(url, tmp_path, getattr(request, "param", WITH))
        yield opened
        await opened.aclose()


def lost(_: object) -> None:
    raise ConnectionResetError


async def unanswered(adapter: RestAdapter, cloud: LeafingCloud) -> tuple[Draft, datetime]:
    """A booking that was made though no answer came, and when it was sent."""
    draft, since = await a_draft(adapter), datetime.now(UTC)
    cloud.after_booking = lost
    with pytest.raises(OutcomeUnknown):
        await adapter.create_appointment(draft)
    return draft, since


@BOTH
async def test_a_booking_on_the_last_page_is_found(
    adapter: RestAdapter, cloud: LeafingCloud
) -> None:
    draft, since = await unanswered(adapter, cloud)
    assert len(cloud.records.visits) > 20
    found = await adapter.find_appointments(draft, since)
    assert [each["patientId"] for each in found] == [draft.patient_id]


async def test_a_booking_on_no_page_was_not_made(adapter: RestAdapter, cloud: LeafingCloud) -> None:
    cloud.records.visits.clear()
    draft = await a_draft(adapter)
    assert list(await adapter.find_appointments(draft, draft.now)) == []


async def test_without_a_reference_a_booking_on_no_page_was_not_made(
    cloud: LeafingCloud, tmp_path: Path
) -> None:
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path, WITHOUT)
        draft = await a_draft(adapter)
        assert list(await adapter.find_appointments(draft, datetime.now(UTC))) == []
        await adapter.aclose()


@BOTH
async def test_what_lies_beyond_the_bound_is_not_said_to_be_nowhere(
    adapter: RestAdapter, cloud: LeafingCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft, since = await unanswered(adapter, cloud)
    monkeypatch.setattr(adapter_module, "MOST_ROWS", 20)
    with pytest.raises(OutcomeUnknown, match="no end"):
        await adapter.find_appointments(draft, since)


@BOTH
async def test_a_lookup_that_does_not_end_leaves_it_open(
    adapter: RestAdapter, cloud: LeafingCloud
) -> None:
    draft, since = await unanswered(adapter, cloud)
    cloud.is_stuck = True
    with pytest.raises(OutcomeUnknown, match="no end"):
        await adapter.find_appointments(draft, since)


@BOTH
async def test_before_the_bound_a_reference_alone_is_certain(
    adapter: RestAdapter,
    cloud: LeafingCloud,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    draft, since = await unanswered(adapter, cloud)
    visits = cloud.records.visits
    ours = max(visits)
    cloud.records.visits = {ours: visits.pop(ours), **visits}
    monkeypatch.setattr(adapter_module, "MOST_ROWS", 20)
    if request.node.callspec.id == "with":
        assert len(await adapter.find_appointments(draft, since)) == 1
        draft = replace(draft, reference="another")
    with pytest.raises(OutcomeUnknown):
        await adapter.find_appointments(draft, since)


async def test_no_page_is_asked_for_behind_the_one_that_has_the_reference(
    adapter: RestAdapter, cloud: LeafingCloud
) -> None:
    cloud.is_newest_first = True
    draft = await a_draft(adapter)
    made = await adapter.create_appointment(draft)
    assert cloud.pages == ["1"]
    found = await adapter.find_appointments(draft, draft.now)
    assert [each["id"] for each in found] == [made["id"]]
    assert cloud.pages == ["1", "1"]
