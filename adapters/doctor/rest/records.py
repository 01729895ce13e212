"""The records of a backend: what their values come to, their ids, and members never read."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import jmespath

from adapters.base import Record
from adapters.doctor import Omission
from adapters.doctor.case import CheckStep, counted
from adapters.doctor.rest.calls import RestCase
from adapters.doctor.values import FieldTally, fields_judged, is_time, unmapped
from adapters.examination import Finding
from adapters.mapping.models import ListMap, ResourceMap
from adapters.mapping.paths import plain_steps
from adapters.rest.adapter import RestAdapter
from adapters.rest.checks import written_paths
from adapters.rest.records import Fields
from adapters.rest.resource import ResourceCalls
from adapters.rest.session import RestSession
from adapters.values.convert import Unreadable

# Records in which members are looked for that no field is made of.
SAMPLE, MOST_NAMES, DEEPEST = 200, 60, 6
# Other names may be somebody's own, as keys of an object often are.
_NAME = re.compile(r"[^\W\d]\w{0,40}").fullmatch

# Rows, each with the public id to name it by.
Owned = list[tuple[str | None, Any]]


def paths(case: RestCase, _: RestSession) -> Iterator[Finding]:
    """Whether each path of the mapping leads to something in what the backend gives."""
    count, is_bad = 0, False
    for name, raws in case.raws.items():
        for written in written_paths(name, case.core.mapping.resources[name], raws):
            count += 1
            for text in written.complaints():
                is_bad = True
                yield case.warning("mapping", written.subject, text, written.place)
    if not is_bad:
        many = counted(sum(map(len, case.raws.values())), "record")
        yield case.ok("mapping", "paths", f"all {count} paths lead somewhere in {many}")


def values(case: RestCase) -> Iterator[CheckStep]:
    """One look at each resource."""
    for name in case.raws:
        run = partial(_resource, case, case.adapter.readers[name])
        yield CheckStep("values", name, run, ("resources", name))


def _resource(case: RestCase, reader: ResourceCalls, _: RestSession) -> Iterator[Finding]:
    name, place, every = reader.name, ("resources", reader.name), case.raws[reader.name]
    raws = [raw for raw in every if isinstance(raw, dict)]
    if odd := len(every) - len(raws):
        text = f"{counted(odd, 'record')} of {len(every):,} are no objects"
        yield case.failed("rows", name, text, (*place, "list", "items"))
        return
    owned = [(reader.id_of(raw), raw) for raw in raws if reader.maker.exists(raw)]
    if not owned:
        if raws:
            text = "0 records, though there are rows: is `where` right?"
            yield case.failed("rows", name, text, (*place, "where"))
        else:
            yield case.warning("rows", name, "0 records: the list is empty", (*place, "list"))
        return
    yield from _ids(case, reader, [shown for shown, _ in owned])
    judged = [*_fields(case, place, name, reader.maker.fields, owned), *_lists(case, reader, owned)]
    yield from judged
    names = dict.fromkeys(path.split("[].")[0] for path in case.adapter.options.shapes[name])
    mapped = [*reader.maker.fields.by_name, *(inner for inner, *_ in reader.maker.lists)]
    yield from unmapped(case, name, names, mapped)
    if not judged:
        yield case.ok("values", name, f"{counted(len(owned), 'record')}: every value is read")


def _fields(
    case: RestCase, place: tuple[str, ...], subject: str, fields: Fields, owned: Owned
) -> Iterator[Finding]:
    """Keeps the rows as records, each value counted; yields what is to be said of the values."""
    tallies = {
        name: FieldTally(found.read, found.plain, is_time(found.converter))
        for name, found in fields.by_name.items()
    }
    records = case.samples[subject] = []
    for shown, raw in owned:
        record: Record = dict(fields.blank)
        if fields.has_id:
            record["id"] = _id_in(fields, raw)
        for name, tally in tallies.items():
            record[name] = tally.take(raw, shown)
        records.append(record)
    yield from fields_judged(case, place, subject, tallies, len(owned))


def _id_in(fields: Fields, raw: Any) -> str | None:
    try:
        shown: str | None = None if fields.key is None else fields.key.read(raw)
    except Unreadable:
        return None
    return shown


def _lists(case: RestCase, reader: ResourceCalls, owned: Owned) -> Iterator[Finding]:
    """The lists inside the records."""
    for name, items, fields in reader.maker.lists:
        place, subject = ("resources", reader.name, "lists", name), f"{reader.name}.{name}"
        found: Owned = []
        broken = 0
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
            text = f"{counted(broken, 'row')} have something else than an array there"
            yield case.failed("values", subject, text, (*place, "items"))
        yield from _fields(case, place, subject, fields, found)
        if not found:
            text = "no record has any: is `items` right?"
            yield case.warning("rows", subject, text, (*place, "items"))


def _ids(case: RestCase, reader: ResourceCalls, ids: list[str | None]) -> Iterator[Finding]:
    place = ("resources", reader.name, "key")
    if lost := ids.count(None):
        text = f"{counted(lost, 'record')} of {len(ids):,} without a usable id:"
        text += " they are never shown"
        remedy = "see `source` and `match`; a long or composite key is written `as: hashed id`"
        yield case.failed("rows", reader.name, text, place, remedy=remedy)
    doubled = [shown for shown, many in Counter(ids).items() if shown is not None and many > 1]
    if doubled:
        text = f"{len(doubled)} of {len(set(ids)):,} ids occur more than once"
        remedy = "is it the record's own id? or the list gives rows again, from page to page"
        yield case.failed("rows", reader.name, text, place, remedy=remedy, ids=doubled)


async def omissions(adapter: RestAdapter) -> AsyncIterator[Omission]:
    """Members of the records of a sample of which no field is made; AdapterErrors."""
    for name, reader in adapter.readers.items():
        used = UsedPaths(adapter.core.mapping.resources[name])
        unused = dict.fromkeys(_unused(await reader.sample(SAMPLE), (), used))
        if unused:
            place = adapter.core.document.problem(("resources", name), "", at_key=True)
            yield Omission(name, f"the records of {name}", [*unused][:MOST_NAMES], place)


class UsedPaths:
    """The ways into a record by which fields are read.

    `ways` are the plain ones; of any other expression every name counts as used, wherever it is.
    """

    def __init__(self, resource: ResourceMap) -> None:
        self.ways: set[tuple[str, ...]] = set()
        self.names: set[str] = set()
        self._part(resource, ())
        for nested in resource.lists.values():
            self._part(nested, self._expression(nested.items or "@", ()))

    def _part(self, part: ResourceMap | ListMap, within: tuple[str, ...]) -> None:
        for source in (*part.fields.values(), *([part.key] if part.key else [])):
            for expression in (source.text, source.plus):
                if expression is not None:
                    self._expression(expression, within)

    def _expression(self, expression: str, within: tuple[str, ...]) -> tuple[str, ...]:
        """Takes note of it; returns the way, () for none."""
        steps = plain_steps(expression)
        if steps is None:
            self.names |= set(_names(jmespath.compile(expression).parsed))
            return ()
        way = (*within, *(step for step in steps if isinstance(step, str)))
        self.ways.add(way)
        return way

    def takes(self, way: tuple[str, ...]) -> bool:
        """Whether the whole of what stands there is read."""
        return way[-1] in self.names or any(way[: len(used)] == used for used in self.ways if used)

    def passes(self, way: tuple[str, ...]) -> bool:
        """Whether something inside of it is read."""
        return any(used[: len(way)] == way and len(used) > len(way) for used in self.ways)


def _names(node: Any) -> Iterator[str]:
    """All names in an expression."""
    if node["type"] == "field":
        yield node["value"]
    for child in node["children"]:
        yield from _names(child)


def _unused(value: Any, way: tuple[str, ...], used: UsedPaths) -> Iterator[str]:
    """The ways to what is not read, as far down as something beside it is."""
    if isinstance(value, list):
        for member in value:
            yield from _unused(member, way, used)
    if not isinstance(value, dict) or len(way) > DEEPEST:
        return
    for name, inner in value.items():
        here = (*way, name)
        if used.passes(here):
            yield from _unused(inner, here, used)
        elif not used.takes(here) and _NAME(name):
            yield ".".join(here)
