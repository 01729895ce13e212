"""Guesses fields that are kept as one row each: extra fields, ways to reach a person."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from adapters.base import FieldShape
from adapters.draft.database import Table
from adapters.draft.fields import parameters
from adapters.draft.guesses import Guess, RowsGuess
from adapters.draft.likeness import likeness, tokens
from adapters.draft.links import Links
from adapters.draft.looks import is_code
from adapters.draft.spelling import alias_for, first_of, literal, table_name
from adapters.draft.tables import best_reference, party_of
from adapters.draft.vocabulary import (
    ATTRIBUTE,
    ENTITY,
    NOT_PHONES,
    PHONES,
    PREFERRED,
    TABLE_NAME,
    VALUE,
    WORDS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A table of attributes: how its rows are found, and its columns of names and of values."""

    table: Table
    alias: str
    where: tuple[str, ...]
    code: str
    value: str


class Attributes:
    """The attributes of one resource's rows."""

    def __init__(self, links: Links, resource: str, shapes: Mapping[str, FieldShape]) -> None:
        self.links, self.resource, self.shapes = links, resource, shapes

    def found(self, table: Table, rows: RowsGuess) -> Iterator[tuple[str, Guess]]:
        """Each field that is an attribute of the rows."""
        for each in self.links.catalog.tables:
            kept = self._kept(each, table, rows.alias)
            if kept is not None:
                for field, names, score in self._attributes_in(each, kept.code, kept.value):
                    yield field, self._attribute(kept, field, names, score)

    def _kept(self, each: Table, table: Table, alias: str) -> Kept | None:
        """The table as one of attributes that belongs to the rows."""
        links, catalog = self.links, self.links.catalog
        if each.name in {rows.table.name for rows in links.chosen.values()} or len(table.key) != 1:
            return None
        value = catalog.best(each, VALUE, ("text", "number", "phone", "email"))
        kind = self._table_column(each, table, self.resource)
        code = self._code_column(each, {value or "", kind[0] if kind else ""})
        if value is None or code is None:
            return None
        short, key = alias_for(each.name, [alias]), f"{alias}.{links.q(table.key[0])}"
        where = () if kind is None else (f"{short}.{links.q(kind[0])} = {literal(kind[1])}",)
        column = self._entity(each, is_marked=kind is not None)
        if column is None:
            return None
        where = (*where, f"{short}.{links.q(column)} = {key}")
        return Kept(table=each, alias=short, where=where, code=code, value=value)

    def _entity(self, each: Table, *, is_marked: bool) -> str | None:
        """The column with the key of the record that an attribute belongs to."""
        if is_marked:
            return self.links.catalog.best(each, ENTITY, ("number", "text"))
        found = best_reference(self.links.catalog, each, self.resource, self.links.chosen)
        return None if found is None else found[1]

    def _code_column(self, each: Table, taken: set[str]) -> str | None:
        codes = [
            (self.links.catalog.alike(each, column.name, ATTRIBUTE), column.name)
            for column in each.columns
            if column.name not in taken
            and column.kind == "text"
            and is_code(self.links.catalog.look(each, column.name))
        ]
        score, code = max(codes, default=(0.0, ""))
        return code if score >= 0.6 else None

    def _table_column(self, each: Table, table: Table, resource: str) -> tuple[str, str] | None:
        """The column that says which table a row is about, and how it calls this one."""
        for column in each.columns:
            if self.links.catalog.alike(each, column.name, TABLE_NAME) < 0.7:
                continue
            for code in self.links.catalog.look(each, column.name).codes:
                if (
                    code.lower() == table.name.lower()
                    or party_of(code) == resource
                    or likeness(tokens(code), [self.links.catalog.called(table)]) >= 0.85
                ):
                    return column.name, code
        return None

    def _attributes_in(
        self, table: Table, code: str, value: str
    ) -> Iterator[tuple[str, list[str], float]]:
        """The fields among the attributes, by their names and by what their values look like."""
        names = self.links.catalog.look(table, code).codes
        pairs = list(zip(map(str, table.values(code)), map(str, table.values(value)), strict=True))
        for field, wanted in WORDS[self.resource].items():
            scored = sorted(((likeness(tokens(n), wanted), n) for n in names), reverse=True)
            if field in ("phone", "email"):
                continue
            if scored and scored[0][0] >= 0.7:
                yield field, [scored[0][1]], scored[0][0]
        if self.resource != "clients":
            return
        held = {n: [v for c, v in pairs if c == n and v.strip()] for n in names}
        mails = [n for n, v in held.items() if v and sum("@" in each for each in v) > 0.7 * len(v)]
        phones = [
            n
            for n, v in held.items()
            if v and n not in mails and sum(_digits(each) for each in v) > 0.7 * len(v)
        ]
        phones = [n for n in phones if likeness(tokens(n), NOT_PHONES) < 0.7]
        named = [n for n in phones if likeness(tokens(n), PHONES) >= 0.7]
        if mails:
            yield "email", mails[:1], 0.9
        if named or phones:
            yield "phone", named or phones, 0.9

    def _attribute(self, kept: Kept, field: str, names: list[str], score: float) -> Guess:
        links, each = self.links, kept.table
        look = links.catalog.look(each, kept.code)
        codes = [links.code(look, name, each.column(kept.code).kind) for name in names]
        said = f"= {codes[0]}" if len(codes) == 1 else f"IN ({', '.join(codes)})"
        where = [*kept.where, f"{kept.alias}.{links.q(kept.code)} {said}"]
        where += [sql for sql, _ in links.existing(each, kept.alias)]
        rest = f"FROM {table_name(links.dialect, each)} {kept.alias} WHERE {' AND '.join(where)}"
        what = f"{kept.alias}.{links.q(kept.value)}"
        return Guess(
            sql=first_of(links.dialect, what, rest, self._order(kept)),
            score=min(0.84, 0.5 + 0.35 * score),
            why=f"rows {', '.join(names)} of {each.name}",
            column=f"{each.name}.{kept.value}:{names[0]}",
            parameters=self._parameters(kept, field),
        )

    def _order(self, kept: Kept) -> str:
        """The preferred one first, then the newest."""
        preferred = self.links.catalog.best(kept.table, PREFERRED, ("flag",))
        names = [*([preferred] if preferred else []), *(kept.table.key or (kept.value,))]
        return ", ".join(f"{kept.alias}.{self.links.q(name)} DESC" for name in names)

    def _parameters(self, kept: Kept, field: str) -> dict[str, object]:
        shape = self.shapes[field]
        if shape.values:
            return {}
        look = replace(self.links.catalog.look(kept.table, kept.value), codes=(), pattern=None)
        return parameters(look, shape, f"{self.resource}.{field}")


def _digits(text: str) -> bool:
    return sum(each.isdigit() for each in text) >= 6 and "@" not in text
