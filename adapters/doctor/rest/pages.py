"""Whether lists can be gone through page by page, and how many calls a page of ours costs."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass

from adapters.doctor.case import CheckStep
from adapters.doctor.findings import rows
from adapters.doctor.rest.case import RestCase, looking, records
from adapters.documents.document import Place
from adapters.examination import Finding, Verdict
from adapters.mapping.models import Paging
from adapters.rest.backend import Answer, Ask, Params
from adapters.rest.paging import Pager
from adapters.rest.resource import ResourceCalls, RowList

# What a partner gets who names no limit.
USUAL = 50


@dataclass(frozen=True, slots=True)
class Asked:
    """A page that the backend gave: how it was asked for, and a mark for each row."""

    params: Params
    link: str | None
    marks: list[str]


def pages(case: RestCase) -> Iterator[CheckStep]:
    """One look at each list that was read."""
    for name, reader in case.looked_at():
        place = ("resources", name, "list", "page")
        yield CheckStep("pages", name, looking(_list, case, reader, place), place)


async def _list(case: RestCase, reader: ResourceCalls, place: Place) -> AsyncIterator[Finding]:
    call = case.core.mapping.resources[reader.name].list_
    listing = reader.listing()
    if call is None or listing is None:
        return
    bad = []
    if call.page is not None:
        asked = await _first_two(listing[0].pager, listing[1], call.page)
        bad = [*_wrong(case, reader.name, place, call.page, asked)]
        bad += [each async for each in _order(case, reader.name, listing, asked[0])]
    for each in bad:
        yield each
    if not bad:
        yield await _cost(case, reader)


async def _first_two(pager: Pager, ask: Ask, page: Paging) -> list[Asked]:
    """The first page, and the second where there is one."""
    asked: list[Asked] = []

    async def noted(params: Params, link: str | None) -> Answer:
        answer = await ask(params, link)
        asked.append(Asked(params, link, pager.marks(pager.rows(answer))))
        return answer

    async with aclosing(pager.batches(noted, None, page.most)) as batches:
        async for batch in batches:
            if batch.last or len(asked) > 1:
                break
    return asked[:2]


def _wrong(
    case: RestCase, name: str, place: Place, page: Paging, asked: list[Asked]
) -> Iterator[Finding]:
    first, second = asked[0].marks, asked[1].marks if len(asked) > 1 else []
    # by offset the second page begins with the row that was read last
    expected = set(first[-1:]) if page.by == "offset" else set()
    again = (set(first) & set(second)) - expected
    if again:
        known = page.offset or page.page or page.cursor or "next"
        text = f"{rows(len(again))} of the first page come again on the second"
        remedy = f"does the backend know {known}? and does it sort the rows?"
        yield case.failed("pages", name, text, (*place, "by"), remedy=remedy)
    size = page.limit or page.size
    wanted = dict(asked[0].params).get(size) if size else None
    if wanted is None:
        return
    if len(first) > wanted:
        text = f"a page has {len(first)} rows, though {wanted} were asked for"
        named = "limit" if page.limit else "size"
        yield case.warning("pages", name, text, (*place, named), remedy=f"does it know {size}?")
    elif len(first) < wanted and set(second) - set(first):
        text = f"a page has {len(first)} rows at the most, though {wanted} were asked for"
        # where a page begins is counted in pages of the size asked for
        verdict = Verdict.FAILED if page.by == "page" else Verdict.WARNING
        remedy = f"write most: {len(first)}"
        yield case.judged(verdict, "pages", name, text, (*place, "most"), remedy=remedy)


async def _order(
    case: RestCase, name: str, listing: tuple[RowList, Ask], first: Asked
) -> AsyncIterator[Finding]:
    pager = listing[0].pager
    again = pager.marks(pager.rows(await listing[1](first.params, first.link)))
    if again != first.marks:
        text = "the first page, asked for again, has other rows or another order"
        remedy = "is there a parameter that sorts? write it under `query`"
        place = ("resources", name, "list")
        yield case.warning("pages", name, text, place, remedy=remedy)


async def _cost(case: RestCase, reader: ResourceCalls) -> Finding:
    before, begun = len(case.client.seen), time.monotonic()
    page = await reader.page((), USUAL, None)
    calls, seconds = len(case.client.seen) - before, time.monotonic() - begun
    many = "1 call" if calls == 1 else f"{calls} calls"
    text = f"{records(len(page.records))} in {many}"
    place = ("resources", reader.name, "list")
    if seconds > case.patience / 2:
        text += f"; slow: backend.timeout is {case.patience:g} s"
        return case.warning("pages", reader.name, text, place, seconds=seconds)
    return case.ok("pages", reader.name, text, seconds=seconds)
