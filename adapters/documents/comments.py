"""The comments of a YAML file, and where each stands."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from adapters.documents.document import Document

_COMMENT = re.compile("#([^\r\n]*)")


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment of a file: where its mark stands (counted from 1), and the words behind it."""

    line: int
    column: int
    text: str


def comments_in(document: Document) -> Iterator[Comment]:
    """All comments of a file, in their order; what looks like one within a text is none."""
    text, end = _decoded(document.content), 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if isinstance(token, yaml.ScalarToken):
            start = token.start_mark.index
            yield from _comments_between(text, end, start)
            end = token.end_mark.index
            if token.style and token.style in "|>":  # behind its sign there may be one
                yield from _comments_between(text, start, _end_of_line(text, start))
    yield from _comments_between(text, end, len(text))


def _decoded(content: bytes) -> str:
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if is_wide else "utf-8-sig")


def _end_of_line(text: str, start: int) -> int:
    found = text.find("\n", start)
    return len(text) if found < 0 else found


def _comments_between(text: str, start: int, end: int) -> Iterator[Comment]:
    for found in _COMMENT.finditer(text, start, end):
        at = found.start()
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        yield Comment(line, column, found[1])
