"""Counts the rows that a plain join leaves out, as they have no partner in the joined table."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from sqlalchemy import case as case_of
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from adapters.doctor.case import Look
from adapters.doctor.conditions import split_at
from adapters.doctor.sql.rows import SqlCase
from adapters.examination import TOLERABLE, agreeing, counted
from adapters.mapping.expressions import OnClock, on_clock
from adapters.mapping.models import ListMap, ResourceMap
from adapters.sql.columns import rows_of, sql

# Rows of the first table that are looked at, and the fewest that tell.
MOST, ENOUGH = 20_000, 20
_NAME = r"[\w.`\"\[\]]+"
_WORDS = "INNER|LEFT|RIGHT|FULL|CROSS|NATURAL|OUTER|JOIN|ON|USING|AS"
_TABLE = rf"({_NAME})(?:\s+(?:AS\s+)?(?!(?:{_WORDS})\b)(\w+))?"
_FIRST = re.compile(rf"\s*{_TABLE}\s*", re.IGNORECASE).fullmatch
_ON = rf"\s+ON\s+(\w+)\.({_NAME})\s*=\s*(\w+)\.({_NAME})\s*"
_JOINED = re.compile(rf"\s*{_TABLE}{_ON}", re.IGNORECASE).fullmatch
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_JOINS = re.compile(
    r"\b((?:INNER|LEFT|RIGHT|FULL|CROSS|NATURAL)\b[\w\s]*?)?\bJOIN\b", re.IGNORECASE
)
_SELECTS = re.compile(r"\bselect\b", re.IGNORECASE).search
_PREFIXES = re.compile(r"\b(\w+)\s*\.").findall


@dataclass(frozen=True, slots=True)
class PlainJoin:
    """A table, and its column that equals one of the first table, each with its alias."""

    table: str
    alias: str
    theirs: str
    own: str


@dataclass(frozen=True, slots=True)
class FirstTable:
    """The first table with its alias, and the plain inner joins to it."""

    table: str
    alias: str
    joins: tuple[PlainJoin, ...]


def joined(rows: str) -> FirstTable | None:
    """Returns what a `from` joins to its first table; None where that cannot be told surely."""
    before = ""
    while before != rows:
        before, rows = rows, _IN_BRACKETS.sub("?", rows)
    parts = _JOINS.split(rows)
    first, kinds, tables = _FIRST(parts[0]), parts[1::2], parts[2::2]
    if first is None or "," in rows or not tables:
        return None
    words = {(kind or "INNER").split()[0].upper() for kind in kinds}
    if words - {"INNER", "LEFT"}:
        return None
    alias, found = first[2] or first[1], list[PlainJoin]()
    for kind, text in zip(kinds, tables, strict=True):
        match = _JOINED(text)
        if match is None or (kind or "INNER").split()[0].upper() == "LEFT":
            continue
        other = match[2] or match[1]
        sides = {match[3]: match[4], match[5]: match[6]}
        if sides.keys() == {alias, other}:
            pair = f"{other}.{sides[other]}", f"{alias}.{sides[alias]}"
            found.append(PlainJoin(match[1], other, *pair))
    return FirstTable(first[1], alias, tuple(found))


def joins(case: SqlCase) -> Iterator[Look]:
    """Yields a look at the joins of each resource, and of each list inside its records."""
    for name in case.readable():
        mapped = case.adapter.mapping.resources[name]
        every: dict[str, ResourceMap | ListMap] = {"": mapped, **mapped.lists}
        for inner, rows in every.items():
            place = ("resources", name, *(("lists", inner) if inner else ()))
            if (plain := joined(rows.from_ or "")) and plain.joins:
                subject = f"{name}.{inner}" if inner else name
                run = partial(_looked_at, rows, plain)
                yield case.look("rows", subject, run, *place, "from")


async def _looked_at(
    rows: ResourceMap | ListMap, plain: FirstTable, case: SqlCase, look: Look
) -> None:
    """Tells of each join how many rows of the first table it leaves out."""
    keys = {*(rows.key.source if rows.key else ()), *(getattr(rows, "parent", None) or ())}
    chosen_by = {*_PREFIXES(rows.where or "")}
    for join in plain.joins:
        # a table of the same things, the record around the list, and one that `where` names too
        # choose rows on purpose
        if join.own in keys or join.alias in chosen_by:
            continue
        try:
            with case.session.connection.begin_nested():
                lost, count = _lost(rows, plain, join, case)
        except DBAPIError as error:
            why = case.refusal(error)
            look.note(f"what the join of {join.table} leaves out could not be counted: {why}")
            continue
        if count >= ENOUGH and lost > TOLERABLE * count:
            verb = agreeing(lost, "have")
            text = f"{counted(lost, 'row')} of {count:,} of {plain.table} {verb} no partner in"
            remedy = "LEFT JOIN? or say in `where` that they are left out on purpose"
            look.warning(f"{text} {join.table}: the join leaves them out", remedy=remedy)


def _lost(
    rows: ResourceMap | ListMap, plain: FirstTable, join: PlainJoin, case: SqlCase
) -> tuple[int, int]:
    """Returns how many rows of the first table have no partner, and of how many."""
    own = rows.model_copy(
        update={"from_": f"{plain.table} {plain.alias}", "where": _own_where(rows.where, plain)}
    )
    partners = rows.model_copy(
        update={"from_": f"{join.table} {join.alias}", "where": f"{join.theirs} = {join.own}"}
    )
    says = case_of((rows_of(partners, sql("1")).exists(), 1), else_=0).label("says")
    some = rows_of(own, says).limit(MOST).subquery()
    counts = select(some.c.says, func.count()).group_by(some.c.says)
    said = {int(what): int(many) for what, many in case.session.connection.execute(counts)}
    return said.get(0, 0), sum(said.values())


def _own_where(where: str | None, plain: FirstTable) -> str | None:
    """Returns the conditions that name none of the joined tables."""
    if where is None:
        return None
    kept = [
        f"({part})"
        for part in split_at(where, "and")
        if {*_PREFIXES(part)} <= {plain.alias} or _SELECTS(part)
    ]
    made = " AND ".join(kept) or None
    return on_clock(made, where.zone) if made and isinstance(where, OnClock) else made
