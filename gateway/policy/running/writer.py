"""Writes rules as the text of a policy file: equal rules give equal text, byte for byte.

The loader reads the text back to equal rules wherever a policy file can say them. What two policies
both let be seen may be more than that: two masks in one field, a field that is hidden again at a
higher level (`hidden` stands for its mask), a condition on a field that is not seen, or one that no
record meets (`[]`). `gateway.policy.running.stored` reads these too.
"""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

from gateway.contract import fields as formats
from gateway.contract.access import LEVELS
from gateway.contract.fields import Field, Resource
from gateway.contract.resources import GOVERNED
from gateway.policy.rows import Bound, Rows, Value, Wanted
from gateway.policy.rules import HIDDEN, WHOLE, ResourceRules, Rules

# What JSON leaves as it is and YAML does not take.
_unprintable = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]").sub


def write_rules(rules: Rules) -> str:
    """The text of a policy file with these rules, resources and fields in the contract's order."""
    parts = [f"version: 1\n{''.join(_resource(each, rules[each.name]))}" for each in GOVERNED[:1]]
    parts += ["".join(_resource(each, rules[each.name])) for each in GOVERNED[1:]]
    return "".join(parts)


def _resource(resource: Resource, rules: ResourceRules) -> Iterator[str]:
    yield f"{resource.name}:\n"
    for number, level in enumerate(LEVELS):
        entries = [each for path in resource.paths for each in _at(rules, path, number)]
        yield f"  {level}: [{', '.join(entries)}]\n"
    never = [_quoted(path) for path in resource.paths if rules.opened_at(path) is None]
    yield f"  never: [{', '.join(never)}]\n"
    yield from _only(resource, rules)


def _at(rules: ResourceRules, path: str, number: int) -> Iterator[str]:
    """What the list of a level says of a field: nothing, that it opens, or its mask from here."""
    sight = rules.fields[path][number]
    before = rules.fields[path][number - 1] if number else HIDDEN
    if sight == before:
        return
    if sight is WHOLE:
        yield _quoted(path)
    else:
        yield f"{_quoted(path)}: {'hidden' if sight is HIDDEN else sight}"


def _quoted(path: str) -> str:
    return f'"{path}"' if "[" in path else path


def _only(resource: Resource, rules: ResourceRules) -> Iterator[str]:
    rows = [rules.rows_of(level) for level in LEVELS]
    if not any(rows):
        return
    if rows[0] == rows[1] == rows[2]:
        yield f"  only: {_rows(resource, rows[0])}\n"
        return
    yield "  only:\n"
    for level, each in zip(LEVELS, rows, strict=True):
        if each:
            yield f"    {level}: {_rows(resource, each)}\n"


def _rows(resource: Resource, rows: Rows) -> str:
    wanted = [
        f"{path}: {_wanted(resource.at(path), rows.wanted[path])}"
        for path in resource.paths
        if path in rows.wanted
    ]
    return f"{{{', '.join(wanted)}}}"


def _wanted(field: Field, test: Wanted) -> str:
    if test.allowed is not None:
        return _list(field, frozenset(filter(test.admits, test.allowed)))
    words = [f"not: {_list(field, test.barred)}"] if test.barred else []
    words += [_bound(field, bound, *names) for bound, *names in _sides(test) if bound is not None]
    return f"{{{', '.join(words)}}}"


def _sides(test: Wanted) -> tuple[tuple[Bound | None, str, str], tuple[Bound | None, str, str]]:
    return (test.low, "min", "above"), (test.high, "max", "below")


def _bound(field: Field, bound: Bound, included: str, excluded: str) -> str:
    return f"{included if bound.included else excluded}: {_value(field, bound.value)}"


def _list(field: Field, values: frozenset[Value]) -> str:
    return f"[{', '.join(_value(field, each) for each in sorted(values))}]"


def _value(field: Field, value: Value) -> str:
    """The value exactly; what answers show of it may be rounded."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        plain = format(value.normalize() + 0, "f")
        return plain if field.format is formats.NUMBER else f'"{plain}"'
    if isinstance(value, datetime):
        return _text(value.replace(tzinfo=None).isoformat() + "Z")
    return _text(value if isinstance(value, str) else value.isoformat())


def _text(text: str) -> str:
    def escaped(found: re.Match[str]) -> str:
        return f"\\u{ord(found[0]):04X}"

    return _unprintable(escaped, json.dumps(text, ensure_ascii=False))
