"""Tries the cases beside a policy on what answers partners."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from adapters.base import Record
from adapters.documents.problems import DocumentErrors, Problem
from gateway.contract.fields import Resource
from gateway.policy.cases.file import Case, Cases, read_cases
from gateway.policy.policy import Policy
from gateway.policy.redactor import Redactor
from gateway.policy.telling.wording import conditions
from gateway.policy.values import at

# Characters of a value, and differences of a case, that are shown in a line.
LONGEST = 60
MOST = 6
# The kinds of problems with cases: one that fails, and a file of cases that cannot be used.
FAILED, UNREADABLE = "failed-case", "bad-cases"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A case that was tried; it passed where nothing differs."""

    file: str
    case: Case
    differences: tuple[str, ...]

    def problem(self) -> Problem:
        """What a failed one says, in a line."""
        told = "; ".join(self.differences[:MOST])
        more = len(self.differences) - MOST
        if more > 0:
            told = f"{told}; and {more} more"
        text = f"{self.case.name}: {told}"
        return Problem(self.file, self.case.line, self.case.column, text, FAILED)


def cases_beside(policy: Path) -> Path:
    """Where the cases of a policy file are: `policies.test.yaml` beside `policies.yaml`."""
    return policy.with_name(f"{policy.stem}.test{policy.suffix}")


def verify(policy: Policy, path: Path) -> Sequence[Problem]:
    """What the cases beside the policy file at `path` hold against a policy.

    Nothing where there is no such file; where it cannot be read, what is wrong with it.
    """
    beside = cases_beside(path)
    if not (beside.exists() or beside.is_symlink()):
        return ()
    if beside.exists() and not beside.is_file():  # to open a pipe is to wait for its writer
        return [Problem(str(beside), 0, 0, "cannot be read: it is no plain file", UNREADABLE)]
    try:
        cases = read_cases(beside)
    except DocumentErrors as error:
        return [replace(each, code=UNREADABLE) for each in error.problems]
    return [each.problem() for each in run(policy, cases) if each.differences]


def summary(problems: Sequence[Problem]) -> str:
    """What the problems with a policy's cases come to: `3 of its cases fail`."""
    failed = sum(each.code == FAILED for each in problems)
    if not failed:
        return "its cases cannot be read"
    return f"{failed} of its cases {'fails' if failed == 1 else 'fail'}"


def run(policy: Policy, cases: Cases) -> Sequence[Outcome]:
    """Each case with what differs."""
    return [Outcome(cases.file, each, tuple(differences(policy, each))) for each in cases.cases]


def answered(policy: Policy, case: Case) -> Record | None:
    """The record as the key's answer has it; None where it does not exist for the key."""
    redactor = _redactor(policy, case)
    operation, record = case.operation, case.record
    # who books sees the own booking, whatever the conditions say
    if not operation.creates and redactor.only and not redactor.admits(record):
        return None
    if not operation.many:
        one: Record = msgspec.json.decode(redactor.one(record))
        return one
    body, _ = redactor.many([record])
    listed: list[Record] = msgspec.json.decode(body)
    return listed[0] if listed else None


def _redactor(policy: Policy, case: Case) -> Redactor:
    resource = case.operation.returns
    if resource.governed:
        return policy.redactor(resource.name, case.applied)
    return policy.for_whole(resource.name)


def differences(policy: Policy, case: Case) -> Iterator[str]:
    """What the answer shows too much, too little, or otherwise."""
    answer, resource = answered(policy, case), case.operation.returns
    if answer is None or case.sees is None:
        yield from _found(policy, case, answer)
        return
    for path in resource.paths:
        shown, wanted = _is_in(answer, path), path in case.sees
        value, expected = at(answer, path), case.sees.get(path)
        if shown and not wanted:
            yield f"{resource.name}.{path}: shown {spelt(value)}, expected hidden"
        elif wanted and not shown and not _is_empty(answer, path):
            yield f"{resource.name}.{path}: hidden, expected {spelt(expected)}"
        elif wanted and value != expected:
            yield f"{resource.name}.{path}: shown {spelt(value)}, expected {spelt(expected)}"
    for name in _empty_lists(resource, answer):
        if not any(path.startswith(f"{name}[].") for path in case.sees):
            yield f"{resource.name}.{name}: shown without items, expected hidden"


def _found(policy: Policy, case: Case, answer: Record | None) -> Iterator[str]:
    """What differs where the record is not found, or must not be."""
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


def _is_empty(answer: Record, path: str) -> bool:
    """Whether the list of objects around a path is open and has no items."""
    name = path.partition("[].")[0]
    return "[]." in path and name in answer and not answer[name]


def _empty_lists(resource: Resource, answer: Record) -> Iterator[str]:
    for each in resource.fields:
        if each.fields and each.name in answer and not answer[each.name]:
            yield each.name


def spelt(value: Any) -> str:
    """A value in a line, shortened where it is long."""
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        text = f"'{text[1:-1]}'"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
