"""Says where a file that is no YAML is wrong, to people who know no YAML, and what to write.

What the YAML reader finds is where it lost the thread; here the line that led it astray is looked
for, in the tokens that it read until then.
"""

import re
from collections.abc import Sequence
from typing import Any

# A line of the file and a column, both from 0, and what is wrong there.
Fault = tuple[int, int, str]

WHOLE = "put the whole text in quotes, such as \"'Dr ' || v.name\""
INDENTED = "this line is indented otherwise than the lines it belongs to"
COLON = "a colon needs a blank behind it: write name: value"
_TWICE = (
    "a second `name: value` stands in one line: give it a line of its own, write {a: b}, or put the"
    " text in quotes if the colon is part of it"
)
_DASH = "a dash is missing: the lines above are items of a list, which begin with `- `"
_TIGHT = re.compile(r"[\s-]*[A-Za-z_][\w.]*:(?=\S)").match
_BLOCKS = ("<block mapping start>", "<block sequence start>", "<block end>")


def fault_of(error: Any, lines: Sequence[str], tokens: Sequence[Any]) -> Fault:
    """What an error of the YAML reader means, and where; `tokens` are those before it."""
    what: str = error.problem or "unreadable"
    mark, context = error.problem_mark or error.context_mark, error.context_mark
    if mark is None:
        return 0, 0, f"this is not YAML: {one_line(what)}"
    found = (
        _unclosed(what, mark, context, tokens)
        or _colon(what, mark, context, lines, tokens)
        or _special(what, mark, context)
        or _text_goes_on(what, mark, tokens)
        or _indented(what, mark, context, lines)
    )
    return found or (mark.line, mark.column, f"this is not YAML: {one_line(what)}")


def misread_bytes(content: bytes, error: Any) -> Fault:
    """Where a file has what is no letter of UTF-8, or a letter that no file may have."""
    try:
        before = content.decode()[: getattr(error, "position", 0)]
    except UnicodeDecodeError as undecoded:
        before = content[: undecoded.start].decode()
        text = "this is not YAML: the letter here is not written in UTF-8; save the file as UTF-8"
    else:
        text = "this is not YAML: a sign stands here that no editor shows; write the line anew"
    line = before.count("\n")
    return line, len(before) - (before.rfind("\n") + 1), text


def one_line(text: str) -> str:
    return " ".join(text.split())[:200]


def _unclosed(what: str, mark: Any, context: Any, tokens: Sequence[Any]) -> Fault | None:
    """A quote that ends with the file, or where the next one opens."""
    if what in ("found unexpected end of stream", "found unexpected document separator"):
        return context.line, context.column, "the quote that opens here is never closed"
    last = _before(mark, tokens)
    if last is None or _style(last) not in ("'", '"') or what.startswith("expected '<document"):
        return None
    start, end = last.start_mark, last.end_mark
    if start.line == end.line or end.line != mark.line:
        return None
    text = f"the quote that opens here is never closed: the next one, in line {end.line + 1},"
    return start.line, start.column, f"{text} was taken for its end"


def _colon(
    what: str, mark: Any, context: Any, lines: Sequence[str], tokens: Sequence[Any]
) -> Fault | None:
    """A colon without a blank, or without a line of its own."""
    if what == "could not find expected ':'":
        return _no_colon(context, lines)
    if what == "sequence entries are not allowed here":
        return mark.line, mark.column, "the dash of a list's first item stands in a line of its own"
    if what != "mapping values are not allowed here":
        return None
    last = _before(mark, tokens)
    start = last.start_mark if last is not None and _style(last) is not None else mark
    if start.line == mark.line:
        return mark.line, mark.column, _TWICE
    head = lines[start.line][: start.column]
    if not head.strip(" -"):  # the text above is no value: it should have been a name
        return _no_colon(start, lines)
    return mark.line, _indent(lines[mark.line]), INDENTED


def _no_colon(start: Any, lines: Sequence[str]) -> Fault:
    """A name that has no value, from its start."""
    found = _TIGHT(lines[start.line])
    if found:
        return start.line, found.end() - 1, COLON
    return start.line, start.column, "this line has no colon: write name: value"


def _special(what: str, mark: Any, context: Any) -> Fault | None:
    """A sign that means something of its own at the beginning of a text."""
    kind = _taken_for(context, what)
    if kind is not None:
        return context.line, context.column, kind
    if found := re.match(r"found character '(.)' that cannot start", what):
        return mark.line, mark.column, f"a text cannot begin with {found[1]}: {WHOLE}"
    if what.startswith("found unknown escape character"):
        text = "a backslash in double quotes begins an escape: write it twice, or use single quotes"
        return mark.line, mark.column, text
    return None


def _taken_for(context: Any, what: str) -> str | None:
    """What a sign that begins a block of text, or an anchor, was taken for."""
    if context is None:
        return None
    if what.startswith(("expected chomping", "expected a comment or a line break")):
        return f"the sign here begins a text of several lines; if it is part of a text, {WHOLE}"
    if what.startswith("expected alphabetic or numeric character"):
        return "a text that begins with * or & stands in quotes"
    return None


def _text_goes_on(what: str, mark: Any, tokens: Sequence[Any]) -> Fault | None:
    """More text behind the quote or the bracket that ended one."""
    last = _before(mark, tokens)
    if not what.startswith("expected <block end>") or last is None:
        return None
    if last.end_mark.line != mark.line or what.endswith(_FOUND_BLOCKS):
        return None
    quoted = _style(last) in ("'", '"')
    if not quoted and "'<scalar>'" not in what:
        return None
    behind = "the quote" if quoted else "the bracket"
    return mark.line, mark.column, f"text stands behind {behind} that closes: {WHOLE}"


_FOUND_BLOCKS = tuple(f"but found '{each}'" for each in _BLOCKS)


def _indented(what: str, mark: Any, context: Any, lines: Sequence[str]) -> Fault | None:
    """A line that is not where its neighbours are."""
    if what.startswith("expected '<document start>'"):
        return mark.line, mark.column, INDENTED
    if not what.startswith("expected <block end>"):
        return None
    same = context is not None and context.column == mark.column
    if what.endswith("'?'") and same:
        return mark.line, mark.column, _DASH
    if what.endswith("'-'") and same:
        text = "a list's item stands among names: indent the list under the name it belongs to"
        return mark.line, mark.column, text
    return mark.line, _indent(lines[mark.line]), INDENTED


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _style(token: Any) -> str | None:
    """The quote of a text, "" for one without; None for what is no text."""
    return (token.style or "") if hasattr(token, "plain") else None


def _before(mark: Any, tokens: Sequence[Any]) -> Any:
    """The last thing that was written before the mark."""
    written = [
        each
        for each in tokens
        if each.start_mark.index < each.end_mark.index <= mark.index  # no beginnings and ends
    ]
    return written[-1] if written else None
