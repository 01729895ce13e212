"""The limiter of several machines: in Redis or Valkey, in one step that says what is left.

Redis keeps the time of the windows by its own clock. Whatever it forgets (a restart, a failover)
begins a new window.
"""

import asyncio
from collections.abc import Sequence
from math import ceil
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    ConnectionError,  # noqa: A004 - the driver's name of it
    NoPermissionError,
    NoScriptError,
    RedisError,
)

from gateway.limits.base import PATIENCE, TRIAL, WINDOW, LimiterDown, Quota

# The number is the version of what lies under the name.
PREFIX = "clinic-gateway:limit:1:"
AT_ONCE = 200  # calls in one message
# Seconds after which a connection that says nothing is given up; nobody waits for as long.
SILENCE = 1.0
# Seconds by which this process itself may be late, and for which an answer is then looked for.
LATE, GRACE = 0.005, 0.025

# KEYS: the key's counter. ARGV: its limit, the window in milliseconds.
# Gives whether the call is admitted, the calls admitted in the window, milliseconds to its end.
# A counter without an end, or with one too far off (the server's clock was set back), is put right.
STEP = """
local used = tonumber(redis.call('GET', KEYS[1]) or '0') or 0
local left = redis.call('PTTL', KEYS[1])
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
if left <= 0 then
  used, left = 0, window
  redis.call('SET', KEYS[1], 0, 'PX', window)
elseif left > window then
  left = window
  redis.call('PEXPIRE', KEYS[1], window)
end
if used >= limit then return {0, used, left} end
redis.call('INCR', KEYS[1])
return {1, used + 1, left}
"""


class RedisLimiter:
    """One message and one answer for all calls that come while another message is under way.

    So one connection is enough, however many calls come at once. LimiterDown after `patience`
    seconds.
    """

    degraded = False

    def __init__(self, url: str, prefix: str = PREFIX, patience: float = PATIENCE) -> None:
        self._prefix = prefix
        self._patience = patience
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=1,
            timeout=SILENCE,
            socket_connect_timeout=SILENCE,
            socket_timeout=SILENCE,
            retry=Retry(NoBackoff(), 0),
        )
        self._client = Redis.from_pool(pool)
        self._step = self._client.register_script(STEP).sha
        self._waiting: list[_Call] = []
        self._asking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect; LimiterDown."""
        await self.hit(TRIAL, 1)

    async def hit(self, key_id: str, limit: int) -> Quota:
        """Count one call. One whose answer comes too late may be counted in Redis all the same."""
        call = _Call(self._prefix + key_id, limit)
        self._waiting.append(call)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(), name="ask the limiter")
        return await _in_time(call.quota, self._patience)

    async def aclose(self) -> None:
        """End what is still asked, and close the connection."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait((self._asking,))
        await self._client.aclose()

    async def _ask(self) -> None:
        try:
            while self._waiting:
                calls, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                # whoever has given up is counted elsewhere
                await self._ask_for([each for each in calls if not each.quota.done()])
        finally:
            self._asking = None

    async def _ask_for(self, calls: Sequence["_Call"]) -> None:
        try:
            answers = await self._answered(calls)
        except (RedisError, OSError) as error:
            answers = [error] * len(calls)
        for call, answer in zip(calls, answers, strict=True):
            call.tell(answer)

    async def _answered(self, calls: Sequence["_Call"]) -> list[Any]:
        try:
            return await self._answers(calls)
        except ConnectionError:
            # it may have closed this connection long ago; at worst these calls count twice
            return await self._answers(calls)

    async def _answers(self, calls: Sequence["_Call"]) -> list[Any]:
        async with self._client.pipeline(transaction=False) as messages:
            for each in calls:
                messages.evalsha(self._step, 1, each.key, *each.numbers)
            answers: list[Any] = await messages.execute(raise_on_error=False)
        if any(isinstance(each, NoScriptError) for each in answers):
            # a Redis that has forgotten the step did not take one: now it knows it
            await self._client.script_load(STEP)
            return await self._answers(calls)
        return answers


class _Call:
    """A call that waits for its quota."""

    __slots__ = ("key", "limit", "numbers", "quota")

    def __init__(self, key: str, limit: int) -> None:
        self.key = key
        self.limit = limit
        self.numbers = (str(limit), str(WINDOW * 1000))
        self.quota: asyncio.Future[Quota] = asyncio.get_running_loop().create_future()

    def tell(self, answer: Any) -> None:
        """What Redis said: whoever asked has perhaps given up."""
        if self.quota.done():
            return
        if isinstance(answer, Exception):
            self.quota.set_exception(LimiterDown(_why(answer)))
            self.quota.exception()
            return
        admitted, used, left = answer
        reset = min(max(ceil(left / 1000), 1), WINDOW)
        remaining = max(self.limit - used, 0)
        self.quota.set_result(Quota(self.limit, remaining, reset, admitted=bool(admitted)))


async def _in_time(quota: asyncio.Future[Quota], patience: float) -> Quota:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.wait((quota,), timeout=patience)
    if not quota.done() and loop.time() - began > patience + LATE:
        # it was this process that was busy: the answer may lie there unread
        await asyncio.wait((quota,), timeout=GRACE)
    if not quota.done():
        quota.cancel()
        raise LimiterDown("it does not answer in time")
    return quota.result()


def _why(error: Exception) -> str:
    if isinstance(error, AuthenticationError | NoPermissionError):
        return "it refuses the user or the password"
    # its own words may quote what opens it
    return f"it cannot be used ({type(error).__name__})"
