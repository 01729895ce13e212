"""Reads the path, query, headers and body of a call, and names all that is wrong at once."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from json import JSONDecoder
from typing import Any
from urllib.parse import parse_qsl

import orjson
from msgspec import Struct

from adapters.documents.problems import did_you_mean
from gateway.contract.errors import InvalidField, InvalidRequest
from gateway.contract.fields import BOOLEAN, INSTANT, TEXT, UNSEEN, Field
from gateway.contract.operations import CURSOR, LIMIT, PAGE_DEFAULT, Match, Operation, Param
from gateway.pipeline.cursor import CursorCipher, bound_to

_surrogate = re.compile("[\ud800-\udfff]").search
_controls = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]").search
_controls_but_newline = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]").search
_hidden = re.compile(UNSEEN).search
_visible = re.compile("[!-~]{1,255}").fullmatch
_LONGEST_NAME = 40  # shorter than a secret, which a caller may have sent as a name
_MOST_HINTS = 5

IDEMPOTENCY_KEY = "Idempotency-Key"


class _Unfit(Exception):
    """A value that cannot be used; the text goes on where the field's name ends."""


class CallValues(Struct):
    """What path and query ask for: `params` are read, `texts` as they came, both without paging."""

    params: dict[str, Any]
    texts: dict[str, str]
    limit: int = PAGE_DEFAULT
    after: str | None = None


class Creation(Struct):
    """What the partner asks to be made: all members of the body, absent ones with their default."""

    body: dict[str, Any]
    idempotency_key: str | None


class CallReader:
    """Reads the calls of one operation; `servable` tells which filters can be served."""

    def __init__(
        self, operation: Operation, servable: Callable[[Param], bool], cursors: CursorCipher
    ) -> None:
        self._operation = operation
        self._path = next((param for param in operation.params if param.where == "path"), None)
        self._query = {param.name: param for param in operation.query}
        self._required = [param.name for param in operation.query if param.required]
        self._unserved = {param.name for param in operation.query if not servable(param)}
        self._cursors = cursors

    def read(self, raw_id: str, raw_query: str, key_id: str, visible: frozenset[str]) -> CallValues:
        """Returns a call's values; raises InvalidRequest. `visible` has the open fields' paths."""
        values, problems = self._read(raw_id, raw_query, visible)
        if self._operation.paged:
            self._page(values, key_id, problems)
        if problems:
            raise InvalidRequest(*problems)
        return values

    def read_creation(
        self, raw_query: str, body: bytes, idempotency_keys: Iterable[str], visible: frozenset[str]
    ) -> Creation:
        """Returns what a call with a body asks for; raises InvalidRequest."""
        _, problems = self._read("", raw_query, visible)
        keys = list(idempotency_keys)
        if len(keys) > 1:
            problems.append(InvalidField(IDEMPOTENCY_KEY, "must be given once"))
        elif keys and not _visible(keys[0]):
            problem = "must be 1 to 255 visible ASCII characters"
            problems.append(InvalidField(IDEMPOTENCY_KEY, problem))
        creation = Creation({}, keys[0] if keys else None)
        if (members := _read_object(body, problems)) is not None:
            problems += self._read_body(*members, creation.body)
        if problems:
            raise InvalidRequest(*problems)
        return creation

    def _read(
        self, raw_id: str, raw_query: str, visible: frozenset[str]
    ) -> tuple[CallValues, list[InvalidField]]:
        values = CallValues({}, {})
        problems: list[InvalidField] = []
        if self._path is not None:
            _take(self._path, raw_id, values, problems)
        if raw_query or self._required:
            for name, text in self._pairs(raw_query, problems):
                param = self._query[name]
                if name in self._unserved:
                    problem = "cannot be served by the practice system"
                    problems.append(InvalidField(name, problem))
                elif not visible.issuperset(param.fields):
                    problems.append(InvalidField(name, "is not available at this access level"))
                else:
                    _take(param, text, values, problems)
        return values, problems

    def _pairs(self, raw_query: str, problems: list[InvalidField]) -> Iterator[tuple[str, str]]:
        """Yields the known parameters, each once; adds what is wrong with others to `problems`."""
        texts: dict[str, list[str]] = {}
        garbled: dict[str, None] = {}
        # bytes that are not UTF-8 come out as lone surrogates
        for name, text in parse_qsl(raw_query, keep_blank_values=True, errors="surrogateescape"):
            if _surrogate(name + text):
                garbled[name if name in self._query else "query"] = None
            else:
                texts.setdefault(name, []).append(text)
        problems += [InvalidField(name, "must be percent-encoded UTF-8") for name in garbled]
        for name in [name for name in texts if name in self._query]:
            if len(texts[name]) > 1:
                problems.append(InvalidField(name, "must be given once"))
            else:
                yield name, texts[name][0]
        missing = [name for name in self._required if name not in {*texts, *garbled}]
        problems += [InvalidField(name, "is required") for name in missing]
        problems += _unknown(texts, self._query, "is not a parameter of this operation")

    def _page(self, values: CallValues, key_id: str, problems: list[InvalidField]) -> None:
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

    def _read_body(
        self, members: dict[str, Any], repeated: Collection[str], read: dict[str, Any]
    ) -> Iterator[InvalidField]:
        for name in repeated:
            yield InvalidField(name[:_LONGEST_NAME], "must be given once")
        for member in self._operation.body:
            name = member.name
            if name in repeated:
                continue
            if name not in members:
                if member.required:
                    yield InvalidField(name, "is required")
                read[name] = member.default
                continue
            try:
                read[name] = _read_member(member, members[name])
            except _Unfit as error:
                yield InvalidField(name, str(error))
        known = [member.name for member in self._operation.body]
        yield from _unknown(members, known, "is not a member of this request")


def _take(param: Param, text: str, values: CallValues, problems: list[InvalidField]) -> None:
    try:
        values.params[param.name] = _read_param(param, text)
    except _Unfit as error:
        problems.append(InvalidField(param.name, str(error)))
    else:
        values.texts[param.name] = text


def _read_object(
    body: bytes, problems: list[InvalidField]
) -> tuple[dict[str, Any], Collection[str]] | None:
    """Returns the members, and the names that stand more than once, in inner objects too.

    Returns None for what is no JSON object, and adds that to `problems`.
    """
    try:
        data = orjson.loads(body)
        if isinstance(data, dict):
            return data, _repeated_members(body.decode())
        problem = "must be a JSON object"
    except orjson.JSONDecodeError:
        problem = "is not JSON"
    except RecursionError:
        problem = "is nested too deeply"
    problems.append(InvalidField("body", problem))
    return None


def _repeated_members(text: str) -> Collection[str]:
    """Returns the names that stand more than once in one object of a JSON text.

    orjson takes the last of them without an error. Raises RecursionError where objects are nested
    about a thousand levels deep.
    """
    repeated: dict[str, None] = {}

    def note(members: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for name, _ in members:
            if name in seen:
                repeated[name] = None
            seen.add(name)

    # a number may have more digits than Python reads
    JSONDecoder(object_pairs_hook=note, parse_int=len, parse_float=len).decode(text)
    return repeated.keys()


def _read_param(param: Param, text: str) -> Any:
    given = text
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
        for counted in (given, text):
            _check_length(counted, param.shortest or 0, param.longest)
        if _controls(text):
            raise _Unfit("must not contain control characters")
    least, most = param.least, param.most
    if least is not None and most is not None and not least <= value <= most:
        raise _Unfit(f"must be from {least} to {most}")
    return value


def _read_member(member: Field, value: Any) -> Any:
    if value is None and not member.required:
        raise _Unfit("must not be null: leave it out")
    is_flag = member.format is BOOLEAN
    if is_flag and isinstance(value, bool):
        return value
    if is_flag or not isinstance(value, str):
        raise _Unfit(member.format.problem)
    if member.format is TEXT:
        _check_length(value, 0, member.longest)
        if _controls_but_newline(value):
            raise _Unfit("must not contain control characters other than newline")
        # people are to see all of it, in the order in which it was sent
        if unseen := _hidden(value):
            code = f"U+{ord(unseen[0]):04X}"
            raise _Unfit(f"must not contain {code}: it is not seen, or changes what is seen")
    try:
        return member.format.read(value)
    except ValueError as error:
        raise _Unfit(member.format.problem) from error


def _check_length(text: str, shortest: int, longest: int | None) -> None:
    if (longest is not None and len(text) > longest) or len(text) < shortest:
        least = f"from {shortest} to" if shortest else "at most"
        raise _Unfit(f"must have {least} {longest} characters")


def _unknown(names: Iterable[str], known: Collection[str], problem: str) -> Iterator[InvalidField]:
    """Yields a problem for each unknown name; only a few get a hint, which takes long to find."""
    unknown = (name for name in names if name not in known)
    for number, name in enumerate(unknown):
        short = name[:_LONGEST_NAME]
        hint = did_you_mean(short, known) if number < _MOST_HINTS else ""
        yield InvalidField(short, problem + hint)
