"""An answer's JSON made into records: paths, converters, and what to do with what can't be read."""

import re
from collections.abc import Callable
from typing import Any

from adapters.base import BackendNonsense, FieldShape, Only, Record, Report, Trouble
from adapters.ids import Id, PublicIds
from adapters.mapped.plan import RowPlan
from adapters.mapping.conversion import conversion_name
from adapters.mapping.converters import Converters
from adapters.mapping.models import KeptValue, ResourceMap, ValueSource
from adapters.mapping.narrowing import all_hold
from adapters.mapping.paths import holds, path
from adapters.values.convert import Converter, Text, Unreadable

_TEXT = Text()
# Characters of a text that `match` looks into.
LONGEST_MATCHED = 2_000
# Converters that read a text: what is true in JSON is `true` to them, not Python's word.
_OF_TEXTS = frozenset({"text", "code", "email", "split text"})


class RawValue:
    """What a path finds, and `match` takes of it: a plain value, or a list of them."""

    def __init__(self, found: ValueSource | KeptValue) -> None:
        self._path = path(found.source if isinstance(found, KeptValue) else found.text)
        self._match = re.compile(found.match).search if found.match else None
        plus = getattr(found, "plus", None)
        self._plus = path(plus) if plus else None

    def read(self, value: Any) -> Any:
        """The raw value; None where there is none. Unreadable where `match` fits nothing."""
        raw = self._matched(value)
        return raw if self._plus is None else (raw, self._plus(value))

    def _matched(self, value: Any) -> Any:
        raw = self._path(value)
        if self._match is None or raw is None or raw == "":
            return raw
        # an expression that tries again from every character takes long over a long text
        taken = self._match(raw) if isinstance(raw, str) and len(raw) <= LONGEST_MATCHED else None
        if taken is None:
            raise Unreadable
        return taken[1]


class FoundValue:
    """A value of an answer, converted."""

    def __init__(
        self, found: ValueSource, shape: FieldShape, converter: Converter, name: str
    ) -> None:
        self._raw = RawValue(found)
        self.converter = converter
        self._many = shape.many
        self._of_texts = name in _OF_TEXTS
        self._key = shape.format == "uuid"

    def read(self, value: Any) -> Any:
        """The value in its JSON form; Unreadable, also for what is no plain value."""
        raw = self.plain(value)
        if isinstance(raw, list):
            if not self._many:
                raise Unreadable
            return [text for text in map(_text, raw) if text is not None]
        return self.converter.decode(raw)

    def plain(self, value: Any) -> Any:
        """The raw value, which no converter has seen."""
        raw = self._raw.read(value)
        if isinstance(raw, dict) or (isinstance(raw, bool) and self._key):
            raise Unreadable
        if isinstance(raw, bool) and self._of_texts:
            return str(raw).lower()
        return raw


def _text(raw: Any) -> str | None:
    if isinstance(raw, dict | list):
        raise Unreadable
    return _TEXT.decode(raw)


class FoundValues:
    """Makes found values."""

    def __init__(self, converters: Converters) -> None:
        self.converters = converters

    def make(self, found: ValueSource, shape: FieldShape) -> FoundValue:
        converter = self.converters.make(found, shape, columns=len(found.expressions))
        return FoundValue(found, shape, converter, conversion_name(found, shape))

    def key(self, found: ValueSource, resource: str) -> FoundValue:
        """The same for the own id of a resource, or of a list such as invoices/lines."""
        return key_of(found, self.converters.ids(resource))


def key_of(found: ValueSource, ids: PublicIds) -> FoundValue:
    """A record's own id."""
    return FoundValue(found, FieldShape(format="uuid"), Id(ids, own=True), "id")


class Fields:
    """The fields of a record, or of an object in one of its lists, as a plan says."""

    def __init__(self, plan: RowPlan) -> None:
        self.prefix, self.has_id = plan.prefix, plan.has_id
        self.blank: Record = dict.fromkeys(plan.names)
        self.by_name = {
            each.name: FoundValue(each.source, each.shape, each.converter, each.conversion)
            for each in plan.fields
        }
        self.key = None if plan.key is None else key_of(plan.key, plan.ids)


class RecordMaker:
    """Makes the records of one resource."""

    def __init__(self, plan: RowPlan, resource: ResourceMap, report: Report) -> None:
        self.name = plan.resource
        self._report = report
        self._where = path(plan.where) if plan.where else None
        self.fields = Fields(plan)
        self.lists = [
            (name, path(nested.items or "@"), Fields(plan.lists[name]))
            for name, nested in resource.lists.items()
        ]
        self._no_lists = plan.list_names

    @property
    def key(self) -> FoundValue:
        """The record's own id."""
        if self.fields.key is None:
            raise TypeError(self.name)
        return self.fields.key

    def lets_be(self, value: Any, only: Only) -> bool:
        """Whether the conditions hold of a record as the backend gives it; nothing is reported."""
        return all_hold(only, lambda name: self._shown(name, value))

    def _shown(self, name: str, value: Any) -> Any:
        found = self.key if name == "id" else self.fields.by_name[name]
        try:
            return found.read(value)
        except Unreadable:
            return None

    def exists(self, value: Any) -> bool:
        """Whether the mapping's condition holds."""
        if self._where is None:
            return True
        try:
            return holds(self._where(value))
        except Unreadable as error:
            raise BackendNonsense(f"where of {self.name} cannot be asked of its records") from error

    def record(self, value: Any) -> Record | None:
        """The record; None, reported, where it has no usable id."""
        record = self._filled(self.fields, value, "")
        if record is None:
            return None
        for name in self._no_lists:
            record[name] = None
        for name, items, fields in self.lists:
            record[name] = self._children(name, items, fields, value, record["id"])
        return record

    def _children(
        self, name: str, items: Callable[[Any], Any], fields: Fields, value: Any, owner: str
    ) -> list[Record] | None:
        try:
            rows = items(value)
        except Unreadable:
            rows = False
        if rows is None:
            return []
        if not isinstance(rows, list):
            self._report(Trouble("unreadable", self.name, name, owner))
            return None
        made = (self._filled(fields, row, owner) for row in rows)
        return [each for each in made if each is not None]

    def _filled(self, fields: Fields, value: Any, owner: str) -> Record | None:
        record = dict(fields.blank)
        if fields.has_id:
            try:
                record["id"] = fields.key.read(value) if fields.key is not None else None
            except Unreadable:
                record["id"] = None
            if record["id"] is None:
                self._report(Trouble("no id", self.name, f"{fields.prefix}id", owner))
                return None
        for name, each in fields.by_name.items():
            try:
                record[name] = each.read(value)
            except Unreadable as error:
                at = owner or record.get("id") or ""
                self._report(Trouble(error.kind, self.name, fields.prefix + name, at))
        return record
