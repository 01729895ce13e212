"""What differs between two policies for those who are answered, said in sentences."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED
from gateway.policy.masks import Mask
from gateway.policy.rows import Rows
from gateway.policy.rules import HIDDEN, WHOLE, ResourceRules, Rules, Sight, no_more
from gateway.policy.spelling import conditions_in_file
from gateway.policy.telling.wording import sight_in_words


class Effect(StrEnum):
    """What a change does to those who see the level: an OTHER shows some more and some less."""

    GAIN = "gain"
    LOSS = "loss"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field, or the records, of one resource: what changes alike at some levels.

    `path` is empty where it is about the records.
    """

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


def changes(old: Rules, new: Rules) -> list[Change]:
    """All that differs, in the order of the contract."""
    return [
        change
        for resource in GOVERNED
        for change in _changes(resource, old[resource.name], new[resource.name])
    ]


def _changes(resource: Resource, old: ResourceRules, new: ResourceRules) -> Iterator[Change]:
    grouped: list[tuple[Rows, Rows, list[AccessLevel]]] = []
    for level in LEVELS:
        before, after = old.rows_of(level), new.rows_of(level)
        alike = [levels for one, other, levels in grouped if (one, other) == (before, after)]
        if alike:
            alike[0].append(level)
        else:
            grouped.append((before, after, [level]))
    for before, after, levels in grouped:
        if not (before.within(after) and after.within(before)):
            yield _of_rows(resource, before, after, tuple(levels))
    for path in resource.paths:
        yield from _of_field(resource, path, old, new)


def _of_field(
    resource: Resource, path: str, old: ResourceRules, new: ResourceRules
) -> Iterator[Change]:
    at: dict[tuple[Sight, Sight], list[AccessLevel]] = {}
    for level in LEVELS:
        before, after = old.sight(path, level), new.sight(path, level)
        if before != after:
            at.setdefault((before, after), []).append(level)
    for (before, after), levels in at.items():
        named = f"{resource.name}.{path}"
        yield Change(
            resource=resource.name,
            path=path,
            levels=tuple(levels),
            before=sight_in_words(before),
            after=sight_in_words(after),
            effect=_effect(no_more(before, after), no_more(after, before)),
            sentence=f"{named} {_verb(before, after, _listed(levels))}",
        )


def _of_rows(
    resource: Resource, before: Rows, after: Rows, levels: tuple[AccessLevel, ...]
) -> Change:
    effect = _effect(before.within(after), after.within(before))
    how = {Effect.GAIN: "more", Effect.LOSS: "fewer", Effect.OTHER: "other"}[effect]
    words = [conditions_in_file(resource, each) if each else "all" for each in (before, after)]
    return Change(
        resource=resource.name,
        path="",
        levels=levels,
        before=words[0],
        after=words[1],
        effect=effect,
        sentence=f"{resource.name} shows {how} records at {_listed(levels)}:"
        f" {words[1]} (was {words[0]})",
    )


def _effect(no_less: bool, no_more: bool) -> Effect:
    if no_less:
        return Effect.GAIN
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


def _listed(levels: Iterable[AccessLevel]) -> str:
    names = [level.value for level in levels]
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[:-1] else names)
