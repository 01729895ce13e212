"""A memory in Redis or Valkey for several processes and machines: encrypted, and hardly waited for.

It holds whole records of people. So they are encrypted under a key made from the sealing secret,
and their names in Redis tell nothing of what was asked for.
"""

import asyncio
import contextlib
import os
from collections.abc import Coroutine, Sequence
from hashlib import blake2b
from typing import Any, TypeVar

from aiocache.backends.redis import RedisCache  # type: ignore[import-untyped]  # it has no types
from aiocache.serializers import NullSerializer  # type: ignore[import-untyped]  # nor here
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from adapters.base import BackendUnavailable
from adapters.call_notes import CachedAnswer
from adapters.wrappers.breaker import Breaker

T = TypeVar("T")

# The number is the version of the format: another version finds nothing of this one.
PREFIX = "clinic-gateway:cache:2"
CONNECTIONS = 10
# Seconds for which a read waits for Redis, and after which a silent connection is given up.
PATIENCE, SILENCE = 0.05, 1.0
# After so many failures in a row Redis is left alone for so many seconds.
FAILURES, PAUSE = 5, 1.0
# Seconds between two tries to drop a mark.
AGAIN = 0.2
# The seconds for which a dropped mark outlives what was kept under it.
LONGER = 60.0
_TOKEN, _NONCE = 16, 12
_NEVER_DROPPED = bytes(_TOKEN)


class RedisMemory:
    """A Memory for all with the same secret and `scope`; keeps all for `most` seconds at most."""

    def __init__(self, url: str, *, secret: bytes, scope: bytes, most: float) -> None:
        self._names = blake2b(b"cache names" + scope, key=secret, digest_size=32).digest()
        self._cipher = AESGCM(blake2b(b"cache", key=secret, digest_size=32).digest())
        self._cache = _cache(url)
        self._breaker = Breaker(FAILURES, PAUSE)
        self._most = most + LONGER
        self.hits = 0
        self._owed: set[str] = set()
        self._paying: asyncio.Task[None] | None = None
        self._asked: set[asyncio.Task[Any]] = set()

    async def look(self, key: str, mark: str) -> tuple[bytes | None, CachedAnswer | None]:
        """Asks in one message; returns nothing while a drop of the mark is owed."""
        if mark in self._owed:
            return None, None
        name, mark_name = self._name(key), self._name(mark)
        answer = await self._asking(self._cache.multi_get([mark_name, name]))
        if answer is None:
            return None, None
        version, sealed = (mark and answer[0]) or _NEVER_DROPPED, answer[1] or b""
        nonce, rest = sealed[:_NONCE], sealed[_NONCE:]
        with contextlib.suppress(InvalidTag, ValueError):
            data = self._cipher.decrypt(nonce, rest, name.encode() + version)
            self.hits += 1
            return version, CachedAnswer(data)
        return version, None

    async def keep(
        self, key: str, mark: str, version: bytes, data: bytes, seconds: float
    ) -> CachedAnswer:
        name, nonce = self._name(key), os.urandom(_NONCE)
        sealed = self._cipher.encrypt(nonce, data, name.encode() + version)
        await self._asking(self._cache.set(name, nonce + sealed, ttl=float(seconds)))
        return CachedAnswer(data)

    async def drop(self, marks: Sequence[str]) -> None:
        """Drops for all gateways; where that fails, for this process now and for all later."""
        if not await self._dropped(marks):
            self._owed.update(marks)
            if self._paying is None or self._paying.done():
                self._paying = asyncio.create_task(self._pay(), name="drop what is remembered")

    async def aclose(self) -> None:
        tasks = [*self._asked, *([self._paying] if self._paying else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Redis' client warns of the cache's own close()
        await self._cache.client.aclose()

    async def _dropped(self, marks: Sequence[str]) -> bool:
        pairs = [(self._name(mark), os.urandom(_TOKEN)) for mark in marks]
        return bool(await self._asking(self._cache.multi_set(pairs, ttl=self._most)))

    async def _pay(self) -> None:
        deadline = asyncio.get_running_loop().time() + self._most
        while asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(AGAIN)
            owed = list(self._owed)
            if await self._dropped(owed):
                self._owed.difference_update(owed)
                if not self._owed:
                    return
        # all that was kept has ended by itself
        self._owed.clear()

    def _name(self, text: str) -> str:
        return f"{PREFIX}:{blake2b(text.encode(), key=self._names, digest_size=20).hexdigest()}"

    async def _asking(self, call: Coroutine[Any, Any, T]) -> T | None:
        """Returns the answer; None where the call fails or is slow, and then goes on by itself."""
        try:
            turn = self._breaker.enter(PATIENCE)
        except BackendUnavailable:
            call.close()
            return None
        task = asyncio.get_running_loop().create_task(call)
        self._asked.add(task)
        task.add_done_callback(self._over)
        try:
            answer = await asyncio.wait_for(asyncio.shield(task), PATIENCE)
        except (RedisError, OSError):  # such as a TimeoutError
            self._breaker.failed(turn)
            return None
        except BaseException:
            self._breaker.left(turn)
            raise
        self._breaker.answered(turn)
        return answer

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._asked.discard(task)
        if not task.cancelled():
            task.exception()  # the caller may have given up


def _cache(url: str) -> Any:
    options = parse_url(url)
    return RedisCache(
        # bytes, never an object: what is read from Redis is not run
        serializer=NullSerializer(encoding=None),
        timeout=0,
        endpoint=options.get("host", "127.0.0.1"),
        port=options.get("port", 6379),
        db=options.get("db", 0),
        password=options.get("password"),
        pool_max_size=CONNECTIONS,
        create_connection_timeout=SILENCE,
        ssl="connection_class" in options,
        connection_pool_class=BlockingConnectionPool,
        connection_pool_kwargs={
            "username": options.get("username"),
            "timeout": PATIENCE,
            "socket_timeout": SILENCE,
            "retry": Retry(NoBackoff(), 0),
        },
    )
