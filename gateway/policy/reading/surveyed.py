"""What a policy and a practice system have to do with each other: what never gets out or in."""

from collections.abc import Iterator
from pathlib import Path

from adapters.documents.problems import Problem
from adapters.examination import Survey
from gateway.contract.resources import GOVERNED
from gateway.policy.policy import Policy
from gateway.policy.reading.spots import spots_of


def notes_of(policy: Policy, survey: Survey) -> tuple[Problem, ...]:
    """Notes at their places in the mapping and in the policy, in the order of each file."""
    return (*_unfilled(policy, survey), *_left_out(survey))


def _left_out(survey: Survey) -> Iterator[Problem]:
    for each in survey.left_out:
        text = f"{each.source} has what no field is made of, which never gets out:"
        text += f" {', '.join(each.names)}"
        yield Problem(each.file, each.line, each.column, text, "never-gets-out")


def _unfilled(policy: Policy, survey: Survey) -> Iterator[Problem]:
    path = Path(policy.file)
    spots = spots_of(path.read_bytes(), policy.file).opened
    found = []
    for resource in GOVERNED:
        filled = survey.filled.get(resource.name, frozenset())
        for field in resource.paths:
            if field not in filled and policy.rules[resource.name].opened_at(field) is not None:
                line, column = spots[resource.name, field]
                text = f"{resource.name}.{field} is open, and nothing in the mapping fills it"
                found.append(Problem(policy.file, line, column, text, "never-filled"))
    yield from sorted(found)
