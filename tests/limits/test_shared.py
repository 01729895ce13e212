"""The counters that the processes of one machine share: exact, whoever ends or stops when."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from gateway.limits.base import Degrading, LimiterDown, LimiterFull
from gateway.limits.shared import SLOTS, Counters
from tests.heard import Heard

# A parent that makes the counters and forks: in a program of its own, as the tests have threads.
POOL = """
import asyncio, json, os, random, signal, sys, time
from gateway.limits.base import LimiterDown
from gateway.limits.shared import Counters

counters = Counters()
limiter = counters
told, tells = os.pipe()

def member(calls):
    process = os.fork()
    if process:
        return process
    async def work():
        while calls is None or calls > 0:
            for quota in await asyncio.gather(*(limiter.hit("k", 1000) for _ in range(5))):
                os.write(tells, b"1" if quota.admitted else b"0")
            if calls is not None:
                work.left -= 5
                if work.left <= 0:
                    break
    work.left = calls
    asyncio.run(work())
    os._exit(0)
"""
EXACT = (
    POOL
    + """
for process in [member(375) for _ in range(4)]:
    assert os.waitpid(process, 0)[1] == 0
os.close(tells)
print(json.dumps({"admitted": (found := os.read(told, 65536)).count(b"1"), "all": len(found)}))
"""
)
KILLED = (
    POOL
    + """
members = [member(None) for _ in range(4)]
os.set_blocking(told, False)
found, kills, quiet = b"", 0, 0
while quiet < 3:
    time.sleep(random.uniform(0.0002, 0.002))
    try:
        new = os.read(told, 1 << 20)
    except BlockingIOError:
        new = b""
    found += new
    quiet = quiet + 1 if new and b"1" not in new else 0
    killed = members.pop(random.randrange(4))
    os.kill(killed, signal.SIGKILL)
    os.waitpid(killed, 0)
    kills += 1
    members.append(member(None))
for each in members:
    os.kill(each, signal.SIGKILL)
    os.waitpid(each, 0)
os.set_blocking(told, True)
os.close(tells)
while new := os.read(told, 1 << 20):
    found += new
again = asyncio.run(limiter.hit("k", 1000))
print(json.dumps({"admitted": found.count(b"1"), "kills": kills + 4, "again": again.admitted}))
"""
)
STOPPED = (
    POOL
    + """
async def timed(key):
    began = time.monotonic()
    try:
        quota = await limiter.hit(key, 1000)
    except LimiterDown as error:
        return [round(time.monotonic() - began, 3), str(error)]
    return [round(time.monotonic() - began, 3), quota.remaining]

process = os.fork()
if not process:
    assert counters.lock(counters.place("k")[0])
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
os.waitpid(process, os.WUNTRACED)
said = [asyncio.run(timed(key)) for key in ("k", "another", "k")]
os.kill(process, signal.SIGKILL)
os.waitpid(process, 0)
said.append(asyncio.run(timed("k")))
print(json.dumps(said))
"""
)


def run(program: str) -> Any:
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_four_processes_admit_exactly_the_limit() -> None:
    assert run(EXACT) == {"admitted": 1000, "all": 1500}


def test_whoever_is_killed_when_no_more_than_the_limit_is_admitted() -> None:
    told = run(KILLED)
    assert told["kills"] >= 6
    # those that were killed may have counted calls of which they did not tell
    assert 1000 - 5 * told["kills"] <= told["admitted"] <= 1000
    assert not told["again"]


def test_who_stops_while_it_writes_holds_up_nobody_for_long() -> None:
    said = run(STOPPED)
    for seconds, why in (said[0], said[2]):
        assert 0.04 < seconds < 0.2
        assert "does not let go" in why
    assert said[1][1] == 999
    assert said[3][1] == 999
    assert said[3][0] < 0.04


async def test_a_full_bucket_is_told_and_its_keys_counted_on() -> None:
    counters, watcher = Counters(buckets=1), Heard()
    limiter = Degrading(counters, 4, watcher)
    for number in range(SLOTS):
        assert (await limiter.hit(str(number), 8)).remaining == 7
    for _ in range(20):
        more = await limiter.hit("more", 8)
    assert not more.admitted
    assert (await limiter.hit("0", 8)).remaining == 6
    assert watcher.said == ["limiter_full: there are more keys than its table has room for"]
    assert watcher.counted["counted_here"] == 20
    assert not limiter.degraded
    counters.close()


async def test_places_of_windows_that_ended_are_taken_again() -> None:
    counters, now = Counters(buckets=1), 1
    for turn in range(5):
        for number in range(SLOTS):
            quota = counters.try_hit(f"{turn}-{number}", 5, now)
            assert quota is not None
            assert quota.remaining == 4
        with pytest.raises(LimiterFull):
            counters.try_hit("more", 5, now)
        now += 3_600 * 1_000_000_000
    counters.close()


async def test_a_process_that_ended_half_way_left_a_table_that_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Torn(Exception):
        pass

    class Words:
        """Ends the process, as it were, before the n-th write."""

        def __init__(self, words: Any, writes: int) -> None:
            self._words, self._writes = words, writes

        def __getitem__(self, at: int) -> int:
            return int(self._words[at])

        def __setitem__(self, at: int, value: int) -> None:
            if not self._writes:
                raise Torn
            self._writes -= 1
            self._words[at] = value

    for writes in range(6):
        counters = Counters(buckets=1)
        counters.try_hit("old", 5, 1)
        now = 2 * 3_600 * 1_000_000_000
        with monkeypatch.context() as patched:
            patched.setattr(counters, "_words", Words(counters._words, writes))
            try:
                counters.try_hit("k", 5, now)
            except Torn:
                counted = 0
            else:
                counted = 1
        quota = counters.try_hit("k", 5, now)
        assert quota is not None
        assert quota.remaining == 4 - counted
        assert quota.reset == 3600
        other = counters.try_hit("old", 5, now)
        assert other is not None
        assert other.remaining == 4
        counters.close()


async def test_a_hit_costs_microseconds() -> None:
    import time

    counters = Counters()
    limiter = counters
    began = time.process_time()
    for _ in range(10_000):
        await limiter.hit("k", 1_000_000)
    assert time.process_time() - began < 0.5  # 50 us each; about 3 on an idle machine
    counters.close()


async def test_what_is_held_by_another_for_long_is_down() -> None:
    class Held(Counters):
        def try_hit(self, key_id: str, limit: int, now: int) -> None:
            return None

    counters = Held(buckets=1)
    limiter = counters
    ends = await asyncio.gather(*(limiter.hit("k", 5) for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in ends] == [LimiterDown] * 3
    counters.close()
