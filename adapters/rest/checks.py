"""Asks the calls of a mapping once: whether they answer, and whether paths lead to anything."""

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.base import AdapterError, BackendTimeout, BackendUnavailable
from adapters.document import Document, Place, Problem, did_you_mean
from adapters.rest.availability import Asked
from adapters.rest.diary import Diary
from adapters.rest.mapping import Found
from adapters.rest.mapping import Mapping as MappingFile
from adapters.rest.paging import NoArray
from adapters.rest.paths import plain_steps
from adapters.rest.reading import ResourceReader
from adapters.slots import Interval


async def problems_in(
    mapping: MappingFile, document: Document, readers: Mapping[str, ResourceReader], diary: Diary
) -> AsyncIterator[Problem]:
    """What the backend does not answer as the mapping says, each at its place in the file.

    A backend that does not answer at all is no problem of the mapping's: BackendUnavailable.
    """
    for name, resource in mapping.resources.items():
        place: Place = ("resources", name)
        try:
            rows = await readers[name].sample()
        except (BackendUnavailable, BackendTimeout):
            raise
        except AdapterError as error:
            inner = ("list", "items") if isinstance(error, NoArray) else ("list",)
            yield document.problem((*place, *inner), f"the backend says: {error}", at_key=True)
            continue
        wanted: dict[Place, Found] = {(*place, "key"): resource.key}
        wanted |= {(*place, "fields", field): each for field, each in resource.fields.items()}
        for problem in _lost(wanted, rows, document):
            yield problem
    async for problem in _diary(readers, document, diary):
        yield problem


def _lost(wanted: Mapping[Place, Found], rows: list[Any], document: Document) -> Iterator[Problem]:
    """The paths that end in the middle of every record: a name in them is not there at all."""
    for place, found in wanted.items():
        steps = plain_steps(found.path)
        if not rows or not steps:
            continue
        missing = [_missing(steps, row) for row in rows]
        if all(each is not None for each in missing):
            name, near = missing[0] or ("", "")
            text = f"no record of the backend has {name}{near}: {found.path} leads to nothing"
            yield document.problem(place, text)


def _missing(steps: tuple[str | int, ...], value: Any) -> tuple[str, str] | None:
    """The name that an object on the way lacks, and a near one; None where nothing is amiss."""
    for step in steps:
        if isinstance(step, int):
            if not isinstance(value, list) or not -len(value) <= step < len(value):
                return None
            value = value[step]
        elif not isinstance(value, dict):
            return None if value is None else (step, "")
        elif step not in value:
            return step, did_you_mean(step, value)
        else:
            value = value[step]
    return None


async def _diary(
    readers: Mapping[str, ResourceReader], document: Document, diary: Diary
) -> AsyncIterator[Problem]:
    vets = (await readers["vets"].page((), 1, None)).records
    if not vets:
        return
    now = datetime.now(UTC)
    asked = Asked(vets[0]["id"], Interval(now, now + timedelta(hours=1)), 60)
    for place, ask in diary.sources():
        try:
            await ask(asked)
        except (BackendUnavailable, BackendTimeout):
            raise
        except AdapterError as error:
            yield document.problem(place, f"the backend says: {error}")
