"""Asks the calls of a mapping once: whether they answer, and whether paths lead to anything."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from adapters.base import AdapterError, BackendTimeout, BackendUnavailable
from adapters.documents.document import Document, Place
from adapters.documents.problems import Found
from adapters.mapped.slots import Interval
from adapters.rest.availability import Asked
from adapters.rest.paging import NoArray, may_be_empty
from adapters.rest.parts import Parts
from adapters.rest.unfilled import written_paths

# One that answers is enough; the calendar of another may be missing.
MOST_VETS = 10


async def found_in(parts: Parts) -> AsyncIterator[Found]:
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
            method = "get" if resource.list_ is None else resource.list_.method
            yield _unanswered(document, (*place, "list"), method, error)
            continue
        for each in written_paths(name, resource, rows):
            for text in each.complaints():
                yield Found(document.problem(each.place, text), only_sampled=True)
    async for found in _diary(parts):
        yield found


def _unanswered(document: Document, place: Place, method: str, error: AdapterError) -> Found:
    at = (*place, "items" if isinstance(error, NoArray) else method)
    return Found(
        document.problem(at, " ".join(str(error).split())), only_sampled=may_be_empty(error)
    )


async def _diary(parts: Parts) -> AsyncIterator[Found]:
    vets = (await parts.readers["vets"].page((), MOST_VETS, None)).records
    now = datetime.now(UTC)
    window = Interval(now, now + timedelta(hours=1))
    asked = [Asked(each["id"], window, 60) for each in vets]
    for place, ask in parts.diary.sources():
        errors = await _errors(ask, asked)
        for error in errors[:1]:
            found = _unanswered(parts.document, place, "get", error)
            yield replace(found, only_sampled=found.only_sampled or len(errors) < len(asked))


async def _errors(
    ask: Callable[[Asked], Awaitable[object]], asked: Sequence[Asked]
) -> list[AdapterError]:
    """What the call says of the vets who are asked about before the first for whom it answers."""
    errors: list[AdapterError] = []
    for each in asked:
        try:
            await ask(each)
        except (BackendUnavailable, BackendTimeout):
            raise
        except AdapterError as error:
            errors.append(error)
        else:
            break
    return errors
