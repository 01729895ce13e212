"""Derives what a booking writes into a column, from the values that the desk wrote there."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from adapters.doctor.sql.desk import DeskColumn, text_of
from adapters.doctor.sql.examples import IDS, Example
from adapters.doctor.values import LONGEST_CODE
from adapters.mapping.models import ResourceMap, ValueSource
from adapters.sql.engines.base import Spelling
from adapters.values.convert import bits
from adapters.values.times import PATTERN

TODO = "TODO"
_PATTERNS = (
    PATTERN,
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y",
    "%d/%m/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y",
    "%Y%m%d%H%M%S",
    "%Y%m%d%H%M",
    "%Y%m%d",
    "%H:%M:%S",
    "%H:%M",
    "%H%M",
)
_TIMES = ("scheduledAt", "endTime", "createdAt")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE).fullmatch
_LENGTH = re.compile(r"(\d{1,2}):(\d\d)(:00)?").fullmatch
NUMBERED = re.compile(r"(.*?)(\d{1,15})").fullmatch
# The minutes of what a diary may count.
_STEPS = (5, 10, 15, 20, 30, 60)
# What is written for a moment that the gateway knows, and the clock of a product's own.
NEAR = timedelta(minutes=10)


# A name of the draft, whether it varies in the examples, and what is written.
Fit = tuple[str, bool, dict[str, Any]]


class Derived(NamedTuple):
    """What to write (a constant, or a group such as {draft: reason}), how that is known, how sure.

    Without `is_told` nothing is written, and the comment says TODO.
    """

    value: Any
    how: str
    is_sure: bool = True
    is_told: bool = True


class MadeKey(NamedTuple):
    """The keys of an earlier step's rows in each example.

    `is_led_to` tells whether the column in question is known to hold keys of its table.
    """

    step: str
    keys: Sequence[Any]
    is_led_to: bool

    @property
    def said(self) -> str:
        return f"the key of {self.step}"


@dataclass(frozen=True, slots=True)
class CountedNumber:
    """A number that the practice counts: the name of its step, and the value in each example.

    `ahead` is 1 where the counter keeps the next number and not the last.
    """

    name: str
    numbers: Sequence[int]
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Derivation:
    """What is known beside the rows: the mapping of appointments, the zone, names of steps."""

    mapped: ResourceMap
    zone: ZoneInfo
    spelling: Spelling
    counted: tuple[CountedNumber, ...] = ()
    # the UUIDs that are the booking's own, one for each example
    uuid: Sequence[str] = ()

    def derived(
        self,
        column: DeskColumn,
        values: Sequence[Any],
        examples: Sequence[Example],
        made: Sequence[MadeKey] = (),
        leads: str | None = None,
    ) -> Derived | None:
        """Returns what is written; None for a column that is null in all the examples.

        `made` are the keys of earlier steps; `leads` is the resource to which the column leads.
        """
        texts = [text_of(value) for value in values]
        if all(text is None for text in texts):
            return None
        agree = f"{len(texts)} of {len(texts)} examples"
        keys = [each for each in made if texts == [text_of(key) for key in each.keys]]
        known = [each for each in keys if each.is_led_to]
        fits = list(self._fitting(column, values, texts, examples))
        chosen = None if known else self._of_draft(column, texts, fits, leads, keys)
        # by its value alone one example tells no key
        for each in known or (keys if chosen is None and len(texts) > 1 else ()):
            return Derived({"made": each.step}, f"{each.said} in {agree}")
        if chosen := chosen or self._number(texts):
            return chosen
        if len({*texts}) == 1:
            others = [*(name for name, _, _ in fits), *(each.said for each in keys)]
            return self._constant(values[0], examples, ", ".join(dict.fromkeys(others)))
        return self._read_as_urgent(column.name, texts) or self._changing(texts)

    def _read_as_urgent(self, column: str, texts: Sequence[str | None]) -> Derived | None:
        """Returns that it is the urgency, where the mapping reads it there in several spellings."""
        mapped = self.mapped.fields.get("isUrgent")
        if mapped is None or not self._is_hinted(column, "isUrgent", None):
            return None
        yes, no = mapped.yes or (1,), mapped.no or (0,)
        if not {*texts} <= {None, *map(text_of, yes), *map(text_of, no)}:
            return None
        words = {"yes": list(yes), "no": list(no)} if mapped.yes and mapped.no else {}
        how = "the mapping reads isUrgent there; the examples spell it in several ways"
        return Derived({"draft": "isUrgent"} | words, how)

    def _of_draft(
        self,
        column: DeskColumn,
        texts: Sequence[Any],
        fits: Sequence[Fit],
        leads: str | None,
        keys: Sequence[MadeKey],
    ) -> Derived | None:
        """Returns what of a draft it is: what the mapping reads there, or what varies with it.

        The `keys` have the same values.
        """
        hinted = [fit for fit in fits if self._is_hinted(column.name, fit[0], leads)]
        varied = [fit for fit in fits if fit[1]]
        best = [fit for fit in hinted if fit[1]] or (hinted if len({*texts}) == 1 else []) or varied
        if not best:
            return None
        name, is_varied, value = best[0]
        others = dict.fromkeys(other for other, _, _ in best[1:] if other != name)
        if not hinted:
            others |= dict.fromkeys(each.said for each in keys)
        how = f"{name} in {len(texts)} of {len(texts)} examples"
        how += f"; so is {' and '.join(others)}" if others else ""
        how += "" if is_varied else ", which have one value"
        # two values go with urgency by accident, unless the mapping reads it there
        tells = is_varied and name != "isUrgent"
        is_sure = not others and (tells or bool(hinted)) and len(texts) > 1
        return Derived(value, how, is_sure)

    def _changing(self, texts: Sequence[str | None]) -> Derived:
        """Returns what values are that differ, and are nothing that was asked for."""
        count = len(texts)
        agree = f"{count} of {count} examples"
        if self.uuid and texts == list(self.uuid):
            return Derived({"draft": "uuid"}, f"a UUID in {agree}")
        if all(text is not None and _UUID(text) for text in texts):
            if making := self.spelling.uuid:
                return Derived({"sql": making}, f"a UUID of its own in {agree}")
            return Derived({"draft": "uuid"}, f"a UUID in {agree}", is_sure=False)
        text = "another value in the examples, made of nothing known"
        if None in texts:
            some = sum(each is not None for each in texts)
            text = f"in {some} of {count} examples, and nothing that was asked for tells which"
        return Derived(TODO, text, is_told=False)

    def _is_hinted(self, column: str, name: str, leads: str | None) -> bool:
        """Returns whether the mapping reads that field from the column, or a key leads there."""
        if leads is not None and name in IDS:
            return {"vetId": "vets", "appointmentTypeId": "appointmentTypes"}.get(
                name, f"{name[:-2]}s"
            ) == leads
        names = ("endTime", "minutes") if name == "minutes" else (name,)
        sources = [self.mapped.fields[each] for each in names if each in self.mapped.fields]
        expressions = [sql for source in sources for sql in source.expressions]
        word = re.compile(rf"(?<![\w-]){re.escape(column)}(?![\w-])", re.IGNORECASE)
        if any(word.search(sql) for sql in expressions if "select" not in sql.lower()):
            return True
        letters = "".join(filter(str.isalnum, column)).lower()
        short = name.removesuffix("Id").lower()
        is_key = name in IDS or name == "schedule"
        return (short in letters and is_key) or letters in (short, name.lower())

    def _fitting(
        self,
        column: DeskColumn,
        values: Sequence[Any],
        texts: Sequence[str | None],
        examples: Sequence[Example],
    ) -> Iterator[Fit]:
        """Yields what of a draft the values are: its name, whether it varies, what to write."""
        for name in IDS:
            keys = [example.asked[name] for example in examples]
            width = max((len(key) for key in keys if isinstance(key, tuple)), default=1)
            for part in range(width):
                parts = [key[part] if isinstance(key, tuple) else key for key in keys]
                spelt = [text_of(each) for each in parts]
                if list(texts) == spelt:
                    more = {"part": part + 1} if width > 1 else {}
                    yield name, len({*spelt}) > 1, {"draft": name} | more
        if all(text in example.schedules for text, example in zip(texts, examples, strict=True)):
            yield "schedule", len({*texts}) > 1, {"draft": "schedule"}
        start: dict[str, Any] | None = None
        for name in _TIMES:
            moments = [example.asked[name] for example in examples]
            how = self._time(values, texts, moments, name)
            start = how if name == "scheduledAt" else start
            # the day of the end is that of the start
            if how is not None and (name != "endTime" or how != start):
                # what is written as a time is one, though all the examples are at one hour
                is_time = len({*texts}) > 1 or not str(texts[0]).isdecimal()
                yield name, is_time, {"draft": name} | how
        yield from self._minutes(column.name, texts, examples)
        reasons = [example.asked["reason"] for example in examples]
        if any(reasons) and [text or None for text in texts] == [each or None for each in reasons]:
            mapped = self.mapped.fields.get("reason")
            encoding = {"encoding": mapped.encoding} if mapped and mapped.encoding else {}
            yield "reason", len({*texts}) > 1, {"draft": "reason"} | encoding
        yield from self._urgent(column.name, values, texts, examples)

    def _time(
        self,
        values: Sequence[Any],
        texts: Sequence[str | None],
        moments: Sequence[datetime | None],
        name: str,
    ) -> dict[str, Any] | None:
        """Returns how that time is written into the column; None where it is not."""
        if any((text is None) != (at is None) for text, at in zip(texts, moments, strict=True)):
            return None
        pairs = [
            (raw, text, at)
            for raw, text, at in zip(values, texts, moments, strict=True)
            if text is not None and at is not None
        ]
        most = NEAR.total_seconds() if name == "createdAt" else 0.999
        for unit, factor in ((None, 1), ("milliseconds", 1000)):
            if all(
                len(text) > 8
                and text.isdecimal()
                and abs(int(text) / factor - at.timestamp()) <= most
                for _, text, at in pairs
            ):
                return {"as": "epoch"} | ({"unit": unit} if unit else {})
        zones: list[tuple[tzinfo, str | None]] = [(self.zone, None), (UTC, "utc time")]
        mapped = self.mapped.fields.get(name)
        if mapped is not None and mapped.as_ == "utc time":  # in winter both may fit
            zones.reverse()
        for zone, kind in zones:
            for pattern in _PATTERNS:
                if all(_is_at(text, pattern, at.astimezone(zone), most) for _, text, at in pairs):
                    made: dict[str, Any] = {"as": kind} if kind else {}
                    is_plain = pattern == PATTERN or isinstance(pairs[0][0], datetime)
                    return made if is_plain else made | {"pattern": pattern}
        return None

    def _minutes(
        self, column: str, texts: Sequence[str | None], examples: Sequence[Example]
    ) -> Iterator[Fit]:
        minutes = [example.asked["minutes"] for example in examples]
        if None in minutes or None in texts:
            return
        is_varied = len({*minutes}) > 1
        spelt = [str(text) for text in texts]
        if spelt == [str(each) for each in minutes]:
            yield "minutes", is_varied, {"draft": "minutes"}
        elif (step := _step_of(spelt, minutes)) and (
            is_varied or self._is_hinted(column, "minutes", None)
        ):
            yield "minutes", is_varied, {"sql": f":minutes / {step}"}
        lengths = [_LENGTH(text) for text in spelt]
        if all(lengths) and [int(it[1]) * 60 + int(it[2]) for it in lengths if it] == minutes:
            ends = {(it[3] or "") for it in lengths if it}
            if len(ends) == 1 and (form := self.spelling.length):
                seconds = self.spelling.seconds if ends.pop() else ""
                yield "minutes", is_varied, {"sql": form.format(seconds)}

    def _urgent(
        self,
        column: str,
        values: Sequence[Any],
        texts: Sequence[str | None],
        examples: Sequence[Example],
    ) -> Iterator[Fit]:
        spelt: dict[bool, set[str | None]] = {}
        for text, example in zip(texts, examples, strict=True):
            spelt.setdefault(bool(example.asked["isUrgent"]), set()).add(text)
        if any(len(each) > 1 for each in spelt.values()):
            return
        is_varied = len(spelt) == 2 and spelt[True] != spelt[False]
        if not is_varied and len(spelt) == 2:
            return
        mapped = self.mapped.fields.get("isUrgent")
        words, of_mapping = {}, mapped is not None and mapped.yes and mapped.no
        if mapped is not None and of_mapping and _are_codes(spelt, mapped):
            words = {"yes": list(mapped.yes or ()), "no": list(mapped.no or ())}
        elif is_varied and (of_mapping or {*texts} != {"0", "1"}):
            first = {
                bool(example.asked["isUrgent"]): value
                for value, example in zip(values, examples, strict=True)
            }
            words = {"yes": [bits(first[True])], "no": [bits(first[False])]}
        elif of_mapping:
            return
        if is_varied or (self._is_hinted(column, "isUrgent", None) and mapped is not None):
            yield "isUrgent", is_varied, {"draft": "isUrgent"} | words

    def _number(self, texts: Sequence[str | None]) -> Derived | None:
        """Returns how a counted number stands in the column; None where none does."""
        written = (self._counted(texts, counted) for counted in self.counted)
        return next((derived for derived in written if derived is not None), None)

    def _counted(self, texts: Sequence[str | None], counted: CountedNumber) -> Derived | None:
        matches = [NUMBERED(text or "") for text in texts]
        found = [match for match in matches if match is not None]
        if len(found) < len(texts) or [int(it[2]) for it in found] != list(counted.numbers):
            return None
        prefixes, widths = {it[1] for it in found}, {len(it[2]) for it in found}
        name, agree = counted.name, f"{len(texts)} of {len(texts)} examples"
        number = f":{name}" if not counted.ahead else f"(:{name} - {counted.ahead})"
        is_padded = any(it[2].startswith("0") for it in found)
        if prefixes == {""} and not is_padded:
            value = {"made": name} if not counted.ahead else {"sql": f":{name} - 1"}
            return Derived(value, f"the counted number in {agree}")
        prefix, width = max(prefixes), max(widths)
        is_odd = len(prefixes) > 1 or (is_padded and len(widths) > 1)
        if is_odd or len(prefix) > LONGEST_CODE or "'" in prefix:
            return Derived(TODO, "the counted number behind a text of its own", is_told=False)
        is_dated = re.search(r"(?:19|20)\d\d", prefix) is not None
        how = f"{prefix} and the counted number in {agree}"
        how += "; is the year a part of it?" if is_dated else ""
        written = self._padded(number, width if is_padded else 0)
        joined = self.spelling.joined.format(f"'{prefix}'", written)
        return Derived({"sql": joined}, how, not is_dated)

    def _padded(self, number: str, width: int) -> str:
        spelling = self.spelling
        if not width:
            return spelling.digits.format(number)
        return spelling.padded.format(spelling.digits.format(number), width)

    def _constant(self, raw: Any, examples: Sequence[Example], also: str) -> Derived:
        value = bits(raw)
        text = text_of(raw) or ""
        agree = f"the same in {len(examples)} of {len(examples)} examples"
        personal = {word for example in examples for word in example.personal}
        if len(text) > LONGEST_CODE or _is_personal(text.casefold(), personal):
            return Derived(
                TODO, f"{agree}, not shown: a long text, or one of a person", is_told=False
            )
        if not isinstance(value, bool | int | str) or (isinstance(value, str) and value != text):
            value = text
        how = f"; so is {also}" if also else ""
        if len(examples) == 1:
            how = f"one example cannot tell a constant from a value{how}"
            return Derived(value, how, is_sure=False)
        return Derived(value, agree + how, not also)


def _are_codes(spelt: Mapping[bool, Set[str | None]], mapped: ValueSource) -> bool:
    """Returns whether the values are the codes by which the mapping reads urgency."""
    codes = {True: mapped.yes or (), False: mapped.no or ()}
    return all(values <= {None, *map(text_of, codes[is_])} for is_, values in spelt.items())


def _step_of(texts: Sequence[str], minutes: Sequence[int]) -> int | None:
    """Returns of how many minutes one is, where the values count steps of as many each."""
    counts = [int(text) for text in texts if text.isdecimal()]
    if len(counts) < len(texts) or not all(counts):
        return None
    steps = {divmod(length, count) for length, count in zip(minutes, counts, strict=True)}
    step, rest = steps.pop()
    return None if steps or rest or step not in _STEPS else step


def _is_personal(text: str, personal: set[str]) -> bool:
    return any(
        word in text or (len(text) > 2 and text in re.split(r"\W+", word)) for word in personal
    )


def _is_at(text: str, pattern: str, at: datetime, most: float) -> bool:
    """Returns whether the text shows that time, or one that is near by so many seconds."""
    bare = re.sub(r"\.\d+$", "", text)
    if bare == at.strftime(pattern):
        return True
    if most < 1 or "%H" not in pattern or "%d" not in pattern:
        return False
    try:
        # both are on one clock, whose zone does not matter
        shown = datetime.strptime(bare, pattern).replace(tzinfo=UTC)
    except ValueError:
        return False
    return abs((shown - at.replace(tzinfo=UTC)).total_seconds()) <= most
