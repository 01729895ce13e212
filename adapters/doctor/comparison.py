"""Compares one record, as it is served, with its row: finds it, its fields and its links."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from importlib import import_module
from typing import Any

from adapters.base import Adapter, AdapterError, BackendNonsense, NotFound, Query, Record
from adapters.doctor import mapped_by
from adapters.doctor.labels import Names, by_words, own_name
from adapters.doctor.trail import Found, Trail, ids_in, trails
from adapters.examination import short
from adapters.ids.table import NativeIds
from adapters.mapped.adapter import MappedAdapter
from adapters.values.convert import Unreadable

# What finds the row of a record, by the module of the mapped adapter.
FINDERS = {
    "adapters.sql.adapter": ("adapters.doctor.sql.finder", "SqlFinder"),
    "adapters.rest.adapter": ("adapters.doctor.rest.finder", "RestFinder"),
}
# The most records that words list, and the most links that are followed.
MOST_FOUND, MOST_LINKS = 20, 40


class Unfound(Exception):
    """Raised for what names no record; the text says why, and what to do."""


class Several(Unfound):
    """Raised for words that fit several records, which `matches` lists: public id and name."""

    def __init__(self, text: str, matches: Sequence[tuple[str, str]]) -> None:
        super().__init__(text)
        self.matches = tuple(matches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A record beside its row.

    `record` is what is served whole; None where nothing is, for the reason in `unserved`. `key` is
    the practice's own. `asked` are the statements or calls that read it.
    """

    resource: str
    id: str
    key: Any
    name: str
    record: Record | None
    unserved: str
    fields: tuple[Trail, ...]
    row: Mapping[str, Any]
    asked: tuple[str, ...]


class Finder(ABC):
    """Asks the practice system for single rows, and keeps what it asked in `asked`.

    `adapter` is one of its own, which the caller closes. `why` says why the last row was not found,
    where that is known.
    """

    adapter: MappedAdapter

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.why = ""

    @abstractmethod
    async def found(self, resource: str, public_id: str) -> Found | None:
        """Returns the row with that id, also one that is hidden; None where there is none."""


def finder_of(adapter: Adapter) -> Finder | None:
    """Returns what finds the rows of an adapter; None where no mapping says how it reads."""
    module, name = FINDERS.get(mapped_by(adapter), ("", ""))
    if not module:
        return None
    made: Finder = getattr(import_module(module), name)(adapter)
    return made


async def compared(finder: Finder, resource: str, word: str, now: datetime) -> Comparison:
    """Returns the comparison of the record that the word names: an id, a key, or some words.

    Raises Unfound, Several, or an AdapterError where the practice system does not answer.
    """
    adapter = finder.adapter
    public_id, found = await _named(finder, resource, word, now)
    finder.asked.clear()
    again = await finder.found(resource, public_id)
    asked, found = tuple(dict.fromkeys(finder.asked)), again or found
    record, unserved = None, found.hidden
    try:
        query = Query(resource=resource, now=now, id=public_id)
        record = dict(await adapter.read_one(query))
        unserved = ""
    except NotFound:
        unserved = unserved or "it is not found by its id, though the row is there"
    except AdapterError as error:
        unserved = f"{unserved}; {short(error)}" if unserved else short(error)
    reader = adapter.readers[resource]
    made = trails(adapter.document, resource, reader.rows, found)
    if record is not None:
        made = [_as_served(trail, record) for trail in made]
    values = {trail.field: trail.value for trail in made}
    fields = await _with_links(finder, made, now)
    own = next((trail.raw for trail in made if trail.field == "id"), None)
    return Comparison(
        resource=resource,
        id=public_id,
        key=own,
        name=own_name(resource, record or values),
        record=record,
        unserved=unserved,
        fields=tuple(fields),
        row=found.whole,
        asked=asked,
    )


def _as_served(trail: Trail, record: Record) -> Trail:
    """Returns the trail with the value that is served; it is another for a time as booked."""
    if "[" in trail.field:
        return trail
    served = record.get(trail.field)
    if served == trail.value:
        return trail
    note = f"the row reads as {trail.value}: the gateway keeps when it was booked"
    if trail.field not in ("scheduledAt", "endTime"):
        note = f"the row reads as {trail.value}: it changed meanwhile, or is read in another way"
    return replace(trail, value=served, note=note)


async def _named(finder: Finder, resource: str, word: str, now: datetime) -> tuple[str, Found]:
    """Returns the public id that the word means, and its row. Raises Unfound or Several."""
    word = word.strip()
    if not word:
        raise Unfound("an empty word names nothing: write a public id, a key, or a few words")
    why = ""
    if is_public(word):
        await finder.adapter.learn(resource, [word])
        if found := await _row(finder, resource, word):
            return word, found
        why = finder.why
    keyed = _of_key(finder, resource, word)
    found = None if keyed is None else await _row(finder, resource, keyed)
    why = why or finder.why
    if is_public(word):
        if keyed is not None and found is not None:
            return keyed, found
        raise Unfound(await _unknown_id(finder, resource, word, why))
    return await _of_words(finder, resource, word, now, (keyed, found, why))


async def _unknown_id(finder: Finder, resource: str, word: str, why: str) -> str:
    if why:
        return f"{word} names no record of {resource}: {why}"
    if other := await _elsewhere(finder, resource, word):
        return f"{word} is an id of {other}, not of {resource}"
    return f"no row of {resource} has that id; `clinic-gateway sample {resource}` lists some"


async def _of_words(
    finder: Finder,
    resource: str,
    word: str,
    now: datetime,
    by_key: tuple[str | None, Found | None, str],
) -> tuple[str, Found]:
    """Returns what the key or the words find; `by_key` is what the word finds as a key, and why."""
    keyed, found, why = by_key
    adapter, reason, matches = finder.adapter, "", list[Record]()
    try:
        mapped = adapter.readers[resource].rows.by_name
        records = await by_words(adapter, resource, word, mapped, MOST_FOUND + 1, now)
        matches = [record for record in records if record.get("id") != keyed]
    except BackendNonsense as error:
        reason = f"; it could not be looked for by words: {short(error)}"
    exact = [it for it in matches if own_name(resource, it).casefold() == word.casefold()]
    if keyed is not None and found is not None and not exact:
        return keyed, found
    chosen = exact or matches
    if found is None and len(chosen) == 1:
        public_id = str(chosen[0]["id"])
        if found := await _row(finder, resource, public_id):
            return public_id, found
    if matches:
        also = keyed if found else None
        raise Several(*await _several(finder, resource, word, also, chosen, now))
    if why:
        raise Unfound(f"{word} names no record of {resource}: {why}")
    raise Unfound(f"no record of {resource} has the key {word}, or is found by that{reason}")


async def _several(
    finder: Finder,
    resource: str,
    word: str,
    keyed: str | None,
    matches: Sequence[Record],
    now: datetime,
) -> tuple[str, list[tuple[str, str]]]:
    """Returns what is said of several matches, and each with its name."""
    names, listed = Names(finder.adapter, now), list[tuple[str, str]]()
    if keyed is not None:
        listed.append((keyed, f"has the key {word}"))
    for record in matches[:MOST_FOUND]:
        listed.append((str(record["id"]), await names.of(resource, record)))
    more = ", the first of them are" if len(matches) > MOST_FOUND else ""
    return f"{word} fits several of {resource}; choose one by its id{more}:", listed


def is_public(word: str) -> bool:
    """Returns whether a word looks like a public id."""
    parts = word.split("-")
    return [len(part) for part in parts] == [8, 4, 4, 4, 12] and all(
        set(part) <= set("0123456789abcdef") for part in parts
    )


def _of_key(finder: Finder, resource: str, word: str) -> str | None:
    """Returns the public id of the practice's own key; the columns of one are parted by a slash."""
    reader = finder.adapter.readers[resource]
    key = reader.rows.mapped.key
    width = len(key.source) if key is not None else 1
    raw: Any = word if width == 1 else tuple(word.split("/"))
    if width > 1 and len(raw) != width:
        return None
    with suppress(Unreadable):
        return reader.rows.ids.shown(raw)
    return None


async def _row(finder: Finder, resource: str, public_id: str) -> Found | None:
    finder.why = ""
    try:
        return await finder.found(resource, public_id)
    except NotFound:
        return None


async def _elsewhere(finder: Finder, resource: str, public_id: str) -> str:
    """Returns the resource that an id is of; "" where no other one has it."""
    for other, reader in finder.adapter.readers.items():
        if other == resource:
            continue
        await finder.adapter.learn(other, [public_id])
        if not reader.rows.ids.keys(public_id):
            continue
        # any UUID may be such an id: only a row proves it
        if not isinstance(reader.rows.ids, NativeIds) or await _row(finder, other, public_id):
            return other
    return ""


async def _with_links(finder: Finder, made: Sequence[Trail], now: datetime) -> list[Trail]:
    """Returns the trails, each reference with the name that it leads to, or why to none."""
    told: dict[tuple[str, str], str] = {}
    for target, ids in ids_in(made).items():
        for public_id in sorted(ids):
            if len(told) >= MOST_LINKS:
                told[target, public_id] = ""
                continue
            told[target, public_id] = await _leads(finder, target, public_id, now)
    return [
        replace(trail, leads=told.get((trail.refers, str(trail.value)), ""))
        if trail.refers and trail.value
        else trail
        for trail in made
    ]


async def _leads(finder: Finder, target: str, public_id: str, now: datetime) -> str:
    adapter = finder.adapter
    if target not in adapter.readers:
        return f"{target} is not in the mapping"
    try:
        await adapter.learn(target, [public_id])
        record = await adapter.read_one(Query(resource=target, now=now, id=public_id))
        return own_name(target, record) or f"a record of {target} without a name"
    except NotFound:
        pass
    except AdapterError as error:
        return f"could not be followed: {short(error)}"
    try:
        found = await _row(finder, target, public_id)
    except AdapterError as error:
        return f"could not be followed: {short(error)}"
    if found is None:
        why = finder.why or f"no row of {target} has that key"
        return f"leads nowhere: {why}"
    return f"leads to a hidden record of {target}: {found.hidden or 'it is not served'}"
