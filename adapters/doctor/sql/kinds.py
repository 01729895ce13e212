"""The law of kinds: a table whose rows are chosen by their kind elsewhere is chosen so here too."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import Select, func, literal_column, select, text
from sqlalchemy.exc import DBAPIError

from adapters.doctor.case import LawLook, Look
from adapters.doctor.laws.voids import is_flag, is_mark, mark_judged, marks_told
from adapters.doctor.sql.desk import bare_name, text_of
from adapters.doctor.sql.rows import SqlCase
from adapters.doctor.values import LONGEST_CODE
from adapters.documents.document import Place
from adapters.examination import Verdict, counted
from adapters.mapping.models import ListMap, ResourceMap, RowSource
from adapters.sql.columns import rows_of, sql

# A column with more values than these tells no kinds apart.
MOST_KINDS = 12
_QUOTED_TEXT = r"(?:b|N)?'(?:[^']|'')*'"
_NAME = r"(?:\"[^\"]+\"|`[^`]+`|\[[^\]]+\]|\w+)"
_CONSTANT = rf"(?:{_QUOTED_TEXT}|-?\d+(?:\.\d+)?|TRUE\b|FALSE\b)"
_TABLES = re.compile(
    rf"(\bFROM|\bJOIN|^)\s*({_NAME}(?:\.{_NAME})?)(?:\s+(?:AS\s+)?"
    rf"(?!(?:LEFT|INNER|CROSS|JOIN|RIGHT|FULL|ON|WHERE|ORDER|GROUP|LIMIT)\b)({_NAME}))?",
    re.IGNORECASE,
).findall
_MENTIONS = re.compile(rf"({_NAME})\s*\.\s*({_NAME})").findall
_BARE_NAMES = re.compile(r"\w+").findall
_EQUALS = re.compile(
    rf"({_NAME})\s*\.\s*({_NAME})\s*(?:=\s*{_CONSTANT}(?!\s*[-+*/|])|IN\s*\(\s*{_CONSTANT})",
    re.IGNORECASE,
).findall


Source = ResourceMap | ListMap | RowSource


@dataclass(slots=True)
class TableUse:
    """A place of the mapping that reads rows of a table, and the columns that it looks at.

    `chosen` are those that it compares with constants. A joined table is found by a key, and
    chooses no rows. `rows` are the source whose own table it is, with the `texts` of its values.
    """

    table: str
    named: str
    place: Place
    is_joined: bool
    spelt: dict[str, str] = field(default_factory=dict)
    chosen: set[str] = field(default_factory=set)
    rows: Source | None = None
    alias: str = ""
    texts: Sequence[str] = ()


def kind_laws(case: SqlCase) -> Iterator[Look]:
    """Yields a look at the kinds of rows, and one at the marks of void rows."""
    uses = [use for use in _uses(case) if not case.is_lost(*use.place[:2])]
    yield case.look("laws", "kinds", partial(_kinds, uses), "resources")
    own = [use for use in uses if use.rows is not None]
    yield case.look("laws", "voids", partial(_marks, own), "resources")


async def _kinds(uses: Sequence[TableUse], case: SqlCase, look: Look) -> None:
    """Tells of columns by which all other places choose rows of a table, and one does not."""
    for use in uses:
        others = [each for each in uses if each.table == use.table and each is not use]
        others = [] if use.is_joined else [each for each in others if not each.is_joined]
        kinds = set[str]().union(*(each.chosen for each in others)) - use.spelt.keys()
        part = case.law("kinds-told-apart", look, *use.place)
        if part is None:
            return
        hiding = _hiding(use, uses, case)
        for kind in sorted(kinds):
            if all(kind in each.spelt for each in others):
                column = others[0].spelt[kind]
                with _noted(part, use, case):
                    codes = _codes(use, column, case)
                    if not (kind in hiding and is_flag(codes)):
                        _judged(use, others, column, codes, case, part)
    if not look.findings and (part := case.law("kinds-told-apart", look)):
        part.ok(f"{counted(len(uses), 'place')} that read rows tell their kinds apart alike")


def _hiding(use: TableUse, uses: Sequence[TableUse], case: SqlCase) -> set[str]:
    """Returns the columns by which the resource that a field refers to hides what it leads to.

    An old record may well lead to a vet who has left: the law of references tells of that.
    """
    match use.place:
        case ("resources", str(name), "fields", str(field_)):
            shape = case.adapter.options.shapes[name].get(field_)
            owner: Place = ("resources", shape.refers if shape and shape.refers else "")
            own = (it for it in uses if it.rows is not None and it.place[:2] == owner)
            return set[str]().union(*(it.spelt for it in own if it.table == use.table))
    return set()


async def _marks(uses: Sequence[TableUse], case: SqlCase, look: Look) -> None:
    """Tells of marks of void rows in the tables of sources at which nothing looks."""
    connection = case.session.connection
    for use in uses:
        part = case.law("void-rows-hidden", look, *use.place)
        if part is None or use.rows is None:
            return
        # nosemgrep: sql-is-never-put-together-as-text - a table that the mapping names
        one: Select[Any] = select(literal_column("*")).select_from(text(use.named)).limit(1)
        words = _BARE_NAMES(" ".join((use.rows.from_ or "", use.rows.where or "", *use.texts)))
        read = {word.lower() for word in words}
        with _noted(part, use, case):
            with connection.execute(one) as row:
                columns = list(row.keys())
            for column in columns:
                if is_mark(column) and column.lower() not in read:
                    quoted = connection.dialect.identifier_preparer.quote(column)
                    mark_judged(part, column, _codes(use, quoted, case, with_none=True))
    if part := case.law("void-rows-hidden", look):
        marks_told(part, len(uses))


@contextmanager
def _noted(part: LawLook, use: TableUse, case: SqlCase) -> Iterator[None]:
    """Notes that a law could not look at a table, where the database refuses the question."""
    try:
        with case.session.connection.begin_nested():
            yield
    except DBAPIError as error:
        part.note(f"{use.named} could not be looked at: {case.refusal(error)}")


def _uses(case: SqlCase) -> Iterator[TableUse]:
    mapping = case.adapter.mapping
    for name, resource in mapping.resources.items():
        yield from _in_rows(resource, ("resources", name))
        for inner, rows in resource.lists.items():
            yield from _in_rows(rows, ("resources", name, "lists", inner))
    for kind in ("hours", "busy", "slots"):
        for number, source in enumerate(getattr(mapping.diary, kind)):
            yield from _in_rows(source, ("diary", kind, number))


def _in_rows(rows: Source, place: Place) -> Iterator[TableUse]:
    """Yields the tables of a source, and those of the sub-selects in its values."""
    if rows.from_ is None:
        return
    where = rows.where or ""
    values = list(_values(rows, place))
    outer = " ".join((rows.from_, where, *(sql for _, sql in values)))
    at: Place = (*place, "where" if where else "from")
    own = ""
    for number, use in enumerate(_tables(rows.from_, outer, at)):
        if number == 0 and re.match(rf"\s*{_NAME}", rows.from_):
            use.rows, use.texts, own = rows, [sql for _, sql in values], use.table
        elif not use.is_joined:
            use.place = (*place, "from")
        yield use
    for value_place, expression in values:
        if re.search(r"\bselect\b", expression, re.IGNORECASE):
            inner = _tables(expression, expression, value_place, inner=True)
            is_by_key = _is_by_key(expression, rows)
            yield from (use for use in inner if not (is_by_key and use.table == own))


def _is_by_key(expression: str, rows: Source) -> bool:
    """Returns whether a sub-select finds rows by the key of the outer one."""
    key = getattr(rows, "key", None)
    for of, column in _MENTIONS(" ".join(key.expressions if key is not None else ())):
        name = rf"(?<!\w){re.escape(of)}\s*\.\s*{re.escape(column)}(?!\w)"
        compared = rf"{name}\s*(?:=|IN\b)|(?<![<>!])=\s*{name}|\bIN\s*\([^()]*{name}"
        if re.search(compared, expression, re.IGNORECASE):
            return True
    return False


def _values(rows: Source, place: Place) -> Iterator[tuple[Place, str]]:
    for name, source in getattr(rows, "fields", {}).items():
        yield from (((*place, "fields", name), sql) for sql in source.expressions)
    for name in ("key", "vet", "schedule", "weekday", "day", "start", "end"):
        source = getattr(rows, name, None)
        texts = getattr(source, "expressions", (source,) if source else ())
        yield from (((*place, name), sql) for sql in texts)
    if minutes := getattr(rows, "minutes", None):
        yield (*place, "minutes"), minutes


def _tables(
    expression: str, texts: str, place: Place, *, inner: bool = False
) -> Iterator[TableUse]:
    mentioned, equal = _MENTIONS(texts), _EQUALS(texts)
    for keyword, table, alias in _TABLES(expression):
        if (inner and not keyword) or table.lower() in ("select", "lateral"):
            continue
        spelling = _bare(alias or bare_name(table))
        use = TableUse(_bare(bare_name(table)), table, place, keyword.lower() == "join")
        use.alias = alias or table
        use.spelt = {_bare(column): column for of, column in mentioned if _bare(of) == spelling}
        use.chosen = {_bare(column) for of, column in equal if _bare(of) == spelling}
        if use.spelt:
            yield use


def _bare(name: str) -> str:
    return name.strip('"`[]').lower()


def _codes(use: TableUse, column: str, case: SqlCase, *, with_none: bool = False) -> Counter[str]:
    """Returns how many rows there are of each kind: of those that the source lets through."""
    if use.rows is not None:
        kind = sql(f"{use.alias}.{column}").label("kind")
        some = rows_of(use.rows, kind).limit(100_000).subquery()
    else:
        kind = sql(f"t.{column}").label("kind")
        # nosemgrep: sql-is-never-put-together-as-text - a table that the mapping names
        some = select(kind).select_from(text(f"{use.named} t")).limit(100_000).subquery()
    counts = select(some.c.kind, func.count()).group_by(some.c.kind).limit(MOST_KINDS + 1)
    found = case.session.connection.execute(counts)
    return Counter(
        {text_of(code) or "": int(many) for code, many in found if with_none or code is not None}
    )


def _judged(
    use: TableUse,
    telling: Sequence[TableUse],
    column: str,
    codes: Counter[str],
    case: SqlCase,
    part: LawLook,
) -> None:
    """Judges kinds by how many rows there are of each."""
    if not 1 < len(codes) <= MOST_KINDS or any(len(code) > LONGEST_CODE for code in codes):
        return
    problem = case.adapter.document.problem(telling[0].place, "")
    shown = ", ".join(f"{code or repr(code)} ({many:,})" for code, many in codes.most_common())
    text = f"rows of {use.named} are taken here whatever their {column}: {shown}"
    more = (
        f", and chosen by it in {counted(len(telling), 'other place')}, as in line {problem.line}"
    )
    part.breach(f"{text}{more}", Verdict.WARNING)
