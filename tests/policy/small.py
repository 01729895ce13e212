"""A policy of a test's own, and cases for it: whatever else the contract has is open to all."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.resources import GOVERNED
from gateway.policy.rows import Rows
from gateway.policy.rules import WHOLE, ResourceRules, Rules, Sights, opening
from gateway.policy.running.writer import write_rules
from tests.policy.decisions import OPEN
from tests.world import record_of

BASIC, STANDARD, FULL = LEVELS
_CLIENTS = next(each for each in GOVERNED if each.name == "clients")


def rules(rows: Mapping[AccessLevel, Rows] | None = None, **clients: Sights) -> Rules:
    """The fields of clients as they are named, and whole at every level where they are not."""
    fields = {path: clients.get(path, opening(BASIC)) for path in _CLIENTS.paths}
    return {**OPEN, "clients": ResourceRules(fields, rows or {})}


def policy(rows: Mapping[AccessLevel, Rows] | None = None, **clients: Sights) -> str:
    """The text of a policy file with these rules."""
    return write_rules(rules(rows, **clients))


def cases(expected: Rules) -> str:
    """A case for each level: who asks for a client sees just what the rules show whole."""
    return "\n".join(["version: 1", "cases:", *_cases(expected)]) + "\n"


def _cases(expected: Rules) -> Iterator[str]:
    record: Any = json.dumps(record_of(_CLIENTS))
    for level in LEVELS:
        seen = [path for path in _CLIENTS.paths if expected["clients"].sight(path, level) is WHOLE]
        yield f"- name: {level} sees a client"
        yield f"  key: {{level: {level}}}"
        yield "  operation: get_client"
        yield f"  record: {record}"
        yield f"  sees: [{', '.join(seen)}]"
