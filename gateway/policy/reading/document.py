"""Reads policy files, and tells all that is wrong with one, each problem at its place.

It also writes rules as the text of a policy file, for the store, and reads that back. Equal rules
give equal text. What two policies both show may need more than a policy file may say: two masks on
one field, a field that is hidden again at a higher level (`hidden` as its mask), a condition on a
hidden field, or one that no record meets (`[]`).

The contract may have changed since a policy ran. So reading it back refuses nothing that it says,
and never opens more than before.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from adapters.base import Report
from adapters.documents.document import Document, ProblemList, parse_document, read_document
from adapters.documents.problems import DocumentErrors, Problem, hint, nearest
from gateway.contract.access import LEVELS
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED, RESOURCES
from gateway.policy.policy import (
    HIDDEN,
    WHOLE,
    Policy,
    ResourceRules,
    Rules,
    Version,
    compile_policy,
)
from gateway.policy.reading.resource import NEVER, ONLY, RulesReader
from gateway.policy.rows import conditions_in_file, path_in_list

VERSION = 1
# In bytes. What two files of the largest size both say may be longer than either.
LARGEST_KEPT = 1024 * 1024

_BY_NAME = {resource.name: resource for resource in GOVERNED}
_TOP = ("version", *_BY_NAME)
_WHOLE = {resource.name for resource in RESOURCES if not resource.governed}
_LEVELS = [level.value for level in LEVELS]
_MEMBERS = (*_LEVELS, NEVER, ONLY)


def load_policy(path: Path, report: Report) -> Policy:
    """Returns the policy in a file; raises DocumentErrors. `report` is told of unusable values."""
    return Reading(read_document(path, flawed=True)).policy(report)


def parse_policy(content: bytes, file: str, report: Report, like: Policy | None = None) -> Policy:
    """Returns the policy in these bytes; equal views are taken from the policy `like`."""
    return Reading(parse_document(content, file, flawed=True)).policy(report, like)


class Reading:
    """What a document says: its `rules`, and its `problems`.

    What is wrong opens nothing: a field that is not named is hidden, and an unreadable condition
    admits no record. `lists` has where the fields of each resource are named.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.lists: dict[str, RulesReader] = {}
        self._noted = ProblemList(document)
        data = document.data if isinstance(document.data, dict) else {"": None}
        if data.keys().isdisjoint(_BY_NAME) and not data.keys() <= {"version"}:
            text = "a policy begins with version: 1, then names each resource; is this its file?"
            self._noted.say((), "no-policy", text)
        else:
            self._compare(data)
        self.rules: Rules = {
            name: self._resource(resource, data) for name, resource in _BY_NAME.items()
        }
        self.problems = (*document.flaws, *self._noted.problems)

    def policy(self, report: Report, like: Policy | None = None) -> Policy:
        """Returns the policy; raises DocumentErrors where anything is wrong with it."""
        if self.problems:
            raise DocumentErrors(self.problems)
        document, digest = self.document, sha256(self.document.content).hexdigest()
        version = Version(hash=digest, content=document.content, file=document.file)
        return compile_policy(version, self.rules, report, like)

    def _compare(self, data: Mapping[str, Any]) -> None:
        """Reports names at the left edge that are unknown, and those that are missing."""
        meant = {self._stranger(name) for name in data if name not in _TOP}
        meant |= {name for group in data.values() if isinstance(group, dict) for name in group}
        version = data.get("version")
        if "version" not in data and "version" not in meant:
            text = f"version is missing; write version: {VERSION}"
            self._noted.absent((), "bad-version", text)
        elif "version" in data and (version != VERSION or type(version) is not int):
            self._noted.say(("version",), "bad-version", f"version must be {VERSION}")
        for name in _BY_NAME.keys() - data.keys() - meant:
            text = f"{name} is missing; add it with its lists BASIC, STANDARD and FULL"
            self._noted.absent((), "missing-resource", text)

    def _stranger(self, *place: str) -> str:
        """Reports a name that is unknown at its place; returns what it was probably meant to be."""
        name, is_resource = place[-1], len(place) == 1
        kind, known = ("resource", _TOP) if is_resource else ("level", _MEMBERS)
        code, text = f"unknown-{kind}", f"{name} is not a {kind}{hint(name, known)}"
        if is_resource and name in _WHOLE:
            code, text = "whole-resource", f"{name} is always shown whole; take it out"
        elif is_resource and name in _MEMBERS:
            code = "indentation"
            text = f"{name} stands under a resource: indent it by two blanks"
        elif name in _BY_NAME:
            code = "indentation"
            text = f"{name} is a resource: its name begins at the left edge, without blanks"
        self._noted.say(place, code, text, at_key=True)
        return nearest(name, known)

    def _resource(self, resource: Resource, within: Mapping[str, Any]) -> ResourceRules:
        place, data = (resource.name,), within.get(resource.name)
        lists = RulesReader(self._noted, resource)
        if not isinstance(data, dict):
            # where its lists are at the left edge, that is reported instead
            if data is not None or (place[0] in within and within.keys().isdisjoint(_MEMBERS)):
                text = "must hold the lists BASIC, STANDARD and FULL, each in a line below it"
                self._noted.say(place, "bad-resource", f"{resource.name} {text}")
            return ResourceRules(lists.sights(), {})
        self.lists[resource.name] = lists
        meant = {self._stranger(*place, name) for name in data if name not in _MEMBERS}
        for name, listed in data.items():
            if name != ONLY and (name in _MEMBERS or isinstance(listed, list)):
                lists.read((*place, name), listed)
        for level in _LEVELS:
            if level not in data and level not in meant:
                text = f"{resource.name} has no list {level}; write {level}: [] for none"
                self._noted.absent(place, "missing-level", text)
        lists.compare()
        return ResourceRules(lists.sights(), lists.only(data[ONLY]) if ONLY in data else {})


Spot = tuple[int, int]  # a line and a column, counted from 1
MASK = "mask"
# (resource, field) -> where it opens; (resource, MASK, field) and (resource, ONLY, level) likewise
Spots = Mapping[tuple[str, ...], Spot]


def spots_of(content: bytes) -> Spots:
    """Returns where the text of a policy says what; nothing for a text that no file could hold."""
    try:
        document = parse_document(content, "")
    except DocumentErrors:
        return {}
    marks, keys, spots = document.marks, document.keys, dict[tuple[str, ...], Spot]()
    for name, lists in Reading(document).lists.items():
        spots |= {(name, path): marks[place] for path, (_, place) in lists.opens.items()}
        spots |= {(name, MASK, path): keys[place] for path, (_, _, place) in lists.masks.items()}
        for level in LEVELS if (name, ONLY) in keys else ():
            spots[name, ONLY, level] = keys.get((name, ONLY, level.value), keys[name, ONLY])
    return spots


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
            before, sight = (HIDDEN, *rules.fields[path])[number : number + 2]
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
    """Returns the rules of a policy that ran; raises DocumentErrors for a damaged text.

    A text that was cut off may show more than the whole one.
    """
    if sha256(version.content).hexdigest() != version.hash:
        raise DocumentErrors([Problem(version.file, 0, 0, "its text has another hash")])
    return Reading(parse_document(version.content, "", LARGEST_KEPT, flawed=True)).rules
