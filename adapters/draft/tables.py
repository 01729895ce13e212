"""Guesses which table holds which resource, and which column of a table refers to another."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from adapters.draft.database import Column, Database, Table
from adapters.draft.likeness import likeness, tokens, without_prefix
from adapters.draft.looks import Look, is_code, look_at
from adapters.draft.vocabulary import (
    ASIDE,
    ID,
    KIND,
    PARTIES,
    PARTY,
    REFERS,
    TABLES,
    WORDS,
)

Phrases = Iterable[tuple[str, ...]]
# Below this a table is not taken for a resource at all.
ENOUGH = 0.42
# From here on a name is a word of the vocabulary itself, be it in the plural.
EXACT = 0.95


class Catalog:
    """A database with what its names say and its values look like, worked out once each."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.dialect = database.dialect
        self._looks: dict[tuple[str, str], Look] = {}
        names = without_prefix([each.name for each in database.tables])
        self._tables = {each.name: names[each.name] for each in database.tables}
        self._columns = {
            each.name: without_prefix([column.name for column in each.columns], each.name)
            for each in database.tables
        }

    @property
    def tables(self) -> tuple[Table, ...]:
        return self.database.tables

    def table(self, name: str) -> Table | None:
        return next((each for each in self.tables if each.name == name), None)

    def look(self, table: Table, column: str) -> Look:
        place = (table.name, column)
        if place not in self._looks:
            self._looks[place] = look_at(table, column)
        return self._looks[place]

    def words(self, table: Table, column: str) -> tuple[str, ...]:
        """The words of a column's name, without what all the table's columns begin with."""
        return self._columns[table.name][column]

    def called(self, table: Table) -> tuple[str, ...]:
        return self._tables[table.name]

    def alike(self, table: Table, column: str, wanted: Phrases) -> float:
        """How alike a column is to the words, with and without its prefix."""
        phrases = tuple(wanted)
        whole = likeness(tokens(column), phrases)
        return max(whole, likeness(self.words(table, column), phrases))

    def best(
        self, table: Table, wanted: Phrases, kinds: Iterable[str] = (), least: float = 0.6
    ) -> str | None:
        """The column that is most like the words, of those that look like one of the kinds."""
        phrases, fits = tuple(wanted), set(kinds)
        found = [
            (self.alike(table, each.name, phrases), -place, each.name)
            for place, each in enumerate(table.columns)
            if not fits or self.look(table, each.name).kind in fits
        ]
        score, _, name = max(found, default=(0.0, 0, ""))
        return name if score >= least else None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The table of a resource; in a table of all parties `kind` is the column that parts them."""

    table: Table
    score: float
    others: tuple[str, ...] = ()
    kind: str | None = None
    codes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = field(default=())

    @property
    def key(self) -> tuple[str, ...]:
        return self.table.key or (self.table.columns[0].name,)


def choose(catalog: Catalog) -> dict[str, Chosen]:
    """The table of each resource, where there is one that is like it."""
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
        others = tuple(n for s, r, n in scored if r == resource and n != name)[:3]
        kinds = catalog.look(table, kind).codes if kind else ()
        chosen[resource] = Chosen(table, score, others, kind if codes else None, codes, kinds)
        taken[name] = kind if codes else None
    return chosen


def _score(catalog: Catalog, table: Table, resource: str) -> float:
    words = catalog.called(table)
    name = 0.0 if _is_anothers(words, resource, TABLES) else likeness(words, TABLES[resource])
    _, codes = _part(catalog, table, resource)
    if codes:
        name = max(name, 0.9 * max(likeness(words, PARTY), 0.6))
    if set(words) & ASIDE:
        name *= 0.3
    fields = WORDS[resource].values()
    best = sorted(
        (max(catalog.alike(table, each.name, wanted) for each in table.columns))
        for wanted in fields
    )
    upper = best[len(best) // 2 :]
    evidence = sum(upper) / len(upper)
    if name < 0.45 and evidence < 0.8:
        return 0.0
    return 0.6 * name + 0.4 * evidence - (0.05 if not table.rows else 0) - _linking(catalog, table)


def _is_anothers(
    words: Sequence[str], resource: str, named: Mapping[str, Sequence[tuple[str, ...]]]
) -> bool:
    """Whether a name that is merely like a resource's is exactly another's.

    `dieren` begins as `dierenarts` does, and is no short form of it.
    """
    scores = {each: likeness(words, wanted) for each, wanted in named.items()}
    return scores.get(resource, 0.0) < EXACT <= max(scores.values())


def _linking(catalog: Catalog, table: Table) -> float:
    """What a table loses that has hardly more than keys in it."""
    plain = [each for each in table.columns if not set(catalog.words(table, each.name)) & ID]
    return 0.25 if len(table.columns) > 2 and len(plain) < 2 else 0.0


def _part(catalog: Catalog, table: Table, resource: str) -> tuple[str | None, tuple[str, ...]]:
    """The column that parts several kinds of party, and its codes for this resource."""
    if resource not in PARTIES:
        return None, ()
    best: tuple[int, str | None, tuple[str, ...]] = (0, None, ())
    for each in table.columns:
        look = catalog.look(table, each.name)
        if not is_code(look) or catalog.alike(table, each.name, KIND) < 0.6:
            continue
        meant = {code: party_of(code) for code in look.codes}
        kinds = {kind for kind in meant.values() if kind}
        codes = tuple(code for code, kind in meant.items() if kind == resource)
        if len(kinds) > 1 and codes and len(kinds) > best[0]:
            best = (len(kinds), each.name, codes)
    return best[1], best[2]


def party_of(code: str) -> str | None:
    """Which kind of party a code names: by a whole word, else by a letter."""
    scored = [(likeness(tokens(code), words), kind) for kind, words in PARTIES.items()]
    score, kind = max(
        ((score, kind) for score, kind in scored if kind != "owners"), default=(0.0, "")
    )
    return kind if score >= 0.7 else None


def references(
    catalog: Catalog, table: Table, resource: str, target: Chosen
) -> Iterator[tuple[float, str, str]]:
    """The columns that may refer to a resource's table, each with its score and why."""
    for each in table.columns:
        if table.name == target.table.name and each.name in table.key:
            continue
        score, why = _reference(catalog, table, each, resource, target)
        if score >= 0.5:
            yield score, each.name, why


def best_reference(
    catalog: Catalog, table: Table, resource: str, chosen: dict[str, Chosen]
) -> tuple[float, str, str] | None:
    """The column that most likely refers to a resource."""
    target = chosen.get(resource)
    found = [] if target is None else list(references(catalog, table, resource, target))
    return max(found, key=lambda each: each[0], default=None)


def _reference(
    catalog: Catalog, table: Table, column: Column, resource: str, target: Chosen
) -> tuple[float, str]:
    words = tokens(column.name)
    rest = [each for each in words if each not in ID]
    name = max(
        likeness(rest, REFERS.get(resource, ())) if rest else 0.0,
        likeness(rest, [catalog.called(target.table)]) if rest and not target.kind else 0.0,
    )
    if rest and name < EXACT and _is_anothers(rest, resource, REFERS):
        name = 0.0
    keys = [each for each in table.foreign_keys if column.name in each.columns]
    if keys:
        if any(each.table == target.table.name for each in keys):
            return (0.9 if target.kind else 0.95) + 0.05 * name, "foreign key"
        return 0.0, ""
    if len(target.key) != 1 or not _same_kind(column, target.table.column(target.key[0])):
        return 0.0, ""
    if column.name.lower() == target.key[0].lower() and rest:
        return (0.85 if resource == "clients" or not target.kind else 0.55), "the key's own name"
    if len(rest) < len(words):
        return 0.85 * name, "by its name"
    return (0.7 * name if name >= 0.85 else 0.0), "by its name"


def _same_kind(one: Column, other: Column) -> bool:
    numbers = {"integer", "number"}
    return one.kind == other.kind or {one.kind, other.kind} <= numbers
