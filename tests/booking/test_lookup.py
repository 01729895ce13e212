"""Bookings of which nobody knows, and how they ended, as people are shown them."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from adapters.base import OutcomeUnknown
from gateway.booking.base import LEFT, done
from gateway.booking.ledger import BOOKED_KEPT, KEPT
from gateway.booking.rows import LedgerRows
from gateway.store.tables import bookings
from tests.booking.clinic import DAY, NOW, OTHER, World
from tests.booking.test_reconcile import lost, reconciled

EVER = datetime(1970, 1, 1, tzinfo=UTC)


async def told(world: World) -> list[tuple[str | None, bool]]:
    """What came of each that ended, the latest first, and whether its partner was told of it."""
    ended = await LedgerRows(world.store).latest_resolved(EVER, 10)
    return [(each.appointment_id, bool(each.told)) for each in ended]


async def test_what_nobody_knows_is_told_with_the_time_that_it_blocks(world: World) -> None:
    await lost(world)
    rows = LedgerRows(world.store)
    [found] = await rows.oldest_unknown(10)
    assert (found.key_id, found.vet_id, found.created_at) == ("p", "v", NOW)
    assert (found.starts_at, found.ends_at) == (NOW + DAY, NOW + DAY + timedelta(minutes=30))
    assert found.owner is None
    assert found.is_legible
    assert await rows.oldest_unknown(0) == []
    assert await told(world) == []


async def test_what_was_found_is_told_with_its_appointment(world: World) -> None:
    await lost(world)
    before = datetime.now(UTC)
    async with reconciled(world) as reconciler:
        await reconciler.begin()
    rows = LedgerRows(world.store)
    assert await rows.oldest_unknown(10) == []
    [found] = await rows.latest_resolved(before, 10)
    assert before <= found.resolved_at <= datetime.now(UTC)
    assert (found.key_id, found.vet_id, found.starts_at) == ("p", "v", NOW + DAY)
    assert (found.created_at, found.appointment_id, found.told) == (NOW, "a0", 0)
    assert await rows.latest_resolved(datetime.now(UTC), 10) == []


async def test_what_was_not_made_is_told_too(world: World) -> None:
    await lost(world, made=False)
    async with reconciled(world, lands=0) as reconciler:
        await reconciler.begin()
    assert world.heard.events == ["booking_not_made"]
    assert await told(world) == [(None, False)]


async def test_what_a_retry_finds_out_is_known_to_its_partner(world: World) -> None:
    await lost(world)
    assert (await world.book()).record["id"] == "a0"
    assert await told(world) == [("a0", True)]


async def test_what_a_retry_sends_anew_was_made_in_the_end(world: World) -> None:
    await lost(world, made=False)
    assert (await world.book()).record["id"] == "a0"
    assert await told(world) == [("a0", True)]


async def test_a_retry_that_may_not_be_sent_anew_was_not_made(world: World) -> None:
    await lost(world, made=False)
    world.past = True
    with pytest.raises(Exception, match="future"):
        await world.book()
    assert await told(world) == [(None, False)]


async def test_who_turns_up_after_all_has_the_last_word(world: World) -> None:
    await lost(world, made=False)
    rows = LedgerRows(world.store)
    for outcome, said in ((LEFT, []), (done({"id": "a9"}), [("a9", True)])):
        [row] = await rows.between()
        assert await rows.write(row, None)
        assert await told(world) == [(None, False)]
        assert await rows.restore(row, outcome)
        assert await told(world) == said


async def test_what_was_never_unknown_leaves_no_word(world: World) -> None:
    await world.book()
    await world.book()
    world.clinic.answers = [OutcomeUnknown("lost")]
    with pytest.raises(OutcomeUnknown):
        await world.book("another", OTHER, at=2 * DAY)
    assert len(await LedgerRows(world.store).oldest_unknown(10)) == 1
    assert await told(world) == []


async def test_one_that_cannot_be_read_is_told_as_such(world: World) -> None:
    await lost(world)
    async with world.store.begin() as connection:
        await connection.execute(update(bookings).values(draft=b"{"))
    [found] = await LedgerRows(world.store).oldest_unknown(10)
    assert not found.is_legible


async def test_a_word_is_kept_for_a_week(world: World) -> None:
    await lost(world)
    await world.book()
    rows, now = LedgerRows(world.store), datetime.now(UTC)
    kept = KEPT, BOOKED_KEPT
    await rows.purge(now + timedelta(days=6), *kept)
    assert len(await told(world)) == 1
    await rows.purge(now + timedelta(days=8), *kept)
    assert await told(world) == []
