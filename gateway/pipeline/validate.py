"""Is the call well formed: path, query, headers and body, with all that is wrong at once."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl

from msgspec import Struct

from adapters.documents.problems import did_you_mean
from gateway.contract.errors import InvalidField, InvalidRequest
from gateway.contract.fields import BOOLEAN, INSTANT, TEXT, Field
from gateway.contract.operations import CURSOR, LIMIT, PAGE_DEFAULT, Match, Operation, Param
from gateway.contract.texts import HIDDEN, HIDDEN_FURTHER, SELECTORS
from gateway.pipeline.cursor import Cursors, bound_to
from gateway.pipeline.json_body import read_object

Texts = dict[str, str]

_surrogate = re.compile("[\ud800-\udfff]").search
_controls = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]").search
_controls_but_newline = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]").search
_hidden = re.compile(f"[{HIDDEN}{HIDDEN_FURTHER}]|(?<=[{SELECTORS}])[{SELECTORS}]").search
_visible = re.compile("[!-~]{1,255}").fullmatch
_LONGEST_NAME = 40  # shorter than the secret of a key, which somebody may have taken for a name
_MOST_HINTS = 5

IDEMPOTENCY_KEY = "Idempotency-Key"


class _Unfit(Exception):
    """A value that can't be used; the text goes on where the field's name ends."""


class Values(Struct):
    """What the partner asks for in path and query, read; `texts` is the same as it came.

    Paging stands apart from both.
    """

    params: dict[str, Any]
    texts: Texts
    limit: int = PAGE_DEFAULT
    after: str | None = None


class Creation(Struct):
    """What the partner asks to be made: every member of the body, the absent with their default."""

    body: dict[str, Any]
    idempotency_key: str | None


class Reader:
    """Reads the calls of one operation.

    `servable` says which filters the practice system can serve.
    """

    def __init__(
        self, operation: Operation, servable: Callable[[Param], bool], cursors: Cursors
    ) -> None:
        self._operation = operation
        self._path = next((each for each in operation.params if each.where == "path"), None)
        self._query = {each.name: each for each in operation.query}
        self._required = [each.name for each in operation.query if each.required]
        self._unserved = {each.name for each in operation.query if not servable(each)}
        self._cursors = cursors

    def read(self, raw_id: str, raw_query: str, key_id: str, visible: frozenset[str]) -> Values:
        """The values of a call; InvalidRequest with every problem.

        `visible` are the paths of the fields that are open at the key's level.
        """
        values, problems = self._read(raw_id, raw_query, visible)
        if self._operation.paged:
            self._page(values, key_id, problems)
        if problems:
            raise InvalidRequest(*problems)
        return values

    def read_creation(
        self, raw_query: str, body: bytes, idempotency_keys: Iterable[str], visible: frozenset[str]
    ) -> Creation:
        """The same for a call with a body."""
        _, problems = self._read("", raw_query, visible)
        made = Creation({}, _idempotency_key(list(idempotency_keys), problems))
        if (found := read_object(body, problems)) is not None:
            problems += self._body(*found, made.body)
        if problems:
            raise InvalidRequest(*problems)
        return made

    def _read(
        self, raw_id: str, raw_query: str, visible: frozenset[str]
    ) -> tuple[Values, list[InvalidField]]:
        values = Values({}, {})
        problems: list[InvalidField] = []
        if self._path is not None:
            self._take(self._path, raw_id, values, problems)
        if raw_query or self._required:
            for name, text in self._pairs(raw_query, problems):
                param = self._query[name]
                if name in self._unserved:
                    text_of = "cannot be served by the practice system"
                    problems.append(InvalidField(name, text_of))
                elif not visible.issuperset(param.fields):
                    problems.append(InvalidField(name, "is not available at this access level"))
                else:
                    self._take(param, text, values, problems)
        return values, problems

    def _take(self, param: Param, text: str, values: Values, problems: list[InvalidField]) -> None:
        try:
            value = _read_param(param, text)
        except _Unfit as error:
            problems.append(InvalidField(param.name, str(error)))
        else:
            values.params[param.name] = value
            values.texts[param.name] = text

    def _pairs(self, raw_query: str, problems: list[InvalidField]) -> Iterator[tuple[str, str]]:
        """The known parameters, each once; what is wrong with the others."""
        found: dict[str, list[str]] = {}
        garbled: dict[str, None] = {}
        # bytes that are not UTF-8 come out as lone surrogates
        for name, text in parse_qsl(raw_query, keep_blank_values=True, errors="surrogateescape"):
            if _surrogate(name + text):
                garbled[name if name in self._query else "query"] = None
            else:
                found.setdefault(name, []).append(text)
        problems += [InvalidField(name, "must be percent-encoded UTF-8") for name in garbled]
        for name in [name for name in found if name in self._query]:
            if len(found[name]) > 1:
                problems.append(InvalidField(name, "must be given once"))
            else:
                yield name, found[name][0]
        missing = [name for name in self._required if name not in {*found, *garbled}]
        problems += [InvalidField(name, "is required") for name in missing]
        problems += _unknown(found, self._query, "is not a parameter of this operation")

    def _page(self, values: Values, key_id: str, problems: list[InvalidField]) -> None:
        values.limit = values.params.pop(LIMIT.name, PAGE_DEFAULT)
        values.texts.pop(LIMIT.name, None)
        cursor = values.params.pop(CURSOR.name, None)
        values.texts.pop(CURSOR.name, None)
        if cursor is None:
            return
        bound = bound_to(key_id, self._operation.id, values.texts)
        try:
            values.after = self._cursors.read(cursor, bound)
        except ValueError:
            problem = "must be taken from the Link header of the page before, with its filters"
            problems.append(InvalidField(CURSOR.name, problem))

    def _body(
        self, members: dict[str, Any], repeated: Collection[str], read: dict[str, Any]
    ) -> Iterator[InvalidField]:
        for name in repeated:
            yield InvalidField(name[:_LONGEST_NAME], "must be given once")
        known = [each.name for each in self._operation.body]
        for each in self._operation.body:
            if each.name in repeated:
                continue
            if each.name not in members:
                if each.required:
                    yield InvalidField(each.name, "is required")
                read[each.name] = each.default
                continue
            try:
                read[each.name] = _read_member(each, members[each.name])
            except _Unfit as error:
                yield InvalidField(each.name, str(error))
        yield from _unknown(members, known, "is not a member of this request")


def _read_param(param: Param, text: str) -> Any:
    if param.match is Match.SEARCH:
        text = text.strip()
    if param.values and text not in param.values:
        raise _Unfit(f"must be one of {', '.join(param.values)}")
    try:
        value = param.format.read(text)
    except ValueError as error:
        plus = " (write + as %2B)" if param.format is INSTANT and " " in text else ""
        raise _Unfit(param.format.problem + plus) from error
    if param.format is TEXT:
        _check_length(text, param.shortest or 0, param.longest)
        if _controls(text):
            raise _Unfit("must not contain control characters")
    if param.least is not None and param.most is not None:
        _check_size(value, param.least, param.most)
    return value


def _read_member(member: Field, value: Any) -> Any:
    if value is None and not member.required:
        raise _Unfit("must not be null: leave it out")
    if member.format is BOOLEAN:
        if not isinstance(value, bool):
            raise _Unfit(member.format.problem)
        return value
    if not isinstance(value, str):
        raise _Unfit(member.format.problem)
    if member.format is TEXT:
        _check_length(value, 0, member.longest)
        _check_seen(value)
    try:
        return member.format.read(value)
    except ValueError as error:
        raise _Unfit(member.format.problem) from error


def _check_length(text: str, shortest: int, longest: int | None) -> None:
    if (longest is not None and len(text) > longest) or len(text) < shortest:
        least = f"from {shortest} to" if shortest else "at most"
        raise _Unfit(f"must have {least} {longest} characters")


def _check_seen(text: str) -> None:
    """Whoever reads a text of several lines sees all of it, in the order in which it was sent."""
    if _controls_but_newline(text):
        raise _Unfit("must not contain control characters other than newline")
    if found := _hidden(text):
        code = f"U+{ord(found[0]):04X}"
        raise _Unfit(f"must not contain {code}: it is not seen, or changes what is seen")


def _check_size(value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise _Unfit(f"must be from {least} to {most}")


def _idempotency_key(keys: list[str], problems: list[InvalidField]) -> str | None:
    if not keys:
        return None
    if len(keys) > 1:
        problems.append(InvalidField(IDEMPOTENCY_KEY, "must be given once"))
    elif not _visible(keys[0]):
        problems.append(InvalidField(IDEMPOTENCY_KEY, "must be 1 to 255 visible ASCII characters"))
    return keys[0]


def _unknown(names: Iterable[str], known: Collection[str], problem: str) -> Iterator[InvalidField]:
    """A problem for each name that is not known; to look for a near one takes long."""
    unknown = (name for name in names if name not in known)
    for number, name in enumerate(unknown):
        short = name[:_LONGEST_NAME]
        hint = did_you_mean(short, known) if number < _MOST_HINTS else ""
        yield InvalidField(short, problem + hint)
