"""Calls records by a name that people know, and finds them by it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from adapters.base import Filter, NotFound, Page, Query, Record

# The fields that name a record, and those that `search` looks into.
NAMED: Mapping[str, tuple[str, ...]] = {
    "appointments": ("scheduledAt", "status"),
    "clients": ("firstName", "lastName"),
    "patients": ("name", "species"),
    "consultations": ("startedAt",),
    "invoices": ("number",),
    "stock": ("name",),
    "appointmentTypes": ("name",),
    "vets": ("name",),
}
SEARCHED: Mapping[str, tuple[str, ...]] = {
    "clients": ("firstName", "lastName"),
    "patients": ("name",),
    "invoices": ("number",),
    "stock": ("name",),
    "appointmentTypes": ("name",),
    "vets": ("name",),
}
# References whose names tell a record that has none of its own.
OWNERS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "appointments": (("patientId", "patients"), ("vetId", "vets")),
    "consultations": (("patientId", "patients"), ("vetId", "vets")),
    "invoices": (("clientId", "clients"),),
    "patients": (("clientId", "clients"),),
}


class Reads(Protocol):
    """What is asked of an adapter here."""

    @property
    def resources(self) -> frozenset[str]: ...

    @property
    def filterable(self) -> Mapping[str, frozenset[str]]: ...

    async def read_one(self, query: Query) -> Record: ...

    async def read_many(self, query: Query) -> Page: ...


def own_name(resource: str, record: Mapping[str, Any]) -> str:
    """Returns what the record itself says of its name; "" where it says nothing."""
    values = (record.get(name) for name in NAMED.get(resource, ()))
    return " ".join(str(value) for value in values if value is not None)


class Names:
    """The names of records, by resource and id; each record that is referred to is read once."""

    def __init__(self, adapter: Reads, now: datetime) -> None:
        self._adapter, self._now = adapter, now
        self._known: dict[tuple[str, str], str] = {}

    async def of_id(self, resource: str, public_id: str | None) -> str:
        """Returns the name of the record with that id; "" where there is none."""
        if not public_id or resource not in self._adapter.resources:
            return ""
        at = resource, public_id
        if at not in self._known:
            fields = frozenset(NAMED.get(resource, ()))
            query = Query(resource=resource, now=self._now, id=public_id, fields=fields)
            try:
                self._known[at] = own_name(resource, await self._adapter.read_one(query))
            except NotFound:
                self._known[at] = ""
        return self._known[at]

    async def of(self, resource: str, record: Record) -> str:
        """Returns a record's own name, and those of its animal, vet or owner."""
        others = [
            await self.of_id(target, record.get(field))
            for field, target in OWNERS.get(resource, ())
        ]
        return ", ".join(filter(None, (own_name(resource, record), *others)))


def name_fields(resource: str) -> frozenset[str]:
    """Returns the fields that `Names.of` looks at."""
    return frozenset((*NAMED.get(resource, ()), *(name for name, _ in OWNERS.get(resource, ()))))


async def by_words(
    adapter: Reads, resource: str, words: str, mapped: Iterable[str], most: int, now: datetime
) -> Sequence[Record]:
    """Returns up to `most` records that the words find, as a search by name does.

    `mapped` are the fields that the mapping fills. What has no name of its own is found by its
    animal's or its owner's. Raises what the adapter raises.
    """
    filled = frozenset(mapped)
    if names := tuple(name for name in SEARCHED.get(resource, ()) if name in filled):
        return await _page(adapter, resource, Filter("search", names, words), most, now)
    found: dict[str, Record] = {}
    for field, target in (("patientId", "patients"), ("clientId", "clients")):
        if field not in filled or field not in adapter.filterable.get(resource, ()):
            continue
        search = Filter("search", SEARCHED[target], words)
        for owner in await _page(adapter, target, search, most, now):
            by_owner = Filter("equals", (field,), owner["id"])
            for record in await _page(adapter, resource, by_owner, most, now):
                found[record["id"]] = record
    return list(found.values())[:most]


async def _page(
    adapter: Reads, resource: str, by: Filter, most: int, now: datetime
) -> list[Record]:
    if resource not in adapter.resources:
        return []
    query = Query(resource=resource, now=now, filters=(by,), limit=most)
    return (await adapter.read_many(query)).records
