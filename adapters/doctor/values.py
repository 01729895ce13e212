"""Judges the values of records: unreadable ones, unknown codes, lost ids."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from adapters.base import Record
from adapters.doctor.case import KEY, PARENT, DoctorCase, LawLook, Look, RowTaken
from adapters.examination import MOST_IDS, Verdict, agreeing, counted, weighed
from adapters.mapped.generated import RowValue
from adapters.values.convert import UnknownCode, Unreadable, plain
from adapters.values.times import ZERO_DATES

# The share of ids that may lead nowhere; with more, they are ids of something else.
TOLERABLE_LEADS = 0.5
# So many fields that lead to hidden records are all right, and the condition is not.
FEW_FIELDS = 2
# So many ids that all lead to hidden records are no accident.
FEW_LEADS = 3
# The share of a list's rows that may lack their record by accident.
ORPHANS = 0.2
LONGEST_CODE, LONGEST_KEY = 20, 60
# Among so many rows some should have a value.
ENOUGH = 20
MOST_CODES = 20
BEFORE = "1902"
# What old programs write for no date.
PLACEHOLDERS = ("0001-01-01", "1753-01-01", "1899-12-30", "1899-12-31", "1901-01-01", "9999-12-31")
# The spellings of days that mean no date.
NO_DATES = frozenset(
    spelling.format(*day.split("-"))
    for day in (*ZERO_DATES, *PLACEHOLDERS)
    for spelling in (
        *("{0}-{1}-{2}", "{0}/{1}/{2}", "{0}{1}{2}"),
        *("{2}-{1}-{0}", "{2}.{1}.{0}", "{2}/{1}/{0}", "{1}/{2}/{0}"),
    )
)
_SUB_SELECT = re.compile(r"\s*(?:\(\s*)*SELECT\b", re.IGNORECASE).match
# A sub-select of a text in quotes, which in some databases is a name.
_OF_TEXT = re.compile(r"""\s*(?:\(\s*)*SELECT\s+(['"])(.*?)\1\s+FROM\b""", re.IGNORECASE).match


@dataclass(slots=True)
class FieldTally:
    """Counts of the values of one field; `is_selected` is whether a sub-select makes it.

    `quoted` is the text in quotes that the sub-select asks for, if it does.
    """

    value: RowValue
    is_selected: bool = False
    quoted: str | None = None
    present: int = 0
    unreadable: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    odd_days: Counter[str] = field(default_factory=Counter)
    no_dates: dict[str, None] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    first: Any = None
    is_alike: bool = True

    @property
    def is_time(self) -> bool:
        return hasattr(self.value.converter, "zero")

    @property
    def count(self) -> int:
        """How many rows have a value, of whatever kind."""
        return self.present + self.unreadable + self.codes.total()

    def take(self, row: Any, shown: str | None) -> Any:
        """Counts and returns the row's value, or None; `shown` is the public id of the row."""
        try:
            value = self.value.read(row)
        except Unreadable as error:
            if shown and len(self.ids) < MOST_IDS:
                self.ids.append(shown)
            written = code_of(self.value, row)
            if isinstance(error, UnknownCode):
                # beyond the number that is told, different codes are only counted
                self.codes[written if len(self.codes) <= MOST_CODES else ""] += 1
                return None
            self.unreadable += 1
            day = written.partition(" ")[0].partition("T")[0]
            if self.is_time and day in NO_DATES:
                self.no_dates[day] = None
            return None
        if value is not None:
            self.first = value if self.first is None else self.first
            self.is_alike = self.is_alike and value == self.first
            self.present += 1
        if isinstance(value, str) and (
            value[:10] in PLACEHOLDERS or (self.is_time and value[:4] < BEFORE)
        ):
            self.odd_days[value[:10]] += 1
        return value


def code_of(value: RowValue, row: Any) -> str:
    """Returns a value as it is written, or the first of its columns; "" for no plain value."""
    try:
        raw = value.plain(row)
        return plain(raw[0] if isinstance(raw, tuple) else raw) or ""
    except Unreadable:
        return ""


def own_key(key: RowValue | None, row: Any) -> str:
    """Returns the practice's own key of a row, its columns with blanks between them; "" for none.

    A long one is a text of somebody's, and is not told.
    """
    try:
        raw = None if key is None else key.plain(row)
        parts = raw if isinstance(raw, tuple | list) else (raw,)
        told = " ".join(plain(part) or "" for part in parts)
    except Unreadable:
        return ""
    return told if len(told) <= LONGEST_KEY else ""


class RowTally:
    """Counts of the rows of a resource, or of a list inside it; of a key it keeps 64 bits."""

    def __init__(self, case: DoctorCase, name: str) -> None:
        rows = case.rows(name)
        self.own_id = rows.own_id
        self.names, self.count, self.nameless = rows.names, 0, 0
        self.known, self.doubled = set[int](), dict[int, str | None]()
        self.fields = {field: FieldTally(value) for field, value in rows.by_name.items()}
        for of, source in rows.mapped.fields.items() if rows.mapped.from_ else ():
            self.fields[of].is_selected = any(map(_SUB_SELECT, source.expressions))
            found = next(filter(None, map(_OF_TEXT, source.expressions)), None)
            self.fields[of].quoted = found[2].strip() if found else None

    def take(self, rows: Iterable[RowTaken]) -> list[Record]:
        """Counts the rows and their values, and returns the records."""
        records = []
        for row, shown, key, parent in rows:
            mark = hash(key)
            if mark in self.known:
                self.doubled[mark] = shown if len(self.doubled) < MOST_IDS else None
            self.known.add(mark)
            self.nameless += shown is None
            record: Record = dict.fromkeys(self.names) | {"id": shown}
            record[KEY] = own_key(self.own_id, row)
            if parent is not None:
                record[PARENT] = parent
            for name, tally in self.fields.items():
                record[name] = tally.take(row, shown)
            records.append(record)
        self.count += len(records)
        return records


def pages(case: DoctorCase, name: str) -> Iterator[list[Record]]:
    """Yields the records that are looked at; where all are, reads them again page by page."""
    if case.examination.rows is not None:
        yield case.samples.get(name, [])
    elif name in case.samples:
        yield from map(RowTally(case, name).take, case.batches(name))


def values(case: DoctorCase) -> Iterator[Look]:
    """Yields a look at each resource, and at each list inside its records."""
    for name in case.readable():
        yield case.look("values", name, _rows, "resources", name)
    for name in case.readable():
        for inner in case.adapter.mapping.resources[name].lists if case.samples.get(name) else ():
            yield case.look("values", f"{name}.{inner}", _rows, "resources", name, "lists", inner)


async def _rows(case: DoctorCase, look: Look) -> None:
    name = look.subject
    resource, _, inner = name.partition(".")
    tally, sample = RowTally(case, name), list[Record]()
    for batch in case.batches(name):
        sample += tally.take(batch)
        del sample[case.kept : -case.kept]
    case.samples[name] = sample
    if not inner:
        _keys(case, look, tally)
    case.misfits(look, name)
    if not tally.count:
        at = case.rows_in[bool(inner)]
        if inner or not case.has_rows(resource):
            look.warning(f"no row: is `{at}` right, or is there nothing yet?", at, check="rows")
        else:
            text = "0 records, though there are rows: is `where` right?"
            look.failed(text, "where", check="rows")
        return
    is_fine = not fields_judged(look, tally.fields, tally.count)
    if not inner:
        mapped = case.adapter.mapping.resources[resource]
        paths = dict.fromkeys(path.split("[].")[0] for path in case.adapter.options.shapes[name])
        missing = [path for path in paths if path not in {*mapped.fields, *mapped.lists, "id"}]
        if missing:
            look.warning(f"not mapped, and so null for everybody: {', '.join(missing)}", "fields")
        if is_fine:
            many = "all there are" if name in case.whole else "a sample"
            look.ok(f"{counted(tally.count, 'row')}, {many}: every value is read")


def _keys(case: DoctorCase, look: Look, tally: RowTally) -> None:
    if tally.doubled:
        at, remedy = case.doubled
        text = f"{len(tally.doubled)} of {len(tally.known):,} ids occur more than once"
        ids = dict.fromkeys(shown for shown in tally.doubled.values() if shown)
        look.failed(text, at, check="rows", remedy=remedy, ids=ids)
    if tally.nameless:
        rows = f"{counted(tally.nameless, 'row')} of {tally.count:,}"
        text = f"{rows} without a usable id: they are never shown"
        remedy = "see `source`; a long or composite key is written `as: hashed id`"
        look.failed(text, "key", check="rows", remedy=remedy)


def fields_judged(look: Look, tallies: Mapping[str, FieldTally], count: int) -> bool:
    """Judges the fields of `count` rows; returns whether anything was to be said."""
    before = len(look.findings)
    for name, tally in tallies.items():
        part = replace(look, subject=f"{look.subject}.{name}", place=(*look.place, "fields", name))
        if tally.codes:
            _unknown(part, tally)
        if tally.unreadable:
            rows = counted(tally.unreadable, "row")
            text = f"{rows} of {tally.count:,} that its converter cannot read"
            verdict = weighed(tally.unreadable, tally.count)
            part.judge(verdict, text, remedy=_reading(tally), ids=tally.ids)
        if tally.odd_days:
            text = f"{counted(tally.odd_days.total(), 'row')} with a day before {BEFORE}"
            named = ", ".join(day for day in tally.odd_days if day in PLACEHOLDERS)
            remedy = "where it means no value, list it under `zero`, with the others that do"
            part.warning(f"{text} or after 9998{named and f': {named}'}", remedy=remedy)
        if not tally.count and count >= ENOUGH:
            part.warning(f"null in all of {counted(count, 'row')}: mapped in vain?")
        if tally.is_selected and tally.present == count >= ENOUGH and tally.is_alike:
            why = "does the sub-select name the row (WHERE ...)?"
            if tally.quoted is not None and tally.first == tally.quoted:
                why = "the sub-select asks for a text in quotes, which is no column"
            part.warning(f"the same value in all {counted(count, 'row')}: {why}")
    return len(look.findings) > before


def _reading(tally: FieldTally) -> str:
    """Returns what to do about values that no converter reads."""
    if none := ", ".join(f'"{day}"' for day in tally.no_dates):
        return f"where these mean no date, list them under `zero`, with all that do: zero: [{none}]"
    if not tally.is_time:
        return "name another under `as`, or mend them"
    return "say how they are written (as, pattern; under `zero` what means no date), or mend them"


def _unknown(part: Look, tally: FieldTally) -> None:
    """Judges unknown codes; many or long ones are texts, which are not shown."""
    listed = tally.codes.most_common() if len(tally.codes) <= MOST_CODES else ()
    known = {code: many for code, many in listed if len(code) <= LONGEST_CODE}
    what = ", ".join(f"{code or repr(code)} ({many})" for code, many in known.items())
    unknown = tally.codes.total()
    what = what or "long or many different texts"
    text = f"{counted(unknown, 'row')} with an unknown code: {what}"
    remedy = "add them to its codes; null where one means nothing" if known else ""
    remedy = remedy or "is it a code at all?"
    part.judge(weighed(unknown, tally.count), text, remedy=remedy, ids=tally.ids, codes=known)


def links(case: DoctorCase) -> Iterator[Look]:
    """Yields a look at each field that refers to a resource, and at the parents of each list."""
    for name, mapped in case.adapter.mapping.resources.items():
        for inner, nested in mapped.lists.items():
            if nested.parent is not None and not case.is_lost("resources", name):
                subject, place = f"{name}.{inner}", ("resources", name, "lists", inner, "parent")
                yield case.look(
                    "links", subject, partial(_links, subject, PARENT, name, {}), *place
                )
    led: dict[str, dict[str, Leads]] = defaultdict(dict)
    for resource in case.adapter.mapping.resources:
        yield from _references(resource, led, case)
    for target, leads in led.items():
        if case.adapter.mapping.resources[target].where is not None:
            at = ("resources", target, "where")
            yield case.look("laws", target, partial(_hides, target, leads), *at)


def _references(
    resource: str, led: Mapping[str, dict[str, "Leads"]], case: DoctorCase
) -> Iterator[Look]:
    """Yields a look at each field of a resource that refers to another, which fills `led`."""
    for path, shape in case.adapter.options.shapes[resource].items():
        if shape.refers is not None and not case.is_lost("resources", shape.refers):
            owner, _, name = path.rpartition("[].")
            sample = f"{resource}.{owner}" if owner else resource
            run = partial(_links, sample, name, shape.refers, led[shape.refers])
            place = ("resources", resource, *(("lists", owner) if owner else ()))
            yield case.look("links", f"{sample}.{name}", run, *place, "fields", name)


@dataclass(slots=True)
class Leads:
    """Where the ids of one field lead: `lost` to nothing, `hidden` to what `where` hides."""

    count: int = 0
    lost: int = 0
    hidden: int = 0
    ids: list[str] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)


async def _links(
    sample: str, name: str, target: str, led: dict[str, Leads], case: DoctorCase, look: Look
) -> None:
    """Counts where the ids of a field lead, which `led` has by its name from then on."""
    leads = led[f"{sample}.{name}"] = Leads()
    for page in pages(case, sample):
        named = [(to, record.get("id")) for record in page if (to := record.get(name))]
        looked_for, gone, hidden = await case.missing(target, {to for to, _ in named})
        lost = [shown for to, shown in named if to in gone]
        leads.count += sum(to in looked_for for to, _ in named)
        leads.lost += len(lost)
        leads.hidden += sum(to in hidden for to, _ in named)
        told = (f"key {each[KEY] or 'unknown'}" for each in page if each.get(name) in hidden)
        leads.examples = [*leads.examples, *told][:MOST_IDS]
        leads.ids = [*leads.ids, *filter(None, lost)][:MOST_IDS]
    if name == PARENT:
        leads_judged(look, target, leads, ORPHANS, "is `parent` the record's key?")
        return
    leads_judged(look, target, leads, TOLERABLE_LEADS, f"is it the key of {target}?")
    if shown := case.law("references-shown", look):
        shown.count, shown.broken = leads.count - leads.lost, leads.hidden
        shown.examples = leads.examples
        shown_judged(shown, target)


async def _hides(target: str, led: Mapping[str, Leads], case: DoctorCase, look: Look) -> None:
    """Judges a condition by all fields that lead to what it may hide."""
    of = {name: leads for name, leads in led.items() if leads.count > leads.lost}
    count = sum(leads.count - leads.lost for leads in of.values())
    hidden = sum(leads.hidden for leads in of.values())
    # where one field alone leads to hidden records, the mistake is that field's
    is_one = any(leads.hidden <= TOLERABLE_LEADS * leads.count for leads in of.values())
    part = case.law("references-shown", look)
    if part is None or len(of) < FEW_FIELDS or is_one or count < ENOUGH:
        return
    part.examples = [told for leads in of.values() for told in leads.examples][:MOST_IDS]
    text = f"it hides what {hidden:,} of {count:,} rows lead to, those of {', '.join(of)}"
    part.breach(text, remedy="see whether it is turned round, or names the wrong codes")


def shown_judged(part: LawLook, target: str) -> None:
    """Judges ids of which some lead to what `where` hides: a few are how practices are."""
    text = f"{counted(part.broken, 'row')} of {part.count:,} {agreeing(part.broken, 'lead')} to"
    text += f" one of the {target} that `where` hides"
    if not part.count:
        part.note("no row says anything of it")
    elif part.broken == part.count >= FEW_LEADS:
        part.breach(f"{text}: partners find none of them")
    elif part.broken > TOLERABLE_LEADS * part.count:
        part.breach(text, Verdict.WARNING)
    else:
        part.ok(text)


def leads_judged(look: Look, target: str, leads: Leads, most: float, remedy: str) -> None:
    """Judges ids of which no larger share than `most` may be lost."""
    text = f"{counted(leads.count, 'row', 'lead')} to {target}"
    if leads.hidden:
        text += f"; {leads.hidden:,} of them to one that `where` hides"
    if leads.lost:
        of, verb = f" of {leads.count:,}", agreeing(leads.lost, "lead")
        text = f"{counted(leads.lost, 'row')}{of} {verb} to none of the {target}"
        verdict = weighed(leads.lost, leads.count, most=most)
        remedy = remedy if verdict is Verdict.FAILED else ""
        look.judge(verdict, text, remedy=remedy, ids=leads.ids)
    elif leads.count:
        look.ok(text)
