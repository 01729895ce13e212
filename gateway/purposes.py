"""Defines what a gateway can be ready for, and which of its parts each purpose needs."""

from collections.abc import Collection, Mapping
from enum import StrEnum


class Purpose(StrEnum):
    """A kind of call that a proxy sends to a gateway."""

    READS = "reads"
    BOOKINGS = "bookings"


# Part -> the purposes that need it. No read needs what all nodes share (the store, the limiter):
# reads go on without it, and taking every node out for it would be the outage.
NEEDED_FOR: Mapping[str, tuple[Purpose, ...]] = {
    "backend": (Purpose.READS, Purpose.BOOKINGS),
    "store": (Purpose.BOOKINGS,),
    "keys": (Purpose.READS, Purpose.BOOKINGS),
    "audit": (Purpose.READS, Purpose.BOOKINGS),
    "loop": (Purpose.READS, Purpose.BOOKINGS),
    "limiter": (),
    "policy": (),
    "workers": (Purpose.READS, Purpose.BOOKINGS),
}


class NotReady(Exception):
    """Raised where a part is not ready; it `stops` these purposes, or all that need the part."""

    def __init__(self, reason: str, stops: Collection[Purpose] | None = None) -> None:
        super().__init__(reason)
        self.stops = stops
