"""Says where a file that is no YAML is wrong, to people who know no YAML, and what to write.

What the YAML reader finds is where it lost the thread; here the line that led it astray is looked
for, in the tokens that it read until then.
"""

import re
from collections.abc import Sequence
from typing import Any

from adapters.documents.bracket_faults import bracket_fault
from adapters.documents.fault import NO_YAML, TWICE, Fault

WHOLE = "put the whole text in quotes, such as \"'Dr ' || v.name\""
INDENTED = "this line is indented otherwise than the lines it belongs to"
COLON = "a colon needs a blank behind it: write name: value"
_DASH = "a dash is missing: the lines above are items of a list, which begin with `- `"
_TIGHT_DASH = "a dash needs a blank behind it"
_tight_dash = re.compile(r"\s*-\w").match
_TIGHT = re.compile(r"[\s-]*[A-Za-z_][\w.]*:(?=\S)").match
_BLOCKS = ("<block mapping start>", "<block sequence start>", "<block end>")


def fault_of(error: Any, lines: Sequence[str], tokens: Sequence[Any]) -> Fault:
    """What an error of the YAML reader means, and where; `tokens` are those before it."""
    what: str = error.problem or "unreadable"
    mark, context = error.problem_mark or error.context_mark, error.context_mark
    if mark is None:
        return Fault(0, 0, f"{NO_YAML}{one_line(what)}")
    found = (
        _composed(what, mark)
        or _unclosed(what, mark, context, tokens)
        or _colon(what, mark, context, lines, tokens)
        or bracket_fault(what, mark, context, lines)
        or _special(what, mark, context)
        or _text_goes_on(what, mark, tokens)
        or _indented(what, mark, context, lines, tokens)
    )
    if found is None:
        return Fault(mark.line, mark.column, f"{NO_YAML}{one_line(what)}")
    return _at_the_end(found, lines)


def _at_the_end(found: Fault, lines: Sequence[str]) -> Fault:
    """What is wrong in a last line that does not end was most likely cut off."""
    torn = found.line == len(lines) - 1 and found.code in ("no-colon", "open-quote", "dash")
    return found._replace(code="cut-off") if torn else found


def misread_bytes(content: bytes, error: Any) -> Fault:
    """Where a file has what is no letter of UTF-8, or a letter that no file may have."""
    try:
        before = content.decode()[: getattr(error, "position", 0)]
    except UnicodeDecodeError as undecoded:
        before = content[: undecoded.start].decode()
        text, code = "the letter here is not written in UTF-8; save the file as UTF-8", "not-utf8"
    else:
        text, code = "a sign stands here that no editor shows; write the line anew", "hidden-sign"
    line = before.count("\n")
    return Fault(line, len(before) - (before.rfind("\n") + 1), NO_YAML + text, code)


def one_line(text: str) -> str:
    return " ".join(text.split())[:200]


# What the composer itself refuses, which says so in its own words.
ANCHOR = (
    "anchors and aliases are not allowed; write it out; a text that begins with * or & stands in"
    " quotes"
)
TAG = "tags are not allowed; a text that begins with ! stands in quotes"
DEEP = "nested more than"
_REFUSED = {ANCHOR: "anchor", TAG: "tag", "this escape names no letter": "escape"}


def _composed(what: str, mark: Any) -> Fault | None:
    """What is well written, and refused all the same."""
    text, code = what, _REFUSED.get(what, "")
    if what.startswith(DEEP):
        code = "too-deep"
    elif what == "but found another document":
        text, code = "a second document begins here; take the --- out", "second-document"
    return Fault(mark.line, mark.column, NO_YAML + text, code) if code else None


def _unclosed(what: str, mark: Any, context: Any, tokens: Sequence[Any]) -> Fault | None:
    """A quote that ends with the file, or where the next one opens."""
    if what in ("found unexpected end of stream", "found unexpected document separator"):
        text = "the quote that opens here is never closed"
        return Fault(context.line, context.column, text, "open-quote")
    last = _before(mark, tokens)
    if last is None or _style(last) not in ("'", '"') or what.startswith("expected '<document"):
        return None
    start, end = last.start_mark, last.end_mark
    if start.line == end.line or end.line != mark.line:
        return None
    text = f"the quote that opens here is never closed: the next one, in line {end.line + 1},"
    return Fault(start.line, start.column, f"{text} was taken for its end", "open-quote")


def _colon(
    what: str, mark: Any, context: Any, lines: Sequence[str], tokens: Sequence[Any]
) -> Fault | None:
    """A colon without a blank, or without a line of its own."""
    if what == "could not find expected ':'":
        return _no_colon(context, lines)
    if what == "sequence entries are not allowed here":
        text = "the dash of a list's first item stands in a line of its own"
        return Fault(mark.line, mark.column, text, "dash")
    if what != "mapping values are not allowed here":
        return None
    last = _before(mark, tokens)
    start = last.start_mark if last is not None and _style(last) is not None else mark
    if start.line == mark.line:
        return Fault(mark.line, mark.column, TWICE, "colon-twice")
    head = lines[start.line][: start.column]
    if not head.strip(" -"):  # the text above is no value: it should have been a name
        return _no_colon(start, lines)
    stray = _odd_one_out(mark.line, lines)
    return Fault(stray, _indent(lines[stray]), INDENTED, "indentation")


def _no_colon(start: Any, lines: Sequence[str]) -> Fault:
    """A name that has no value, from its start."""
    found = _TIGHT(lines[start.line])
    if found:
        return Fault(start.line, found.end() - 1, COLON, "colon")
    if _tight_dash(lines[start.line]):
        return Fault(start.line, start.column, _TIGHT_DASH, "dash")
    above = lines[start.line - 1] if start.line else ""
    if above.lstrip().startswith("- ") and _indent(above) == _indent(lines[start.line]):
        return Fault(start.line, start.column, _DASH, "dash")
    text = "this line has no colon: write name: value"
    return Fault(start.line, start.column, text, "no-colon")


def _special(what: str, mark: Any, context: Any) -> Fault | None:
    """A sign that means something of its own at the beginning of a text."""
    kind = _taken_for(context, what)
    if kind is not None:
        return Fault(context.line, context.column, *kind)
    if found := re.match(r"found character '(.)' that cannot start", what):
        text = f"a text cannot begin with {found[1]}: {WHOLE}"
        return Fault(mark.line, mark.column, text, "sign-at-start")
    if what.startswith("found unknown escape character"):
        text = "a backslash in double quotes begins an escape: write it twice, or use single quotes"
        return Fault(mark.line, mark.column, text, "escape")
    return None


def _taken_for(context: Any, what: str) -> tuple[str, str] | None:
    """What a sign that begins a block of text, an anchor or a tag was taken for, and the kind."""
    if context is None:
        return None
    if what.startswith(("expected chomping", "expected a comment or a line break")):
        text = f"the sign here begins a text of several lines; if it is part of a text, {WHOLE}"
        return text, "sign-at-start"
    if what.startswith("expected alphabetic or numeric character"):
        return "a text that begins with * or & stands in quotes", "anchor"
    if what.startswith("expected ' ', but found"):
        return "a text that begins with ! stands in quotes", "tag"
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
    text = f"text stands behind {behind} that closes: {WHOLE}"
    return Fault(mark.line, mark.column, text, "text-behind")


_FOUND_BLOCKS = tuple(f"but found '{each}'" for each in _BLOCKS)


def _indented(
    what: str, mark: Any, context: Any, lines: Sequence[str], tokens: Sequence[Any]
) -> Fault | None:
    """A line that is not where its neighbours are."""
    if what.startswith("expected '<document start>'"):
        return _behind_the_end(mark, lines, tokens)
    if not what.startswith("expected <block end>"):
        return None
    stray = _odd_one_out(mark.line, lines)
    line = lines[stray]
    if not line[: len(line) - len(line.lstrip())].isascii():
        text = "a blank here is not the keyboard's own: write the beginning of the line anew"
        return Fault(stray, _indent(line), text, "hidden-sign")
    if stray != mark.line:
        return Fault(stray, _indent(line), INDENTED, "indentation")
    dash = _misplaced_dash(what, mark, context, line)
    return dash or Fault(mark.line, _indent(line), INDENTED, "indentation")


def _misplaced_dash(what: str, mark: Any, context: Any, line: str) -> Fault | None:
    if context is None or context.column != mark.column:
        return None
    if what.endswith("'?'"):
        text = _TIGHT_DASH if _tight_dash(line) else _DASH
        return Fault(mark.line, mark.column, text, "dash")
    if what.endswith("'-'"):
        text = "a list's item stands among names: indent the list under the name it belongs to"
        return Fault(mark.line, mark.column, text, "dash")
    return None


def _odd_one_out(line: int, lines: Sequence[str]) -> int:
    """The line above, where it alone stands further left than the ones around it; else `line`."""
    if line < 2 or not (lines[line - 1].strip() and lines[line - 2].strip()):
        return line
    first, middle, last = (_indent(each) for each in lines[line - 2 : line + 1])
    return line - 1 if middle < first == last else line


def _behind_the_end(mark: Any, lines: Sequence[str], tokens: Sequence[Any]) -> Fault:
    if len(tokens) > 1 and _style(tokens[1]) == "":  # a text where the first name should stand
        return _no_colon(tokens[1].start_mark, lines)
    if "..." in map(str.rstrip, lines[: mark.line]):
        text = "three dots above end the file before this line: take them out"
        return Fault(mark.line, mark.column, text, "second-document")
    return Fault(mark.line, mark.column, INDENTED, "indentation")


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
