"""Reads the policy file: a policy, or everything that is wrong with it, each at its place."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from adapters.base import Report
from adapters.documents.document import Document, forgiving, parse_document, read_document
from adapters.documents.problems import DocumentErrors, Problem, did_you_mean, nearest
from gateway.contract.access import LEVELS
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED, RESOURCES
from gateway.policy.policy import Policy, compile_policy
from gateway.policy.reading.cut_off import note_cut
from gateway.policy.reading.lists import NEVER, Lists
from gateway.policy.reading.notes import Notes
from gateway.policy.reading.only import ONLY, read_only
from gateway.policy.reading.reader_words import in_own_words
from gateway.policy.rules import ResourceRules, Rules

VERSION = 1

_BY_NAME = {resource.name: resource for resource in GOVERNED}
_WHOLE = {resource.name for resource in RESOURCES if not resource.governed}
_MEMBERS = (*(level.value for level in LEVELS), NEVER, ONLY)
_OTHERS = {
    "records": "the cases of one (policies.test.yaml)",
    "cases": "the cases of one (policies.test.yaml)",
    "backend": "the gateway's configuration",
    "resources": "a mapping",
}
_BY_LETTERS = {each.lower(): each for each in _MEMBERS}


def load_policy(path: Path, report: Report) -> Policy:
    """The policy in the file at `path`; DocumentErrors with every problem where it is none.

    `report` is called for each value of the practice system that a redactor could not use.
    """
    return _policy(lambda: read_document(path), report)


def parse_policy(content: bytes, file: str, report: Report, like: Policy | None = None) -> Policy:
    """The same for bytes that were read already; views that `like` has are taken from there."""
    return _policy(lambda: parse_document(content, file), report, like)


def _policy(read: Callable[[], Document], report: Report, like: Policy | None = None) -> Policy:
    reading = read_rules(read)
    if reading.problems:
        raise DocumentErrors(reading.problems)
    document = reading.notes.document
    digest = hashlib.sha256(document.content).hexdigest()
    return compile_policy(document.file, digest, reading.rules, report, like)


def read_rules(read: Callable[[], Document]) -> "Reading":
    """What the document that `read` gives says; DocumentErrors where it has no data at all."""
    try:
        document, flaws = forgiving(read)
    except DocumentErrors as error:
        raise DocumentErrors(map(in_own_words, error.problems)) from error
    return Reading(Notes(document), [*map(in_own_words, flaws)])


class Reading:
    """One walk through a document: `rules` as far as they were read, and all that is wrong.

    `lists` says where the fields of each resource stand.
    """

    def __init__(self, notes: Notes, flaws: Iterable[Problem] = ()) -> None:
        self.notes = notes
        self.lists: dict[str, Lists] = {}
        self.rules = self._rules()
        note_cut(notes)
        self.problems = (*flaws, *notes.problems)

    def _rules(self) -> Rules:
        data = self.notes.document.data
        if not isinstance(data, dict):
            text = "a policy begins with version: 1, then names each resource"
            self.notes.say((), "no-policy", text)
            return {}
        if other := _other_file(data):
            text = f"this is no policy: it looks like {other}; maybe two files were swapped"
            self.notes.say((), "no-policy", text)
            return {}
        meant = {self.stranger(name) for name in data if name not in {"version", *_BY_NAME}}
        meant |= {name for group in data.values() if isinstance(group, dict) for name in group}
        if "version" not in meant:
            self.version(data)
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
        if name in _MEMBERS:
            self.outside(name)
            return ""
        if name.lower() == "version":
            self.notes.say((name,), "bad-version", f"{name} is written version: 1", at_key=True)
            return "version"
        hint = did_you_mean(name, _BY_NAME) or _one_of(_BY_NAME)
        text = f"{name} is not a resource{hint}"
        self.notes.say((name,), "unknown-resource", text, at_key=True)
        return nearest(name, _BY_NAME)

    def outside(self, name: str) -> None:
        """A list, or `only`, that stands where the names of resources do."""
        if name == ONLY:
            text = "only stands under a resource, indented: under each one that it is for"
            self.notes.say((name,), "only-outside", text, at_key=True)
            return
        text = f"{name} stands under a resource: indent it by two blanks"
        self.notes.say((name,), "indentation", text, at_key=True)

    def no_group(self, resource: Resource, data: Any) -> None:
        """Something else stands where the lists of a resource should."""
        name, place = resource.name, (resource.name,)
        everything = self.notes.document.data
        if data is None and any(each in everything for each in _MEMBERS):
            return  # its lists stand at the left edge, which was said
        if isinstance(data, list):
            text = f"{name} holds lists, each with its name: write BASIC: [id] in a line below it"
            self.notes.say(place, "list-for-group", text)
            return
        text = f"{name} must hold the lists BASIC, STANDARD and FULL"
        self.notes.say(place, "bad-resource", text)

    def resource(self, resource: Resource, data: Any) -> ResourceRules:
        place = (resource.name,)
        if not isinstance(data, dict):
            self.no_group(resource, data)
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
        name = place[1]
        if name in _BY_NAME:
            text = f"{name} is a resource: its name begins at the left edge, without blanks"
            self.notes.say(place, "indentation", text, at_key=True)
            return ""
        if name.lower() in _BY_LETTERS:
            right = _BY_LETTERS[name.lower()]
            self.notes.say(place, "level-case", f"{name} is written {right}", at_key=True)
            return right
        hint = did_you_mean(name, _MEMBERS) or _one_of(_MEMBERS)
        text = f"{name} is not a level{hint}"
        self.notes.say(place, "unknown-level", text, at_key=True)
        return nearest(name, _MEMBERS)


def _other_file(data: dict[str, Any]) -> str:
    """Which other file of the gateway this is, by a name that only that one has."""
    if any(name in data for name in _BY_NAME):
        return ""
    return next((file for name, file in _OTHERS.items() if name in data), "")


def _one_of(names: Iterable[str]) -> str:
    return f"; it must be one of {', '.join(names)}"
