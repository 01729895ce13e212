"""What stands in other tables: whom a row refers to, who owns an animal, fields as rows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from statistics import fmean

from adapters.base import FieldShape
from adapters.draft.columns import TIMES, parameters
from adapters.draft.document import Guess
from adapters.draft.tables import TableSource, literal, party_of
from adapters.draft.vocabulary import FIELDS, PARTIES, PHRASES, likeness, tokens

# How many of the values must look so.
MOST = 0.7


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


def owner(source: TableSource, patient: str) -> Guess | None:
    """The owner through a table of who owns which animal; `patient` is the animal's key."""
    found: list[tuple[float, Guess]] = []
    for table in source.catalog.others:
        link = table.beside(source.alias)
        animal, client = link.reference("patients"), link.reference("clients")
        if animal is None or client is None or animal.column == client.column:
            continue
        score = min(animal.score, client.score) - 0.1
        alike = score + 0.1 * likeness(link.called, PHRASES["ownerships"])
        starts = link.best(PHRASES["starts"], TIMES)
        sql = link.select(
            link.column(client.name),
            f"{link.column(animal.name)} = {patient}",
            *_in_force(link),
            first_by=f"{link.column(starts or client.name)} DESC",
        )
        why = f"through {link.table.name}"
        found.append((alike, link.guess(client.name, score, why, sql=sql)))
    return max(found, key=lambda each: each[0])[1] if found else None


def _in_force(link: TableSource) -> Iterator[str]:
    """That a row holds today: of an owner, not ended, not deleted."""
    for column, profile in link.profiles.items():
        owners = [c for c in profile.codes if likeness(tokens(c), PARTIES["owners"]) > 0.8]
        is_kind = profile.is_code and link.alike(column, PHRASES["kind"]) >= 0.6
        if is_kind and owners and len(profile.codes) > 1:
            yield link.is_one_of(column, owners[:1])
    ends = link.best(PHRASES["ends"], ("moment", "day"))
    if ends is not None:
        yield unset(link, ends)
    yield from (sql for sql, _ in existing(link))


def unset(source: TableSource, column: str, *, is_set: bool = False) -> str:
    """That a time is none; its zero dates are none as well."""
    name, profile = source.column(column), source.profiles[column]
    if not profile.zeros or not profile.is_text:
        return f"{name} IS {'NOT ' if is_set else ''}NULL"
    zero = literal(profile.zeros[0])
    return f"COALESCE({name}, {zero}) {'<>' if is_set else '='} {zero}"


def existing(source: TableSource, taken: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """Conditions that leave deleted and inactive rows out, each with its column."""
    for column, profile in source.profiles.items():
        gone = source.alike(column, PHRASES["deleted"]) >= 0.8
        if column in taken:
            continue
        if gone and profile.kind in TIMES:
            yield unset(source, column), column
        elif profile.kind == "flag" and (gone or source.alike(column, PHRASES["active"]) >= 0.8):
            said, name = flag(source, column, is_yes=not gone), source.column(column)
            is_sure = not source.table.columns[column].nullable or not profile.blank or not gone
            yield f"{name if is_sure else f'COALESCE({name}, {said})'} = {said}", column


def flag(source: TableSource, column: str, *, is_yes: bool = True) -> str:
    """How a flag says yes, or no."""
    profile = source.profiles[column]
    value = (profile.yes if is_yes else profile.no)[0]
    if not isinstance(value, bool):
        return literal(value, source.table.columns[column].kind)
    is_native = source.catalog.database.dialect.supports_native_boolean
    return str(value).upper() if is_native else str(int(value))


def attributes(
    own: TableSource, resource: str, shapes: Mapping[str, FieldShape]
) -> Iterator[tuple[str, Guess]]:
    """The fields of a resource's rows that are kept as one row each: extra fields, phones."""
    for table in own.catalog.others if len(own.table.key) == 1 else ():
        source = table.beside(own.alias)
        value = source.best(PHRASES["value"], ("text", "number", "phone", "email"))
        mark, marked = _mark(source, own, resource)
        codes = (n for n, p in source.profiles.items() if p.is_text and p.is_code)
        named = [column for column in codes if column not in (value, mark)]
        code = source.best(PHRASES["attribute"], among=named)
        if mark:  # the rows of several tables stand in it
            entity = source.best(PHRASES["entity"], ("number", "text"))
        else:
            found = source.reference(resource)
            entity = found.name if found else None
        if value is None or code is None or entity is None:
            continue
        where = [f"{source.column(mark)} = {literal(marked)}"] if mark else []
        where.append(f"{source.column(entity)} = {own.column(own.table.key[0])}")
        for field, names, score in _fields_in(source, resource, code, value):
            # the preferred one first, then the newest
            preferred = source.best(PHRASES["preferred"], ("flag",))
            order = [*([preferred] if preferred else []), *(source.table.key or (value,))]
            sql = source.select(
                source.column(value),
                *where,
                source.is_one_of(code, names),
                *(condition for condition, _ in existing(source)),
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
