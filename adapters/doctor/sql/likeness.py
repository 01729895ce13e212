"""Compares the rows of rehearsed bookings with those that the desk wrote, column by column."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from adapters.doctor.case import Look
from adapters.doctor.sql.derivation import NUMBERED
from adapters.doctor.sql.desk import (
    VALUES,
    DeskTable,
    Reference,
    Row,
    holds_keys,
    journals,
    key_column,
    named,
    references,
    rows_about,
    spelt,
    tables_of,
    telling,
    text_of,
)
from adapters.doctor.sql.examples import FEW, newest_of_desk
from adapters.doctor.sql.rows import SqlCase
from adapters.doctor.values import LONGEST_CODE
from adapters.documents.document import Place
from adapters.examination import Verdict, counted
from adapters.mapped.session import BookingProgress
from adapters.mapping.models import NAMED, StepMap, WrittenValue
from adapters.sql.adapter import SqlSession
from adapters.sql.inspection import Unlisted

# The desk's appointments that are compared with, and the fewest rows for most rules.
NEWEST, ENOUGH = 200, 20
# The appointments by which a table is looked for that ours lack.
SOME = 20
NEARLY_ALL = 0.95
# The newest numbers of a counter span at most so many times as many: few were left out or deleted.
DENSE = 1.25
# Codes come again and again: values that seldom do are as diverse as ids.
MOST_CODES, ROWS_OF_CODE = 12, 4
# The values of a draft that are each booking's own, whatever the desk's look like.
_OWN = ("reference", "uuid", "reason")
# What a partner may leave out.
_OPTIONAL = ("appointmentTypeId", "reason")


@dataclass(slots=True)
class Compared:
    """A step that writes rows: the desk's rows of its kind, and those of the rehearsals."""

    number: int
    step: StepMap
    table: DeskTable
    kind: dict[str, str]
    theirs: list[Row] = field(default_factory=list)
    ours: list[Row] = field(default_factory=list)

    @property
    def is_pair(self) -> bool:
        """Whether there are rows to compare on both sides."""
        return bool(self.ours) and len(self.theirs) >= FEW


class Likeness:
    """The desk's newest rows of each table that a booking writes, and the rehearsals' rows."""

    def __init__(self, case: SqlCase) -> None:
        self.case, self.booking = case, case.adapter.mapping.booking
        self._forget()

    def _forget(self) -> None:
        self.tables: list[DeskTable] = []
        self.keys: list[Any] = []
        self.compared: dict[int, Compared] = {}
        self.home: tuple[DeskTable, str] | None = None
        self.lacking: list[tuple[Reference, int]] = []
        self._rows: dict[int, list[Row]] = {}
        self._taken = set[int]()
        self.why = "the desk's rows could not be read, so ours were not compared with them"

    async def read(self, session: SqlSession) -> None:
        """Reads the desk's rows; what cannot be read is not compared."""
        self._forget()  # a session may begin again
        adapter, connection = self.case.adapter, session.connection
        try:
            self.tables = spelt(tables_of(connection, adapter.engine.speech), self.booking.steps)
        except Unlisted as error:
            self.why = f"the desk's rows were not compared with ours: {error}"
            return
        mapped = adapter.mapping.resources["appointments"]
        self.home = key_column(self.tables, mapped)
        if self.home is None:
            self.why = "the key of appointments is no column, so the desk's rows were not compared"
            return
        newest = newest_of_desk(session, adapter, NEWEST)
        self.keys = [key for _, key in newest]
        if len(self.keys) < FEW:
            self.why = "too few appointments of the desk to compare ours with"
            return
        self.why = ""
        steps = list(_written_out(self.booking.steps))
        for at, (number, step) in enumerate(steps):
            table = named(self.tables, step.table) if step.insert or step.update else None
            if table is not None:
                kind = dict(_kind(step, [other for _, other in steps]))
                self.compared[at] = Compared(number, step, table, kind)
        for number, each in self.compared.items():
            rows = self._theirs(connection, number, set())
            each.theirs = [row for row in rows if _is_of(row, each.kind)]
        self._lacked(connection)

    def take(self, connection: Connection, progress: BookingProgress) -> None:
        """Reads the rows that a booking has just written, while they stand."""
        self._taken |= progress.taken
        key = progress.made.get(self.booking.appointment)
        if key is not None and not isinstance(key, tuple):  # the database may write it by itself
            self.lacking = [
                (it, found) for it, found in self.lacking if not rows_about(connection, it, [key])
            ]
        for each in self.compared.values():
            if each.number not in progress.taken or not each.theirs:
                continue
            for column, name in self._places(each):
                key = progress.made.get(name)
                if key is None or isinstance(key, tuple):
                    continue
                try:
                    with connection.begin_nested():
                        rows = each.table.rows(connection, column, [key])
                except SQLAlchemyError:
                    continue
                each.ours += [row for row in rows if _is_of(row, each.kind)]
                break

    def judge(self, look: Look) -> None:
        """Names each column in which ours differ in kind, at its line."""
        count = len(look.findings)
        if self.why:
            look.note(self.why, place=("booking",))
            return
        counters = frozenset(step.name for step in self.booking.steps if step.counter and step.name)
        for each in self.compared.values():
            for name in each.table.columns if each.is_pair else ():
                if name not in each.table.key:
                    is_key = holds_keys(self.tables, each.table, name)
                    _Column(each, name, is_key, counters).judge(look)
            if each.is_pair:
                _order_judged(each, look)
        self._alone(look)
        self._missing_kinds(look)
        for reference, found in self.lacking:
            _lack_told(reference, found, min(SOME, len(self.keys)), look)
        rows = sum(len(each.theirs) for each in self.compared.values() if each.is_pair)
        if rows and len(look.findings) == count:
            look.ok(f"like the desk's: compared with {counted(rows, 'row')} of theirs, by column")

    def _alone(self, look: Look) -> None:
        """Names the steps whose rows were compared with none of the desk's."""
        for number, step in enumerate(self.booking.steps):
            if number not in self._taken or not (step.insert or step.update):
                continue
            own = [each for each in self.compared.values() if each.number == number]
            if any(each.is_pair for each in own):
                continue
            why = f"{step.table} is not among the tables whose columns could be read"
            if own and all(each.ours for each in own if len(each.theirs) >= FEW):
                why = f"its appointments have fewer than {FEW} rows there"
            elif own:
                why = "ours were not found again by a key"
            text, place = f"not compared with the desk's: {why}", ("booking", "steps", number)
            look.warning(text, place=place, subject=step.table)

    def _places(self, each: Compared) -> Iterator[tuple[str, str]]:
        """Yields the columns by which rows of a step are found, with the step that has the key."""
        step = each.step
        if step.name is not None and step.insert and len(step.keys) == 1:
            yield step.keys[0], step.name
        if step.name == self.booking.appointment and self.home and each.table is self.home[0]:
            yield self.home[1], step.name
        for column, value in step.values.items():
            if value.made is not None and column in each.table.columns:
                yield column, value.made

    def _theirs(self, connection: Connection, number: int, seen: set[int]) -> list[Row]:
        """Returns the desk's rows in the table of a step, of whatever kind."""
        if number in self._rows or number in seen:
            return self._rows.get(number, [])
        seen.add(number)
        each, rows = self.compared[number], list[Row]()
        column, keys = self._holding(connection, each, seen)
        try:
            with connection.begin_nested():
                rows = each.table.rows(connection, column, keys) if keys else []
        except SQLAlchemyError:
            rows = []
        self._rows[number] = rows
        return rows

    def _holding(
        self, connection: Connection, each: Compared, seen: set[int]
    ) -> tuple[str, Sequence[Any]]:
        """Returns the column by which the desk's rows are found, and the keys that it holds."""
        if self.home and each.table is self.home[0]:
            return self.home[1], self.keys
        for column, name in self._places(each):
            if name == self.booking.appointment:
                return column, self.keys
            if name != each.step.name and (keys := self._keys_of(connection, name, seen)):
                return column, keys
        return "", ()

    def _keys_of(self, connection: Connection, name: str, seen: set[int]) -> list[Any]:
        for number, each in self.compared.items():
            if each.step.name == name and len(each.step.keys) == 1:
                rows = self._theirs(connection, number, seen)
                return [row[each.step.keys[0]] for row in rows if _is_of(row, each.kind)]
        return []

    def _lacked(self, connection: Connection) -> None:
        """Finds the tables in which each appointment of the desk has a row, and ours have none."""
        if self.home is None:
            return
        table, key = self.home
        written = {each.table.name for each in self.compared.values()}
        keys = self.keys[:SOME]
        by_values = journals(connection, self.tables, table, key, keys)
        for reference in chain(references(self.tables, table, key, keys), by_values):
            known = {*written, *(each.table.name for each, _ in self.lacking)}
            if reference.table.name in known or reference.why == VALUES:
                continue
            rows = rows_about(connection, reference, keys)
            found = sum(text_of(each) in rows for each in keys) if rows is not None else 0
            if found == len(keys) or (reference.kind is not None and found):
                self.lacking.append((reference, found))

    def _missing_kinds(self, look: Look) -> None:
        """Names the kinds of rows that each of the desk's appointments has, and ours have not."""
        steps: dict[str, list[Compared]] = defaultdict(list)
        for each in self.compared.values():
            steps[each.table.name].append(each)
        for name, several in steps.items():
            rows = next(
                (self._rows[at] for at, it in self.compared.items() if it is several[0]), []
            )
            ours = [row for each in several for row in each.ours]
            column = next(
                (c for c, made in self._places(several[0]) if made == self.booking.appointment), ""
            )
            groups: dict[str | None, list[Row]] = defaultdict(list)
            for row in rows if column else ():
                groups[text_of(row[column])].append(row)
            most = max(map(len, groups.values()), default=0)
            if most < 2 or not ours or len(groups) < FEW:
                continue
            kind = telling(several[0].table, column, list(groups.values()), most)
            if kind is None:
                continue
            codes = Counter(text_of(row[kind]) for row in rows)
            written = {text_of(row[kind]) for row in ours}
            for code, many in codes.items():
                if many >= NEARLY_ALL * len(groups) and code not in written:
                    text = f"the desk's appointments have a row of {kind} = {code}, ours have none"
                    place = ("booking", "steps", several[-1].number)
                    remedy = f"write one more row into {name}"
                    look.failed(text, place=place, remedy=remedy, subject=f"{name}.{kind}")


def _lack_told(reference: Reference, found: int, many: int, look: Look) -> None:
    """Tells of a table in which the desk's appointments have rows, and ours none."""
    table, is_all = reference.table.name, found == many
    text = f"the desk's {many} newest appointments have a row in {table} each, and ours none"
    if not is_all:
        text = f"{found} of the desk's {many} newest appointments have a row in {table}, ours none"
    remedy = f"write one: insert into {table}, {reference.column}: {{made: NAME}}"
    if reference.kind is not None:
        remedy = f"{remedy}, {': '.join(reference.kind)}"
    verdict = Verdict.FAILED if is_all and many >= SOME else Verdict.WARNING
    where: Place = ("booking", "steps")
    look.judge(verdict, text, place=where, at_key=True, remedy=remedy, subject=table)


def _written_out(steps: Sequence[StepMap]) -> Iterator[tuple[int, StepMap]]:
    """Yields the steps with their numbers; one that is repeated for groups once for each."""
    for number, step in enumerate(steps):
        for item in step.items or ({},):
            values = {
                name: value if value.each is None else item[value.each]
                for name, value in step.values.items()
            }
            yield number, step.model_copy(update={"values": values})


def _kind(step: StepMap, steps: Sequence[StepMap]) -> Iterator[tuple[str, str]]:
    """Yields the constants that tell a step's rows from those of other steps in its table."""
    others = [it for it in steps if it.insert == step.insert and it is not step]
    for name, value in step.values.items():
        if not step.insert or value.origin != "constant":
            continue
        spelt = {text_of(it.values[name].constant) for it in others if name in it.values}
        if spelt - {text_of(value.constant), None}:
            yield name, text_of(value.constant) or ""


@dataclass(slots=True)
class _Column:
    """One column of the rows of a step, in theirs and in ours. A key differs as its row does.

    `counters` are the names of the steps that count.
    """

    each: Compared
    name: str
    is_key: bool
    counters: frozenset[str]

    def judge(self, look: Look) -> None:
        step, column = self.each.step, self.name
        written = step.values.get(column)
        place: Place = ("booking", "steps", self.each.number)
        place += ("values", column) if written is not None else ()
        part = replace(look, subject=f"{self.each.table.name}.{column}", place=place, findings=[])
        theirs = [text_of(row[column]) for row in self.each.theirs]
        ours = [text_of(row[column]) for row in self.each.ours]
        if self._nulls(part, theirs, ours, written):
            look.findings += part.findings
            return
        values = [text for text in theirs if text is not None]
        mine = [text for text in ours if text is not None]
        if values and mine and not _is_own(written):
            self._values(part, values, mine, written)
            self._counted(part, values, mine, written)
        look.findings += part.findings

    def _nulls(
        self,
        part: Look,
        theirs: Sequence[str | None],
        ours: Sequence[str | None],
        written: WrittenValue | None,
    ) -> bool:
        """Judges what is null on one side alone; returns whether that was so."""
        many, empty = counted(len(theirs), "row"), ours.count(None)
        if None not in theirs and empty:
            remedy = f"write {self.name} as the desk does{_common(theirs)}"
            if empty == len(ours):
                part.failed(f"null in ours, and never in {many} of the desk's", remedy=remedy)
            elif written is not None and written.draft in _OPTIONAL:
                text = f"null where a partner names no {written.draft}, and never in {many} of"
                remedy = "see whether the desk can do without it (default_type for a type)"
                part.note(f"{text} the desk's", remedy=remedy)
            else:
                text = f"null in {empty} of {counted(len(ours), 'rehearsed row')}, and never in"
                part.warning(f"{text} {many} of the desk's", remedy=remedy)
            return True
        is_none = all(text is None for text in theirs)
        if is_none and len(theirs) >= ENOUGH and empty < len(ours) and not _is_own(written):
            remedy = "leave it out, unless nothing reads it"
            part.warning(f"has a value in ours, and null in {many} of the desk's", remedy=remedy)
        return is_none

    def _values(
        self, part: Look, theirs: Sequence[str], ours: Sequence[str], written: WrittenValue | None
    ) -> None:
        is_fixed = not self.is_key and (written is None or written.origin == "constant")
        codes = Counter(theirs)
        common, many = codes.most_common(1)[0]
        strange = [text for text in ours if text not in codes]
        told = counted(len(theirs), "row")
        is_few = len(codes) <= min(MOST_CODES, len(theirs) // ROWS_OF_CODE)
        is_coded = is_few and all(len(code) <= LONGEST_CODE for code in codes)
        if len(theirs) < ENOUGH:
            return
        if len(codes) > NEARLY_ALL * len(theirs) and self._is_constant(written, ours):
            text = f"one value in all of ours, and one of its own in each of {told} of the desk's"
            remedy = "is it a counter's or a sequence's number, or made of what is booked?"
            part.warning(text, remedy=remedy)
        elif is_fixed and many > NEARLY_ALL * len(theirs) and common not in ours:
            text = f"one value in {many * 100 // len(theirs)}% of {told} of the desk's"
            remedy = f"write the desk's value{_common(theirs)}, or leave it where it is meant"
            part.warning(f"{text}, and another in ours", remedy=remedy)
        elif is_fixed and is_coded and strange:
            value = f"{strange[0]} " if len(strange[0]) <= LONGEST_CODE else ""
            text = f"{value}is in none of {told} of the desk's, which have"
            shown = ", ".join(sorted(codes))
            part.warning(f"{text} {shown}", remedy="write one of these, or say it to the practice")
        elif not is_fixed or not strange:
            self._format(part, theirs, ours)

    def _is_constant(self, written: WrittenValue | None, ours: Sequence[str]) -> bool:
        """Returns whether each booking writes one value, or leaves what stands for none."""
        if written is not None:
            return written.origin == "constant"
        return {*ours} <= {"", "0"}

    def _counted(
        self, part: Look, theirs: Sequence[str], ours: Sequence[str], written: WrittenValue | None
    ) -> None:
        """Judges numbers of a counter, of which the desk leaves few out, and ours one each."""
        if written is None:
            return
        counters = self.counters & {written.made, *NAMED(written.sql or "")}
        newest, own = _numbers(theirs)[-ENOUGH:], _numbers(ours)
        if not counters or not own or len(newest) < ENOUGH:
            return
        greatest = newest[-1]
        is_dense = greatest - newest[0] < DENSE * ENOUGH
        if is_dense and own[0] == greatest + 2:
            text = f"{own[0]} in ours, and the desk's greatest is {greatest}: one is left out"
            remedy = f"where the counter holds the next number, write `:{min(counters)} - 1`"
            remedy += "; else the desk has deleted the one between"
            part.warning(text, remedy=remedy)

    def _format(self, part: Look, theirs: Sequence[str], ours: Sequence[str]) -> None:
        shapes = Counter(map(_shape, theirs))
        lengths = {len(text) for text in theirs}
        odd = [text for text in ours if _shape(text) not in shapes]
        if len(shapes) <= 3 and odd:
            known = " or ".join(sorted(shapes)) if max(map(len, shapes)) <= LONGEST_CODE else ""
            form = _shape(odd[0])
            text = (
                f"written as {form} in ours" if len(form) <= LONGEST_CODE else "written otherwise"
            )
            more = f", as {known} in {counted(len(theirs), 'row')} of the desk's" if known else ""
            remedy = (
                "write it as the desk does (pattern, yes and no, letter case, an SQL expression)"
            )
            part.warning(f"{text}{more}", remedy=remedy)
        elif len(lengths) == 1 and any(len(text) not in lengths for text in ours):
            length = next(len(text) for text in ours if len(text) not in lengths)
            if not all(map(_is_plain_number, theirs)):
                text = f"{counted(length, 'letter')} in ours, {max(lengths)} in all of the desk's"
                part.warning(text, remedy="write it as long as the desk does, with its zeros")


def _order_judged(each: Compared, look: Look) -> None:
    """Tells of a start and an end that ours have the other way round."""
    spans = [
        [column for column, value in each.step.values.items() if value.draft == draft]
        for draft in ("scheduledAt", "endTime")
    ]
    for first, last in product(*spans):
        pairs = [
            [
                pair
                for row in rows
                if None not in (pair := (text_of(row[first]), text_of(row[last])))
            ]
            for rows in (each.theirs, each.ours)
        ]
        theirs, ours = ([str(one) < str(other) for one, other in some] for some in pairs)
        if len(theirs) < ENOUGH or not ours:
            continue
        ordered, many = sum(theirs), f"{counted(len(theirs), 'row')} of the desk's"
        if len(theirs) - ordered > NEARLY_ALL * len(theirs) and all(ours):
            place = ("booking", "steps", each.number, "values", first)
            text = f"{first} comes before {last} in ours, and behind it in nearly all {many}"
            remedy = "see whether scheduledAt and endTime have changed places"
            subject = f"{each.table.name}.{first}"
            look.warning(text, place=place, remedy=remedy, subject=subject)


def _common(theirs: Sequence[str | None]) -> str:
    """Returns the value that nearly all have, where it is a code that may be shown."""
    code, many = Counter(theirs).most_common(1)[0]
    is_short = code is not None and len(code) <= LONGEST_CODE
    return f" ({code})" if is_short and many > NEARLY_ALL * len(theirs) else ""


def _is_own(written: WrittenValue | None) -> bool:
    """Returns whether it is a value of each booking's own, which the desk has not."""
    return written is not None and (
        written.draft in _OWN or not {*_OWN}.isdisjoint(NAMED(written.sql or ""))
    )


def _numbers(texts: Iterable[str]) -> list[int]:
    """Returns the different numbers at the ends of texts, from the least on."""
    return sorted({int(match[2]) for match in map(NUMBERED, texts) if match})


def _is_of(row: Row, kind: dict[str, str]) -> bool:
    return all((text_of(row[name]) or "") == code for name, code in kind.items() if name in row)


def _is_plain_number(text: str) -> bool:
    """Returns whether a text is a whole number without zeros in front."""
    return re.fullmatch(r"-?(0|[1-9][0-9]*)", text) is not None


def _shape(text: str) -> str:
    """Returns how a text is written: 9 for its digits, a and A for its letters."""
    made = re.sub(r"\d+", "9", text)
    made = re.sub(r"[^\W\d_]+", lambda word: _letters(word[0]), made)
    return re.sub(r"\s+", " ", made)


def _letters(word: str) -> str:
    return "A" if word.isupper() else "a" if word.islower() else "Aa"
