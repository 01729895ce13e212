"""Reads a YAML file strictly, and notes the line and column of everything in it.

Every file that people write is read here: the mapping, the policy, the configuration. Scalars are
those of YAML 1.2 (`no` and `8:30` are text). Anchors, aliases, merge keys, tags and doubled keys
are refused.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.nodes import Node, ScalarNode, SequenceNode
from yaml.resolver import Resolver

from adapters.documents.mended import MendedText
from adapters.documents.problems import DocumentErrors, Problem
from adapters.documents.yaml_errors import Fault, Stop, misread_bytes, one_line

LARGEST = 64 * 1024
DEEPEST = 32

# What the two loaders read differently: tabs, breaks other than \n, question marks, a document's
# own marks, a comment at the head of a block, an empty value within brackets.
_ODD = re.compile(
    rb"[\0\t\r?]|---|\.\.\.|[|>][-+0-9]*#|:\s*[]},]|\xc2\x85|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf"
).search
# What ends a line in YAML.
_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
Place = tuple[str | int, ...]


@dataclass(slots=True)
class Document:
    """A file's data, its bytes, and the mark of each place: ("clients", "BASIC", 0) -> (3, 11).

    The mark of a mapping's member is that of its value, and `keys` holds those of the keys. `flaws`
    are the problems with keys. `partial` are the places where the file therefore has more than the
    data: only the first of doubled members is kept. `remarks` are warnings that those who check the
    file found.
    """

    file: str
    content: bytes
    data: Any = None
    marks: dict[Place, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Place, tuple[int, int]] = field(default_factory=dict)
    partial: set[Place] = field(default_factory=set)
    flaws: list[Problem] = field(default_factory=list)
    remarks: list[Problem] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The content as text, without a byte order mark."""
        utf16 = self.content.startswith((b"\xff\xfe", b"\xfe\xff"))
        return self.content.decode("utf-16" if utf16 else "utf-8-sig")

    def line_from(self, place: Place) -> str:
        """Returns the file's line from a place on; "" for no such place."""
        line, column = self.marks.get(place, (0, 0))
        return _BREAK.split(self.text)[line - 1][column - 1 :] if line else ""

    def keys_like(self, pattern: Place) -> list[Place]:
        """Returns the places of keys that match the pattern, where * is any name or number."""
        return [
            place
            for place in self.keys
            if len(place) == len(pattern)
            and all(want in (name, "*") for name, want in zip(place, pattern, strict=True))
        ]

    def without(self, places: Collection[Place]) -> "Document":
        """Returns it without the values at these places, where it is partial then.

        Its places are those of the data that is left, and its marks are those of the file.
        """
        left = Document(self.file, self.content, flaws=self.flaws, remarks=self.remarks)

        def copied(value: Any, old: Place, new: Place) -> Any:
            for marks, own in ((left.marks, self.marks), (left.keys, self.keys)):
                if old in own:
                    marks[new] = own[old]
            if old in self.partial:
                left.partial.add(new)
            if not isinstance(value, dict | list):
                return value
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            kept = [(name, inner) for name, inner in pairs if (*old, name) not in places]
            if len(kept) < len(value):
                left.partial.add(new)
            if isinstance(value, dict):
                return {name: copied(inner, (*old, name), (*new, name)) for name, inner in kept}
            return [copied(it, (*old, name), (*new, at)) for at, (name, it) in enumerate(kept)]

        left.data = copied(self.data, (), ())
        return left

    def may_lack(self, place: Place) -> bool:
        """Returns whether what was left out may belong to the place, or to what is in it."""
        return any(partial[: len(place)] == place for partial in self.partial)

    def problem(self, place: Place, text: str, code: str = "", *, at_key: bool = False) -> Problem:
        """Returns a problem at a place, or at the nearest place around it that the file has."""
        while place and place not in self.marks:
            place = place[:-1]
        marks = self.keys if at_key and place in self.keys else self.marks
        line, column = marks.get(place, (1, 1))
        return Problem(self.file, line, column, text, code)


@dataclass(slots=True)
class ProblemList:
    """The problems of one document, noted during one walk through it."""

    document: Document
    problems: list[Problem] = field(default_factory=list)

    def say(self, place: Place, code: str, text: str, *, at_key: bool = False) -> None:
        """Notes a problem; `code` is that of its check."""
        self.problems.append(self.document.problem(place, text, code, at_key=at_key))

    def absent(self, place: Place, code: str, text: str) -> None:
        """Notes that a name is missing there, unless it may be in a part that was not kept."""
        if place not in self.document.partial:
            self.say(place, code, text, at_key=True)


def read_document(
    path: Path, largest: int = LARGEST, *, flawed: bool = False, broken: bool = False
) -> Document:
    """Reads the file at `path`, of `largest` bytes at most.

    Raises DocumentErrors where it is unreadable, too large or no strict YAML. Wrong keys do not
    raise where the file may be `flawed`. Where it may be `broken` too, lines that are no YAML are
    left out with what belongs to them, and are among its flaws.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(largest + 1)
    except OSError as error:
        text = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise DocumentErrors([Problem(str(path), 0, 0, text, "unreadable")]) from error
    return parse_document(content, str(path), largest, flawed=flawed, broken=broken)


def parse_document(
    content: bytes,
    file: str,
    largest: int = LARGEST,
    *,
    flawed: bool = False,
    broken: bool = False,
) -> Document:
    """Parses bytes that were read already, as `read_document` does."""
    document = Document(file, content)

    def refusal(line: int, column: int, code: str, text: str) -> DocumentErrors:
        return DocumentErrors([Problem(file, line + 1, column + 1, text, code)])

    if len(content) > largest:
        text = f"the file is larger than {largest // 1024} KiB; nothing was read"
        raise refusal(0, 0, "too-large", text)
    mended = MendedText(content)
    try:
        node = _mended(mended) if broken else _composed(content)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise refusal(*_fault(content, error)) from error
    document.flaws += [refusal(*fault).problems[0] for fault in mended.faults]
    if node is None:
        nothing = refusal(0, 0, "empty-file", "the file is empty")
        raise DocumentErrors(document.flaws) if document.flaws else nothing
    document.data = _value(document, node, ())
    for line, column in mended.left_out:
        document.partial.update(_around(document, line + 1, column + 1))
    if document.flaws and not flawed:
        raise DocumentErrors(document.flaws)
    return document


def _fault(content: bytes, error: Exception) -> Fault:
    """Returns what the reader's error means, and where."""
    if isinstance(error, yaml.reader.ReaderError):
        return misread_bytes(content, error)
    if not isinstance(error, yaml.MarkedYAMLError):
        return 0, 0, "not-yaml", f"this is not YAML: {one_line(str(error))}"
    syntax = isinstance(error, yaml.scanner.ScannerError | yaml.parser.ParserError)
    lines = _BREAK.split(Document("", content).text)
    return Stop(error, lines, _tokens(content) if syntax else []).fault()


def _mended(text: MendedText) -> Node | None:
    """Returns the nodes of what can be read; raises the first error where nothing is left out."""
    while True:
        try:
            return _composed(text.content)
        except yaml.MarkedYAMLError as error:
            if not text.leaves_out(_fault(text.content, error)):
                if text.faults:
                    return None
                raise


def _around(document: Document, line: int, column: int) -> Iterator[Place]:
    """Yields the places that a line which was left out may have belonged to."""
    before = [(mark, place) for place, mark in document.keys.items() if mark[0] < line]
    owners = [place for mark, place in sorted(before, reverse=True) if mark[1] <= column]
    yield ()
    for length in range(1, len(owners[0]) + 1 if owners else 0):
        yield owners[0][:length]


@lru_cache(maxsize=4)
def _composed(content: bytes) -> Node | None:
    """Returns the nodes of the only document; cached, as a start reads its mapping three times."""
    if _QuickLoader is not None and not _ODD(content):  # else, or where it fails, the slow one
        with suppress(yaml.YAMLError, ValueError, OverflowError):
            return _only_node(_QuickLoader(content))
    return _only_node(_StrictLoader(content))


def _only_node(loader: Any) -> Node | None:
    try:
        node: Node | None = loader.get_single_node()
    except UnicodeDecodeError:
        raise
    except (OverflowError, ValueError) as error:
        text, mark = "this escape names no letter", loader.get_mark()
        raise yaml.MarkedYAMLError(problem=text, problem_mark=mark) from error
    finally:
        loader.dispose()
    return node


def _tokens(content: bytes) -> list[Any]:
    """Returns the file's tokens, up to where it is wrong."""
    scanner: Any = yaml.SafeLoader(content)
    tokens: list[Any] = []
    with suppress(yaml.YAMLError, ValueError, OverflowError):
        while scanner.check_token():
            tokens.append(scanner.get_token())
    return [*tokens, *scanner.tokens]


class _Strict(Composer):
    """Composes nodes, refusing what hides data."""

    depth = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event = self.peek_event()  # type: ignore[attr-defined]  # each loader below has it
        refused = "tag" if getattr(event, "tag", None) else ""
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            refused = "anchor"
        self.depth += 1
        if self.depth > DEEPEST:
            refused = "nested too deep: one pair of brackets is enough for a list"
        if refused:
            raise yaml.composer.ComposerError(None, None, refused, event.start_mark)
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def resolve(self, kind: type[Node], value: Any, implicit: Any) -> str:
        """Returns no tag of YAML 1.1: `scalar` reads a scalar by its letters alone."""
        return ""


class _StrictLoader(_Strict, yaml.SafeLoader):
    """The loader whose errors are the clearest."""


_QuickLoader: Any = None
if yaml.__with_libyaml__:
    from yaml.cyaml import CParser  # type: ignore[attr-defined]  # missing in the stubs

    class _QuickLoader(_Strict, CParser, Resolver):  # type: ignore[no-redef]
        """A loader that is thirty times as quick. Its own composer would crash on deep nesting."""

        def __init__(self, content: bytes) -> None:
            CParser.__init__(self, content)
            Composer.__init__(self)
            Resolver.__init__(self)


_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?[0-9]{1,18}").fullmatch
is_number = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?").fullmatch


def scalar(node: ScalarNode) -> Any:
    """Returns what a scalar stands for, by the core schema of YAML 1.2."""
    text: str = node.value
    if node.style:  # quoted, or a block: always text
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INT(text):
        return int(text)
    return float(text) if is_number(text) else text


_HALF = re.compile("[\ud800-\udfff]").search


def _value(document: Document, node: Node, place: Place) -> Any:
    """Returns the data of a node, and marks its place and those within."""
    document.marks[place] = _mark(node)
    if isinstance(node, ScalarNode):
        return scalar(_lettered(document, node))
    if isinstance(node, SequenceNode):
        return [_value(document, item, (*place, n)) for n, item in enumerate(node.value)]
    return dict(_members(document, node, place))


def _members(document: Document, node: Node, place: Place) -> Iterator[tuple[str, Any]]:
    for key_node, value_node in node.value:
        code = text = ""
        if not isinstance(key_node, ScalarNode):
            code, text = "odd-name", "a name is one plain word, without brackets"
        elif key_node.value == "<<" and not key_node.style:
            code, text = "anchor", "merge keys (<<) are not allowed; write it out"
        if text:
            _refuse(document, key_node, code, text)
            document.partial.add(place)
            continue
        key = str(_lettered(document, key_node).value)
        here = (*place, key)
        if here in document.keys:
            text = f"{key} stands here a second time (first in line {document.keys[here][0]})"
            _refuse(document, key_node, "doubled-name", text)
            document.partial.add(here)
            # its value is not kept
            _value(Document(document.file, b"", flaws=document.flaws), value_node, ())
            continue
        document.keys[here] = _mark(key_node)
        yield key, _value(document, value_node, here)


def _refuse(document: Document, node: Node, code: str, text: str) -> None:
    document.flaws.append(Problem(document.file, *_mark(node), text, code))


def _lettered(document: Document, node: ScalarNode) -> ScalarNode:
    """Returns the node; notes a flaw where it has half of a letter, which no text can hold."""
    if half := _HALF(node.value):
        text = f"\\u{ord(half[0]):04X} is half of a letter; write the letter itself"
        _refuse(document, node, "not-yaml", text)
    return node


def _mark(node: Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def comments_in(document: Document) -> Iterator[tuple[int, int, str]]:
    """Yields a file's comments: line and column of the sign, from 1, and the words behind it."""
    text, end = document.text, 0
    gaps: list[tuple[int, int]] = []
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if isinstance(token, yaml.ScalarToken):
            start = token.start_mark.index
            gaps.append((end, start))
            end = token.end_mark.index
            if token.style and token.style in "|>":  # behind its sign there may be one
                gaps.append((start, start + len(text[start:].partition("\n")[0])))
    for start, stop in [*gaps, (end, len(text))]:
        for comment in re.compile("#([^\r\n]*)").finditer(text, start, stop):
            at = comment.start()
            line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
            yield line, column, comment[1]
