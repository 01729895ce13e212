"""Reads a file of cases: what a clinic expects of its policy, or all that is wrong with it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.base import Record
from adapters.documents.document import Document, Place, forgiving, read_document
from adapters.documents.problems import DocumentErrors, Problem, did_you_mean, hint, nearest
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Field, Resource
from gateway.contract.operations import OPERATIONS, Operation
from gateway.contract.resources import GOVERNED
from gateway.policy.reading.lists import list_of_objects
from gateway.policy.values import NoValue, at, read_value

VERSION = 1
LARGEST = 256 * 1024
NOT_FOUND = "not found"

_OPERATIONS = {operation.id: operation for operation in OPERATIONS}
_LEVELS = {level.value: level for level in LEVELS}
_SCOPES = [resource.name for resource in GOVERNED]
_TOP = ("version", "records", "cases")
_MEMBERS = ("name", "key", "operation", "record", "sees")
_KEY = ("level", "scopes")
_ID = "00000000-0000-4000-8000-000000000001"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCase:
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
    cases: tuple[PolicyCase, ...]


def read_cases(path: Path) -> Cases:
    """The cases in the file at `path`; DocumentErrors with every problem where they cannot be."""
    document, flaws = forgiving(lambda: read_document(path, largest=LARGEST))
    reader = _CaseReader(document)
    cases = reader.cases()
    if problems := [*flaws, *reader.problems]:
        raise DocumentErrors(problems)
    return Cases(document.file, tuple(cases))


class _CaseReader:
    """One walk through a document; named records are read when the first case asks for them."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []
        self.names: dict[str, int] = {}
        # name -> what it is a record of, the line that says so, and how it was read
        self.records: dict[str, tuple[Resource, int, Record]] = {}

    def say(self, place: Place, text: str, *, at_key: bool = False) -> None:
        self.problems.append(self.document.problem(place, text, at_key=at_key))

    def cases(self) -> list[PolicyCase]:
        data = self.document.data
        if not isinstance(data, dict):
            self.say((), "a file of cases begins with version: 1, then has records and cases")
            return []
        self.members((), data, _TOP, needed=("version", "cases"))
        version = data.get("version", VERSION)
        if version != VERSION or not isinstance(version, int) or isinstance(version, bool):
            self.say(("version",), f"version must be {VERSION}")
        if not isinstance(data.get("records"), dict | None):
            self.say(("records",), "records must name records, such as anna: {id: ..., phone: ...}")
        listed = data.get("cases", ())
        if "cases" in data and not (isinstance(listed, list) and listed):
            self.say(("cases",), "cases must be a list of cases, each begun by `- name:`")
            return []
        found = [self.case(("cases", number), case) for number, case in enumerate(listed)]
        return [case for case in found if case is not None]

    def members(
        self, place: Place, data: Mapping[str, Any], known: Iterable[str], needed: Iterable[str]
    ) -> None:
        """Says which members are unknown, and which are missing."""
        strangers = [name for name in data if name not in known]
        for name in strangers:
            self.say((*place, name), f"{name} has no meaning here{hint(name, known)}", at_key=True)
        meant = {nearest(name, known) for name in strangers}
        for name in needed:
            if name not in data and name not in meant and place not in self.document.partial:
                self.say(place, f"{name} is missing here")

    def case(self, place: Place, data: Any) -> PolicyCase | None:
        if not isinstance(data, dict):
            self.say(place, f"a case has {', '.join(_MEMBERS[:-1])} and {_MEMBERS[-1]}")
            return None
        before = len(self.problems)
        self.members(place, data, _MEMBERS, needed=_MEMBERS)
        name = self.name((*place, "name"), data["name"]) if "name" in data else ""
        level, scopes = self.key((*place, "key"), data["key"]) if "key" in data else (None, {})
        operation = self.operation((*place, "operation"), data.get("operation", ...))
        record, sees = None, None
        if operation is not None and "record" in data:
            record = self.record((*place, "record"), data["record"], operation)
        if operation is not None and "sees" in data:
            sees = self.sees((*place, "sees"), data["sees"], operation.returns, record)
        if len(self.problems) > before or not (level and operation and record is not None):
            return None
        line, column = self.document.marks[place]
        return PolicyCase(
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
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            self.say(place, "name must say in a line of text what the case is about")
        elif name in self.names:
            text = f"this name stands already in line {self.names[name]}; give each its own"
            self.say(place, text)
        else:
            self.names[name] = self.document.marks[place][0]
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
        for name, scope in written.items():
            if name not in _SCOPES:
                text = f"{name} is not a resource{hint(name, _SCOPES)}"
                self.say((*place, "scopes", name), text, at_key=True)
            elif found := self.level((*place, "scopes", name), scope):
                scopes[name] = found
        return level, scopes

    def level(self, place: Place, written: Any) -> AccessLevel | None:
        if isinstance(written, str) and written in _LEVELS:
            return _LEVELS[written]
        self.say(place, f"{_plain(written)} is not a level{hint(str(written), _LEVELS)}")
        return None

    def operation(self, place: Place, written: Any) -> Operation | None:
        if isinstance(written, str) and written in _OPERATIONS:
            return _OPERATIONS[written]
        if written is not ...:
            text = f"{_plain(written)} is not an operation{hint(str(written), _OPERATIONS)}"
            self.say(place, text)
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
            for path, value in item.items() if isinstance(item, dict) else [(item, ...)]:
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
        elif path in known:
            return True
        else:
            slip = list_of_objects(resource, path)
            text = f"{name} has no field {path!r}{did_you_mean(path, known)}"
            self.say(place, slip.text if slip else text, at_key=True)
        return False

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
                return [read_value(resource.at(path), value) for value in values]
            said = f"has {len(whole)} items in the record, and {len(values)} values stand here"
        except NoValue as error:
            said = str(error)
        self.say(place, f"{path} {said}")
        return None

    def record(self, place: Place, written: Any, operation: Operation) -> Record | None:
        """The record that a case names or holds; None where there is none, which is said."""
        found = None
        if isinstance(written, dict):
            found = dict(self.fields(place, operation.returns.fields, written, operation.returns))
        elif isinstance(written, str):
            found = self.by_name(place, written, operation)
        else:
            self.say(place, "record must be the name of a record, or a record in braces")
        for name, value in operation.only if found is not None else ():
            if found is not None and found.get(name) is not value:
                spelt = "true" if value else "false"
                self.say(place, f"{operation.id} lists only records with {name}: {spelt}")
        return found

    def by_name(self, place: Place, name: str, operation: Operation) -> Record | None:
        resource, at = operation.returns, ("records", name)
        written = self.document.data.get("records") or {}
        if name not in written:
            if isinstance(written, dict) and at[:1] not in self.document.partial:
                near = did_you_mean(name, written)
                self.say(place, f"no record is named {name}{near}; write it under records")
            return None
        if name not in self.records:
            if not isinstance(written[name], dict):
                self.say(at, f"{name} must be a record, with its fields and their values")
                return None
            found = dict(self.fields(at, resource.fields, written[name], resource))
            self.records[name] = resource, self.document.marks[place][0], found
        known, line, found = self.records[name]
        if known is resource:
            return found
        text = f"{name} is read as one of {known.name} (line {line}), and {operation.id} answers"
        self.say(place, f"{text} {resource.name}")
        return None

    def fields(
        self,
        place: Place,
        of: tuple[Field, ...],
        data: dict[str, Any],
        resource: Resource,
        prefix: str = "",
    ) -> Iterator[tuple[str, Any]]:
        """The members as answers carry them; says what is no field, and no value of one."""
        known = {field.name: field for field in of}
        for name, written in data.items():
            here = (*place, name)
            if name not in known:
                text = f"{resource.name} has no field {prefix + name!r}{did_you_mean(name, known)}"
                self.say(here, text, at_key=True)
            elif known[name].fields:
                yield name, self.items(here, known[name], written, resource)
            else:
                yield name, self.value(here, known[name], written, prefix)
        if "id" in known and data.get("id") is None and place not in self.document.partial:
            self.say(place, f"every record has an id: write one, such as id: {_ID}")

    def items(self, place: Place, field: Field, written: Any, resource: Resource) -> Any:
        """A list of objects."""
        if written is None:
            return None
        if not isinstance(written, list) or not all(isinstance(item, dict) for item in written):
            self.say(place, f"{field.name} is a list of objects, such as [{{...}}, {{...}}]")
            return None
        return [
            dict(self.fields((*place, n), field.fields, item, resource, f"{field.name}[]."))
            for n, item in enumerate(written)
        ]

    def value(self, place: Place, field: Field, written: Any, prefix: str) -> Any:
        try:
            return read_value(field, written)
        except NoValue as error:
            self.say(place, f"{prefix}{field.name} {error}")
            return None


def _plain(written: Any) -> str:
    return "this" if isinstance(written, dict | list) or written is None else str(written)
