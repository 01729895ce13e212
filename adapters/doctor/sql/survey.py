"""Columns of the mapped tables that no field is made of: they never get out."""

import re
from collections.abc import Iterator

from sqlalchemy import Connection

from adapters.doctor.sql.names import columns_known
from adapters.documents.document import Document
from adapters.examination import LeftOut, Survey
from adapters.mapping.filled import filled_fields
from adapters.mapping.models import ListMap, MappingFile, ResourceMap

# A name, with what stands before its dot: a table or an alias.
_NAMES = re.compile(r"(?:(\w+)[\"`\]]?\s*\.\s*)?[\"`\[]?(\w+)").findall
_ALIASES = re.compile(
    r"(?:\bfrom\b|\bjoin\b|^|,)\s*([\w.]+)\s+(?:as\s+)?(\w+)", re.IGNORECASE
).findall
_SELECTS = re.compile(r"\bselect\b", re.IGNORECASE).search
_QUOTED = re.compile(r"'(?:[^']|'')*'").sub


def left_out(connection: Connection, mapping: MappingFile, document: Document) -> Survey:
    """What the database has in the tables that the mapping's resources name."""
    known = {
        table.lower().rpartition(".")[2]: (table, columns)
        for table, columns in columns_known(connection).items()
    }
    found = []
    for table, (name, columns) in known.items():
        readers = [each for each in mapping.resources if _names(mapping.resources[each], table)]
        if not readers:
            continue
        used = {column for each in readers for column in _used(mapping.resources[each], table)}
        left = tuple(column for column in columns if column.lower() not in used)
        if left:
            place = document.problem(("resources", readers[0], "from"), "")
            found.append(
                LeftOut(
                    resource=readers[0],
                    source=f"the table {name}",
                    names=left,
                    file=place.file,
                    line=place.line,
                    column=place.column,
                )
            )
    return Survey(left_out=tuple(found), filled=filled_fields(mapping.resources))


def _parts(resource: ResourceMap) -> Iterator[ResourceMap | ListMap]:
    yield resource
    yield from resource.lists.values()


def _expressions(part: ResourceMap | ListMap) -> Iterator[str]:
    """All SQL that makes a value; what joins rows makes none, but a sub-select may."""
    yield from part.key.source if part.key else ()
    if _SELECTS(part.from_ or ""):
        yield part.from_ or ""
    if isinstance(part, ListMap):
        yield from part.parent or ()
    for each in part.fields.values():
        yield from each.expressions


def _names(resource: ResourceMap, table: str) -> bool:
    """Whether the resource reads the table at all."""
    texts = (text for part in _parts(resource) for text in (part.from_ or "", *_expressions(part)))
    return any(name.lower() == table for text in texts for pair in _NAMES(text) for name in pair)


def _used(resource: ResourceMap, table: str) -> Iterator[str]:
    """The columns of the table that make a value; a bare name may be of any table."""
    for part in _parts(resource):
        for text in _expressions(part):
            others = _others(f"{part.from_} {text}", table)
            for before, name in _NAMES(_QUOTED(" ", text)):
                if before.lower() not in others:
                    yield name.lower()


def _others(text: str, table: str) -> set[str]:
    """The aliases of other tables, by which a name cannot be one of this table."""
    pairs = _ALIASES(text)
    own = {alias.lower() for name, alias in pairs if name.lower().rpartition(".")[2] == table}
    return {alias.lower() for _, alias in pairs} - own
