"""What lists give: paths that lead nowhere, members left out, pages, and filters obeyed."""

import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import jmespath

from adapters.base import Filter, NotFound
from adapters.doctor import left_out
from adapters.doctor.case import Look, counted
from adapters.doctor.rest.calls import RestCase
from adapters.examination import LeftOut, Verdict
from adapters.mapping.checker import SEARCH
from adapters.mapping.models import FilterParameter, ListCall, Paging, ResourceMap
from adapters.mapping.paths import plain_steps
from adapters.rest.adapter import RestAdapter, written_paths
from adapters.rest.backend import Answer, Ask, Params
from adapters.rest.paging import Pager
from adapters.rest.resource import NothingFits, ResourceCalls, fits
from adapters.rest.session import RestSession

# What a partner gets who names no limit, and rows that are enough to try a filter.
USUAL, FEW = 50, 10
_word = re.compile(r"[^\W_]{2,}").search
# Records in which members are looked for that no field is made of.
SAMPLE, MOST_NAMES, DEEPEST = 200, 60, 6
# Other names may be somebody's own, as keys of an object often are.
_NAME = re.compile(r"[^\W\d]\w{0,40}").fullmatch
# A way into a record, by the names of members.
Way = tuple[str, ...]


async def paths(case: RestCase, look: Look, _: RestSession) -> None:
    """Whether each path of the mapping leads to something in what the backend gives."""
    count = 0
    for name, raws in case.raws.items():
        for written in written_paths(name, case.core.mapping.resources[name], raws):
            count += 1
            for text in written.complaints():
                look.warning(text, place=written.place, subject=written.subject)
    if not look.findings:
        many = counted(sum(map(len, case.raws.values())), "record")
        look.ok(f"all {count} paths lead somewhere in {many}")


async def omissions(adapter: RestAdapter) -> AsyncIterator[LeftOut]:
    """Members of the records of a sample of which no field is made; AdapterErrors."""
    for name, reader in adapter.readers.items():
        ways, names = _read_in(name, adapter.core.mapping.resources[name])
        rows = await reader.sample(SAMPLE)
        if unused := dict.fromkeys(_unused(rows, (), ways, names)):
            source = f"the records of {name}"
            yield left_out(adapter.core, source, [*unused][:MOST_NAMES], "resources", name)


def _read_in(name: str, resource: ResourceMap) -> tuple[set[Way], set[str]]:
    """The plain ways by which fields are read, and every name in any other expression."""
    ways, names = set[Way](), set[str]()
    for place, expression, _, _ in written_paths(name, resource, []):
        _, _, part, *inner = place
        if part == "where":
            continue
        steps, within = plain_steps(expression), None
        if part == "lists" and inner[1:] != ["items"]:
            within = plain_steps(resource.lists[str(inner[0])].items or "@")
        if steps is None:
            names.update(_names(jmespath.compile(expression).parsed))
        else:
            ways.add(tuple(step for step in (*(within or ()), *steps) if isinstance(step, str)))
    return ways - {()}, names


def _names(node: Any) -> Iterator[str]:
    if node["type"] == "field":
        yield node["value"]
    for child in node["children"]:
        yield from _names(child)


def _unused(value: Any, way: Way, ways: set[Way], names: set[str]) -> Iterator[str]:
    """The ways to what is not read, as far down as something beside it is."""
    if isinstance(value, list):
        for member in value:
            yield from _unused(member, way, ways, names)
    if not isinstance(value, dict) or len(way) > DEEPEST:
        return
    for name, inner in value.items():
        here = (*way, name)
        if any(used[: len(here)] == here and used != here for used in ways):
            yield from _unused(inner, here, ways, names)
            continue
        is_read = name in names or any(here[: len(used)] == used for used in ways)
        if not is_read and _NAME(name):
            yield ".".join(here)


class PageGiven(NamedTuple):
    """A page that the backend gave: how it was asked for, and a mark for each row."""

    params: Params
    link: str | None
    marks: list[str]


def pages(case: RestCase) -> Iterator[Look]:
    for reader, call in case.looked_at():
        run = partial(_list, reader, call)
        yield case.look("pages", reader.name, run, "resources", reader.name, "list")


async def _list(
    reader: ResourceCalls, call: ListCall, case: RestCase, look: Look, _: RestSession
) -> None:
    if call.page is not None and (listing := reader.listing()):
        pager, ask = listing
        first, *second = await _first_two(pager, ask, call.page)
        _compared(look, call.page, first, second[0].marks if second else [])
        if pager.marks(pager.rows(await ask(first.params, first.link))) != first.marks:
            text = "the first page, asked for again, has other rows or another order"
            remedy = "is there a parameter that sorts? write it under `query`"
            look.warning(text, remedy=remedy)
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


def _compared(look: Look, page: Paging, given: PageGiven, second: list[str]) -> None:
    """Tells of rows that come again on the second page, and of pages of another size."""
    first = given.marks
    # by offset the second page begins with the row that was read last
    expected = set(first[-1:]) if page.by == "offset" else set()
    if again := (set(first) & set(second)) - expected:
        known = page.offset or page.page or page.cursor or "next"
        text = f"{counted(len(again), 'row')} of the first page come again on the second"
        remedy = f"does the backend know {known}? and does it sort the rows?"
        look.failed(text, "page", "by", remedy=remedy)
    size = page.limit or page.size
    wanted = dict(given.params).get(size) if size else None
    if wanted is not None and len(first) > wanted:
        text = f"a page has {len(first)} rows, though {wanted} were asked for"
        look.warning(
            text, "page", "limit" if page.limit else "size", remedy=f"does it know {size}?"
        )
    elif wanted is not None and len(first) < wanted and {*(second or first)} - {*first}:
        text = f"a page has {len(first)} rows at the most, though {wanted} were asked for"
        # where a page begins is counted in pages of the size asked for
        verdict = Verdict.FAILED if page.by == "page" else Verdict.WARNING
        look.judge(verdict, text, "page", "most", remedy=f"write most: {len(first)}")


def filters(case: RestCase) -> Iterator[Look]:
    """One look at each parameter, and a word on what has none."""
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
    reader: ResourceCalls,
    field: str,
    by: FilterParameter,
    case: RestCase,
    look: Look,
    _: RestSession,
) -> None:
    wanted = _wanted(case, reader.name, field, by)
    if wanted is None:
        look.ok("not tried: no record has a value for it")
        return
    try:
        found = await _first(reader, [wanted])
    except (NothingFits, NotFound):
        return
    made = [record for row in found if (record := reader.record(row, ()))]
    if all(fits(record, [wanted]) for record in made):
        look.ok(f"the backend obeys {by.query}")
    elif found == await _first(reader, ()):
        text = f"the backend does not obey {by.query}: the gateway goes through the whole list"
        remedy = "name the parameter that it knows, or move the field to `sift`"
        look.warning(text, remedy=remedy)
    else:
        look.ok(f"the backend's idea of {by.query} is wider: the gateway sifts what comes")


async def _first(reader: ResourceCalls, wanted: Sequence[Filter]) -> list[Any]:
    listing = reader.listing(wanted)
    return [] if listing is None else await listing[0].first(listing[1], FEW)


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
