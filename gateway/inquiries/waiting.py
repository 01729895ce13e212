"""A policy that waits for an approval: what somebody decides of it, and who has heard of that."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.policy.running.keeper import APPROVAL
from gateway.policy.running.versions import Event, Process, Versions

# Seconds that the running gateways have to look, and between two questions whether they have.
LOOKED_IN = 10.0
ASK_AGAIN = 0.1


@dataclass(frozen=True, slots=True)
class Asked:
    """The running gateways, and the revision up to which each was asked to look."""

    running: Sequence[Process]
    revision: int

    @property
    def late(self) -> list[Process]:
        """Those that have not looked so far."""
        return [each for each in self.running if each.revision < self.revision]


async def looked(
    versions: Versions,
    now: Callable[[], datetime],
    decision: Event | None = None,
    *,
    within: float = LOOKED_IN,
) -> Asked:
    """The running gateways, once each has looked anew or its time is up."""
    waited_for = {each.id for each in await versions.running(now())}
    revision = await versions.ask(decision)
    loop = asyncio.get_running_loop()
    until = loop.time() + within
    while True:
        running = await versions.running(now())
        behind = [each for each in running if each.id in waited_for and each.revision < revision]
        if not behind or loop.time() >= until:
            return Asked(running, revision)
        await asyncio.sleep(ASK_AGAIN)


def waiting(running: Sequence[Process]) -> list[str]:
    """The hashes of the policies that wait for an approval somewhere, each once."""
    held = (each.state for each in running if each.state.get("waitsFor") == APPROVAL)
    return sorted({str(each["waiting"]) for each in held})


async def declined(versions: Versions, hashes: Sequence[str]) -> Mapping[str, Event]:
    """Of those policies the ones that somebody declined, and who."""
    found = {each: await versions.declined(each) for each in hashes}
    return {each: event for each, event in found.items() if event is not None}
