"""What a policy decides, in plain words: for people who read it, and no YAML."""

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

from gateway.contract import fields as formats
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Field, Resource
from gateway.policy.masks import Mask
from gateway.policy.rows import Rows, Value, Wanted, shown
from gateway.policy.rules import ResourceRules, Sight

# What a level is, said to somebody who has never seen a key.
ABOUT_LEVELS = (
    "Each partner has a key, and the clinic gives each key a level; a key may have another level"
    " for a single kind of record.",
    "BASIC is the least; STANDARD sees what BASIC sees, and more; FULL sees what STANDARD sees, and"
    " more.",
    "whole: the value as it is. hidden: the answer does not hold the field at all. Any other word"
    " is a mask, which shows a part of the value.",
    "A field such as lines[].total is the total of each item in the list lines. What a partner may"
    " ask for at all is decided by the permissions of the key.",
)

# The parts of a sentence about row conditions, in one language.
Phrases = Mapping[str, str]
ENGLISH: Phrases = {
    "is": "{field} is {tests}",
    "and": "{first} and {last}",
    "next": "{first}, and {last}",
    "or": "{first} or {last}",
    "not": "not {value}",
    "none": "nothing at all",
    "at least": "at least {value}",
    "more than": "more than {value}",
    "at most": "at most {value}",
    "less than": "less than {value}",
    "from": "from {value}",
    "after": "after {value}",
    "up to": "up to {value}",
    "before": "before {value}",
}


def sight_in_words(sight: Sight) -> str:
    """`whole`, `hidden`, or the mask as the policy file has it."""
    return str(sight) if isinstance(sight, Mask) else sight.value


def kind_of(sight: Sight) -> str:
    """`whole`, `masked` or `hidden`."""
    return "masked" if isinstance(sight, Mask) else sight.value


def mask_in_words(mask: Mask) -> str:
    """What a mask shows."""
    return mask.kind.says.replace("{n}", str(mask.argument))


def masks_of(rules: Iterable[ResourceRules]) -> list[Mask]:
    """Every mask that stands in the rules, once, in the order of their spelling."""
    found = {
        str(sight): sight
        for each in rules
        for sights in each.fields.values()
        for sight in sights
        if isinstance(sight, Mask)
    }
    return [found[spelt] for spelt in sorted(found)]


def row_sentences(resource: Resource, rules: ResourceRules) -> list[tuple[AccessLevel, str]]:
    """For each level which records exist for it; nothing where all do for every level."""
    if not any(rules.rows_of(level) for level in LEVELS):
        return []
    return [(level, _sentence(resource, rules.rows_of(level))) for level in LEVELS]


def _sentence(resource: Resource, rows: Rows) -> str:
    return f"only records whose {conditions(resource, rows)}" if rows else "all records"


def conditions(resource: Resource, rows: Rows, phrases: Phrases = ENGLISH) -> str:
    """`status is VALIDATED, and total is at least 10.00`."""
    parts = (
        phrases["is"].format(
            field=name, tests=joined(_tests(resource.at(name), test, phrases), phrases["and"])
        )
        for name, test in rows.wanted.items()
    )
    return joined(parts, phrases["next"])


def joined(parts: Iterable[str], phrase: str) -> str:
    """One text of several; `phrase` says how two are joined."""
    return reduce(lambda first, last: phrase.format(first=first, last=last), parts)


def _tests(field: Field, test: Wanted, phrases: Phrases) -> Iterator[str]:
    is_time = field.format in (formats.DAY, formats.INSTANT)
    if test.allowed is not None:
        yield _either(field, filter(test.admits, test.allowed), phrases)
        return
    if test.barred:
        yield phrases["not"].format(value=_either(field, test.barred, phrases))
    if test.low is not None:
        word = "at least" if test.low.included else "more than"
        if is_time:
            word = "from" if test.low.included else "after"
        yield phrases[word].format(value=_one(field, test.low.value))
    if test.high is not None:
        word = "at most" if test.high.included else "less than"
        if is_time:
            word = "up to" if test.high.included else "before"
        yield phrases[word].format(value=_one(field, test.high.value))


def _either(field: Field, values: Iterable[Value], phrases: Phrases) -> str:
    found = [_one(field, value) for value in sorted(values)]
    if not found:
        return phrases["none"]
    *first, last = found
    return phrases["or"].format(first=", ".join(first), last=last) if first else last


def _one(field: Field, value: Value) -> str:
    wire = shown(field, value)
    if isinstance(wire, bool):
        return "true" if wire else "false"
    return str(wire)


def printable(text: str) -> str:
    """The text with a blank for each letter that is none to the eye, such as control characters."""
    return "".join(each if each.isprintable() else " " for each in text)
