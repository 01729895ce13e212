"""A whole storm over one practice system: the gateway before it, the partners, and what is left."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from gateway.contract.access import AccessLevel, Permission
from gateway.keys.key import Key
from gateway.keys.store import KeyStore
from gateway.settings import load_settings
from gateway.state import open_own_store
from tests.chaos.aftermath import Aftermath, at_rest, audited, errors, held, longest_unknown
from tests.chaos.grounds import Ground
from tests.chaos.history import faults
from tests.chaos.storm import Plan, Storm
from tests.chaos.strikes import Strikes
from tests.processes.gateways import Several, eventually
from tests.races.practice import SECRET
from tests.races.rush import public_ids

CONFIGURATION = f"""\
listen: 127.0.0.1:0
operations_listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
state: .
shutdown_delay: 0
limiter: "memory:"
backend:
  mapping: practice.yaml
  secret: {SECRET}
"""
KEYS = 5


@dataclass(frozen=True)
class Weather:
    """One storm and what it left, after so many seconds."""

    storm: Storm
    left: Aftermath
    took: float

    def faults(self) -> list[str]:
        """All that must not have happened."""
        found = faults(self.storm.attempts, [*self.left.rows], self.left.strays)
        return [*found, *self.left.faults()]

    @property
    def answers(self) -> Counter[int | None]:
        """How often each status was answered."""
        return Counter(each.status for each in self.storm.attempts)

    def __str__(self) -> str:
        told = ", ".join(f"{n} x {each or 'lost'}" for each, n in self.answers.most_common())
        slow = max(
            (each.ended - each.sent for each in self.storm.attempts if each.status), default=0
        )
        strikes = self.storm.strikes
        made = ", ".join(f"{n} {each}" for each, n in strikes.made.items())
        return (
            f"  {len(self.storm.attempts)} attempts in {self.took:.0f} s: {told}\n"
            f"  the slowest call took {slow:.1f} s\n"
            f"  {strikes.kills} kills of workers, of {made}\n{self.left}"
        )


async def weather(
    ground: Ground, folder: Path, plan: Plan, days: Sequence[date], *,
    spoilt: str = "", settles: bool = True, rests: bool = False,
) -> Weather:  # fmt: skip
    """Let it blow, and look at what is left.

    Where it `settles`, wishes with a key get their answers first; where it `rests`, nothing is
    under way or unknown any more.
    """
    began = time.monotonic()
    secrets = await prepared(ground, folder)
    ids = await public_ids(ground, folder)
    with Several(folder, lines=(f"workers: {plan.workers}",), spoilt=spoilt) as several:
        await asyncio.to_thread(eventually, lambda: len(several.workers()) == plan.workers)
        before = held(several)
        storm = Storm(several, secrets, ids, plan, days, Strikes(several, plan.seed + 1))
        over = asyncio.Event()
        watching = asyncio.create_task(longest_unknown(several, over))
        await storm.blow(settles=settles)
        ledger, quiet_after = await at_rest(several, plan.workers) if rests else ({}, None)
        over.set()
        longest = await watching
        after = held(several)
    audit, sound = audited(several)
    rows, strays = await ground.left()
    left = Aftermath(
        rows=rows, strays=strays, said=Counter(each["event"] for each in several.said()),
        errors=errors(several), ledger=ledger, quiet_after=quiet_after,
        longest_unknown=longest, before=before, after=after,
        audit=audit, sound=sound,
    )  # fmt: skip
    return Weather(storm, left, time.monotonic() - began)


async def prepared(ground: Ground, folder: Path) -> list[str]:
    """A state folder with its configuration and some partners' keys; their secrets."""
    folder.mkdir(mode=0o700, exist_ok=True)  # noqa: ASYNC240 - nothing runs beside it
    (folder / "practice.yaml").write_text(ground.mapping)
    text = CONFIGURATION + "".join(f"  {name}: {each}\n" for name, each in ground.backend.items())
    if ground.store is not None:
        text = f"store: {ground.store}\n{text}"
    (folder / "gateway.yaml").write_text(text)
    own = open_own_store(load_settings(folder / "gateway.yaml", {}))
    await own.migrate()
    secrets = []
    for number in range(KEYS):
        key = Key(
            name=f"partner {number}",
            permissions=frozenset([Permission("APPOINTMENT_CREATE")]),
            level=AccessLevel("FULL"),
            created_at=datetime.now(UTC),
            limit=1_000_000,
        )
        secrets.append(await KeyStore(own).add(key))
    await own.aclose()
    return secrets
