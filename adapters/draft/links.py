"""Guesses what stands in other tables: owners, labels of codes, extra fields, sums of lines."""

from collections.abc import Iterable, Iterator, Mapping

from adapters.base import FieldShape
from adapters.draft.database import Table
from adapters.draft.fields import parameters
from adapters.draft.guesses import Guess, RowsGuess
from adapters.draft.likeness import likeness, tokens
from adapters.draft.looks import Look, is_code
from adapters.draft.spelling import alias_for, first_of, literal, quoted, table_name
from adapters.draft.tables import Catalog, Chosen, best_reference
from adapters.draft.vocabulary import (
    ACTIVE,
    DELETED,
    ENDS,
    ID,
    KIND,
    LABEL,
    OWNERSHIPS,
    PARTIES,
    STARTS,
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
        scored = [
            (each, *pair) for pair in wanted if (each := self.reference(table, alias, pair[1]))
        ]
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
            owners = [
                code for code in look.codes if likeness(tokens(code), PARTIES["owners"]) > 0.8
            ]
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
        is_number = kind == "integer" or (kind == "boolean" and code.isdecimal())
        return code if is_number else literal(code)

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
            elif look.kind == "flag" and (
                gone or self.catalog.alike(table, each.name, ACTIVE) >= 0.8
            ):
                value = (look.no if gone else look.yes)[0]
                said = self.flag(value, each.kind)
                is_sure = not each.nullable or not look.blank or not gone
                yield (
                    (f"{name} = {said}" if is_sure else f"COALESCE({name}, {said}) = {said}"),
                    each.name,
                )

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
            explains = self.catalog.table(key.table)
            if key.columns == (column,) and explains is not None:
                return self._labelled(explains, key.targets[0])
        for each in self.catalog.tables:
            if len(each.key) != 1 or each.name == table.name or not 0 < each.rows <= MOST_LABELS:
                continue
            if each.column(each.key[0]).kind != table.column(column).kind:
                continue
            words = [word for word in tokens(column) if word not in ID]
            named = (
                bool(words)
                and len(words) < len(tokens(column))
                and likeness(words, [self.catalog.called(each)]) >= 0.8
            )
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
