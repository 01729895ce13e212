"""Says what is wrong with a list in brackets: not closed, or with what no list can have."""

import re
from collections.abc import Sequence
from typing import Any

from adapters.documents.fault import NO_YAML, TWICE, Fault

_ODD_QUOTES = "\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u00b4`"
_closed_in_a_note = re.compile(r".*\s#.*[]}]").match
_PATH = re.compile(r"[\w.\[\]]+").finditer


def bracket_fault(what: str, mark: Any, context: Any, lines: Sequence[str]) -> Fault | None:
    """A list in brackets that is not closed, or has what no list can have."""
    at_end = what.endswith("'<stream end>'")
    if at_end and what.startswith(("expected ',' or", "expected the node content")):
        opened = "" if context is None else f" that opens in line {context.line + 1}"
        text = f"{NO_YAML}the file ends before the bracket{opened} is closed"
        return Fault(mark.line, mark.column, text, "cut-off")
    if what == "expected the node content, but found '-'":
        return Fault(mark.line, mark.column, "in brackets no dash stands before a text", "dash")
    if what.startswith("expected the node content, but found ','"):
        return Fault(mark.line, mark.column, "a comma too many stands here", "comma")
    if what in ("expected <block end>, but found ']'", "expected <block end>, but found '}'"):
        return Fault(mark.line, mark.column, _TOO_MANY, "bracket")
    if what == "expected <block end>, but found ','":
        return Fault(mark.line, mark.column, _BEHIND, "text-behind")
    return _in_brackets(what, mark, context, lines)


_TOO_MANY = "this bracket closes what no bracket opened"
_BEHIND = "nothing can stand behind the bracket that closes: begin a new line"


def _in_brackets(what: str, mark: Any, context: Any, lines: Sequence[str]) -> Fault | None:
    if not what.startswith("expected ',' or") or context is None:
        return None
    found = _unquoted_path(mark, lines) if what.endswith("'['") else None
    if found is not None:
        return found
    line, closes = lines[mark.line], what[len("expected ',' or '")]
    if mark.line != context.line and "," not in line[: mark.column]:
        text = "the bracket that opens here is never closed"
        if _closed_in_a_note(lines[context.line]):
            text = f"{text}: what stands behind # in its line is a note"
        return Fault(context.line, context.column, text, "open-bracket")
    text, code = _MISSING, "bracket"
    if what.endswith(("got '}'", "got ']'")):
        text = f"a list that opens with {'[' if closes == ']' else '{'} closes with {closes}"
    elif what.endswith("':'"):
        text, code = TWICE, "colon-twice"
    elif what.endswith("'<scalar>'"):
        text, code = "a comma is missing before this text", "missing-comma"
    return Fault(mark.line, mark.column, text, code)


_MISSING = "a comma, or the bracket that closes, is missing before this sign"


def _unquoted_path(mark: Any, lines: Sequence[str]) -> Fault | None:
    """A path with brackets in it, that stands in no quotes, from its beginning."""
    paths = (each for each in _PATH(lines[mark.line]) if each.end() > mark.column)
    path = next(paths, None)
    if path is None or path.start() >= mark.column:
        return None
    word = path[0]
    while word.count("]") > word.count("["):
        word = word[:-1]
    before = lines[mark.line][path.start() - 1 : path.start()]
    if before and before in _ODD_QUOTES:
        text = f'quotes are " or \', not those of a word processor: write "{word}"'
        return Fault(mark.line, path.start() - 1, text, "odd-quotes")
    text = f'a path with [] stands in quotes: write "{word}"'
    return Fault(mark.line, path.start(), text, "unquoted-path")
