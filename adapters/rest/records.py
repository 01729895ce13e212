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

    def __init__(self, source: ValueSource | KeptValue) -> None:
        self._path = path(source.source if isinstance(source, KeptValue) else source.text)
        self._match = re.compile(source.match).search if source.match else None
        plus = getattr(source, "plus", None)
        self._plus = path(plus) if plus else None

    def read(self, value: Any) -> Any:
        """The raw value; None where there is none. Unreadable where `match` fits nothing."""
        raw = self._path(value)
        if self._match is not None and raw is not None and raw != "":
            # an expression that tries again from every character takes long over a long text
            is_short = isinstance(raw, str) and len(raw) <= LONGEST_MATCHED
            taken = self._match(raw) if is_short else None
            if taken is None:
                raise Unreadable
            raw = taken[1]
        return raw if self._plus is None else (raw, self._plus(value))


class FoundValue:
    """A value of an answer, converted."""

    def __init__(self, source: ValueSource, shape: FieldShape, converter: Converter) -> None:
        self._raw = RawValue(source)
        self.converter = converter
        self._many = shape.many
        self._of_texts = conversion_name(source, shape) in _OF_TEXTS
        self._is_key = shape.format == "uuid"

    def read(self, value: Any) -> Any:
        """The value in its JSON form; Unreadable, also for what is no plain value."""
        raw = self.plain(value)
        if not isinstance(raw, list):
            return self.converter.decode(raw)
        if not self._many or any(isinstance(item, dict | list) for item in raw):
            raise Unreadable
        return [text for text in map(_TEXT.decode, raw) if text is not None]

    def plain(self, value: Any) -> Any:
        """The raw value, which no converter has seen."""
        raw = self._raw.read(value)
        if isinstance(raw, dict) or (isinstance(raw, bool) and self._is_key):
            raise Unreadable
        if isinstance(raw, bool) and self._of_texts:
            return str(raw).lower()
        return raw

    def mark(self, row: Any) -> Any:
        """The raw value, which tells rows apart; None where it can't be read."""
        try:
            return self.plain(row)
        except Unreadable:
            return None

    def shown(self, value: Any) -> Any:
        """The value in its JSON form; None where it can't be read."""
        try:
            return self.read(value)
        except Unreadable:
            return None


def found_value(converters: Converters, source: ValueSource, shape: FieldShape) -> FoundValue:
    """The value as the mapping says to read it, or as its format is read."""
    return FoundValue(
        source, shape, converters.make(source, shape, columns=len(source.expressions))
    )


def own_id(source: ValueSource, ids: PublicIds) -> FoundValue:
    """A record's own id."""
    return FoundValue(source, FieldShape(format="uuid"), Id(ids, own=True))


class Fields:
    """The fields of a record, or of an object in one of its lists, as a plan says."""

    def __init__(self, plan: RowPlan) -> None:
        self.prefix, self.has_id = plan.prefix, plan.has_id
        self.blank: Record = dict.fromkeys(plan.names)
        self.by_name = {
            field.name: FoundValue(field.source, field.shape, field.converter)
            for field in plan.fields
        }
        self.key = None if plan.key is None else own_id(plan.key, plan.ids)


class RecordMaker:
    """Makes the records of one resource; `key` is a record's own id."""

    def __init__(self, plan: RowPlan, resource: ResourceMap, report: Report) -> None:
        self.name = plan.resource
        self.key = own_id(resource.key, plan.ids)
        self._report = report
        self._where = path(plan.where) if plan.where else None
        self.fields = Fields(plan)
        self._judged_by = {**self.fields.by_name, "id": self.key}
        self.lists = [
            (name, path(nested.items or "@"), Fields(plan.lists[name]))
            for name, nested in resource.lists.items()
        ]
        self._no_lists: Record = dict.fromkeys(plan.list_names)

    def meets(self, value: Any, only: Only) -> bool:
        """Whether the conditions hold of a record as the backend gives it; nothing is reported."""
        return all_hold(only, lambda name: self._judged_by[name].shown(value))

    def exists(self, value: Any) -> bool:
        """Whether the mapping's condition holds."""
        try:
            return self._where is None or holds(self._where(value))
        except Unreadable as error:
            raise BackendNonsense(f"where of {self.name} cannot be asked of its records") from error

    def record(self, value: Any) -> Record | None:
        """The record; None, reported, where it has no usable id."""
        record = self._filled(self.fields, value, "")
        if record is not None:
            record |= self._no_lists
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
        return [record for record in made if record is not None]

    def _filled(self, fields: Fields, value: Any, owner: str) -> Record | None:
        record = dict(fields.blank)
        if fields.has_id:
            record["id"] = None if fields.key is None else fields.key.shown(value)
            if record["id"] is None:
                self._report(Trouble("no id", self.name, f"{fields.prefix}id", owner))
                return None
        for name, found in fields.by_name.items():
            try:
                record[name] = found.read(value)
            except Unreadable as error:
                at = owner or record.get("id") or ""
                self._report(Trouble(error.kind, self.name, fields.prefix + name, at))
        return record
