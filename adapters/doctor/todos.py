"""Decisions that a draft left open: values and comments of the mapping that still say TODO."""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from adapters.doctor.findings import FindingMaker
from adapters.documents.document import Comment, Document, Place, comments_in
from adapters.examination import Finding, Verdict

_TODO = re.compile(r"TODO\b").match
# What a subject need not say.
_IN_COMMENT = re.compile(r"\bTODO\b\W*(.*)").search
MOST_COMMENTS = 20
LONGEST_WORDS = 200
_GROUPS = ("resources", "fields", "lists", "values")


def todos(maker: FindingMaker) -> Iterator[Finding]:
    """A finding for each value and for each line with a comment.

    FAILED in what a booking writes, which would be the word itself.
    """
    lines = set()
    for place in _left(maker.document.data, ()):
        verdict, text = Verdict.WARNING, "TODO still stands here, where a value belongs"
        remedy = "write what belongs there, or take the line away"
        if place[0] == "booking":
            verdict, text = Verdict.FAILED, "TODO still stands here: every booking would write it"
            remedy = "ask the clinic what it writes there; take the line away where it writes none"
        subject = ".".join(str(each) for each in place if each not in _GROUPS)
        lines.add(maker.document.problem(place, "").line)
        yield maker.judged(verdict, "mapping", subject, text, place, remedy=remedy)
    yield from _in_comments(maker, lines)


def _in_comments(maker: FindingMaker, told: Collection[int]) -> Iterator[Finding]:
    """Those of the lines that are not told already; the first ones, and how many more."""
    open_ = [each for each in _open(maker.document) if each.line not in told]
    for each in open_[:MOST_COMMENTS]:
        text = f"TODO in a comment: {each.text}" if each.text else "TODO in a comment"
        remedy = "decide it, and take the comment away"
        yield _at(maker, each, text, remedy)
    if more := open_[MOST_COMMENTS:]:
        yield _at(maker, more[0], f"TODO in the comments of {_lines(len(more))} more, from here on")


def _open(document: Document) -> Iterator[Comment]:
    """The word in each comment that has it, with the words behind it."""
    for each in comments_in(document):
        if found := _IN_COMMENT(each.text):
            column = each.column + 1 + found.start()
            yield Comment(each.line, column, found[1].strip()[:LONGEST_WORDS])


def _at(maker: FindingMaker, comment: Comment, text: str, remedy: str = "") -> Finding:
    place = f"{maker.document.file}:{comment.line}:{comment.column}"
    found = maker.warning("mapping", "comments", text, remedy=remedy)
    return replace(found, place=place)


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count:,} lines"


def _left(data: Any, place: Place) -> Iterator[Place]:
    if isinstance(data, dict):
        for name, each in data.items():
            yield from _left(each, (*place, name))
    elif isinstance(data, list):
        for number, each in enumerate(data):
            yield from _left(each, (*place, number))
    elif place and isinstance(data, str) and _TODO(data):
        yield place
