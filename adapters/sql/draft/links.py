"""Guesses what stands in other tables: owners, labels of codes, extra fields, sums of lines."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from adapters.base import FieldShape
from adapters.sql.draft.fields import parameters
from adapters.sql.draft.guesses import Guess, RowsGuess
from adapters.sql.draft.likeness import likeness, tokens
from adapters.sql.draft.looks import Look, is_code
from adapters.sql.draft.reflect import Table
from adapters.sql.draft.spelling import alias_for, first_of, literal, quoted, table_name
from adapters.sql.draft.tables import Catalog, Chosen, best_reference, party_of
from adapters.sql.draft.vocabulary import (
    ACTIVE,
    ATTRIBUTE,
    DELETED,
    ENDS,
    ENTITY,
    ID,
    KIND,
    LABEL,
    NOT_PHONES,
    OWNERSHIPS,
    PARTIES,
    PHONES,
    PREFERRED,
    STARTS,
    TABLE_NAME,
    VALUE,
    WORDS,
)

# Rows that a table of labels has at most.
MOST_LABELS = 2_000


class Links:
    """Reads from one resource's rows into other tables, in the words of the engine."""

    def __init__(self, catalog: Catalog, chosen: Mapping[str, Chosen]) -> None:
        self.catalog = catalog
        self.chosen = dict(chosen)
        self.dialect = catalog.dialect

    def q(self, name: str) -> str:
        return quoted(self.dialect, name)

    def reference(self, table: Table, alias: str, resource: str) -> Guess | None:
        """The column that refers to a resource."""
        found = best_reference(self.catalog, table, resource, self.chosen)
        if found is None:
            return None
        score, column, why = found
        sql: str | tuple[str, ...] = f"{alias}.{self.q(column)}"
        for key in table.foreign_keys:
            if column in key.columns and len(key.columns) > 1:
                sql = tuple(f"{alias}.{self.q(each)}" for each in key.columns)
        return Guess(sql=sql, score=score, why=why, column=f"{table.name}.{column}")

    def references(
        self, table: Table, alias: str, wanted: Iterable[tuple[str, str]]
    ) -> dict[str, Guess]:
        """The column of each field that refers to a resource; no column serves two."""
        found: dict[str, Guess] = {}
        scored = [(each, *pair) for pair in wanted if (each := self.reference(table, alias, pair[1]))]
        for guess, field, _ in sorted(scored, key=lambda each: -each[0].score):
            if guess.column not in {each.column for each in found.values()}:
                found[field] = guess
        return found

    def owner(self, table: Table, alias: str, patient: str) -> Guess | None:
        """The owner through a table of who owns which animal; `patient` is the animal's key."""
        best: tuple[float, Guess] | None = None
        for each in self.catalog.tables:
            if each.name in {rows.table.name for rows in self.chosen.values()}:
                continue
            found = self._owner_in(each, alias, patient)
            if found is None:
                continue
            score = found.score + 0.1 * likeness(self.catalog.called(each), OWNERSHIPS)
            if best is None or score > best[0]:
                best = score, found
        return None if best is None else best[1]

    def _owner_in(self, link: Table, alias: str, patient: str) -> Guess | None:
        animal = best_reference(self.catalog, link, "patients", self.chosen)
        client = best_reference(self.catalog, link, "clients", self.chosen)
        if animal is None or client is None or animal[1] == client[1]:
            return None
        short = alias_for(link.name, [alias])
        conditions = [f"{short}.{self.q(animal[1])} = {patient}", *self._in_force(link, short)]
        starts = self.catalog.best(link, STARTS, ("moment", "day", "epoch"))
        order = starts or client[1]
        rest = f"FROM {table_name(self.dialect, link)} {short} WHERE {' AND '.join(conditions)}"
        what, by = f"{short}.{self.q(client[1])}", f"{short}.{self.q(order)} DESC"
        return Guess(
            sql=first_of(self.dialect, what, rest, by),
            score=min(animal[0], client[0]) - 0.1,
            why=f"through {link.name}",
            column=f"{link.name}.{client[1]}",
        )

    def _in_force(self, link: Table, alias: str) -> Iterator[str]:
        """That a row holds today: of an owner, not ended, not deleted."""
        for each in link.columns:
            look = self.catalog.look(link, each.name)
            owners = [code for code in look.codes if likeness(tokens(code), PARTIES["owners"]) > 0.8]
            is_role = is_code(look) and self.catalog.alike(link, each.name, KIND) >= 0.6
            if is_role and owners and len(look.codes) > 1:
                yield f"{alias}.{self.q(each.name)} = {self.code(look, owners[0], each.kind)}"
        ends = self.catalog.best(link, ENDS, ("moment", "day"))
        if ends is not None:
            yield self.unset(alias, link, ends)
        for sql, _ in self.existing(link, alias):
            yield sql

    def unset(self, alias: str, table: Table, column: str, *, is_set: bool = False) -> str:
        """That a time is none; its zero dates are none as well."""
        name, zeros = f"{alias}.{self.q(column)}", self.catalog.look(table, column).zeros
        if not zeros or not self.catalog.look(table, column).is_text:
            return f"{name} IS {'NOT ' if is_set else ''}NULL"
        first = literal(zeros[0])
        return f"COALESCE({name}, {first}) {'<>' if is_set else '='} {first}"

    def code(self, look: Look, code: str, kind: str) -> str:
        return code if kind == "integer" else literal(code)

    def existing(
        self, table: Table, alias: str, taken: Iterable[str] = ()
    ) -> Iterator[tuple[str, str]]:
        """Conditions that leave deleted and inactive rows out, each with its column."""
        for each in table.columns:
            look = self.catalog.look(table, each.name)
            name = f"{alias}.{self.q(each.name)}"
            if each.name in taken:
                continue
            gone = self.catalog.alike(table, each.name, DELETED) >= 0.8
            if gone and look.is_time:
                yield self.unset(alias, table, each.name), each.name
            elif look.kind == "flag" and (gone or self.catalog.alike(table, each.name, ACTIVE) >= 0.8):
                value = (look.no if gone else look.yes)[0]
                said = self.flag(value, each.kind)
                is_sure = not each.nullable or not look.blank or not gone
                yield (f"{name} = {said}" if is_sure else f"COALESCE({name}, {said}) = {said}"), each.name

    def flag(self, value: object, kind: str) -> str:
        if isinstance(value, bool) and (kind != "boolean" or self.dialect != "postgresql"):
            return str(int(value))
        if kind == "text":
            return literal(str(value))
        return literal(value)

    def label(
        self, table: Table, rows: RowsGuess, field: str, place: str, shape: FieldShape
    ) -> Guess | None:
        """A label in a table of its own, for which the rows get a join."""
        own = {each.table.name for each in self.chosen.values()}
        for column in table.columns:
            if column.name in table.key and len(table.key) == 1:
                continue
            words = [each for each in tokens(column.name) if each not in ID]
            resource, _, name = place.partition(".")
            alike = likeness(words, WORDS[resource][name]) if words else 0.0
            target = self._labels(table, column.name)
            if alike < 0.6 or target is None or target[0].name in own:
                continue
            return self._joined(rows, table, column.name, target, place, shape, alike)
        return None

    def _labels(self, table: Table, column: str) -> tuple[Table, str, str] | None:
        """The table that a column's codes are explained in: its key and its label."""
        for key in table.foreign_keys:
            found = self.catalog.table(key.table)
            if key.columns == (column,) and found is not None:
                return self._labelled(found, key.targets[0])
        for each in self.catalog.tables:
            if len(each.key) != 1 or each.name == table.name or not 0 < each.rows <= MOST_LABELS:
                continue
            if each.column(each.key[0]).kind != table.column(column).kind:
                continue
            words = [word for word in tokens(column) if word not in ID]
            named = bool(words) and len(words) < len(tokens(column)) and likeness(
                words, [self.catalog.called(each)]
            ) >= 0.8
            if each.key[0].lower() == column.lower() != "id" or named:
                found = self._labelled(each, each.key[0])
                if found is not None:
                    return found
        return None

    def _labelled(self, table: Table, key: str) -> tuple[Table, str, str] | None:
        label = self.catalog.best(table, LABEL, ("text",), least=0.5)
        return None if label is None or label == key else (table, key, label)

    def _joined(
        self,
        rows: RowsGuess,
        table: Table,
        column: str,
        target: tuple[Table, str, str],
        place: str,
        shape: FieldShape,
        alike: float,
    ) -> Guess:
        labels, key, label = target
        taken = [rows.alias, *(part.split(" ON ")[0][-1] for part in rows.from_.split("JOIN ")[1:])]
        alias = alias_for(labels.name, taken)
        rows.from_ += (
            f" LEFT JOIN {table_name(self.dialect, labels)} {alias}"
            f" ON {alias}.{self.q(key)} = {rows.alias}.{self.q(column)}"
        )
        look = self.catalog.look(labels, label)
        return Guess(
            sql=f"{alias}.{self.q(label)}",
            score=0.6 + 0.3 * alike,
            why=f"{table.name}.{column} is explained in {labels.name}",
            column=f"{labels.name}.{label}",
            own=column,
            parameters=parameters(look, shape, place),
        )

    def attributes(
        self, table: Table, rows: RowsGuess, resource: str, shapes: Mapping[str, FieldShape]
    ) -> Iterator[tuple[str, Guess]]:
        """Fields that are kept as one row each: of extra fields, of ways to reach a person."""
        for each in self.catalog.tables:
            found = self._attribute_table(each, table, rows.alias, resource)
            if found is None:
                continue
            short, conditions, code, value = found
            for field, names, score in self._attributes_in(each, code, value, resource):
                codes = [self.code(self.catalog.look(each, code), n, each.column(code).kind) for n in names]
                said = f"= {codes[0]}" if len(codes) == 1 else f"IN ({', '.join(codes)})"
                where = [*conditions, f"{short}.{self.q(code)} {said}"]
                yield field, self._attribute(each, short, where, value, score, shapes[field], f"{resource}.{field}", names)

    def _attribute_table(
        self, each: Table, table: Table, alias: str, resource: str
    ) -> tuple[str, list[str], str, str] | None:
        """A table of attributes that belongs to the rows: its alias, conditions, code and value."""
        if each.name in {rows.table.name for rows in self.chosen.values()} or not table.key:
            return None
        value = self.catalog.best(each, VALUE, ("text", "number", "phone", "email"))
        codes = [
            (self.catalog.alike(each, c.name, ATTRIBUTE), c.name)
            for c in each.columns
            if is_code(self.catalog.look(each, c.name)) and c.name != value and c.kind == "text"
        ]
        short, key = alias_for(each.name, [alias]), f"{alias}.{self.q(table.key[0])}"
        kind = self._table_column(each, table, resource)
        codes = [pair for pair in codes if kind is None or pair[1] != kind[0]]
        score, code = max(codes, default=(0.0, ""))
        if value is None or score < 0.6:
            return None
        if kind is not None:
            entity = self.catalog.best(each, ENTITY, ("number", "text"))
            if entity is None:
                return None
            return short, [f"{short}.{self.q(kind[0])} = {literal(kind[1])}", f"{short}.{self.q(entity)} = {key}"], code, value
        found = best_reference(self.catalog, each, resource, self.chosen)
        if found is None:
            return None
        return short, [f"{short}.{self.q(found[1])} = {key}"], code, value

    def _table_column(self, each: Table, table: Table, resource: str) -> tuple[str, str] | None:
        """The column that says which table a row is about, and how it calls this one."""
        for column in each.columns:
            if self.catalog.alike(each, column.name, TABLE_NAME) < 0.7:
                continue
            for code in self.catalog.look(each, column.name).codes:
                if code.lower() == table.name.lower() or party_of(code) == resource or likeness(
                    tokens(code), [self.catalog.called(table)]
                ) >= 0.85:
                    return column.name, code
        return None

    def _attributes_in(
        self, table: Table, code: str, value: str, resource: str
    ) -> Iterator[tuple[str, list[str], float]]:
        """The fields among the attributes, by their names and by what their values look like."""
        names = self.catalog.look(table, code).codes
        pairs = list(zip(map(str, table.values(code)), map(str, table.values(value)), strict=True))
        for field, wanted in WORDS[resource].items():
            scored = sorted(((likeness(tokens(n), wanted), n) for n in names), reverse=True)
            if field in ("phone", "email"):
                continue
            if scored and scored[0][0] >= 0.7:
                yield field, [scored[0][1]], scored[0][0]
        if resource != "clients":
            return
        held = {n: [v for c, v in pairs if c == n and v.strip()] for n in names}
        mails = [n for n, v in held.items() if v and sum("@" in each for each in v) > 0.7 * len(v)]
        phones = [n for n, v in held.items() if v and n not in mails and sum(_digits(each) for each in v) > 0.7 * len(v)]
        phones = [n for n in phones if likeness(tokens(n), NOT_PHONES) < 0.7]
        named = [n for n in phones if likeness(tokens(n), PHONES) >= 0.7]
        if mails:
            yield "email", mails[:1], 0.9
        if named or phones:
            yield "phone", named or phones, 0.9

    def _attribute(
        self, each: Table, short: str, where: list[str], value: str, score: float,
        shape: FieldShape, place: str, names: list[str],
    ) -> Guess:
        where += [sql for sql, _ in self.existing(each, short)]
        orders = []
        preferred = self.catalog.best(each, PREFERRED, ("flag",))
        if preferred is not None:
            orders.append(f"{short}.{self.q(preferred)} DESC")
        orders += [f"{short}.{self.q(name)} DESC" for name in each.key or (value,)]
        rest = f"FROM {table_name(self.dialect, each)} {short} WHERE {' AND '.join(where)}"
        look = self.catalog.look(each, value)
        given = parameters(replace(look, codes=(), pattern=None), shape, place)
        given = {} if shape.values else given
        return Guess(
            sql=first_of(self.dialect, f"{short}.{self.q(value)}", rest, ", ".join(orders)),
            score=min(0.84, 0.5 + 0.35 * score),
            why=f"rows {', '.join(names)} of {each.name}",
            column=f"{each.name}.{value}:{names[0]}",
            parameters=given,
        )


def _digits(text: str) -> bool:
    return sum(each.isdigit() for each in text) >= 6 and "@" not in text
