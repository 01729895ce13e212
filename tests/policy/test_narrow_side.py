"""Whatever a file says and whatever its cases say of it, a doubt ends on the narrow side.

Policies are made at random, saved one after the other, with cases that pass or fail; what answers
partners then is compared with what ran before and with what the file says.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from adapters.base import Record
from adapters.documents.problems import Problem
from gateway.contract.access import LEVELS
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED
from gateway.policy.cases import FAILED, cases_beside
from gateway.policy.policy import Policy, Rules, no_more
from gateway.policy.reading.document import write_rules
from gateway.policy.running.keeper import Examiner, Keeper, find
from gateway.policy.values import at
from tests.heard import Heard
from tests.policy.decisions import OPEN, closed, resource_rules
from tests.policy.test_failing_cases import AT
from tests.world import record_of

FAILING = [Problem("policies.test.yaml", 7, 3, "a case fails", FAILED)]


@dataclass(frozen=True, slots=True)
class Saved:
    """A policy that is saved, and whether its cases fail and somebody has approved it."""

    rules: Rules
    fails: bool
    is_approved: bool


@st.composite
def histories(draw: st.DrawFn) -> tuple[Resource, Rules, Sequence[Saved]]:
    """A resource, what runs at first, and what is saved after it: all about that resource."""
    resource = draw(st.sampled_from(GOVERNED))
    some = resource_rules(resource).map(lambda each: {**OPEN, resource.name: each})
    saved = st.builds(Saved, some, st.booleans(), st.booleans())
    return resource, draw(some), draw(st.lists(saved, min_size=1, max_size=3))


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(histories(), st.booleans())
def test_what_is_in_force_shows_no_more_than_what_ran_nor_than_the_file(
    history: tuple[Resource, Rules, Sequence[Saved]], approve: bool
) -> None:
    asyncio.run(_saved_one_after_the_other(*history, approve=approve))


async def _saved_one_after_the_other(
    resource: Resource, first: Rules, history: Sequence[Saved], *, approve: bool
) -> None:
    with TemporaryDirectory() as folder:
        file, failing = Path(folder) / "policies.yaml", list[Problem]()
        approvals = set[str]()

        async def approved(digest: str) -> bool:
            return digest in approvals

        examiner = Examiner(
            path=file, report=lambda trouble: None, verify=lambda policy, path: failing
        )
        keeper = Keeper(
            examiner,
            Heard(),
            lambda: AT,
            approve=approve,
            approved=approved,
            steady=0.0,
            patience=0.0,
        )
        file.write_text(write_rules(first))
        found = find(file)
        await keeper.begin(found, examiner.examined(found), None)
        for each in history:
            before, text = keeper.policy(), write_rules(each.rules)
            failing[:] = FAILING if each.fails else []
            # the same file with the same cases always comes to the same
            cases_beside(file).write_text("# fails\n" if each.fails else "# passes\n")
            approvals.clear()
            if each.is_approved:
                approvals.add(sha256(text.encode()).hexdigest())
            file.write_text(text)
            await keeper.look()
            await keeper.look(asked=True)
            now, said = keeper.policy(), examiner.policy(find(file))
            shows_no_more(resource, now, said)
            may_widen = not each.fails and (each.is_approved or not approve)
            if may_widen:
                assert now.rules == said.rules
            else:
                shows_no_more(resource, now, before)
            whole = now.hash == said.hash
            assert whole == (keeper.status.state == "current")
            event(f"{'wholly' if whole else 'in part'}, may widen: {may_widen}")


def shows_no_more(resource: Resource, one: Policy, other: Policy) -> None:
    """No answer by the one policy says what the same answer by the other does not."""
    for level in LEVELS:
        for record in records(resource):
            shown, known = (answered(each, resource, level, record) for each in (one, other))
            if shown is None:
                continue
            assert known is not None, level
            for path in resource.paths:
                value = at(shown, path)
                if not has(shown, path) or value == at(known, path):
                    continue
                sights = [each.rules[resource.name].sight(path, level) for each in (one, other)]
                assert at(known, path) == at(record, path) or no_more(*sights), (path, level)


def answered(policy: Policy, resource: Resource, level: Any, record: Record) -> Record | None:
    """The record as a key of that level gets it; None where it does not exist for the level."""
    redactor = policy.redactor(resource.name, level)
    if not redactor.admits(record):
        return None
    answer: Record = msgspec.json.decode(redactor.one(record))
    return answer


def has(answer: Record, path: str) -> bool:
    name, _, rest = path.partition("[].")
    return name in answer and (not rest or any(rest in item for item in answer[name] or ()))


def records(resource: Resource) -> Iterator[Record]:
    """A whole record, with each value of each field of which conditions can be."""
    yield record_of(resource)
    for each in resource.fields:
        if not each.fields and not each.many:
            for value in closed(each):
                yield {**record_of(resource), each.name: value}
