"""RestAdapter: a practice system that speaks JSON over HTTP, through a mapping, as an Adapter.

Its check asks the calls of the mapping once: whether they answer, and whether paths lead anywhere.
A path that leads to nothing in any sampled record is a warning: backends leave out members that
have no value, so a sample never proves that a path is wrong.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from adapters.base import (
    AdapterError,
    AdapterOptions,
    BackendTimeout,
    BackendUnavailable,
    Record,
)
from adapters.documents.document import Place
from adapters.documents.problems import Problem, did_you_mean, warnings_of
from adapters.mapped.session import DiarySpan
from adapters.mapped.slots import Interval
from adapters.mapping.loading import open_mapping
from adapters.mapping.models import ListMap, ResourceMap
from adapters.mapping.paths import Steps, heads, path, plain_steps, value_at
from adapters.rest.client import Client, address_problem
from adapters.rest.paging import NoArray, may_be_empty
from adapters.rest.resource import Components, ResourceCalls
from adapters.rest.session import HttpAdapter, RestSession

# One that answers is enough; the calendar of another may be missing.
MOST_VETS = 10


class RestAdapter(HttpAdapter):
    """Reads and books through the calls that the mapping gives, over `client` or one of its own.

    ValueError where there is no mapping; DocumentErrors where it or the address can't be used.
    """

    def __init__(self, options: AdapterOptions, client: Client | None = None) -> None:
        text = address_problem(options.url)
        problems = [] if text is None else [Problem("backend.url", 0, 0, text)]
        mapping, document = open_mapping(options, "rest", problems)
        client = client or Client(options.url, timeout=options.timeout)
        parts = Components(mapping, options, client)
        readers = {
            name: ResourceCalls(name, resource, parts)
            for name, resource in mapping.resources.items()
        }
        super().__init__(options, mapping, document, readers, parts)

    async def check(self) -> Sequence[Problem]:
        """DocumentErrors where a call fails; a path that leads to nothing is a warning.

        A backend that does not answer at all is no problem of the mapping's: BackendUnavailable.
        """
        problem, found = self.document.problem, list[Problem]()
        for name, resource in self.mapping.resources.items():
            try:
                rows = await self.readers[name].sample()
            except (BackendUnavailable, BackendTimeout):
                raise
            except AdapterError as error:
                method = "get" if resource.list_ is None else resource.list_.method
                found.append(self._unanswered(("resources", name, "list"), method, error))
            else:
                for written in written_paths(name, resource, rows):
                    texts = written.complaints()
                    found += [problem(written.place, text, sampled=True) for text in texts]
        return warnings_of([*found, *await self._diary_checked()])

    async def _diary_checked(self) -> list[Problem]:
        """What the sources of the diary do not answer for any of the vets."""
        vets = (await self.readers["vets"].page((), MOST_VETS, None)).records
        found: list[Problem] = []
        for kind in ("hours", "slots", "busy"):
            for number, rows in enumerate(getattr(self.diary_calls, kind)):
                errors = [] if rows is None else await self._errors(kind, number, vets)
                if errors:
                    first = self._unanswered(("diary", kind, number), "get", errors[0])
                    certain = not first.only_sampled and len(errors) == len(vets)
                    found.append(replace(first, only_sampled=not certain))
        return found

    def _unanswered(self, place: Place, method: str, error: AdapterError) -> Problem:
        at = (*place, "items" if isinstance(error, NoArray) else method)
        text = " ".join(str(error).split())
        return self.document.problem(at, text, sampled=may_be_empty(error))

    async def _errors(self, kind: str, number: int, vets: Sequence[Record]) -> list[AdapterError]:
        """What a source of the diary says of the vets' time, up to the first that it answers."""
        now, lasts, errors = datetime.now(UTC), timedelta(hours=1), list[AdapterError]()
        for vet in vets:

            async def ask(session: RestSession, vet: str = vet["id"]) -> None:
                for calendar in await self.diary.calendars(session, vet):
                    span = DiarySpan(calendar, Interval(now, now + lasts), lasts)
                    await getattr(session, kind)(number, calendar if kind == "hours" else span)

            try:
                await self.read(ask)
            except (BackendUnavailable, BackendTimeout):
                raise
            except AdapterError as error:
                errors.append(error)
            else:
                break
        return errors


class WrittenPath(NamedTuple):
    """A path of the mapping: its place, what it is called, and the values it is asked of."""

    place: Place
    expression: str
    subject: str
    rows: list[Any]

    def complaints(self) -> Iterator[str]:
        """What is said where no value has what the path names; an expression has several parts."""
        is_plain = plain_steps(self.expression) is not None
        which = self.expression if is_plain else "part of the expression"
        # an expression may do without what only some records have
        for steps in heads(self.expression):
            missing = [_missing(steps, row) for row in self.rows]
            if missing and all(missing):
                yield f"no record of the backend has {missing[0]}: {which} leads to nothing"


def written_paths(name: str, resource: ResourceMap, raws: list[Any]) -> Iterator[WrittenPath]:
    """Each path of a resource, with the values that `raws`, its records, have for it."""
    place: Place = ("resources", name)
    if resource.where:
        yield WrittenPath((*place, "where"), resource.where, f"{name}.where", raws)
    parts: list[tuple[Place, str, ResourceMap | ListMap, list[Any]]] = [
        (place, name, resource, raws)
    ]
    for inner, nested in resource.lists.items():
        at, subject, items = (*place, "lists", inner), f"{name}.{inner}", nested.items or "@"
        yield WrittenPath((*at, "items"), items, subject, raws)
        parts.append((at, subject, nested, [row for raw in raws for row in _items(items, raw)]))
    for at, owner, part, rows in parts:
        key = {} if part.key is None else {(*at, "key"): part.key}
        fields = {(*at, "fields", field): source for field, source in part.fields.items()}
        for where, source in (key | fields).items():
            subject = f"{owner}.{where[-1]}"
            yield WrittenPath(where, source.text, subject, rows)
            if source.plus is not None:
                yield WrittenPath((*where, "plus"), source.plus, subject, rows)


def _items(items: str, raw: Any) -> list[Any]:
    rows = value_at(path(items), raw)
    return rows if isinstance(rows, list) else []


def _missing(steps: Steps, value: Any) -> str:
    """The name that an object on the way lacks, with a near one; "" where nothing is amiss."""
    for step in steps:
        if isinstance(step, int):
            if not isinstance(value, list) or not -len(value) <= step < len(value):
                return ""
        elif not isinstance(value, dict):
            return "" if value is None else step
        elif step not in value:
            return f"{step}{did_you_mean(step, value)}"
        value = value[step]
    return ""
