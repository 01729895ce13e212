"""What stands in other tables: whom a row refers to, who owns an animal, fields as rows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from adapters.base import FieldShape
from adapters.draft.columns import parameters
from adapters.draft.database import Table
from adapters.draft.document import Guess
from adapters.draft.tables import Catalog, TableSource, literal, party_of
from adapters.draft.vocabulary import FIELDS, PARTIES, PHRASES, likeness, tokens


def reference(catalog: Catalog, source: TableSource, resource: str) -> Guess | None:
    """The column of the source that refers to a resource; all those of a key of several."""
    found = catalog.reference(source.table, resource)
    if found is None:
        return None
    sql: str | tuple[str, ...] = source.column(found.column)
    for key in source.table.foreign_keys:
        if found.column in key.columns and len(key.columns) > 1:
            sql = tuple(map(source.column, key.columns))
    column = f"{source.table.name}.{found.column}"
    return Guess(sql=sql, score=found.score, why=found.why, column=column)


def references(
    catalog: Catalog, source: TableSource, shapes: Mapping[str, FieldShape]
) -> dict[str, Guess]:
    """The column of each field that refers to a resource; no column serves two."""
    scored = [
        (guess, field)
        for field, shape in shapes.items()
        if shape.refers and (guess := reference(catalog, source, shape.refers))
    ]
    found: dict[str, Guess] = {}
    for guess, field in sorted(scored, key=lambda pair: -pair[0].score):
        if guess.column not in {other.column for other in found.values()}:
            found[field] = guess
    return found


def owner(catalog: Catalog, source: TableSource, patient: str) -> Guess | None:
    """The owner through a table of who owns which animal; `patient` is the animal's key."""
    found = [
        (guess.score + 0.1 * likeness(catalog.called(table), PHRASES["ownerships"]), guess)
        for table in catalog.others
        if (guess := _owner_in(catalog, catalog.source(table, source.alias), patient))
    ]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _owner_in(catalog: Catalog, link: TableSource, patient: str) -> Guess | None:
    animal = catalog.reference(link.table, "patients")
    client = catalog.reference(link.table, "clients")
    if animal is None or client is None or animal.column == client.column:
        return None
    conditions = [f"{link.column(animal.column)} = {patient}", *_in_force(catalog, link)]
    starts = catalog.best(link.table, PHRASES["starts"], ("moment", "day", "epoch"))
    order = f"{link.column(starts or client.column)} DESC"
    return Guess(
        sql=link.select_first(link.column(client.column), order, *conditions),
        score=min(animal.score, client.score) - 0.1,
        why=f"through {link.table.name}",
        column=f"{link.table.name}.{client.column}",
    )


def _in_force(catalog: Catalog, link: TableSource) -> Iterator[str]:
    """That a row holds today: of an owner, not ended, not deleted."""
    for column in link.table.columns:
        profile = catalog.profile(link.table, column.name)
        owners = [c for c in profile.codes if likeness(tokens(c), PARTIES["owners"]) > 0.8]
        alike = catalog.alike(link.table, column.name, PHRASES["kind"])
        if profile.is_code and alike >= 0.6 and owners and len(profile.codes) > 1:
            yield link.is_one_of(column.name, owners[:1])
    ends = catalog.best(link.table, PHRASES["ends"], ("moment", "day"))
    if ends is not None:
        yield unset(catalog, link, ends)
    yield from (sql for sql, _ in existing(catalog, link))


def unset(catalog: Catalog, source: TableSource, column: str, *, is_set: bool = False) -> str:
    """That a time is none; its zero dates are none as well."""
    name, profile = source.column(column), catalog.profile(source.table, column)
    if not profile.zeros or not profile.is_text:
        return f"{name} IS {'NOT ' if is_set else ''}NULL"
    zero = literal(profile.zeros[0])
    return f"COALESCE({name}, {zero}) {'<>' if is_set else '='} {zero}"


def existing(
    catalog: Catalog, source: TableSource, taken: Iterable[str] = ()
) -> Iterator[tuple[str, str]]:
    """Conditions that leave deleted and inactive rows out, each with its column."""
    for column in source.table.columns:
        profile, name = catalog.profile(source.table, column.name), source.column(column.name)
        gone = catalog.alike(source.table, column.name, PHRASES["deleted"]) >= 0.8
        active = catalog.alike(source.table, column.name, PHRASES["active"]) >= 0.8
        if column.name in taken:
            continue
        if gone and profile.is_time:
            yield unset(catalog, source, column.name), column.name
        elif profile.kind == "flag" and (gone or active):
            said = flag(catalog, source, column.name, is_yes=not gone)
            is_sure = not column.nullable or not profile.blank or not gone
            given = name if is_sure else f"COALESCE({name}, {said})"
            yield f"{given} = {said}", column.name


def flag(catalog: Catalog, source: TableSource, column: str, *, is_yes: bool = True) -> str:
    """How a flag says yes, or no."""
    profile, kind = catalog.profile(source.table, column), source.table.column(column).kind
    value = (profile.yes if is_yes else profile.no)[0]
    if not isinstance(value, bool):
        return literal(value, kind)
    return str(value).upper() if source.dialect.supports_native_boolean else str(int(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeTable:
    """A table of attributes: which of its rows are meant, its columns of names and of values."""

    source: TableSource
    where: tuple[str, ...]
    code: str
    value: str


class Attributes:
    """The fields of a resource's rows that are kept as one row each: extra fields, phones."""

    def __init__(
        self, catalog: Catalog, resource: str, own: TableSource, shapes: Mapping[str, FieldShape]
    ) -> None:
        self.catalog, self.resource, self.own, self.shapes = catalog, resource, own, shapes

    def found(self) -> Iterator[tuple[str, Guess]]:
        """Each field that is an attribute of the rows."""
        for table in self.catalog.others if len(self.own.table.key) == 1 else ():
            kept = self._kept_in(self.catalog.source(table, self.own.alias))
            if kept is not None:
                for field, names, score in self._fields_in(kept):
                    yield field, self._guess(kept, field, names, score)

    def _kept_in(self, source: TableSource) -> AttributeTable | None:
        """The table as one of attributes that belongs to the rows."""
        table, catalog = source.table, self.catalog
        value = catalog.best(table, PHRASES["value"], ("text", "number", "phone", "email"))
        mark = self._mark(table)
        code = self._code_column(table, {value, mark[0] if mark else None})
        if mark:  # the rows of several tables stand in it
            entity = catalog.best(table, PHRASES["entity"], ("number", "text"))
        else:
            found = catalog.reference(table, self.resource)
            entity = found.column if found else None
        if value is None or code is None or entity is None:
            return None
        marked = (f"{source.column(mark[0])} = {literal(mark[1])}",) if mark else ()
        where = (*marked, f"{source.column(entity)} = {self.own.column(self.own.table.key[0])}")
        return AttributeTable(source=source, where=where, code=code, value=value)

    def _code_column(self, table: Table, taken: set[str | None]) -> str | None:
        codes = [
            (self.catalog.alike(table, column.name, PHRASES["attribute"]), column.name)
            for column in table.columns
            if column.name not in taken
            and column.kind == "text"
            and self.catalog.profile(table, column.name).is_code
        ]
        score, code = max(codes, default=(0.0, ""))
        return code if score >= 0.6 else None

    def _mark(self, table: Table) -> tuple[str, str] | None:
        """The column that says which table a row is about, and how it calls this one."""
        called = [self.catalog.called(self.own.table)]
        for column in table.columns:
            if self.catalog.alike(table, column.name, PHRASES["table_name"]) < 0.7:
                continue
            for code in self.catalog.profile(table, column.name).codes:
                is_name = code.lower() == self.own.table.name.lower()
                alike = likeness(tokens(code), called) >= 0.85
                if is_name or alike or party_of(code) == self.resource:
                    return column.name, code
        return None

    def _fields_in(self, kept: AttributeTable) -> Iterator[tuple[str, list[str], float]]:
        """The fields among the attributes, by their names and by what their values look like."""
        table = kept.source.table
        names = self.catalog.profile(table, kept.code).codes
        for field, wanted in FIELDS[self.resource].items():
            score, name = max(((likeness(tokens(n), wanted), n) for n in names), default=(0.0, ""))
            if field not in ("phone", "email") and score >= 0.7:
                yield field, [name], score
        if self.resource != "clients":
            return
        pairs = list(zip(table.values(kept.code), table.values(kept.value), strict=True))
        held = {n: [str(v) for c, v in pairs if str(c) == n and str(v).strip()] for n in names}
        mails = [n for n, values in held.items() if _mostly(["@" in v for v in values])]
        phones = [
            n
            for n, values in held.items()
            if n not in mails and _mostly(list(map(_is_phone, values)))
        ]
        phones = [n for n in phones if likeness(tokens(n), PHRASES["not_phones"]) < 0.7]
        named = [n for n in phones if likeness(tokens(n), PHRASES["phones"]) >= 0.7]
        if mails:
            yield "email", mails[:1], 0.9
        if phones:
            yield "phone", named or phones, 0.9

    def _guess(self, kept: AttributeTable, field: str, names: list[str], score: float) -> Guess:
        source, table, shape = kept.source, kept.source.table, self.shapes[field]
        where = [*kept.where, source.is_one_of(kept.code, names)]
        where += [sql for sql, _ in existing(self.catalog, source)]
        # the preferred one first, then the newest
        preferred = self.catalog.best(table, PHRASES["preferred"], ("flag",))
        order = [*([preferred] if preferred else []), *(table.key or (kept.value,))]
        by = ", ".join(f"{source.column(name)} DESC" for name in order)
        profile = replace(self.catalog.profile(table, kept.value), codes=(), pattern=None)
        place = f"{self.resource}.{field}"
        return Guess(
            sql=source.select_first(source.column(kept.value), by, *where),
            score=min(0.84, 0.5 + 0.35 * score),
            why=f"rows {', '.join(names)} of {table.name}",
            column=f"{table.name}.{kept.value}:{names[0]}",
            parameters={} if shape.values else parameters(profile, shape, place),
        )


def _mostly(tests: list[bool]) -> bool:
    return sum(tests) > 0.7 * len(tests)


def _is_phone(text: str) -> bool:
    return sum(letter.isdigit() for letter in text) >= 6 and "@" not in text
