"""The checks of a policy file as one table, and a look at a file by all of them.

A code is for good: reports, suppressions and the pages on policies name it. What is usual is what
the policy that comes with the gateway says.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from adapters.documents.document import Place, read_document
from adapters.documents.faults import FILE_CHECKS
from adapters.documents.problems import Check, DocumentErrors, Problem, Severity, run
from adapters.examination import Survey
from gateway.contract.access import LEVELS, AccessLevel
from gateway.policy.masks import KINDS, LAST, ROUNDED, Mask
from gateway.policy.policy import WHOLE, Policy, Rules, no_more
from gateway.policy.reading.document import Reading, load_policy, spots_of
from gateway.policy.reading.resource import ONLY
from gateway.settings import shipped_policy

_MASKS = ", ".join(kind.example for kind in KINDS.values())
_LARGEST = ", ".join(
    f"{kind.name} 1 to {kind.largest:,}" for kind in KINDS.values() if kind.largest
)
_FIELDS = "clinic-gateway policy show prints the fields of every resource."
_LEARNS = "Who sees that records are left out learns what the field says."

# What is told where the file is read.
POLICY_CHECKS: Sequence[Check[Any]] = (
    Check("no-policy", "no policy at all", "Begin with a copy of the policy that is shipped."),
    Check("bad-version", "the version", "version: 1 says by which rules the file is read."),
    Check("missing-resource", "a missing resource", "Decide on each: nothing opens by accident."),
    Check("unknown-resource", "an unknown resource", "Partners use the same names, in the plural."),
    Check("whole-resource", "an ungoverned resource", "Types and free times hide nothing."),
    Check("bad-resource", "a resource without lists", "Below it stand BASIC, STANDARD and FULL."),
    Check("missing-level", "a missing level", "A level that adds nothing has an empty list: []."),
    Check("unknown-level", "an unknown level", "Levels are capitals; never and only are not."),
    Check("bad-level", "no list", "A list stands in brackets with commas, such as [id, name]."),
    Check("bad-field", "no name of a field", "A list names fields by words, in one pair of []."),
    Check("unknown-field", "an unknown field", _FIELDS),
    Check("missing-comma", "a missing comma", "Without commas several words are taken for one."),
    Check("list-of-objects", "a list of objects", "Each member is decided on by itself."),
    Check("doubled-field", "a field twice", "Higher levels see what a lower one opens or masks."),
    Check("missing-field", "a missing field", "Decide on each: nothing opens by accident."),
    Check("mask-form", "a mask written otherwise", "Write {phone: last(2)}, in a lower level."),
    Check("unknown-mask", "an unknown mask", f"The masks are {_MASKS}."),
    Check("bad-mask", "a mask's number", f"Numbers: {_LARGEST}; the other masks take none."),
    Check("unfit-mask", "a mask that does not fit", "Each mask is for values of certain kinds."),
    Check("mask-under-never", "a mask under never", "A hidden field has no mask."),
    Check("mask-not-lower", "a mask that is never seen", "Masks stand below the level that opens."),
    Check("bad-only", "conditions in no form", "Write only: {status: [ACTIVE]} for those records."),
    Check(
        "bad-condition", "an unknown comparison", "Write values, or not, min, above, max, below."
    ),
    Check("condition-on-hidden", "a condition on a hidden field", _LEARNS),
    Check("condition-on-list", "a condition on a list", "A condition needs one plain value."),
    Check("empty-condition", "an impossible condition", "Rather take the permission from the key."),
    Check("unordered-field", "a field without order", "min and max are for numbers and times."),
    Check("bad-value", "a value that the field never has", "Write values as answers show them."),
    Check("narrower-level", "a higher level that sees less", "Each sees all that lower ones see."),
)
RISKS: list[Check[Reading]] = []
_Find = Callable[[Reading], Iterator[Problem]]


def _risk(code: str, title: str) -> Callable[[_Find], _Find]:
    """Puts a warning into the table; the docstring of what finds it is the remedy that is told."""

    def registered(find: _Find) -> _Find:
        RISKS.append(Check(code, title, str(find.__doc__), Severity.WARNING, find))
        return find

    return registered


@cache
def _usual() -> Rules:
    return load_policy(shipped_policy(), lambda trouble: None).rules


def _openings(
    reading: Reading, *, bare: bool
) -> Iterator[tuple[str, AccessLevel, AccessLevel | None, Place]]:
    """Fields that open: those by which all reach a person or others, where, and where usually."""
    for name, lists in reading.lists.items():
        for path, (level, place) in lists.opens.items():
            is_bare = level is LEVELS[0] and lists.resource.at(path).personal
            if level is not None and is_bare is bare:
                yield f"{name}.{path}", level, _usual()[name].opened_at(path), place


@_risk("personal-at-basic", "what reaches a person, at BASIC")
def _personal_at_basic(reading: Reading) -> Iterator[Problem]:
    """Every key sees BASIC: move the field to a higher level, or show it there under a mask."""
    for name, level, usual, place in _openings(reading, bare=True):
        usually = "" if usual is level else f"; usually it opens at {usual or 'no level'}"
        yield reading.document.problem(place, f"{name} is open to every key{usually}")


@_risk("opened-early", "a field at a lower level than usual")
def _opened_early(reading: Reading) -> Iterator[Problem]:
    """Usual is what the shipped policy says; a mask at the lower level would show less."""
    for name, level, usual, place in _openings(reading, bare=False):
        if usual and LEVELS.index(level) < LEVELS.index(usual):
            text = f"{name} opens at {level}; usually it opens at {usual}"
            yield reading.document.problem(place, text)


# More letters than these of a telephone number are soon completed.
_MOST_SHOWN = 4


@_risk("weak-mask", "a mask that hardly hides")
def _weak_mask(reading: Reading) -> Iterator[Problem]:
    """Who sees most of a value can guess the rest, or find it in a directory."""
    for name, lists in reading.lists.items():
        for path, (_, mask, place) in lists.masks.items():
            is_weak = mask == Mask(ROUNDED, 1)
            if lists.resource.at(path).personal and mask.kind is LAST:
                is_weak = mask.argument > _MOST_SHOWN
            if is_weak:
                yield reading.document.problem(place, f"{mask} shows most of {name}.{path}")


_compares = re.compile(r"[=<>!\u2260\u2264\u2265]|(?:not|min|above|max|below)\b").match


@_risk("odd-comparison", "a text that looks like a comparison")
def _odd_comparison(reading: Reading) -> Iterator[Problem]:
    """Without braces it is a value, which a record must have just so."""
    for name in reading.lists:
        for place, value in _texts((name, ONLY), reading.document.data[name].get(ONLY)):
            if _compares(value):
                text = (
                    f"'{value}' is compared as it stands, sign for sign; values to leave out are"
                    " written {not: [A, B]}, comparisons {min: 1} and so on"
                )
                yield reading.document.problem(place, text)


def _texts(place: Place, data: Any) -> Iterator[tuple[Place, str]]:
    """The texts of conditions, each at its place."""
    if isinstance(data, str):
        yield place, data
    members = data.items() if isinstance(data, Mapping) else ()
    for name, member in enumerate(data) if isinstance(data, list) else members:
        yield from _texts((*place, name), member)


@_risk("equal-levels", "two levels that see the same")
def _equal_levels(reading: Reading) -> Iterator[Problem]:
    """A key of the higher level gets nothing for it; maybe something was left out by mistake."""
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


# A field, and others that together tell it.
_TOLD: Sequence[tuple[str, str, tuple[str, ...]]] = (
    ("appointments", "status", ("displayStatus",)),
    ("invoices", "total", ("subtotal", "taxTotal")),
    ("invoices", "total", ("amountPaid", "balance")),
)


@_risk("told-elsewhere", "hidden, and told elsewhere")
def _told_elsewhere(reading: Reading) -> Iterator[Problem]:
    """What other fields tell is hidden only together with them."""
    for name, path, others in () if reading.problems else _TOLD:
        rules, opens = reading.rules[name], reading.lists[name].opens
        for level in LEVELS:
            seen = all(rules.sight(other, level) is WHOLE for other in others)
            if seen and rules.sight(path, level) is not WHOLE:
                verb = "tell" if len(others) > 1 else "tells"
                text = f"{path} is hidden from {level}, which {' and '.join(others)} {verb} it"
                yield reading.document.problem(opens[others[-1]][1], text)
                break


# What a gateway says of a sound file: beside its practice system, and beside its cases.
_OTHERS: Sequence[Check[Any]] = (
    Check(
        "failed-case",
        "a case that fails",
        "What the policy shows more waits: mend the policy, or the case if the change is meant.",
    ),
    Check(
        "bad-cases",
        "cases that cannot be read",
        "What the policy shows more waits until its cases can be tried: mend them as it says.",
    ),
    Check(
        "unserved-condition",
        "a condition that the practice system cannot serve",
        "The gateway would not start: change the mapping as it says, or take the condition out.",
    ),
    Check(
        "never-filled",
        "open, and never filled",
        "Partners get null there, until the mapping says where the field comes from.",
        Severity.NOTE,
    ),
    Check(
        "never-gets-out",
        "what no field is made of",
        "Only what the mapping makes a field of can be opened at all.",
        Severity.NOTE,
    ),
)
CHECKS: Mapping[str, Check[Any]] = {
    check.code: check for check in (*FILE_CHECKS, *POLICY_CHECKS, *RISKS, *_OTHERS)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was found, in the order of the file; `policy` where there is no error."""

    file: str
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    policy: Policy | None = None


def check_policy(path: Path) -> Checked:
    """All that is to be said of the file at `path`; a file that is no YAML has no warnings."""
    warnings: tuple[Problem, ...] = ()
    try:
        reading = Reading(read_document(path, flawed=True))
        warnings = tuple(sorted(set(run(RISKS, reading))))
        policy = reading.policy(lambda trouble: None)
    except DocumentErrors as error:
        return Checked(file=str(path), errors=error.problems, warnings=warnings)
    return Checked(file=str(path), warnings=warnings, policy=policy)


def notes_of(policy: Policy, survey: Survey) -> tuple[Problem, ...]:
    """Notes at their places in the policy and in the mapping, in the order of each file."""
    notes: list[Problem] = []
    spots = spots_of(policy.version.content)
    for name, rules in policy.rules.items():
        for path in rules.fields.keys() - survey.filled.get(name, ()):
            if rules.opened_at(path):
                text = f"{name}.{path} is open, and nothing in the mapping fills it"
                notes.append(Problem(policy.file, *spots[name, path], text, "never-filled"))
    notes.sort()
    for left in survey.left_out:
        what, names = "has what no field is made of, which never gets out:", ", ".join(left.names)
        text = f"{left.source} {what} {names}"
        notes.append(replace(left.at, text=text, code="never-gets-out"))
    return tuple(notes)
