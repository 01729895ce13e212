"""Reads the policy file: a policy, or everything that is wrong with it, each at its place."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adapters.base import Report
from adapters.documents.document import (
    Document,
    Place,
    ProblemList,
    forgiving,
    parse_document,
    read_document,
)
from adapters.documents.problems import DocumentErrors, Problem, hint, nearest
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED, RESOURCES
from gateway.policy.policy import Policy, compile_policy
from gateway.policy.reading.conditions import ONLY, read_only
from gateway.policy.reading.lists import NEVER, Lists
from gateway.policy.rules import ResourceRules, Rules

VERSION = 1

_BY_NAME = {resource.name: resource for resource in GOVERNED}
_WHOLE = {resource.name for resource in RESOURCES if not resource.governed}
_LEVELS = [level.value for level in LEVELS]
_MEMBERS = (*_LEVELS, NEVER, ONLY)
_OTHERS = {
    **dict.fromkeys(("records", "cases"), "the cases of one (policies.test.yaml)"),
    "backend": "the gateway's configuration",
    "resources": "a mapping",
}
# What is said of a policy instead of what the reader of files says of any file.
_WORDS: Mapping[str, str] = {
    "tag": "no word begins with ! (a tag): take it out; values to leave out are written"
    " {not: [A, B]}",
    "sign-at-start": "no word begins with this sign; a comparison is written {min: 1}, {above: 1},"
    " {max: 1} or {below: 1}",
    "text-behind": "nothing can stand behind the bracket or quote that closes: take it out, or"
    " begin a new line",
    "no-colon": "this line has no colon: write NAME: [field, field], or # before a note",
    "colon": "a colon needs a blank behind it: write NAME: [field, field]",
    "colon-twice": "a second colon stands in one line: a mask is written {phone: last(2)}, and only"
    " has a line of its own: only: {status: [ACTIVE]}",
    "cut-off": "the file ends in the middle of this line: its end seems to be missing",
    "not-yaml": "nobody can tell what is meant here; write the line anew, like those above it",
    "dash": "each field of a list in lines stands in a line of its own, behind a dash and a blank,"
    " all equally far to the right",
}
# What a cut leaves of the last name, and of all that stood behind it.
_CUT = {"missing-level", "missing-field", "missing-resource", "bad-level", "bad-resource"}


def load_policy(path: Path, report: Report) -> Policy:
    """The policy in the file at `path`; DocumentErrors with every problem where it is none.

    `report` is called for each value of the practice system that a redactor could not use.
    """
    return read_rules(lambda: read_document(path)).policy(report)


def parse_policy(content: bytes, file: str, report: Report, like: Policy | None = None) -> Policy:
    """The same for bytes that were read already; views that `like` has are taken from there."""
    return read_rules(lambda: parse_document(content, file)).policy(report, like)


def read_rules(read: Callable[[], Document]) -> "Reading":
    """What the document that `read` gives says; DocumentErrors where it has no data at all."""
    try:
        document, flaws = forgiving(read)
    except DocumentErrors as error:
        raise DocumentErrors(map(_in_own_words, error.problems)) from error
    return Reading(document, map(_in_own_words, flaws))


def _in_own_words(problem: Problem) -> Problem:
    return replace(problem, text=_WORDS.get(problem.code, problem.text))


class Reading:
    """One walk through a document: `rules` as far as they were read, and all that is wrong.

    `lists` says where the fields of each resource stand.
    """

    def __init__(self, document: Document, flaws: Iterable[Problem] = ()) -> None:
        self.document = document
        self.noted = ProblemList(document)
        self.lists: dict[str, Lists] = {}
        self.rules = self._rules()
        self.problems = (*flaws, *self._cut(), *self.noted.problems)

    def policy(self, report: Report, like: Policy | None = None) -> Policy:
        """The policy that was read; DocumentErrors where anything is wrong with it."""
        if self.problems:
            raise DocumentErrors(self.problems)
        digest = hashlib.sha256(self.document.content).hexdigest()
        return compile_policy(self.document.file, digest, self.rules, report, like)

    def _rules(self) -> Rules:
        data = self.document.data
        if not isinstance(data, dict):
            text = "a policy begins with version: 1, then names each resource"
            self.noted.say((), "no-policy", text)
            return {}
        other = next((file for name, file in _OTHERS.items() if name in data), "")
        if other and data.keys().isdisjoint(_BY_NAME):
            text = f"this is no policy: it looks like {other}; maybe two files were swapped"
            self.noted.say((), "no-policy", text)
            return {}
        meant = {self._stranger(name) for name in data if name not in {"version", *_BY_NAME}}
        meant |= {name for group in data.values() if isinstance(group, dict) for name in group}
        if "version" not in meant:
            self._version(data)
        rules: dict[str, ResourceRules] = {}
        for name, resource in _BY_NAME.items():
            if name in data:
                rules[name] = self._resource(resource, data[name])
            elif name not in meant:
                text = f"{name} is missing; add it with its lists BASIC, STANDARD and FULL"
                self.noted.absent((), "missing-resource", text)
        return rules

    def _version(self, data: dict[str, Any]) -> None:
        version = data.get("version")
        if "version" not in data:
            text = f"version is missing; write version: {VERSION}"
            self.noted.absent((), "bad-version", text)
        elif version != VERSION or not isinstance(version, int) or isinstance(version, bool):
            self.noted.say(("version",), "bad-version", f"version must be {VERSION}")

    def _stranger(self, name: str) -> str:
        """Says what is wrong with a name that is no governed resource; what it was meant to be."""
        meant = ""
        if name in _WHOLE:
            code, text = "whole-resource", f"{name} is always shown whole; take it out"
        elif name == ONLY:
            text = "only stands under a resource, indented: under each one that it is for"
            code = "only-outside"
        elif name in _MEMBERS:
            code, text = "indentation", f"{name} stands under a resource: indent it by two blanks"
        elif name.lower() == "version":
            code, text, meant = "bad-version", f"{name} is written version: 1", "version"
        else:
            code, text = "unknown-resource", f"{name} is not a resource{hint(name, _BY_NAME)}"
            meant = nearest(name, _BY_NAME)
        self.noted.say((name,), code, text, at_key=True)
        return meant

    def _resource(self, resource: Resource, data: Any) -> ResourceRules:
        place = (resource.name,)
        if not isinstance(data, dict):
            self._no_group(resource, data)
            return ResourceRules({}, {})
        lists = self.lists[resource.name] = Lists(self.noted, resource)
        meant = {self._no_member((*place, name)) for name in data if name not in _MEMBERS}
        for name, listed in data.items():
            if name != ONLY and (name in _MEMBERS or isinstance(listed, list)):
                lists.read((*place, name), listed)
        for level in _LEVELS:
            if level not in data and level not in meant:
                text = f"{resource.name} has no list {level}; write {level}: [] for none"
                self.noted.absent(place, "missing-level", text)
        rules = ResourceRules(lists.sights(), {})
        if ONLY not in data:
            return rules
        return replace(rules, rows=read_only(self.noted, resource, data[ONLY], rules))

    def _no_group(self, resource: Resource, data: Any) -> None:
        """Something else stands where the lists of a resource should."""
        if data is None and any(name in self.document.data for name in _MEMBERS):
            return  # its lists stand at the left edge, which was said
        code, text = "bad-resource", "must hold the lists BASIC, STANDARD and FULL"
        if isinstance(data, list):
            text = "holds lists, each with its name: write BASIC: [id] in a line below it"
            code = "list-for-group"
        self.noted.say((resource.name,), code, f"{resource.name} {text}")

    def _no_member(self, place: tuple[str, str]) -> str:
        """Says what is wrong with a name that is none of a resource's; what it was meant to be."""
        name = place[1]
        right = next((known for known in _MEMBERS if known.lower() == name.lower()), "")
        if name in _BY_NAME:
            text = f"{name} is a resource: its name begins at the left edge, without blanks"
            code = "indentation"
        elif right:
            code, text = "level-case", f"{name} is written {right}"
        else:
            code, text = "unknown-level", f"{name} is not a level{hint(name, _MEMBERS)}"
            right = nearest(name, _MEMBERS)
        self.noted.say(place, code, text, at_key=True)
        return right

    def _cut(self) -> list[Problem]:
        """Says that the file was cut off, and takes back all that follows from it."""
        data, content, names = self.document.data, self.document.content, list(_BY_NAME)
        last = list(data)[-1] if isinstance(data, dict) and data else ""
        absent = [name for name in names if isinstance(data, dict) and name not in data]
        if last not in _BY_NAME or absent != names[len(names) - len(absent) :]:
            return []
        if (not absent and content.endswith(b"\n")) or not _is_torn(data[last]):
            return []

        def is_moot(place: Place, code: str) -> bool:
            return code in _CUT and (not place or place[0] in {"", last, *absent})

        self.noted.forget(is_moot)
        lines = content.decode("utf-8", "replace").rstrip().splitlines()
        text = f"the file ends in the middle of {last}: its end seems to be missing"
        return [Problem(self.document.file, len(lines), len(lines[-1]) + 1, text, "cut-off")]


def _is_torn(group: Any) -> bool:
    """Whether the last resource lacks its last levels, and nothing below them was misspelt."""
    if not isinstance(group, dict) or not group:
        return group is None
    named = [level for level in group if level in _LEVELS]
    stops = named != _LEVELS or group[named[-1]] is None
    return stops and list(group) == _LEVELS[: len(group)]


Spot = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Spots:
    """Where a policy file decides: lines and columns, counted from 1.

    `opened` and `masked` by resource and field, `only` by resource and level.
    """

    opened: dict[tuple[str, str], Spot]
    masked: dict[tuple[str, str], Spot]
    only: dict[tuple[str, AccessLevel], Spot]


def spots_of(content: bytes, file: str) -> Spots:
    """Where a sound policy file says what; DocumentErrors of one that cannot be read."""
    document = parse_document(content, file)
    marks, keys, spots = document.marks, document.keys, Spots({}, {}, {})
    for name, lists in Reading(document).lists.items():
        for path, (_, place) in lists.opens.items():
            spots.opened[name, path] = marks[place]
        for path, (_, _, place) in lists.masks.items():
            spots.masked[name, path] = keys[place]
        if (name, ONLY) in keys:
            for level in LEVELS:
                spots.only[name, level] = keys.get((name, ONLY, level.value), keys[name, ONLY])
    return spots
