"""Says in words what a policy decides and why, and what differs from another one."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial, reduce
from itertools import chain, starmap
from typing import TypeVar

from gateway.contract import fields as formats
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Field, Resource
from gateway.contract.resources import GOVERNED
from gateway.policy.masks import Mask
from gateway.policy.policy import HIDDEN, WHOLE, ResourceRules, Rules, Sight, no_more
from gateway.policy.reading.document import MASK, Spot, Spots
from gateway.policy.reading.resource import ONLY
from gateway.policy.rows import RowFilter, Value, conditions_in_file, shown

T = TypeVar("T")

# Comparison -> its phrases for amounts and for times.
_BOUNDS = {
    "min": ("at least", "from"),
    "above": ("more than", "after"),
    "max": ("at most", "up to"),
    "below": ("less than", "before"),
}
# The parts of a sentence about row conditions, in one language.
Phrases = Mapping[str, str]
ENGLISH: Phrases = {
    "is": "{field} is {tests}",
    "and": "{first} and {last}",
    "next": "{first}, and {last}",
    "or": "{first} or {last}",
    "none": "nothing at all",
    **{name: f"{name} {{value}}" for name in ("not", *chain(*_BOUNDS.values()))},
}
_AND = ENGLISH["and"]


def kind_of(sight: Sight) -> str:
    """Returns `whole`, `masked` or `hidden`."""
    return "masked" if isinstance(sight, Mask) else str(sight)


def masks_of(rules: Iterable[ResourceRules]) -> list[Mask]:
    """Returns every mask in the rules once, sorted by its text."""
    every = (sight for own in rules for sights in own.fields.values() for sight in sights)
    return sorted({sight for sight in every if isinstance(sight, Mask)}, key=str)


def row_sentences(resource: Resource, rules: ResourceRules) -> list[tuple[AccessLevel, str]]:
    """Returns a sentence for each level on which records exist; none if all do for all levels."""
    rows = [(level, rules.rows_of(level)) for level in LEVELS]
    return [
        (level, f"only records whose {conditions(resource, own)}" if own else "all records")
        for level, own in rows
        if any(own for _, own in rows)
    ]


def conditions(resource: Resource, rows: RowFilter, phrases: Phrases = ENGLISH) -> str:
    """Returns `status is VALIDATED, and total is at least 10.00`; "" without conditions."""
    parts = []
    for name, test in rows.tests.items():
        field, tests = resource.at(name), []
        is_time = field.format in (formats.DAY, formats.INSTANT)
        for word, value in test.comparisons():
            if word in _BOUNDS:
                text = phrases[_BOUNDS[word][is_time]].format(value=_one(field, value))
            else:
                values = [_one(field, item) for item in value]
                text = listed(values or [phrases["none"]], phrases["or"])
            tests.append(phrases["not"].format(value=text) if word == "not in" else text)
        parts.append(phrases["is"].format(field=name, tests=_joined(tests, phrases["and"])))
    return _joined(parts, phrases["next"]) if parts else ""


def listed(parts: Iterable[str], phrase: str) -> str:
    """Returns `one, two and three`; `phrase` joins the last two."""
    *first, last = parts
    return _joined([", ".join(first), last], phrase) if first else last


def _joined(parts: Iterable[str], phrase: str) -> str:
    return reduce(lambda first, last: phrase.format(first=first, last=last), parts)


def _one(field: Field, value: Value) -> str:
    wire = shown(field, value)
    return str(wire).lower() if isinstance(wire, bool) else str(wire)


def printable(text: str) -> str:
    """Returns the text with a blank for each unprintable character."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


@dataclass(frozen=True, slots=True)
class Reason:
    """One decision about a field, or with an empty `path` about the records.

    `sight` is `whole`, `hidden` or the mask; of records it is `all` or their conditions. `spot` is
    the line and column that decide, None where there is none.
    """

    path: str
    sight: str
    why: str
    spot: Spot | None


def reasons(
    resource: Resource, rules: ResourceRules, level: AccessLevel, spots: Spots
) -> Iterator[Reason]:
    """Yields why a level sees what it sees: first the records, then each field."""
    if rows := rules.rows_of(level):
        why, spot = f"only these records exist at {level}", spots.get((resource.name, ONLY, level))
        yield Reason("", conditions_in_file(resource, rows), why, spot)
    else:
        yield Reason("", "all", f"every record exists at {level}", None)
    for path in resource.paths:
        sight, first = rules.sight(path, level), rules.opened_at(path)
        spot = spots.get((resource.name, path))
        lowest = rules.first(path, lambda seen: seen is not HIDDEN)
        why = f"{first} opens it" if first else "no level opens it"
        if isinstance(sight, Mask):
            at = rules.first(path, sight.__eq__)
            why = f"{at} masks it; {f'whole from {first} on' if first else 'whole at no level'}"
            spot = spots.get((resource.name, MASK, path))
        elif sight is HIDDEN and lowest is not first:
            why = f"{lowest} is the first to see it, masked"
        yield Reason(path, str(sight), why, spot)


class Effect(StrEnum):
    """What a change does. An OTHER shows some things more and some less."""

    GAIN = "gain"
    LOSS = "loss"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A change of one field at some levels, or with an empty `path` of the records."""

    resource: str
    path: str
    levels: tuple[AccessLevel, ...]
    before: str
    after: str
    effect: Effect
    sentence: str

    @property
    def widens(self) -> bool:
        """Whether anybody may see something that was not seen."""
        return self.effect is not Effect.LOSS


def changes(old: Rules, new: Rules) -> list[PolicyChange]:
    """Returns all that differs between two policies, in the order of the contract."""
    pairs = ((resource, old[resource.name], new[resource.name]) for resource in GOVERNED)
    return [*chain.from_iterable(starmap(_changes, pairs))]


def _changes(resource: Resource, old: ResourceRules, new: ResourceRules) -> Iterator[PolicyChange]:
    name = resource.name
    for before, after, levels in _differing(old.rows_of, new.rows_of):
        if effect := _effect(before.within(after), after.within(before)):
            was, now = (conditions_in_file(resource, it) if it else "all" for it in (before, after))
            how = {Effect.GAIN: "more", Effect.LOSS: "fewer", Effect.OTHER: "other"}[effect]
            text = f"{name} shows {how} records at {listed(levels, _AND)}: {now} (was {was})"
            yield PolicyChange(name, "", levels, was, now, effect, text)
    for path in resource.paths:
        for one, other, levels in _differing(partial(old.sight, path), partial(new.sight, path)):
            if effect := _effect(no_more(one, other), no_more(other, one)):
                text = f"{name}.{path} {_verb(one, other, listed(levels, _AND))}"
                yield PolicyChange(name, path, levels, str(one), str(other), effect, text)


def _differing(
    old: Callable[[AccessLevel], T], new: Callable[[AccessLevel], T]
) -> Iterator[tuple[T, T, tuple[AccessLevel, ...]]]:
    """Yields each different pair of old and new, with the levels that have it."""
    pairs = [(old(level), new(level)) for level in LEVELS]
    for number, pair in enumerate(pairs):
        if pair[0] != pair[1] and pair not in pairs[:number]:
            alike = zip(LEVELS, pairs, strict=True)
            yield *pair, tuple(level for level, other in alike if other == pair)


def _effect(no_less: bool, no_more: bool) -> Effect | None:
    if no_less:
        return None if no_more else Effect.GAIN
    return Effect.LOSS if no_more else Effect.OTHER


def _verb(before: Sight, after: Sight, levels: str) -> str:
    was = f" (was {before})" if isinstance(before, Mask) else ""
    if after is HIDDEN:
        return f"is hidden at {levels}{was}"
    if after is WHOLE:
        return f"becomes visible{' whole' if was else ''} at {levels}{was}"
    if before is HIDDEN:
        return f"becomes visible as {after} at {levels}"
    return f"is shown as {after} at {levels}{was or ' (was whole)'}"
