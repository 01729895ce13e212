"""Tells which column leads to which table: as declared, or as names say and values prove."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from adapters.draft import vocabulary
from adapters.draft.sources import Guess, TableSource
from adapters.draft.vocabulary import PHRASES, Tokens, likeness, tokens

if TYPE_CHECKING:
    from adapters.draft.tables import Catalog, Rows

# The least likeness of a name that is itself in the vocabulary, be it in the plural.
EXACT = 0.95
# The different values that must be looked up before they prove anything, and the share that may be
# missing.
ENOUGH_VALUES, MISSING = 3, 0.02
# The most rows of a table that another column's codes are looked up in.
MOST_LABELS = 2_000


@dataclass(frozen=True, slots=True)
class Link:
    """A column of a source, and the table that it leads to."""

    column: str
    target: TableSource
    key: str
    declared: bool


class Relations:
    """The links between the tables of a catalog; each is looked up once."""

    def __init__(self, catalog: "Catalog") -> None:
        self._catalog = catalog
        self._links: dict[str, Sequence[Link]] = {}
        self._shares: dict[tuple[str, ...], float | None] = {}
        self._children: dict[str, list[tuple[TableSource, Link]]] | None = None
        self._by_key: dict[str, list[TableSource]] = defaultdict(list)
        self._by_name: dict[Tokens, list[TableSource]] = defaultdict(list)
        for source in catalog.sources:
            for key in source.single_key:
                if key.lower() != "id":
                    self._by_key[key.lower()].append(source)
                self._by_name[_plain(source.called)].append(source)

    def links(self, source: TableSource) -> Sequence[Link]:
        """Returns the columns that lead to other tables, those of joined tables not among them."""
        name = source.table.name
        if name not in self._links:
            base = self._catalog.named(name) or source
            self._links[name] = [*self._find(base)]
        return self._links[name]

    def _find(self, source: TableSource) -> Iterator[Link]:
        declared = set[str]()
        for foreign in source.table.foreign_keys:
            target = self._catalog.named(foreign["referred_table"])
            declared |= {*foreign["constrained_columns"]}
            if target is not None and len(foreign["constrained_columns"]) == 1:
                referred = foreign["referred_columns"] or target.single_key
                yield Link(foreign["constrained_columns"][0], target, referred[0], declared=True)
        for column in source.table.columns:
            if column not in declared and (column,) != source.table.key:
                yield from self._undeclared(source, column)

    def _undeclared(self, source: TableSource, column: str) -> Iterator[Link]:
        words, is_key = names_key(column)
        meant = list(self._by_key.get(column.lower(), ()))
        if not meant and is_key and words:
            meant = self._by_name.get(_plain(words), [])
        kind = source.table.columns[column].kind
        meant = [each for each in meant if each.table.name != source.table.name]
        if len(meant) == 1 and meant[0].table.columns[meant[0].single_key[0]].kind == kind:
            target = meant[0].beside(*source.aliases)
            if (self.share(source, column, target, target.single_key[0]) or 0) >= 1 - MISSING:
                yield Link(column, meant[0], meant[0].single_key[0], declared=False)

    def children(self, source: TableSource) -> Sequence[tuple[TableSource, Link]]:
        """Returns the tables whose rows lead to rows of this one, each with its column."""
        if self._children is None:
            self._children = defaultdict(list)
            for other in self._catalog.sources:
                for link in self.links(other):
                    self._children[link.target.table.name].append((other, link))
        return self._children.get(source.table.name, [])

    def share(
        self, source: TableSource, column: str, target: TableSource, key: str, *more: str
    ) -> float | None:
        """Returns the share of a column's values that are keys of the target's rows.

        It is None where there are too few values, or where the database does not say. `more` are
        conditions on the source's rows.
        """
        target = target.beside(*source.aliases)
        conditions = [*source.part, *more]
        asked = (
            source.column(column),
            str(source),
            *conditions,
            str(target),
            target.column(key),
            *target.part,
        )
        if asked not in self._shares:
            found = self._catalog.probe.share_found(
                source.column(column),
                str(source),
                conditions,
                str(target),
                target.column(key),
                target.part,
            )
            enough = found is not None and found[0] >= ENOUGH_VALUES
            self._shares[asked] = found[1] / found[0] if found and enough else None
        return self._shares[asked]

    def reference(self, source: TableSource, resource: str, *more: str) -> Guess | None:
        """Returns the column that most likely refers to a resource, or all columns of its key."""
        target = self._catalog.chosen.get(resource)
        if target is None:
            return None
        own = target.source.table
        scored = [
            (*_reference(source, name, resource, target), name)
            for name in source.table.columns
            if (source.table.name != own.name or name not in own.key)
            and not _is_only_its_key(source, name)
        ]
        scored = sorted((each for each in scored if each[0] >= 0.5), key=lambda each: -each[0])
        for number, (score, why, name) in enumerate(scored):
            keys = (key["constrained_columns"] for key in source.table.foreign_keys)
            together = next((key for key in keys if name in key and len(key) > 1), ())
            if len(together) > 1 or len(target.keys) > 1:
                return source.guess(name, score, why, sql=tuple(map(source.column, together)))
            sql, key = self.through_party(source, name, target)
            share = self.share(source, name, target.source, key, *more)
            if share is not None and share < 0.5:
                continue
            proof = ""
            rival = any(each[0] > score - 0.2 for each in scored[number + 1 :])
            if share is not None and share >= 1 - MISSING and not rival:
                proof = f"every value is a key of {resource}"
            guess = source.guess(name, score, why, sql=sql)
            return replace(guess, proof=proof)
        return None

    def through_party(
        self, source: TableSource, column: str, target: "Rows"
    ) -> tuple[str | tuple[str, ...], str]:
        """Returns the key of a role out of the key of its party, where the column has that one."""
        for join in target.source.joins:
            for foreign in source.table.foreign_keys:
                if foreign["constrained_columns"] == [column] and (
                    foreign["referred_table"] == join.source.table.name
                ):
                    role = replace(target.source, joins=()).beside(*source.aliases)
                    is_its = f"{role.column(join.own)} = {source.column(column)}"
                    return role.select(role.column(target.keys[0]), is_its), join.own
        return (), target.keys[0]


def _plain(words: Tokens) -> Tokens:
    return tuple(word[:-1] if word.endswith("s") and len(word) > 3 else word for word in words)


def _is_only_its_key(source: TableSource, column: str) -> bool:
    """Returns whether the column is the row's own key, and is not declared to be another's."""
    keys = (name for key in source.table.foreign_keys for name in key["constrained_columns"])
    return source.table.key == (column,) and column not in keys


def names_key(column: str) -> tuple[Tokens, bool]:
    """Returns a column's words without those that mark a key, and whether it has such words."""
    words = tokens(column.rpartition(".")[2])
    rest = tuple(word for word in words if word not in vocabulary.ID)
    return rest, len(rest) < len(words)


def is_anothers(own: Tokens, resource: str, named: str) -> bool:
    """Returns whether a name like one resource's is another's: `dieren` is no `dierenarts`.

    `named` says whose names are compared: those of `tables`, or those that `refer` to them.
    """
    vocabularies = {"tables": vocabulary.TABLES, "refers": vocabulary.REFERS}
    scores = {name: likeness(own, phrases) for name, phrases in vocabularies[named].items()}
    return scores.get(resource, 0.0) < EXACT <= max(scores.values())


def _reference(
    source: TableSource, column: str, resource: str, target: "Rows"
) -> tuple[float, str]:
    """Returns how likely a column refers to the resource's table, and why."""
    rest, is_key = names_key(column)
    own = () if target.kind else (target.source.called,)
    name = likeness(rest, vocabulary.REFERS.get(resource, vocabulary.Phrases()))
    name = max(name, likeness(rest, own))
    if rest and name < EXACT and is_anothers(rest, resource, "refers"):
        name = 0.0
    keys = [key for key in source.table.foreign_keys if column in key["constrained_columns"]]
    if likeness(rest, PHRASES["entered"]) >= 0.7:
        return 0.0, ""  # who entered the row
    if keys:
        sure = (0.9 if target.kind else 0.95) + 0.05 * name
        its = {target.source.table.name, *(join.source.table.name for join in target.source.joins)}
        is_its = not its.isdisjoint(key["referred_table"] for key in keys)
        return sure if is_its else 0.0, "foreign key"
    there, key = target.source.table.columns, target.keys[0]
    kinds = {source.table.columns[column].kind, there[key].kind}
    if len(target.keys) != 1 or (len(kinds) > 1 and kinds != {"integer", "number"}):
        return 0.0, ""
    if rest and column.lower() == key.lower():
        is_its = resource == "clients" or not target.kind
        return 0.85 if is_its else 0.55, "the key's own name"
    return 0.85 * name if is_key else 0.7 * name if name >= 0.85 else 0.0, "by its name"
