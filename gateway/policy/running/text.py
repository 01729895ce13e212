"""Rules as the text of a policy file: written for the store, and read back from it.

Equal rules give equal text, byte for byte. The loader reads the text back to equal rules wherever a
policy file can say them. What two policies both show may need more than that: two masks in one
field, a field that is hidden again at a higher level (`hidden` stands for its mask), a condition on
a hidden field, or a condition that no record meets (`[]`).

A policy that ran was checked when it was taken, but the contract may have changed since. So reading
refuses nothing for what it says, and never opens more than before: a field that is not named is
hidden, and where a condition cannot be read no record exists.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from adapters.documents.document import Document, ProblemList, forgiving, parse_document
from adapters.documents.problems import DocumentErrors, Problem
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED
from gateway.policy.masks import Mask, read_mask
from gateway.policy.reading.conditions import ONLY, read_only
from gateway.policy.rows import EVERY, NOTHING, RowFilter, conditions_in_file, path_in_list
from gateway.policy.rules import HIDDEN, WHOLE, ResourceRules, Rules, Sight, Sights
from gateway.policy.running.versions import Version

# Bytes: what two files of the largest size both say may take more room than either.
LARGEST = 1024 * 1024
_NO_RECORD = RowFilter({"id": NOTHING})
_ALL: Sights = (WHOLE, WHOLE, WHOLE)


def write_rules(rules: Rules) -> str:
    """Returns the text of a policy file, resources and fields in the contract's order."""
    lines = (line for resource in GOVERNED for line in _written(resource, rules[resource.name]))
    return "version: 1\n" + "".join(lines)


def _written(resource: Resource, rules: ResourceRules) -> Iterator[str]:
    yield f"{resource.name}:\n"
    for number, level in enumerate(LEVELS):
        entries = [each for path in resource.paths for each in _entry(rules, path, number)]
        yield f"  {level}: [{', '.join(entries)}]\n"
    never = [path_in_list(path) for path in resource.paths if rules.opened_at(path) is None]
    yield f"  never: [{', '.join(never)}]\n"
    rows = [rules.rows_of(level) for level in LEVELS]
    if any(rows) and rows[0] == rows[1] == rows[2]:
        yield f"  only: {conditions_in_file(resource, rows[0])}\n"
    elif any(rows):
        yield "  only:\n"
        for level, each in zip(LEVELS, rows, strict=True):
            if each:
                yield f"    {level}: {conditions_in_file(resource, each)}\n"


def _entry(rules: ResourceRules, path: str, number: int) -> Iterator[str]:
    """Yields the entry in the list of a level, where the field opens or changes its mask."""
    sight = rules.fields[path][number]
    before = rules.fields[path][number - 1] if number else HIDDEN
    if sight is WHOLE and sight != before:
        yield path_in_list(path)
    elif sight != before:
        yield f"{path_in_list(path)}: {'hidden' if sight is HIDDEN else sight}"


def read_version(version: Version) -> Rules:
    """Returns the rules of a policy that ran; raises DocumentErrors where its text is damaged.

    The beginning of a text may be a policy that shows more than the whole text.
    """
    if sha256(version.content).hexdigest() != version.hash:
        raise DocumentErrors([Problem(version.file, 0, 0, "its text has another hash")])
    return read_stored(version.content)


def read_stored(content: bytes) -> Rules:
    """Returns the rules in a kept text; raises DocumentErrors where it is no YAML."""
    document, _ = forgiving(lambda: parse_document(content, "", largest=LARGEST))
    data = document.data if isinstance(document.data, dict) else {}
    return {
        resource.name: _resource(document, resource, data.get(resource.name))
        for resource in GOVERNED
    }


def _resource(document: Document, resource: Resource, data: Any) -> ResourceRules:
    if not isinstance(data, dict):
        return ResourceRules(dict.fromkeys(resource.paths, (HIDDEN, HIDDEN, HIDDEN)), {})
    steps = dict(_steps(data))
    fields = {path: _sights(steps, path) for path in resource.paths}
    rows = {level: found for level in LEVELS if (found := _rows(document, resource, data, level))}
    return ResourceRules(fields, rows)


def _steps(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, AccessLevel], Sight]]:
    """(path, level) -> what is seen of the field from that level on."""
    for level in LEVELS:
        listed = data.get(level.value)
        for item in listed if isinstance(listed, list) else ():
            if isinstance(item, dict):
                for path, written in item.items():
                    mask = read_mask(written)
                    yield (path, level), mask if isinstance(mask, Mask) else HIDDEN
            elif isinstance(item, str):
                yield (item, level), WHOLE


def _sights(steps: Mapping[tuple[str, AccessLevel], Sight], path: str) -> Sights:
    basic = steps.get((path, LEVELS[0]), HIDDEN)
    standard = steps.get((path, LEVELS[1]), basic)
    return basic, standard, steps.get((path, LEVELS[2]), standard)


def _rows(
    document: Document, resource: Resource, data: Mapping[str, Any], level: AccessLevel
) -> RowFilter:
    written = data.get(ONLY)
    if ONLY not in data:
        return EVERY
    if isinstance(written, dict) and any(level.value in written for level in LEVELS):
        if level.value not in written:
            return EVERY
        written = written[level.value]
    if not isinstance(written, dict) or not written:
        return _NO_RECORD
    empty = {name for name, each in written.items() if each == []}
    rest = {name: each for name, each in written.items() if name not in empty}
    wanted = dict(_read(document, resource, rest).tests) if rest else {}
    return RowFilter(wanted | {name if name in resource.paths else "id": NOTHING for name in empty})


def _read(document: Document, resource: Resource, written: Mapping[str, Any]) -> RowFilter:
    """Returns conditions without levels, on any field."""
    noted = ProblemList(document)
    seen = ResourceRules(dict.fromkeys(resource.paths, _ALL), {})
    rows = read_only(noted, resource, written, seen)
    return _NO_RECORD if noted.problems or not rows else rows[LEVELS[0]]
