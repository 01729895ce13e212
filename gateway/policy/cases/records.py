"""Reads the records of a file of cases, each by the fields of the resource that it is one of."""

from collections.abc import Callable, Iterator
from typing import Any

from adapters.base import Record
from adapters.documents.document import Document, Place
from adapters.documents.problems import did_you_mean
from gateway.contract.fields import Field, Resource
from gateway.contract.operations import Operation
from gateway.policy.values import NoValue, read_value

Say = Callable[..., None]
_EXAMPLE = "00000000-0000-4000-8000-000000000001"


class Records:
    """The named records, read when the first case asks for them, and those within a case."""

    def __init__(self, document: Document, say: Say) -> None:
        self.document = document
        self.say = say
        self.written: dict[str, Any] = {}
        self.is_whole = True
        # name -> what it is a record of, the line that says so, and how it was read
        self.read: dict[str, tuple[Resource, int, Record]] = {}

    def named(self, data: Any) -> None:
        """Takes the member `records`."""
        if data is None:
            return
        if isinstance(data, dict):
            self.written = data
        else:
            self.is_whole = False
            self.say(("records",), "records must name records, such as anna: {id: ..., phone: ...}")

    def of(self, place: Place, written: Any, operation: Operation) -> Record | None:
        """The record that a case names or holds; None where there is none, which is said."""
        found = None
        if isinstance(written, dict):
            found = dict(self.members(place, operation.returns.fields, written, operation.returns))
        elif isinstance(written, str):
            found = self.by_name(place, written, operation)
        else:
            self.say(place, "record must be the name of a record, or a record in braces")
        if found is not None:
            self.check_listed(place, found, operation)
        return found

    def by_name(self, place: Place, name: str, operation: Operation) -> Record | None:
        resource = operation.returns
        if name not in self.written:
            if self.is_whole and ("records",) not in self.document.partial:
                hint = did_you_mean(name, self.written)
                self.say(place, f"no record is named {name}{hint}; write it under records")
            return None
        if name not in self.read:
            line, at = self.document.marks[place][0], ("records", name)
            data = self.written[name]
            if not isinstance(data, dict):
                self.say(at, f"{name} must be a record, with its fields and their values")
                return None
            found = dict(self.members(at, resource.fields, data, resource))
            self.read[name] = resource, line, found
        known, line, found = self.read[name]
        if known is not resource:
            text = (
                f"{name} is read as one of {known.name} (line {line}), and {operation.id} answers"
                f" {resource.name}"
            )
            self.say(place, text)
            return None
        return found

    def members(
        self,
        place: Place,
        fields: tuple[Field, ...],
        data: dict[str, Any],
        resource: Resource,
        prefix: str = "",
    ) -> Iterator[tuple[str, Any]]:
        """The members as answers carry them; says what is no field, and no value of one."""
        known = {each.name: each for each in fields}
        for name, written in data.items():
            if name not in known:
                text = f"{resource.name} has no field {prefix + name!r}{did_you_mean(name, known)}"
                self.say((*place, name), text, at_key=True)
            elif known[name].fields:
                items = self.items((*place, name), known[name], written, resource)
                yield name, items
            else:
                yield name, self.value((*place, name), known[name], written, prefix)
        if "id" in known and data.get("id") is None and place not in self.document.partial:
            self.say(place, f"every record has an id: write one, such as id: {_EXAMPLE}")

    def items(self, place: Place, field: Field, written: Any, resource: Resource) -> Any:
        """A list of objects."""
        if written is None:
            return None
        if not isinstance(written, list) or not all(isinstance(each, dict) for each in written):
            self.say(place, f"{field.name} is a list of objects, such as [{{...}}, {{...}}]")
            return None
        return [
            dict(self.members((*place, n), field.fields, each, resource, f"{field.name}[]."))
            for n, each in enumerate(written)
        ]

    def value(self, place: Place, field: Field, written: Any, prefix: str) -> Any:
        try:
            return read_value(field, written)
        except NoValue as error:
            self.say(place, f"{prefix}{field.name} {error}")
            return None

    def check_listed(self, place: Place, record: Record, operation: Operation) -> None:
        """A record that the operation never lists proves nothing."""
        for name, value in operation.only:
            if record.get(name) is not value:
                spelt = "true" if value else "false"
                text = f"{operation.id} lists only records with {name}: {spelt}"
                self.say(place, text)
