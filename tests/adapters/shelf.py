"""What the gateway's store is to an adapter, in memory."""

from collections.abc import Mapping, Sequence
from datetime import datetime


class Shelf:
    """An IdTable of a dict's."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.writes = 0
        self.questions = 0
        self.announced: set[str] = set()

    async def announce(self, resource: str) -> None:
        self.announced.add(resource)

    async def may_hold(self, resource: str) -> bool:
        return resource in self.announced

    async def remember(self, resource: str, keys: Mapping[str, str]) -> None:
        self.writes += 1
        for public_id, key in keys.items():
            self.kept.setdefault((resource, public_id), key)

    async def respell(self, resource: str, keys: Mapping[str, str]) -> None:
        self.writes += 1
        self.kept.update({(resource, public_id): key for public_id, key in keys.items()})

    async def find(self, resource: str, public_ids: Sequence[str]) -> Mapping[str, str]:
        self.questions += 1
        found = {each: self.kept.get((resource, each)) for each in public_ids}
        return {each: key for each, key in found.items() if key is not None}


class Times:
    """A BookedTimes of a dict's."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[datetime, datetime]] = {}
        self.questions = 0

    async def remember(self, appointment: str, begins: datetime, ends: datetime) -> None:
        self.kept.setdefault(appointment, (begins, ends))

    async def find(self, appointments: Sequence[str]) -> Mapping[str, tuple[datetime, datetime]]:
        self.questions += 1
        return {each: self.kept[each] for each in appointments if each in self.kept}
