"""Parts a mapping's `where` into the conditions that must all hold, and says which hides a row."""

import re
from collections.abc import Iterator, Sequence

# Quoted texts and names, brackets, operators and words.
_TOKENS = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|[(\[{]|[)\]}]|&&|\|\||\w+").finditer


def split_at(where: str, word: str) -> list[str]:
    """Returns the parts of a condition that must all hold; the whole where it cannot be parted.

    `word` joins them: `and` of SQL, or `&&`. What stands in quotes or brackets is not looked into,
    nor the `and` of a BETWEEN or of a CASE.
    """
    where, parts, start = _bare(where), list[str](), 0
    for token in _outer(where):
        if token[0].lower() in ("or", "||"):
            return [where]
        if token[0].lower() == word:
            parts.append(where[start : token.start()].strip())
            start = token.end()
    parts.append(where[start:].strip())
    return parts if all(parts) else [where]


def _bare(where: str) -> str:
    """Returns a condition without the brackets around the whole of it."""
    where = where.strip()
    while where.startswith("(") and where.endswith(")"):
        depth = 0
        for token in _TOKENS(where):
            depth += (token[0] == "(") - (token[0] == ")")
            if depth == 0:
                if token.end() < len(where):
                    return where
                break
        else:
            return where
        where = where[1:-1].strip()
    return where


def _outer(where: str) -> Iterator[re.Match[str]]:
    """Yields the words and operators outside of brackets and CASE, without BETWEEN's own AND."""
    depth, is_between = 0, False
    for token in _TOKENS(where):
        text = token[0].lower()
        depth += (text in ("(", "[", "{", "case")) - (text in (")", "]", "}", "end"))
        if depth or text == "end":
            continue
        if text == "and" and is_between:
            is_between = False
            continue
        is_between = is_between or text == "between"
        yield token


def hiding(place: str, where: str, failing: Sequence[str]) -> str:
    """Returns which condition hides a row; `failing` are its parts that do not hold, if known."""
    parts = [" ".join(part.split()) for part in failing or (where,)]
    does = "does" if len(parts) == 1 else "do"
    return f"`where` hides it ({place}): {' and '.join(parts)} {does} not hold"
