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

from adapters.documents.document import Document, ProblemList, parse_document
from adapters.documents.problems import DocumentErrors, Problem
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED
from gateway.policy.masks import read_mask
from gateway.policy.policy import HIDDEN, WHOLE, ResourceRules, Rules, Sight, Sights
from gateway.policy.reading.resource import ONLY, RulesReader
from gateway.policy.rows import EVERY, NOTHING, RowFilter, conditions_in_file, path_in_list
from gateway.policy.running.versions import Version

# Bytes: what two files of the largest size both say may take more room than either.
LARGEST = 1024 * 1024
_NO_RECORD = RowFilter({"id": NOTHING})
_ALL: Sights = (WHOLE, WHOLE, WHOLE)


def write_rules(rules: Rules) -> str:
    """Returns the text of a policy file, resources and fields in the contract's order."""
    return "version: 1\n" + "".join(
        line for resource in GOVERNED for line in _written(resource, rules[resource.name])
    )


def _written(resource: Resource, rules: ResourceRules) -> Iterator[str]:
    yield f"{resource.name}:\n"
    for number, level in enumerate(LEVELS):
        entries = []
        for path in resource.paths:
            sights = HIDDEN, *rules.fields[path]
            before, sight = sights[number], sights[number + 1]
            if sight != before:  # the field opens, or changes its mask
                mask = "" if sight is WHOLE else f": {sight}"
                entries.append(f"{path_in_list(path)}{mask}")
        yield f"  {level}: [{', '.join(entries)}]\n"
    never = [path_in_list(path) for path in resource.paths if rules.opened_at(path) is None]
    yield f"  never: [{', '.join(never)}]\n"
    rows = [rules.rows_of(level) for level in LEVELS]
    if any(rows) and rows[0] == rows[1] == rows[2]:
        yield f"  only: {conditions_in_file(resource, rows[0])}\n"
    elif any(rows):
        yield "  only:\n"
        for level, own in zip(LEVELS, rows, strict=True):
            if own:
                yield f"    {level}: {conditions_in_file(resource, own)}\n"


def read_version(version: Version) -> Rules:
    """Returns the rules of a policy that ran; raises DocumentErrors where its text is damaged.

    The beginning of a text may be a policy that shows more than the whole text.
    """
    if sha256(version.content).hexdigest() != version.hash:
        raise DocumentErrors([Problem(version.file, 0, 0, "its text has another hash")])
    return read_stored(version.content)


def read_stored(content: bytes) -> Rules:
    """Returns the rules in a kept text; raises DocumentErrors where it is no YAML."""
    document = parse_document(content, "", LARGEST, flawed=True)
    data = document.data if isinstance(document.data, dict) else {}
    return {
        resource.name: _resource(document, resource, data.get(resource.name))
        for resource in GOVERNED
    }


def _resource(document: Document, resource: Resource, data: Any) -> ResourceRules:
    data = data if isinstance(data, dict) else {}
    seen: dict[str, Sight] = dict.fromkeys(resource.paths, HIDDEN)
    steps: list[dict[str, Sight]] = []
    for level in LEVELS:
        listed = data.get(level.value)
        for item in listed if isinstance(listed, list) else ():
            for path, written in item.items() if isinstance(item, dict) else [(item, WHOLE)]:
                if isinstance(path, str) and path in seen:
                    mask = written if written is WHOLE else read_mask(written)
                    seen[path] = HIDDEN if mask is None or isinstance(mask, str) else mask
        steps.append(dict(seen))
    basic, standard, full = steps
    fields = {path: (basic[path], standard[path], full[path]) for path in resource.paths}
    rows = {level: found for level in LEVELS if (found := _rows(document, resource, data, level))}
    return ResourceRules(fields, rows)


def _rows(
    document: Document, resource: Resource, data: Mapping[str, Any], level: AccessLevel
) -> RowFilter:
    written: Any = data.get(ONLY)
    by_level = isinstance(written, dict) and any(known.value in written for known in LEVELS)
    if ONLY not in data or (by_level and level.value not in written):
        return EVERY
    written = written[level.value] if by_level else written
    if not isinstance(written, dict) or not written:
        return _NO_RECORD
    rest = {name: values for name, values in written.items() if values != []}
    tests = {name if name in resource.paths else "id": NOTHING for name in written.keys() - rest}
    if rest:
        noted = ProblemList(document)
        seen = ResourceRules(dict.fromkeys(resource.paths, _ALL), {})
        rows = RulesReader(noted, resource).only(rest, seen)
        tests |= (_NO_RECORD if noted.problems or not rows else rows[LEVELS[0]]).tests
    return RowFilter(tests)
