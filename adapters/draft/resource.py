"""The rows of one resource: the columns of its table, then what is beside it in others."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from adapters.base import FieldShape, Shapes
from adapters.draft.columns import fit, is_only_a_day, parameters
from adapters.draft.database import Table
from adapters.draft.document import Guess, RowsGuess
from adapters.draft.links import Attributes, existing, references
from adapters.draft.tables import Catalog, TableSource, literal, names_key
from adapters.draft.vocabulary import FIELDS, PHRASES, Phrases, likeness, tokens

LEAST = 0.5
# Fields whose codes are often explained in a table of their own, and how many rows that has.
LABELLED = ("species", "breed", "category", "unit", "location", "supplier", "status", "color")
MOST_LABELS = 2_000


class ResourceGuess:
    """One resource's rows, filled step by step: the columns first, then what is elsewhere."""

    def __init__(self, catalog: Catalog, resource: str, shapes: Shapes) -> None:
        self.catalog, self.resource, self.shapes = catalog, resource, shapes[resource]
        self.chosen = catalog.chosen[resource]
        self.table = self.chosen.table
        self.source = catalog.source(self.table)
        self._aliases = [self.source.alias]
        self.rows = RowsGuess(
            table=self.table.name,
            score=self.chosen.score,
            from_=str(self.source),
            others=self.chosen.others,
            key=key_of(catalog, self.source),
        )
        self.fields: dict[str, Guess] = {}

    @property
    def key(self) -> str:
        """The column by which other tables refer to a row."""
        return self.source.column(self.chosen.key[0])

    def guessed(self, special: Callable[["ResourceGuess"], None] | None) -> RowsGuess:
        """The rows; `special` is what is known of this resource alone."""
        own = {name: shape for name, shape in self.shapes.items() if "[]." not in name}
        self.fields |= references(self.catalog, self.source, own)
        for field in LABELLED:
            if field in own and (label := self._label(field)):
                self.fields[field] = label
        taken = {guess.name for guess in self.fields.values()} | {self.chosen.kind or ""}
        taken |= set(self.table.key) if len(self.table.key) == 1 else set()
        found = columns_of(self.catalog, self.source, self.resource, own, taken)
        self.fields = {**found, **self.fields}
        self._key_as_text()
        for field, guess in Attributes(self.catalog, self.resource, self.source, own).found():
            if field not in self.fields or self.fields[field].score < guess.score - 0.1:
                self.fields[field] = guess
        if special is not None:
            special(self)
        self._never_changed()
        self.rows.where = [*self._where()]
        self.rows.fields = {name: self.fields[name] for name in self.shapes if name in self.fields}
        return self.rows

    def _key_as_text(self) -> None:
        """A key that people read: an article's number."""
        key = self.table.key
        if len(key) != 1 or self.table.column(key[0]).kind != "text":
            return
        column = f"{self.table.name}.{key[0]}"
        for field in {"reference", "number"} & {*FIELDS[self.resource]} - {*self.fields}:
            if self.catalog.alike(self.table, key[0], FIELDS[self.resource][field]) >= 0.6:
                self.fields[field] = Guess(sql=self.key, score=0.7, why="the key", column=column)

    def _label(self, field: str) -> Guess | None:
        """A label in a table of its own, for which the rows get a join."""
        wanted = FIELDS[self.resource][field]
        for column in self.table.columns:
            alike = likeness(names_key(column.name)[0], wanted)
            if alike < 0.6 or self.table.key == (column.name,):
                continue
            target = self._labels(column.name)
            if target is not None and target[0] in self.catalog.others:
                return self._joined(column.name, field, target, alike)
        return None

    def _labels(self, column: str) -> tuple[Table, str, str] | None:
        """The table that a column's codes are explained in, its key and its label."""
        catalog = self.catalog
        for key in self.table.foreign_keys:
            explains = catalog.table(key.table)
            if key.columns == (column,) and explains is not None:
                return self._labelled(explains, key.targets[0])
        words, is_key = names_key(column)
        for table in catalog.tables:
            if len(table.key) != 1 or table is self.table or not 0 < table.rows <= MOST_LABELS:
                continue
            key_name = table.key[0]
            named = is_key and likeness(words, [catalog.called(table)]) >= 0.8
            is_same = key_name.lower() == column.lower() != "id"
            same_kind = table.column(key_name).kind == self.table.column(column).kind
            if same_kind and (named or is_same) and (found := self._labelled(table, key_name)):
                return found
        return None

    def _labelled(self, table: Table, key: str) -> tuple[Table, str, str] | None:
        label = self.catalog.best(table, PHRASES["label"], ("text",), least=0.5)
        return None if label is None or label == key else (table, key, label)

    def _joined(
        self, column: str, field: str, target: tuple[Table, str, str], alike: float
    ) -> Guess:
        table, key, label = target
        labels = self.catalog.source(table, *self._aliases)
        self._aliases.append(labels.alias)
        on = f"{labels.column(key)} = {self.source.column(column)}"
        self.rows.from_ += f" LEFT JOIN {labels} ON {on}"
        profile, place = self.catalog.profile(table, label), f"{self.resource}.{field}"
        return Guess(
            sql=labels.column(label),
            score=0.6 + 0.3 * alike,
            why=f"{self.table.name}.{column} is explained in {table.name}",
            column=f"{table.name}.{label}",
            own=column,
            parameters=parameters(profile, self.shapes[field], place),
        )

    def _never_changed(self) -> None:
        """A record without a change is as old as its creation: else `updatedSince` misses it."""
        changed, made = self.fields.get("updatedAt"), self.fields.get("createdAt")
        if changed is None or made is None or changed.parameters != made.parameters:
            return
        profile = self.catalog.profile(self.table, changed.name)
        given = str(changed.sql)
        for zero in profile.zeros if profile.is_text else ():
            given = f"NULLIF({given}, {literal(zero)})"
        if profile.blank or profile.zeros:
            self.fields["updatedAt"] = replace(changed, sql=f"COALESCE({given}, {made.sql})")

    def _where(self) -> Iterator[tuple[str, str]]:
        kind, used = self.chosen.kind, {guess.name for guess in self.fields.values()}
        if kind is not None:
            seen = f"{kind} has {', '.join(self.chosen.kinds)}"
            yield self.source.is_one_of(kind, self.chosen.codes), seen
        yield from existing(self.catalog, self.source, used)

    def child(self, words: Phrases) -> tuple[TableSource, str, float] | None:
        """The table whose rows belong to a record, the column that refers to it, and a score."""
        found = []
        for table in self.catalog.others:
            link = self.catalog.reference(table, self.resource)
            alike = likeness(self.catalog.called(table), words)
            if link is not None and alike >= 0.5:
                found.append((0.5 * alike + 0.5 * link.score, table.name, link.column, table))
        if not found:
            return None
        score, _, column, best = max(found, key=lambda each: each[:3])
        return self.catalog.source(best, self.source.alias), column, score

    def number(self, guess: Guess) -> str:
        """The number in a column; in a text such as '1 234,50' too."""
        table = self.catalog.table(guess.table)
        sql = in_brackets(str(guess.sql))
        if table is None or sql.startswith("(SELECT"):
            return sql
        is_text = self.catalog.profile(table, guess.name).is_text
        return number_in(sql) if is_text else sql


def in_brackets(sql: str) -> str:
    return f"({sql})" if sql.startswith("SELECT") else sql


def number_in(text: str) -> str:
    pointed = f"REPLACE(REPLACE({text}, ' ', ''), ',', '.')"
    return f"CAST(NULLIF({pointed}, '') AS DECIMAL(12, 2))"


def key_of(catalog: Catalog, source: TableSource) -> Guess:
    """The key of a table's rows: several columns as a list, a UUID as it is, long texts hashed."""
    table = source.table
    names = table.key or next(iter(table.unique), ()) or (table.columns[0].name,)
    sql = tuple(map(source.column, names))
    profile, column = catalog.profile(table, names[0]), table.column(names[0])
    given = {}
    if len(sql) == 1 and profile.kind == "uuid":
        is_unique = bool(table.key) or names in table.unique
        given = {"as": "native id" if is_unique else "hashed id"}
    elif len(sql) == 1 and column.kind == "text" and max(profile.longest, column.length or 0) > 8:
        given = {"as": "hashed id"}
    return Guess(
        sql=sql if len(sql) > 1 else sql[0],
        score=0.95 if table.key else 0.45,
        why="primary key" if table.key else "no primary key was found; it must be unique",
        column=f"{table.name}.{names[0]}",
        parameters=given,
    )


def columns_of(
    catalog: Catalog,
    source: TableSource,
    place: str,
    shapes: Mapping[str, FieldShape],
    taken: Iterable[str],
) -> dict[str, Guess]:
    """The best column of each field that has one; no column serves two.

    `place` is where the vocabulary has the fields: a resource, or `resource.list`.
    """
    used = set(taken)
    scored = sorted(_scored(catalog, source.table, place, shapes, used), reverse=True)
    guesses: dict[str, Guess] = {}
    for score, _, field, column in scored:
        if field in guesses or column in used:
            continue
        used.add(column)
        others = [c for s, _, f, c in scored if f == field and c != column and s >= 0.6]
        guess = _column_guess(catalog, source, column, f"{place}.{field}", shapes[field])
        guesses[field] = replace(guess, score=guess.score or score, others=tuple(others[:2]))
    return guesses


def _column_guess(
    catalog: Catalog, source: TableSource, column: str, place: str, shape: FieldShape
) -> Guess:
    """The column as a field; without a score where it depends on how the others fit."""
    profile = catalog.profile(source.table, column)
    resource, _, field = place.rpartition(".")
    named = catalog.alike(source.table, column, FIELDS[resource].get(field, ())) >= 0.5
    why, score = "by its name" if named else "by its values", 0.0
    if is_only_a_day(profile, shape.format):
        why = f"TODO: days written as {profile.pattern}; make YYYY-MM-DD of it in SQL"
        score = 0.55
    given, name = parameters(profile, shape, place), f"{source.table.name}.{column}"
    return Guess(sql=source.column(column), score=score, why=why, column=name, parameters=given)


def _scored(
    catalog: Catalog, table: Table, place: str, shapes: Mapping[str, FieldShape], taken: set[str]
) -> Iterator[tuple[float, int, str, str]]:
    columns = [(-n, each) for n, each in enumerate(table.columns) if each.name not in taken]
    for field, wanted in FIELDS[place].items():
        for order, column in columns:
            fits = fit(column, catalog.profile(table, column.name), field, shapes[field])
            name = catalog.alike(table, column.name, wanted)
            if field in ("email", "phone") and fits == 1:
                name = max(name, 0.45)
            if field == "phone" and likeness(tokens(column.name), PHRASES["not_phones"][:1]) > 0.6:
                continue
            score = 0.75 * name + 0.25 * fits
            if fits and name >= 0.45 and score >= LEAST:
                yield score, order, field, column.name
