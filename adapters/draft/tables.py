"""Guesses which table holds which resource, and which column refers to another table's rows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from adapters.base import FieldShape, Shapes
from adapters.draft import vocabulary
from adapters.draft.columns import TIMES, Profile, profile_of
from adapters.draft.database import Database, Table
from adapters.draft.vocabulary import PHRASES, Phrases, Tokens, likeness, tokens, without_prefix

# The least score of a table for a resource.
ENOUGH = 0.42
# The least likeness of a name that is itself in the vocabulary, be it in the plural.
EXACT = 0.95


@dataclass(frozen=True, slots=True)
class Guess:
    """A value of a row: the SQL (several columns of one value as a tuple) and its converter.

    `column` is the column that decides it, as TABLE.COLUMN. `own` is the record's own column, where
    another table explains it.
    """

    sql: str | tuple[str, ...]
    score: float
    why: str
    column: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    own: str = ""

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
class TableSource:
    """A table under a short name, in the words of its engine, and what its columns are like.

    `called` are the words of its name, and `words` those of each column's, without their prefix.
    """

    catalog: "Catalog"
    table: Table
    called: Tokens
    words: Mapping[str, Tokens]
    profiles: Mapping[str, Profile]
    alias: str = ""

    def __str__(self) -> str:
        schema = f"{self.quoted(self.table.schema)}." if self.table.schema else ""
        return f"{schema}{self.quoted(self.table.name)} {self.alias}"

    @property
    def single_key(self) -> tuple[str, ...]:
        """The only column of the table's key; empty where it has several or no key."""
        return self.table.key if len(self.table.key) == 1 else ()

    def column(self, name: str) -> str:
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
        """Yields the conditions that leave deleted and inactive rows out."""
        for name, profile in self.profiles.items():
            gone = self.alike(name, PHRASES["deleted"]) >= 0.8
            if name in taken:
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
        letters = [sign.lower() for sign in self.table.name if sign.isascii() and sign.isalpha()]
        letters = letters or ["t"]
        free = (name for name in [*letters, *map(chr, range(97, 123))] if name not in taken)
        return replace(self, alias=next(free, f"{letters[0]}{len(set(taken))}"))

    def alike(self, column: str, phrases: Phrases) -> float:
        """Returns how alike a column is to the phrases, with or without its prefix, from 0 to 1."""
        return max(likeness(tokens(column), phrases), likeness(self.words[column], phrases))

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
            if not kinds or self.profiles[name].kind in kinds
        ]
        score, _, name = max(scored, default=(0.0, 0, ""))
        return name if score >= least else None

    def reference(self, resource: str) -> Guess | None:
        """Returns the column that most likely refers to a resource, or all columns of its key."""
        target = self.catalog.chosen.get(resource)
        if target is None:
            return None
        own = target.source.table
        scored = [
            (*_reference(self, name, resource, target), name)
            for name in self.table.columns
            if self.table.name != own.name or name not in own.key
        ]
        score, why, name = max(scored, key=lambda entry: entry[0], default=(0.0, "", ""))
        if score < 0.5:
            return None
        keys = (key["constrained_columns"] for key in self.table.foreign_keys)
        together = next((key for key in keys if name in key and len(key) > 1), ())
        return self.guess(name, score, why, sql=tuple(map(self.column, together)))

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


@dataclass(slots=True)
class Rows:
    """The table of a resource, or of a list in its records, and what is guessed of its rows.

    `place` is where the vocabulary has the fields: a resource, or `resource.list`. In a table of
    all parties `kind` is the column that tells them apart, and `codes` are those of this resource.
    For a list `parent` holds the key of the record. `joins` are the tables that explain codes, and
    `where` holds conditions.
    """

    place: str
    shapes: Mapping[str, FieldShape]
    source: TableSource
    score: float
    others: tuple[str, ...] = ()
    kind: str | None = None
    codes: tuple[str, ...] = ()
    joins: str = ""
    where: list[str] = field(default_factory=list)
    parent: Guess | None = None
    fields: dict[str, Guess] = field(default_factory=dict)
    lists: dict[str, "Rows"] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns by which other tables refer to a row."""
        return self.source.table.key or (next(iter(self.source.table.columns)),)

    @property
    def key(self) -> str:
        """The first of them, or the only one, as SQL."""
        return self.source.column(self.keys[0])


class Catalog:
    """A database, with what its names say and what its values look like.

    `chosen` has the table of each resource that has one. `others` are the tables that are no
    resource's own.
    """

    def __init__(self, database: Database, shapes: Shapes) -> None:
        self.database = database
        names = without_prefix([table.name for table in database.tables])
        self.sources: list[TableSource] = []
        for table in database.tables:
            words = without_prefix([*table.columns], table.name)
            profiles = {name: profile_of(column) for name, column in table.columns.items()}
            source = TableSource(self, table, names[table.name], words, profiles)
            self.sources.append(source.beside())
        self.chosen = _choose(self.sources, shapes)
        own = {rows.source.table.name for rows in self.chosen.values()}
        self.others = [source for source in self.sources if source.table.name not in own]

    def named(self, name: str) -> TableSource | None:
        return next((source for source in self.sources if source.table.name == name), None)

    def number(self, guess: Guess) -> str:
        """Returns the guess as a number in SQL, out of a text such as '1 234,50' too."""
        sql = f"({guess.sql})" if str(guess.sql).startswith("SELECT") else str(guess.sql)
        source, (column, _, attribute) = self.named(guess.table), guess.name.partition(":")
        is_raw = attribute or not sql.startswith("(")
        if source is None or not is_raw or not source.profiles[column].is_text:
            return sql
        pointed = f"REPLACE(REPLACE({sql}, ' ', ''), ',', '.')"
        return f"CAST(NULLIF({pointed}, '') AS DECIMAL(12, 2))"


def _choose(sources: list[TableSource], shapes: Shapes) -> dict[str, Rows]:
    scored = [
        (score, resource, source.table.name, source)
        for source in sources
        for resource in vocabulary.TABLES
        if (score := _score(source, resource)) >= ENOUGH
    ]
    scored.sort(key=lambda entry: entry[:3], reverse=True)
    chosen: dict[str, Rows] = {}
    taken: dict[str, str | None] = {}
    for score, resource, name, source in scored:
        kind, codes = _part(source, resource)
        if resource in chosen or (name in taken and (not codes or taken[name] != kind)):
            continue
        others = [other for _, owner, other, _ in scored if owner == resource and other != name]
        taken[name] = kind
        rows = Rows(resource, shapes[resource], source, score, tuple(others[:3]), kind, codes)
        chosen[resource] = rows
    return chosen


def _score(source: TableSource, resource: str) -> float:
    """Returns how likely it is that the table holds the resource, by its name and its columns."""
    words, table = source.called, source.table
    named = vocabulary.TABLES
    name = 0.0 if _is_anothers(words, resource, named) else likeness(words, named[resource])
    if _part(source, resource)[1]:
        name = max(name, 0.9 * max(likeness(words, PHRASES["party"]), 0.6))
    if set(words) & vocabulary.ASIDE:
        name *= 0.3
    best = sorted(
        max(source.alike(column, phrases) for column in table.columns)
        for phrases in vocabulary.FIELDS[resource].values()
    )
    upper = best[len(best) // 2 :]
    evidence = sum(upper) / len(upper)
    if name < 0.45 and evidence < 0.8:
        return 0.0
    plain = sum(not set(own) & vocabulary.ID for own in source.words.values())
    is_link = len(table.columns) > 2 and plain < 2
    return 0.6 * name + 0.4 * evidence - (0 if table.rows else 0.05) - (0.25 if is_link else 0.0)


def _is_anothers(own: Tokens, resource: str, named: Mapping[str, Phrases]) -> bool:
    """Returns whether a name like one resource's is another's: `dieren` is no `dierenarts`."""
    scores = {name: likeness(own, phrases) for name, phrases in named.items()}
    return scores.get(resource, 0.0) < EXACT <= max(scores.values())


def _part(source: TableSource, resource: str) -> tuple[str | None, tuple[str, ...]]:
    """Returns the column that tells kinds of parties apart, and its codes for this resource."""
    scored: list[tuple[int, str | None, tuple[str, ...]]] = [(1, None, ())]
    for column, profile in source.profiles.items() if resource in vocabulary.PARTIES else ():
        if profile.is_code and source.alike(column, PHRASES["kind"]) >= 0.6:
            meant = {code: party_of(code) for code in profile.codes}
            codes = tuple(code for code, kind in meant.items() if kind == resource)
            scored.append((len({*meant.values()} - {None}) if codes else 0, column, codes))
    return max(scored, key=lambda entry: entry[0])[1:]


def party_of(code: str) -> str | None:
    """Returns which kind of party a code names, by a whole word or a letter; None for none."""
    words = tokens(code)
    parties = vocabulary.PARTIES.items()
    scored = [(likeness(words, phrases), kind) for kind, phrases in parties if kind != "owners"]
    score, kind = max(scored)
    return kind if score >= 0.7 else None


def names_key(column: str) -> tuple[Tokens, bool]:
    """Returns a column's words without those that mark a key, and whether it has such words."""
    words = tokens(column)
    rest = tuple(word for word in words if word not in vocabulary.ID)
    return rest, len(rest) < len(words)


def _reference(source: TableSource, column: str, resource: str, target: Rows) -> tuple[float, str]:
    """Returns how likely a column refers to the resource's table, and why."""
    rest, is_key = names_key(column)
    own = () if target.kind else (target.source.called,)
    name = likeness(rest, (*vocabulary.REFERS.get(resource, ()), *own))
    if rest and name < EXACT and _is_anothers(rest, resource, vocabulary.REFERS):
        name = 0.0
    keys = [key for key in source.table.foreign_keys if column in key["constrained_columns"]]
    if keys:
        sure = (0.9 if target.kind else 0.95) + 0.05 * name
        is_its = target.source.table.name in {key["referred_table"] for key in keys}
        return sure if is_its else 0.0, "foreign key"
    there, key = target.source.table.columns, target.keys[0]
    kinds = {source.table.columns[column].kind, there[key].kind}
    if len(target.keys) != 1 or (len(kinds) > 1 and kinds != {"integer", "number"}):
        return 0.0, ""
    if rest and column.lower() == key.lower():
        is_its = resource == "clients" or not target.kind
        return 0.85 if is_its else 0.55, "the key's own name"
    return 0.85 * name if is_key else 0.7 * name if name >= 0.85 else 0.0, "by its name"
