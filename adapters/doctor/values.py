"""What the values of fields came to: unreadable ones, unknown codes, and ids that lead nowhere."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from adapters.base import Record
from adapters.doctor.case import (
    MOST_IDS,
    CheckStep,
    DoctorCase,
    FindingMaker,
    agreeing,
    counted,
    weighed,
)
from adapters.documents.document import Place
from adapters.examination import Finding, Verdict
from adapters.mapped.session import Session
from adapters.values.convert import Converter, UnknownCode, Unreadable, plain
from adapters.values.wall_clock import ZERO_DATES

# A larger share of unreadable values is more than old sins.
TOLERABLE = 0.01
# More than half of the ids that lead nowhere: they are ids of something else.
TOLERABLE_LEADS = 0.5
MOST_CODES = 20
LONGEST_CODE = 20
# Rows of which some should have a value.
ENOUGH = 20
BEFORE = "1902"
# What old programs write for no date; the first three are none anyway.
PLACEHOLDERS = ("0001-01-01", "1753-01-01", "1899-12-30", "1899-12-31", "1901-01-01", "9999-12-31")
_SPELLINGS = (
    "{0}-{1}-{2}",
    "{0}/{1}/{2}",
    "{0}{1}{2}",
    "{2}-{1}-{0}",
    "{2}.{1}.{0}",
    "{2}/{1}/{0}",
    "{1}/{2}/{0}",
)
# How the days that mean none may be spelt.
NO_DATES = frozenset(
    spelling.format(*day.split("-"))
    for day in (*ZERO_DATES, *PLACEHOLDERS)
    for spelling in _SPELLINGS
)


def as_it_is(raw: Any) -> Any:
    return raw


@dataclass(slots=True)
class FieldTally:
    """What the values of one field came to.

    `read` makes a value of what is given, `raw` finds the code in it.
    """

    read: Callable[[Any], Any]
    raw: Callable[[Any], Any] = as_it_is
    is_time: bool = False
    present: int = 0
    unreadable: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    odd_days: Counter[str] = field(default_factory=Counter)
    more_codes: int = 0
    no_dates: Counter[str] = field(default_factory=Counter)
    ids: list[str] = field(default_factory=list)
    first: Any = None
    is_alike: bool = True

    @property
    def unknown(self) -> int:
        return self.codes.total() + self.more_codes

    @property
    def count(self) -> int:
        """How many rows have a value, of whatever kind."""
        return self.present + self.unreadable + self.unknown

    def take(self, given: Any, shown: str | None) -> Any:
        """Returns the value, counted; None where it cannot be read.

        `shown` is the public id of its record.
        """
        try:
            value = self.read(given)
        except Unreadable as error:
            self._bad(error, given, shown)
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

    def _bad(self, error: Unreadable, given: Any, shown: str | None) -> None:
        if shown and len(self.ids) < MOST_IDS:
            self.ids.append(shown)
        if not isinstance(error, UnknownCode):
            self.unreadable += 1
            self.no_dates.update([_no_date(self.raw(given))] if self.is_time else [])
            return
        # more different ones than could be told are no codes: they are only counted
        code = code_of(self.raw(given))
        if code in self.codes or len(self.codes) <= MOST_CODES:
            self.codes[code] += 1
        else:
            self.more_codes += 1


def is_time(converter: Converter) -> bool:
    return hasattr(converter, "zero")


def code_of(raw: Any) -> str:
    try:
        return plain(raw) or ""
    except Unreadable:
        return ""


def _no_date(raw: Any) -> str:
    """Returns the spelling of no date that a value begins with; "" for any other value."""
    first = raw[0] if isinstance(raw, tuple) else raw
    day = code_of(first).partition(" ")[0].partition("T")[0]
    return day if day in NO_DATES else ""


def fields_judged(
    maker: FindingMaker,
    place: Place,
    owner: str,
    tallies: Mapping[str, FieldTally],
    count: int,
    sub_selects: Collection[str] = (),
) -> Iterator[Finding]:
    """Yields what is to be said of the fields of `count` rows at that place of the mapping."""
    for name, tally in tallies.items():
        at, subject = (*place, "fields", name), f"{owner}.{name}"
        if tally.unknown:
            yield _unknown(maker, at, subject, tally)
        if tally.unreadable:
            rows = counted(tally.unreadable, "row")
            text = f"{rows} of {tally.count:,} that its converter cannot read"
            verdict = weighed(tally.unreadable, tally.count, most=TOLERABLE)
            remedy = _reading(tally)
            yield maker.judged(verdict, "values", subject, text, at, remedy=remedy, ids=tally.ids)
        if tally.odd_days:
            text = f"{counted(tally.odd_days.total(), 'row')} with a day before {BEFORE}"
            named = [day for day in tally.odd_days if day in PLACEHOLDERS]
            text += " or after 9998" + (f": {', '.join(named)}" if named else "")
            remedy = "where it means no value, list it under `zero`, with the others that do"
            yield maker.warning("values", subject, text, at, remedy=remedy)
        if not tally.count and count >= ENOUGH:
            text = f"null in all of {counted(count, 'row')}: mapped in vain?"
            yield maker.warning("values", subject, text, at)
        if name in sub_selects and tally.present == count >= ENOUGH and tally.is_alike:
            text = f"the same value in all {counted(count, 'row')}:"
            text += " does the sub-select name the row (WHERE ...)?"
            yield maker.warning("values", subject, text, at)


def _reading(tally: FieldTally) -> str:
    """Returns what to do about values that no converter reads."""
    none = ", ".join(f'"{day}"' for day in tally.no_dates if day)
    if none:
        return f"where these mean no date, list them under `zero`, with all that do: zero: [{none}]"
    if tally.is_time:
        return (
            "say how they are written (as, pattern; under `zero` what means no date), or mend them"
        )
    return "name another under `as`, or mend them"


def _unknown(maker: FindingMaker, at: Place, subject: str, tally: FieldTally) -> Finding:
    """What is long, or different in many rows, is no code but a text, and is not shown."""
    known, remedy = {}, "is it a code at all?"
    if len(tally.codes) <= MOST_CODES:
        codes = tally.codes.most_common()
        known = {code: many for code, many in codes if len(code) <= LONGEST_CODE}
    if known:
        remedy = "add them to its codes; null where one means nothing"
    what = ", ".join(f"{code or repr(code)} ({many})" for code, many in known.items())
    text = f"{counted(tally.unknown, 'row')} with an unknown code:"
    text = f"{text} {what or 'long or many different texts'}"
    verdict = weighed(tally.unknown, tally.count, most=TOLERABLE)
    more = {"remedy": remedy, "ids": tally.ids, "codes": known}
    return maker.judged(verdict, "values", subject, text, at, **more)


def unmapped(
    maker: FindingMaker, resource: str, names: Iterable[str], mapped: Iterable[str]
) -> Iterator[Finding]:
    """What the mapping leaves out of a resource's own names."""
    known = {*mapped, "id"}
    if missing := [name for name in names if name not in known]:
        text = f"not mapped, and so null for everybody: {', '.join(missing)}"
        yield maker.warning("values", resource, text, ("resources", resource, "fields"))


def links(case: DoctorCase) -> Iterator[CheckStep]:
    """One look at each field that refers to a resource, of records and of lists inside them."""
    for resource, shapes in case.adapter.options.shapes.items():
        for path, shape in shapes.items():
            if shape.refers is None or case.is_lost("resources", shape.refers):
                continue
            owner, _, name = path.rpartition("[].")
            inner = ("lists", owner) if owner else ()
            place = ("resources", resource, *inner, "fields", name)
            sample = f"{resource}.{owner}" if owner else resource
            run = partial(_links, case, sample, name, shape.refers, place)
            yield CheckStep("links", f"{resource}.{path}", run, place)


async def _links(
    case: DoctorCase, sample: str, name: str, target: str, place: Place, session: Session
) -> AsyncIterator[Finding]:
    leads = Leads()
    for page in case.pages(session, sample):
        ids = {record[name] for record in page if record.get(name)}
        looked_for, gone, hidden = await case.missing(session, target, ids)
        leads.take(name, [each for each in page if each.get(name) in looked_for], gone, hidden)
    if leads.count:
        yield led(case, f"{sample}.{name}", place, target, leads)


@dataclass(slots=True)
class Leads:
    """Where the ids of one field lead, in so many records as were taken."""

    count: int = 0
    lost: int = 0
    hidden: int = 0
    ids: list[str] = field(default_factory=list)

    def take(
        self, name: str, records: list[Record], gone: Collection[str], hidden: Collection[str]
    ) -> None:
        """Counts the ids that lead to nothing at all, and those that `where` hides."""
        lost = [record for record in records if record[name] in gone]
        self.count += len(records)
        self.lost += len(lost)
        self.hidden += sum(record[name] in hidden for record in records)
        shown = [record["id"] for record in lost if record.get("id")]
        self.ids += shown[: MOST_IDS - len(self.ids)]


def led(maker: FindingMaker, subject: str, place: Place, target: str, leads: Leads) -> Finding:
    """Returns the finding about one field of records which all have it."""
    key = f"is it the key of {target}?"
    if leads.lost:
        lead = agreeing(leads.lost, "lead")
        text = f"{counted(leads.lost, 'row')} of {leads.count:,} {lead} to none of the {target}"
        verdict = weighed(leads.lost, leads.count, most=TOLERABLE_LEADS)
        remedy = key if verdict is Verdict.FAILED else ""
        return maker.judged(verdict, "links", subject, text, place, remedy=remedy, ids=leads.ids)
    text = f"{counted(leads.count, 'row')} {agreeing(leads.count, 'lead')} to {target}"
    if leads.hidden:
        text += f"; {leads.hidden:,} of them to one that `where` hides"
    if leads.hidden > TOLERABLE_LEADS * leads.count:
        return maker.warning("links", subject, text, place, remedy=key)
    return maker.ok("links", subject, text)
