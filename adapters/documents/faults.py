"""Explains to people who know no YAML where a file is none, and what to write.

The YAML reader tells where it lost the thread. The line that led it astray is looked for in the
tokens that it read until then.
"""

import re
from collections.abc import Callable, Sequence
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
    Check("cut-off", "the end is missing", "Save or copy the whole file once more."),
    Check(
        "second-document", "a second file within the file", "A line of dashes or dots ends a file."
    ),
    Check("not-yaml", "not understood", "Names, colons, brackets, commas and blanks matter."),
    Check("tab", "a tab", "Blanks say what belongs to what; let your editor write them for tabs."),
    Check("indentation", "blanks at the beginning", "Names of one group begin in the same column."),
    Check("colon", "a colon without a blank", "Behind a name stand a colon and a blank."),
    Check("colon-twice", "a second colon", "One line says one thing; more stands in braces."),
    Check("no-colon", "a missing colon", "A colon and what it holds follow every name."),
    Check("comma", "a comma too many", "Between two items stands one comma."),
    Check("bracket", "a bracket too many", "Each closing bracket belongs to one that opens."),
    Check("open-bracket", "an open bracket", "A list begins with [ and ends with ]."),
    Check("open-quote", "an open quote", "The same sign opens and closes a quote."),
    Check("text-behind", "text behind the end", "Nothing follows a closing bracket or quote."),
    Check("dash", "a dash out of place", "Each item has its own line, behind a dash and a blank."),
    Check("sign-at-start", "a sign at the beginning", "A text with such a sign stands in quotes."),
    Check("escape", "a backslash", "In single quotes a backslash is a sign like any other."),
    Check("half-letter", "half of a letter", "Write the letter itself, not its number."),
    Check("odd-name", "a name that is none", "A name is one plain word before a colon."),
    Check("doubled-name", "a name twice", "Nobody can tell which of the two counts: keep one."),
    Check("anchor", "an anchor or alias", "Copies by name hide what a file says: write it out."),
    Check("tag", "a tag", "What begins with ! names a type, which nothing here needs."),
    Check("merge-key", "a merge key", "Copies by name hide what a file says: write it out."),
    Check("too-deep", "nested too deep", "One pair of brackets is enough for a list."),
    Check("unquoted-path", "a path without quotes", "Brackets begin a list, except in quotes."),
)

NO_YAML = "this is not YAML: "
_ANCHOR = "no text begins with * or & (an alias, an anchor): write it out, or put it in quotes"
_TAG = "no text begins with ! (a tag): take it out, or put the text in quotes"
_WHOLE = "put the whole text in quotes, such as \"'Dr ' || v.name\""
_INDENTED = "this line is indented otherwise than the lines it belongs to"
_DASH = "a dash is missing: the lines above are items of a list, which begin with `- `"
_HIDDEN = "a sign stands here that no editor shows; write the line anew"
_TIGHT_DASH = "a dash needs a blank behind it"
_TWICE = (
    "a second `name: value` stands in one line: give it a line of its own, write {a: b}, or put the"
    " text in quotes if the colon is part of it"
)
ODD_QUOTES = "\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u00b4`"
_tight_dash = re.compile(r"\s*-\w").match
_tight_colon = re.compile(r"[\s-]*[A-Za-z_][\w.]*:(?=\S)").match
_paths_in = re.compile(r"[\w.\[\]]+").finditer
_closed_in_a_note = re.compile(r".*\s#.*[]}]").match


class Fault(NamedTuple):
    """A line of the file and a column, both from 0, what is wrong there, and the check's code."""

    line: int
    column: int
    text: str
    code: str = "not-yaml"


@dataclass(frozen=True, slots=True)
class _Stop:
    """Where the YAML reader stopped, in what it was there, and the tokens that it had read."""

    what: str
    mark: Any
    context: Any
    lines: Sequence[str]
    tokens: Sequence[Any]

    @property
    def line(self) -> str:
        """The line of the mark."""
        return self.lines[int(self.mark.line)]

    def here(self, code: str, text: str) -> Fault:
        return Fault(self.mark.line, self.mark.column, text, code)

    def last(self) -> Any:
        """The last token that ends before the mark and is no mere beginning or end; or None."""
        end = self.mark.index
        read = (one for one in self.tokens if one.start_mark.index < one.end_mark.index <= end)
        return max(read, key=lambda token: token.end_mark.index, default=None)


def fault_of(error: Any, lines: Sequence[str], tokens: Sequence[Any]) -> Fault:
    """Returns what an error of the YAML reader means, and where; `tokens` are those before it."""
    mark = error.problem_mark or error.context_mark
    what = error.problem or "unreadable"
    if mark is None:
        return Fault(0, 0, f"{NO_YAML}{one_line(what)}")
    stop = _Stop(what, mark, error.context_mark, lines, tokens)
    for beginning, explain in _EXPLANATIONS:
        if re.match(beginning, what, re.DOTALL) and (fault := explain(stop)) is not None:
            torn = fault.line == len(lines) - 1 and fault.code in ("no-colon", "open-quote", "dash")
            return fault._replace(code="cut-off") if torn else fault
    return stop.here("not-yaml", f"{NO_YAML}{one_line(what)}")


def misread_bytes(content: bytes, error: Any) -> Fault:
    """Where a file has what is no letter of UTF-8, or a letter that no file may have."""
    try:
        before = content.decode()[: getattr(error, "position", 0)]
    except UnicodeDecodeError as undecoded:
        before = content[: undecoded.start].decode()
        text, code = "the letter here is in an old encoding; save the file as UTF-8", "not-utf8"
    else:
        text, code = _HIDDEN, "hidden-sign"
    return Fault(before.count("\n"), len(before) - (before.rfind("\n") + 1), text, code)


def one_line(text: str) -> str:
    """The words of a text, as far as a line has room for them."""
    return " ".join(text.split())[:200]


_Explain = Callable[[_Stop], Fault | None]


def _here(code: str, text: str) -> _Explain:
    return lambda stop: stop.here(code, text)


def _at_start(code: str, text: str) -> _Explain:
    def explain(stop: _Stop) -> Fault | None:
        at = stop.context
        return at and Fault(at.line, at.column, text, code)

    return explain


def _quote_over_lines(stop: _Stop) -> Fault | None:
    """A quote that ends where the next one should open."""
    last = stop.last()
    if not _is_quoted(last) or stop.what.startswith("expected '<document"):
        return None
    start, end = last.start_mark, last.end_mark
    if start.line == end.line or end.line != stop.mark.line:
        return None
    text = (
        f"the quote that opens here is never closed: the next one, in line {end.line + 1}, was"
        " taken for its end"
    )
    return Fault(start.line, start.column, text, "open-quote")


def _second_colon(stop: _Stop) -> Fault:
    """A colon in a line that has one, or in a line that seems to go on with the one above."""
    last = stop.last()
    start = last.start_mark if _is_text(last) else stop.mark
    if start.line == stop.mark.line:
        return stop.here("colon-twice", _TWICE)
    if not stop.lines[start.line][: start.column].strip(" -"):  # no value: it should be a name
        return _no_colon(start, stop.lines)
    return _stray(_odd_one_out(stop), stop.lines)


def _no_colon(start: Any, lines: Sequence[str]) -> Fault:
    """A name that has no value, from its start."""
    line, above = lines[start.line], lines[start.line - 1] if start.line else ""
    if tight := _tight_colon(line):
        text = "a colon needs a blank behind it: write name: value"
        return Fault(start.line, tight.end() - 1, text, "colon")
    text, code = "this line has no colon: write name: value", "no-colon"
    if _tight_dash(line):
        text, code = _TIGHT_DASH, "dash"
    elif above.lstrip().startswith("- ") and _indent(above) == _indent(line):
        text, code = _DASH, "dash"
    return Fault(start.line, start.column, text, code)


def _file_ends(stop: _Stop) -> Fault:
    """A bracket that is still open where the file ends."""
    opened = "" if stop.context is None else f" that opens in line {stop.context.line + 1}"
    return stop.here("cut-off", f"{NO_YAML}the file ends before the bracket{opened} is closed")


def _open_bracket(stop: _Stop) -> Fault | None:
    """A bracket that is not closed in its line, nor has an item in the mark's."""
    opened = stop.context
    if opened is None or stop.mark.line == opened.line or "," in stop.line[: stop.mark.column]:
        return None
    text = "the bracket that opens here is never closed"
    if _closed_in_a_note(stop.lines[opened.line]):
        text = f"{text}: what stands behind # in its line is a note"
    return Fault(opened.line, opened.column, text, "open-bracket")


def _unquoted_path(stop: _Stop) -> Fault | None:
    """A path with brackets in it, that stands in no quotes, from its beginning."""
    column, number = stop.mark.column, stop.mark.line
    path = next((path for path in _paths_in(stop.line) if path.end() > column), None)
    if path is None or path.start() >= column:
        return None
    word, before = path[0], stop.line[: path.start()][-1:]
    while word.count("]") > word.count("["):
        word = word[:-1]
    if before and before in ODD_QUOTES:
        text = f'quotes are " or \', not those of a word processor: write "{word}"'
        return Fault(number, path.start() - 1, text, "odd-quotes")
    text = f'a path with [] stands in quotes: write "{word}"'
    return Fault(number, path.start(), text, "unquoted-path")


def _text_goes_on(stop: _Stop) -> Fault | None:
    """More text behind the quote or the bracket that ended one."""
    last = stop.last()
    if last is None or last.end_mark.line != stop.mark.line or stop.what.endswith(_BLOCKS):
        return None
    if not _is_quoted(last) and "'<scalar>'" not in stop.what:
        return None
    behind = "the quote" if _is_quoted(last) else "the bracket"
    return stop.here("text-behind", f"text stands behind {behind} that closes: {_WHOLE}")


_BLOCKS = ("'<block mapping start>'", "'<block sequence start>'", "'<block end>'")


def _misplaced_line(stop: _Stop) -> Fault:
    """A line that is not where its neighbours are."""
    stray, mark = _odd_one_out(stop), stop.mark
    line = stop.lines[stray]
    if not line[: len(line) - len(line.lstrip())].isascii():
        return Fault(stray, _indent(line), _HIDDEN, "hidden-sign")
    if stray == mark.line and stop.context is not None and stop.context.column == mark.column:
        if stop.what.endswith("'?'"):
            return stop.here("dash", _TIGHT_DASH if _tight_dash(line) else _DASH)
        if stop.what.endswith("'-'"):
            text = "a list's item stands among names: indent the list under the name it belongs to"
            return stop.here("dash", text)
    return _stray(stray, stop.lines)


def _behind_the_end(stop: _Stop) -> Fault:
    """A line behind what the reader took for the whole file."""
    first: Any = stop.tokens[1] if len(stop.tokens) > 1 else None
    if _is_text(first) and not first.style:  # it stands where the first name should
        return _no_colon(first.start_mark, stop.lines)
    if "..." in map(str.rstrip, stop.lines[: stop.mark.line]):
        return stop.here("second-document", _SECOND)
    return stop.here("indentation", _INDENTED)


def _odd_one_out(stop: _Stop) -> int:
    """The line above, where it alone stands further left than those around it; else the mark's."""
    line = stop.mark.line
    if line < 2 or not (stop.lines[line - 1].strip() and stop.lines[line - 2].strip()):
        return int(line)
    first, middle, last = map(_indent, stop.lines[line - 2 : line + 1])
    return int(line - 1 if middle < first == last else line)


def _stray(number: int, lines: Sequence[str]) -> Fault:
    return Fault(number, _indent(lines[number]), _INDENTED, "indentation")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_text(token: Any) -> bool:
    return hasattr(token, "plain")


def _is_quoted(token: Any) -> bool:
    return _is_text(token) and token.style in ("'", '"')


_NO_DASH = "in brackets no dash stands before a text"
_FIRST_DASH = "the dash of a list's first item stands in a line of its own"
_BACKSLASH = "a backslash in double quotes begins an escape: write it twice, or use single quotes"
_SECOND = "three dashes or dots end the file before its end; take that line out"
_DEEP = "nested too deep: brackets within brackets, of which one pair is enough"
_BEHIND = "nothing can stand behind the bracket that closes: begin a new line"
_TOO_MANY = "this bracket closes what no bracket opened"
_NO_COMMA = "a comma is missing before this text"
_NOTHING = "a comma, or the bracket that closes, is missing before this sign"
_OPEN_QUOTE = "the quote that opens here is never closed"
_SIGN = f"a text cannot begin with this sign: {_WHOLE}"
_BLOCK_SIGN = f"the sign here begins a text of several lines; if it is part of a text, {_WHOLE}"
# How what the YAML reader says begins, and what that means; the first row that can tell does.
_EXPLANATIONS: Sequence[tuple[str, _Explain]] = (
    ("anchor$", _here("anchor", _ANCHOR)),
    ("tag$", _here("tag", _TAG)),
    ("too-deep$", _here("too-deep", _DEEP)),
    ("escape$", _here("escape", "this escape names no letter")),
    ("but found another document", _here("second-document", _SECOND)),
    ("found unexpected (end of stream|document)", _at_start("open-quote", _OPEN_QUOTE)),
    ("", _quote_over_lines),
    ("could not find expected ':'", lambda stop: _no_colon(stop.context, stop.lines)),
    ("sequence entries are not allowed here", _here("dash", _FIRST_DASH)),
    ("mapping values are not allowed here", _second_colon),
    ("expected (',' or|the node content).*'<stream end>'", _file_ends),
    ("expected the node content, but found '-'", _here("dash", _NO_DASH)),
    ("expected the node content, but found ','", _here("comma", "a comma too many stands here")),
    ("expected <block end>, but found '[]}]'", _here("bracket", _TOO_MANY)),
    ("expected <block end>, but found ','", _here("text-behind", _BEHIND)),
    (r"expected ',' or .* got '\['", _unquoted_path),
    ("expected ',' or", _open_bracket),
    (
        r"expected ',' or '\]', but got '}'",
        _here("bracket", "a list that opens with [ closes with ]"),
    ),
    (
        r"expected ',' or '}', but got '\]'",
        _here("bracket", "a list that opens with { closes with }"),
    ),
    ("expected ',' or .* got ':'", _here("colon-twice", _TWICE)),
    ("expected ',' or .* got '<scalar>'", _here("missing-comma", _NO_COMMA)),
    ("expected ',' or", _here("bracket", _NOTHING)),
    ("expected (chomping|a comment or a line break)", _at_start("sign-at-start", _BLOCK_SIGN)),
    ("expected alphabetic or numeric character", _at_start("anchor", _ANCHOR)),
    ("expected ' ', but found", _at_start("tag", _TAG)),
    ("found character .* that cannot start", _here("sign-at-start", _SIGN)),
    ("found unknown escape character", _here("escape", _BACKSLASH)),
    ("expected <block end>", _text_goes_on),
    ("expected '<document start>'", _behind_the_end),
    ("expected <block end>", _misplaced_line),
)
