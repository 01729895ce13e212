"""What is kept of decisions on a waiting policy, and how long each of them counts."""

from datetime import UTC, datetime

import pytest

from gateway.policy.policy import Version
from gateway.policy.running.versions import (
    APPROVED,
    DECLINED,
    HELD,
    RAN,
    REFUSED,
    Event,
    Versions,
)
from gateway.store import Store

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
A, B = "a" * 64, "b" * 64


async def told(versions: Versions, *events: tuple[str, str]) -> None:
    for event, digest in events:
        who = "Claire" if event in {APPROVED, DECLINED} else None
        version = Version(hash=digest, content=b"", file="f") if event in {RAN, HELD} else None
        await versions.ask(
            Event(at=AT, event=event, hash=digest, version=version, who=who, reason=event)
        )


@pytest.mark.parametrize(
    ("events", "declined", "approved"),
    [
        ([(RAN, B), (HELD, A)], False, False),
        ([(RAN, B), (HELD, A), (DECLINED, A)], True, False),
        # the gateway was started anew, or another machine follows the same file
        ([(RAN, B), (HELD, A), (DECLINED, A), (HELD, A)], True, False),
        ([(RAN, B), (HELD, A), (DECLINED, A), (APPROVED, A)], False, True),
        ([(RAN, B), (HELD, A), (APPROVED, A), (DECLINED, A)], True, False),
        ([(RAN, B), (HELD, A), (APPROVED, A), (DECLINED, A), (APPROVED, A)], False, True),
        # the file said something else meanwhile
        ([(HELD, A), (DECLINED, A), (RAN, B), (HELD, A)], False, False),
        ([(HELD, A), (DECLINED, A), (HELD, B), (HELD, A)], False, False),
        ([(HELD, A), (DECLINED, A), (REFUSED, ""), (HELD, A)], False, False),
        ([(HELD, A), (HELD, B), (DECLINED, B)], False, False),
    ],
)
async def test_a_decision_counts_until_the_opposite_one_or_another_file(
    store: Store, events: list[tuple[str, str]], declined: bool, approved: bool
) -> None:
    versions = Versions(store)
    await told(versions, *events)
    found = await versions.declined(A)
    assert (found is not None, await versions.approved(A)) == (declined, approved)
    if found is not None:
        assert (found.who, found.reason, found.at) == ("Claire", DECLINED, AT)


async def test_the_history_is_told_the_newest_first_and_whether_a_text_is_kept(
    store: Store,
) -> None:
    versions = Versions(store)
    await told(versions, (RAN, A), (REFUSED, B), (HELD, B), (DECLINED, B), (REFUSED, ""))
    past = await versions.history(9)
    assert [each.event for each in past] == [REFUSED, DECLINED, HELD, REFUSED, RAN]
    assert [each.is_kept for each in past] == [False, True, True, True, True]
    newer = await versions.history(2)
    older = await versions.history(9, before=newer[-1].number)
    assert [*newer, *older] == list(past)
    assert [each.hash for each in await versions.history(9, digest=A)] == [A]
