"""Every limiter: a fixed window of an hour from the first counted call, exact under concurrency."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st

from gateway.limits import open_limiter, place_of
from gateway.limits.base import Limiter, MemoryLimiter, Quota, Used
from tests.heard import Heard
from tests.limits.subjects import SUBJECTS, InMemory, Shared, Subject


@pytest.fixture(params=SUBJECTS)
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    made: Subject = SUBJECTS[request.param]()
    yield made
    await made.aclose()


@pytest.fixture
def limiter(subject: Subject) -> Limiter:
    return subject.limiter


async def test_exactly_the_limit_is_admitted_whoever_asks_at_once(limiter: Limiter) -> None:
    await limiter.start()
    quotas = []
    for _ in range(30):
        quotas += await asyncio.gather(*(limiter.hit("k", 1_000) for _ in range(50)))
    admitted = [quota for quota in quotas if quota.admitted]
    assert len(admitted) == 1_000
    assert sorted(quota.remaining for quota in admitted) == list(range(1_000))


async def test_the_window_begins_with_the_first_call_and_ends_an_hour_later(
    subject: Subject,
) -> None:
    limiter = subject.limiter
    assert await limiter.hit("k", 2) == Quota(2, 1, 3600, admitted=True)
    await subject.passes(1_800.5)
    assert await limiter.hit("k", 2) == Quota(2, 0, 1800, admitted=True)
    await subject.passes(1_797)
    quota = await limiter.hit("k", 2)
    assert not quota.admitted
    assert 1 <= quota.reset <= 3
    await subject.passes(2.5)
    assert await limiter.hit("k", 2) == Quota(2, 1, 3600, admitted=True)


async def test_a_denied_call_does_not_count_and_a_changed_limit_holds_at_once(
    limiter: Limiter,
) -> None:
    await limiter.hit("k", 1)
    for _ in range(5):
        assert not (await limiter.hit("k", 1)).admitted
    assert (await limiter.hit("k", 3)).remaining == 1
    quota = await limiter.hit("k", 2)
    assert (quota.limit, quota.remaining, quota.admitted) == (2, 0, False)
    assert (await limiter.hit("k", 1)).remaining == 0


async def test_one_key_does_not_use_up_another(limiter: Limiter) -> None:
    await limiter.hit("a", 1)
    assert (await limiter.hit("b", 1)).admitted


async def test_a_limit_of_nothing_admits_nothing(limiter: Limiter) -> None:
    for _ in range(2):
        assert await limiter.hit("k", 0) == Quota(0, 0, 3600, admitted=False)


async def test_what_is_used_is_seen_and_never_counted(subject: Subject) -> None:
    limiter = subject.limiter
    for _ in range(3):
        assert await limiter.peek(["k", "other", "none"]) == {}
    for key_id in ("k", "k", "other", "k"):
        await limiter.hit(key_id, 3)
    seen = {"k": Used(3, 3600), "other": Used(1, 3600)}
    for _ in range(5):
        assert await limiter.peek(["none", "k", "other"]) == seen
    assert await limiter.peek([]) == {}
    assert await limiter.hit("other", 3) == Quota(3, 1, 3600, admitted=True)
    assert not (await limiter.hit("k", 3)).admitted
    assert (await limiter.peek(["k"]))["k"].calls == 3, "what is not admitted does not count"
    await subject.passes(3_599.5)
    assert (await limiter.peek(["k"])) == {"k": Used(3, 1)}
    await subject.passes(1)
    assert await limiter.peek(["k", "other"]) == {}
    assert await limiter.hit("k", 3) == Quota(3, 2, 3600, admitted=True)


async def test_what_is_used_is_seen_of_as_many_keys_as_there_are(limiter: Limiter) -> None:
    names = [str(number) for number in range(1_200)]
    for number in range(0, 1_200, 100):
        for _ in range(1 + number // 100):
            await limiter.hit(str(number), 50)
    assert {key_id: used.calls for key_id, used in (await limiter.peek(names)).items()} == {
        str(number): 1 + number // 100 for number in range(0, 1_200, 100)
    }


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_wall_clock_that_is_set_changes_nothing(limiter: Limiter, hours: int) -> None:
    before = await limiter.hit("k", 2)
    with time_machine.travel(1_800_000_000 + hours * 3600, tick=True):
        during = await limiter.hit("k", 2)
        assert (during.remaining, during.admitted) == (0, True)
        assert before.reset - during.reset <= 1
        assert not (await limiter.hit("k", 2)).admitted


async def test_what_one_reports_is_ready_and_counts_for_all(limiter: Limiter) -> None:
    assert not limiter.degraded


@given(
    steps=st.lists(st.tuples(st.integers(0, 2_000), st.sampled_from("ab")), max_size=40),
    limit=st.integers(1, 4),
    kind=st.sampled_from([InMemory, Shared]),
)
def test_it_does_what_a_plain_list_of_admitted_calls_says(
    steps: list[tuple[int, str]], limit: int, kind: type[InMemory]
) -> None:
    asyncio.run(_as_a_list_says(steps, limit, kind()))


async def _as_a_list_says(steps: list[tuple[int, str]], limit: int, subject: InMemory) -> None:
    windows: dict[str, list[float]] = {}
    for seconds, key in steps:
        subject.now += seconds
        calls = windows.get(key, [])
        if not calls or subject.now >= calls[0] + 3600:
            calls = []
        quota = await subject.limiter.hit(key, limit)
        assert quota.admitted == (len(calls) < limit)
        if quota.admitted:
            calls.append(subject.now)
        windows[key] = calls
        assert quota.remaining == limit - len(calls)
        assert quota.reset == calls[0] + 3600 - subject.now
        wanted = {
            name: Used(len(calls), calls[0] + 3600 - subject.now)
            for name, calls in windows.items()
            if subject.now < calls[0] + 3600
        }
        assert await subject.limiter.peek("abc") == wanted
    await subject.aclose()


async def test_windows_that_ended_take_no_memory() -> None:
    subject = InMemory()
    assert isinstance(subject.limiter, MemoryLimiter)
    for number in range(1_000):
        await subject.limiter.hit(str(number), 5)
    await subject.passes(3_600)
    await subject.limiter.hit("later", 5)
    assert len(subject.limiter._windows) == 1


@pytest.mark.parametrize("url", ["mysql://user:hunter2@x", "redis:x", ""])
def test_a_limiter_that_is_not_there_is_refused_in_a_sentence(url: str) -> None:
    with pytest.raises(ValueError, match="is not possible; use memory: or redis://") as raised:
        open_limiter(url, Heard())
    assert "hunter2" not in str(raised.value)


def test_a_place_is_told_without_what_opens_it() -> None:
    assert place_of("memory:") == "memory:"
    assert place_of("rediss://user:hunter2@cache.example:6380/2") == "rediss://cache.example:6380/2"
