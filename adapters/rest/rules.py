"""Tells what an answer means by the rules of a mapping, and what it tells of an error."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from adapters.mapping.models import ErrorRule
from adapters.mapping.paths import path
from adapters.values.convert import Unreadable

LONGEST_TEXT = 10_000
# Tells whether a rule fits an answer: its status, JSON (or None), and text.
Condition = Callable[[int, Any, str], bool]
# Conditions with what an answer means that meets them; the first that fits counts.
Rules = Sequence[tuple[Condition, str]]


def rules_of(errors: Iterable[ErrorRule]) -> Rules:
    return [(_condition(rule), rule.means) for rule in errors]


def is_good(status: int) -> bool:
    return 200 <= status < 300


def _condition(rule: ErrorRule) -> Condition:
    statuses = (rule.status,) if isinstance(rule.status, int) else rule.status
    search = re.compile(rule.text, re.IGNORECASE).search if rule.text else None
    where = path(rule.path) if rule.path else None

    def fits(status: int, data: Any, text: str) -> bool:
        if statuses is not None and status not in statuses:
            return False
        if where is None:  # a good answer may repeat what a partner wrote
            return search is None or (not is_good(status) and search(text) is not None)
        try:
            value = where(data)
        except Unreadable:
            return False
        # as in JSON, 1 is not true
        same = (type(value) is type(other) and value == other for other in rule.is_ or ())
        if rule.is_ is not None and not any(same):
            return False
        return search is None or (
            value is not None and search(str(value)[:LONGEST_TEXT]) is not None
        )

    return fits
