"""Ids inside records: whether they lead to a record. A few that are not known yet are asked for."""

from collections.abc import AsyncIterator, Iterator
from functools import partial

from adapters.base import NotFound
from adapters.doctor.links import Leads, led
from adapters.doctor.rest.case import Case, Step
from adapters.examination import Finding
from adapters.rest.reading import ResourceReader

# So many ids of one field cost a call each.
MOST_ASKED = 20


def links(case: Case) -> Iterator[Step]:
    """One look at each field that refers to a resource, of records and of lists inside them."""
    for resource, shapes in case.shapes.items():
        for path, shape in shapes.items():
            if shape.refers is None or shape.refers not in case.raws:
                continue
            owner, _, name = path.rpartition("[].")
            sample = f"{resource}.{owner}" if owner else resource
            inner = ("lists", owner) if owner else ()
            place = ("resources", resource, *inner, "fields", name)
            run = partial(_field, case, f"{sample}.{name}", shape.refers, place)
            yield Step("links", f"{sample}.{name}", run, place)


async def _field(
    case: Case, subject: str, target: str, place: tuple[str, ...]
) -> AsyncIterator[Finding]:
    sample, _, name = subject.rpartition(".")
    records = [each for each in case.samples.get(sample, ()) if each.get(name)]
    if not records:
        return
    reader = case.parts.readers[target]
    shown, hidden = _known(case, reader)
    unsure = dict.fromkeys(e for each in records if (e := each[name]) not in shown | hidden)
    gone = set(unsure)
    if target not in case.whole:
        asked = list(unsure)[:: max(1, len(unsure) // MOST_ASKED)][:MOST_ASKED]
        gone, more = await _lost(case, reader, asked)
        hidden |= more
        records = [each for each in records if each[name] not in unsure or each[name] in asked]
    if records:
        led_to_hidden = hidden & {each[name] for each in records}
        leads = Leads()
        leads.take(name, records, gone, led_to_hidden)
        yield led(case, subject, place, target, leads)


def _known(case: Case, reader: ResourceReader) -> tuple[set[str], set[str]]:
    """The public ids that were seen: of records, and of such as `where` hides."""
    shown = {each["id"] for each in case.samples.get(reader.name, ()) if each["id"]}
    all_ = {each for raw in case.raws[reader.name] if (each := reader.id_of(raw)) is not None}
    return shown, all_ - shown


async def _lost(case: Case, reader: ResourceReader, ids: list[str]) -> tuple[set[str], set[str]]:
    """Those that lead to nothing at all, and those that `where` hides."""
    gone, hidden = set(), set()
    await case.parts.keeper.learn_all(reader.name, ids)
    for each in ids:
        try:
            if case.parts.mapping.resources[reader.name].one is None:
                await reader.one(each)
            elif not reader.maker.exists(await reader.answer(each)):
                hidden.add(each)
        except NotFound:
            gone.add(each)
    return gone, hidden
