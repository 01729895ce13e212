"""Builds answers from the open fields of records: the last step before bytes go out.

A redactor copies the open fields and ignores all others. It takes those of records that are known
to be in the form of the contract as they are. Those of any other are checked against their formats,
a whole record at once and, where that fails, value by value. An unusable one becomes null and is
reported.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NoReturn
from uuid import UUID

import msgspec
import orjson

from adapters.base import Formed, FormedRecord, Only, Record, Report, Trouble
from gateway.contract.fields import Field, Resource, opened
from gateway.policy.masks import Mask
from gateway.policy.rows import EVERY, RowFilter
from gateway.policy.values import BROKEN, NO_MASKS, finisher, projection, struct, typed_value

# Forms of records, of which a level sees one, or one more for each way to filter.
MOST_FORMS = 16


class NoUsableId(Exception):
    """The record's id is open but absent or unreadable. Such a record is no answer."""


class Redactor:
    """One resource as one level sees it.

    `visible` has the paths of the fields that are shown whole, `masks` has the masks by path.
    `fields` are all these as a tree, in the order of the answers. `only` is the row conditions as
    adapters read them, and `admits` tells whether a record meets them. `needed` has the paths of
    all that is looked at.
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
        self.needed = self.visible.union(masks, rows.tests)
        # the members in the form of adapters -> what makes views of such records
        self._projections = lru_cache(MOST_FORMS)(self._projection)
        self._shown = tuple(path for path in resource.paths if path in self.visible | masks.keys())
        self._as_is = None if masks else self._shown
        self._shape = struct(resource.title, self.fields)
        self._shapes: Any = list[self._shape]  # type: ignore[name-defined]  # made just now
        self._finish = finisher(self.fields, masks)
        # path -> the check of a single value there, made when it is first needed
        self._sound: dict[str, Callable[[Any], bool]] = {}
        self._encode = msgspec.json.Encoder().encode
        self._resource = resource.name
        self._report = report

    def one(self, record: Record) -> bytes:
        """Returns the open fields as a JSON object; raises NoUsableId for an unusable open id."""
        if isinstance(record, FormedRecord):
            body = self._of_formed([record], record.form)
            if body is not None:
                return body[1:-1]
        try:
            view = msgspec.convert(record, self._shape)
            if self._finish(view):
                return self._encode(view)
        except BROKEN:
            pass  # `_mended` finds out which value it was
        return self._encode(self._mended(record))

    def many(self, records: list[Record]) -> tuple[bytes, int]:
        """Returns a JSON array, and how many records were left out for lack of a usable id."""
        if isinstance(records, Formed):
            body = self._of_formed(records, records.form)
            if body is not None:
                return body, 0
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

    def admitted(self, records: list[Record]) -> list[Record]:
        """Returns the records that meet the row conditions."""
        kept = filter(self.admits, records)
        return Formed(kept, records.form) if isinstance(records, Formed) else list(kept)

    def _of_formed(self, records: list[Record], form: tuple[str, ...]) -> bytes | None:
        """Returns a JSON array of records in that form; None where they have to be read anew."""
        try:
            if form == self._as_is:
                return orjson.dumps(records)
            project = self._projections(form)
            return None if project is None else orjson.dumps(project(records))
        except BROKEN:  # such as a text that no encoding can carry
            return None

    def _projection(self, form: tuple[str, ...]) -> Callable[[list[Record]], list[Record]] | None:
        """Returns what makes views of records in that form; None where an open field is missing."""
        if not frozenset(form).issuperset(self._shown):
            return None
        return projection(self.fields, self.masks)

    def _mended(self, raw: Any) -> Record:
        """Reads a record value by value; an unusable one becomes null."""
        if not isinstance(raw, dict):
            self._no_id("id", "")
        known = ""  # the clinic's log names the record even if partners do not see its id
        with suppress(*BROKEN):
            known = str(msgspec.convert(raw.get("id"), UUID))
        return self._members(self.fields, raw, "", known)

    def _members(self, fields: tuple[Field, ...], raw: Record, prefix: str, record: str) -> Record:
        """Returns the open members in their order; raises NoUsableId for an unusable `id`."""
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
        """Returns the objects of a list, without those that have no usable id or are none."""
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
        # an unusable id is reported by `_no_id`
        if field.nullable:
            unknown = bool(field.values) and isinstance(raw, str)
            self._unreadable(path, record, "unknown code" if unknown else "unreadable")
        return None

    def _unreadable(self, path: str, record: str, kind: str = "unreadable") -> None:
        self._report(Trouble(kind, self._resource, path, record))

    def _no_id(self, path: str, record: str) -> NoReturn:
        self._report(Trouble("no id", self._resource, path, record))
        raise NoUsableId(self._resource)
