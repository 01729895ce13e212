"""Splits a table by its kinds of rows, and joins one to the table that has what it lacks."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from adapters.draft import vocabulary
from adapters.draft.columns import Profiles
from adapters.draft.relations import EXACT, is_anothers, names_key
from adapters.draft.sources import JoinedTable, TableSource
from adapters.draft.vocabulary import PHRASES, Tokens, likeness, tokens

# The fewest rows and own columns of a table that is split, and the most rows of a table of labels.
FEWEST_ROWS, FEWEST_COLUMNS, MOST_LABELS = 4, 3, 200
# How alike a column is to the words for a kind, and a code's words to a resource's.
KIND, MEANT = 0.6, 0.8
PARTY = 0.6


def candidates_of(source: TableSource) -> list[TableSource]:
    """Returns the parts of a table that holds several kinds of things, else the table itself."""
    known = source.catalog.candidates
    if source.table.name not in known:
        parts = [*_parts(source)]
        known[source.table.name] = [*map(_joined, parts or [source])]
    return known[source.table.name]


def is_party(source: TableSource) -> bool:
    """Returns whether the table is one of people and companies of all roles, by its name."""
    return likeness(source.called, PHRASES["party"]) >= PARTY


def _parts(source: TableSource) -> Iterator[TableSource]:
    if source.table.rows < FEWEST_ROWS:
        return
    best: dict[str, dict[str, list[str]]] = {}
    for column in source.profiles:
        rest = names_key(column)[0]
        named = max(source.alike(column, PHRASES["kind"]), likeness(rest, PHRASES["kind"]))
        codes = source.profiles[column].codes if named >= KIND else ()
        if len(codes) > 1 and source.profiles[column].is_code and _has_own(source):
            meant = _meanings(source, column)
            if len(meant) > 1 or (meant and is_party(source)):
                best[column] = meant
    if not best:
        return
    column = max(best, key=lambda each: len(best[each]))
    for resource, meant_codes in best[column].items():
        part = replace(source, kind=column, codes=tuple(meant_codes), resource=resource)
        yield _as_sampled(part)


def _has_own(source: TableSource) -> bool:
    """Returns whether the table has columns that say something; one of links has none."""
    plain = [
        name
        for name, profile in source.profiles.items()
        if not names_key(name)[1] and profile.kind in ("text", "moment", "day", "epoch")
    ]
    return len(plain) >= FEWEST_COLUMNS


def _as_sampled(source: TableSource) -> TableSource:
    """Returns the source with the columns of its own rows."""
    probe = source.catalog.probe
    table = probe.sample(source.table, str(source), source.column, source.part)
    if table is None:
        return source
    profiles = Profiles(table.columns)
    return replace(source, table=table, profiles=profiles)


def _meanings(source: TableSource, column: str) -> dict[str, list[str]]:
    """Returns the codes of each resource that a column of kinds names."""
    labels = _labels(source, column)
    counted = Counter(word for words in labels.values() for word in {*words})
    often = {word for word, number in counted.items() if number >= max(3, 0.5 * len(labels))}
    often |= {*source.called}
    found: dict[str, list[str]] = {}
    for code, words in labels.items():
        own = tuple(word for word in words if word not in often) or words
        resource = _meant(own, is_party(source))
        if resource:
            found.setdefault(resource, []).append(code)
    return found


def _meant(words: Tokens, is_party: bool) -> str | None:
    """Returns the resource that a kind's words name; in a table of parties a letter does so too."""
    kind = party_of(" ".join(words)) if is_party else None
    if kind is not None:
        return kind if kind != "suppliers" else None
    if sum(map(len, words)) < 3:
        return None
    scores = {
        resource: likeness(words, phrases)
        for resource, phrases in vocabulary.TABLES.items()
        if not is_anothers(words, resource, "tables")
    }
    best = max(scores, key=lambda each: scores[each], default="")
    others = [likeness(words, PHRASES["suppliers"]), likeness(words, PHRASES["places"])]
    return best if best and scores[best] >= MEANT and max(others) < EXACT else None


def party_of(code: str) -> str | None:
    """Returns which kind of party a code names, by a whole word or a letter; None for none."""
    words = tokens(code)
    parties = vocabulary.PARTIES.items()
    scored = [(likeness(words, phrases), kind) for kind, phrases in parties if kind != "owners"]
    score, kind = max(scored)
    return kind if score >= 0.7 else None


def _labels(source: TableSource, column: str) -> Mapping[str, Tokens]:
    """Returns the words of each code: those of its label, where a small table has one."""
    for link in source.catalog.relations.links(source):
        label = link.target.best("label", ("text",), least=0.5)
        if link.column == column and label and link.target.table.rows <= MOST_LABELS:
            there = link.target.table.columns
            rows = zip(there[link.key].seen, there[label].seen, strict=True)
            return {str(key): tokens(str(text)) for key, text in rows}
    codes = source.profiles[column].codes
    for other in source.catalog.sources:
        key = next(iter(other.single_key), None)
        is_small = 0 < other.table.rows <= MOST_LABELS and key
        if not is_small or likeness(other.called, [names_key(column)[0] or ("-",)]) < EXACT:
            continue
        label = other.best("label", ("text",), least=0.5)
        if key and label and key != label:
            there = other.table.columns
            pairs = list(zip(there[key].seen, there[label].seen, strict=True))
            if {str(code) for code, _ in pairs} >= {*codes}:
                return {str(code): tokens(str(text)) for code, text in pairs}
    return {code: tokens(code) for code in codes}


def _joined(source: TableSource) -> TableSource:
    """Returns the table joined to its party, or what it is a variant of, or to its extension."""
    relations = source.catalog.relations
    if not source.kind and source.best("full_name", ("text",), least=0.6) is None:
        for link in relations.links(source):
            seen = source.table.columns[link.column].seen
            is_one = len(seen) > 1 and None not in seen and len({*seen}) == len(seen)
            is_variant = bool({*link.target.called} & {*source.called})
            is_variant = is_variant and source.alike(link.column, PHRASES["kind"]) < KIND
            is_kin = is_party(link.target) or (is_variant and len(seen) >= FEWEST_ROWS)
            if is_one and is_kin and link.target.table.name != source.table.name:
                return _with(source, JoinedTable(link.target, link.column, link.key))
    if source.kind and source.single_key:
        key = source.single_key[0]
        for other, link in relations.children(source):
            if other.single_key == (link.column,) and not other.part:
                found = relations.share(source, key, other, link.column)
                if found is not None and found > 0.5:
                    return _with(source, JoinedTable(other, key, link.column, outer=True))
    return source


def _with(source: TableSource, join: JoinedTable) -> TableSource:
    """Returns the source with the columns of the joined table, as the joined rows have them."""
    far = join.source.table
    taken = {join.key, *(() if join.outer else far.key)}
    names = {name: f"{far.name}.{name}" for name in far.columns if name not in taken}
    table = source.table
    foreign: list[Any] = [
        {**key, "constrained_columns": [names.get(n, n) for n in key["constrained_columns"]]}
        for key in far.foreign_keys
    ]
    columns = {new: replace(far.columns[old], name=new) for old, new in names.items()}
    whole = replace(
        source,
        table=replace(
            table,
            columns={**table.columns, **columns},
            foreign_keys=[*table.foreign_keys, *foreign],
        ),
        words={**source.words, **{new: join.source.words[old] for old, new in names.items()}},
        profiles=Profiles({**table.columns, **columns}),
        joins=(join,),
    )
    return _as_sampled(whole.beside())
