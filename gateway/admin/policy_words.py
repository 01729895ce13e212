"""What a policy says, in the page's language: masks, conditions, changes, and why."""

from collections.abc import Sequence

from gateway.admin.words import Words
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED
from gateway.policy.masks import Mask, read_mask
from gateway.policy.rows import RowFilter
from gateway.policy.rules import HIDDEN, WHOLE, ResourceRules, Rules, Sight
from gateway.policy.telling.wording import (
    ENGLISH,
    Phrases,
    PolicyChange,
    conditions,
    joined,
    kind_of,
)

_RESOURCES = {each.name: each for each in GOVERNED}


class PolicyWords:
    """Says it in one language."""

    # `whole`, `masked` or `hidden`, as style sheets and texts name it
    kind = staticmethod(kind_of)

    def __init__(self, words: Words) -> None:
        self._words = words
        self.phrases: Phrases = {name: words.raw(f"conditions.{name}") for name in ENGLISH}

    def mark(self, sight: Sight) -> str:
        """Returns the kind as a word of the page."""
        return self._words(f"policy.mark_{kind_of(sight)}")

    def mask(self, mask: Mask) -> str:
        """Returns what a mask shows."""
        return self._words(f"masks.{mask.kind.name}", number=mask.argument)

    def sight(self, sight: Sight) -> str:
        """Returns how much is seen; of a mask what it shows."""
        if isinstance(sight, Mask):
            return self._words("policy.in_part", mask=self.mask(sight))
        return self.mark(sight)

    def at(self, levels: Sequence[AccessLevel]) -> str:
        """Returns `at BASIC and STANDARD`."""
        listed = self._listed([level.value for level in levels], "and")
        return self._words("policy.at", len(levels), levels=listed)

    def either(self, names: Sequence[str]) -> str:
        """Returns `this or that`."""
        return self._listed(names, "or")

    def _listed(self, names: Sequence[str], phrase: str) -> str:
        *first, last = names
        return joined([", ".join(first), last] if first else [last], self.phrases[phrase])

    def records(self, resource: Resource, rows: RowFilter) -> str:
        """Returns which records exist."""
        if not rows:
            return self._words("policy.all_records")
        return self._words("policy.only_records", condition=self.condition(resource, rows))

    def condition(self, resource: Resource, rows: RowFilter) -> str:
        """Returns what is asked of a record so that it exists."""
        return conditions(resource, rows, self.phrases)

    def change(self, change: PolicyChange, old: Rules, new: Rules) -> str:
        """Returns a change as a sentence."""
        at = self.at(change.levels)
        if not change.path:
            resource, level = _RESOURCES[change.resource], change.levels[0]
            return self._words(
                f"policy.records_{change.effect}",
                resource=self._words(f"resources.{resource.name}"),
                at=at,
                after=self.records(resource, new[resource.name].rows_of(level)),
                before=self.records(resource, old[resource.name].rows_of(level)),
            )
        after = _read(change.after)
        return self._words(
            f"policy.becomes_{kind_of(after)}",
            field=f"{change.resource}.{change.path}",
            at=at,
            before=self.sight(_read(change.before)),
            mask=self.mask(after) if isinstance(after, Mask) else "",
        )

    def why(self, rules: ResourceRules, path: str, level: AccessLevel) -> str:
        """Returns which level decides what this one sees of a field."""
        sight, opened = rules.sight(path, level), rules.opened_at(path)
        if sight is WHOLE:
            return self._words("policy.why_whole", level=opened)
        if isinstance(sight, Mask):
            first = rules.first(path, lambda each: each == sight)
            if opened is None:
                return self._words("policy.why_masked_only", level=first)
            return self._words("policy.why_masked", level=first, opened=opened)
        lowest = rules.first(path, lambda each: each is not HIDDEN)
        if lowest is None:
            return self._words("policy.why_never")
        is_whole = rules.fields[path][LEVELS.index(lowest)] is WHOLE
        return self._words(f"policy.why_{'later' if is_whole else 'later_masked'}", level=lowest)


def _read(sight: str) -> Sight:
    """Returns a sight as a change names it."""
    found = read_mask(sight)
    if isinstance(found, Mask):
        return found
    return WHOLE if sight == WHOLE.value else HIDDEN
