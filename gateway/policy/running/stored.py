"""Reads back the rules of a policy that ran: never to more than they let be seen.

It was checked when it was taken. Since then the contract may have changed, and what two policies
both let be seen may be more than a policy file can say (see `gateway.policy.running.writer`). So
nothing is refused for what it says: a field that is not named is hidden, and where a condition
cannot be read no record exists.
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
from gateway.policy.rows import EVERY, NOTHING, Rows
from gateway.policy.rules import HIDDEN, WHOLE, ResourceRules, Rules, Sight, Sights
from gateway.policy.running.versions import Version

# Bytes: what two files of the largest size both say may take more room than either.
LARGEST = 1024 * 1024
_NO_RECORD = Rows({"id": NOTHING})
_ALL: Sights = (WHOLE, WHOLE, WHOLE)


def read_version(version: Version) -> Rules:
    """The rules of a policy that ran; DocumentErrors where its text is not the one that ran.

    The beginning of a text may be a policy that shows more than the whole.
    """
    if sha256(version.content).hexdigest() != version.hash:
        raise DocumentErrors([Problem(version.file, 0, 0, "its text has another hash")])
    return read_stored(version.content)


def read_stored(content: bytes) -> Rules:
    """The rules in the text of a policy that ran; DocumentErrors where it is no YAML."""
    document, _ = forgiving(lambda: parse_document(content, "", largest=LARGEST))
    data = document.data if isinstance(document.data, dict) else {}
    return {each.name: _resource(document, each, data.get(each.name)) for each in GOVERNED}


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
) -> Rows:
    if ONLY not in data:
        return EVERY
    written = data[ONLY]
    if isinstance(written, dict) and any(each.value in written for each in LEVELS):
        if level.value not in written:
            return EVERY
        written = written[level.value]
    if not isinstance(written, dict) or not written:
        return _NO_RECORD
    empty = {name for name, each in written.items() if each == []}
    rest = {name: each for name, each in written.items() if name not in empty}
    found = dict(_read(document, resource, rest).wanted) if rest else {}
    known = resource.paths
    return Rows(found | {name if name in known else "id": NOTHING for name in empty})


def _read(document: Document, resource: Resource, written: Mapping[str, Any]) -> Rows:
    """Conditions without levels, of whichever fields."""
    noted = ProblemList(document)
    seen = ResourceRules(dict.fromkeys(resource.paths, _ALL), {})
    rows = read_only(noted, resource, written, seen)
    return _NO_RECORD if noted.problems or not rows else rows[LEVELS[0]]
