"""Writes rules as the text of a policy file: equal rules give equal text, byte for byte.

The loader reads the text back to equal rules wherever a policy file can say them. What two policies
both let be seen may be more than that: two masks in one field, a field that is hidden again at a
higher level (`hidden` stands for its mask), a condition on a field that is not seen, or one that no
record meets (`[]`). `gateway.policy.running.stored` reads these too.
"""

from collections.abc import Iterator

from gateway.contract.access import LEVELS
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED
from gateway.policy.rules import HIDDEN, WHOLE, ResourceRules, Rules
from gateway.policy.spelling import conditions_in_file, path_in_list


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
    never = [path_in_list(path) for path in resource.paths if rules.opened_at(path) is None]
    yield f"  never: [{', '.join(never)}]\n"
    yield from _only(resource, rules)


def _at(rules: ResourceRules, path: str, number: int) -> Iterator[str]:
    """What the list of a level says of a field: nothing, that it opens, or its mask from here."""
    sight = rules.fields[path][number]
    before = rules.fields[path][number - 1] if number else HIDDEN
    if sight == before:
        return
    if sight is WHOLE:
        yield path_in_list(path)
    else:
        yield f"{path_in_list(path)}: {'hidden' if sight is HIDDEN else sight}"


def _only(resource: Resource, rules: ResourceRules) -> Iterator[str]:
    rows = [rules.rows_of(level) for level in LEVELS]
    if not any(rows):
        return
    if rows[0] == rows[1] == rows[2]:
        yield f"  only: {conditions_in_file(resource, rows[0])}\n"
        return
    yield "  only:\n"
    for level, each in zip(LEVELS, rows, strict=True):
        if each:
            yield f"    {level}: {conditions_in_file(resource, each)}\n"
