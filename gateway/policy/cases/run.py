"""Tries the cases beside a policy on what answers partners, and counts what they look at."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from adapters.base import Record
from adapters.documents.problems import DocumentErrors, Problem
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.resources import GOVERNED
from gateway.policy.cases.file import PolicyCase, read_cases
from gateway.policy.policy import Policy
from gateway.policy.telling.wording import conditions
from gateway.policy.values import at, has_value

# Characters of a value, and differences of a case, that are shown in a line.
LONGEST = 60
MOST = 6
# The kinds of problems with cases: one that fails, and a file of cases that cannot be used.
FAILED, UNREADABLE = "failed-case", "bad-cases"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A case that was tried; it passed where nothing differs."""

    case: PolicyCase
    differences: tuple[str, ...]

    def problem(self) -> Problem:
        """What a failed one says, in a line."""
        case, more = self.case, len(self.differences) - MOST
        told = [*self.differences[:MOST], *([f"and {more} more"] if more > 0 else [])]
        return Problem(case.file, case.line, case.column, f"{case.name}: {'; '.join(told)}", FAILED)


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
        return [replace(problem, code=UNREADABLE) for problem in error.problems]
    return [outcome.problem() for outcome in run(policy, cases) if outcome.differences]


def summary(problems: Sequence[Problem]) -> str:
    """What the problems with a policy's cases come to: `3 of its cases fail`."""
    failed = sum(problem.code == FAILED for problem in problems)
    if not failed:
        return "its cases cannot be read"
    return f"{failed} of its cases {'fails' if failed == 1 else 'fail'}"


def run(policy: Policy, cases: Iterable[PolicyCase]) -> Sequence[Outcome]:
    return [Outcome(case, tuple(differences(policy, case))) for case in cases]


def _answer(policy: Policy, case: PolicyCase) -> Record | None:
    """The record as the key's answer has it; None where it does not exist for the key."""
    operation, record, resource = case.operation, case.record, case.operation.returns
    redactor = policy.redactor(resource.name, case.applied)
    # who books sees the own booking, whatever the conditions say
    if not operation.creates and redactor.only and not redactor.admits(record):
        return None
    body = redactor.many([record])[0] if operation.many else b"[%b]" % redactor.one(record)
    listed: list[Record] = msgspec.json.decode(body)
    return listed[0] if listed else None


def differences(policy: Policy, case: PolicyCase) -> Iterator[str]:
    """What the answer shows too much, too little, or otherwise."""
    answer, resource = _answer(policy, case), case.operation.returns
    if answer is None or case.sees is None:
        yield from _found(policy, case, answer)
        return
    for path in resource.paths:
        shown, wanted = _is_in(answer, path), path in case.sees
        value, expected = at(answer, path), case.sees.get(path)
        if shown and not wanted:
            yield f"{resource.name}.{path}: shown {_spelt(value)}, expected hidden"
        elif wanted and not shown and answer.get(path.partition("[].")[0], path):  # no empty list
            yield f"{resource.name}.{path}: hidden, expected {_spelt(expected)}"
        elif wanted and value != expected:
            yield f"{resource.name}.{path}: shown {_spelt(value)}, expected {_spelt(expected)}"
    expected_lists = {path.partition("[].")[0] for path in case.sees if "[]." in path}
    for field in resource.fields:
        is_empty = field.fields and field.name in answer and not answer[field.name]
        if is_empty and field.name not in expected_lists:
            yield f"{resource.name}.{field.name}: shown without items, expected hidden"


def _found(policy: Policy, case: PolicyCase, answer: Record | None) -> Iterator[str]:
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


def _spelt(value: Any) -> str:
    """A value in a line, shortened where it is long."""
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        text = f"'{text[1:-1]}'"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


# What is to be tried of a level beside its fields, where it has row conditions.
INSIDE, OUTSIDE = "a record that its conditions let in", "a record that its conditions leave out"
# resource name, level, and a field's path or one of the two above
Cell = tuple[str, AccessLevel, str]


@dataclass(frozen=True, slots=True)
class Coverage:
    """All cells, in the order of the contract, and those that a case has tried."""

    cells: tuple[Cell, ...]
    covered: frozenset[Cell]

    @property
    def percent(self) -> float:
        """Of 100; rounded down to a tenth, so that 100 means all."""
        return len(self.covered) * 1000 // len(self.cells) / 10

    def uncovered(self) -> Iterator[tuple[str, AccessLevel, list[str], bool]]:
        """What no case has tried of each resource and level, and whether that is all there is."""
        for view, cells in groupby(self.cells, lambda cell: cell[:2]):
            names = [name for *_, name in cells]
            untried = [name for name in names if (*view, name) not in self.covered]
            if untried:
                yield *view, untried, untried == names


def coverage(policy: Policy, cases: Iterable[PolicyCase]) -> Coverage:
    """What the cases try, whether they pass or not.

    A field is tried at a level by a record that has a value there and exists for the level; its
    row conditions by a record that exists and one that does not.
    """
    cells = tuple(
        (resource.name, level, what)
        for resource in GOVERNED
        for level in LEVELS
        for what in (
            *resource.paths,
            *((INSIDE, OUTSIDE) if policy.redactor(resource.name, level).only else ()),
        )
    )
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
    return Coverage(cells, frozenset(tried.intersection(cells)))
