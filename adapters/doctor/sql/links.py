"""Ids inside records: whether they lead to a record."""

from collections.abc import Iterator, Sequence
from functools import partial

from sqlalchemy import Connection

from adapters.doctor.links import Leads, led
from adapters.doctor.sql.case import Case, Step
from adapters.doctor.sql.values import every_record, shown_id
from adapters.examination import Finding
from adapters.sql.columns import rows_of

# So many ids at a time: in all their spellings they are no more than SQL Server's parameters.
AT_ONCE = 400


def links(case: Case) -> Iterator[Step]:
    """One look at each field that refers to a resource, of records and of lists inside them."""
    for resource, shapes in case.shapes.items():
        for path, shape in shapes.items():
            owner, _, name = path.rpartition("[].")
            sample = f"{resource}.{owner}" if owner else resource
            if shape.refers is not None and not case.is_lost("resources", shape.refers):
                inner = ("lists", owner) if owner else ()
                place = ("resources", resource, *inner, "fields", name)
                run = partial(
                    _field, case=case, of=(sample, name), target=shape.refers, place=place
                )
                yield Step("links", f"{resource}.{path}", run, place)


def _field(
    connection: Connection, case: Case, of: tuple[str, str], target: str, place: tuple[str, ...]
) -> Iterator[Finding]:
    sample, name = of
    subject = f"{sample}.{name}"
    leads = Leads()
    for page in every_record(connection, case, sample):
        records = [each for each in page if each.get(name)]
        gone, hidden = missing(connection, case, target, {each[name] for each in records})
        leads.take(name, records, gone, hidden)
    if leads.count:
        yield led(case, subject, place, target, leads)


def missing(
    connection: Connection, case: Case, target: str, ids: set[str]
) -> tuple[set[str], set[str]]:
    """Those of the public ids that lead to no row at all, and to one that `where` hides."""
    gone, hidden = set(ids), set(ids)
    ordered = sorted(ids)
    for first in range(0, len(ordered), AT_ONCE):
        some = ordered[first : first + AT_ONCE]
        hidden -= _existing(connection, case, target, some, bare=False)
    if hidden:
        gone = set(hidden)
        for first in range(0, len(hidden), AT_ONCE):
            some = sorted(hidden)[first : first + AT_ONCE]
            gone -= _existing(connection, case, target, some, bare=True)
        return gone, hidden - gone
    return set(), set()


def _existing(
    connection: Connection, case: Case, target: str, ids: Sequence[str], *, bare: bool
) -> set[str]:
    reader, mapped = case.parts.readers[target], case.parts.mapping.resources[target]
    keys = [raw for each in ids for raw in reader.spellings(each)]
    rows_ = mapped.model_copy(update={"where": None}) if bare else mapped
    key = reader.table.key
    statement = rows_of(rows_, *key.labelled("row_key")).where(key.among(keys))
    found = (shown_id(reader.table, key.take(row, 0)) for row in connection.execute(statement))
    return {each for each in found if each is not None}
