"""Every limiter: a fixed window of an hour from the first counted call, exact under concurrency."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.limits import open_limiter
from gateway.limits.base import Limiter, Quota
from gateway.limits.memory import MemoryLimiter


class Clock:
    """Seconds that stand still until a test moves them."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


LIMITERS: list[Callable[[Clock], Limiter]] = [MemoryLimiter]


@pytest.mark.parametrize("make", LIMITERS)
async def test_exactly_the_limit_is_admitted_whoever_asks_at_once(
    make: Callable[[Clock], Limiter],
) -> None:
    limiter = make(Clock())
    quotas = await asyncio.gather(*(limiter.hit("k", 1_000) for _ in range(1_500)))
    admitted = [quota for quota in quotas if quota.admitted]
    assert len(admitted) == 1_000
    assert sorted(quota.remaining for quota in admitted) == list(range(1_000))


@pytest.mark.parametrize("make", LIMITERS)
async def test_the_window_begins_with_the_first_call_and_ends_an_hour_later(
    make: Callable[[Clock], Limiter],
) -> None:
    clock = Clock()
    limiter = make(clock)
    assert await limiter.hit("k", 2) == Quota(2, 1, 3600, admitted=True)
    clock.now += 1_800.5
    assert await limiter.hit("k", 2) == Quota(2, 0, 1800, admitted=True)
    clock.now += 1_799.4
    assert await limiter.hit("k", 2) == Quota(2, 0, 1, admitted=False)
    clock.now += 0.1
    assert await limiter.hit("k", 2) == Quota(2, 1, 3600, admitted=True)


@pytest.mark.parametrize("make", LIMITERS)
async def test_a_denied_call_does_not_count_and_a_changed_limit_holds_at_once(
    make: Callable[[Clock], Limiter],
) -> None:
    limiter = make(Clock())
    await limiter.hit("k", 1)
    for _ in range(5):
        assert not (await limiter.hit("k", 1)).admitted
    assert (await limiter.hit("k", 3)).remaining == 1
    assert not (await limiter.hit("k", 2)).admitted


@pytest.mark.parametrize("make", LIMITERS)
async def test_one_key_does_not_use_up_another(make: Callable[[Clock], Limiter]) -> None:
    limiter = make(Clock())
    await limiter.hit("a", 1)
    assert (await limiter.hit("b", 1)).admitted


@given(
    steps=st.lists(st.tuples(st.integers(0, 2_000), st.sampled_from("ab")), max_size=40),
    limit=st.integers(1, 4),
)
def test_it_does_what_a_plain_list_of_admitted_calls_says(
    steps: list[tuple[int, str]], limit: int
) -> None:
    clock = Clock()
    limiter = MemoryLimiter(clock)
    windows: dict[str, list[float]] = {}
    for seconds, key in steps:
        clock.now += seconds
        calls = windows.get(key, [])
        if not calls or clock.now >= calls[0] + 3600:
            calls = []
        quota = asyncio.run(limiter.hit(key, limit))
        assert quota.admitted == (len(calls) < limit)
        if quota.admitted:
            calls.append(clock.now)
        windows[key] = calls
        assert quota.remaining == limit - len(calls)
        assert quota.reset == calls[0] + 3600 - clock.now


async def test_windows_that_ended_take_no_memory() -> None:
    clock = Clock()
    limiter = MemoryLimiter(clock)
    for number in range(1_000):
        await limiter.hit(str(number), 5)
    clock.now += 3_600
    await limiter.hit("later", 5)
    assert len(limiter._windows) == 1


def test_a_limiter_that_is_not_there_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="redis://x is not possible so far; use memory:"):
        open_limiter("redis://x")
