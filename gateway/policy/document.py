"""Reads the policy file: a policy, or everything that is wrong with it, each at its place."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from adapters.base import Report
from adapters.document import Document, Place, forgiving, parse_document, read_document
from adapters.problems import DocumentErrors, Problem, did_you_mean
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED, RESOURCES
from gateway.policy.policy import Opens, Policy, compile_policy

VERSION = 1
NEVER = "never"

_BY_NAME = {resource.name: resource for resource in GOVERNED}
_WHOLE = {resource.name for resource in RESOURCES if not resource.governed}
_LISTS: Mapping[str, AccessLevel | None] = {level.value: level for level in LEVELS} | {NEVER: None}


def load_policy(path: Path, report: Report) -> Policy:
    """The policy in the file at `path`; DocumentErrors with every problem where it is none.

    `report` is called for each value of the practice system that a redactor could not use.
    """
    return _policy(lambda: read_document(path), report)


def parse_policy(content: bytes, file: str, report: Report) -> Policy:
    """The same for bytes that were read already."""
    return _policy(lambda: parse_document(content, file), report)


def _policy(read: Callable[[], Document], report: Report) -> Policy:
    try:
        document, flaws = forgiving(read)
    except DocumentErrors as error:
        raise DocumentErrors(map(_with_remedy, error.problems)) from error
    reading = _Reading(document)
    opens = reading.policy()
    if flaws or reading.problems:
        raise DocumentErrors([*flaws, *reading.problems])
    digest = hashlib.sha256(document.content).hexdigest()
    return compile_policy(document.file, digest, opens, report)


def _with_remedy(problem: Problem) -> Problem:
    """The reader's complaint about `[id, lines[].id]`, with what it takes to please it."""
    if not problem.text.endswith("expected ',' or ']', but got '['"):
        return problem
    text = f'{problem.text}; a path with [] stands in quotes, such as "lines[].id"'
    return replace(problem, text=text)


@dataclass(slots=True)
class _Decision:
    """What the file says of one resource, as far as it was read."""

    resource: Resource
    opens: dict[str, AccessLevel | None] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    # Paths that a misspelt one was probably meant to be: naming them missing too says it twice.
    meant: set[str] = field(default_factory=set)
    # What could not be read, or stands a second time, may hold any of the fields.
    whole: bool = True


class _Reading:
    """One walk through a document, collecting problems on the way."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []

    def say(self, place: Place, text: str, *, at_key: bool = False) -> None:
        self.problems.append(self.document.problem(place, text, at_key=at_key))

    def absent(self, place: Place, text: str) -> None:
        """Say that a name is missing there, unless it may be in what is not kept."""
        if place not in self.document.partial:
            self.say(place, text, at_key=True)

    def policy(self) -> Opens:
        data = self.document.data
        if not isinstance(data, dict):
            self.say((), "a policy begins with version: 1, then names each resource")
            return {}
        self.version(data)
        meant = {self.stranger(name) for name in data if name not in {"version", *_BY_NAME}}
        opens: dict[str, Mapping[str, AccessLevel | None]] = {}
        for name, resource in _BY_NAME.items():
            if name in data:
                opens[name] = self.resource(resource, data[name])
            elif name not in meant:
                self.absent(
                    (), f"{name} is missing; add it with its lists BASIC, STANDARD and FULL"
                )
        return opens

    def version(self, data: dict[str, Any]) -> None:
        version = data.get("version")
        if "version" not in data:
            self.absent((), f"version is missing; write version: {VERSION}")
        elif version != VERSION or not isinstance(version, int) or isinstance(version, bool):
            self.say(("version",), f"version must be {VERSION}")

    def stranger(self, name: str) -> str:
        """Says what is wrong with a name that is no governed resource; what it was meant to be."""
        if name in _WHOLE:
            self.say((name,), f"{name} is always shown whole; take it out", at_key=True)
            return ""
        hint = did_you_mean(name, _BY_NAME)
        self.say((name,), f"{name} is not a resource{hint or _one_of(_BY_NAME)}", at_key=True)
        return _suggested(hint)

    def resource(self, resource: Resource, data: Any) -> Mapping[str, AccessLevel | None]:
        place = (resource.name,)
        if not isinstance(data, dict):
            self.say(place, f"{resource.name} must hold the lists BASIC, STANDARD and FULL")
            return {}
        decision = _Decision(resource, whole=place not in self.document.partial)
        meant = {self.no_level((*place, name)) for name in data if name not in _LISTS}
        for name, listed in data.items():
            self.level((*place, name), _LISTS.get(name), listed, decision)
        for level in LEVELS:
            if level.value not in data and level.value not in meant:
                text = (
                    f"{resource.name} has no list {level.value}; write {level.value}: [] for none"
                )
                self.absent(place, text)
        if decision.whole:
            self.missing(decision)
        return {path: decision.opens[path] for path in resource.paths if path in decision.opens}

    def no_level(self, place: Place) -> str:
        hint = did_you_mean(str(place[-1]), _LISTS)
        self.say(place, f"{place[-1]} is not a level{hint or _one_of(_LISTS)}", at_key=True)
        return _suggested(hint)

    def level(
        self, place: Place, level: AccessLevel | None, listed: Any, decision: _Decision
    ) -> None:
        """One list of a resource: what a level adds, or what no key sees."""
        if place in self.document.partial:
            decision.whole = False
        if not isinstance(listed, list):
            decision.whole = False
            remedy = "; write [] for none" if listed is None else ", such as [id, name]"
            self.say(place, f"{place[-1]} must be a list of fields{remedy}", at_key=True)
            return
        for index, path in enumerate(listed):
            self.path((*place, index), path, level, decision)

    def path(self, place: Place, path: Any, level: AccessLevel | None, decision: _Decision) -> None:
        name, known = decision.resource.name, decision.resource.paths
        if not isinstance(path, str):
            self.say(place, f"a field of {name} must be named by text, such as {known[0]}")
        elif path not in known:
            self.unknown(place, path, decision)
        elif path in decision.places:
            line = self.document.marks[decision.places[path]][0]
            self.say(place, f"{name}.{path} stands already in line {line}; keep one of the two")
        else:
            decision.opens[path], decision.places[path] = level, place

    def unknown(self, place: Place, path: str, decision: _Decision) -> None:
        name, known = decision.resource.name, decision.resource.paths
        members = [each for each in known if each.startswith(f"{path.removesuffix('[]')}[].")]
        if members and path:
            named = ", ".join(f'"{each}"' for each in members)
            self.say(place, f"{name}.{path} is a list of objects; name its members: {named}")
            return
        hint = did_you_mean(path, known)
        decision.meant.add(_suggested(hint))
        self.say(place, f"{name} has no field {path!r}{hint}")

    def missing(self, decision: _Decision) -> None:
        name = decision.resource.name
        for path in decision.resource.paths:
            if path not in decision.opens and path not in decision.meant:
                text = (
                    f"{name}.{path} is missing; add it to the first level that may see it"
                    f" (BASIC, STANDARD or FULL), or to {NEVER}"
                )
                self.say((name,), text, at_key=True)


def _suggested(hint: str) -> str:
    return hint.removeprefix(" (did you mean ").removesuffix("?)")


def _one_of(names: Mapping[str, object]) -> str:
    return f"; it must be one of {', '.join(names)}"
