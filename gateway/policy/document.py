"""Reads the policy file: a policy, or everything that is wrong with it, each at its place."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adapters.base import Report
from adapters.document import Document, forgiving, parse_document, read_document
from adapters.problems import DocumentErrors, Problem, did_you_mean
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED, RESOURCES
from gateway.policy.lists import NEVER, Lists
from gateway.policy.notes import Notes
from gateway.policy.only import ONLY, read_only
from gateway.policy.policy import Policy, compile_policy
from gateway.policy.rules import ResourceRules, Rules

VERSION = 1

_BY_NAME = {resource.name: resource for resource in GOVERNED}
_WHOLE = {resource.name for resource in RESOURCES if not resource.governed}
_MEMBERS = (*(level.value for level in LEVELS), NEVER, ONLY)


def load_policy(path: Path, report: Report) -> Policy:
    """The policy in the file at `path`; DocumentErrors with every problem where it is none.

    `report` is called for each value of the practice system that a redactor could not use.
    """
    return _policy(lambda: read_document(path), report)


def parse_policy(content: bytes, file: str, report: Report, like: Policy | None = None) -> Policy:
    """The same for bytes that were read already; views that `like` has are taken from there."""
    return _policy(lambda: parse_document(content, file), report, like)


def _policy(read: Callable[[], Document], report: Report, like: Policy | None = None) -> Policy:
    try:
        document, flaws = forgiving(read)
    except DocumentErrors as error:
        raise DocumentErrors(map(with_remedy, error.problems)) from error
    notes = Notes(document)
    rules = _Reading(notes).rules()
    if flaws or notes.problems:
        raise DocumentErrors([*flaws, *notes.problems])
    digest = hashlib.sha256(document.content).hexdigest()
    return compile_policy(document.file, digest, rules, report, like)


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
    reading = _Reading(Notes(document))
    reading.rules()
    marks, keys = document.marks, document.keys
    spots = Spots({}, {}, {})
    for name, lists in reading.lists.items():
        for path, (_, place) in lists.opens.items():
            spots.opened[name, path] = marks[place]
        for path, (_, _, place) in lists.masks.items():
            spots.masked[name, path] = keys[place]
        for level in LEVELS:
            place = (name, ONLY, level.value)
            if (name, ONLY) in keys:
                spots.only[name, level] = keys.get(place, keys[name, ONLY])
    return spots


def with_remedy(problem: Problem) -> Problem:
    """The reader's complaint about `[id, lines[].id]`, with what it takes to please it."""
    if not problem.text.endswith("expected ',' or ']', but got '['"):
        return problem
    text = f'{problem.text}; a path with [] stands in quotes, such as "lines[].id"'
    return replace(problem, text=text, code="unquoted-path")


class _Reading:
    """One walk through a document."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.lists: dict[str, Lists] = {}

    def rules(self) -> Rules:
        data = self.notes.document.data
        if not isinstance(data, dict):
            text = "a policy begins with version: 1, then names each resource"
            self.notes.say((), "no-policy", text)
            return {}
        self.version(data)
        meant = {self.stranger(name) for name in data if name not in {"version", *_BY_NAME}}
        rules: dict[str, ResourceRules] = {}
        for name, resource in _BY_NAME.items():
            if name in data:
                rules[name] = self.resource(resource, data[name])
            elif name not in meant:
                text = f"{name} is missing; add it with its lists BASIC, STANDARD and FULL"
                self.notes.absent((), "missing-resource", text)
        return rules

    def version(self, data: dict[str, Any]) -> None:
        version = data.get("version")
        if "version" not in data:
            text = f"version is missing; write version: {VERSION}"
            self.notes.absent((), "bad-version", text)
        elif version != VERSION or not isinstance(version, int) or isinstance(version, bool):
            self.notes.say(("version",), "bad-version", f"version must be {VERSION}")

    def stranger(self, name: str) -> str:
        """Says what is wrong with a name that is no governed resource; what it was meant to be."""
        if name in _WHOLE:
            text = f"{name} is always shown whole; take it out"
            self.notes.say((name,), "whole-resource", text, at_key=True)
            return ""
        hint = did_you_mean(name, _BY_NAME)
        text = f"{name} is not a resource{hint or _one_of(_BY_NAME)}"
        self.notes.say((name,), "unknown-resource", text, at_key=True)
        return suggested(hint)

    def resource(self, resource: Resource, data: Any) -> ResourceRules:
        place = (resource.name,)
        if not isinstance(data, dict):
            text = f"{resource.name} must hold the lists BASIC, STANDARD and FULL"
            self.notes.say(place, "bad-resource", text)
            return ResourceRules({}, {})
        lists = self.lists[resource.name] = Lists(self.notes, resource)
        meant = {self.no_member((*place, name)) for name in data if name not in _MEMBERS}
        for name, listed in data.items():
            if name != ONLY and (name in _MEMBERS or isinstance(listed, list)):
                lists.read((*place, name), listed)
        for level in LEVELS:
            if level.value not in data and level.value not in meant:
                text = (
                    f"{resource.name} has no list {level.value}; write {level.value}: [] for none"
                )
                self.notes.absent(place, "missing-level", text)
        rules = ResourceRules(lists.sights(), {})
        if ONLY not in data:
            return rules
        return replace(rules, rows=read_only(self.notes, resource, data[ONLY], rules))

    def no_member(self, place: tuple[str, str]) -> str:
        hint = did_you_mean(place[1], _MEMBERS)
        text = f"{place[1]} is not a level{hint or _one_of(_MEMBERS)}"
        self.notes.say(place, "unknown-level", text, at_key=True)
        return suggested(hint)


def suggested(hint: str) -> str:
    """The word that a `did you mean` names."""
    return hint.removeprefix(" (did you mean ").removesuffix("?)")


def _one_of(names: Iterable[str]) -> str:
    return f"; it must be one of {', '.join(names)}"
