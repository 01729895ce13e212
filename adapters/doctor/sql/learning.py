"""Learns a booking from appointments that the desk has made: which rows it writes, and of what."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from adapters.doctor.learning import Unlearnable
from adapters.doctor.sql.derivation import (
    NUMBERED,
    TODO,
    CountedNumber,
    Derivation,
    Derived,
    MadeKey,
)
from adapters.doctor.sql.desk import (
    CALLED_KEY,
    DeskColumn,
    DeskTable,
    Row,
    bare_name,
    column_of,
    follows,
    key_column,
    leads_to,
    telling,
    text_of,
)
from adapters.doctor.sql.examples import (
    Example,
    Examples,
    RowsAbout,
    RowsBefore,
    desk_appointments,
)
from adapters.doctor.values import LONGEST_CODE
from adapters.mapping.checker import DRAFT
from adapters.mapping.expressions import CLOCK
from adapters.mapping.models import MappingFile
from adapters.sql.adapter import SqlAdapter, SqlSession
from adapters.sql.booking import named_table

# A table with more rows keeps no counters.
MOST_COUNTERS, MOST_COLUMNS = 100, 12
# The most columns in which the rows of a repeated step differ, and what a row without one has.
MOST_VARIED, NULL = 3, Derived(None, "null in all")
# The seconds that one learning may take.
PATIENCE = 60.0
APPOINTMENT, NUMBER = "appointment", "number"
# What a new appointment may be.
TO_COME = {"SCHEDULED", "CONFIRMED"}
# A table, the name of the step that writes a row of it, and the key of that in each example.
Made = tuple[DeskTable, str, list[Any]]
# What a free row has already.
_OF_SLOT = ("schedule", "scheduledAt", "endTime", "minutes", "vetId")
_CONDITIONS = ("appointmentTypeId", "reason", "clientId")


@dataclass(slots=True)
class LearnedGroup:
    """What differs in one row of a repeated step, and when that row is written."""

    values: dict[str, Derived]
    condition: str | None
    doubt: str


@dataclass(slots=True)
class LearnedStep:
    """A step of a booking: what it is, its other words, and what it writes into each column.

    `doubt` says what the examples do not tell of when it happens. It happens for each of `groups`.
    """

    kind: str
    table: str
    words: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Derived] = field(default_factory=dict)
    nulls: list[str] = field(default_factory=list)
    remark: str = ""
    doubt: str = ""
    groups: list[LearnedGroup] = field(default_factory=list)


@dataclass(slots=True)
class Lesson:
    """What was learnt: the steps, of how many examples, the rows that were found, and remarks.

    `doubts` say what is wrong with the examples.
    """

    examples: int
    keys: list[str]
    doubts: list[str] = field(default_factory=list)
    steps: list[LearnedStep] = field(default_factory=list)
    found: list[tuple[str, str, list[int]]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


async def learned(adapter: SqlAdapter, keys: Sequence[str], newest: int) -> Lesson:
    """Returns what the appointments teach; raises Unlearnable or an AdapterError."""
    if adapter.engine.copy is not None:
        raise Unlearnable(
            "the practice's files are read as a copy and cannot be written, so there is no booking"
            " to learn: leave booking out of the mapping"
        )

    patience = max(PATIENCE, adapter.options.timeout)
    options = replace(adapter.options, report=lambda trouble: None, timeout=patience)

    async def flow(session: SqlSession) -> Lesson:
        teacher = _Teacher(session, own, desk_appointments(session, own, keys, newest))
        return teacher.lesson(is_named=bool(keys))

    async with aclosing(SqlAdapter(options)) as own:
        return await own.look(flow)


class _Teacher:
    """Derives the steps of one booking from its examples."""

    def __init__(self, session: SqlSession, adapter: SqlAdapter, found: Examples) -> None:
        self.session, self.mapping, self.found = session, adapter.mapping, found
        self.spelling = adapter.engine.speech.spelling
        self.examples = found.examples
        self.lesson_ = Lesson(len(found.examples), [text_of(it.key) or "" for it in found.examples])
        self.columns = found.table.columns
        self.own_rows = [example.row for example in found.examples]
        mapped = adapter.mapping.resources["appointments"]
        self.mapped, zone = mapped, ZoneInfo(adapter.mapping.zone)
        self.derivation = Derivation(mapped, zone, self.spelling)
        self.resources = dict(_resources(found.tables, adapter.mapping))

    def lesson(self, *, is_named: bool) -> Lesson:
        lesson = self.lesson_
        lesson.doubts += self._doubts(is_named)
        lesson.steps += self._counters()
        self.derivation = replace(self.derivation, uuid=self._uuids())
        one_each, made = [1] * len(self.examples), list[Made]()
        for before in self.found.before:
            why = f"made before: {before.of.name}.{before.column} keeps its key"
            lesson.found.append((before.table.name, why, one_each))
            lesson.steps.append(self._of_before(before, made))
        lesson.found.append((self.found.table.name, "the appointments", one_each))
        lesson.steps += self._of_appointment(made)
        made.append((self.found.table, APPOINTMENT, [example.key for example in self.examples]))
        for about in self.found.about:
            why = f"{about.reference.column}, {about.reference.why}"
            lesson.found.append((about.reference.table.name, why, [len(r) for r in about.rows]))
            steps = list(self._of_rows(about, made))
            names = [name for _, name, _ in made] + [it.name for it in self.derivation.counted]
            whole = as_one(steps, about.reference.table.columns, names)
            lesson.steps += steps if whole is None else [whole]
        for table, resource in self.found.served:
            lesson.remarks.append(
                f"{table} has rows about them and is left out: the mapping serves it as {resource},"
                " which come later; does the desk write one with each new appointment?"
            )
        for name in self.found.unread:
            lesson.remarks.append(f"TODO: {name} could not be read; does the desk write there?")
        self._reference()
        return lesson

    def _doubts(self, is_named: bool) -> Iterator[str]:
        """Yields what makes the examples unfit."""
        if "status" in self.mapped.fields:
            states = [example.status for example in self.examples]
            if not TO_COME & {*states}:
                seen = ", ".join(dict.fromkeys(state or "no known status" for state in states))
                yield (
                    f"TODO: none of them is still to come ({seen}): make three at the desk, then"
                    " run this again."
                )
        if len(self.examples) == 1:
            yield (
                "TODO: one example cannot tell constants from values; name two more that differ in"
                " vet, type, patient, length and urgency."
            )
        if self.mapping.booking.reference is None and not is_named:
            yield (
                "TODO: without `reference` the gateway's own bookings cannot be told from the"
                " desk's: make sure that these are the desk's, or name others with --appointment."
            )

    def _uuids(self) -> list[str]:
        """Returns the first UUID of each appointment's own row, where all have one."""
        for name in self.columns:
            values = [text_of(row[name]) or "" for row in self.own_rows]
            is_uuid = all(re.fullmatch(r"[0-9a-fA-F-]{36}", value) for value in values)
            if is_uuid and len({*values}) == len(values):
                return values
        return []

    def _of_before(self, before: RowsBefore, made: list[Made]) -> LearnedStep:
        """Returns the step for a row that is made before, and adds its keys to those `made`."""
        table = before.table
        name = _name_of(bare_name(table.name), {*DRAFT, *CLOCK, *(name for _, name, _ in made)})
        step = LearnedStep("insert", table.name, {"key": before.key, "name": name})
        self._fill(step, table, before.rows, self.examples, made=made, skipped=before.key)
        step.remark = f"made before: {before.of.name}.{before.column} keeps its key"
        made.append((table, name, before.keys))
        return step

    def _of_appointment(self, made: Sequence[Made]) -> Iterator[LearnedStep]:
        table, key = self.found.table, self.found.key
        insert = LearnedStep("insert", table.name, {"key": key, "name": APPOINTMENT})
        self._fill(insert, table, self.own_rows, self.examples, made=made, skipped=key)
        slot = self._slot_condition()
        if slot is None:
            yield insert
            return
        where, free = slot
        update = LearnedStep("update", table.name, {"where": where, "for": "slot"})
        update.words["name"] = APPOINTMENT
        prepared = {name: {text_of(row[name]) for row in free} for name in self.columns}
        for name, value in insert.values.items():
            group = value.value if isinstance(value.value, dict) else {}
            is_set = bool(free) and None not in prepared[name]
            kept = group.get("draft") in _OF_SLOT and is_set
            alike = not group and prepared[name] == {text_of(value.value)}
            if not kept and not alike and name != key:
                update.values[name] = value
        update.remark = (
            "a free row of diary.slots becomes the appointment; its vet and times stay as they are"
        )
        yield update
        if self.mapping.diary.hours:
            insert.words["for"] = "time"
            insert.remark = "any other time"
            yield insert

    def _slot_condition(self) -> tuple[str, list[Row]] | None:
        """Returns the condition of a free row, and some free rows; None where there are none."""
        table, key = self.found.table, self.found.key
        for source in self.mapping.diary.slots:
            expression = source.key.source[0] if source.key is not None else ""
            place = column_of(self.found.tables, source.from_ or "", expression)
            if place != (table, key):
                continue
            aliases = {*re.findall(r"(\w+)\s*\.", expression)}
            free = source.where or "1 = 1"
            for alias in aliases:
                free = re.sub(rf"\b{alias}\s*\.", "", free)
            quoted = self.session.connection.dialect.identifier_preparer.quote
            rows: list[Row] = []
            named = named_table(table.name, self.columns)
            try:
                with self.session.connection.begin_nested():
                    # nosemgrep: sql-is-never-put-together-as-text - the mapping is the clinic's own
                    which = sa.text(f"({free})".replace(":", r"\:"))
                    statement = sa.select(*named.c).where(which).limit(50)
                    found = self.session.connection.execute(statement).all()
                    rows = [dict(zip(self.columns, row, strict=True)) for row in found]
            except SQLAlchemyError:
                self.lesson_.remarks.append("TODO: the condition of a free row, see diary.slots")
            return f"{quoted(key)} = :slot AND {free}", rows
        return None

    def _of_rows(self, about: RowsAbout, made: list[Made]) -> Iterator[LearnedStep]:
        table, column = about.reference.table, about.reference.column
        before = [it.table for it in self.found.before]
        groups = list(_groups(table, column, about.rows))
        for number, (kind, rows) in enumerate(groups):
            here = [(row, it) for row, it in zip(rows, self.examples, strict=True) if row]
            step = LearnedStep("insert", table.name, remark=kind)
            examples = [example for _, example in here]
            earlier = [
                (of, name, [keys[at] for at, row in enumerate(rows) if row])
                for of, name, keys in made
                if of is about.of or of in before
            ]
            skipped = table.key[0] if len(table.key) == 1 else ""
            if skipped and table.columns[skipped].is_numbered:
                step.words["key"] = skipped
            else:
                skipped = ""
            found = [row for row, _ in here]
            held = (column, about.of)
            self._fill(step, table, found, examples, made=earlier, skipped=skipped, held=held)
            if len(here) < len(rows):
                self._condition(step, rows)
            elif len(table.key) == 1 and any(it.of is table for it in self.found.about):
                name = re.sub(r"\W", "_", bare_name(table.name)).lower()
                step.words["name"] = name if number == 0 else f"{name}_{number + 1}"
                made.append((table, step.words["name"], [row[table.key[0]] for row in found]))
            if about.reference.kind is not None:
                told = f"TODO: is a row written for each, {about.reference.why}?"
                step.doubt = f"{told} {step.doubt}".strip()
            yield step

    def _condition(self, step: LearnedStep, rows: Sequence[Row | None]) -> None:
        """Says when a row is written that only some of the examples have."""
        many = sum(row is not None for row in rows)
        for name in _CONDITIONS if many > 1 else ():  # one may have it by accident
            if [row is not None for row in rows] == [
                example.asked[name] not in (None, "") for example in self.examples
            ]:
                step.words["if"] = name
                return
        step.doubt = f"TODO: only {many} of {len(rows)} examples have it: when?"

    def _fill(
        self,
        step: LearnedStep,
        table: DeskTable,
        rows: Sequence[Row],
        examples: Sequence[Example],
        *,
        made: Sequence[Made] = (),
        skipped: str = "",
        held: tuple[str, DeskTable] | None = None,
    ) -> None:
        """Fills in the values; `held` is the column by which rows were found, and of what table."""
        for name, column in table.columns.items():
            if name == skipped and (column.is_numbered or column.free):
                continue
            leads = leads_to(self.found.tables, table, column)
            to = held[1] if held and held[0] == name else leads and leads[0]
            resource = self.resources.get(bare_name(to.name).lower()) if to else None
            values = [row[name] for row in rows]
            keys = [MadeKey(step_name, its_keys, of is to) for of, step_name, its_keys in made]
            one = self.derivation.derived(column, values, examples, keys, resource)
            if one is None:
                step.nulls.append(name)
            elif one.is_told or not column.free:
                step.values[name] = one
            else:
                step.values[name] = one._replace(value=None)

    def _counters(self) -> Iterator[LearnedStep]:
        """Yields the steps that count numbers of a booking, as far as they are found."""
        for column, values in self._countable():
            known = self.derivation.derived(column, values, self.examples)
            is_open = known is not None and (not known.is_told or not isinstance(known.value, dict))
            matches = [NUMBERED(text_of(value) or "") for value in values]
            numbers = [int(match[2]) for match in matches if match is not None]
            is_whole = len(numbers) == len(values) and max(numbers) > 1
            if column.is_numbered or not is_open or not is_whole:
                continue
            if not follows(numbers, [example.key for example in self.examples]):
                continue
            step = self._counting_step(max(numbers))
            if step is not None:
                before = self.derivation.counted
                step.words["name"] = NUMBER if not before else f"{NUMBER}_{len(before) + 1}"
                ahead = step.words.pop("ahead", 0)
                counted = CountedNumber(step.words["name"], numbers, ahead)
                self.derivation = replace(self.derivation, counted=(*before, counted))
                if len(numbers) == 1:
                    step.remark += "; one example may agree by accident"
                yield step

    def _countable(self) -> Iterator[tuple[DeskColumn, list[Any]]]:
        """Yields the columns that may hold counted numbers, with their values in the examples.

        They are those of appointments that refer to nothing, and the keys of rows of which each
        appointment has one.
        """
        own = self.found.table
        for name, column in own.columns.items():
            if name == self.found.key or not (name in own.foreign or CALLED_KEY(name)):
                yield column, [row[name] for row in self.own_rows]
        for before in self.found.before:
            yield before.table.columns[before.key], before.keys
        for about in self.found.about:
            table, holds = about.reference.table, (about.reference.column,)
            if (
                len(table.key) == 1
                and table.key != holds
                and all(len(it) == 1 for it in about.rows)
            ):
                (key,) = table.key
                yield table.columns[key], [row[key] for (row,) in about.rows]

    def _sequences(self, newest: int) -> tuple[list[str], list[str]]:
        """Returns the sequences that gave the number last, and those that set it aside."""
        connection, last, aside = self.session.connection, list[str](), list[str]()
        try:
            with connection.begin_nested():
                names = sa.inspect(connection).get_sequence_names()
        except (NotImplementedError, SQLAlchemyError):
            return [], []
        quote = connection.dialect.identifier_preparer.quote
        for name in names if self.spelling.last_number else ():
            try:
                with connection.begin_nested():
                    # nosemgrep: sql-is-never-put-together-as-text - the name is in quotes
                    statement = sa.text(self.spelling.last_number.format(quote(name)))
                    row = connection.execute(statement).first()
            except SQLAlchemyError:
                continue
            lowest, highest = row or (1, 0)
            if lowest <= newest <= highest:
                (last if lowest == highest else aside).append(name)
        return last, aside

    def _counting_step(self, newest: int) -> LearnedStep | None:
        """Returns the step that gave the newest example that number."""
        last, aside = self._sequences(newest)
        if last:
            remark = "its last value is the number of the newest example"
            return LearnedStep("sequence", last[0], remark=remark)
        if (step := self._counter_row(newest)) is not None or not aside:
            return step
        doubt = f"TODO: is it {' or '.join(aside)}?"
        remark = "the number of the newest example is among those that it has set aside"
        return LearnedStep("sequence", aside[0], remark=remark, doubt=doubt)

    def _counter_row(self, newest: int) -> LearnedStep | None:
        connection = self.session.connection
        for table in self.found.tables:
            numeric = [it.name for it in table.columns.values() if it.kind == "number"]
            if not self._may_count(table) or not numeric:
                continue
            named = named_table(table.name, table.columns)
            try:
                with connection.begin_nested():
                    rows = connection.execute(sa.select(*named.c).limit(MOST_COUNTERS + 1)).all()
            except SQLAlchemyError:
                continue
            if not 0 < len(rows) <= MOST_COUNTERS:
                continue
            for column, ahead in product(numeric, (0, 1)):
                at = list(table.columns).index(column)
                fits = [row for row in rows if text_of(row[at]) == str(newest + ahead)]
                if len(fits) == 1 and (column,) != table.key:
                    made = self._counting(table, column, fits[0], rows, ahead)
                    if made is not None:
                        return made
        return None

    def _may_count(self, table: DeskTable) -> bool:
        """Returns whether a table may keep counters: one of few columns that nothing maps."""
        taken = {about.reference.table.name for about in self.found.about}
        taken |= {before.table.name for before in self.found.before}
        froms = " ".join(it.from_ or "" for it in self.mapping.resources.values()).lower()
        name = bare_name(table.name).lower()
        is_mapped = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", froms) is not None
        is_own = table.name in taken or table is self.found.table
        return not is_own and not is_mapped and len(table.columns) <= MOST_COLUMNS

    def _counting(
        self, table: DeskTable, column: str, row: Any, rows: Sequence[Any], ahead: int
    ) -> LearnedStep | None:
        quote = self.session.connection.dialect.identifier_preparer.quote
        for number, (name, kind) in enumerate(table.columns.items()):
            value = text_of(row[number]) or ""
            is_one = [text_of(each[number]) for each in rows].count(value) == 1
            is_code = value and len(value) <= LONGEST_CODE and not {"'", "\\"} & {*value}
            if name != column and is_one and is_code:
                spelt = value if kind.kind == "number" else f"'{value}'"
                words = {"where": f"{quote(name)} = {spelt}", "column": column}
                which = "the next number" if ahead else "the number"
                remark = f"its row has {which} of the newest example"
                return LearnedStep("counter", table.name, words | {"ahead": ahead}, remark=remark)
        if len(rows) == 1:
            words = {"column": column, "where": "1 = 1"}
            return LearnedStep(
                "counter", table.name, words | {"ahead": ahead}, remark="its only row"
            )
        return None

    def _reference(self) -> None:
        """Says where the gateway's reference may stand, of which the desk's rows know nothing."""
        nulls = [
            name
            for step in self.lesson_.steps
            if step.table == self.found.table.name
            for name in step.nulls
            if self.columns[name].kind == "text"
        ]
        if self.mapping.booking.reference is None:
            said = "TODO: write {draft: reference} into a column with room for 16 letters, and say"
            near = f"; null in all examples: {', '.join(dict.fromkeys(nulls))}" if nulls else ""
            self.lesson_.remarks.append(f"{said} under `reference` how it is read{near}")


def as_one(
    steps: Sequence[LearnedStep], columns: Iterable[str], made: Collection[str]
) -> LearnedStep | None:
    """Returns one repeated step in place of those for rows that are alike but for a few columns.

    It is None where they are too different, where later steps need one of them, or where nothing
    tells the rows apart. `made` are the names of steps.
    """
    is_open = any("name" in step.words or step.remark.startswith(TODO) for step in steps)
    if len(steps) < 2 or is_open:
        return None
    written = [name for name in columns if any(name in step.values for step in steps)]
    kinds = {name: [step.values.get(name, NULL) for step in steps] for name in written}
    varied = [name for name, each in kinds.items() if len({repr(it.value) for it in each}) > 1]
    taken = {*DRAFT, *CLOCK, *made, "if"}
    names = {name: _name_of(name, taken) for name in varied}
    if not 0 < len(varied) <= MOST_VARIED or len({*names.values()}) < len(names):
        return None
    first = steps[0]
    groups = [
        LearnedGroup(
            {names[name]: step.values.get(name, NULL) for name in varied},
            step.words.get("if"),
            step.doubt,
        )
        for step in steps
    ]
    values = {
        name: Derived({"each": names[name]}, "")
        if name in names
        else min(each, key=lambda it: it.is_told and it.is_sure)
        for name, each in kinds.items()
    }
    words = {word: value for word, value in first.words.items() if word != "if"}
    nulls = [name for name in first.nulls if name not in written]
    return replace(first, words=words, values=values, nulls=nulls, doubt="", groups=groups)


def _name_of(written: str, taken: Collection[str]) -> str:
    """Returns a name for a table or column; those `taken` have a meaning in a booking already."""
    name = re.sub(r"\W", "_", written).lower()
    return f"its_{name}" if name in taken else name


def _resources(tables: Sequence[DeskTable], mapping: MappingFile) -> Iterator[tuple[str, str]]:
    for name in ("vets", "clients", "patients", "appointmentTypes"):
        mapped = mapping.resources.get(name)
        place = key_column(tables, mapped) if mapped is not None else None
        if place is not None:
            yield bare_name(place[0].name).lower(), name


def _groups(
    table: DeskTable, column: str, rows: Sequence[Sequence[Row]]
) -> Iterator[tuple[str, list[Row | None]]]:
    """Yields the kinds of rows that one appointment has in a table, told apart by a column."""
    most = max(map(len, rows))
    if most == 1:
        yield "", [each[0] if each else None for each in rows]
        return
    name = telling(table, column, rows, most)
    if name is None:
        for number in range(most):
            kind = f"TODO: row {number + 1} of {most}: no column tells them apart"
            yield kind, [each[number] if len(each) > number else None for each in rows]
        return
    ordered = dict.fromkeys(text_of(row[name]) for each in rows for row in each)
    for value in ordered:
        picked = [next((row for row in each if text_of(row[name]) == value), None) for each in rows]
        yield f"{name} tells the rows apart", picked
