"""The lists inside records: whether their rows lead to a record, and their values."""

from collections.abc import Iterator
from functools import partial

from sqlalchemy import Connection

from adapters.doctor.findings import agreeing, rows, weighed
from adapters.doctor.sql.case import Case, Step
from adapters.doctor.sql.links import missing
from adapters.doctor.sql.pages import Sample, pages
from adapters.doctor.sql.values import fields_judged, read, referred_id
from adapters.doctor.values import Tally
from adapters.examination import Finding, Verdict
from adapters.sql.children import Children
from adapters.sql.columns import Columns, rows_of
from adapters.sql.mapping import ListOf
from adapters.sql.reading import ResourceReader

# A larger share of rows without a record is no accident.
TOLERABLE = 0.2


def lists(case: Case) -> Iterator[Step]:
    """One look at each list."""
    for name, reader in case.readers():
        for children in reader.children:
            nested = case.parts.mapping.resources[name].lists[children.name]
            place = ("resources", name, "lists", children.name)
            run = partial(_list, case=case, reader=reader, children=children, nested=nested)
            yield Step("values", f"{name}.{children.name}", run, place)


def _list(
    connection: Connection, case: Case, reader: ResourceReader, children: Children, nested: ListOf
) -> Iterator[Finding]:
    place = ("resources", reader.name, "lists", children.name)
    subject, table, parent = (
        f"{reader.name}.{children.name}",
        children.table,
        Columns(nested.parent),
    )
    statement = rows_of(nested, *table.selected(), *parent.labelled("parent_key"))
    offset = table.key.width + sum(each.width for each in table.columns)
    tallies = {column.name: Tally() for column in table.columns}
    sample, count, lost = Sample(), 0, 0
    for found in pages(connection, statement, table, most=case.examination.rows):
        for record in read(table, found, tallies):
            sample.take(record)
        parents = [referred_id(reader.table, parent.take(row, offset)) for row in found]
        gone, _ = missing(connection, case, reader.name, {each for each in parents if each})
        lost += sum(each is None or each in gone for each in parents)
        count += len(found)
    if not count:
        yield case.warning(
            "rows", subject, "no row: its table is empty, or `where` is not right", place
        )
        return
    case.samples[subject] = sample.records
    yield from fields_judged(case, place, subject, nested.fields, tallies, count)
    text = f"{rows(lost)} of {count:,} {agreeing(lost, 'belong')} to no record"
    if lost:
        verdict = weighed(lost, count, most=TOLERABLE)
        yield case.judged(
            verdict,
            "links",
            subject,
            text,
            (*place, "parent"),
            remedy="is `parent` the record's key?",
        )
    else:
        yield case.judged(
            Verdict.OK,
            "links",
            subject,
            f"{rows(count)} {agreeing(count, 'belong')} to a record",
            (),
        )
