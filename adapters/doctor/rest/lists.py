"""Looks at the pages and filters of lists, as a partner would use them."""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import Any

from adapters.base import Filter, NotFound
from adapters.doctor.case import Look
from adapters.doctor.rest.case import RestCase
from adapters.examination import Verdict, counted
from adapters.mapping.checker import SEARCH
from adapters.mapping.models import FilterParameter, ListCall, Paging
from adapters.rest.backend import Answer, Ask, Params
from adapters.rest.paging import Pager
from adapters.rest.resource import NothingFits, ResourceCalls, fitting

# The rows of a page without a limit, and the rows that are enough to try a filter.
USUAL, FEW = 50, 10
_word = re.compile(r"[^\W_]{2,}").search


async def pages(reader: ResourceCalls, call: ListCall, case: RestCase, look: Look) -> None:
    if call.page is not None and (listing := reader.listing()):
        pager, ask = listing
        request, marks = await _first_two(pager, ask, call.page)
        _compared(look, call.page, request[0], *marks)
        if list(map(pager.mark, pager.rows(await ask(*request)))) != marks[0]:
            text = "the first page, asked for again, has other rows or another order"
            look.warning(text, remedy="is there a parameter that sorts? write it under `query`")
    if look.findings:
        return
    before, begun = len(case.client.seen), time.monotonic()
    page = await reader.page((), USUAL, None)
    calls, seconds = len(case.client.seen) - before, time.monotonic() - begun
    text = f"{counted(len(page.records), 'record')} in {counted(calls, 'call')}"
    if seconds <= case.patience / 2:
        look.ok(text, seconds=seconds)
    else:
        text += f"; slow: backend.timeout is {case.patience:g} s"
        look.warning(text, seconds=seconds)


async def _first_two(
    pager: Pager, ask: Ask, page: Paging
) -> tuple[tuple[Params, str | None], list[list[str]]]:
    """Returns how the first page is asked for, and the marks of its rows and of the second's."""
    requests: list[tuple[Params, str | None]] = []
    marks: list[list[str]] = []

    async def noted(params: Params, link: str | None) -> Answer:
        answer = await ask(params, link)
        requests.append((params, link))
        marks.append(list(map(pager.mark, pager.rows(answer))))
        return answer

    async with aclosing(pager.batches(noted, None, page.most)) as batches:
        async for batch in batches:
            if batch.last or len(marks) > 1:
                break
    return requests[0], marks[:2]


def _compared(
    look: Look, page: Paging, params: Params, first: list[str], second: Sequence[str] = ()
) -> None:
    """Tells of rows that come again on the second page, and of pages of another size."""
    # by offset, the second page begins with the last row of the first
    expected = set(first[-1:]) if page.by == "offset" else set()
    if again := (set(first) & set(second)) - expected:
        known = page.offset or page.page or page.cursor or "next"
        text = f"{counted(len(again), 'row')} of the first page come again on the second"
        remedy = f"does the backend know {known}? and does it sort the rows?"
        look.failed(text, "page", "by", remedy=remedy)
    size = page.limit or page.size
    limit = dict(params).get(size) if size else None
    if limit is None:
        return
    though = f"though {limit} were asked for"
    if len(first) > limit:
        text, name = f"a page has {len(first)} rows, {though}", "limit" if page.limit else "size"
        look.warning(text, "page", name, remedy=f"does it know {size}?")
    elif len(first) < limit and {*second} - {*first}:
        text = f"a page has {len(first)} rows at the most, {though}"
        # where a page begins is counted in pages of the size asked for
        verdict = Verdict.FAILED if page.by == "page" else Verdict.WARNING
        look.judge(verdict, text, "page", "most", remedy=f"write most: {len(first)}")


def filters(case: RestCase) -> Iterator[Look]:
    """Yields a look at each filter, and one at the fields that the gateway itself sifts."""
    for reader, call in case.looked_at():
        for field, by in call.filters.items():
            run, subject = partial(_filter, reader, field, by), f"{reader.name}.{field}"
            at = ("resources", reader.name, "list", "filters", field)
            yield case.look("filters", subject, run, *at)
        if call.sift:
            look = case.look("filters", reader.name)
            look.ok(f"sifted by the gateway: {', '.join(call.sift)}")
            yield look


async def _filter(
    reader: ResourceCalls, field: str, by: FilterParameter, case: RestCase, look: Look
) -> None:
    example = _example(case, reader.name, field, by)
    if example is None:
        look.ok("not tried: no record has a value for it")
        return
    try:
        rows = await _first(reader, [example])
    except (NothingFits, NotFound):
        return
    made = [record for row in await reader.joined(rows) if (record := reader.record(row, ()))]
    if fitting([example])(made):
        if (several := _several(case, reader.name, by)) and not await _first(reader, [several]):
            text = f"{by.query} finds nobody by two words, though a record has both"
            look.failed(text, remedy="write words: each, where each is a parameter, or words: one")
            return
        look.ok(f"the backend obeys {by.query}")
    elif rows == await _first(reader, ()):
        text = f"the backend does not obey {by.query}: the gateway goes through the whole list"
        look.warning(text, remedy="name the parameter that it knows, or move the field to `sift`")
    else:
        look.ok(f"the backend's idea of {by.query} is wider: the gateway sifts what comes")


async def _first(reader: ResourceCalls, filters: Sequence[Filter]) -> list[Any]:
    listing = reader.listing(filters)
    return [] if listing is None else await listing[0].first(listing[1], FEW)


def _several(case: RestCase, name: str, by: FilterParameter) -> Filter | None:
    """Returns a search by a word of each of two fields of one record; None where none has both."""
    fields = tuple(by.fields or ())
    for record in case.samples.get(name, []):
        words = [match[0] for field in fields if (match := _word(str(record[field] or "")))]
        if len(words) > 1:
            return Filter(SEARCH, fields, " ".join(words[:2]))
    return None


def _example(case: RestCase, name: str, field: str, by: FilterParameter) -> Filter | None:
    """Returns a filter that one of the records meets, and others hardly do."""
    records = case.samples.get(name, [])
    if field == SEARCH:
        fields = tuple(by.fields or ())
        texts = (str(record[key]) for record in reversed(records) for key in fields if record[key])
        word = next((match[0] for text in texts if (match := _word(text))), None)
        return None if word is None else Filter(SEARCH, fields, word)
    values = [record[field] for record in records if record[field] is not None]
    if not values:
        return None
    if case.adapter.options.shapes[name][field].format == "date-time":
        return Filter("since", (field,), datetime.fromisoformat(max(values)))
    return Filter("equals", (field,), values[-1])
