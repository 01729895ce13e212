"""Holds a table under a short name, with what it is joined to, and how its columns are spelt."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from adapters.draft.columns import TIMES, Profile
from adapters.draft.database import Table
from adapters.draft.vocabulary import PHRASES, Phrases, Tokens, likeness, tokens

if TYPE_CHECKING:
    from adapters.draft.tables import Catalog

# Words of a column that says who did something.
_BY = frozenset(("by", "par", "von", "por", "door", "user"))


@dataclass(frozen=True, slots=True)
class Guess:
    """A value of a row: the SQL (several columns of one value as a tuple) and its converter.

    `column` is the column that decides it, as TABLE.COLUMN. `own` is the record's own column, where
    another table explains it. `proof` is the law by which the data prove it, empty where none does.
    `standing` is how it came to be written without one: confirmed, or accepted as it is.
    """

    sql: str | tuple[str, ...]
    score: float
    why: str
    column: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    own: str = ""
    proof: str = ""
    standing: str = ""

    @property
    def is_written(self) -> bool:
        """Whether it goes into the mapping, and not only into a comment."""
        return bool(self.proof or self.standing)

    @property
    def table(self) -> str:
        """The name of the table in `column`."""
        return self.column.partition(".")[0]

    @property
    def name(self) -> str:
        """The name of the column, without its table's."""
        return self.column.partition(".")[2]

    @property
    def value(self) -> Any:
        """The SQL and the converter, as a mapping has them."""
        sql = list(self.sql) if isinstance(self.sql, tuple) else self.sql
        return {"source": sql, **self.parameters} if self.parameters else sql


@dataclass(frozen=True, slots=True, eq=False)
class JoinedTable:
    """Another table with one row for each row: by which columns it is found."""

    source: "TableSource"
    own: str
    key: str
    outer: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TableSource:
    """A table under a short name, in the words of its engine, and what its columns are like.

    `called` are the words of its name, and `words` those of each column's, without their prefix.
    `kind` is the column that tells kinds of rows apart, and `codes` are those of this source's
    rows, which hold the `resource`. A column of a table that is joined is called `TABLE.COLUMN`.
    """

    catalog: "Catalog"
    table: Table
    called: Tokens
    words: Mapping[str, Tokens]
    profiles: Mapping[str, Profile]
    alias: str = ""
    kind: str | None = None
    codes: tuple[str, ...] = ()
    resource: str = ""
    joins: tuple[JoinedTable, ...] = ()

    def __str__(self) -> str:
        joined = (
            f" {'LEFT ' * join.outer}JOIN {join.source}"
            f" ON {join.source.column(join.key)} = {self.column(join.own)}"
            for join in self.joins
        )
        return f"{self.named}{''.join(joined)}"

    @property
    def named(self) -> str:
        """The table by itself, under its short name."""
        schema = f"{self.quoted(self.table.schema)}." if self.table.schema else ""
        return f"{schema}{self.quoted(self.table.name)} {self.alias}"

    @property
    def all_codes(self) -> tuple[str, ...]:
        """All that the column of kinds has in the whole table."""
        whole = self.catalog.named(self.table.name)
        return whole.profiles[self.kind].codes if whole and self.kind else ()

    @property
    def part(self) -> list[str]:
        """The conditions of its kind of rows."""
        return [self.is_one_of(self.kind, self.codes)] if self.kind else []

    @property
    def may_hold(self) -> bool:
        """Whether it has so many columns that it may hold a resource whatever it is called."""
        return self.table.rows > 1 and len(self.table.columns) >= 5

    def reference(self, resource: str, *conditions: str) -> Guess | None:
        """Returns the column that most likely refers to a resource, or all columns of its key.

        `conditions` tell which rows are meant.
        """
        return self.catalog.relations.reference(self, resource, *conditions)

    @property
    def single_key(self) -> tuple[str, ...]:
        """The only column of the table's key; empty where it has several or no key."""
        return self.table.key if len(self.table.key) == 1 else ()

    def column(self, name: str) -> str:
        for join in self.joins:
            far, _, its = name.partition(".")
            if its and far == join.source.table.name:
                return join.source.column(its)
        return f"{self.alias}.{self.quoted(name)}"

    def quoted(self, name: str) -> str:
        """Returns the name as SQL, in quotes only where it needs them."""
        database = self.catalog.database
        preparer = database.dialect.identifier_preparer
        folded = name if database.speech.folds_names else name.lower()
        return name if preparer.quote(folded) == folded else str(preparer.quote_identifier(name))

    def is_one_of(self, name: str, codes: Iterable[str]) -> str:
        """Returns the condition that the column has one of the codes."""
        spelt = [literal(code, self.table.columns[name].kind) for code in codes]
        test = f"= {spelt[0]}" if len(spelt) == 1 else f"IN ({', '.join(spelt)})"
        return f"{self.column(name)} {test}"

    def unset(self, name: str, *, is_set: bool = False) -> str:
        """Returns the condition that a time is (not) set; its zero dates count as not set."""
        column, profile = self.column(name), self.profiles[name]
        if not profile.zeros or not profile.is_text:
            return f"{column} IS {'NOT ' if is_set else ''}NULL"
        zero = literal(profile.zeros[0])
        return f"COALESCE({column}, {zero}) {'<>' if is_set else '='} {zero}"

    def flag(self, name: str, *, is_yes: bool = True) -> str:
        """Returns how a flag says yes, or no."""
        value = self.profiles[name].flag[not is_yes]
        if not isinstance(value, bool):
            return literal(value, self.table.columns[name].kind)
        is_native = self.catalog.database.dialect.supports_native_boolean
        return str(value).upper() if is_native else str(int(value))

    def existing(self, taken: Iterable[str] = ()) -> Iterator[str]:
        """Yields the conditions that leave deleted and inactive rows out.

        Who deleted a row is no condition.
        """
        for name, profile in self.profiles.items():
            gone = self.alike(name, PHRASES["deleted"]) >= 0.8
            if name in taken or _BY & {*self.words[name]}:
                continue
            if gone and profile.kind in TIMES:
                yield self.unset(name)
            elif profile.kind == "flag" and (gone or self.alike(name, PHRASES["active"]) >= 0.8):
                value, column = self.flag(name, is_yes=not gone), self.column(name)
                is_sure = not self.table.columns[name].nullable or not profile.blank or not gone
                yield f"{column if is_sure else f'COALESCE({column}, {value})'} = {value}"

    def select(self, what: str, *conditions: str, first_by: str = "") -> str:
        """Returns a sub-select, of one row where it has an order; it is not run here."""
        top = self.catalog.database.speech.first_row if first_by else ""
        what = f"{top} {what}" if top else what
        sql = " ".join(("SELECT", what, "FROM", str(self), "WHERE", " AND ".join(conditions)))
        if first_by:
            sql += f" ORDER BY {first_by}" + ("" if top else " LIMIT 1")
        return sql

    def beside(self, *taken: str) -> "TableSource":
        """Returns the same table under a short name that is not taken."""
        used, aliases = set(taken), []
        for join in (None, *self.joins):
            own = join.source.table.name if join else self.table.name
            letters = [sign.lower() for sign in own if sign.isascii() and sign.isalpha()] or ["t"]
            free = (name for name in [*letters, *map(chr, range(97, 123))] if name not in used)
            aliases.append(next(free, f"{letters[0]}{len(used)}"))
            used.add(aliases[-1])
        joins = tuple(
            replace(join, source=replace(join.source, alias=alias))
            for join, alias in zip(self.joins, aliases[1:], strict=True)
        )
        return replace(self, alias=aliases[0], joins=joins)

    @property
    def aliases(self) -> tuple[str, ...]:
        """The short names that are taken in its FROM."""
        return (self.alias, *(join.source.alias for join in self.joins))

    def alike(self, column: str, phrases: Phrases) -> float:
        """Returns how alike a column is to the phrases, with or without its prefix, from 0 to 1."""
        bare = column.rpartition(".")[2] if self.joins else column
        return max(likeness(tokens(bare), phrases), likeness(self.words[column], phrases))

    def best(
        self,
        phrase: str,
        kinds: Iterable[str] = (),
        least: float = 0.6,
        among: Iterable[str] | None = None,
    ) -> str | None:
        """Returns the column most like one of PHRASES, of those that look like one of the kinds."""
        scored = [
            (self.alike(name, PHRASES[phrase]), -place, name)
            for place, name in enumerate(self.profiles if among is None else among)
        ]
        for score, _, name in sorted(scored, reverse=True):
            if score < least:
                return None
            if not kinds or self.profiles[name].kind in kinds:
                return name
        return None

    def guess(
        self,
        name: str,
        score: float,
        why: str,
        parameters: Mapping[str, Any] | None = None,
        sql: str | tuple[str, ...] = (),
    ) -> Guess:
        """Returns a guess about a column: its value, or that of the SQL."""
        place = f"{self.table.name}.{name}"
        return Guess(sql or self.column(name), score, why, place, parameters or {})


def literal(value: object, kind: str = "text") -> str:
    """Returns a code as SQL, for a column of that kind."""
    text = str(value)
    if kind == "integer" or (kind == "boolean" and text.isdecimal()):
        return text
    return "'" + text.replace("'", "''") + "'"
