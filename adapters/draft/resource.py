"""Guesses one resource's rows: the columns of its table, then what is beside it in others."""

from collections.abc import Callable
from dataclasses import replace

from adapters.base import Shapes
from adapters.draft.attributes import Attributes
from adapters.draft.database import Column, Table
from adapters.draft.fields import columns_of
from adapters.draft.guesses import Guess, RowsGuess
from adapters.draft.likeness import likeness
from adapters.draft.links import Links
from adapters.draft.spelling import alias_for, literal, number, table_name
from adapters.draft.tables import Chosen, best_reference
from adapters.draft.vocabulary import WORDS

# Fields whose codes are often explained in a table of their own.
LABELLED = ("species", "breed", "category", "unit", "location", "supplier", "status", "color")


class ResourceGuess:
    """One resource's rows, filled step by step: the columns first, then what is elsewhere."""

    def __init__(self, links: Links, resource: str, found: Chosen, shapes: Shapes) -> None:
        self.links, self.catalog = links, links.catalog
        self.resource, self.found, self.table = resource, found, found.table
        self.shapes = shapes[resource]
        alias = alias_for(found.table.name, ())
        self.rows = RowsGuess(
            table=found.table.name,
            score=found.score,
            from_=f"{table_name(links.dialect, found.table)} {alias}",
            alias=alias,
            others=found.others,
            key=key_of(links, found.table, alias),
        )

    @property
    def fields(self) -> dict[str, Guess]:
        return self.rows.fields

    def guessed(self, special: Callable[["ResourceGuess"], None] | None) -> RowsGuess:
        """The rows; `special` is what is known of this resource alone."""
        self._references()
        self._labels()
        own = {name: each for name, each in self.shapes.items() if "[]." not in name}
        taken = {each.column.partition(".")[2] for each in self.fields.values()}
        taken |= set(self.table.key) if len(self.table.key) == 1 else set()
        taken |= {self.found.kind} if self.found.kind else set()
        found = columns_of(self.catalog, self.table, self.rows.alias, self.resource, own, taken)
        self.rows.fields = {**found, **self.fields}
        self._key_as_text()
        self._elsewhere()
        if special is not None:
            special(self)
        self._never_changed()
        self._where()
        order = [*self.shapes]
        self.rows.fields = dict(sorted(self.fields.items(), key=lambda each: order.index(each[0])))
        return self.rows

    def _references(self) -> None:
        wanted = [
            (field, shape.refers)
            for field, shape in self.shapes.items()
            if shape.refers and "[]." not in field
        ]
        self.fields.update(self.links.references(self.table, self.rows.alias, wanted))

    def _key_as_text(self) -> None:
        """A key that people read: an article's number."""
        key = self.table.key
        if len(key) != 1 or self.table.column(key[0]).kind != "text":
            return
        for field in ("reference", "number"):
            wanted = WORDS[self.resource].get(field, ())
            if field not in self.fields and self.catalog.alike(self.table, key[0], wanted) >= 0.6:
                self.fields[field] = Guess(
                    sql=self.column(key[0]),
                    score=0.7,
                    why="the key",
                    column=f"{self.table.name}.{key[0]}",
                )

    def _labels(self) -> None:
        for field in LABELLED:
            shape = self.shapes.get(field)
            if shape is not None:
                place = f"{self.resource}.{field}"
                found = self.links.label(self.table, self.rows, field, place, shape)
                if found is not None:
                    self.fields[field] = found

    def _elsewhere(self) -> None:
        """What one row each of a table of attributes holds."""
        found = Attributes(self.links, self.resource, self.shapes).found(self.table, self.rows)
        for field, each in found:
            if field not in self.fields or self.fields[field].score < each.score - 0.1:
                self.fields[field] = each

    def _never_changed(self) -> None:
        """A record without a change is as old as its creation: else `updatedSince` misses it."""
        changed, made = self.fields.get("updatedAt"), self.fields.get("createdAt")
        if changed is None or made is None or changed.parameters != made.parameters:
            return
        look = self.catalog.look(self.table, changed.column.partition(".")[2])
        given = str(changed.sql)
        for zero in look.zeros if look.is_text else ():
            given = f"NULLIF({given}, {literal(zero)})"
        if look.blank or look.zeros:
            self.fields["updatedAt"] = replace(changed, sql=f"COALESCE({given}, {made.sql})")

    def _where(self) -> None:
        used = {each.column.partition(".")[2] for each in self.fields.values()}
        if self.found.kind is not None:
            self._kind(self.found.kind)
        self.rows.where += self.links.existing(self.table, self.rows.alias, used)

    def _kind(self, kind: str) -> None:
        look = self.catalog.look(self.table, kind)
        codes = [self.links.code(look, e, self.table.column(kind).kind) for e in self.found.codes]
        said = f"= {codes[0]}" if len(codes) == 1 else f"IN ({', '.join(codes)})"
        seen = f"{kind} has {', '.join(self.found.kinds)}"
        self.rows.where.append((f"{self.rows.alias}.{self.links.q(kind)} {said}", seen))

    def column(self, name: str) -> str:
        return f"{self.rows.alias}.{self.links.q(name)}"

    def child(self, words: tuple[tuple[str, ...], ...]) -> tuple[Table, str, float] | None:
        own = {each.table.name for each in self.links.chosen.values()}
        found = []
        for each in self.catalog.tables:
            link = best_reference(self.catalog, each, self.resource, self.links.chosen)
            alike = likeness(self.catalog.called(each), words)
            if each.name not in own and link is not None and alike >= 0.5:
                found.append((0.5 * alike + 0.5 * link[0], each.name, link[1]))
        if not found:
            return None
        score, name, column = max(found)
        table = self.catalog.table(name)
        return None if table is None else (table, column, score)

    def number(self, each: Guess) -> str:
        name, _, column = each.column.partition(".")
        table = self.catalog.table(name)
        sql = str(each.sql)
        is_text = table is not None and self.catalog.look(table, column).is_text
        return number(sql, is_text=is_text and not sql.startswith("SELECT"))


def in_brackets(sql: str) -> str:
    return f"({sql})" if sql.startswith("SELECT") else sql


def key_of(links: Links, table: Table, alias: str) -> Guess:
    """The key of a table's rows: several columns as a list, a UUID as it is, long texts hashed."""
    names = table.key or next(iter(table.unique), ()) or (table.columns[0].name,)
    why = "primary key" if table.key else "no primary key was found; it must be unique"
    sql = tuple(f"{alias}.{links.q(each)}" for each in names)
    column = f"{table.name}.{names[0]}"
    score = 0.95 if table.key else 0.45
    if len(sql) > 1:
        return Guess(sql=sql, score=score, why=why, column=column)
    look, kind = links.catalog.look(table, names[0]), table.column(names[0])
    given = {}
    if look.kind == "uuid":
        is_unique = bool(table.key) or tuple(names) in table.unique
        given = {"as": "native id"} if is_unique else {"as": "hashed id"}
    elif kind.kind == "text" and (look.longest > 8 or _wide(kind)):
        given = {"as": "hashed id"}
    return Guess(sql=sql[0], score=score, why=why, column=column, parameters=given)


def _wide(column: Column) -> bool:
    return column.length is not None and column.length > 8
