"""Work that goes on in the background: what whoever began it is told where it is cut off."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from gateway.admin.chores import Chore, Noted, UnderWay
from tests.heard import Heard

RUN = UnderWay("Claire", datetime(2026, 11, 22, tzinfo=UTC), None)


@asynccontextmanager
async def never_begun() -> AsyncIterator[Noted]:
    await asyncio.Event().wait()
    yield {}


async def nothing(noted: Noted) -> None:
    """No work."""


@pytest.mark.parametrize("steps", [1, 2])
async def test_who_waits_for_a_run_that_is_cut_off_before_it_begins_waits_no_longer(
    steps: int,
) -> None:
    chore = Chore[None](Heard())
    beginning = asyncio.create_task(chore.begin(RUN, never_begun(), nothing))
    for _ in range(steps):
        await asyncio.sleep(0)
    assert chore.under_way is RUN
    await chore.aclose()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(beginning, 1)
    assert chore.under_way is None
