"""Whether each call that reads a resource answers, and the records that the other looks need."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from adapters.base import AdapterError
from adapters.doctor.case import CheckStep
from adapters.doctor.findings import short
from adapters.doctor.rest.case import RestCase, looking, records
from adapters.documents.document import Place
from adapters.examination import Finding
from adapters.mapping.models import ListCall
from adapters.rest.paging import NoArray, may_be_empty
from adapters.rest.resource import ResourceCalls

# Records looked at where all are asked for, and where each costs a call.
ALL, DETAILED = 20_000, 60
READ_AGAIN = 3


def answers(case: RestCase) -> Iterator[CheckStep]:
    """One look at each resource."""
    for name, reader in case.adapter.readers.items():
        place = ("resources", name)
        yield CheckStep("calls", name, looking(_resource, case, reader), place)


async def _resource(case: RestCase, reader: ResourceCalls) -> AsyncIterator[Finding]:
    call = case.core.mapping.resources[reader.name].list_
    if call is None or reader.listing() is None:
        text = "no list without an id: its values were not looked at"
        yield case.warning("calls", reader.name, text, ("resources", reader.name))
        return
    try:
        raws = await reader.sample(_most(case, call))
    except AdapterError as error:
        yield _unanswered(case, reader, call, error)
        return
    case.raws[reader.name] = raws
    if len(raws) < _most(case, call):
        case.whole.add(reader.name)
    count = f"{call.method.upper()} {call.path} answers: {records(len(raws))}"
    if reader.name not in case.whole:
        count += ", the first ones"
    yield case.ok("calls", reader.name, count)
    if case.core.mapping.resources[reader.name].one is not None:
        async for each in _one(case, reader, raws):
            yield each


def _most(case: RestCase, call: ListCall) -> int:
    most = ALL if case.examination.rows is None else case.examination.rows
    return min(most, DETAILED) if call.details else most


def _unanswered(
    case: RestCase, reader: ResourceCalls, call: ListCall, error: AdapterError
) -> Finding:
    place: Place = ("resources", reader.name, "list")
    if isinstance(error, NoArray):
        remedy = f"near: {', '.join(error.near)}" if error.near else ""
        judged = case.warning if may_be_empty(error) else case.failed
        return judged("calls", reader.name, short(error), (*place, "items"), remedy=remedy)
    return case.failed("calls", reader.name, short(error), (*place, call.method))


async def _one(case: RestCase, reader: ResourceCalls, raws: list[Any]) -> AsyncIterator[Finding]:
    """Some records of the list, read again by their ids."""
    one = case.core.mapping.resources[reader.name].one
    if one is None:
        return
    shown = [each for each in (reader.id_of(raw) for raw in raws) if each is not None]
    place, label = ("resources", reader.name, "one", one.method), f"{one.method.upper()} {one.path}"
    for each in shown[:READ_AGAIN]:
        try:
            await reader.answer(each)
        except AdapterError as error:
            text = f"{short(error)}, for a record of its own list"
            yield case.failed("calls", reader.name, text, place, ids=[each])
            return
    if shown:
        yield case.ok("calls", reader.name, f"{label} answers")
