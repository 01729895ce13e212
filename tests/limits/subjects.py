"""Every limiter, each with a way to let time pass."""

from typing import Protocol
from uuid import uuid4

from redis.asyncio import Redis

from gateway.limits.base import Degrading, Limiter, MemoryLimiter
from gateway.limits.redis import RedisLimiter
from gateway.limits.shared import Counters
from tests.heard import Heard
from tests.redis_server import shared_redis

# Seconds: what a test of counting waits for on a machine that does other things too.
PATIENT = 10.0


class Subject(Protocol):
    """A limiter, and its time."""

    limiter: Limiter

    async def passes(self, seconds: float) -> None: ...

    async def aclose(self) -> None: ...


class InMemory:
    """The limiter of one process."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.limiter: Limiter = self.made()

    def made(self) -> Limiter:
        return MemoryLimiter(lambda: self.now)

    async def passes(self, seconds: float) -> None:
        self.now += seconds

    async def aclose(self) -> None:
        await self.limiter.aclose()


class Shared(InMemory):
    """The limiter of the processes of one machine, guarded as it is in a gateway."""

    def made(self) -> Limiter:
        self.counters = Counters(buckets=8, clock=lambda: round(self.now * 1e9))
        self.watcher = Heard()
        return Degrading(self.counters, 4, self.watcher)

    async def aclose(self) -> None:
        await super().aclose()
        self.counters.close()
        assert self.watcher.said == []


class InRedis:
    """The limiter of many machines; time passes as Redis would see it."""

    def __init__(self) -> None:
        url = shared_redis()
        self.prefix = f"test-{uuid4().hex}:"
        self.watcher = Heard()
        self.limiter: Limiter = Degrading(RedisLimiter(url, self.prefix, PATIENT), 4, self.watcher)
        self.client = Redis.from_url(url)

    async def passes(self, seconds: float) -> None:
        async for key in self.client.scan_iter(f"{self.prefix}*"):
            left = await self.client.pttl(key) - round(seconds * 1000)
            await self.client.pexpire(key, left)

    async def aclose(self) -> None:
        async for key in self.client.scan_iter(f"{self.prefix}*"):
            await self.client.delete(key)
        await self.client.aclose()
        await self.limiter.aclose()
        assert self.watcher.said == []


SUBJECTS = {"memory": InMemory, "shared": Shared, "redis": InRedis}
