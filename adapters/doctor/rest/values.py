"""The values of records: what no converter or code table covers, ids, and what is never there."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from adapters.base import Record
from adapters.doctor.case import CheckStep
from adapters.doctor.findings import rows
from adapters.doctor.rest.case import RestCase, looking, records
from adapters.doctor.values import Tally, judged, unmapped
from adapters.examination import Finding
from adapters.rest.checks import written_paths
from adapters.rest.records import Fields
from adapters.rest.resource import ResourceCalls
from adapters.values.convert import Unreadable


def values(case: RestCase) -> Iterator[CheckStep]:
    """One look at each resource."""
    for name, reader in case.adapter.readers.items():
        if name in case.raws:
            run = looking(_resource, case, reader)
            yield CheckStep("values", name, run, ("resources", name))


async def _resource(case: RestCase, reader: ResourceCalls) -> AsyncIterator[Finding]:
    name, place = reader.name, ("resources", reader.name)
    raws = [each for each in case.raws[name] if isinstance(each, dict)]
    odd = len(case.raws[name]) - len(raws)
    if odd:
        text = f"{records(odd)} of {len(case.raws[name]):,} are no objects"
        yield case.failed("rows", name, text, (*place, "list", "items"))
        return
    known = [each for each in raws if reader.maker.exists(each)]
    if not known:
        yield _nothing(case, name, len(raws))
        return
    for each in _ids(case, reader, known):
        yield each
    tallies = {field: Tally() for field in reader.maker.fields.by_name}
    owned = [(reader.id_of(raw), raw) for raw in known]
    case.samples[name] = [*_read(reader.maker.fields, owned, tallies)]
    bad = [*_judged(case, place, name, tallies, len(known)), *_lists(case, reader, owned)]
    for each in bad:
        yield each
    for each in _unmapped(case, reader):
        yield each
    if not bad:
        yield case.ok("values", name, f"{records(len(known))}: every value is read")


def _judged(
    case: RestCase, place: tuple[str, ...], owner: str, tallies: dict[str, Tally], count: int
) -> Iterator[Finding]:
    for field, tally in tallies.items():
        yield from judged(case, place, owner, field, tally, count)


def _read(
    fields: Fields, owned: Iterable[tuple[str | None, Any]], tallies: dict[str, Tally]
) -> Iterator[Record]:
    """Rows as records, each value counted; with each row the public id to name it by."""
    for shown, raw in owned:
        record: Record = dict(fields.blank)
        if fields.has_id:
            record["id"] = _id_in(fields, raw)
        for name, each in fields.by_name.items():
            is_time = hasattr(each.converter, "zero")
            record[name] = tallies[name].take(
                each.read, raw, shown, is_time=is_time, raw=each.plain
            )
        yield record


def _id_in(fields: Fields, raw: Any) -> str | None:
    try:
        shown: str | None = None if fields.key is None else fields.key.read(raw)
    except Unreadable:
        return None
    return shown


def _lists(
    case: RestCase, reader: ResourceCalls, owned: list[tuple[str | None, Any]]
) -> Iterator[Finding]:
    """The lists inside the records."""
    for name, items, fields in reader.maker.lists:
        place, subject = ("resources", reader.name, "lists", name), f"{reader.name}.{name}"
        found, broken = [], 0
        for shown, raw in owned:
            try:
                inner = items(raw)
            except Unreadable:
                inner = False
            if isinstance(inner, list):
                found += [(shown, row) for row in inner]
            elif inner is not None:
                broken += 1
        if broken:
            text = f"{rows(broken)} have something else than an array there"
            yield case.failed("values", subject, text, (*place, "items"))
        tallies = {field: Tally() for field in fields.by_name}
        case.samples[subject] = [*_read(fields, found, tallies)]
        yield from _judged(case, place, subject, tallies, len(found))
        if not found:
            text = "no record has any: is `items` right?"
            yield case.warning("rows", subject, text, (*place, "items"))


def _ids(case: RestCase, reader: ResourceCalls, known: list[Any]) -> Iterator[Finding]:
    place = ("resources", reader.name, "key")
    shown = [reader.id_of(each) for each in known]
    lost = shown.count(None)
    if lost:
        text = f"{records(lost)} of {len(known):,} without a usable id: they are never shown"
        remedy = "see `source` and `match`; a long or composite key is written `as: hashed id`"
        yield case.failed("rows", reader.name, text, place, remedy=remedy)
    doubled = [each for each, many in Counter(shown).items() if each is not None and many > 1]
    if doubled:
        text = f"{len(doubled)} of {len(set(shown)):,} ids occur more than once"
        remedy = "is it the record's own id? or the list gives rows again, from page to page"
        yield case.failed("rows", reader.name, text, place, remedy=remedy, ids=doubled)


def _nothing(case: RestCase, name: str, count: int) -> Finding:
    if count:
        place, text = ("resources", name, "where"), "though there are rows: is `where` right?"
        return case.failed("rows", name, f"0 records, {text}", place)
    return case.warning("rows", name, "0 records: the list is empty", ("resources", name, "list"))


def _unmapped(case: RestCase, reader: ResourceCalls) -> Iterator[Finding]:
    shapes = case.shapes[reader.name]
    names = dict.fromkeys(each.split("[].")[0] for each in shapes)
    mapped = [*reader.maker.fields.by_name, *(each[0] for each in reader.maker.lists)]
    return unmapped(case, reader.name, names, mapped)


def paths(case: RestCase) -> Iterator[CheckStep]:
    """One look at whether each path of the mapping leads to something in what the backend gives."""
    yield CheckStep("mapping", "paths", lambda _: _paths(case))


def _paths(case: RestCase) -> Iterator[Finding]:
    count, bad = 0, 0
    for name, raws in case.raws.items():
        for written in written_paths(name, case.core.mapping.resources[name], raws):
            count += 1
            for text in written.complaints():
                bad += 1
                yield case.warning("mapping", written.subject, text, written.place)
    if not bad:
        many = records(sum(map(len, case.raws.values())))
        yield case.ok("mapping", "paths", f"all {count} paths lead somewhere in {many}")
