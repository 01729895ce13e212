"""Decisions that a draft left open: texts that still say TODO where the mapping wants a value."""

import re
from collections.abc import Iterator
from typing import Any

from adapters.document import Place
from adapters.examine import Finding, Verdict
from adapters.findings.maker import FindingMaker

_TODO = re.compile(r"TODO\b").match
# What a subject need not say.
_GROUPS = ("resources", "fields", "lists", "values")


def todos(maker: FindingMaker) -> Iterator[Finding]:
    """A finding for each: FAILED in what a booking writes, which would be the word itself."""
    for place in _left(maker.document.data, ()):
        verdict, text = Verdict.WARNING, "TODO still stands here, where a value belongs"
        remedy = "write what belongs there, or take the line away"
        if place[0] == "booking":
            verdict, text = Verdict.FAILED, "TODO still stands here: every booking would write it"
            remedy = "ask the clinic what it writes there; take the line away where it writes none"
        subject = ".".join(str(each) for each in place if each not in _GROUPS)
        yield maker.judged(verdict, "mapping", subject, text, place, remedy=remedy)


def _left(data: Any, place: Place) -> Iterator[Place]:
    if isinstance(data, dict):
        for name, each in data.items():
            yield from _left(each, (*place, name))
    elif isinstance(data, list):
        for number, each in enumerate(data):
            yield from _left(each, (*place, number))
    elif place and isinstance(data, str) and _TODO(data):
        yield place
