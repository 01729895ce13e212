"""Whether lists can be gone through page by page, and whether the backend obeys their filters."""

import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from adapters.base import Filter, NotFound, Record
from adapters.doctor.case import CheckStep, counted, told
from adapters.doctor.rest.calls import RestCase
from adapters.examination import Finding, Verdict
from adapters.mapping.checker import SEARCH
from adapters.mapping.models import FilterParameter, Paging
from adapters.rest.backend import Answer, Ask, Params
from adapters.rest.filters import NothingFits, fits
from adapters.rest.paging import Pager
from adapters.rest.resource import ResourceCalls
from adapters.rest.session import RestSession

# What a partner gets who names no limit, and rows that are enough to try a filter.
USUAL, FEW = 50, 10
_word = re.compile(r"[^\W_]{2,}").search


@dataclass(frozen=True, slots=True)
class PageGiven:
    """A page that the backend gave: how it was asked for, and a mark for each row."""

    params: Params
    link: str | None
    marks: list[str]


def pages(case: RestCase) -> Iterator[CheckStep]:
    """One look at each list that was read."""
    for name, reader in case.looked_at():
        place = ("resources", name, "list", "page")
        yield CheckStep("pages", name, partial(_list, case, reader), place)


async def _list(case: RestCase, reader: ResourceCalls, _: RestSession) -> AsyncIterator[Finding]:
    call, listing = case.core.mapping.resources[reader.name].list_, reader.listing()
    if call is None or listing is None:
        return
    bad = []
    if call.page is not None:
        pager, ask = listing[0].pager, listing[1]
        given = await _first_two(pager, ask, call.page)
        bad = [*_repeated(case, reader.name, call.page, given)]
        bad += _sized(case, reader.name, call.page, given)
        again = pager.marks(pager.rows(await ask(given[0].params, given[0].link)))
        if again != given[0].marks:
            text = "the first page, asked for again, has other rows or another order"
            remedy = "is there a parameter that sorts? write it under `query`"
            place = ("resources", reader.name, "list")
            bad.append(case.warning("pages", reader.name, text, place, remedy=remedy))
    for finding in bad:
        yield finding
    if not bad:
        yield await _cost(case, reader)


async def _first_two(pager: Pager, ask: Ask, page: Paging) -> list[PageGiven]:
    """The first page, and the second where there is one."""
    given: list[PageGiven] = []

    async def noted(params: Params, link: str | None) -> Answer:
        answer = await ask(params, link)
        given.append(PageGiven(params, link, pager.marks(pager.rows(answer))))
        return answer

    async with aclosing(pager.batches(noted, None, page.most)) as batches:
        async for batch in batches:
            if batch.last or len(given) > 1:
                break
    return given[:2]


def _repeated(case: RestCase, name: str, page: Paging, given: list[PageGiven]) -> Iterator[Finding]:
    first, second = given[0].marks, given[-1].marks if len(given) > 1 else []
    # by offset the second page begins with the row that was read last
    expected = set(first[-1:]) if page.by == "offset" else set()
    if again := (set(first) & set(second)) - expected:
        known = page.offset or page.page or page.cursor or "next"
        text = f"{counted(len(again), 'row')} of the first page come again on the second"
        remedy = f"does the backend know {known}? and does it sort the rows?"
        place = ("resources", name, "list", "page", "by")
        yield case.failed("pages", name, text, place, remedy=remedy)


def _sized(case: RestCase, name: str, page: Paging, given: list[PageGiven]) -> Iterator[Finding]:
    """Pages of another size than was asked for."""
    size, place = page.limit or page.size, ("resources", name, "list", "page")
    first, wanted = given[0].marks, dict(given[0].params).get(size) if size else None
    if wanted is None:
        return
    if len(first) > wanted:
        text = f"a page has {len(first)} rows, though {wanted} were asked for"
        at = (*place, "limit" if page.limit else "size")
        yield case.warning("pages", name, text, at, remedy=f"does it know {size}?")
    elif len(first) < wanted and {*given[-1].marks} - {*first}:
        text = f"a page has {len(first)} rows at the most, though {wanted} were asked for"
        # where a page begins is counted in pages of the size asked for
        verdict = Verdict.FAILED if page.by == "page" else Verdict.WARNING
        remedy = f"write most: {len(first)}"
        yield case.judged(verdict, "pages", name, text, (*place, "most"), remedy=remedy)


async def _cost(case: RestCase, reader: ResourceCalls) -> Finding:
    """How many calls a page of ours costs."""
    before, begun = len(case.client.seen), time.monotonic()
    page = await reader.page((), USUAL, None)
    calls, seconds = len(case.client.seen) - before, time.monotonic() - begun
    text = f"{counted(len(page.records), 'record')} in {counted(calls, 'call')}"
    if seconds <= case.patience / 2:
        return case.ok("pages", reader.name, text, seconds=seconds)
    text += f"; slow: backend.timeout is {case.patience:g} s"
    place = ("resources", reader.name, "list")
    return case.warning("pages", reader.name, text, place, seconds=seconds)


def filters(case: RestCase) -> Iterator[CheckStep]:
    """One look at each parameter, and a word on what has none."""
    for name, reader in case.looked_at():
        call = case.core.mapping.resources[name].list_
        if call is None:
            continue
        for field, by in call.filters.items():
            place = ("resources", name, "list", "filters", field)
            run = partial(_filter, case, reader, field, by)
            yield CheckStep("filters", f"{name}.{field}", run, place)
        if call.sift:
            text = f"sifted by the gateway: {', '.join(call.sift)}"
            yield told(case.ok("filters", name, text))


async def _filter(
    case: RestCase, reader: ResourceCalls, field: str, by: FilterParameter, _: RestSession
) -> AsyncIterator[Finding]:
    subject, place = f"{reader.name}.{field}", ("resources", reader.name, "list", "filters", field)
    wanted = _wanted(case, reader.name, field, by)
    if wanted is None:
        yield case.ok("filters", subject, "not tried: no record has a value for it")
        return
    try:
        found = await _first(reader, [wanted])
    except (NothingFits, NotFound):
        return
    made = [record for row in found if (record := _made(reader, row)) is not None]
    if all(fits(record, [wanted]) for record in made):
        yield case.ok("filters", subject, f"the backend obeys {by.query}")
    elif found == await _first(reader, ()):
        text = f"the backend does not obey {by.query}: the gateway goes through the whole list"
        remedy = "name the parameter that it knows, or move the field to `sift`"
        yield case.warning("filters", subject, text, place, remedy=remedy)
    else:
        text = f"the backend's idea of {by.query} is wider: the gateway sifts what comes"
        yield case.ok("filters", subject, text)


async def _first(reader: ResourceCalls, wanted: Sequence[Filter]) -> list[Any]:
    """The first rows that the backend gives for it."""
    if listing := reader.listing(wanted):
        async with aclosing(listing[0].pager.batches(listing[1], None, FEW)) as batches:
            async for batch in batches:
                return list(batch.rows)
    return []


def _made(reader: ResourceCalls, row: Any) -> Record | None:
    try:
        return reader.made(row)
    except NotFound:
        return None


def _wanted(case: RestCase, name: str, field: str, by: FilterParameter) -> Filter | None:
    """A filter that one of the records fulfils, and others hardly do."""
    records = case.samples.get(name, [])
    if field == SEARCH:
        fields = tuple(by.fields or ())
        texts = (str(each[one]) for each in reversed(records) for one in fields if each[one])
        word = next((found[0] for text in texts if (found := _word(text))), None)
        return None if word is None else Filter(SEARCH, fields, word)
    values = [record[field] for record in records if record[field] is not None]
    if not values:
        return None
    if case.adapter.options.shapes[name][field].format == "date-time":
        return Filter("since", (field,), datetime.fromisoformat(max(values)))
    return Filter("equals", (field,), values[-1])
