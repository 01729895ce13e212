"""Adds to records what other calls tell of them: one call for each record, or one for many."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from adapters.base import AdapterError, BackendNonsense, Condition, FieldShape, NotFound, Only
from adapters.documents.document import Place
from adapters.mapped.records import Fields
from adapters.mapping.models import JoinMap, ResourceMap
from adapters.mapping.paths import names_in, path, value_at
from adapters.rest.backend import TO_ONE, Backend, for_each
from adapters.rest.login import LoggedOut
from adapters.rest.paging import MOST_ROWS, Pager
from adapters.rest.records import raw_value
from adapters.rest.requests import Templates, TemplateValues, text_of
from adapters.values.convert import Unreadable

# What a call is given: the values in the records that it is asked for.
OF = {"of": FieldShape(format="text", many=True)}


class Unknown(dict[str, Any]):
    """Stands for what a call would have told that failed: no path into it can be read."""

    def get(self, *_: object) -> NoReturn:
        raise Unreadable

    values = get


UNKNOWN = Unknown()


def is_known(row: Any) -> bool:
    """Returns whether no call failed for the row."""
    return not isinstance(row, dict) or all(value is not UNKNOWN for value in row.values())


class Failure(NamedTuple):
    """A call that failed, at that place of its resource, for one record at least or `of_all`."""

    place: Place
    error: AdapterError
    of_all: bool


class Failures(list[Failure]):
    """The calls that failed for single records, and the places of those that were `answered`."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = set[Place]()

    def judge(self) -> None:
        """Raises the first error of a call that was answered for no record."""
        for failure in self:
            if failure.place not in self.answered:
                raise failure.error


class Join:
    """One call that tells more of records; `uses` are the fields that are read from it.

    It is `of_each` where it is made for one record at a time.
    """

    def __init__(
        self, name: str, mapped: JoinMap, resource: ResourceMap, templates: Templates
    ) -> None:
        self.name, self._most, self._has_many = name, mapped.most, mapped.many
        self._method = mapped.method
        self._call, self._of = templates.call(mapped, OF), raw_value(mapped.of)
        self._needs = names_in(mapped.of.source)
        self._item = path(mapped.item)
        self.of_each = mapped.key is None
        self._key = raw_value(mapped.key) if mapped.key is not None else path("@")
        told_apart = path("@") if mapped.many else self._key
        self._pager = Pager(mapped.page, path(mapped.items), told_apart, self._call.label)
        self.uses = {
            field
            for field, source in resource.fields.items()
            if any(name in names_in(expression) for expression in source.expressions)
        }
        for inner, nested in resource.lists.items():
            self.uses.add(inner if name in names_in(nested.items or "@") or nested.within else "")
        parts = [resource.where, *(join.of.source for join in resource.joins.values())]
        parts += resource.key.source
        self._always = any(part and name in names_in(part) for part in parts)

    def concerns(self, fields: Fields) -> bool:
        """Returns whether a record with these fields needs what the call tells."""
        if fields is None or self._always:
            return True
        return any(field.partition("[]")[0] in self.uses for field in fields)

    async def told(
        self, rows: Sequence[Any], backend: Backend, failures: Failures | None = None
    ) -> list[Any]:
        """Returns what the call tells of each row; None where there is nothing to be told.

        Where a list of `failures` is given, an error that concerns one record goes there, and the
        record gets UNKNOWN.
        """
        named = [_named(value_at(self._of, row)) for row in rows]
        wanted = [text for text in dict.fromkeys(named) if text is not None]
        told: Mapping[str, Any]
        if self.of_each:
            is_strict = failures is None
            each = await for_each(lambda text: self._one(text, backend, strict=is_strict), wanted)
            errors = [it for it in each if isinstance(it, BackendNonsense)]
            place = ("joins", self.name, self._method)
            if failures is not None and len(errors) < len(wanted):
                failures.answered.add(place)
            if errors and failures is not None:
                of_all = len(errors) == len(wanted) > 1
                failures.append(Failure(place, errors[0], of_all))
                each = [UNKNOWN if isinstance(it, BackendNonsense) else it for it in each]
            told = dict(zip(wanted, each, strict=True))
        else:
            starts = range(0, len(wanted), self._most)
            parts = [wanted[start : start + self._most] for start in starts]
            pages = await for_each(lambda part: self._many(part, backend), parts)
            told = {text: row for page in pages for text, row in page.items()}
        lacking = {number for number, row in enumerate(rows) if self._lacks(row)}
        return [
            UNKNOWN if number in lacking else None if text is None else told.get(text)
            for number, text in enumerate(named)
        ]

    def _lacks(self, row: Any) -> bool:
        """Returns whether an earlier call failed that tells what this one asks by."""
        return not is_known(row) and any(row.get(name) is UNKNOWN for name in self._needs)

    async def _one(self, text: str, backend: Backend, *, strict: bool) -> Any:
        """Returns what the call tells, or the error unless it is `strict`."""
        try:
            request = self._call.request(TemplateValues({"of": text}))
            return value_at(self._item, (await backend.read(request, TO_ONE)).data)
        except NotFound:
            return None
        except BackendNonsense as error:
            if strict or isinstance(error, LoggedOut):
                raise
            return error

    async def _many(self, texts: Sequence[str], backend: Backend) -> dict[str, Any]:
        """Returns the rows of one answer by their keys: all for each, or the first."""
        ask = backend.pages(self._call, TemplateValues({"of": list(texts)}))
        found = await self._pager.first(ask, MOST_ROWS + 1)
        if len(found) > MOST_ROWS:
            many = f"{self._call.label}: {len(texts)} records have more than {MOST_ROWS:,} rows"
            raise BackendNonsense(f"{many}; write a smaller most")
        told: dict[str, list[Any]] = {text: [] for text in texts}
        for row in found:
            text = _named(value_at(self._key, row))
            if text in told:
                told[text].append(row)
        if self._has_many:
            return told
        return {text: its[0] for text, its in told.items() if its}


def _named(value: Any) -> str | None:
    """Returns the value that records are joined by, as a text; None for none."""
    is_plain = isinstance(value, str | int) and not isinstance(value, bool) and value != ""
    return text_of(value) if is_plain else None


class Joins:
    """The joins of a resource, in their order: a later one finds what earlier ones have added."""

    def __init__(self, resource: ResourceMap, templates: Templates, backend: Backend) -> None:
        self._backend = backend
        self._joins = [
            Join(name, mapped, resource, templates) for name, mapped in resource.joins.items()
        ]

    @property
    def of_each(self) -> bool:
        """Whether one of them costs a call for each record."""
        return any(join.of_each for join in self._joins)

    async def added(
        self,
        rows: Sequence[Any],
        fields: Fields = None,
        only: Only = (),
        failures: Failures | None = None,
    ) -> Sequence[Any]:
        """Returns the rows with what the calls tell under the joins' names.

        It lacks what neither records with these fields nor the conditions need. What fails for
        single records is raised, or goes into the list of `failures`; they have UNKNOWN then.
        """
        if fields is not None and only:
            fields = fields.union(condition.field for condition in only)
        for join in self._joins:
            if join.concerns(fields):
                told = await join.told(rows, self._backend, failures)
                rows = [
                    {**row, join.name: more} if isinstance(row, dict) else row
                    for row, more in zip(rows, told, strict=True)
                ]
        return rows

    def unclear(self, row: Any, only: Only) -> list[Condition]:
        """Returns the conditions on what a call would have told that failed for the row."""
        if is_known(row):
            return []
        unknown = [join for join in self._joins if row.get(join.name) is UNKNOWN]
        return [
            condition for condition in only if any(condition.field in join.uses for join in unknown)
        ]
