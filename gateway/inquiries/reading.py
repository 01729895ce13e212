"""Who has seen a record: which keys, by what, how often, and which of its fields."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from adapters.documents.problems import DocumentErrors
from gateway.audit.index import CallView, uuid_key
from gateway.audit.questions import Days, Occurrences, readers
from gateway.contract.access import AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.operations import OPERATIONS
from gateway.policy.reading.spots import Spots
from gateway.policy.rules import Rules
from gateway.policy.running.stored import read_version
from gateway.policy.running.versions import Version, Versions
from gateway.policy.telling.explain import reasons
from gateway.store import Store

# Field -> how it was shown: `whole`, or its mask.
Fields = Mapping[str, str]
# To read the text of a policy takes some hundredths of a second.
_REMEMBERED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One key that was shown the record, by its operations; `name` is None where it is gone.

    `fields` is (policy, level) -> fields; None where the store has lost the policy.
    """

    id: str
    name: str | None
    seen: Sequence[tuple[CallView, Occurrences]]
    fields: Mapping[tuple[str, str], Fields | None]


async def readers_of(
    store: Store, resource: Resource, record: str, days: Days, names: Mapping[str, str]
) -> list[Reader]:
    """Each key, in the order in which they first saw it; `names` are those of keys. StoreError."""
    found = await readers(store, record, _operations(resource), days)
    sights = sorted({(view.policy, view.level) for view in found})
    fields = {sight: await fields_seen(store, resource, *sight) for sight in sights}
    by_key: dict[str, list[tuple[CallView, Occurrences]]] = {}
    for view, seen in found.items():
        by_key.setdefault(view.key_id, []).append((view, seen))
    return [
        Reader(id=key_id, name=names.get(key_id), seen=seen, fields=fields)
        for key_id, seen in by_key.items()
    ]


async def can_be(store: Store, resource: Resource, record: str) -> bool:
    """Whether it is the form of a public id, or once was one, of an adapter of the clinic's own."""
    return uuid_key(record) is not None or bool(
        await readers(store, record, _operations(resource), Days())
    )


async def fields_seen(store: Store, resource: Resource, policy: str, level: str) -> Fields | None:
    """The fields that the policy, by the beginning of its hash, lets be seen at that level.

    None where the store has lost it, or where there is no such level. StoreError.
    """
    version = await Versions(store).find(policy) if policy else None
    try:
        rules = await asyncio.to_thread(_rules, version) if version else None
    except DocumentErrors:
        rules = None
    if rules is None or level not in set(AccessLevel):
        return None
    every = reasons(resource, rules[resource.name], AccessLevel(level), Spots({}, {}, {}))
    return {each.path: each.sight for each in every if each.path and each.sight != "hidden"}


@lru_cache(_REMEMBERED)
def _rules(version: Version) -> Rules:
    return read_version(version)


def _operations(resource: Resource) -> set[str]:
    return {each.id for each in OPERATIONS if each.returns is resource}
