"""Builds the answer from the open fields of a record: the last step before bytes go out.

A redactor never deletes. It knows the fields that are open and copies these, each checked against
its format, into a shape made for them; whatever else a record holds is not looked at. Reading the
whole record at once is the fast way; where that fails, each value is read by itself, and those
that can't be used become null and are reported.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NoReturn
from uuid import UUID

import msgspec

from adapters.base import Only, Record, Report, Trouble
from gateway.contract.fields import Field, Resource, opened
from gateway.policy.masks import Mask
from gateway.policy.rows import EVERY, RowFilter
from gateway.policy.values import BROKEN, NO_MASKS, finisher, struct, typed_value


class NoUsableId(Exception):
    """The record's id is open but absent or unreadable: alone, such a record is no answer."""


class Redactor:
    """One resource as one level sees it.

    `visible` holds the paths of the fields that are seen whole, `masks` those of the fields that
    are seen under a mask; `fields` are both as a tree, in the order of the answers, a list of
    objects only with its open members. `only` says which records exist, as adapters are told of
    it, and `admits` whether a record is one of them.
    """

    def __init__(
        self,
        resource: Resource,
        visible: Iterable[str],
        report: Report,
        *,
        masks: Mapping[str, Mask] = NO_MASKS,
        rows: RowFilter = EVERY,
    ) -> None:
        self.visible = frozenset(visible)
        self.masks = MappingProxyType(dict(masks))
        self.only: Only = rows.conditions(resource)
        self.admits = rows.admits(resource)
        self.fields = opened(resource.fields, self.visible | masks.keys())
        self._shape = struct(resource.title, self.fields)
        self._shapes: Any = list[self._shape]  # type: ignore[name-defined]  # made just now
        self._finish = finisher(self.fields, masks)
        # of each path whose values were mended, one by one
        self._sound: dict[str, Callable[[Any], bool]] = {}
        self._encode = msgspec.json.Encoder().encode
        self._resource = resource.name
        self._report = report

    def one(self, record: Record) -> bytes:
        """The record's open fields as a JSON object; NoUsableId where an open id is unusable."""
        try:
            view = msgspec.convert(record, self._shape)
            if self._finish(view):
                return self._encode(view)
        except BROKEN:
            pass  # which value it was, and what remains, is found out one by one
        return self._encode(self._mended(record))

    def many(self, records: list[Record]) -> tuple[bytes, int]:
        """A JSON array, and how many records were left out for lack of a usable id."""
        try:
            views = msgspec.convert(records, self._shapes)
            if all(map(self._finish, views)):
                return self._encode(views), 0
        except BROKEN:
            pass
        parts = []
        for record in records:
            with suppress(NoUsableId):
                parts.append(self.one(record))
        return b"[" + b",".join(parts) + b"]", len(records) - len(parts)

    def _mended(self, raw: Any) -> Record:
        """The record, read value by value; what can't be used is null."""
        if not isinstance(raw, dict):
            self._no_id("id", "")
        known = ""  # for the clinic's log, whether or not a partner may see it
        with suppress(*BROKEN):
            known = str(msgspec.convert(raw.get("id"), UUID))
        return self._members(self.fields, raw, "", known)

    def _members(self, fields: tuple[Field, ...], raw: Record, prefix: str, record: str) -> Record:
        """The open members in their order; NoUsableId where `id` is one and can't be read."""
        mended: Record = {}
        for field in fields:
            path, value = prefix + field.name, raw.get(field.name)
            if value is not None:
                value = (self._items if field.fields else self._value)(field, value, path, record)
            if value is None and not field.nullable:
                self._no_id(path, record)
            mended[field.name] = value
        return mended

    def _items(self, field: Field, raw: Any, path: str, record: str) -> list[Record] | None:
        """The list's objects; one that is none, or has no usable id, is left out."""
        if not isinstance(raw, list | tuple):
            self._unreadable(path, record)
            return None
        mended = []
        for item in raw:
            if not isinstance(item, dict):
                self._unreadable(f"{path}[]", record)
                continue
            with suppress(NoUsableId):
                mended.append(self._members(field.fields, item, f"{path}[].", record))
        return mended

    def _value(self, field: Field, raw: Any, path: str, record: str) -> Any:
        try:
            if path not in self._sound:
                self._sound[path] = finisher((field,))
            value = typed_value(field, raw, self._sound[path])
            return self.masks[path](value) if path in self.masks else value
        except BROKEN:
            pass
        # An id that can't be used is reported once, as what it means for the record.
        if field.nullable:
            unknown = bool(field.values) and isinstance(raw, str)
            self._unreadable(path, record, "unknown code" if unknown else "unreadable")
        return None

    def _unreadable(self, path: str, record: str, kind: str = "unreadable") -> None:
        self._report(Trouble(kind, self._resource, path, record))

    def _no_id(self, path: str, record: str) -> NoReturn:
        self._report(Trouble("no id", self._resource, path, record))
        raise NoUsableId(self._resource)
