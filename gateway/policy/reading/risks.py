"""What a policy allows and its author may not have meant: warnings, each at its place.

What is usual is what the policy that comes with the gateway says.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from adapters.documents.document import Place
from gateway.contract.access import LEVELS
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED
from gateway.policy.masks import LAST, ROUNDED, Mask
from gateway.policy.reading.document import Reading
from gateway.policy.reading.lists import Lists
from gateway.policy.reading.notes import Notes
from gateway.policy.reading.only import ONLY
from gateway.policy.rules import WHOLE, ResourceRules, Rules, no_more

# More letters than these of a telephone number are soon completed.
MOST_SHOWN = 4
_compares = re.compile(r"[=<>!\u2260\u2264\u2265]|(?:not|min|above|max|below)\b").match
# A field, and sets of others of which each tells it.
_TOLD: Mapping[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    ("appointments", "status"): (("displayStatus",),),
    ("invoices", "total"): (("subtotal", "taxTotal"), ("amountPaid", "balance")),
}


def note_risks(reading: Reading, usual: Rules) -> Notes:
    """Warnings about what was read; fields that were not read are not judged."""
    notes = Notes(reading.notes.document)
    for resource in GOVERNED:
        if resource.name not in reading.lists:
            continue
        judge = _Judge(notes, resource, reading.lists[resource.name], reading.rules[resource.name])
        judge.fields(usual[resource.name])
        judge.conditions()
        if not reading.problems:
            judge.tellers()
    if not reading.problems:
        _equal_levels(notes, reading.rules)
    return notes


class _Judge:
    """Looks at one resource."""

    def __init__(
        self, notes: Notes, resource: Resource, lists: Lists, rules: ResourceRules
    ) -> None:
        self.notes = notes
        self.resource = resource
        self.lists = lists
        self.rules = rules

    def conditions(self) -> None:
        """Texts that a record must equal, and that look like a comparison."""
        place = (self.resource.name, ONLY)
        data = self.notes.document.data[self.resource.name].get(ONLY)
        for spot, value in _values(place, data):
            if _compares(value):
                text = (
                    f"'{value}' is compared as it stands, sign for sign; values to leave out are"
                    " written {not: [A, B]}, comparisons {min: 1} and so on"
                )
                self.notes.say(spot, "odd-comparison", text)

    def fields(self, usual: ResourceRules) -> None:
        """Each field where it opens, and under its mask."""
        for path in self.rules.fields:
            self.opening(path, usual)
        for path, (_, mask, place) in self.lists.masks.items():
            if _is_weak(mask, personal=self.resource.at(path).personal):
                text = f"{mask} shows most of {self.resource.name}.{path}"
                self.notes.say(place, "weak-mask", text)

    def opening(self, path: str, usual: ResourceRules) -> None:
        first, place = self.lists.opens[path]
        known = usual.opened_at(path)
        name = f"{self.resource.name}.{path}"
        if first is None:
            return
        if first is LEVELS[0] and self.resource.at(path).personal:
            usually = "" if known is first else f"; usually it opens at {known or 'no level'}"
            text = f"{name} is open to every key{usually}"
            self.notes.say(place, "personal-at-basic", text)
        elif known is not None and LEVELS.index(first) < LEVELS.index(known):
            text = f"{name} opens at {first}; usually it opens at {known}"
            self.notes.say(place, "opened-early", text)

    def tellers(self) -> None:
        """What is hidden at a level, and told by other fields there."""
        for (owner, path), tellers in _TOLD.items():
            if owner == self.resource.name:
                for others in tellers:
                    self.told(path, others)

    def told(self, path: str, others: tuple[str, ...]) -> None:
        for level in LEVELS:
            seen = all(self.rules.sight(each, level) is WHOLE for each in others)
            if seen and self.rules.sight(path, level) is not WHOLE:
                text = f"{path} is hidden from {level}, which {' and '.join(others)} tell it"
                text = text if len(others) > 1 else text.replace(" tell it", " tells it")
                place = self.lists.opens[others[-1]][1]
                self.notes.say(place, "told-elsewhere", text)
                return


def _values(place: Place, data: Any) -> Iterator[tuple[Place, str]]:
    """The texts of conditions, each at its place."""
    if isinstance(data, str):
        yield place, data
    members = data.items() if isinstance(data, Mapping) else ()
    for name, each in enumerate(data) if isinstance(data, list) else members:
        yield from _values((*place, name), each)


def _is_weak(mask: Mask, *, personal: bool) -> bool:
    if mask.kind is ROUNDED:
        return mask.argument == 1
    return personal and mask.kind is LAST and mask.argument > MOST_SHOWN


def _equal_levels(notes: Notes, rules: Rules) -> None:
    """A level that shows just what the one before it shows, of every resource."""
    for lower, higher in pairwise(LEVELS):
        same = all(
            no_more(each.sight(path, higher), each.sight(path, lower))
            for each in rules.values()
            for path in each.fields
        ) and all(each.rows_of(higher).within(each.rows_of(lower)) for each in rules.values())
        if same:
            text = f"{higher} adds nothing to {lower} in any resource: both see the same"
            place = (next(iter(rules)), higher.value)
            notes.say(place, "equal-levels", text, at_key=True)
