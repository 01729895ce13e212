"""A storm: many partners book, retry and give up, while the gateway's processes are struck."""

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta

import aiohttp

from tests.chaos.history import LOST, STICK, Attempt, Wish
from tests.chaos.strikes import Strikes
from tests.processes.gateways import Several
from tests.races.practice import TYPES, VETS, ZONE, starts_of

# Seconds that a partner waits for an answer; then it is lost to it.
PATIENCE = 12.0
# So often a partner asks for one wish at the most, while the storm lasts.
TRIES = 6
# The kind of a wish without a type, which lasts as both mappings say.
UNTYPED, DEFAULT = 0, 30
# Seconds that everything has to be settled after the storm.
CALM = 90.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How hard the storm blows: attempts and kills of workers at least, with so many partners.

    `twice` is how many of those who have a key ask twice at a time.
    """

    attempts: int
    kills: int
    partners: int
    seed: int
    workers: int = 4
    twice: float = 0.15


@dataclass
class Storm:
    """One storm over one practice; `several` is the gateway that stands in it."""

    several: Several
    secrets: Sequence[str]
    ids: dict[tuple[str, int], str]
    plan: Plan
    days: Sequence[date]
    strikes: Strikes
    attempts: list[Attempt] = field(default_factory=list)
    _wishes: int = 0

    async def blow(self, *, settles: bool = True) -> None:
        """Until there were enough of both; then wishes with a key are asked for until settled."""
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=PATIENCE)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            over = asyncio.Event()
            chance = random.Random(self.plan.seed)
            async with asyncio.TaskGroup() as going:
                for _ in range(self.plan.partners):
                    partner = self._partner(session, random.Random(chance.random()), over)
                    going.create_task(partner)
                if self.plan.kills:
                    going.create_task(self.strikes.go_on(over))
            if settles:
                await self._settle(session)

    def _is_enough(self) -> bool:
        enough = len(self.attempts) >= self.plan.attempts
        return enough and self.strikes.kills >= self.plan.kills

    async def _partner(
        self, session: aiohttp.ClientSession, chance: random.Random, over: asyncio.Event
    ) -> None:
        while not over.is_set():
            wish = self._wish(chance)
            for _ in range(TRIES):
                times = 2 if chance.random() < self.plan.twice else 1
                attempt = await self._ask_at_once(session, wish, times)
                if self._is_enough():
                    over.set()
                done = attempt.status in STICK
                if done or chance.random() < 0.1:  # some just give up
                    break
                await asyncio.sleep(chance.uniform(0.02, 0.4))
            if wish.key is not None and chance.random() < 0.1:  # and some ask once more
                await self._ask_at_once(session, wish, 2)

    async def _ask_at_once(self, session: aiohttp.ClientSession, wish: Wish, times: int) -> Attempt:
        """The last of the answers; only one with a key may be asked for twice at a time."""
        asked = [self._ask(session, wish) for _ in range(times if wish.key else 1)]
        return (await asyncio.gather(*asked))[-1]

    def _wish(self, chance: random.Random) -> Wish:
        """Most want what others want too: those that come at one time crowd into a few days."""
        self._wishes += 1
        share = len(self.attempts) / max(self.plan.attempts, 1)
        day = self.days[min(int(share * len(self.days)), len(self.days) - 1)]
        kind = chance.choice([*TYPES, UNTYPED])
        start = chance.choice([*starts_of(day)][:-3])
        key = f"wish-{self._wishes}" if chance.random() < 0.6 else None
        return Wish(
            note=f"{kind} {self._wishes}",
            vet=chance.choice(VETS),
            start=start,
            end=start + timedelta(minutes=TYPES.get(kind, DEFAULT)),
            key=key,
        )

    async def _ask(self, session: aiohttp.ClientSession, wish: Wish) -> Attempt:
        number = int(wish.note.split()[1])
        headers = {"X-API-Key": self.secrets[number % len(self.secrets)]}
        if wish.key is not None:
            headers["Idempotency-Key"] = wish.key
        body = {
            "clientId": self.ids["clients", 1],
            "patientId": self.ids["patients", 1],
            "vetId": self.ids["vets", wish.vet],
            "scheduledAt": wish.start.replace(tzinfo=ZONE).isoformat(),
            "reason": wish.note,
        }
        kind = int(wish.note.split()[0])
        if kind != UNTYPED:
            body["appointmentTypeId"] = self.ids["appointmentTypes", kind]
        url = f"http://127.0.0.1:{self.several.port}/api/v1/appointments"
        status: int | None = LOST
        told, replayed, sent = b"", False, time.monotonic()
        with suppress(aiohttp.ClientError, TimeoutError, ConnectionError):
            async with session.post(url, json=body, headers=headers) as answer:
                told = await answer.read()
                status, replayed = answer.status, "Idempotent-Replayed" in answer.headers
        attempt = Attempt(
            wish=wish, sent=sent, ended=time.monotonic(), status=status, body=told,
            replayed=replayed,
        )  # fmt: skip
        self.attempts.append(attempt)
        return attempt

    async def _settle(self, session: aiohttp.ClientSession) -> None:
        """In the calm every wish with a key gets an answer that stays."""
        until = time.monotonic() + CALM
        settled = {each.wish.key for each in self.attempts if each.status in STICK}
        open_ones = {
            each.wish.key: each.wish
            for each in self.attempts
            if each.wish.key is not None and each.wish.key not in settled
        }
        while open_ones and time.monotonic() < until:
            asked = list(open_ones.values())[:8]
            for attempt in await asyncio.gather(*(self._ask(session, each) for each in asked)):
                if attempt.status in STICK:
                    open_ones.pop(attempt.wish.key, None)
            await asyncio.sleep(0.2)
        assert not open_ones, f"{len(open_ones)} wishes are not settled: {[*open_ones][:5]}"
