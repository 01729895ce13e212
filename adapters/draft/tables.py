"""Guesses which table holds which resource, and which column refers to another table's rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from adapters.base import FieldShape, Shapes
from adapters.draft import vocabulary
from adapters.draft.columns import Profiles
from adapters.draft.database import Database
from adapters.draft.probe import DatabaseProbe
from adapters.draft.relations import Relations, is_anothers
from adapters.draft.sources import Guess, TableSource
from adapters.draft.splits import candidates_of
from adapters.draft.vocabulary import PHRASES, likeness, without_prefix

# The least score of a table for a resource.
ENOUGH = 0.42


@dataclass(slots=True)
class Rows:
    """The table of a resource, or of a list in its records, and what is guessed of its rows.

    `place` is where the vocabulary has the fields: a resource, or `resource.list`. For a list
    `parent` holds the key of the record. `joins` are the tables that explain codes, and `where`
    holds conditions. `told_by` says which of these the data gave, `used` is the share of a staff
    that has appointments, and `free` the codes of rows that stand for free times. `clocks` says by
    which clock a time was written, where that is known. `proof` says by what the table is proven,
    and `standing` how it came to be written without that.
    """

    place: str
    shapes: Mapping[str, FieldShape]
    source: TableSource
    score: float
    others: tuple[str, ...] = ()
    joins: str = ""
    where: list[str] = field(default_factory=list)
    parent: Guess | None = None
    fields: dict[str, Guess] = field(default_factory=dict)
    lists: dict[str, "Rows"] = field(default_factory=dict)
    clocks: dict[str, str] = field(default_factory=dict)
    told_by: list[str] = field(default_factory=list)
    used: float = 0.0
    free: tuple[str, tuple[str, ...]] | None = None
    proof: str = ""
    standing: str = ""

    @property
    def is_written(self) -> bool:
        """Whether they go into the mapping, and not only into a comment."""
        return bool(self.proof or self.standing)

    @property
    def kind(self) -> str | None:
        """The column that tells these rows from others of the table."""
        return self.source.kind

    @property
    def codes(self) -> tuple[str, ...]:
        """What that column has in these rows."""
        return self.source.codes

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

    `sources` are its tables, and `named` finds one. `chosen` has the table of each resource that
    has one. `others` are the tables that are no resource's own.
    """

    def __init__(
        self, database: Database, shapes: Shapes, probe: DatabaseProbe, zone: ZoneInfo
    ) -> None:
        self.database, self.probe, self.zone = database, probe, zone
        names = without_prefix([table.name for table in database.tables])
        self.sources: list[TableSource] = []
        for table in database.tables:
            words = without_prefix([*table.columns], table.name)
            profiles = Profiles(table.columns)
            source = TableSource(self, table, names[table.name], words, profiles)
            self.sources.append(source.beside())
        self._named = {source.table.name: source for source in self.sources}
        self.chosen: dict[str, Rows] = {}
        self.is_utc = False
        self.candidates: dict[str, list[TableSource]] = {}
        self.relations = Relations(self)
        self.chosen = choose(self.sources, shapes)
        own = {rows.source.table.name for rows in self.chosen.values()}
        self.others = [source for source in self.sources if source.table.name not in own]

    def named(self, name: str) -> TableSource | None:
        return self._named.get(name)

    def number(self, guess: Guess) -> str:
        """Returns the guess as a number in SQL, out of a text such as '1 234,50' too."""
        sql = f"({guess.sql})" if str(guess.sql).startswith("SELECT") else str(guess.sql)
        source, (column, _, attribute) = self.named(guess.table), guess.name.partition(":")
        is_raw = attribute or not sql.startswith("(")
        known = source.profiles.get(column) if source is not None else None
        if known is None or not is_raw or not known.is_text:
            return sql
        pointed = f"REPLACE(REPLACE({sql}, ' ', ''), ',', '.')"
        return f"CAST(NULLIF({pointed}, '') AS DECIMAL(12, 2))"


def choose(sources: Sequence[TableSource], shapes: Shapes) -> dict[str, Rows]:
    """Returns the rows of each resource: of a table, of a part of one, or of several joined."""
    candidates = [each for source in sources for each in candidates_of(source)]
    scored = [
        (score, resource, source.table.name, source)
        for source in candidates
        for resource in vocabulary.TABLES
        if (score := _score(source, resource)) >= ENOUGH
    ]
    scored.sort(key=lambda entry: (entry[0], entry[1], entry[2]), reverse=True)
    chosen: dict[str, Rows] = {}
    taken: dict[str, str | None] = {}
    for score, resource, name, source in scored:
        if resource in chosen or (name in taken and (not source.codes or taken[name] is None)):
            continue
        others = [other for _, owner, other, _ in scored if owner == resource and other != name]
        taken[name] = source.kind
        others = [*dict.fromkeys(others)]
        chosen[resource] = Rows(resource, shapes[resource], source, score, tuple(others[:3]))
    return chosen


def _score(source: TableSource, resource: str) -> float:
    """Returns how likely it is that the table holds the resource, by its name and its columns."""
    words, table = source.called, source.table
    named = vocabulary.TABLES
    if source.resource:
        if source.resource != resource:
            return 0.0
        name = 0.95
    else:
        name = 0.0 if is_anothers(words, resource, "tables") else likeness(words, named[resource])
    if set(words) & vocabulary.ASIDE:
        name *= 0.3
    # a table whose name says nothing needs columns that say much, which is looked for in few
    if name < 0.45 and not source.may_hold:
        return 0.0
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
    score = 0.6 * name + 0.4 * evidence
    score -= (0 if table.rows else 0.05) + (0.25 if is_link else 0.0)
    return score - _against(source, resource)


def _against(source: TableSource, resource: str) -> float:
    """Returns what speaks against a table: it has logins, or rows about the resource's rows."""
    if source.best("password", least=0.8) is not None:
        return 0.3
    if resource == "stock" and not source.joins:
        for link in source.catalog.relations.links(source):
            about = likeness(link.target.called, vocabulary.TABLES["stock"]) >= 0.7
            if about and likeness(source.called, PHRASES["about_stock"]) >= 0.5:
                return 0.4
        for other, _ in source.catalog.relations.children(source):
            if (
                set(other.called) & set(source.called)
                and len(other.called) > 1
                and _is_variant(other, source)
            ):
                return 0.3
    return 0.0


def _is_variant(other: TableSource, source: TableSource) -> bool:
    return any(
        join.source.table.name == source.table.name
        for each in candidates_of(other)
        for join in each.joins
    )
