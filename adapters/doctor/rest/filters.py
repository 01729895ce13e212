"""What lists are filtered by: whether the backend obeys a parameter, or the gateway has to sift."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import datetime
from typing import Any

from adapters.base import Filter, NotFound, Record
from adapters.doctor.case import CheckStep
from adapters.doctor.rest.case import RestCase, looking
from adapters.examination import Finding
from adapters.mapping.checker import SEARCH
from adapters.mapping.models import FilterParameter
from adapters.rest.filters import NothingFits, fits
from adapters.rest.resource import ResourceCalls

FEW = 10
_word = re.compile(r"[^\W_]{2,}").search


def filters(case: RestCase) -> Iterator[CheckStep]:
    """One look at each parameter, and a word on what has none."""
    for name, reader in case.looked_at():
        call = case.core.mapping.resources[name].list_
        if call is None:
            continue
        for field, by in call.filters.items():
            place = ("resources", name, "list", "filters", field)
            run = looking(_filter, case, reader, field, by)
            yield CheckStep("filters", f"{name}.{field}", run, place)
        if call.sift:
            yield CheckStep("filters", name, looking(_sifted, case, name, call.sift))


async def _sifted(case: RestCase, name: str, fields: tuple[str, ...]) -> AsyncIterator[Finding]:
    yield case.ok("filters", name, f"sifted by the gateway: {', '.join(fields)}")


async def _filter(
    case: RestCase, reader: ResourceCalls, field: str, by: FilterParameter
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
    made = [each for row in found if (each := _made(reader, row)) is not None]
    if all(fits(each, [wanted]) for each in made):
        yield case.ok("filters", subject, f"the backend obeys {by.query}")
    elif found == await _first(reader, ()):
        text = f"the backend does not obey {by.query}: the gateway goes through the whole list"
        remedy = "name the parameter that it knows, or move the field to `sift`"
        yield case.warning("filters", subject, text, place, remedy=remedy)
    else:
        text = f"the backend's idea of {by.query} is wider: the gateway sifts what comes"
        yield case.ok("filters", subject, text)


async def _first(reader: ResourceCalls, wanted: Any) -> list[Any]:
    """The first rows that the backend gives for it."""
    listing = reader.listing(wanted)
    if listing is None:
        return []
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
    values = [each[field] for each in records if each[field] is not None]
    if not values:
        return None
    if case.shapes[name][field].format == "date-time":
        return Filter("since", (field,), datetime.fromisoformat(max(values)))
    return Filter("equals", (field,), values[-1])
