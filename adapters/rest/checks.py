"""Asks the calls of a mapping once: whether they answer, and whether paths lead to anything.

A path that leads to nothing in any sampled record is a warning: backends leave out members that
have no value, so a sample never proves that a path is wrong.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.base import AdapterError, BackendTimeout, BackendUnavailable
from adapters.documents.document import Document, Place
from adapters.documents.problems import Found, did_you_mean
from adapters.mapped.adapter import Core
from adapters.mapped.session import Calendar, DiarySpan
from adapters.mapped.slots import Interval
from adapters.mapping.models import ListMap, ResourceMap
from adapters.mapping.paths import Steps, heads, path, plain_steps
from adapters.rest.paging import NoArray, may_be_empty
from adapters.rest.session import RestDriver, RestSession
from adapters.values.convert import Unreadable

# One that answers is enough; the calendar of another may be missing.
MOST_VETS = 10


async def found_in(core: Core, driver: RestDriver) -> AsyncIterator[Found]:
    """What the backend does not answer as the mapping says, each at its place in the file.

    A backend that does not answer at all is no problem of the mapping's: BackendUnavailable.
    """
    document = core.document
    for name, resource in core.mapping.resources.items():
        try:
            rows = await driver.readers[name].sample()
        except (BackendUnavailable, BackendTimeout):
            raise
        except AdapterError as error:
            method = "get" if resource.list_ is None else resource.list_.method
            yield _unanswered(document, ("resources", name, "list"), method, error)
            continue
        for written in written_paths(name, resource, rows):
            for text in written.complaints():
                yield Found(document.problem(written.place, text), only_sampled=True)
    async for found in _diary(core, driver):
        yield found


async def _diary(core: Core, driver: RestDriver) -> AsyncIterator[Found]:
    vets = (await driver.readers["vets"].page((), MOST_VETS, None)).records
    for kind in ("hours", "slots", "busy"):
        for number, rows in enumerate(getattr(driver.diary, kind)):
            if rows is None:
                continue
            errors = await _errors(core, driver, kind, number, [vet["id"] for vet in vets])
            if errors:
                found = _unanswered(core.document, ("diary", kind, number), "get", errors[0])
                certain = not found.only_sampled and len(errors) == len(vets)
                yield replace(found, only_sampled=not certain)


def _unanswered(document: Document, place: Place, method: str, error: AdapterError) -> Found:
    at = (*place, "items" if isinstance(error, NoArray) else method)
    return Found(
        document.problem(at, " ".join(str(error).split())), only_sampled=may_be_empty(error)
    )


async def _errors(
    core: Core, driver: RestDriver, kind: str, number: int, vets: list[str]
) -> list[AdapterError]:
    """What a source of the diary says of the vets' time, up to the first for whom it answers."""
    now, lasts = datetime.now(UTC), timedelta(hours=1)
    errors: list[AdapterError] = []
    for vet in vets:
        span = DiarySpan(Calendar(vet), Interval(now, now + lasts), lasts)

        async def ask(session: RestSession, span: DiarySpan = span) -> None:
            for calendar in await core.diary.calendars(session, span.calendar.vet):
                question = calendar if kind == "hours" else replace(span, calendar=calendar)
                await getattr(session, kind)(number, question)

        try:
            await driver.read(ask)
        except (BackendUnavailable, BackendTimeout):
            raise
        except AdapterError as error:
            errors.append(error)
        else:
            break
    return errors


@dataclass(frozen=True, slots=True)
class WrittenPath:
    """A path of the mapping: its place, what it is called, and the values it is asked of."""

    place: Place
    expression: str
    subject: str
    rows: list[Any]

    def complaints(self) -> Iterator[str]:
        """What is said where no value has what the path names; an expression has several parts."""
        steps = plain_steps(self.expression)
        if steps is not None:
            if text := _ends_early(steps, self.rows):
                yield f"no record of the backend has {text}: {self.expression} leads to nothing"
            return
        # an expression may do without what only some records have
        for head in heads(self.expression):
            if text := _ends_early(head, self.rows):
                missing = f"no record of the backend has {text}"
                yield f"{missing}: part of the expression leads to nothing"


def written_paths(name: str, resource: ResourceMap, raws: list[Any]) -> Iterator[WrittenPath]:
    """Each path of a resource, with the values that `raws`, its records, have for it."""
    place = ("resources", name)
    if resource.where:
        yield WrittenPath((*place, "where"), resource.where, f"{name}.where", raws)
    yield from _of(place, name, resource, raws)
    for inner, nested in resource.lists.items():
        at, subject, items = (*place, "lists", inner), f"{name}.{inner}", nested.items or "@"
        yield WrittenPath((*at, "items"), items, subject, raws)
        rows = [row for raw in raws for row in _items(items, raw)]
        yield from _of(at, subject, nested, rows)


def _of(
    place: Place, owner: str, part: ResourceMap | ListMap, rows: list[Any]
) -> Iterator[WrittenPath]:
    sources = {} if part.key is None else {(*place, "key"): part.key}
    sources |= {(*place, "fields", name): source for name, source in part.fields.items()}
    for at, source in sources.items():
        subject = f"{owner}.{at[-1]}"
        yield WrittenPath(at, source.text, subject, rows)
        if source.plus is not None:
            yield WrittenPath((*at, "plus"), source.plus, subject, rows)


def _items(items: str, raw: Any) -> list[Any]:
    try:
        rows = path(items)(raw)
    except Unreadable:
        return []
    return rows if isinstance(rows, list) else []


def _ends_early(steps: Steps, rows: list[Any]) -> str:
    """The name that every row lacks on that way, with near ones; "" where some row has it."""
    missing = [_missing(steps, row) for row in rows]
    return missing[0] if missing and all(missing) else ""


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
