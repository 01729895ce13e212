"""Asks the calls of a mapping once: whether they answer, and whether paths lead to anything."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.base import AdapterError, BackendTimeout, BackendUnavailable
from adapters.document import Document, Place
from adapters.problems import Problem, did_you_mean
from adapters.rest.availability import Asked
from adapters.rest.diary import Diary
from adapters.rest.mapping import Found
from adapters.rest.paging import NoArray
from adapters.rest.parts import Parts
from adapters.rest.paths import Steps, plain_steps
from adapters.rest.reading import ResourceReader
from adapters.slots import Interval


async def problems_in(parts: Parts) -> AsyncIterator[Problem]:
    """What the backend does not answer as the mapping says, each at its place in the file.

    A backend that does not answer at all is no problem of the mapping's: BackendUnavailable.
    """
    document, readers = parts.document, parts.readers
    for name, resource in parts.mapping.resources.items():
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
        for at, found in wanted.items():
            if text := leads_nowhere(found.path, rows):
                yield document.problem(at, text)
    async for problem in _diary(readers, document, parts.diary):
        yield problem


def leads_nowhere(expression: str, rows: list[Any]) -> str:
    """What is said of a plain path that ends in the middle of every row; "" of any other."""
    steps = plain_steps(expression)
    text = ends_early(steps, rows) if steps else ""
    return f"no record of the backend has {text}: {expression} leads to nothing" if text else ""


def ends_early(steps: Steps, rows: list[Any]) -> str:
    """The name that every row lacks on that way, with near ones; "" where some row has it."""
    missing = [_missing(steps, row) for row in rows]
    if not missing or not all(each is not None for each in missing):
        return ""
    return "".join(missing[0] or ())


def _missing(steps: Steps, value: Any) -> tuple[str, str] | None:
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
