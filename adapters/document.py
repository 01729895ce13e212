"""Reads a YAML file strictly, and knows at which line and column everything stands.

Used for every file that people write: the mapping, the policy, the configuration. YAML 1.2
scalars (`no` and `8:30` are text), no anchors, aliases, merge keys or tags, no key twice.
"""

import codecs
import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.resolver import Resolver

from adapters.broken_yaml import fault_of, misread_bytes, one_line

LARGEST = 64 * 1024
DEEPEST = 32

# What the two loaders do not read alike: tabs, breaks other than \n, question marks, a document's
# own marks, a comment at the head of a block, nothing for a value within brackets.
_ODD = re.compile(
    rb"[\0\t\r?]|---|\.\.\.|[|>][-+0-9]*#|:\s*[]},]|\xc2\x85|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf"
).search

_COMMENT = re.compile("#([^\r\n]*)")

Place = tuple[str | int, ...]
ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong with a file: where (line and column count from 1), what, and the remedy.

    Line 0 where there are no lines, as in an environment variable or a file that is not there.
    """

    file: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.text}"


class DocumentErrors(Exception):
    """A file that cannot be used, with everything that is wrong with it; never without one."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


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

    def problem(self, place: Place, text: str, *, at_key: bool = False) -> Problem:
        """A problem at a place, or at the nearest place around it that the file has."""
        while place and place not in self.marks:
            place = place[:-1]
        marks = self.keys if at_key and place in self.keys else self.marks
        line, column = marks.get(place, (1, 1))
        return Problem(self.file, line, column, text)


class FlawedDocument(DocumentErrors):
    """A file with doubled or unusable keys; `document` is what it says without these."""

    def __init__(self, problems: Iterable[Problem], document: Document) -> None:
        super().__init__(problems)
        self.document = document


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean x?)` where a known word is near, else nothing."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    if not near:
        near = [each for each in known if each.lower() == word.lower()][:1]
    return f" (did you mean {near[0]}?)" if near else ""


def read_document(path: Path, name: str | None = None) -> Document:
    """The file at `path`; DocumentErrors where it is unreadable, too large or no strict YAML.

    FlawedDocument where only its keys are wrong.
    """
    file = name or str(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DocumentErrors([Problem(file, 0, 0, f"cannot be read: {reason}")]) from error
    return parse_document(content, file)


def forgiving(read: Callable[[], Document]) -> tuple[Document, tuple[Problem, ...]]:
    """What `read` gives, and what is wrong with its keys alone: the rest can be checked as well."""
    try:
        return read(), ()
    except FlawedDocument as error:
        return error.document, error.problems


def parse_document(content: bytes, file: str) -> Document:
    """The same for bytes that were read already."""
    if len(content) > LARGEST:
        text = f"the file is larger than {LARGEST // 1024} KiB; nothing was read"
        raise DocumentErrors([Problem(file, 1, 1, text)])
    document = Document(file, content)
    try:
        node = _composed(content)
    except yaml.MarkedYAMLError as error:
        raise DocumentErrors([_syntax_problem(file, content, error)]) from error
    except yaml.reader.ReaderError as error:
        line, column, text = misread_bytes(content, error)
        raise DocumentErrors([Problem(file, line + 1, column + 1, text)]) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        text = f"this is not YAML: {one_line(str(error))}"
        raise DocumentErrors([Problem(file, 1, 1, text)]) from error
    if node is None:
        raise DocumentErrors([Problem(file, 1, 1, "the file is empty")])
    problems: list[Problem] = []
    document.data = _Reader(document, problems).value(node, ())
    if problems:
        raise FlawedDocument(problems, document)
    return document


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


def _composed(content: bytes) -> Node | None:
    """The nodes of the one document.

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
        text = "this escape names no letter"
        raise yaml.MarkedYAMLError(problem=text, problem_mark=loader.get_mark()) from error
    finally:
        loader.dispose()
    return node


def check(document: Document, model: type[ModelT], *, strict: bool = False) -> ModelT:
    """The document as a pydantic model; DocumentErrors with every problem at its place.

    Where it is strict no kind of value counts for another; a text may still be a path.
    """
    try:
        if strict:
            return model.model_validate_json(json.dumps(document.data), strict=True)
        return model.model_validate(document.data)
    except ValidationError as error:
        raise DocumentErrors(_model_problems(document, model, error)) from error


def _syntax_problem(file: str, content: bytes, error: yaml.MarkedYAMLError) -> Problem:
    if "\\t" in (error.problem or "") and error.problem_mark:
        mark = error.problem_mark
        text = "a tab stands here; indent with blanks"
        return Problem(file, mark.line + 1, mark.column + 1, text)
    syntax = isinstance(error, yaml.scanner.ScannerError | yaml.parser.ParserError)
    tokens = _tokens(content) if syntax else []
    lines = _BREAK.split(content.decode(_encoding(content)))
    line, column, text = fault_of(error, lines, tokens)
    return Problem(file, line + 1, column + 1, text)


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
            raise yaml.composer.ComposerError(
                None,
                None,
                "anchors and aliases are not allowed; write it out; a text that begins with * or &"
                " stands in quotes",
                event.start_mark,
            )
        if getattr(event, "tag", None):
            text = "tags are not allowed; a text that begins with ! stands in quotes"
            raise yaml.composer.ComposerError(None, None, text, event.start_mark)
        self.depth += 1
        if self.depth > DEEPEST:
            raise yaml.composer.ComposerError(
                None, None, f"nested more than {DEEPEST} deep", event.start_mark
            )
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


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


# YAML 1.2 core scalars, instead of YAML 1.1's `no`, `010` and `8:30`.
_NULL = re.compile(r"(~|null|Null|NULL|)").fullmatch
_TRUE = re.compile(r"(true|True|TRUE)").fullmatch
_FALSE = re.compile(r"(false|False|FALSE)").fullmatch
_INT = re.compile(r"[-+]?[0-9]{1,18}").fullmatch
_HALF = re.compile("[\ud800-\udfff]").search
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?").fullmatch


def _scalar(node: ScalarNode) -> Any:
    text: str = node.value
    if node.style:  # quoted, or a block: always text
        return text
    if _NULL(text):
        return None
    if _TRUE(text) or _FALSE(text):
        return bool(_TRUE(text))
    if _INT(text):
        return int(text)
    return float(text) if _FLOAT(text) else text


class _Reader:
    """Turns nodes into data, marking places on the way."""

    def __init__(self, document: Document, problems: list[Problem]) -> None:
        self.document = document
        self.problems = problems

    def value(self, node: Node, place: Place) -> Any:
        self.document.marks[place] = _mark(node)
        if isinstance(node, ScalarNode):
            self.letters(node)
            return _scalar(node)
        if isinstance(node, SequenceNode):
            return [self.value(each, (*place, n)) for n, each in enumerate(node.value)]
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
                self.problems.append(Problem(self.document.file, line, column, text))
                self.document.partial.add((*place, key))
                self.aside(value_node)
                continue
            seen[key] = line
            self.document.keys[(*place, key)] = (line, column)
            yield key, self.value(value_node, (*place, key))

    def aside(self, node: Node) -> None:
        """Say what is wrong with a value that is not kept."""
        _Reader(Document(self.document.file, b""), self.problems).value(node, ())

    def letters(self, node: ScalarNode) -> None:
        """Say where half of a letter stands, which no text can hold."""
        if found := _HALF(node.value):
            line, column = _mark(node)
            text = f"\\u{ord(found[0]):04X} is half of a letter; write the letter itself"
            self.problems.append(Problem(self.document.file, line, column, text))

    def key(self, node: Node) -> str | None:
        line, column = _mark(node)
        if not isinstance(node, ScalarNode):
            text = "a key must be plain text"
        elif node.value == "<<" and not node.style:
            text = "merge keys are not allowed; write it out"
        else:
            self.letters(node)
            return str(node.value)
        self.problems.append(Problem(self.document.file, line, column, text))
        return None


def _mark(node: Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _model_problems(
    document: Document, model: type[BaseModel], error: ValidationError
) -> Iterator[Problem]:
    at: dict[Place, list[Any]] = {}
    for each in error.errors(include_url=False):
        at.setdefault(_existing(document, tuple(each["loc"])), []).append(each)
    for place, found in at.items():
        kinds = {each["type"] for each in found}
        if kinds <= _SCALARS.keys() and any(_within(other, place) for other in at):
            continue  # of a list, one member of a union says that it is none; the other knows more
        if len(found) > 1 and kinds <= _PLAIN:  # one value, that no member of a union took
            wanted = list(dict.fromkeys(_SCALARS[kind] for kind in _SCALARS if kind in kinds))
            more = "" if kinds <= _SCALARS.keys() else ", or a list"
            yield document.problem(place, f"{_name(place)}: must be {', '.join(wanted)}{more}")
        else:
            yield from (
                said for each in found if (said := _model_problem(document, model, place, each))
            )


def _model_problem(
    document: Document, model: type[BaseModel], place: Place, error: Any
) -> Problem | None:
    """One error in our words; None for what may stand in a part that was left out."""
    name = str(error["loc"][-1]) if error["loc"] else ""
    if error["type"] == "extra_forbidden":
        text = f"{name} is not known here{_remedy(error['loc'], model)}"
        return document.problem(place, text, at_key=True)
    if error["type"] == "missing":
        if place in document.partial:
            return None
        text = f"{name} is missing{_example(name, model)}"
        return document.problem(place, text, at_key=True)
    return document.problem(place, f"{_name(place) or name}: {sentence(error)}")


def _within(inner: Place, outer: Place) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _example(name: str, model: type[BaseModel]) -> str:
    """What could be written for a name that is missing, where the models have an example."""
    for each in models_in(model):
        for inner, info in each.model_fields.items():
            if (info.alias or inner) == name and info.is_required() and info.examples:
                return f", such as {name}: {info.examples[0]}"
    return ""


def _name(place: Place) -> str:
    """What a value is called: its own name, or that of the list in which it stands."""
    return next((part for part in reversed(place) if isinstance(part, str)), "")


def _remedy(place: Place, model: type[BaseModel]) -> str:
    """What to write instead of an unknown name; a name of a group's own leads into the group."""
    name = str(place[-1])
    if len(place) == 1:
        group, _, inner = name.rpartition(".")
        for other, members in _groups(model):
            if group == other:
                return f": indent {inner} under {group}:{_near(inner, members)}"
            if name in members:
                return f": indent it under {other}:"
    return did_you_mean(name, [other for other in _names(model) if other != name])


def _near(name: str, known: list[str]) -> str:
    return "" if name in known else did_you_mean(name, known)


def _groups(model: type[BaseModel]) -> Iterator[tuple[str, list[str]]]:
    """The members of a model that are models themselves, with the names in them."""
    for name, info in model.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            own = kind.model_fields.items()
            yield info.alias or name, [each.alias or inner for inner, each in own]


# What pydantic says in its own words, said in the words of who writes the file.
_WORDS: dict[str, str] = {
    "string_type": "must be a text",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "dict_type": "must be a group of names and values",
    "model_type": "must be a group of names and values",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "path_type": "must be a path",
}

# What a plain value can be, in the order in which it is said.
_SCALARS: dict[str, str] = {
    "string_type": "a text",
    "int_type": "a number",
    "float_type": "a number",
    "bool_type": "true or false",
}


_LISTS = frozenset({"list_type", "tuple_type"})
_PLAIN = _SCALARS.keys() | _LISTS
# A text that can be shown as the item of a list as it is.
_WORD = re.compile(r"[\w.:/-]{1,40}").fullmatch


def sentence(error: Any) -> str:
    """What is wrong, of one of pydantic's errors, to stand behind the name."""
    kind, given = error["type"], error["input"]
    if kind == "string_type" and isinstance(given, int | float):
        return "must be a text: put it in quotes"
    if kind in {"int_type", "float_type"} and isinstance(given, str) and _FLOAT(given):
        return f"{_WORDS[kind]}: leave the quotes out"
    if kind in _LISTS and isinstance(given, dict):
        return f"{_WORDS[kind]}: begin each of its items with `- `"
    if kind in _LISTS and isinstance(given, str) and _WORD(given):
        return f"{_WORDS[kind]}: write [{given}]"
    if kind in _WORDS:
        return _WORDS[kind]
    said: str = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    return said[:1].lower() + said[1:]


def _existing(document: Document, place: Place) -> Place:
    """The place without the names of union members that pydantic puts between."""
    found: Place = ()
    for part in place:
        if (*found, part) in document.marks:
            found = (*found, part)
    return found


def _names(model: type[BaseModel]) -> list[str]:
    """The names of all fields, those of the groups too."""
    return [
        info.alias or name for each in models_in(model) for name, info in each.model_fields.items()
    ]


def models_in(model: type[BaseModel]) -> list[type[BaseModel]]:
    """The model, and all that its fields are made of."""
    found: list[type[BaseModel]] = []
    stack: list[type[BaseModel]] = [model]
    while stack:
        current = stack.pop()
        if current not in found:
            found.append(current)
            for info in current.model_fields.values():
                stack.extend(_models_named_in(info.annotation))
    return found


def _models_named_in(annotation: Any) -> list[type[BaseModel]]:
    found: list[type[BaseModel]] = []
    pending = [annotation]
    while pending:
        each = pending.pop()
        if isinstance(each, type) and issubclass(each, BaseModel):
            found.append(each)
        pending.extend(getattr(each, "__args__", ()))
    return found
