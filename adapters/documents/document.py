"""Reads a YAML file strictly, and knows at which line and column everything stands.

Used for every file that people write: the mapping, the policy, the configuration. Scalars are
those of YAML 1.2 (`no` and `8:30` are text); anchors, aliases, merge keys, tags and doubled keys
are refused.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.resolver import Resolver

from adapters.documents.faults import NO_YAML, fault_of, misread_bytes, one_line
from adapters.documents.problems import DocumentErrors, Problem

LARGEST = 64 * 1024
DEEPEST = 32

# What the two loaders do not read alike: tabs, breaks other than \n, question marks, a document's
# own marks, a comment at the head of a block, nothing for a value within brackets.
_ODD = re.compile(
    rb"[\0\t\r?]|---|\.\.\.|[|>][-+0-9]*#|:\s*[]},]|\xc2\x85|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf"
).search
Place = tuple[str | int, ...]


@dataclass(slots=True)
class Document:
    """A file's data, its bytes, and the mark of each place: ("clients", "BASIC", 0) -> (3, 11).

    The mark of a mapping's member is that of its value; `keys` holds those of the keys. `partial`
    are the places where the file has more than the data: of a doubled member the first is kept.
    """

    file: str
    content: bytes
    data: Any = None
    marks: dict[Place, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Place, tuple[int, int]] = field(default_factory=dict)
    partial: set[Place] = field(default_factory=set)

    def line_from(self, place: Place) -> str:
        """The rest of the line from a place on, as it stands in the file; "" for no such place."""
        line, column = self.marks.get(place, (0, 0))
        lines = _BREAK.split(self.content.decode(_encoding(self.content))) if line else [""]
        return lines[line - 1][column - 1 :] if line else ""

    def problem(self, place: Place, text: str, *, at_key: bool = False, code: str = "") -> Problem:
        """A problem at a place, or at the nearest place around it that the file has."""
        while place and place not in self.marks:
            place = place[:-1]
        marks = self.keys if at_key and place in self.keys else self.marks
        line, column = marks.get(place, (1, 1))
        return Problem(self.file, line, column, text, code)


class ProblemList:
    """The problems of one document, as one walk through it notes them."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._noted: list[tuple[Place, Problem]] = []

    @property
    def problems(self) -> list[Problem]:
        return [problem for _, problem in self._noted]

    def say(self, place: Place, code: str, text: str, *, at_key: bool = False) -> None:
        """Notes a problem; `code` is that of its check."""
        self._noted.append((place, self.document.problem(place, text, at_key=at_key, code=code)))

    def absent(self, place: Place, code: str, text: str) -> None:
        """Notes that a name is missing there, unless it may be in what is not kept."""
        if place not in self.document.partial:
            self.say(place, code, text, at_key=True)

    def forget(self, is_moot: Callable[[Place, str], bool]) -> None:
        """Takes back what follows from something else, by its place and code."""
        self._noted = [noted for noted in self._noted if not is_moot(noted[0], noted[1].code)]

    def line(self, place: Place) -> int:
        """The line at which something stands."""
        return self.document.marks[place][0]


class FlawedDocument(DocumentErrors):
    """A file with doubled or unusable keys; `document` is what it says without these."""

    def __init__(self, problems: Iterable[Problem], document: Document) -> None:
        super().__init__(problems)
        self.document = document


def read_document(path: Path, largest: int = LARGEST) -> Document:
    """The file at `path`; DocumentErrors where it is unreadable, too large or no strict YAML.

    FlawedDocument where only its keys are wrong. `largest` is in bytes.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(largest + 1)
    except OSError as error:
        text = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise DocumentErrors([Problem(str(path), 0, 0, text, "unreadable")]) from error
    return parse_document(content, str(path), largest)


def forgiving(read: Callable[[], Document]) -> tuple[Document, tuple[Problem, ...]]:
    """What `read` gives, and what is wrong with its keys alone: the rest can be checked as well."""
    try:
        return read(), ()
    except FlawedDocument as error:
        return error.document, error.problems


def parse_document(content: bytes, file: str, largest: int = LARGEST) -> Document:
    """The same for bytes that were read already."""
    if len(content) > largest:
        text = f"the file is larger than {largest // 1024} KiB; nothing was read"
        raise DocumentErrors([Problem(file, 1, 1, text, "too-large")])
    document = Document(file, content)
    try:
        node = _composed(content)
    except yaml.MarkedYAMLError as error:
        raise DocumentErrors([_syntax_problem(file, content, error)]) from error
    except yaml.reader.ReaderError as error:
        line, column, text, code = misread_bytes(content, error)
        raise DocumentErrors([Problem(file, line + 1, column + 1, text, code)]) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        text = f"{NO_YAML}{one_line(str(error))}"
        raise DocumentErrors([Problem(file, 1, 1, text, "not-yaml")]) from error
    if node is None:
        raise DocumentErrors([Problem(file, 1, 1, "the file is empty", "empty-file")])
    problems: list[Problem] = []
    document.data = _Reader(document, problems).value(node, ())
    if problems:
        raise FlawedDocument(problems, document)
    return document


@lru_cache(maxsize=4)
def _composed(content: bytes) -> Node | None:
    """The nodes of the one document, which nobody changes; a start reads its mapping three times.

    What the quick loader cannot take, the slow one takes, or says what is wrong in its words.
    """
    if _QuickLoader is not None and not _ODD(content):
        with suppress(yaml.YAMLError, ValueError, OverflowError):
            return _only_node(_QuickLoader(content))
    return _only_node(_StrictLoader(content))


def _only_node(loader: Any) -> Node | None:
    """An escape that names no letter is a fault of the YAML."""
    try:
        node: Node | None = loader.get_single_node()
    except UnicodeDecodeError:
        raise
    except (OverflowError, ValueError) as error:
        raise yaml.MarkedYAMLError(problem="escape", problem_mark=loader.get_mark()) from error
    finally:
        loader.dispose()
    return node


def _syntax_problem(file: str, content: bytes, error: yaml.MarkedYAMLError) -> Problem:
    if "\\t" in (error.problem or "") and error.problem_mark:
        mark = error.problem_mark
        text = "a tab stands here; indent with blanks"
        return Problem(file, mark.line + 1, mark.column + 1, text, "tab")
    syntax = isinstance(error, yaml.scanner.ScannerError | yaml.parser.ParserError)
    tokens = _tokens(content) if syntax else []
    lines = _BREAK.split(content.decode(_encoding(content)))
    line, column, text, code = fault_of(error, lines, tokens)
    return Problem(file, line + 1, column + 1, text, code)


# What ends a line in YAML.
_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


def _encoding(content: bytes) -> str:
    utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    return "utf-16" if utf16 else "utf-8-sig"


def _tokens(content: bytes) -> list[Any]:
    """What the file is made of, up to where it is wrong."""
    scanner: Any = yaml.SafeLoader(content)
    found: list[Any] = []
    with suppress(yaml.YAMLError, ValueError, OverflowError):
        while scanner.check_token():
            found.append(scanner.get_token())
    return [*found, *scanner.tokens]


class _Strict(Composer):
    """Composes nodes, refusing what hides data."""

    depth = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event = self.peek_event()  # type: ignore[attr-defined]  # each loader below has it
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise yaml.composer.ComposerError(None, None, "anchor", event.start_mark)
        if getattr(event, "tag", None):
            raise yaml.composer.ComposerError(None, None, "tag", event.start_mark)
        self.depth += 1
        if self.depth > DEEPEST:
            raise yaml.composer.ComposerError(None, None, "too-deep", event.start_mark)
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
    from yaml.cyaml import CParser  # type: ignore[attr-defined]  # the stubs leave it out

    class _QuickLoader(_Strict, CParser, Resolver):  # type: ignore[no-redef]
        """Thirty times as quick. Its own composer crashes on deep nesting: ours knows a bound."""

        def __init__(self, content: bytes) -> None:
            CParser.__init__(self, content)
            Composer.__init__(self)
            Resolver.__init__(self)


_NULL = re.compile(r"(~|null|Null|NULL|)").fullmatch
_TRUE = re.compile(r"(true|True|TRUE)").fullmatch
_FALSE = re.compile(r"(false|False|FALSE)").fullmatch
_INT = re.compile(r"[-+]?[0-9]{1,18}").fullmatch
is_number = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?").fullmatch


def scalar(node: ScalarNode) -> Any:
    """What a scalar stands for, by the core schema of YAML 1.2."""
    text: str = node.value
    if node.style:  # quoted, or a block: always text
        return text
    if _NULL(text):
        return None
    if _TRUE(text) or _FALSE(text):
        return bool(_TRUE(text))
    if _INT(text):
        return int(text)
    return float(text) if is_number(text) else text


_HALF = re.compile("[\ud800-\udfff]").search


class _Reader:
    """Turns nodes into data, marking places on the way."""

    def __init__(self, document: Document, problems: list[Problem]) -> None:
        self.document = document
        self.problems = problems

    def value(self, node: Node, place: Place) -> Any:
        self.document.marks[place] = _mark(node)
        if isinstance(node, ScalarNode):
            self.letters(node)
            return scalar(node)
        if isinstance(node, SequenceNode):
            return [self.value(item, (*place, n)) for n, item in enumerate(node.value)]
        if isinstance(node, MappingNode):
            return dict(self.members(node, place))
        raise TypeError(node)

    def members(self, node: MappingNode, place: Place) -> Iterator[tuple[str, Any]]:
        seen: dict[str, int] = {}
        for key_node, value_node in node.value:
            line, column = _mark(key_node)
            key = self.key(key_node)
            if key is None:
                self.document.partial.add(place)
                continue
            if key in seen:
                text = f"{key} stands here a second time (first in line {seen[key]})"
                self.refuse(key_node, "doubled-name", text)
                self.document.partial.add((*place, key))
                aside = Document(self.document.file, b"")  # its value is not kept
                _Reader(aside, self.problems).value(value_node, ())
                continue
            seen[key] = line
            self.document.keys[(*place, key)] = (line, column)
            yield key, self.value(value_node, (*place, key))

    def refuse(self, node: Node, code: str, text: str) -> None:
        self.problems.append(Problem(self.document.file, *_mark(node), text, code))

    def letters(self, node: ScalarNode) -> None:
        """Says where half of a letter stands, which no text can hold."""
        if found := _HALF(node.value):
            text = f"\\u{ord(found[0]):04X} is half of a letter; write the letter itself"
            self.refuse(node, "half-letter", text)

    def key(self, node: Node) -> str | None:
        if not isinstance(node, ScalarNode):
            self.refuse(node, "odd-name", "a name is one plain word, without brackets")
            return None
        if node.value == "<<" and not node.style:
            self.refuse(node, "merge-key", "merge keys (<<) are not allowed; write it out")
            return None
        self.letters(node)
        return str(node.value)


def _mark(node: Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment of a file: where its mark stands (counted from 1), and the words behind it."""

    line: int
    column: int
    text: str


def comments_in(document: Document) -> Iterator[Comment]:
    """All comments of a file, in their order; what looks like one within a text is none."""
    text, end = document.content.decode(_encoding(document.content)), 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if isinstance(token, yaml.ScalarToken):
            start = token.start_mark.index
            yield from _comments_between(text, end, start)
            end = token.end_mark.index
            if token.style and token.style in "|>":  # behind its sign there may be one
                first_line, _, _ = text[start:].partition("\n")
                yield from _comments_between(text, start, start + len(first_line))
    yield from _comments_between(text, end, len(text))


_COMMENT = re.compile("#([^\r\n]*)")


def _comments_between(text: str, start: int, end: int) -> Iterator[Comment]:
    for found in _COMMENT.finditer(text, start, end):
        at = found.start()
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        yield Comment(line, column, found[1])
