"""Which table holds which resource, and which column of a table refers to another's rows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Dialect

from adapters.draft.columns import Profile, profile_of
from adapters.draft.database import Column, Database, Table
from adapters.draft.vocabulary import (
    ASIDE,
    FIELDS,
    ID,
    PARTIES,
    PHRASES,
    REFERS,
    TABLES,
    Phrases,
    Tokens,
    likeness,
    tokens,
    without_prefix,
)

# Below this a table is not taken for a resource at all.
ENOUGH = 0.42
# From here on a name is a word of the vocabulary itself, be it in the plural.
EXACT = 0.95


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table under a short name, in the words of its engine."""

    table: Table
    alias: str
    dialect: Dialect

    def __str__(self) -> str:
        name = self.quoted(self.table.name)
        schema = f"{self.quoted(self.table.schema)}." if self.table.schema else ""
        return f"{schema}{name} {self.alias}"

    def column(self, name: str) -> str:
        return f"{self.alias}.{self.quoted(name)}"

    def quoted(self, name: str) -> str:
        """The name as a statement has to write it: in quotes only where it needs them."""
        preparer = self.dialect.identifier_preparer
        folded = name if self.dialect.name == "postgresql" else name.lower()
        return name if preparer.quote(folded) == folded else str(preparer.quote_identifier(name))

    def is_one_of(self, name: str, codes: Iterable[str]) -> str:
        """That the column has one of the codes."""
        kind = self.table.column(name).kind
        spelt = [literal(code, kind) for code in codes]
        said = f"= {spelt[0]}" if len(spelt) == 1 else f"IN ({', '.join(spelt)})"
        return f"{self.column(name)} {said}"

    def select(self, what: str, *conditions: str) -> str:
        """A sub-select, for people to read: nothing here is run."""
        return " ".join(("SELECT", what, "FROM", str(self), "WHERE", " AND ".join(conditions)))

    def select_first(self, what: str, order: str, *conditions: str) -> str:
        """A sub-select of one row."""
        if self.dialect.name == "mssql":
            return f"{self.select(f'TOP 1 {what}', *conditions)} ORDER BY {order}"
        return f"{self.select(what, *conditions)} ORDER BY {order} LIMIT 1"


def literal(value: object, kind: str = "text") -> str:
    """A code as SQL writes it in a column of that kind."""
    text = str(value)
    if kind == "integer" or (kind == "boolean" and text.isdecimal()):
        return text
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The table of a resource; in a table of all parties `kind` is the column that parts them."""

    table: Table
    score: float
    others: tuple[str, ...] = ()
    kind: str | None = None
    codes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        return self.table.key or (self.table.columns[0].name,)


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """A column that may refer to a resource's table, how likely that is, and why."""

    score: float
    column: str
    why: str


class Catalog:
    """A database with what its names say and its values look like, worked out once each.

    `chosen` is the table of each resource, where there is one that is like it.
    """

    def __init__(self, database: Database) -> None:
        self.database, self.tables = database, database.tables
        self._profiles: dict[tuple[str, str], Profile] = {}
        self._tables = without_prefix([table.name for table in database.tables])
        self._columns = {
            table.name: without_prefix([column.name for column in table.columns], table.name)
            for table in database.tables
        }
        self.chosen = _choose(self)

    @property
    def others(self) -> list[Table]:
        """The tables that are no resource's own."""
        own = {chosen.table.name for chosen in self.chosen.values()}
        return [table for table in self.tables if table.name not in own]

    def table(self, name: str) -> Table | None:
        return next((table for table in self.tables if table.name == name), None)

    def source(self, table: Table, *taken: str) -> TableSource:
        """The table under a short name that is none of those taken."""
        letters = [each.lower() for each in table.name if each.isascii() and each.isalpha()]
        letters = letters or ["t"]
        free = (each for each in [*letters, *map(chr, range(97, 123))] if each not in taken)
        alias = next(free, f"{letters[0]}{len(set(taken))}")
        return TableSource(table, alias, self.database.dialect)

    def profile(self, table: Table, column: str) -> Profile:
        place = (table.name, column)
        if place not in self._profiles:
            self._profiles[place] = profile_of(table, column)
        return self._profiles[place]

    def called(self, table: Table) -> Tokens:
        return self._tables[table.name]

    def alike(self, table: Table, column: str, wanted: Iterable[Tokens]) -> float:
        """How alike a column is to the phrases, with and without its prefix."""
        phrases = tuple(wanted)
        bare = self._columns[table.name][column]
        return max(likeness(tokens(column), phrases), likeness(bare, phrases))

    def best(
        self, table: Table, wanted: Phrases, kinds: Iterable[str] = (), least: float = 0.6
    ) -> str | None:
        """The column that is most like the phrases, of those that look like one of the kinds."""
        fits = set(kinds)
        found = [
            (self.alike(table, column.name, wanted), -place, column.name)
            for place, column in enumerate(table.columns)
            if not fits or self.profile(table, column.name).kind in fits
        ]
        score, _, name = max(found, default=(0.0, 0, ""))
        return name if score >= least else None

    def reference(self, table: Table, resource: str) -> Reference | None:
        """The column that most likely refers to a resource."""
        target = self.chosen.get(resource)
        if target is None:
            return None
        found = [
            _reference(self, table, column, resource, target)
            for column in table.columns
            if table.name != target.table.name or column.name not in table.key
        ]
        best = max(found, key=lambda reference: reference.score, default=None)
        return best if best is not None and best.score >= 0.5 else None

    def plain_columns(self, table: Table) -> int:
        """How many columns are no keys, by their names."""
        return sum(not set(words) & ID for words in self._columns[table.name].values())


def _choose(catalog: Catalog) -> dict[str, Chosen]:
    scored = sorted(
        (
            (score, resource, table.name)
            for table in catalog.tables
            for resource in TABLES
            if (score := _score(catalog, table, resource)) >= ENOUGH
        ),
        reverse=True,
    )
    chosen: dict[str, Chosen] = {}
    taken: dict[str, str | None] = {}
    for score, resource, name in scored:
        table = catalog.table(name)
        if table is None or resource in chosen:
            continue
        kind, codes = _part(catalog, table, resource)
        if name in taken and (not codes or taken[name] != kind):
            continue
        others = tuple(other for _, owner, other in scored if owner == resource and other != name)
        kinds = catalog.profile(table, kind).codes if kind else ()
        kind = kind if codes else None
        chosen[resource] = Chosen(table, score, others[:3], kind, codes, kinds)
        taken[name] = kind
    return chosen


def _score(catalog: Catalog, table: Table, resource: str) -> float:
    """How likely it is that the table holds the resource: by its name, and by its columns."""
    words = catalog.called(table)
    name = 0.0 if _is_anothers(words, resource, TABLES) else likeness(words, TABLES[resource])
    if _part(catalog, table, resource)[1]:
        name = max(name, 0.9 * max(likeness(words, PHRASES["party"]), 0.6))
    if set(words) & ASIDE:
        name *= 0.3
    best = sorted(
        max(catalog.alike(table, column.name, wanted) for column in table.columns)
        for wanted in FIELDS[resource].values()
    )
    upper = best[len(best) // 2 :]
    evidence = sum(upper) / len(upper)
    if name < 0.45 and evidence < 0.8:
        return 0.0
    is_link = len(table.columns) > 2 and catalog.plain_columns(table) < 2
    empty = 0.05 if not table.rows else 0
    return 0.6 * name + 0.4 * evidence - empty - (0.25 if is_link else 0.0)


def _is_anothers(words: Iterable[str], resource: str, named: Mapping[str, Phrases]) -> bool:
    """Whether a name that is merely like a resource's is exactly another's.

    `dieren` begins as `dierenarts` does, and is no short form of it.
    """
    own = tuple(words)
    scores = {name: likeness(own, wanted) for name, wanted in named.items()}
    return scores.get(resource, 0.0) < EXACT <= max(scores.values())


def _part(catalog: Catalog, table: Table, resource: str) -> tuple[str | None, tuple[str, ...]]:
    """The column that parts several kinds of party, and its codes for this resource."""
    best: tuple[int, str | None, tuple[str, ...]] = (0, None, ())
    for column in table.columns if resource in PARTIES else ():
        profile = catalog.profile(table, column.name)
        if not profile.is_code or catalog.alike(table, column.name, PHRASES["kind"]) < 0.6:
            continue
        meant = {code: party_of(code) for code in profile.codes}
        kinds = {kind for kind in meant.values() if kind}
        codes = tuple(code for code, kind in meant.items() if kind == resource)
        if len(kinds) > 1 and codes and len(kinds) > best[0]:
            best = (len(kinds), column.name, codes)
    return best[1], best[2]


def party_of(code: str) -> str | None:
    """Which kind of party a code names: by a whole word, else by a letter."""
    words = tokens(code)
    scored = [(likeness(words, said), kind) for kind, said in PARTIES.items() if kind != "owners"]
    score, kind = max(scored)
    return kind if score >= 0.7 else None


def names_key(column: str) -> tuple[Tokens, bool]:
    """The words of a column's name without those that mark a key; whether there are any."""
    words = tokens(column)
    rest = tuple(word for word in words if word not in ID)
    return rest, len(rest) < len(words)


def _reference(
    catalog: Catalog, table: Table, column: Column, resource: str, target: Chosen
) -> Reference:
    rest, is_key = names_key(column.name)
    own = () if target.kind else (catalog.called(target.table),)
    name = likeness(rest, (*REFERS.get(resource, ()), *own))
    if rest and name < EXACT and _is_anothers(rest, resource, REFERS):
        name = 0.0
    score, why = 0.7 * name if name >= 0.85 else 0.0, "by its name"
    keys = [key.table for key in table.foreign_keys if column.name in key.columns]
    if keys:
        sure = (0.9 if target.kind else 0.95) + 0.05 * name
        score, why = sure if target.table.name in keys else 0.0, "foreign key"
    elif len(target.key) != 1 or not _same_kind(column, target.table.column(target.key[0])):
        score = 0.0
    elif rest and column.name.lower() == target.key[0].lower():
        score = 0.85 if resource == "clients" or not target.kind else 0.55
        why = "the key's own name"
    elif is_key:
        score = 0.85 * name
    return Reference(score, column.name, why)


def _same_kind(one: Column, other: Column) -> bool:
    return one.kind == other.kind or {one.kind, other.kind} <= {"integer", "number"}
