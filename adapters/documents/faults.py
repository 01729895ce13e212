"""Explains where a file is no YAML to people who know none; of rarer slips YAML's own words tell.

The YAML reader tells where it lost the thread. The line that led it astray is looked for in the
tokens that it read until then.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from adapters.documents.problems import Check

FILE_CHECKS: Sequence[Check[Any]] = (
    Check("unreadable", "the file cannot be read", "The gateway must be able to read it."),
    Check("too-large", "the file is too large", "Most likely this is another file."),
    Check("empty-file", "the file is empty", "Begin with a copy of the file that is shipped."),
    Check("not-utf8", "an old encoding", "Save the file as UTF-8; every editor offers that."),
    Check("hidden-sign", "an invisible sign", "Text pasted from web pages often has such signs."),
    Check("odd-quotes", "quotes of a word processor", "A plain text editor leaves quotes alone."),
    Check("not-yaml", "not understood", "Names, colons, brackets, commas and blanks matter."),
    Check("tab", "a tab", "Blanks say what belongs to what; let your editor write them for tabs."),
    Check("indentation", "blanks at the beginning", "Names of one group begin in the same column."),
    Check("colon", "a colon without a blank", "Behind a name stand a colon and a blank."),
    Check("colon-twice", "a second colon", "One line says one thing; more stands in braces."),
    Check("no-colon", "a missing colon", "A colon and what it holds follow every name."),
    Check("open-bracket", "an open bracket", "A list begins with [ and ends with ]."),
    Check("open-quote", "an open quote", "The same sign opens and closes a quote."),
    Check("text-behind", "text behind the end", "Nothing follows a closing bracket or quote."),
    Check("dash", "a dash out of place", "Each item has its own line, behind a dash and a blank."),
    Check("sign-at-start", "a sign at the beginning", "A text with such a sign stands in quotes."),
    Check("odd-name", "a name that is none", "A name is one plain word before a colon."),
    Check("doubled-name", "a name twice", "Nobody can tell which of the two counts: keep one."),
    Check("anchor", "a copy by name", "Anchors, aliases and << hide what a file says."),
    Check("tag", "a tag", "What begins with ! names a type, which nothing here needs."),
    Check("unquoted-path", "a path without quotes", "Brackets begin a list, except in quotes."),
)

_WHOLE = "put the whole text in quotes, such as \"'Dr ' || v.name\""
_INDENTED = "this line is indented otherwise than the lines it belongs to"
_TWICE = (
    "a second `name: value` stands in one line: give it a line of its own, write {a: b}, or put the"
    " text in quotes if the colon is part of it"
)
_HIDDEN = "a sign stands here that no editor shows; write the line anew"
ODD_QUOTES = "\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u00b4`"
# How what the YAML reader says begins, the check that fails, and what to write.
_SLIPS: Sequence[tuple[str, str, str]] = (
    (r".*\\t", "tab", "a tab stands here; indent with blanks"),
    (
        "anchor$|expected alphabetic or numeric character",
        "anchor",
        "no text begins with * or & (an alias, an anchor): write it out, or put it in quotes",
    ),
    (
        "tag$|expected ' ', but found",
        "tag",
        "no text begins with ! (a tag): take it out, or put the text in quotes",
    ),
    (
        "found unexpected (end of stream|document)",
        "open-quote",
        "the quote that opens here is never closed",
    ),
    (
        "expected (',' or|the node content).*'<stream end>'",
        "open-bracket",
        "the file ends before a bracket is closed; maybe its end is missing",
    ),
    (
        "sequence entries are not allowed here",
        "dash",
        "the dash of a list's first item stands in a line of its own",
    ),
    ("expected ',' or .* got ':'", "colon-twice", _TWICE),
    (
        "found character .* that cannot start|expected (chomping|a comment or a line break)",
        "sign-at-start",
        f"a text cannot begin with this sign: {_WHOLE}",
    ),
)
_DASH = "a dash is missing: the lines above are items of a list, which begin with `- `"
_TIGHT_DASH = "a dash needs a blank behind it"
_tight_dash = re.compile(r"\s*-\w").match
_tight_colon = re.compile(r"[\s-]*[A-Za-z_][\w.]*:(?=\S)").match
_closed = re.compile(r".*[]}\"']\s*").fullmatch
_path = re.compile(r"[\w.\[\]]+")


class Fault(NamedTuple):
    """A line of the file and a column, both from 0, the check that fails there, and the remedy."""

    line: int
    column: int
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class _Stop:
    """What the YAML reader said, the marks where it stopped and where it had begun, and the lines.

    `first` and `last` are tokens: the file's first one, and the last that it had read.
    """

    what: str
    mark: Any
    start: Any
    lines: Sequence[str]
    first: Any
    last: Any

    def here(self, code: str, text: str) -> Fault:
        return Fault(self.mark.line, self.mark.column, code, text)


def fault_of(error: Any, lines: Sequence[str], tokens: Sequence[Any]) -> Fault:
    """Returns what an error of the YAML reader means, and where; `tokens` are those before it."""
    mark, what = error.problem_mark or error.context_mark, error.problem or "unreadable"
    read = [one for one in tokens if one.start_mark.index < one.end_mark.index <= mark.index]
    last = max(read, key=lambda token: token.end_mark.index, default=None)
    first = tokens[1] if len(tokens) > 1 else None
    stop = _Stop(what, mark, error.context_mark, lines, first, last)
    if fault := _open_quote(stop) or _in_brackets(stop):
        return fault
    for beginning, code, text in _SLIPS:
        if re.match(beginning, what, re.DOTALL):
            is_word = (error.context or "").startswith("while scanning")  # not a whole bracket
            at = error.context_mark if is_word else None
            return Fault((at or mark).line, (at or mark).column, code, text)
    if what.startswith(("could not find expected ':'", "mapping values are not allowed")):
        return _colon(stop)
    if what.startswith("expected '<document start>'"):
        return _behind_the_end(stop)
    if what.startswith("expected <block end>"):
        return _misplaced_line(stop)
    words = one_line(": ".join(filter(None, (error.context, what))))
    return stop.here("not-yaml", f"this is not YAML: {words}")


def _open_quote(stop: _Stop) -> Fault | None:
    """A quote that ends where the next one should open."""
    if getattr(stop.last, "style", None) not in {"'", '"'} or "document start" in stop.what:
        return None
    start, end = stop.last.start_mark, stop.last.end_mark.line
    if start.line == end or end != stop.mark.line:
        return None
    text = f"the quote that opens here is never closed: the next one, in line {end + 1}, was taken"
    return Fault(start.line, start.column, "open-quote", f"{text} for its end")


def _in_brackets(stop: _Stop) -> Fault | None:
    """A path that stands in no quotes, from its beginning; or a bracket that is never closed."""
    line, number, column = stop.lines[stop.mark.line], stop.mark.line, stop.mark.column
    if not stop.what.startswith("expected ',' or"):
        return None
    for path in _path.finditer(line) if stop.what.endswith("got '['") else ():
        if path.start() < column < path.end():
            word, before = path[0], line[: path.start()][-1:]
            while word.count("]") > word.count("["):
                word = word[:-1]
            if before and before in ODD_QUOTES:
                text = f'quotes are " or \', not those of a word processor: write "{word}"'
                return Fault(number, path.start() - 1, "odd-quotes", text)
            text = f'a path with [] stands in quotes: write "{word}"'
            return Fault(number, path.start(), "unquoted-path", text)
    if stop.start.line == number or "," in line[:column]:
        return None
    text = "the bracket that opens here is never closed"
    return Fault(stop.start.line, stop.start.column, "open-bracket", text)


def _colon(stop: _Stop) -> Fault:
    """No colon at all, a second one, or one in a line that seems to go on with the one above."""
    if stop.what.startswith("could not find"):
        return _no_colon(stop.start, stop.lines)
    start = stop.last.start_mark if hasattr(stop.last, "plain") else stop.mark
    if start.line == stop.mark.line:
        return stop.here("colon-twice", _TWICE)
    if not stop.lines[start.line][: start.column].strip(" -"):  # no value: it should be a name
        return _no_colon(start, stop.lines)
    return _misplaced_line(stop)


def _behind_the_end(stop: _Stop) -> Fault:
    """A line behind what the reader took for the whole file."""
    if getattr(stop.first, "plain", False):  # it stands where the first name should
        return _no_colon(stop.first.start_mark, stop.lines)
    return stop.here("indentation", _INDENTED)


def _no_colon(start: Any, lines: Sequence[str]) -> Fault:
    """A name that has no value, from its start."""
    line, above = lines[start.line], lines[start.line - 1] if start.line else ""
    if tight := _tight_colon(line):
        text = "a colon needs a blank behind it: write name: value"
        return Fault(start.line, tight.end() - 1, "colon", text)
    code, text = "no-colon", "this line has no colon: write name: value"
    if _tight_dash(line):
        code, text = "dash", _TIGHT_DASH
    elif above.lstrip().startswith("- ") and _indent(above) == _indent(line):
        code, text = "dash", _DASH
    return Fault(start.line, start.column, code, text)


def _misplaced_line(stop: _Stop) -> Fault:
    """What stands behind an end; else the line that is not where its neighbours are.

    That is the one above, where it alone stands further left than those around it.
    """
    number = int(stop.mark.line)
    if _closed(stop.lines[number][: stop.mark.column]):
        text = (
            f"nothing stands behind a quote or bracket that closes: begin a new line, or {_WHOLE}"
        )
        return stop.here("text-behind", text)
    around = stop.lines[max(number - 2, 0) : number + 1]
    if len(around) == 3 and all(map(str.strip, around)):
        before, above, here = map(_indent, around)
        number -= above < before == here
    line = stop.lines[number]
    if not line[: len(line) - len(line.lstrip())].isascii():
        return Fault(number, _indent(line), "hidden-sign", _HIDDEN)
    if number == stop.mark.line and stop.start and stop.start.column == stop.mark.column:
        if stop.what.endswith("'?'"):
            return stop.here("dash", _TIGHT_DASH if _tight_dash(line) else _DASH)
        if stop.what.endswith("'-'"):
            text = "a list's item stands among names: indent the list under the name it belongs to"
            return stop.here("dash", text)
    return Fault(number, _indent(line), "indentation", _INDENTED)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def misread_bytes(content: bytes, error: Any) -> Fault:
    """Where a file has what is no letter of UTF-8, or a letter that no file may have."""
    try:
        before, code, text = content.decode()[: error.position], "hidden-sign", _HIDDEN
    except UnicodeDecodeError as undecoded:
        before, code = content[: undecoded.start].decode(), "not-utf8"
        text = "the letter here is in an old encoding; save the file as UTF-8"
    return Fault(before.count("\n"), len(before) - (before.rfind("\n") + 1), code, text)


def one_line(text: str) -> str:
    """The words of a text, as far as a line has room for them."""
    return " ".join(text.split())[:200]
