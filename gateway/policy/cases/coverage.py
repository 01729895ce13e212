"""How much of a policy its cases try: the cells of the matrix that no case has looked at."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.resources import GOVERNED
from gateway.policy.cases.file import Case, Cases
from gateway.policy.policy import Policy
from gateway.policy.values import has_value

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

    def is_at_least(self, percent: float) -> bool:
        """Whether so much of the matrix is covered."""
        return len(self.covered) * 100 >= percent * len(self.cells)

    def uncovered(self) -> Mapping[tuple[str, AccessLevel], list[str]]:
        """What no case has tried, by resource and level; only where there is any."""
        found: dict[tuple[str, AccessLevel], list[str]] = {}
        for cell in self.cells:
            if cell not in self.covered:
                found.setdefault(cell[:2], []).append(cell[2])
        return found

    def count(self, resource: str, level: AccessLevel) -> int:
        """How many cells a level of a resource has."""
        return sum(cell[:2] == (resource, level) for cell in self.cells)


def coverage(policy: Policy, cases: Cases) -> Coverage:
    """What the cases try, whether they pass or not.

    A field is tried at a level by a record that has a value there and exists for the level; its
    row conditions by a record that exists and one that does not.
    """
    cells = tuple(_cells(policy))
    tried = {cell for case in cases.cases for cell in _tried(policy, case)}
    return Coverage(cells, frozenset(tried.intersection(cells)))


def _cells(policy: Policy) -> Iterator[Cell]:
    for resource in GOVERNED:
        for level in LEVELS:
            for path in resource.paths:
                yield resource.name, level, path
            if policy.redactor(resource.name, level).only:
                yield resource.name, level, INSIDE
                yield resource.name, level, OUTSIDE


def _tried(policy: Policy, case: Case) -> Iterator[Cell]:
    resource, level = case.operation.returns, case.applied
    if not resource.governed:
        return
    exists = policy.redactor(resource.name, level).admits(case.record)
    if not case.operation.creates:
        yield resource.name, level, INSIDE if exists else OUTSIDE
    if exists or case.operation.creates:
        for path in resource.paths:
            if has_value(case.record, path):
                yield resource.name, level, path
