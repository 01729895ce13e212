"""The checks of a policy file as one table, and a look at a file by all of them.

A code is for good: reports, suppressions and the pages on policies name it. What is usual is what
the policy that comes with the gateway says.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from adapters.base import Trouble
from adapters.documents.document import Place, read_document
from adapters.documents.faults import FILE_CHECKS
from adapters.documents.problems import Check, DocumentErrors, Problem, Severity, by_code, run
from adapters.examination import Survey
from gateway.contract.access import LEVELS, AccessLevel
from gateway.policy.masks import KINDS, LAST, ROUNDED, Mask
from gateway.policy.policy import Policy
from gateway.policy.reading.conditions import ONLY
from gateway.policy.reading.document import Reading, load_policy, read_rules, spots_of
from gateway.policy.rules import WHOLE, ResourceRules, Rules, no_more
from gateway.settings import shipped_policy

_MASKS = ", ".join(kind.example for kind in KINDS.values())
_LARGEST = ", ".join(
    f"{kind.name} 1 to {kind.largest:,}" for kind in KINDS.values() if kind.largest
)

# What is told where the file is read.
POLICY_CHECKS: Sequence[Check[Any]] = (
    Check("no-policy", "no policy at all", "Begin with a copy of the policy that is shipped."),
    Check("bad-version", "the version", "version: 1 says by which rules the file is read."),
    Check("missing-resource", "a missing resource", "Decide on each: nothing opens by accident."),
    Check("unknown-resource", "an unknown resource", "Partners use the same names, in the plural."),
    Check(
        "whole-resource", "a resource that is always whole", "Types and free times hide nothing."
    ),
    Check("bad-resource", "a resource without lists", "Below it stand BASIC, STANDARD and FULL."),
    Check("list-for-group", "a list in place of a group", "Each level below it has a list."),
    Check("missing-level", "a missing level", "A level that adds nothing has an empty list: []."),
    Check(
        "unknown-level",
        "an unknown level",
        "The levels are BASIC, STANDARD and FULL; never is for no key at all.",
    ),
    Check(
        "level-case", "capitals and small letters", "Levels are capitals; never and only are not."
    ),
    Check("bad-level", "no list", "A list stands in brackets with commas, such as [id, name]."),
    Check("group-for-list", "a group in place of a list", "Only masks and conditions have braces."),
    Check("list-in-list", "a list in a list", "Fields stand in one pair of brackets."),
    Check("only-in-list", "only behind a level", "Conditions stand beside the resource's levels."),
    Check("only-outside", "only outside a resource", "Conditions are about one resource's fields."),
    Check("bad-field", "no name of a field", "A list names fields by words."),
    Check(
        "unknown-field",
        "an unknown field",
        "clinic-gateway policy show prints the fields of every resource.",
    ),
    Check("prefixed-field", "a field with its resource", "The resource is named once, above."),
    Check("missing-comma", "a missing comma", "Without commas several words are taken for one."),
    Check("list-of-objects", "a list of objects", "Each member is decided on by itself."),
    Check("doubled-field", "a field twice", "Higher levels see what a lower one opens."),
    Check("missing-field", "a missing field", "Decide on each: nothing opens by accident."),
    Check("mask-form", "a mask written otherwise", "Write {phone: last(2)}, in a lower level."),
    Check("unknown-mask", "an unknown mask", f"The masks are {_MASKS}."),
    Check("bad-mask", "a mask's number", f"Numbers: {_LARGEST}; the other masks take none."),
    Check("unfit-mask", "a mask that does not fit", "Each mask is for values of certain kinds."),
    Check("doubled-mask", "a mask twice", "A field has one mask, from one level on."),
    Check("mask-under-never", "a mask under never", "A hidden field has no mask."),
    Check(
        "mask-not-lower",
        "a mask that is never seen",
        "A mask is for levels below the one that opens the field.",
    ),
    Check("bad-only", "conditions in no form", "Write only: {status: [ACTIVE]} for those records."),
    Check(
        "bad-condition",
        "an unknown comparison",
        "A condition is a list of values, or not, min, above, max, below.",
    ),
    Check(
        "condition-on-hidden",
        "a condition on a hidden field",
        "Who sees that records are left out learns what the field says.",
    ),
    Check("condition-on-list", "a condition on a list", "A condition needs one plain value."),
    Check(
        "empty-condition",
        "a condition that nothing meets",
        "Rather take the permission from the key.",
    ),
    Check("unordered-field", "a field without order", "min and max are for numbers and times."),
    Check("bad-value", "a value that the field never has", "Write values as answers show them."),
    Check("yes-no", "yes or no", "Truth values are written true and false."),
    Check("unquoted-text", "a text without quotes", "A number in quotes is a text."),
    Check(
        "narrower-level",
        "a higher level that sees less",
        "Each level sees all that lower ones see.",
    ),
)


@dataclass(frozen=True, slots=True)
class RiskSubject:
    """What the warnings are about: a file as it was read, and what is usual."""

    reading: Reading
    usual: Rules

    def problem(self, place: Place, text: str, *, at_key: bool = False) -> Problem:
        return self.reading.document.problem(place, text, at_key=at_key)


class _Opening(NamedTuple):
    """A field that opens: at which level, at which one usually, and where the file says so."""

    name: str
    level: AccessLevel
    usual: AccessLevel | None
    place: Place
    is_personal_at_basic: bool


def _openings(subject: RiskSubject) -> Iterator[_Opening]:
    for name, lists in subject.reading.lists.items():
        for path, (level, place) in lists.opens.items():
            if level is not None:
                usual = subject.usual[name].opened_at(path)
                is_personal = level is LEVELS[0] and lists.resource.at(path).personal
                yield _Opening(f"{name}.{path}", level, usual, place, is_personal)


def _personal_at_basic(subject: RiskSubject) -> Iterator[Problem]:
    for name, level, usual, place, is_personal in _openings(subject):
        if is_personal:
            usually = "" if usual is level else f"; usually it opens at {usual or 'no level'}"
            yield subject.problem(place, f"{name} is open to every key{usually}")


def _opened_early(subject: RiskSubject) -> Iterator[Problem]:
    for name, level, usual, place, is_personal in _openings(subject):
        if usual and not is_personal and LEVELS.index(level) < LEVELS.index(usual):
            yield subject.problem(place, f"{name} opens at {level}; usually it opens at {usual}")


# More letters than these of a telephone number are soon completed.
_MOST_SHOWN = 4


def _weak_mask(subject: RiskSubject) -> Iterator[Problem]:
    for name, lists in subject.reading.lists.items():
        for path, (_, mask, place) in lists.masks.items():
            is_weak = mask == Mask(ROUNDED, 1)
            if lists.resource.at(path).personal and mask.kind is LAST:
                is_weak = mask.argument > _MOST_SHOWN
            if is_weak:
                yield subject.problem(place, f"{mask} shows most of {name}.{path}")


_compares = re.compile(r"[=<>!\u2260\u2264\u2265]|(?:not|min|above|max|below)\b").match


def _odd_comparison(subject: RiskSubject) -> Iterator[Problem]:
    for name in subject.reading.lists:
        data = subject.reading.document.data[name].get(ONLY)
        for place, value in _texts((name, ONLY), data):
            if _compares(value):
                text = (
                    f"'{value}' is compared as it stands, sign for sign; values to leave out are"
                    " written {not: [A, B]}, comparisons {min: 1} and so on"
                )
                yield subject.problem(place, text)


def _texts(place: Place, data: Any) -> Iterator[tuple[Place, str]]:
    """The texts of conditions, each at its place."""
    if isinstance(data, str):
        yield place, data
    members = data.items() if isinstance(data, Mapping) else ()
    for name, member in enumerate(data) if isinstance(data, list) else members:
        yield from _texts((*place, name), member)


def _equal_levels(subject: RiskSubject) -> Iterator[Problem]:
    """A level that shows just what the one before it shows, of every resource."""
    rules = {} if subject.reading.problems else subject.reading.rules
    for lower, higher in pairwise(LEVELS) if rules else ():
        same = all(
            no_more(resource.sight(path, higher), resource.sight(path, lower))
            for resource in rules.values()
            for path in resource.fields
        ) and all(own.rows_of(higher).within(own.rows_of(lower)) for own in rules.values())
        if same:
            text = f"{higher} adds nothing to {lower} in any resource: both see the same"
            yield subject.problem((next(iter(rules)), higher.value), text, at_key=True)


# A field, and others that together tell it.
_TOLD: Sequence[tuple[str, str, tuple[str, ...]]] = (
    ("appointments", "status", ("displayStatus",)),
    ("invoices", "total", ("subtotal", "taxTotal")),
    ("invoices", "total", ("amountPaid", "balance")),
)


def _told_elsewhere(subject: RiskSubject) -> Iterator[Problem]:
    """What is hidden at a level, and told by other fields there."""
    for name, path, others in () if subject.reading.problems else _TOLD:
        rules: ResourceRules = subject.reading.rules[name]
        for level in LEVELS:
            seen = all(rules.sight(other, level) is WHOLE for other in others)
            if seen and rules.sight(path, level) is not WHOLE:
                verb = "tell" if len(others) > 1 else "tells"
                text = f"{path} is hidden from {level}, which {' and '.join(others)} {verb} it"
                yield subject.problem(subject.reading.lists[name].opens[others[-1]][1], text)
                break


_WARNING, _NOTE = Severity.WARNING, Severity.NOTE
RISKS: Sequence[Check[RiskSubject]] = (
    Check(
        "personal-at-basic",
        "what reaches a person, at BASIC",
        "Every key sees BASIC: move the field to a higher level, or show it there under a mask.",
        _WARNING,
        _personal_at_basic,
    ),
    Check(
        "opened-early",
        "a field at a lower level than usual",
        "Usual is what the shipped policy says; a mask at the lower level would show less.",
        _WARNING,
        _opened_early,
    ),
    Check(
        "weak-mask",
        "a mask that hardly hides",
        "Who sees most of a value can guess the rest, or find it in a directory.",
        _WARNING,
        _weak_mask,
    ),
    Check(
        "odd-comparison",
        "a text that looks like a comparison",
        "Without braces it is a value, which a record must have just so.",
        _WARNING,
        _odd_comparison,
    ),
    Check(
        "equal-levels",
        "two levels that see the same",
        "A key of the higher level gets nothing for it; maybe something was left out by mistake.",
        _WARNING,
        _equal_levels,
    ),
    Check(
        "told-elsewhere",
        "hidden, and told elsewhere",
        "What other fields tell is hidden only together with them.",
        _WARNING,
        _told_elsewhere,
    ),
)


@dataclass(frozen=True, slots=True)
class _SurveySubject:
    """A policy that can be used, and what the practice system fills and leaves out."""

    policy: Policy
    survey: Survey


def _never_gets_out(subject: _SurveySubject) -> Iterator[Problem]:
    for left in subject.survey.left_out:
        text = f"{left.source} has what no field is made of, which never gets out:"
        yield Problem(left.file, left.line, left.column, f"{text} {', '.join(left.names)}")


def _never_filled(subject: _SurveySubject) -> Iterator[Problem]:
    policy, filled = subject.policy, subject.survey.filled
    spots = spots_of(Path(policy.file).read_bytes(), policy.file).opened
    for (name, path), spot in sorted(spots.items(), key=lambda item: item[1]):
        if path not in filled.get(name, ()) and policy.rules[name].opened_at(path) is not None:
            text = f"{name}.{path} is open, and nothing in the mapping fills it"
            yield Problem(policy.file, *spot, text)


BACKEND_CHECKS: Sequence[Check[_SurveySubject]] = (
    Check(
        "unserved-condition",
        "a condition that the practice system cannot serve",
        "The gateway would not start: change the mapping as it says, or take the condition out.",
    ),
    Check(
        "never-filled",
        "open, and never filled",
        "Partners get null there, until the mapping says where the field comes from.",
        _NOTE,
        _never_filled,
    ),
    Check(
        "never-gets-out",
        "what no field is made of",
        "Only what the mapping makes a field of can be opened at all.",
        _NOTE,
        _never_gets_out,
    ),
)
CASE_CHECKS: Sequence[Check[Any]] = (
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
)
CHECKS: Mapping[str, Check[Any]] = by_code(
    FILE_CHECKS, POLICY_CHECKS, RISKS, CASE_CHECKS, BACKEND_CHECKS
)


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
        reading = read_rules(lambda: read_document(path))
        usual = load_policy(shipped_policy(), _ignored).rules
        warnings = tuple(sorted(set(run(RISKS, RiskSubject(reading, usual)))))
        policy = reading.policy(_ignored)
    except DocumentErrors as error:
        return Checked(file=str(path), errors=error.problems, warnings=warnings)
    return Checked(file=str(path), warnings=warnings, policy=policy)


def notes_of(policy: Policy, survey: Survey) -> tuple[Problem, ...]:
    """Notes at their places in the mapping and in the policy, in the order of each file."""
    return tuple(run(BACKEND_CHECKS, _SurveySubject(policy, survey)))


def _ignored(trouble: Trouble) -> None:
    pass
