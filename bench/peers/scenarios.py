"""What is asked of the targets, and how."""

from dataclasses import dataclass

from bench.peers.targets import BARE, DIRECT

MANY = range(1024)
RECORDS = tuple(f"/clients/7f1c1f7e-4f1a-4d7e-9a9b-{number:012x}" for number in MANY)
SLOW = tuple(f"/clients/511c1f7e-4f1a-4d7e-9a9b-{number:012x}" for number in MANY)
LISTS = tuple(
    f"/clients?limit=50&updatedSince=2020-01-01T{minute // 60:02d}:{minute % 60:02d}:00Z"
    for minute in MANY
)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A load: as fast as it goes on so many connections, or an open loop of `rate` in a second."""

    variant: str
    paths: tuple[str, ...]
    without: str = DIRECT  # a target that has no part in it
    connections: int = 32
    rate: int = 0


SCENARIOS = {
    "record": Scenario(variant="uncached", paths=RECORDS),
    "record-cached": Scenario(variant="cached", paths=RECORDS[:100]),
    "list": Scenario(variant="uncached", paths=LISTS),
    "list-cached": Scenario(variant="cached", paths=LISTS[:20]),
    "slow": Scenario(variant="uncached", paths=SLOW, without=BARE, connections=64),
    "latency": Scenario(variant="uncached", paths=RECORDS, without="", rate=200),
}
