"""Asks the calls of a mapping once: whether they answer, and whether paths lead anywhere.

A path that leads to nothing in any sampled record is only a warning: backends leave out members
without a value, so a sample never proves that a path is wrong.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from adapters.base import AdapterError, BackendTimeout, BackendUnavailable, NotFound, Record
from adapters.documents.document import Place
from adapters.documents.problems import Problem, did_you_mean
from adapters.mapped.adapter import MappedAdapter
from adapters.mapped.session import DiarySpan, Session
from adapters.mapped.slots import Interval
from adapters.mapping.models import ListMap, Owned, ResourceMap
from adapters.mapping.paths import Steps, heads, plain_steps, value_at
from adapters.rest.paging import NoArray, Unfollowed, may_be_empty
from adapters.rest.records import items_of
from adapters.rest.resource import ResourceCalls

Readers = Mapping[str, ResourceCalls]
# Vets that are tried: one that answers is enough, as the calendar of another may be missing.
MOST_VETS = 10


async def problems_of(adapter: MappedAdapter, readers: Readers) -> AsyncIterator[Problem]:
    """Yields a problem for each call that does not answer, and each path that leads nowhere.

    Raises BackendUnavailable or BackendTimeout where the backend does not answer at all.
    """
    problem = adapter.document.problem
    for name, resource in adapter.mapping.resources.items():
        try:
            rows, failures = await readers[name].sample()
        except (BackendUnavailable, BackendTimeout):
            raise
        except AdapterError as error:
            method = resource.list_.method if resource.list_ else "get"
            yield _unanswered(adapter, ("resources", name, "list"), method, error)
        else:
            for failure in failures:
                at: Place = ("resources", name, *failure.place)
                first = _unanswered(adapter, at[:-1], str(at[-1]), failure.error)
                # what fails for one record may do for others
                yield first if failure.of_all else replace(first, code="doubtful-answer")
            for written in written_paths(name, resource, rows):
                for text in written.complaints():
                    yield problem(written.place, text, "path-to-nothing")


async def diary_problems_of(adapter: MappedAdapter, readers: Readers) -> AsyncIterator[Problem]:
    """Yields a problem for each source of the diary that fails for a vet."""
    if not adapter.mapping.offers("diary"):
        return
    vets = (await readers["vets"].page((), MOST_VETS, None)).records
    diary = adapter.mapping.diary
    parts: Sequence[tuple[str, Sequence[Owned]]]
    parts = ("hours", diary.hours), ("slots", diary.slots), ("busy", diary.busy)
    each = ((kind, *source) for kind, sources in parts for source in enumerate(sources))
    for kind, number, source in each:
        if source.method and (errors := await _errors(adapter, kind, number, vets)):
            first = _unanswered(adapter, ("diary", kind, number), source.method, errors[0])
            # where there are more vets, those that come first may all be without a calendar
            are_gone = all(isinstance(error, NotFound) for error in errors)
            is_certain = len(errors) == len(vets) and (len(vets) < MOST_VETS or not are_gone)
            in_doubt = first.code == "unanswered" and not is_certain
            yield replace(first, code="doubtful-answer") if in_doubt else first


def _unanswered(adapter: MappedAdapter, place: Place, method: str, error: AdapterError) -> Problem:
    at = (*place, "items" if isinstance(error, NoArray) else method)
    text = " ".join(str(error).split())
    code = "doubtful-answer" if may_be_empty(error) else "unanswered"
    code = "page-not-followed" if isinstance(error, Unfollowed) else code
    return adapter.document.problem(at, text, code)


async def _errors(
    adapter: MappedAdapter, kind: str, number: int, vets: Sequence[Record]
) -> list[AdapterError]:
    """Returns a source's errors for the vets, up to the first vet that it answers for."""
    now, lasts, errors = datetime.now(UTC), timedelta(hours=1), list[AdapterError]()
    for vet in vets:

        async def ask(session: Session, vet: str = vet["id"]) -> None:
            for calendar in await adapter.diary.calendars(session, vet):
                span = DiarySpan(calendar, Interval(now, now + lasts), lasts)
                await getattr(session, kind)(number, calendar if kind == "hours" else span)

        try:
            await adapter.read(ask)
        except (BackendUnavailable, BackendTimeout):
            raise
        except AdapterError as error:
            errors.append(error)
        else:
            break
    return errors


class WrittenPath(NamedTuple):
    """A path of the mapping: its place, what it is called, and the values it is tried on."""

    place: Place
    expression: str
    subject: str
    rows: list[Any]

    def complaints(self) -> Iterator[str]:
        """Yields a complaint for each part of the path that leads to nothing in every value."""
        is_plain = plain_steps(self.expression) is not None
        which = self.expression if is_plain else "part of the expression"
        # an expression may do without what only some records have
        for steps in heads(self.expression):
            missing = [_missing(steps, row) for row in self.rows]
            if missing and all(missing):
                yield f"no record of the backend has {missing[0]}: {which} leads to nothing"


def written_paths(name: str, resource: ResourceMap, raws: list[Any]) -> Iterator[WrittenPath]:
    """Yields each path of a resource, with the values that its records `raws` have for it."""
    place: Place = ("resources", name)
    if resource.where:
        yield WrittenPath((*place, "where"), resource.where, f"{name}.where", raws)
    parts: list[tuple[Place, str, ResourceMap | ListMap, list[Any]]] = [
        (place, name, resource, raws)
    ]
    for inner, nested in resource.lists.items():
        at, subject, items = (*place, "lists", inner), f"{name}.{inner}", nested.items or "@"
        yield WrittenPath((*at, "items"), items, subject, raws)
        parts.append((at, subject, nested, [row for raw in raws for row in _items(nested, raw)]))
    for at, owner, part, rows in parts:
        key = {} if part.key is None else {(*at, "key"): part.key}
        fields = {(*at, "fields", field): source for field, source in part.fields.items()}
        for where, source in (key | fields).items():
            subject = f"{owner}.{where[-1]}"
            yield WrittenPath(where, source.text, subject, rows)
            if source.plus is not None:
                yield WrittenPath((*where, "plus"), source.plus, subject, rows)


def _items(nested: ListMap, raw: Any) -> list[Any]:
    rows = value_at(items_of(nested), raw)
    return rows if isinstance(rows, list) else []


def _missing(steps: Steps, value: Any) -> str:
    """Returns the name that an object on the way lacks, with a near one; "" for none."""
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
