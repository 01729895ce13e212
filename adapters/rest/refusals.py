"""What an answer means: the mapping's rules for it, else what its status usually says."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from adapters.base import BackendNonsense
from adapters.mapping.models import ErrorRule
from adapters.mapping.paths import path
from adapters.rest.client import Received
from adapters.values.convert import Unreadable

LONGEST_TEXT = 10_000
_UNUSUAL = frozenset((429, 502, 503, 504))


def data_of(received: Received, label: str) -> Any:
    """The answer's JSON; BackendNonsense for all that is none."""
    if received.kind != "application/json" and not received.kind.endswith("+json"):
        raise BackendNonsense(f"{label}: the answer does not say that it is JSON")
    if received.charset not in ("utf-8", "utf8", "us-ascii"):
        raise BackendNonsense(f"{label}: the answer is not in UTF-8")
    try:
        return orjson.loads(received.body)
    except orjson.JSONDecodeError as error:
        raise BackendNonsense(f"{label}: the answer is not JSON") from error


class Rules:
    """The mapping's rules in their order."""

    def __init__(self, rules: Iterable[ErrorRule]) -> None:
        self._rules = [(_condition(rule), rule.means) for rule in rules]

    def meaning(self, received: Received, data: Any) -> str | None:
        """What a rule says of the answer, else its status; None where it is a good one.

        `data` is its JSON, None where it has none.
        """
        if self._rules:
            text = received.body[:LONGEST_TEXT].decode(errors="replace")
            for fits, means in self._rules:
                if fits(received.status, data, text):
                    return means
        return _usual(received.status)


def _good(status: int) -> bool:
    return 200 <= status < 300


def _usual(status: int) -> str | None:
    if _good(status):
        return None
    if status in (401, 404):
        return {401: "logged out", 404: "no such record"}[status]
    if status in _UNUSUAL:
        return "too busy" if status == 429 else "broken for now"
    return "broken" if status >= 500 or status < 200 else "refused"


def _condition(rule: ErrorRule) -> Callable[[int, Any, str], bool]:
    statuses = (rule.status,) if isinstance(rule.status, int) else rule.status
    search = re.compile(rule.text, re.IGNORECASE).search if rule.text else None
    where = path(rule.path) if rule.path else None

    def fits(status: int, data: Any, text: str) -> bool:
        if statuses is not None and status not in statuses:
            return False
        if where is None:  # a good answer may repeat what a partner wrote
            return search is None or (not _good(status) and search(text) is not None)
        try:
            found = where(data)
        except Unreadable:
            return False
        if rule.is_ is not None and not any(_same(found, each) for each in rule.is_):
            return False
        return search is None or (
            found is not None and search(str(found)[:LONGEST_TEXT]) is not None
        )

    return fits


def _same(found: Any, wanted: Any) -> bool:
    """Equal as JSON, where 1 is not true."""
    return type(found) is type(wanted) and bool(found == wanted)
