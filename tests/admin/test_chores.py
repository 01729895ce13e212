"""Work that goes on in the background, one run at a time: others follow where one is cut off."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from gateway.admin.context import Chore, Noted, UnderWay
from tests.heard import Heard

RUN = UnderWay("Claire", datetime(2026, 11, 22, tzinfo=UTC), None)


@asynccontextmanager
async def never_begun() -> AsyncIterator[Noted]:
    await asyncio.Event().wait()
    yield {}


async def nothing(noted: Noted) -> None:
    """No work."""


async def test_who_is_cut_off_before_a_run_begins_leaves_it_to_others() -> None:
    chore = Chore(Heard())
    beginning = asyncio.create_task(chore.begin(RUN, never_begun(), nothing))
    await asyncio.sleep(0)
    assert chore.under_way is RUN
    assert not await chore.begin(RUN, never_begun(), nothing)
    beginning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(beginning, 1)
    assert chore.under_way is None
    await chore.aclose()
