"""Explains YAML errors to people who do not know YAML; rare errors keep the reader's own words.

The YAML reader tells where it failed. The line that caused it is found with the help of the tokens
that it had read until then.
"""

import re
from collections.abc import Sequence
from typing import Any

from adapters.documents.problems import read_checks

FILE_CHECKS = read_checks(__file__)

_WHOLE = "put the whole text in quotes, such as \"'Dr ' || v.name\""
_INDENTED = "this line is indented otherwise than the lines it belongs to"
_TWICE = (
    "a second `name: value` stands in one line: give it a line of its own, write {a: b}, or put the"
    " text in quotes if the colon is part of it"
)
_HIDDEN = "a sign stands here that no editor shows; write the line anew"
ODD_QUOTES = "\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u00b4`"
# A pattern for the beginning of the YAML reader's message, the check that fails, and the remedy.
_SLIPS: Sequence[tuple[str, str, str]] = (
    (r".*\\t", "tab", "a tab stands here; indent with blanks"),
    ("anchor$|expected alphabetic or numeric character", "anchor",
     "no text begins with * or & (an alias, an anchor): write it out, or put it in quotes"),
    ("tag$|expected ' ', but found", "tag",
     "no text begins with ! (a tag): take it out, or put the text in quotes"),
    ("found unexpected (end of stream|document)", "open-quote",
     "the quote that opens here is never closed"),
    ("expected (',' or|the node content).*'<stream end>'", "open-bracket",
     "the file ends before a bracket is closed; maybe its end is missing"),
    ("sequence entries are not allowed here", "dash",
     "the dash of a list's first item stands in a line of its own"),
    ("expected ',' or .* got ':'", "colon-twice", _TWICE),
    ("found character .* that cannot start|expected (chomping|a comment or a line break)",
     "sign-at-start", f"a text cannot begin with this sign: {_WHOLE}"),
)  # fmt: skip
_DASH = "a dash is missing: the lines above are items of a list, which begin with `- `"
_AMONG_NAMES = "a list's item stands among names: indent the list under the name it belongs to"
_TIGHT_DASH = "a dash needs a blank behind it"
_tight_dash = re.compile(r"\s*-\w").match
_tight_colon = re.compile(r"[\s-]*[A-Za-z_][\w.]*:(?=\S)").match
_closed = re.compile(r".*[]}\"']\s*").fullmatch
_name_in_braces = re.compile(r"(?<=: )\{\w+\([^}]*\}").finditer
_path = re.compile(r"[\w.\[\]]+")


# A line of the file and a column, both from 0, the check that fails there, and the remedy.
Fault = tuple[int, int, str, str]


class Stop:
    """Where the YAML reader stopped with an error, and the tokens that it had read until then."""

    def __init__(self, error: Any, lines: Sequence[str], tokens: Sequence[Any]) -> None:
        self.said, self.start = error.problem or "unreadable", error.context_mark
        self.mark, self.context = error.problem_mark or self.start, error.context or ""
        self.lines, self.line = lines, lines[self.mark.line]
        behind = self.mark.index
        read = [it for it in tokens if it.start_mark.index < it.end_mark.index <= behind]
        self.first: Any = tokens[1] if len(tokens) > 1 else None
        self.last: Any = max(read, key=lambda token: token.end_mark.index, default=None)

    def fault(self) -> Fault:
        """Returns what the error means, and where."""
        if fault := self.open_quote() or self.in_braces() or self.in_brackets():
            return fault
        for beginning, code, text in _SLIPS:
            if re.match(beginning, self.said, re.DOTALL):
                is_word = self.context.startswith("while scanning")  # and not a whole bracket
                return _at((is_word and self.start) or self.mark, code, text)
        if self.said.startswith(("could not find expected ':'", "mapping values are not allowed")):
            return self.colon()
        if self.said.startswith("expected <block end>"):
            return self.misplaced_line()
        words = one_line(": ".join(filter(None, (self.context, self.said))))
        code, text = "not-yaml", f"this is not YAML: {words}"
        if self.said.startswith("expected '<document start>'"):
            if getattr(self.first, "plain", False):  # it stands where the first name should
                return self.no_colon(self.first.start_mark)
            code, text = "indentation", _INDENTED
        return _at(self.mark, code, text)

    def open_quote(self) -> Fault | None:
        """Returns a fault for a quote that ends where the next one should open."""
        if getattr(self.last, "style", None) not in {"'", '"'} or "document start" in self.said:
            return None
        start, end = self.last.start_mark, self.last.end_mark.line
        if start.line == end or end != self.mark.line:
            return None
        text = f"the quote that opens here is never closed: the next one, in line {end + 1}, was"
        return _at(start, "open-quote", f"{text} taken for its end")

    def in_braces(self) -> Fault | None:
        """Returns a fault for a named expression without quotes, which begins with a brace."""
        for used in _name_in_braces(self.line) if self.said.startswith("expected ',' or") else ():
            if used.start() < self.mark.column:
                text = f'a text that begins with a brace stands in quotes: write "{used[0]}"'
                return self.mark.line, used.start(), "unquoted-path", text
        return None

    def in_brackets(self) -> Fault | None:
        """Returns a fault for a path without quotes, or for a bracket that is never closed."""
        line, number, column = self.line, self.mark.line, self.mark.column
        if not self.said.startswith("expected ',' or"):
            return None
        for path in _path.finditer(line) if self.said.endswith("got '['") else ():
            if path.start() < column < path.end():
                word, before = path[0], line[: path.start()][-1:]
                while word.count("]") > word.count("["):
                    word = word[:-1]
                if before and before in ODD_QUOTES:
                    text = f'quotes are " or \', not those of a word processor: write "{word}"'
                    return number, path.start() - 1, "odd-quotes", text
                text = f'a path with [] stands in quotes: write "{word}"'
                return number, path.start(), "unquoted-path", text
        if self.start.line == number or "," in line[:column]:
            return None
        return _at(self.start, "open-bracket", "the bracket that opens here is never closed")

    def colon(self) -> Fault:
        """Returns a fault for a missing colon, a second one, or one in a misplaced line."""
        if self.said.startswith("could not find"):
            return self.no_colon(self.start)
        start = self.last.start_mark if hasattr(self.last, "plain") else self.mark
        if start.line == self.mark.line:
            return _at(self.mark, "colon-twice", _TWICE)
        if not self.lines[start.line][: start.column].strip(" -"):  # it stands where a name should
            return self.no_colon(start)
        return self.misplaced_line()

    def no_colon(self, start: Any) -> Fault:
        """Returns a fault for a name without a value, which begins at `start`."""
        line, above = self.lines[start.line], self.lines[start.line - 1] if start.line else ""
        if tight := _tight_colon(line):
            text = "a colon needs a blank behind it: write name: value"
            return start.line, tight.end() - 1, "colon", text
        if _tight_dash(line):
            return _at(start, "dash", _TIGHT_DASH)
        if above.lstrip().startswith("- ") and _indent(above) == _indent(line):
            return _at(start, "dash", _DASH)
        return _at(start, "no-colon", "this line has no colon: write name: value")

    def misplaced_line(self) -> Fault:
        """Returns a fault for text behind an end, else for a line that is indented wrongly.

        That is the line above, where it alone stands further left than those around it.
        """
        number = int(self.mark.line)
        if _closed(self.line[: self.mark.column]):
            text = "nothing stands behind a quote or bracket that closes: begin a new line, or"
            return _at(self.mark, "text-behind", f"{text} {_WHOLE}")
        around = self.lines[max(number - 2, 0) : number + 1]
        if len(around) == 3 and all(map(str.strip, around)):
            before, above, here = map(_indent, around)
            number -= above < before == here
        line = self.lines[number]
        if not line[: len(line) - len(line.lstrip())].isascii():
            return number, _indent(line), "hidden-sign", _HIDDEN
        if number == self.mark.line and self.start and self.start.column == self.mark.column:
            if self.said.endswith("'?'"):
                return _at(self.mark, "dash", _TIGHT_DASH if _tight_dash(line) else _DASH)
            if self.said.endswith("'-'"):
                return _at(self.mark, "dash", _AMONG_NAMES)
        return number, _indent(line), "indentation", _INDENTED


def _at(mark: Any, code: str, text: str) -> Fault:
    return mark.line, mark.column, code, text


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def misread_bytes(content: bytes, error: Any) -> Fault:
    """Returns a fault for bytes that are not UTF-8, or for a letter that no file may have."""
    try:
        before, code, text = content.decode()[: error.position], "hidden-sign", _HIDDEN
    except UnicodeDecodeError as undecoded:
        before, code = content[: undecoded.start].decode(), "not-utf8"
        text = "the letter here is in an old encoding; save the file as UTF-8"
    return before.count("\n"), len(before) - (before.rfind("\n") + 1), code, text


def one_line(text: str) -> str:
    """Returns the words of a text in one line of at most 200 characters."""
    return " ".join(text.split())[:200]
