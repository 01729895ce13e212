"""What differs between two policies, for which keys, and how often these were answered."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gateway.contract.operations import OPERATIONS
from gateway.inquiries.policies import Named
from gateway.keys.key import Key
from gateway.keys.store import KeyStore
from gateway.policy.telling.diff import Change, changes
from gateway.store import Store
from gateway.usage.store import answered

DAYS = 30


@dataclass(frozen=True, slots=True)
class Touched:
    """A change, the active keys that it touches, and in how many answers they saw the resource."""

    change: Change
    keys: Sequence[Key]
    answers: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two policies and what differs; `known` is False where no store tells of any key.

    `notes` say what holds a part of the new one back.
    """

    old: Named
    new: Named
    touched: Sequence[Touched]
    known: bool
    notes: Sequence[str] = ()

    @property
    def widens(self) -> bool:
        """Whether anybody may see something that was not seen."""
        return any(each.change.widens for each in self.touched)


async def compared(
    old: Named, new: Named, store: Store | None, now: datetime, notes: Sequence[str] = ()
) -> Comparison:
    """What differs, as the store knows keys and answers."""
    found = changes(old.rules, new.rules)
    if store is None:
        return Comparison(old, new, touched(found, (), {}), known=False, notes=notes)
    listing, at = await KeyStore(store).list(), await KeyStore(store).key_time(now)
    keys = [key for key, _ in listing.keys if key.active(at)]
    touches = await whom(found, keys, store, now)
    return Comparison(old, new, touches, known=True, notes=notes)


async def whom(
    found: Sequence[Change], keys: Sequence[Key], store: Store, now: datetime
) -> list[Touched]:
    """Each change with those of the active keys that it touches, and their answers of the DAYS."""
    if not found:
        return []
    showing = sorted({each for change in found for each in operations_of(change)})
    counts = await answered(store, now - timedelta(days=DAYS), showing)
    return await asyncio.to_thread(touched, found, keys, counts)


def touched(
    found: Iterable[Change], keys: Sequence[Key], counts: Mapping[tuple[str, str], int]
) -> list[Touched]:
    """Each change with whom it reaches of these keys."""
    reached = [(each, reach(each, keys)) for each in found]
    return [Touched(each, some, answers(each, some, counts)) for each, some in reached]


def operations_of(change: Change) -> list[str]:
    """The operations that show the resource, by their ids."""
    return [each.id for each in OPERATIONS if each.returns.name == change.resource]


def reach(change: Change, keys: Iterable[Key]) -> list[Key]:
    """The keys whose answers change: they may ask for the resource, and have one of the levels."""
    reaching = {each.permission for each in OPERATIONS if each.returns.name == change.resource}
    return [
        key
        for key in keys
        if key.permissions & reaching and key.level_for(change.resource) in change.levels
    ]


def answers(change: Change, keys: Iterable[Key], counts: Mapping[tuple[str, str], int]) -> int:
    """In how many answers those keys were shown the resource; `counts` by key id and operation."""
    showing = operations_of(change)
    return sum(counts.get((key.id, operation), 0) for key in keys for operation in showing)
