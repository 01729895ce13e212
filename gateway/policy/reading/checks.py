"""What is risky in a policy file, and a look at a file by all checks."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from adapters.documents.document import Place, read_document
from adapters.documents.problems import DocumentErrors, Problem, run
from adapters.examination import Survey
from gateway.contract.access import LEVELS, AccessLevel
from gateway.policy.masks import LAST, ROUNDED, Mask
from gateway.policy.policy import WHOLE, Policy, Rules, no_more
from gateway.policy.reading import CHECKS
from gateway.policy.reading.document import Reading, load_policy, spots_of
from gateway.policy.reading.resource import ONLY
from gateway.settings import shipped_policy


@cache
def _usual() -> Rules:
    return load_policy(shipped_policy(), lambda trouble: None).rules


def _openings(
    reading: Reading, *, bare: bool
) -> Iterator[tuple[str, AccessLevel, AccessLevel | None, Place]]:
    """Yields opened fields with their level, the usual level, and their place.

    With `bare` these are the personal ones that are open to every key, else all others.
    """
    for name, lists in reading.lists.items():
        for path, (level, place) in lists.opens.items():
            is_bare = level is LEVELS[0] and lists.resource.at(path).personal
            if level is not None and is_bare is bare:
                yield f"{name}.{path}", level, _usual()[name].opened_at(path), place


def _personal_at_basic(reading: Reading) -> Iterator[Problem]:
    for name, level, usual, place in _openings(reading, bare=True):
        usually = "" if usual is level else f"; usually it opens at {usual or 'no level'}"
        yield reading.document.problem(place, f"{name} is open to every key{usually}")


def _opened_early(reading: Reading) -> Iterator[Problem]:
    for name, level, usual, place in _openings(reading, bare=False):
        if usual and LEVELS.index(level) < LEVELS.index(usual):
            text = f"{name} opens at {level}; usually it opens at {usual}"
            yield reading.document.problem(place, text)


# Whoever sees more digits of a telephone number can guess the rest.
_MOST_SHOWN = 4


def _weak_mask(reading: Reading) -> Iterator[Problem]:
    for name, lists in reading.lists.items():
        for path, (_, mask, place) in lists.masks.items():
            is_weak = mask == Mask(ROUNDED, 1)
            if lists.resource.at(path).personal and mask.kind is LAST:
                is_weak = mask.argument > _MOST_SHOWN
            if is_weak:
                yield reading.document.problem(place, f"{mask} shows most of {name}.{path}")


_compares = re.compile(r"[=<>!\u2260\u2264\u2265]|(?:not|min|above|max|below)\b").match


def _odd_comparison(reading: Reading) -> Iterator[Problem]:
    for name in reading.lists:
        for place, value in _texts((name, ONLY), reading.document.data[name].get(ONLY)):
            if _compares(value):
                text = (
                    f"'{value}' is compared as it stands, sign for sign; values to leave out are"
                    " written {not: [A, B]}, comparisons {min: 1} and so on"
                )
                yield reading.document.problem(place, text)


def _texts(place: Place, data: Any) -> Iterator[tuple[Place, str]]:
    """Yields the texts in conditions, each with its place."""
    if isinstance(data, str):
        yield place, data
    members = data.items() if isinstance(data, Mapping) else ()
    for name, member in enumerate(data) if isinstance(data, list) else members:
        yield from _texts((*place, name), member)


def _equal_levels(reading: Reading) -> Iterator[Problem]:
    rules = {} if reading.problems else reading.rules
    for lower, higher in pairwise(LEVELS) if rules else ():
        same = all(
            no_more(resource.sight(path, higher), resource.sight(path, lower))
            for resource in rules.values()
            for path in resource.fields
        ) and all(own.rows_of(higher).within(own.rows_of(lower)) for own in rules.values())
        if same:
            text = f"{higher} adds nothing to {lower} in any resource: both see the same"
            yield reading.document.problem((next(iter(rules)), higher.value), text, at_key=True)


# A field, and others that together reveal it.
_TOLD: Sequence[tuple[str, str, tuple[str, ...]]] = (
    ("appointments", "status", ("displayStatus",)),
    ("invoices", "total", ("subtotal", "taxTotal")),
    ("invoices", "total", ("amountPaid", "balance")),
)


def _told_elsewhere(reading: Reading) -> Iterator[Problem]:
    for name, path, others in () if reading.problems else _TOLD:
        rules, opens = reading.rules[name], reading.lists[name].opens
        for level in LEVELS:
            seen = all(rules.sight(other, level) is WHOLE for other in others)
            if seen and rules.sight(path, level) is not WHOLE:
                verb = "tell" if len(others) > 1 else "tells"
                text = f"{path} is hidden from {level}, which {' and '.join(others)} {verb} it"
                yield reading.document.problem(opens[others[-1]][1], text)
                break


_FINDS: Mapping[str, Callable[[Reading], Iterator[Problem]]] = {
    "personal-at-basic": _personal_at_basic,
    "opened-early": _opened_early,
    "weak-mask": _weak_mask,
    "odd-comparison": _odd_comparison,
    "equal-levels": _equal_levels,
    "told-elsewhere": _told_elsewhere,
}
RISKS = [replace(CHECKS[code], find=find) for code, find in _FINDS.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was found in a file, in its order. `policy` is None where there are errors."""

    file: str
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    policy: Policy | None = None


def check_policy(path: Path) -> Checked:
    """Returns the problems of the file at `path`; a file that is no YAML has no warnings."""
    warnings: tuple[Problem, ...] = ()
    try:
        reading = Reading(read_document(path, flawed=True))
        warnings = tuple(sorted(set(run(RISKS, reading))))
        policy = reading.policy(lambda trouble: None)
    except DocumentErrors as error:
        return Checked(file=str(path), errors=error.problems, warnings=warnings)
    return Checked(file=str(path), warnings=warnings, policy=policy)


def notes_of(policy: Policy, survey: Survey) -> tuple[Problem, ...]:
    """Returns notes on the policy and on the mapping, in the order of each file."""
    notes: list[Problem] = []
    spots = spots_of(policy.version.content)
    for name, rules in policy.rules.items():
        for path in rules.fields.keys() - survey.filled.get(name, ()):
            if rules.opened_at(path):
                text = f"{name}.{path} is open, and nothing in the mapping fills it"
                notes.append(Problem(policy.file, *spots[name, path], text, "never-filled"))
    notes.sort()
    notes += [replace(left, code="never-gets-out") for left in survey.left_out]
    return tuple(notes)
