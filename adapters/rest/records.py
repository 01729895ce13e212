"""Reads an answer's JSON as rows: by paths and converters, with the lists inside."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from yarl import URL

from adapters.base import BackendNonsense, FieldShape, Only, Record, Trouble
from adapters.ids.seal import Id, PublicIds
from adapters.mapped.generated import Make, Member, RowValue
from adapters.mapped.records import OF_IDS, Mapped, Planned, RecordMaker, RowReader
from adapters.mapping.converters import conversion_name
from adapters.mapping.models import KeptValue, ListMap, ResourceMap, ValueSource
from adapters.mapping.paths import Path, holds, path, plain_steps
from adapters.values.convert import Converter, Text, Unreadable

_TEXT = Text()
# Characters of a text that `match` looks into.
LONGEST_MATCHED = 2_000
# Converters that read a text: what is true in JSON is `true` to them, not Python's word.
_OF_TEXTS = frozenset({"text", "code", "email", "split text"})


def raw_value(source: ValueSource | KeptValue) -> Path:
    """Returns what finds a value: by its path, then by `match`; with `plus` both values.

    It gives None for no value, and raises Unreadable where `match` fits nothing.
    """
    find = path(source.source if isinstance(source, KeptValue) else source.text)
    match = re.compile(source.match).search if source.match else None
    plus = path(source.plus) if isinstance(source, ValueSource) and source.plus else None
    if source.reference is not None:
        every = references(source)
        return lambda value: next(iter(every(value)), None)
    if match is None and plus is None:
        return find

    def read(value: Any) -> Any:
        raw = find(value)
        if match is not None and raw is not None and raw != "":
            # an expression that starts again at every character takes long over a long text
            is_short = isinstance(raw, str) and len(raw) <= LONGEST_MATCHED
            taken = match(raw) if is_short else None
            if taken is None:
                raise Unreadable
            raw = taken[1]
        return raw if plus is None else (raw, plus(value))

    return read


def references(source: ValueSource | KeptValue) -> Callable[[Any], list[str]]:
    """Returns what finds the keys in texts such as `Patient/123`, of the kind that is wanted.

    Texts of another kind have none, nor have addresses that are not the backend's own. It raises
    Unreadable for what is no text.
    """
    find = path(source.source if isinstance(source, KeptValue) else source.text)
    kind, own = re.escape(source.reference or ""), getattr(source.reference, "address", "")
    begin = rf"(?!//|[A-Za-z][\w+.-]*:){f'|{_address(URL(own))}' if own else ''}"
    way = rf"(?:[^?#]*/)?{kind}/([^/?#|\s]+)(?:/_history/[^/?#\s]+)?"
    match = re.compile(rf"(?:{begin}){way}").fullmatch

    def read(value: Any) -> list[str]:
        found = find(value)
        each = found if isinstance(found, list) else [found]
        texts = [text for text in each if text is not None and text != ""]
        if not all(isinstance(text, str) and len(text) <= LONGEST_MATCHED for text in texts):
            raise Unreadable
        return [taken[1] for text in texts if (taken := match(text))]

    return read


def _address(backend: URL) -> str:
    """Returns an expression for how addresses below the backend's begin, of either scheme."""
    host, below = (re.escape(it or "") for it in (backend.host_subcomponent, backend.raw_path))
    port = "(?::(?:80|443))?" if backend.is_default_port() else f":{backend.port}"
    return f"(?i:https?://{host}){port}{below.rstrip('/')}/"


def items_of(nested: ListMap) -> Path:
    """Returns what finds the rows of a list in a record, each of which may see the record."""
    find, name = path(nested.items or "@"), nested.within
    if name is None:
        return find

    def read(record: Any) -> Any:
        rows = find(record)
        if not isinstance(rows, list):
            return rows
        return [{**row, name: record} if isinstance(row, dict) else row for row in rows]

    return read


def json_value(source: ValueSource, shape: FieldShape, converter: Converter) -> RowValue:
    """Returns what reads plain values, or lists of these for many; else Unreadable."""
    find, is_key = raw_value(source), shape.format == "uuid"
    of_texts = conversion_name(source, shape) in _OF_TEXTS

    def plain(row: Any) -> Any:
        raw = find(row)
        if isinstance(raw, dict) or (is_key and isinstance(raw, bool)):
            raise Unreadable
        return str(raw).lower() if of_texts and isinstance(raw, bool) else raw

    def decode(raw: Any) -> Any:
        if not isinstance(raw, list):
            return converter.decode(raw)
        if not shape.many or any(isinstance(item, dict | list) for item in raw):
            raise Unreadable
        return [text for text in map(_TEXT.decode, raw) if text is not None]

    is_plain = source.match is None and source.plus is None and source.reference is None
    return RowValue(plain, decode, converter, plain_steps(source.text) if is_plain else None)


def own_id(source: ValueSource, ids: PublicIds) -> RowValue:
    return json_value(source, OF_IDS, Id(ids, own=True))


class JsonRows(RowReader):
    """Makes records of objects, with the lists inside them; `items` finds each of these."""

    lists: Mapping[str, "JsonRows"]

    def compiled(self, mapped: Mapped, planned: Mapping[str, Planned]) -> dict[str, RowValue]:
        self._where = path(mapped.where) if mapped.where else None
        self.is_selective = self._where is not None
        self._inner = mapped.lists if isinstance(mapped, ResourceMap) else {}
        self.items = {name: items_of(nested) for name, nested in self._inner.items()}
        return {name: json_value(*parts) for name, parts in planned.items()}

    def list_member(self, member: Member, make: Make) -> Member:
        nested = self._inner[member.name]
        steps = None if nested.within else plain_steps(nested.items or "@")
        return member.of_list(self.items[member.name], steps, make)

    def exists(self, row: Any, only: Only = ()) -> bool:
        """Judges by the mapping's condition too. Raises BackendNonsense where it is unclear."""
        if not super().exists(row, only):
            return False
        if not isinstance(row, dict):
            raise BackendNonsense(f"a record of {self.resource} is no object")
        try:
            return self._where is None or holds(self._where(row))
        except Unreadable as error:
            text = f"where of {self.resource} cannot be asked of its records"
            raise BackendNonsense(text) from error

    def record(self, row: Any, maker: RecordMaker, owner: str = "") -> Record | None:
        record = super().record(row, maker, owner)
        if record is None:
            return None
        for name, inner in maker.inside.items():
            try:
                rows = self.items[name](row)
            except Unreadable:
                rows = False
            if rows is None or isinstance(rows, list):
                reader = self.lists[name]
                made = (reader.record(item, inner, record["id"]) for item in rows or ())
                record[name] = [item for item in made if item is not None]
            else:
                self.report(Trouble("unreadable", self.resource, name, record["id"]))
        return record
