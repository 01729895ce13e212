"""A storm: many partners book, retry and give up, while the gateway's processes are struck."""

import asyncio
import json
import os
import random
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp

from gateway.contract.access import AccessLevel, Permission
from gateway.keys.store import KeyStore, new_key
from gateway.settings import load_settings
from gateway.state import open_own_store
from tests.chaos.history import LOST, STICK, Attempt, Row, Wish
from tests.processes.gateways import Several
from tests.races.practice import SECRET, TYPES, VETS, ZONE, Practice, starts_of
from tests.races.rush import public_ids

CONFIGURATION = f"""\
listen: 127.0.0.1:0
operations_listen: 127.0.0.1:0
state: .
shutdown_delay: 0
limiter: "memory:"
backend:
  mapping: practice.yaml
  secret: {SECRET}
  url: {{practice}}
"""
# Seconds that a partner waits for an answer; then it is lost to it.
PATIENCE = 12.0
# So often a partner asks for one wish at the most, while the storm lasts.
TRIES = 6
# Seconds that everything has to be settled after the storm.
CALM = 90.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How hard the storm blows: attempts and strikes at least, with so many partners at once."""

    attempts: int
    strikes: int
    partners: int
    seed: int


@dataclass
class Storm:
    """One storm over one practice; `several` is the gateway that stands in it."""

    several: Several
    secrets: Sequence[str]
    ids: dict[tuple[str, int], str]
    plan: Plan
    days: Sequence[date]
    attempts: list[Attempt] = field(default_factory=list)
    struck: dict[str, int] = field(default_factory=dict)
    _wishes: int = 0

    async def blow(self) -> None:
        """Until there were enough of both; then wishes with a key are asked for until settled."""
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=PATIENCE)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            over = asyncio.Event()
            striking = asyncio.create_task(self._strike(over))
            chance = random.Random(self.plan.seed)
            partners = [
                self._partner(session, random.Random(chance.random()), over)
                for _ in range(self.plan.partners)
            ]
            await asyncio.gather(*partners)
            await striking
            await self._settle(session)

    def _is_enough(self) -> bool:
        enough = len(self.attempts) >= self.plan.attempts
        return enough and sum(self.struck.values()) >= self.plan.strikes

    async def _partner(
        self, session: aiohttp.ClientSession, chance: random.Random, over: asyncio.Event
    ) -> None:
        while not over.is_set():
            wish = self._wish(chance)
            for _ in range(TRIES):
                attempt = await self._ask_at_once(session, wish, 2 if chance.random() < 0.15 else 1)
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
        kind = chance.choice(list(TYPES))
        start = chance.choice([*starts_of(day)][:-3])
        key = f"wish-{self._wishes}" if chance.random() < 0.6 else None
        return Wish(
            note=f"{kind} {self._wishes}",
            vet=chance.choice(VETS),
            start=start,
            end=start + timedelta(minutes=TYPES[kind]),
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
            "appointmentTypeId": self.ids["appointmentTypes", int(wish.note.split()[0])],
            "scheduledAt": wish.start.replace(tzinfo=ZONE).isoformat(),
            "reason": wish.note,
        }
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

    async def _strike(self, over: asyncio.Event) -> None:
        """One process after the other is killed, stopped for a while, ended or replaced."""
        chance = random.Random(self.plan.seed + 1)
        while not over.is_set():
            await asyncio.sleep(chance.uniform(0.3, 1.2))
            if sum(self.struck.values()) < self.plan.strikes:
                await self._strike_once(chance)
            if self._is_enough():
                over.set()

    async def _strike_once(self, chance: random.Random) -> None:
        pids = sorted(self.several.children())
        if not pids:
            return
        pid = chance.choice(pids)
        kind = chance.choices(("kill", "stop", "end", "roll"), (6, 2, 2, 1))[0]
        with suppress(ProcessLookupError):
            if kind == "kill":
                os.kill(pid, signal.SIGKILL)
            elif kind == "end":
                os.kill(pid, signal.SIGTERM)
            elif kind == "roll":
                self.several.process.send_signal(signal.SIGUSR2)
            else:
                os.kill(pid, signal.SIGSTOP)
                await asyncio.sleep(chance.uniform(0.2, 3.0))
                os.kill(pid, signal.SIGCONT)
            self.struck[kind] = self.struck.get(kind, 0) + 1

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
                    del open_ones[attempt.wish.key]
            await asyncio.sleep(0.2)
        assert not open_ones, f"{len(open_ones)} wishes are not settled: {[*open_ones][:5]}"


async def prepared(practice: Practice, folder: Path, *, store: str | None = None) -> list[str]:
    """A state folder with its configuration and some partners' keys; their secrets."""
    folder.mkdir(mode=0o700, exist_ok=True)  # noqa: ASYNC240 - nothing runs beside it
    (folder / "practice.yaml").write_text(practice.mapping)
    text = CONFIGURATION.format(practice=practice.url)
    if store is not None:
        text = f"store: {store}\n{text}"
    (folder / "gateway.yaml").write_text(text)
    own = open_own_store(load_settings(folder / "gateway.yaml", {}))
    await own.migrate()
    secrets = []
    for number in range(5):
        key = new_key(
            name=f"partner {number}",
            permissions=[Permission("APPOINTMENT_CREATE")],
            level=AccessLevel("FULL"),
            now=datetime.now(UTC),
            limit=1_000_000,
        )
        secrets.append(await KeyStore(own).add(key))
    await own.aclose()
    return secrets


async def left(practice: Practice) -> tuple[list[Row], int]:
    """The appointments that partners made, and how many rows belong to none."""
    appointments = await practice.run(
        "SELECT id, note, vet, starts, ends FROM appointment WHERE source = 'gateway'"
        " AND state <> 'GONE'"
    )
    attended = [number for (number,) in await practice.run("SELECT appointment FROM attendance")]
    noted = [number for (number,) in await practice.run("SELECT appointment FROM journal")]
    old = {1}
    known = {number for number, *_ in appointments} | old
    rows = [
        Row(
            note=note, vet=vet, start=_moment(starts), end=_moment(ends),
            parts=(attended.count(number), noted.count(number)),
        )
        for number, note, vet, starts, ends in appointments
    ]  # fmt: skip
    return rows, sum(number not in known for number in [*attended, *noted])


def _moment(raw: Any) -> datetime:
    return raw if isinstance(raw, datetime) else datetime.fromisoformat(raw)


async def weather(
    practice: Practice, folder: Path, plan: Plan, days: Sequence[date], *, store: str | None = None,
    spoilt: str = "", settles: bool = True,
) -> tuple[Storm, list[Row], int]:  # fmt: skip
    """A whole storm, and what is left after it."""
    secrets = await prepared(practice, folder, store=store)
    ids = await public_ids(practice, folder)
    with Several(folder, lines=("workers: 4",), spoilt=spoilt) as several:
        storm = Storm(several, secrets, ids, plan, days)
        if not settles:
            storm._settle = _nothing  # type: ignore[method-assign]
        await storm.blow()
        await asyncio.to_thread(_quiet, several)
    rows, strays = await left(practice)
    return storm, rows, strays


async def _nothing(session: aiohttp.ClientSession) -> None:
    """A spoilt gateway need not settle anything."""


def _quiet(several: Several) -> None:
    """Once all workers are there again: a roll may be under way."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with suppress(OSError, KeyError, json.JSONDecodeError):
            if len(several.workers()) >= 4:
                return
        time.sleep(0.2)
