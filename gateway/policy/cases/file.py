"""Reads a file of cases: what a clinic expects of its policy, or all that is wrong with it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.base import Record
from adapters.documents.document import Document, Place, forgiving, read_document
from adapters.documents.problems import DocumentErrors, Problem, did_you_mean, nearest
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.operations import OPERATIONS, Operation
from gateway.contract.resources import GOVERNED
from gateway.policy.cases.records import Records
from gateway.policy.values import NoValue, at, read_value

VERSION = 1
LARGEST = 256 * 1024
NOT_FOUND = "not found"

_OPERATIONS = {each.id: each for each in OPERATIONS}
_LEVELS = {level.value: level for level in LEVELS}
_SCOPES = [each.name for each in GOVERNED]
_TOP = ("version", "records", "cases")
_MEMBERS = ("name", "key", "operation", "record", "sees")
_KEY = ("level", "scopes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One expectation, at its line and column.

    `record` is whole and as answers carry it. `sees` says what is expected at each path: below a
    list of objects a list with a value for each item; None where the record must not be found.
    """

    name: str
    line: int
    column: int
    level: AccessLevel
    operation: Operation
    record: Record
    sees: Mapping[str, Any] | None
    scopes: Mapping[str, AccessLevel] = field(default_factory=dict)

    @property
    def applied(self) -> AccessLevel:
        """The level that decides about the operation's resource."""
        return self.scopes.get(self.operation.returns.name, self.level)


@dataclass(frozen=True, slots=True)
class Cases:
    """All cases of a file."""

    file: str
    cases: tuple[Case, ...]


def read_cases(path: Path) -> Cases:
    """The cases in the file at `path`; DocumentErrors with every problem where they cannot be."""
    document, flaws = forgiving(lambda: read_document(path, largest=LARGEST))
    problems = list(flaws)
    cases = _Reading(document, problems).cases()
    if problems:
        raise DocumentErrors(problems)
    return Cases(document.file, tuple(cases))


class _Reading:
    """One walk through a document."""

    def __init__(self, document: Document, problems: list[Problem]) -> None:
        self.document = document
        self.problems = problems
        self.records = Records(document, self.say)
        self.names: dict[str, int] = {}

    def say(self, place: Place, text: str, *, at_key: bool = False) -> None:
        self.problems.append(self.document.problem(place, text, at_key=at_key))

    def cases(self) -> list[Case]:
        data = self.document.data
        if not isinstance(data, dict):
            self.say((), "a file of cases begins with version: 1, then has records and cases")
            return []
        self.members((), data, _TOP, needed=("version", "cases"))
        version = data.get("version", VERSION)
        if version != VERSION or not isinstance(version, int) or isinstance(version, bool):
            self.say(("version",), f"version must be {VERSION}")
        self.records.named(data.get("records"))
        listed = data.get("cases", ())
        if "cases" in data and not (isinstance(listed, list) and listed):
            self.say(("cases",), "cases must be a list of cases, each begun by `- name:`")
            return []
        found = [self.case(("cases", number), each) for number, each in enumerate(listed)]
        return [case for case in found if case is not None]

    def members(
        self, place: Place, data: Mapping[str, Any], known: Iterable[str], needed: Iterable[str]
    ) -> None:
        """Says which members are unknown, and which are missing."""
        known, meant = list(known), set()
        for name in data:
            if name not in known:
                hint = did_you_mean(name, known) or _one_of(known)
                meant.add(nearest(name, known))
                text = f"{name} has no meaning here{hint}"
                self.say((*place, name), text, at_key=True)
        for name in needed:
            if name not in data and name not in meant and place not in self.document.partial:
                self.say(place, f"{name} is missing here")

    def case(self, place: Place, data: Any) -> Case | None:
        if not isinstance(data, dict):
            self.say(place, f"a case has {', '.join(_MEMBERS[:-1])} and {_MEMBERS[-1]}")
            return None
        before = len(self.problems)
        self.members(place, data, _MEMBERS, needed=_MEMBERS)
        name = self.name((*place, "name"), data["name"]) if "name" in data else ""
        level, scopes = self.key((*place, "key"), data["key"]) if "key" in data else (None, {})
        operation = self.operation(place, data) if "operation" in data else None
        record, sees = None, None
        if operation is not None and "record" in data:
            record = self.records.of((*place, "record"), data["record"], operation)
        if operation is not None and "sees" in data:
            sees = self.sees((*place, "sees"), data["sees"], operation.returns, record)
        if len(self.problems) > before or not (level and operation and record is not None):
            return None
        line, column = self.document.marks[place]
        return Case(
            name=name,
            line=line,
            column=column,
            level=level,
            scopes=scopes,
            operation=operation,
            record=record,
            sees=sees,
        )

    def name(self, place: Place, name: Any) -> str:
        line = self.document.marks[place][0]
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            self.say(place, "name must say in a line of text what the case is about")
        elif name in self.names:
            text = f"this name stands already in line {self.names[name]}; give each its own"
            self.say(place, text)
        else:
            self.names[name] = line
        return str(name)

    def key(self, place: Place, data: Any) -> tuple[AccessLevel | None, dict[str, AccessLevel]]:
        """`BASIC`, or `{level: BASIC, scopes: {clients: STANDARD}}`."""
        if not isinstance(data, dict):
            return self.level(place, data), {}
        self.members(place, data, _KEY, needed=_KEY[:1])
        level = self.level((*place, "level"), data["level"]) if "level" in data else None
        written, scopes = data.get("scopes", {}), {}
        if not isinstance(written, dict):
            self.say((*place, "scopes"), "scopes name resources, such as {clients: STANDARD}")
            return level, {}
        for name, each in written.items():
            if name not in _SCOPES:
                text = f"{name} is not a resource{did_you_mean(name, _SCOPES) or _one_of(_SCOPES)}"
                self.say((*place, "scopes", name), text, at_key=True)
            elif found := self.level((*place, "scopes", name), each):
                scopes[name] = found
        return level, scopes

    def level(self, place: Place, written: Any) -> AccessLevel | None:
        if written in _LEVELS and isinstance(written, str):
            return _LEVELS[written]
        hint = did_you_mean(str(written), _LEVELS) or _one_of(_LEVELS)
        self.say(place, f"{_plain(written)} is not a level{hint}")
        return None

    def operation(self, place: Place, data: Mapping[str, Any]) -> Operation | None:
        written = data["operation"]
        if isinstance(written, str) and written in _OPERATIONS:
            return _OPERATIONS[written]
        hint = did_you_mean(str(written), _OPERATIONS) or _one_of(_OPERATIONS)
        self.say((*place, "operation"), f"{_plain(written)} is not an operation{hint}")
        return None

    def sees(
        self, place: Place, data: Any, resource: Resource, record: Record | None
    ) -> dict[str, Any] | None:
        """What must be seen at each path; None for `not found`, or where it cannot be read."""
        if data == NOT_FOUND:
            return None
        if not isinstance(data, list):
            example = resource.paths[0]
            self.say(place, f"sees must be a list of fields, such as [{example}], or {NOT_FOUND}")
            return None
        expected: dict[str, Any] = {}
        for number, item in enumerate(data):
            here = (*place, number)
            pairs = item.items() if isinstance(item, dict) else [(item, ...)]
            for path, value in pairs:
                there = here if value is ... else (*here, path)
                if self.path(there, path, resource, expected) and record is not None:
                    expected[path] = self.expected(there, path, value, resource, record)
        return expected

    def path(self, place: Place, path: Any, resource: Resource, seen: Mapping[str, Any]) -> bool:
        """Whether it is a field of the resource that is named for the first time."""
        name, known = resource.name, resource.paths
        if not isinstance(path, str):
            self.say(place, f"a field of {name} must be named by text, such as {known[0]}")
        elif path in seen:
            self.say(place, f"{name}.{path} stands here already; keep one of the two", at_key=True)
        elif path not in known:
            members = [each for each in known if each.startswith(f"{path.removesuffix('[]')}[].")]
            text = f"{name} has no field {path!r}{did_you_mean(path, known)}"
            if members:
                named = ", ".join(f'"{each}"' for each in members)
                text = f"{name}.{path} is a list of objects; name its members: {named}"
            self.say(place, text, at_key=True)
        return isinstance(path, str) and path in known and path not in seen

    def expected(
        self, place: Place, path: str, written: Any, resource: Resource, record: Record
    ) -> Any:
        """The value that must be seen: the record's own where none is written."""
        whole = at(record, path)
        if written is ...:
            return whole
        try:
            if "[]." not in path:
                return read_value(resource.at(path), written)
            values = written if isinstance(written, list) else [written] * len(whole)
            if len(values) == len(whole):
                return [read_value(resource.at(path), each) for each in values]
            said = f"has {len(whole)} items in the record, and {len(values)} values stand here"
        except NoValue as error:
            said = str(error)
        self.say(place, f"{path} {said}")
        return None


def _plain(written: Any) -> str:
    return "this" if isinstance(written, dict | list) or written is None else str(written)


def _one_of(names: Iterable[str]) -> str:
    return f"; it can be {', '.join(names)}"
