"""Reads the test cases beside a policy, tries them, and measures how much of it they cover."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from adapters.base import Record
from adapters.documents.document import Document, Place, read_document
from adapters.documents.problems import DocumentErrors, Problem, did_you_mean, hint, nearest
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Field, Resource
from gateway.contract.operations import OPERATIONS, Operation
from gateway.contract.resources import GOVERNED
from gateway.policy.policy import Policy
from gateway.policy.reading.resource import slip_of
from gateway.policy.telling.wording import conditions
from gateway.policy.values import NoValue, at, has_value, read_value

VERSION = 1
LARGEST = 256 * 1024
NOT_FOUND = "not found"
# The most characters of a value, and differences of a case, that one line shows.
LONGEST = 60
MOST = 6
# The kinds of problems with cases: one that fails, and a file of cases that cannot be used.
FAILED, UNREADABLE = "failed-case", "bad-cases"

_OPERATIONS = {operation.id: operation for operation in OPERATIONS}
_LEVELS = {level.value: level for level in LEVELS}
_SCOPES = [resource.name for resource in GOVERNED]
_TOP = ("version", "records", "cases")
_MEMBERS = ("name", "key", "operation", "record", "sees")
_KEY = ("level", "scopes")
KnownT = TypeVar("KnownT")
_ID = "00000000-0000-4000-8000-000000000001"


@dataclass(frozen=True, slots=True)
class PolicyCase:
    """One expectation, at its place in a file.

    `record` is the whole record as in answers. `sees` has the expected value at each path, below a
    list of objects a list with one for each item. It is None where the record must not be found.
    """

    name: str
    file: str
    line: int
    column: int
    level: AccessLevel
    scopes: Mapping[str, AccessLevel]
    operation: Operation
    record: Record
    sees: Mapping[str, Any] | None

    @property
    def applied(self) -> AccessLevel:
        """The level that decides about the operation's resource."""
        return self.scopes.get(self.operation.returns.name, self.level)


def read_cases(path: Path) -> Sequence[PolicyCase]:
    """Returns the cases in a file; raises DocumentErrors with all problems where there are any."""
    document = read_document(path, LARGEST, flawed=True)
    reader = _CaseReader(document)
    cases = reader.cases()
    if problems := [*document.flaws, *reader.problems]:
        raise DocumentErrors(problems)
    return cases


@dataclass(frozen=True, slots=True)
class _CaseReader:
    """Reads one document. `records` is name -> its resource, the line that says so, the record."""

    document: Document
    problems: list[Problem] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    records: dict[str, tuple[Resource, int, Record]] = field(default_factory=dict)

    def say(self, place: Place, text: str, *, at_key: bool = False) -> None:
        self.problems.append(self.document.problem(place, text, at_key=at_key))

    def cases(self) -> list[PolicyCase]:
        data = self.document.data
        if not isinstance(data, dict):
            self.say((), "a file of cases begins with version: 1, then has records and cases")
            return []
        self.members((), data, _TOP, needed=("version", "cases"))
        version = data.get("version", VERSION)
        if version != VERSION or type(version) is not int:
            self.say(("version",), f"version must be {VERSION}")
        if not isinstance(data.get("records"), dict | None):
            self.say(("records",), "records must name records, such as anna: {id: ..., phone: ...}")
        listed = data.get("cases", ())
        if "cases" in data and not (isinstance(listed, list) and listed):
            self.say(("cases",), "cases must be a list of cases, each begun by `- name:`")
            return []
        cases = [self.case(("cases", number), case) for number, case in enumerate(listed)]
        return [case for case in cases if case is not None]

    def members(
        self, place: Place, data: Mapping[str, Any], known: Iterable[str], needed: Iterable[str]
    ) -> None:
        """Reports unknown and missing members."""
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
        at = {name: (*place, name) for name in data}
        name, operation, record, sees = data.get("name"), None, None, None
        if "name" in data:
            self.name(at["name"], name)
        level, scopes = self.key(at["key"], data["key"]) if "key" in data else (None, {})
        if "operation" in data:
            known = _OPERATIONS, "an operation"
            operation = self.one_of(at["operation"], data["operation"], *known)
        if operation is not None and "record" in data:
            record = self.record(at["record"], data["record"], operation)
        if operation is not None and "sees" in data:
            sees = self.sees(at["sees"], data["sees"], operation.returns, record)
        if len(self.problems) > before or not (level and operation and record is not None):
            return None
        spot = self.document.file, *self.document.marks[place]
        return PolicyCase(str(name), *spot, level, scopes, operation, record, sees)

    def name(self, place: Place, name: Any) -> None:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            self.say(place, "name must say in a line of text what the case is about")
        elif name in self.names:
            text = f"this name stands already in line {self.names[name]}; give each its own"
            self.say(place, text)
        else:
            self.names[name] = self.document.marks[place][0]

    def key(self, place: Place, data: Any) -> tuple[AccessLevel | None, dict[str, AccessLevel]]:
        """Reads `BASIC`, or `{level: BASIC, scopes: {clients: STANDARD}}`."""
        if not isinstance(data, dict):
            return self.one_of(place, data, _LEVELS, "a level"), {}
        self.members(place, data, _KEY, needed=_KEY[:1])
        level, written = None, data.get("scopes", {})
        if "level" in data:
            level = self.one_of((*place, "level"), data["level"], _LEVELS, "a level")
        if not isinstance(written, dict):
            self.say((*place, "scopes"), "scopes name resources, such as {clients: STANDARD}")
            return level, {}
        scopes: dict[str, AccessLevel] = {}
        for name, scope in written.items():
            here = (*place, "scopes", name)
            if name not in _SCOPES:
                self.say(here, f"{name} is not a resource{hint(name, _SCOPES)}", at_key=True)
            elif known := self.one_of(here, scope, _LEVELS, "a level"):
                scopes[name] = known
        return level, scopes

    def one_of(
        self, place: Place, written: Any, known: Mapping[str, KnownT], kind: str
    ) -> KnownT | None:
        if isinstance(written, str) and written in known:
            return known[written]
        plain = "this" if isinstance(written, dict | list | None) else str(written)
        self.say(place, f"{plain} is not {kind}{hint(str(written), known)}")
        return None

    def sees(
        self, place: Place, data: Any, resource: Resource, record: Record | None
    ) -> dict[str, Any] | None:
        """Returns the expected value at each path; None for `not found` or a wrong list."""
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
                if text := self.stranger(path, resource, expected):
                    self.say(there, text, at_key=True)
                elif record is not None:
                    expected[path] = self.expected(there, path, value, resource, record)
        return expected

    def stranger(self, path: Any, resource: Resource, seen: Mapping[str, Any]) -> str:
        """Returns why a path names no field of the resource, or one twice; "" where all is well."""
        if not isinstance(path, str):
            return f"a field of {resource.name} must be named by text, such as {resource.paths[0]}"
        if path in seen:
            return f"{resource.name}.{path} stands here already; keep one of the two"
        return "" if path in resource.paths else slip_of(resource, path)[1]

    def expected(
        self, place: Place, path: str, written: Any, resource: Resource, record: Record
    ) -> Any:
        """Returns the value that must be seen, which is the record's own unless one is written."""
        whole, field = at(record, path), resource.at(path)
        if written is ...:
            return whole
        if "[]." not in path:
            return self.value(place, path, field, written)
        values = written if isinstance(written, list) else [written] * len(whole)
        if len(values) == len(whole):
            return [self.value(place, path, field, value) for value in values]
        text = f"has {len(whole)} items in the record, and {len(values)} values stand here"
        self.say(place, f"{path} {text}")
        return None

    def value(self, place: Place, path: str, field: Field, written: Any) -> Any:
        try:
            return read_value(field, written)
        except NoValue as error:
            self.say(place, f"{path} {error}")
        return None

    def record(self, place: Place, written: Any, operation: Operation) -> Record | None:
        """Returns the record that a case names or holds; None, and reports why, without one."""
        record = None
        if isinstance(written, dict):
            record = dict(self.fields(place, written, operation.returns))
        elif isinstance(written, str):
            record = self.by_name(place, written, operation)
        else:
            self.say(place, "record must be the name of a record, or a record in braces")
        for name, value in operation.only if record is not None else ():
            if record is not None and record.get(name) is not value:
                spelt = "true" if value else "false"
                self.say(place, f"{operation.id} lists only records with {name}: {spelt}")
        return record

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
            record = dict(self.fields(at, written[name], resource))
            self.records[name] = resource, self.document.marks[place][0], record
        known, line, record = self.records[name]
        if known is resource:
            return record
        text = f"{name} is read as one of {known.name} (line {line}), and {operation.id} answers"
        self.say(place, f"{text} {resource.name}")
        return None

    def fields(
        self, place: Place, data: dict[str, Any], resource: Resource, prefix: str = ""
    ) -> Iterator[tuple[str, Any]]:
        """Yields the members as answers carry them; reports unknown fields and wrong values."""
        holder = resource.at(prefix.removesuffix("[].")) if prefix else resource
        known = {field.name: field for field in holder.fields}
        for name, written in data.items():
            here, path = (*place, name), prefix + name
            if name not in known:
                text = f"{resource.name} has no field {path!r}{did_you_mean(name, known)}"
                self.say(here, text, at_key=True)
            elif written is None or not known[name].fields:
                yield name, self.value(here, path, known[name], written)
            elif isinstance(written, list) and all(isinstance(item, dict) for item in written):
                inner = resource, f"{path}[]."
                items = enumerate(written)
                yield name, [dict(self.fields((*here, n), it, *inner)) for n, it in items]
            else:
                self.say(here, f"{path} is a list of objects, such as [{{...}}, {{...}}]")
        if "id" in known and data.get("id") is None and place not in self.document.partial:
            self.say(place, f"every record has an id: write one, such as id: {_ID}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A case that was tried. It has passed if there are no differences."""

    case: PolicyCase
    differences: tuple[str, ...]

    def problem(self) -> Problem:
        """Returns the problem that a failed case is, in one line."""
        case, more = self.case, len(self.differences) - MOST
        parts = [*self.differences[:MOST], *([f"and {more} more"] if more > 0 else [])]
        text = f"{case.name}: {'; '.join(parts)}"
        return Problem(case.file, case.line, case.column, text, FAILED)


def cases_beside(policy: Path) -> Path:
    """Returns where the cases of a policy are: `policies.test.yaml` beside `policies.yaml`."""
    return policy.with_name(f"{policy.stem}.test{policy.suffix}")


def verify(policy: Policy, path: Path) -> Sequence[Problem]:
    """Returns the cases beside `path` that fail, or what is wrong with their file."""
    beside = cases_beside(path)
    if not (beside.exists() or beside.is_symlink()):
        return ()
    if beside.exists() and not beside.is_file():  # opening a pipe would wait for its writer
        return [Problem(str(beside), 0, 0, "cannot be read: it is no plain file", UNREADABLE)]
    try:
        cases = read_cases(beside)
    except DocumentErrors as error:
        return [replace(problem, code=UNREADABLE) for problem in error.problems]
    return [outcome.problem() for outcome in run(policy, cases) if outcome.differences]


def summary(problems: Sequence[Problem]) -> str:
    """Returns the problems with a policy's cases in a few words: `3 of its cases fail`."""
    failed = sum(problem.code == FAILED for problem in problems)
    if not failed:
        return "its cases cannot be read"
    return f"{failed} of its cases {'fails' if failed == 1 else 'fail'}"


def run(policy: Policy, cases: Iterable[PolicyCase]) -> Sequence[Outcome]:
    return [Outcome(case, tuple(differences(policy, case))) for case in cases]


def _answer(policy: Policy, case: PolicyCase) -> Record | None:
    """Returns the record as the key sees it; None where it does not exist for the key."""
    operation, record, resource = case.operation, case.record, case.operation.returns
    redactor = policy.redactor(resource.name, case.applied)
    # a key sees the booking that it has made, whatever the conditions say
    if not operation.creates and redactor.only and not redactor.admits(record):
        return None
    body = redactor.many([record])[0] if operation.many else b"[%b]" % redactor.one(record)
    listed: list[Record] = msgspec.json.decode(body)
    return listed[0] if listed else None


def differences(policy: Policy, case: PolicyCase) -> Iterator[str]:
    """Yields where the answer differs from what the case expects."""
    answer, resource = _answer(policy, case), case.operation.returns
    if answer is None or case.sees is None:
        yield from _found(policy, case, answer)
        return
    for path in resource.paths:
        shown, in_sees = _is_in(answer, path), path in case.sees
        value, expected = at(answer, path), case.sees.get(path)
        if shown and not in_sees:
            yield f"{resource.name}.{path}: shown {_spelt(value)}, expected hidden"
        elif in_sees and not shown and answer.get(path.partition("[].")[0], path):  # no empty list
            yield f"{resource.name}.{path}: hidden, expected {_spelt(expected)}"
        elif in_sees and value != expected:
            yield f"{resource.name}.{path}: shown {_spelt(value)}, expected {_spelt(expected)}"
    expected_lists = {path.partition("[].")[0] for path in case.sees if "[]." in path}
    for member in resource.fields:
        is_empty = member.fields and member.name in answer and not answer[member.name]
        if is_empty and member.name not in expected_lists:
            yield f"{resource.name}.{member.name}: shown without items, expected hidden"


def _found(policy: Policy, case: PolicyCase, answer: Record | None) -> Iterator[str]:
    """Yields what differs where the record is not found, or must not be."""
    resource = case.operation.returns
    if answer is not None:
        shown = ", ".join(path for path in resource.paths if _is_in(answer, path))
        yield f"{resource.name}: shown with {shown or 'no fields'}, expected not found"
    elif case.sees is not None:
        rows = policy.rules[resource.name].rows_of(case.applied)
        why = f"{case.applied} sees only those whose {conditions(resource, rows)}"
        yield f"{resource.name}: not found ({why}), expected {', '.join(case.sees) or 'no fields'}"


def _is_in(answer: Record, path: str) -> bool:
    name, _, rest = path.partition("[].")
    if not rest:
        return name in answer
    return any(_is_in(item, rest) for item in answer.get(name) or ())


def _spelt(value: Any) -> str:
    """Returns a value in one line, cut to LONGEST."""
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        text = f"'{text[1:-1]}'"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


# What cases can cover of a level besides its fields, where it has row conditions.
INSIDE, OUTSIDE = "a record that its conditions let in", "a record that its conditions leave out"
# resource name, level, and a field's path or one of the two above
Cell = tuple[str, AccessLevel, str]


@dataclass(frozen=True, slots=True)
class Coverage:
    """All cells in the order of the contract, and those that a case covers."""

    cells: tuple[Cell, ...]
    covered: frozenset[Cell]

    @property
    def percent(self) -> float:
        """The covered share, from 0 to 100, rounded down to tenths: 100 means all."""
        return len(self.covered) * 1000 // len(self.cells) / 10

    def uncovered(self) -> Iterator[tuple[str, AccessLevel, list[str], bool]]:
        """Yields what is not covered of a resource at a level, and whether that is all of it."""
        for view, cells in groupby(self.cells, lambda cell: cell[:2]):
            names = [name for *_, name in cells]
            gaps = [name for name in names if (*view, name) not in self.covered]
            if gaps:
                yield *view, gaps, gaps == names


def coverage(policy: Policy, cases: Iterable[PolicyCase]) -> Coverage:
    """Returns what the cases cover, whether they pass or not.

    A field is covered at a level by a record that exists there and has a value in the field. Row
    conditions are covered by a record that exists and by one that does not.
    """
    cells: list[Cell] = []
    for resource, level in product(GOVERNED, LEVELS):
        rows = (INSIDE, OUTSIDE) if policy.redactor(resource.name, level).only else ()
        cells += [(resource.name, level, what) for what in (*resource.paths, *rows)]
    tried: set[Cell] = set()
    for case in cases:
        resource, level = case.operation.returns, case.applied
        if not resource.governed:
            continue
        exists = policy.redactor(resource.name, level).admits(case.record)
        if not case.operation.creates:
            tried.add((resource.name, level, INSIDE if exists else OUTSIDE))
        if exists or case.operation.creates:
            filled = (path for path in resource.paths if has_value(case.record, path))
            tried.update((resource.name, level, path) for path in filled)
    return Coverage(tuple(cells), frozenset(tried.intersection(cells)))
