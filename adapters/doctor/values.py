"""What the values of a field came to: those read, unknown codes, and what no converter reads."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from adapters.doctor.findings import MOST_IDS, FindingMaker, rows, weighed
from adapters.documents.document import Place
from adapters.examination import Finding
from adapters.values.convert import UnknownCode, Unreadable, plain
from adapters.values.wall_clock import ZERO_DATES

# A larger share of unreadable values is more than old sins.
TOLERABLE = 0.01
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
class Tally:
    """What the values of one field came to."""

    present: int = 0
    unreadable: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    odd_days: Counter[str] = field(default_factory=Counter)
    more_codes: int = 0
    no_dates: Counter[str] = field(default_factory=Counter)
    is_time: bool = False
    ids: list[str] = field(default_factory=list)
    first: Any = None
    is_alike: bool = True

    @property
    def unknown(self) -> int:
        return self.codes.total() + self.more_codes

    def take(
        self,
        read: Callable[[Any], Any],
        given: Any,
        shown: str | None,
        *,
        is_time: bool,
        raw: Callable[[Any], Any] = as_it_is,
    ) -> Any:
        """What `read` makes of what is given, counted; None where it cannot.

        `shown` is the public id of its record, `raw` finds the code in what is given.
        """
        self.is_time = is_time
        try:
            value = read(given)
        except UnknownCode:
            self._count(code_of(raw(given)))
            self._bad(shown)
            return None
        except Unreadable:
            self.unreadable += 1
            self.no_dates.update([_no_date(raw(given))] if is_time else [])
            self._bad(shown)
            return None
        if value is not None:
            self.first = value if self.first is None else self.first
            self.is_alike = self.is_alike and value == self.first
            self.present += 1
        if isinstance(value, str) and (
            value[:10] in PLACEHOLDERS or (is_time and value[:4] < BEFORE)
        ):
            self.odd_days[value[:10]] += 1
        return value

    def _count(self, code: str) -> None:
        """More different ones than could be told are no codes: they are only counted."""
        if code in self.codes or len(self.codes) <= MOST_CODES:
            self.codes[code] += 1
        else:
            self.more_codes += 1

    def _bad(self, shown: str | None) -> None:
        if shown and len(self.ids) < MOST_IDS:
            self.ids.append(shown)


def code_of(raw: Any) -> str:
    try:
        return plain(raw) or ""
    except Unreadable:
        return ""


def _told(codes: Counter[str]) -> dict[str, int]:
    """Those that may be shown: what is long, or different in many rows, is no code but a text."""
    if len(codes) > MOST_CODES:
        return {}
    return {code: many for code, many in codes.most_common() if len(code) <= LONGEST_CODE}


def judged(
    maker: FindingMaker, place: Place, owner: str, name: str, tally: Tally, count: int
) -> Iterator[Finding]:
    """The findings about one field, of `count` rows at that place of the mapping."""
    at = (*place, "fields", name)
    subject, all_ = f"{owner}.{name}", tally.present + tally.unreadable + tally.unknown
    if tally.unknown:
        yield _unknown(maker, at, subject, tally, all_)
    if tally.unreadable:
        text = f"{rows(tally.unreadable)} of {all_:,} that its converter cannot read"
        verdict = weighed(tally.unreadable, all_, most=TOLERABLE)
        remedy = _reading(tally)
        yield maker.judged(verdict, "values", subject, text, at, remedy=remedy, ids=tally.ids)
    if tally.odd_days:
        yield _odd_days(maker, at, subject, tally)
    if not all_ and count >= ENOUGH:
        text = f"null in all of {rows(count)}: mapped in vain?"
        yield maker.warning("values", subject, text, at)


def unlinked(
    maker: FindingMaker, place: Place, owner: str, name: str, tally: Tally, count: int
) -> Iterator[Finding]:
    """The finding about a field of a sub-select that is the same in all of so many rows."""
    if count >= ENOUGH and tally.present == count and tally.is_alike:
        text = f"the same value in all {rows(count)}: does the sub-select name the row (WHERE ...)?"
        yield maker.warning("values", f"{owner}.{name}", text, (*place, "fields", name))


def _no_date(raw: Any) -> str:
    """The spelling of no date at all that a value begins with; "" for any other value."""
    first = raw[0] if isinstance(raw, tuple) else raw
    day = code_of(first).partition(" ")[0].partition("T")[0]
    return day if day in NO_DATES else ""


def _reading(tally: Tally) -> str:
    """What to do about values that no converter reads."""
    none = ", ".join(f'"{each}"' for each in tally.no_dates if each)
    if none:
        return f"where these mean no date, list them under `zero`, with all that do: zero: [{none}]"
    if tally.is_time:
        return (
            "say how they are written (as, pattern; under `zero` what means no date), or mend them"
        )
    return "name another under `as`, or mend them"


def _unknown(maker: FindingMaker, at: Place, subject: str, tally: Tally, all_: int) -> Finding:
    known = _told(tally.codes)
    what = ", ".join(f"{code or repr(code)} ({many})" for code, many in known.items())
    text = f"{rows(tally.unknown)} with an unknown code: {what or 'long or many different texts'}"
    remedy = "add them to its codes; null where one means nothing"
    if not known:
        remedy = "is it a code at all?"
    verdict = weighed(tally.unknown, all_, most=TOLERABLE)
    return maker.judged(
        verdict, "values", subject, text, at, remedy=remedy, ids=tally.ids, codes=known
    )


def _odd_days(maker: FindingMaker, at: Place, subject: str, tally: Tally) -> Finding:
    named = [each for each in tally.odd_days if each in PLACEHOLDERS]
    text = f"{rows(tally.odd_days.total())} with a day before {BEFORE} or after 9998"
    if named:
        text = f"{text}: {', '.join(named)}"
    remedy = "where it means no value, list it under `zero`, with the others that do"
    return maker.warning("values", subject, text, at, remedy=remedy)


def unmapped(
    maker: FindingMaker, resource: str, names: Iterable[str], mapped: Iterable[str]
) -> Iterator[Finding]:
    """What the mapping leaves out of a resource's own names."""
    known = {*mapped, "id"}
    missing = [each for each in names if each not in known]
    if missing:
        text = f"not mapped, and so null for everybody: {', '.join(missing)}"
        yield maker.warning("values", resource, text, ("resources", resource, "fields"))
