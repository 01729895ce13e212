"""The limiter of several machines: in Redis or Valkey, in one step that says what is left.

Redis measures the windows by its own clock. Whatever it forgets (a restart, a failover) begins a
new window.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.commands.core import AsyncScript

from gateway.limits import base

# The number is the version of what is stored under the name.
PREFIX = "clinic-gateway:limit:1:"
AT_ONCE = 200  # calls in one message
PEEKED_AT_ONCE = 500  # keys in one step of a peek
# Seconds after which a silent connection is given up; no call waits for as long.
SILENCE = 1.0
# Seconds by which this process itself may be late, and for which it then still waits.
LATE, GRACE = 0.005, 0.025

_WINDOW = str(base.WINDOW * 1000)
_FOLDER = Path(__file__).parent
_Given = tuple[Sequence[str], Sequence[str]]
STEP, LOOK = ((_FOLDER / name).read_text("utf-8") for name in ("step.lua", "look.lua"))


class RedisLimiter(base.Limiter):
    """A limiter with one connection: calls that come while it is asking go in the next message."""

    def __init__(self, url: str, prefix: str = PREFIX, patience: float = base.PATIENCE) -> None:
        self._prefix = prefix
        self._patience = patience
        self._client = _client(url)
        self._step = self._client.register_script(STEP)
        # a client of its own, as calls would wait behind a peek; it connects with the first one
        self._onlooker = _client(url)
        self._look = self._onlooker.register_script(LOOK)
        self._waiting: list[_Call] = []
        self._asking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connects to Redis; raises LimiterDown where that fails."""
        await self.hit(base.TRIAL, 1)

    async def hit(self, key_id: str, limit: int) -> base.Quota:
        """Counts one call; one whose answer comes too late may be counted in Redis all the same."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[base.Quota] = loop.create_future()
        self._waiting.append(_Call(self._prefix + key_id, limit, answer))
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(), name="ask the limiter")
        began = loop.time()
        await asyncio.wait((answer,), timeout=self._patience)
        if not answer.done() and loop.time() - began > self._patience + LATE:
            # this process was busy: the answer may have come and not be read
            await asyncio.wait((answer,), timeout=GRACE)
        if not answer.done():
            answer.cancel()
            raise base.LimiterDown("it does not answer in time")
        return answer.result()

    async def peek(self, key_ids: Sequence[str]) -> Mapping[str, base.Used]:
        """Returns what the keys have used, by one message and one answer for all."""
        names = [self._prefix + key_id for key_id in key_ids]
        starts = range(0, len(names), PEEKED_AT_ONCE)
        given = [(names[start : start + PEEKED_AT_ONCE], (_WINDOW,)) for start in starts]
        try:
            answers = await _run(self._onlooker, self._look, given)
            for answer in answers:
                if isinstance(answer, Exception):
                    raise answer
        except (exceptions.RedisError, OSError) as error:
            raise base.LimiterDown(_why(error)) from error
        counters = (counter for answer in answers for counter in answer.decode().split(","))
        used = {}
        for key_id, counter in zip(key_ids, counters, strict=True):
            if counter:
                calls, left = counter.split()
                used[key_id] = base.Used(int(calls), base.whole_seconds(int(left) / 1000))
        return used

    async def aclose(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait((self._asking,))
        await self._client.aclose()
        await self._onlooker.aclose()

    async def _ask(self) -> None:
        try:
            while self._waiting:
                calls, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                # a call that has given up is counted elsewhere
                calls = [call for call in calls if not call.quota.done()]
                given = [((call.key,), (str(call.limit), _WINDOW)) for call in calls]
                try:
                    answers = await _run(self._client, self._step, given)
                except (exceptions.RedisError, OSError) as error:
                    answers = [error] * len(calls)
                for call, answer in zip(calls, answers, strict=True):
                    call.tell(answer)
        finally:
            self._asking = None


class _Call(NamedTuple):
    """A call that waits for its quota."""

    key: str
    limit: int
    quota: asyncio.Future[base.Quota]

    def tell(self, answer: Any) -> None:
        """Hands on what Redis said, unless the caller has given up."""
        if self.quota.done():
            return
        if isinstance(answer, Exception):
            self.quota.set_exception(base.LimiterDown(_why(answer)))
            self.quota.exception()
            return
        admitted, used, left = answer
        remaining, reset = max(self.limit - used, 0), base.whole_seconds(left / 1000)
        self.quota.set_result(base.Quota(self.limit, remaining, reset, admitted=bool(admitted)))


async def _run(
    client: Redis, script: AsyncScript, given: Iterable[_Given], *, again: bool = True
) -> list[Any]:
    """Returns the script's answers for each keys and arguments, by one message for all."""
    try:
        async with client.pipeline(transaction=False) as messages:
            for keys, arguments in given:
                messages.evalsha(script.sha, len(keys), *keys, *arguments)
            answers: list[Any] = await messages.execute(raise_on_error=False)
    except exceptions.ConnectionError:
        # the server may have closed the connection long ago; at worst these calls count twice
        if again:
            return await _run(client, script, given, again=False)
        raise
    if any(isinstance(answer, exceptions.NoScriptError) for answer in answers):
        # a Redis that has forgotten the script did not run it: teach it, and run it again
        await client.script_load(script.script)
        return await _run(client, script, given)
    return answers


def _why(error: Exception) -> str:
    if isinstance(error, exceptions.AuthenticationError | exceptions.NoPermissionError):
        return "it refuses the user or the password"
    # the library's words may quote the password
    return f"it cannot be used ({type(error).__name__})"


def _client(url: str) -> Redis:
    """Returns a client with one connection, which is made when it is first needed."""
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=1,
        timeout=SILENCE,
        socket_connect_timeout=SILENCE,
        socket_timeout=SILENCE,
        retry=Retry(NoBackoff(), 0),
    )
    return Redis.from_pool(pool)
