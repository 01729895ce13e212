"""Guesses the fields of one resource: from its table's columns, then from other tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from adapters.base import FieldShape, inside
from adapters.draft.columns import Profile, Profiles, fit, is_only_a_day, parameters, profile_of
from adapters.draft.database import are_codes
from adapters.draft.links import linked, narrow
from adapters.draft.relations import names_key
from adapters.draft.sources import Guess, TableSource, literal
from adapters.draft.splits import party_of
from adapters.draft.tables import Rows
from adapters.draft.vocabulary import FIELDS, PHRASES, Phrases, likeness, tokens

LEAST = 0.5
# Fields whose codes are often explained in a table of their own, and that table's most rows.
LABELLED = ("species", "breed", "category", "unit", "location", "supplier", "status", "color")
MOST_LABELS = 2_000
# The share of an attribute's values that must look alike.
MOST = 0.7


def fill(rows: Rows, special: Callable[[Rows], None] | None) -> None:
    """Guesses the fields of rows; `special` guesses what only this resource has."""
    source, shapes = rows.source, inside(rows.shapes)
    narrow(rows)
    rows.fields |= references(source, shapes, *rows.where)
    for field, shape in shapes.items():
        if shape.refers and field not in rows.fields and (guess := linked(rows, shape.refers)):
            rows.fields[field] = guess
    rows.fields |= dict(_labels(rows, shapes))
    own = [guess for guess in rows.fields.values() if guess.table == source.table.name]
    taken = {guess.name for guess in own} | {guess.own for guess in rows.fields.values()}
    taken |= {rows.kind or "", *source.single_key}
    rows.fields = {**columns_of(source, rows.place, shapes, taken), **rows.fields}
    _key_as_text(rows)
    for field, guess in attributes(rows, shapes):
        if _is_better(rows, field, guess):
            rows.fields[field] = guess
    if special is not None:
        special(rows)
    _never_changed(rows)
    rows.where = [*source.part, *rows.where]
    rows.where += source.existing({guess.name for guess in rows.fields.values()})
    rows.fields = {name: rows.fields[name] for name in shapes if name in rows.fields}


def _is_better(rows: Rows, field: str, guess: Guess) -> bool:
    """Returns whether an attribute is better than the column; a name beside a first one is none."""
    own = rows.fields.get(field)
    if own is None or own.score < guess.score - 0.1:
        return True
    is_any_name = rows.source.alike(own.name, PHRASES["surname"]) < 0.8
    return field == "lastName" and "firstName" in rows.fields and is_any_name


def _key_as_text(rows: Rows) -> None:
    """Takes a text key that people read, such as an article's number, as a field."""
    for name in rows.source.single_key:
        if rows.source.table.columns[name].kind == "text":
            phrases = FIELDS[rows.place]
            for field in {"reference", "number"} & phrases.keys() - rows.fields.keys():
                if rows.source.alike(name, phrases[field]) >= 0.6:
                    rows.fields[field] = rows.source.guess(name, 0.7, "the key")


def _labels(rows: Rows, shapes: Mapping[str, FieldShape]) -> Iterator[tuple[str, Guess]]:
    """Yields the fields with labels in a table of their own, for which the rows get a join."""
    source, table = rows.source, rows.source.table
    aliases = [*source.aliases]
    for field in filter(shapes.__contains__, LABELLED):
        for column in table.columns:
            alike = likeness(names_key(column)[0], FIELDS[rows.place][field])
            match = next(_explaining(source, column), None) if alike >= 0.6 else None
            if match is None or table.key == (column,) or match[0] not in source.catalog.others:
                continue
            labels, (key, label) = match[0].beside(*aliases), match[1:]
            aliases.append(labels.alias)
            rows.joins += f" LEFT JOIN {labels} ON {labels.column(key)} = {source.column(column)}"
            why = f"{table.name}.{column} is explained in {labels.table.name}"
            given = parameters(labels.profiles[label], shapes[field], f"{rows.place}.{field}")
            yield field, replace(labels.guess(label, 0.6 + 0.3 * alike, why, given), own=column)
            break


def _explaining(source: TableSource, column: str) -> Iterator[tuple[TableSource, str, str]]:
    """Yields the tables that may explain a column's codes, each with its key and its label."""
    for other, key in _with_keys(source, column):
        label = other.best("label", ("text",), least=0.5)
        if label is not None and label != key:
            yield other, key, label


def _with_keys(source: TableSource, column: str) -> Iterator[tuple[TableSource, str]]:
    for foreign in source.table.foreign_keys:
        explains = source.catalog.named(foreign["referred_table"])
        if foreign["constrained_columns"] == [column] and explains is not None:
            yield explains, foreign["referred_columns"][0]
            return
    words, is_key = names_key(column)
    kind = source.table.columns[column].kind
    for other in source.catalog.sources:
        table = other.table
        if other is source or not 0 < table.rows <= MOST_LABELS:
            continue
        for name in other.single_key:
            is_named = is_key and likeness(words, [other.called]) >= 0.8
            is_meant = is_named or name.lower() == column.lower() != "id"
            if table.columns[name].kind == kind and is_meant:
                yield other, name


def _never_changed(rows: Rows) -> None:
    """Takes the creation for the change of an unchanged record, else `updatedSince` misses it."""
    changed, made = rows.fields.get("updatedAt"), rows.fields.get("createdAt")
    if changed is None or made is None or changed.table != rows.source.table.name:
        return
    profile = rows.source.profiles[changed.name]
    given = str(changed.sql)
    for zero in profile.zeros if profile.is_text else ():
        given = f"NULLIF({given}, {literal(zero)})"
    if changed.parameters == made.parameters and (profile.blank or profile.zeros):
        rows.fields["updatedAt"] = replace(changed, sql=f"COALESCE({given}, {made.sql})")


def child(rows: Rows, phrase: str) -> tuple[TableSource, Guess] | None:
    """Returns the table whose rows belong to a record, and the column that refers to it."""
    links = [
        (0.5 * alike + 0.5 * link.score, link.name, source)
        for source in rows.source.catalog.others
        if (alike := likeness(source.called, PHRASES[phrase])) >= 0.5
        and (link := source.reference(rows.place))
    ]
    if not links:
        return None
    score, column, best = max(links, key=lambda scored: scored[:2])
    source = best.beside(*rows.source.aliases)
    return source, source.guess(column, score, "by its name")


def key_of(source: TableSource) -> Guess:
    """Returns a row's key: a UUID as it is, long texts and several columns hashed, else sealed."""
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
    guess = source.guess(names[0], 0.95 if table.key else 0.45, why, given, sql)
    return replace(guess, proof="the primary key") if table.key else guess


def columns_of(
    source: TableSource, place: str, shapes: Mapping[str, FieldShape], taken: Iterable[str]
) -> dict[str, Guess]:
    """Returns the best column of each field at a place of the vocabulary; no column serves two."""
    used = set(taken)
    scored = sorted(_scored(source, place, shapes, used), reverse=True)
    guesses: dict[str, Guess] = {}
    for score, _, field, column in scored:
        if field in guesses or column in used:
            continue
        used.add(column)
        others = [c for s, _, f, c in scored if f == field and c != column and s >= 0.6]
        profile, shape = source.profiles[column], shapes[field]
        is_named = source.alike(column, FIELDS[place].get(field, Phrases())) >= 0.5
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
    columns = [(-n, name) for n, name in enumerate(source.table.columns) if name not in taken]
    for field, phrases in FIELDS[place].items():
        for order, column in columns:
            fits = fit(column, source.profiles[column], field, shapes[field])
            name = source.alike(column, phrases)
            if field in ("email", "phone") and fits == 1:
                name = max(name, 0.45)
            if field == "phone" and likeness(tokens(column), PHRASES["not_phones"][:1]) > 0.6:
                continue
            score = 0.75 * name + 0.25 * fits
            if fits and name >= 0.45 and score >= LEAST:
                yield score, order, field, column


def references(
    source: TableSource, shapes: Mapping[str, FieldShape], *conditions: str
) -> dict[str, Guess]:
    """Returns the column of each field that refers to a resource; no column serves two."""
    scored = [
        (guess, field)
        for field, shape in shapes.items()
        if shape.refers and (guess := source.reference(shape.refers, *conditions))
    ]
    scored.sort(key=lambda pair: pair[0].score, reverse=True)
    best = {guess.column: (field, guess) for guess, field in reversed(scored)}
    return dict(best.values())


def attributes(rows: Rows, shapes: Mapping[str, FieldShape]) -> Iterator[tuple[str, Guess]]:
    """Yields the fields that are kept as one row each, such as extra fields and phones."""
    own, resource = rows.source, rows.place
    for table in own.catalog.others if own.single_key else ():
        source = table.beside(*own.aliases)
        codes = [n for n, p in source.profiles.items() if p.is_text and p.is_code]
        value = source.best("value", ("text", "number", "phone", "email")) if codes else None
        if value is None:
            continue
        mark, marked = _mark(source, own, resource)
        named = [column for column in codes if column not in (value, mark)]
        code = source.best("attribute", among=named)
        if code is None:
            continue
        if mark:  # it has rows about several tables
            column = source.best("entity", ("number", "text"))
            entity = (column, rows.key) if column else None
        else:
            entity = about(source, rows)
        if entity is None:
            continue
        where = [f"{source.column(mark)} = {literal(marked)}"] if mark else []
        where.append(f"{source.column(entity[0])} = {entity[1]}")
        source = _of_part(source, rows, entity[0]) if rows.kind else source
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
            given = {}
            if field in shapes:
                profile = _of_names(source, code, value, names)
                given = parameters(profile, shapes[field], f"{resource}.{field}")
            why = f"rows {', '.join(names)} of {source.table.name}"
            column = f"{source.table.name}.{value}:{names[0]}"
            yield field, Guess(sql, min(0.84, 0.5 + 0.35 * score), why, column, given)


def _of_names(source: TableSource, code: str, value: str, names: Sequence[str]) -> Profile:
    """Returns what the values look like in the rows that have one of these names."""
    column = source.table.columns[value]
    pairs = zip(source.table.columns[code].seen, column.seen, strict=True)
    seen = [text for name, text in pairs if str(name).strip() in names]
    codes = {text for text in seen if text is not None}
    few = tuple(sorted(codes, key=str)) if are_codes(codes) else ()
    return profile_of(replace(column, seen=tuple(seen), codes=few))


def about(source: TableSource, rows: Rows) -> tuple[str, str] | None:
    """Returns the column of another table that leads to these rows, and what it equals in them."""
    own = rows.source
    ours = {join.source.table.name: own.column(join.own) for join in own.joins}
    ours |= {own.table.name: rows.key}
    for link in own.catalog.relations.links(source):
        if link.target.table.name in ours:
            return link.column, ours[link.target.table.name]
    guess = source.reference(rows.place) if rows.place in own.catalog.chosen else None
    return (guess.name, rows.key) if guess and guess.table == source.table.name else None


def _of_part(source: TableSource, rows: Rows, entity: str) -> TableSource:
    """Returns the table as the rows are that are about this part of a table."""
    own = replace(rows.source, joins=())
    is_its = f"{own.column(own.single_key[0])} = {source.column(entity)}"
    there = f"EXISTS ({own.select('1', is_its, *own.part)})"
    probe = own.catalog.probe
    table = probe.sample(source.table, str(source), source.column, [there])
    if table is None:
        return source
    profiles = Profiles(table.columns)
    return replace(source, table=table, profiles=profiles)


def _mark(source: TableSource, own: TableSource, resource: str) -> tuple[str | None, str]:
    """Returns the column that names the table a row is about, and its code for this one."""
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
    names = source.profiles[code].codes
    for field, phrases in FIELDS[resource].items():
        score, name = max(((likeness(tokens(n), phrases), n) for n in names), default=(0.0, ""))
        if field not in ("phone", "email") and score >= 0.7:
            yield field, [name], score
    dead = max((likeness(tokens(n), PHRASES["death"]), n) for n in names) if names else (0.0, "")
    if resource == "patients" and dead[0] >= 0.7:
        yield "death", [dead[1]], dead[0]
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
