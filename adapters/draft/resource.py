"""The rows of one resource: the columns of its table, then what is beside it in others."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from statistics import fmean

from adapters.base import FieldShape, Shapes
from adapters.draft.columns import fit, is_only_a_day, parameters
from adapters.draft.document import Guess, RowsGuess
from adapters.draft.tables import Catalog, TableSource, literal, names_key, party_of
from adapters.draft.vocabulary import FIELDS, PHRASES, likeness, tokens

LEAST = 0.5
# Fields whose codes are often explained in a table of their own, and how many rows that has.
LABELLED = ("species", "breed", "category", "unit", "location", "supplier", "status", "color")
MOST_LABELS = 2_000
# How many of the values of an attribute must look so.
MOST = 0.7


class ResourceGuess:
    """One resource's rows, filled step by step: the columns first, then what is elsewhere.

    `key` is the column by which other tables refer to a row.
    """

    def __init__(self, catalog: Catalog, resource: str, shapes: Shapes) -> None:
        self.catalog, self.resource, self.shapes = catalog, resource, shapes[resource]
        self.chosen = catalog.chosen[resource]
        self.source = self.chosen.source
        self.table, self.key = self.source.table, self.source.column(self.chosen.key[0])
        self._aliases = [self.source.alias]
        self.rows = rows_of(self.source, self.chosen.score)
        self.rows.others = self.chosen.others
        self.fields: dict[str, Guess] = {}

    def guessed(self, special: Callable[["ResourceGuess"], None] | None) -> RowsGuess:
        """The rows; `special` is what is known of this resource alone."""
        own = {name: shape for name, shape in self.shapes.items() if "[]." not in name}
        self.fields |= references(self.source, own)
        for field in LABELLED:
            if field in own and (label := self._label(field)):
                self.fields[field] = label
        taken = {guess.name for guess in self.fields.values()} | {self.chosen.kind or ""}
        taken |= set(self.table.key) if len(self.table.key) == 1 else set()
        self.fields = {**columns_of(self.source, self.resource, own, taken), **self.fields}
        self._key_as_text()
        for field, guess in attributes(self.source, self.resource, own):
            if field not in self.fields or self.fields[field].score < guess.score - 0.1:
                self.fields[field] = guess
        if special is not None:
            special(self)
        self._never_changed()
        if (kind := self.chosen.kind) is not None:
            self.rows.seen = f"{kind} has {', '.join(self.source.profiles[kind].codes)}"
            self.rows.where.append(self.source.is_one_of(kind, self.chosen.codes))
        self.rows.where += self.source.existing({guess.name for guess in self.fields.values()})
        self.rows.fields = {name: self.fields[name] for name in self.shapes if name in self.fields}
        return self.rows

    def _key_as_text(self) -> None:
        """A key that people read: an article's number."""
        key = self.table.key
        if len(key) != 1 or self.table.columns[key[0]].kind != "text":
            return
        for field in {"reference", "number"} & {*FIELDS[self.resource]} - {*self.fields}:
            if self.source.alike(key[0], FIELDS[self.resource][field]) >= 0.6:
                self.fields[field] = self.source.guess(key[0], 0.7, "the key")

    def _label(self, field: str) -> Guess | None:
        """A label in a table of its own, for which the rows get a join."""
        for column in self.table.columns:
            alike = likeness(names_key(column)[0], FIELDS[self.resource][field])
            if alike < 0.6 or self.table.key == (column,):
                continue
            found = next(self._labels(column), None)
            if found is None or found[0] not in self.catalog.others:
                continue
            labels, (key, label) = found[0].beside(*self._aliases), found[1:]
            self._aliases.append(labels.alias)
            on = f"{labels.column(key)} = {self.source.column(column)}"
            self.rows.from_ += f" LEFT JOIN {labels} ON {on}"
            why = f"{self.table.name}.{column} is explained in {labels.table.name}"
            place = f"{self.resource}.{field}"
            given = parameters(labels.profiles[label], self.shapes[field], place)
            return replace(labels.guess(label, 0.6 + 0.3 * alike, why, given), own=column)
        return None

    def _labels(self, column: str) -> Iterator[tuple[TableSource, str, str]]:
        """The tables that may explain a column's codes, each with its key and its label."""
        for source, key in self._explaining(column):
            label = source.best("label", ("text",), least=0.5)
            if label is not None and label != key:
                yield source, key, label

    def _explaining(self, column: str) -> Iterator[tuple[TableSource, str]]:
        for foreign in self.table.foreign_keys:
            explains = self.catalog.named(foreign["referred_table"])
            if foreign["constrained_columns"] == [column] and explains is not None:
                yield explains, foreign["referred_columns"][0]
                return
        words, is_key = names_key(column)
        kind = self.table.columns[column].kind
        for source in self.catalog.sources:
            table = source.table
            if len(table.key) != 1 or source is self.source or not 0 < table.rows <= MOST_LABELS:
                continue
            name = table.key[0]
            is_named = is_key and likeness(words, [source.called]) >= 0.8
            is_meant = is_named or name.lower() == column.lower() != "id"
            if table.columns[name].kind == kind and is_meant:
                yield source, name

    def _never_changed(self) -> None:
        """A record without a change is as old as its creation: else `updatedSince` misses it."""
        changed, made = self.fields.get("updatedAt"), self.fields.get("createdAt")
        if changed is None or made is None or changed.table != self.table.name:
            return
        profile = self.source.profiles[changed.name]
        given = str(changed.sql)
        for zero in profile.zeros if profile.is_text else ():
            given = f"NULLIF({given}, {literal(zero)})"
        if changed.parameters == made.parameters and (profile.blank or profile.zeros):
            self.fields["updatedAt"] = replace(changed, sql=f"COALESCE({given}, {made.sql})")

    def child(self, phrase: str) -> tuple[TableSource, str, float] | None:
        """The table whose rows belong to a record, the column that refers to it, and a score."""
        found = [
            (0.5 * alike + 0.5 * link.score, link.name, source)
            for source in self.catalog.others
            if (alike := likeness(source.called, PHRASES[phrase])) >= 0.5
            and (link := source.reference(self.resource))
        ]
        if not found:
            return None
        score, column, best = max(found, key=lambda each: each[:2])
        return best.beside(self.source.alias), column, score

    def number(self, guess: Guess) -> str:
        """The number in a column, or in a row of its own; in a text such as '1 234,50' too."""
        sql = f"({guess.sql})" if str(guess.sql).startswith("SELECT") else str(guess.sql)
        source, (column, _, attribute) = self.catalog.named(guess.table), guess.name.partition(":")
        is_raw = attribute or not sql.startswith("(")
        if source is None or not is_raw or not source.profiles[column].is_text:
            return sql
        pointed = f"REPLACE(REPLACE({sql}, ' ', ''), ',', '.')"
        return f"CAST(NULLIF({pointed}, '') AS DECIMAL(12, 2))"


def rows_of(source: TableSource, score: float) -> RowsGuess:
    """A table's rows, and their key: several columns as a list, a UUID as it is, others hashed."""
    table = source.table
    names = table.key or next(iter(table.unique), ()) or (next(iter(table.columns)),)
    profile, column = source.profiles[names[0]], table.columns[names[0]]
    given = {}
    if len(names) == 1 and profile.kind == "uuid":
        is_unique = bool(table.key) or names in table.unique
        given = {"as": "native id" if is_unique else "hashed id"}
    elif len(names) == 1 and column.kind == "text" and max(profile.longest, column.length or 0) > 8:
        given = {"as": "hashed id"}
    why = "primary key" if table.key else "no primary key was found; it must be unique"
    sql = tuple(map(source.column, names)) if len(names) > 1 else ()
    key = source.guess(names[0], 0.95 if table.key else 0.45, why, given, sql)
    return RowsGuess(table=table.name, score=score, from_=str(source), key=key)


def columns_of(
    source: TableSource, place: str, shapes: Mapping[str, FieldShape], taken: Iterable[str]
) -> dict[str, Guess]:
    """The best column of each field that has one; no column serves two.

    `place` is where the vocabulary has the fields: a resource, or `resource.list`.
    """
    used = set(taken)
    scored = sorted(_scored(source, place, shapes, used), reverse=True)
    guesses: dict[str, Guess] = {}
    for score, _, field, column in scored:
        if field in guesses or column in used:
            continue
        used.add(column)
        others = [c for s, _, f, c in scored if f == field and c != column and s >= 0.6]
        profile, shape = source.profiles[column], shapes[field]
        is_named = source.alike(column, FIELDS[place].get(field, ())) >= 0.5
        likely, why = score, "by its name" if is_named else "by its values"
        if is_only_a_day(profile, shape.format):
            why = f"TODO: days written as {profile.pattern}; make YYYY-MM-DD of it in SQL"
            likely = 0.55
        given = parameters(profile, shape, f"{place}.{field}")
        guess = source.guess(column, likely, why, given)
        guesses[field] = replace(guess, others=tuple(others[:2]))
    return guesses


def _scored(
    source: TableSource, place: str, shapes: Mapping[str, FieldShape], taken: set[str]
) -> Iterator[tuple[float, int, str, str]]:
    columns = [(-n, each) for n, each in enumerate(source.table.columns) if each not in taken]
    for field, wanted in FIELDS[place].items():
        for order, column in columns:
            fits = fit(column, source.profiles[column], field, shapes[field])
            name = source.alike(column, wanted)
            if field in ("email", "phone") and fits == 1:
                name = max(name, 0.45)
            if field == "phone" and likeness(tokens(column), PHRASES["not_phones"][:1]) > 0.6:
                continue
            score = 0.75 * name + 0.25 * fits
            if fits and name >= 0.45 and score >= LEAST:
                yield score, order, field, column


def references(source: TableSource, shapes: Mapping[str, FieldShape]) -> dict[str, Guess]:
    """The column of each field that refers to a resource; no column serves two."""
    scored = [
        (guess, field)
        for field, shape in shapes.items()
        if shape.refers and (guess := source.reference(shape.refers))
    ]
    scored.sort(key=lambda pair: pair[0].score, reverse=True)
    best = {guess.column: (field, guess) for guess, field in reversed(scored)}
    return dict(best.values())


def attributes(
    own: TableSource, resource: str, shapes: Mapping[str, FieldShape]
) -> Iterator[tuple[str, Guess]]:
    """The fields of a resource's rows that are kept as one row each: extra fields, phones."""
    for table in own.catalog.others if len(own.table.key) == 1 else ():
        source = table.beside(own.alias)
        value = source.best("value", ("text", "number", "phone", "email"))
        mark, marked = _mark(source, own, resource)
        codes = (n for n, p in source.profiles.items() if p.is_text and p.is_code)
        named = [column for column in codes if column not in (value, mark)]
        code = source.best("attribute", among=named)
        if mark:  # the rows of several tables stand in it
            entity = source.best("entity", ("number", "text"))
        else:
            found = source.reference(resource)
            entity = found.name if found else None
        if value is None or code is None or entity is None:
            continue
        where = [f"{source.column(mark)} = {literal(marked)}"] if mark else []
        where.append(f"{source.column(entity)} = {own.column(own.table.key[0])}")
        for field, names, score in _fields_in(source, resource, code, value):
            # the preferred one first, then the newest
            preferred = source.best("preferred", ("flag",))
            order = [*([preferred] if preferred else []), *(source.table.key or (value,))]
            sql = source.select(
                source.column(value),
                *where,
                source.is_one_of(code, names),
                *source.existing(),
                first_by=", ".join(f"{source.column(name)} DESC" for name in order),
            )
            profile = replace(source.profiles[value], codes=(), pattern=None)
            given = parameters(profile, shapes[field], f"{resource}.{field}")
            given = {} if shapes[field].values else given
            why = f"rows {', '.join(names)} of {source.table.name}"
            column = f"{source.table.name}.{value}:{names[0]}"
            yield field, Guess(sql, min(0.84, 0.5 + 0.35 * score), why, column, given)


def _mark(source: TableSource, own: TableSource, resource: str) -> tuple[str | None, str]:
    """The column that says which table a row is about, and how it calls this one."""
    for column, profile in source.profiles.items():
        for code in profile.codes if source.alike(column, PHRASES["table_name"]) >= 0.7 else ():
            is_name = code.lower() == own.table.name.lower()
            alike = likeness(tokens(code), [own.called]) >= 0.85
            if is_name or alike or party_of(code) == resource:
                return column, code
    return None, ""


def _fields_in(
    source: TableSource, resource: str, code: str, value: str
) -> Iterator[tuple[str, list[str], float]]:
    """The fields among the attributes, by their names and by what their values look like."""
    names = source.profiles[code].codes
    for field, wanted in FIELDS[resource].items():
        score, name = max(((likeness(tokens(n), wanted), n) for n in names), default=(0.0, ""))
        if field not in ("phone", "email") and score >= 0.7:
            yield field, [name], score
    if resource != "clients":
        return
    columns = source.table.columns
    pairs = list(zip(columns[code].seen, columns[value].seen, strict=True))
    held = {n: [str(v) for c, v in pairs if str(c) == n and str(v).strip()] for n in names}
    held = {name: texts for name, texts in held.items() if texts}
    mails = [n for n, texts in held.items() if fmean("@" in text for text in texts) > MOST]
    phones = [n for n, texts in held.items() if fmean(map(_is_phone, texts)) > MOST]
    phones = [n for n in phones if likeness(tokens(n), PHRASES["not_phones"]) < 0.7]
    named = [n for n in phones if likeness(tokens(n), PHRASES["phones"]) >= 0.7]
    if mails:
        yield "email", mails[:1], 0.9
    if phones:
        yield "phone", named or phones, 0.9


def _is_phone(text: str) -> bool:
    return sum(letter.isdigit() for letter in text) >= 6 and "@" not in text
