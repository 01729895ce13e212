"""Asks the calls of a mapping once: whether they answer, and whether paths lead to anything."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from adapters.base import AdapterError, BackendTimeout, BackendUnavailable
from adapters.documents.document import Document, Place
from adapters.documents.problems import Found
from adapters.mapped.adapter import Core
from adapters.mapped.session import Calendar, DiarySpan
from adapters.mapped.slots import Interval
from adapters.rest.paging import NoArray, may_be_empty
from adapters.rest.session import RestDriver, RestSession
from adapters.rest.unfilled import written_paths

# One that answers is enough; the calendar of another may be missing.
MOST_VETS = 10


async def found_in(core: Core, driver: RestDriver) -> AsyncIterator[Found]:
    """What the backend does not answer as the mapping says, each at its place in the file.

    A backend that does not answer at all is no problem of the mapping's: BackendUnavailable.
    """
    document, readers = core.document, driver.plan.readers
    for name, resource in core.mapping.resources.items():
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
    async for found in _diary(core, driver):
        yield found


def _unanswered(document: Document, place: Place, method: str, error: AdapterError) -> Found:
    at = (*place, "items" if isinstance(error, NoArray) else method)
    return Found(
        document.problem(at, " ".join(str(error).split())), only_sampled=may_be_empty(error)
    )


async def _diary(core: Core, driver: RestDriver) -> AsyncIterator[Found]:
    vets = (await driver.plan.readers["vets"].page((), MOST_VETS, None)).records
    now = datetime.now(UTC)
    window, lasts = Interval(now, now + timedelta(hours=1)), timedelta(hours=1)
    for kind in ("hours", "slots", "busy"):
        for number, rows in enumerate(getattr(driver.plan.diary, kind)):
            errors: list[AdapterError] = []
            for vet in vets if rows is not None else ():
                span = DiarySpan(Calendar(vet["id"]), window, lasts)
                error = await _error(core, driver, kind, number, span)
                if error is None:
                    break
                errors.append(error)
            for error in errors[:1]:
                place = ("diary", kind, number)
                found = _unanswered(core.document, place, "get", error)
                certain = not found.only_sampled and len(errors) == len(vets)
                yield replace(found, only_sampled=not certain)


async def _error(
    core: Core, driver: RestDriver, kind: str, number: int, span: DiarySpan
) -> AdapterError | None:
    """What the source of the diary says of a vet's time; None where it answers."""

    async def ask(session: RestSession) -> None:
        for calendar in await core.diary.calendars(session, span.calendar.vet):
            asked = getattr(session, kind)
            await asked(number, calendar if kind == "hours" else replace(span, calendar=calendar))

    try:
        await driver.read(ask)
    except (BackendUnavailable, BackendTimeout):
        raise
    except AdapterError as error:
        return error
    return None
