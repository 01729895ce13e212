"""The doctor of a mapped database: looks at all that a mapping says, on real rows.

`examine` looks in the order in which an integrator would mend: names, rights, values, what leads
where, the diary, clocks, plans, and a booking that is undone.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from adapters.base import AdapterError, AdapterOptions
from adapters.doctor import surveyed
from adapters.doctor.case import GROUPS, Look, clock_judged, examined, texts_in
from adapters.doctor.diary import diary
from adapters.doctor.laws import laws
from adapters.doctor.sql.booking import account, rehearsal
from adapters.doctor.sql.copied import copied
from adapters.doctor.sql.joins import joins
from adapters.doctor.sql.kinds import kind_laws
from adapters.doctor.sql.plans import plans
from adapters.doctor.sql.rows import SqlCase
from adapters.doctor.values import links, values
from adapters.documents.document import Document, Place
from adapters.documents.problems import DocumentErrors, Severity
from adapters.examination import Examination, Finding, Survey, Verdict, short
from adapters.mapping.checker import CHECKS
from adapters.mapping.loader import read_mapping
from adapters.mapping.models import ListMap, ResourceMap
from adapters.sql.adapter import SqlAdapter, engine_of
from adapters.sql.checks import SchemaMismatch, checks_of, unknown_in
from adapters.sql.engines import spoken, wrong_with
from adapters.sql.engines.base import Speech

_BARE = re.compile(r"[^\W\d]\w*").fullmatch
_WORDS = re.compile(r"\w+").findall
# A name, and the table or alias before its dot.
_NAMES = re.compile(r"(?:(\w+)[\"`\]]?\s*\.\s*)?[\"`\[]?(\w+)").findall
_ALIASES = re.compile(
    r"(?:\bfrom\b|\bjoin\b|^|,)\s*([\w.]+)\s+(?:as\s+)?(\w+)", re.IGNORECASE
).findall
_SELECTS = re.compile(r"\bselect\b", re.IGNORECASE).search
_QUOTED = re.compile(r"'(?:[^']|'')*'").sub
# The wall clock of the server, by the names that the engines have for it.
_now = re.compile(
    r"\b(?:NOW|GETDATE|SYSDATE|SYSDATETIME)\s*\(|\bCURRENT_TIMESTAMP\b|\bLOCALTIME(?:STAMP)?\b",
    re.IGNORECASE,
).search
NEAR = 3
# Seconds: a zone is whole quarters of an hour away from UTC, up to 14 hours of them.
QUARTER, FARTHEST_ZONE = 900.0, 14.5 * 3_600

KnownColumns = dict[str, list[str]]


def examine(adapter: SqlAdapter, examination: Examination) -> AsyncIterator[Finding]:
    case = SqlCase(adapter, examination)
    return examined(case, _looks(case))


def _looks(case: SqlCase) -> Iterator[Look]:
    yield from copied(case)
    yield case.look("mapping", "names", names)
    for looks in (account, values, joins, laws, kind_laws, links, diary):
        yield from looks(case)
    yield case.look("clock", "server", clock)
    yield from plans(case)
    if case.examination.booking and case.adapter.books:
        yield replace(case.look("booking", "rehearsal", rehearsal), alone=True)


async def survey(adapter: SqlAdapter) -> Survey:
    """Returns the columns of the mapped tables that no field is made of; raises AdapterError."""
    return await adapter.engine.inspect(
        lambda connection: surveyed(adapter, omitted(connection, adapter))
    )


async def names(case: SqlCase, look: Look) -> None:
    """Tells which tables and columns the database lacks, and which names are near."""
    adapter, connection = case.adapter, case.session.connection
    faults = list(adapter.mismatches(connection))
    case.lost |= _told(look, faults, connection, case.speech)
    if not faults:
        count = len(list(checks_of(adapter.mapping)))
        look.ok(f"the database knows all {count} names and expressions")


async def half_read(options: AdapterOptions) -> list[Finding]:
    """Returns what the database lacks of as much of a mapping as can be read, if any can."""
    if options.mapping is None or list(wrong_with(options.url)):
        return []
    try:
        read = read_mapping(options.mapping, options.shapes, "sql", options.credentials)
        mapping, document, _ = read
        if mapping is None:
            return []
        url = await asyncio.to_thread(spoken, options.url)
        engine = engine_of(replace(options, url=url), mapping, document)
    except (DocumentErrors, ValueError):  # told already
        return []
    look = Look(document, "mapping", "names")
    try:
        await engine.inspect(
            lambda work: _told(
                look, list(unknown_in(work, mapping, document, engine.speech)), work, engine.speech
            )
        )
    except AdapterError as error:
        look.failed(f"could not be looked at: {short(error)}")
    finally:
        await engine.aclose()
    return look.findings


def _told(
    look: Look, faults: Iterable[SchemaMismatch], connection: Connection, speech: Speech
) -> set[Place]:
    """Tells the faults; returns the parts of the mapping that cannot be read."""
    known, lost = _columns(connection, speech) if faults else {}, set[Place]()
    for fault in faults:
        # the part of the mapping that cannot be read without it
        rows = fault.place[: 2 if fault.place[0] == "resources" else 3]
        is_certain = CHECKS[fault.code].severity is Severity.ERROR
        if is_certain:  # rows that cannot be locked can still be read
            lost.add(("booking",) if fault.code == "no-lock" else rows)
        look.judge(
            Verdict.FAILED if is_certain else Verdict.WARNING,
            fault.text,
            check="rights" if fault.code == "missing-right" else "mapping",
            code=fault.code,
            subject=".".join(str(part) for part in fault.place if part not in GROUPS),
            place=fault.place,
            remedy=_remedy(speech, look.document, fault, known, rows),
        )
    return lost


def _value_at(document: Document, place: Place) -> Any:
    """Returns what the file has at the place; None where the file has no such place."""
    value = document.data
    for part in place:
        is_list = isinstance(value, list) and isinstance(part, int)
        if is_list or (isinstance(value, dict) and part in value):
            value = value[part]
        elif part != 0:  # a list of one member may be written as the member alone
            return None
    return value


def _columns(connection: Connection, speech: Speech) -> KnownColumns:
    """Returns the columns of each table; {} where the database does not say."""
    tables: KnownColumns = {}
    with suppress(DBAPIError):
        for table, column in connection.execute(speech.columns).all():
            tables.setdefault(str(table).strip(), []).append(str(column).strip())
    return tables


def _remedy(
    speech: Speech, document: Document, fault: SchemaMismatch, known: KnownColumns, rows: Place
) -> str:
    if fault.code == "missing-right":
        return "grant it to the gateway's account"
    kinds = {"table": speech.unknown_table, "column": speech.unknown_column}
    unknown = ((re.search(pattern, fault.text), kind) for kind, pattern in kinds.items())
    word, kind = next(((match[1], kind) for match, kind in unknown if match), ("", ""))
    if near := word and _near(word, known, str(_value_at(document, rows)), kind):
        return f"near: {', '.join(near)}"
    value = _value_at(document, fault.place)
    # a bare word that is meant as the value itself
    bare = value["source"] if isinstance(value, dict) and "source" in value else value
    is_value = {"fields", "values"} & {*fault.place} and isinstance(bare, str) and _BARE(bare)
    if not is_value or bare.lower() != word.lower():
        return ""
    return f"a fixed text is written \"'{bare}'\", in both kinds of quotes"


def _near(word: str, known: KnownColumns, part: str, kind: str) -> list[str]:
    """Returns near names: tables, or columns of the tables that this part of the mapping names."""
    alias, _, bare = word.rpartition(".")
    near = list(known)
    if kind == "column":
        named = {name.lower() for name in _WORDS(part)}
        near = [column for table, own in known.items() if table.lower() in named for column in own]
    if bare in near:  # it is there: what refused it is where it stands
        return []
    spelt = {name.lower(): name for name in near}
    close = [spelt[name] for name in get_close_matches(bare.lower(), list(spelt), NEAR, 0.5)]
    return [f"{alias}.{name}" for name in close] if alias and kind == "column" else close


async def clock(case: SqlCase, look: Look) -> None:
    """Compares the database's clock and zone with this machine's and the clinic's.

    Where the server tells no UTC, its zone may be any: then whole quarters of an hour do not count.
    """
    shown, here = case.speech.clock(case.session.connection), datetime.now(UTC)
    if shown is None:
        look.judge(Verdict.NOTE, "what its clock shows cannot be told here")
        return
    local = datetime.fromisoformat(shown.local[:19])
    utc = datetime.fromisoformat(shown.utc[:19]) if shown.utc else local
    apart = (utc - here.replace(tzinfo=None)).total_seconds()
    clinic = here.astimezone(case.adapter.diary.zone).replace(tzinfo=None)
    own = "; the database uses this machine's zone"
    text = f"; the server's zone is {shown.zone}" if shown.zone else own
    spelt = next(filter(None, (_now(sql) for _, sql in texts_in(case.adapter.document.data))), None)
    if spelt and abs(local - clinic) > timedelta(minutes=15):
        call, zone = spelt[0].replace("(", "()"), case.adapter.mapping.zone
        text += f", so {call} in the mapping is not the clinic's time ({zone})"
    if not shown.utc and abs(apart) <= FARTHEST_ZONE:
        apart = (apart + QUARTER / 2) % QUARTER - QUARTER / 2
        text += "; it tells no UTC, so whole quarters of an hour are not compared"
    clock_judged(look, apart, text)


def omitted(connection: Connection, adapter: SqlAdapter) -> Iterator[tuple[Place, str, list[str]]]:
    """Yields the columns of the tables that resources name, of which no field is made."""
    for name, columns in _columns(connection, adapter.engine.speech).items():
        table, used = name.lower().rpartition(".")[2], set[str]()
        owners, readers = list[Place](), list[Place]()
        for resource, mapped in adapter.mapping.resources.items():
            if (own := _used(mapped, table)) is not None:
                owners += _own_rows(resource, mapped, table)
                readers.append(("resources", resource, "from"))
                used |= own
        left = [column for column in columns if column.lower() not in used]
        if readers:
            yield (*owners, *readers)[0], f"the table {name}", left


def _own_rows(resource: str, mapped: ResourceMap, table: str) -> Iterator[Place]:
    """Yields where the mapping reads the table's own rows, and not what it only looks up there."""
    sources: dict[Place, str | None] = {(): mapped.from_}
    sources |= {("lists", name): part.from_ for name, part in mapped.lists.items()}
    for place, rows in sources.items():
        if [name.lower() for _, name in _NAMES(rows or "")[:1]] == [table]:
            yield ("resources", resource, *place, "from")


def _used(resource: ResourceMap, table: str) -> set[str] | None:
    """Returns the table's columns that make a value; None where the resource does not read it.

    What joins rows makes no value, but a sub-select may. A bare name may be of any table.
    """
    used, is_read = set[str](), False
    parts: list[ResourceMap | ListMap] = [resource, *resource.lists.values()]
    for part in parts:
        rows, texts = part.from_ or "", list(part.key.source if part.key else ())
        texts += [rows] if _SELECTS(rows) else []
        texts += (part.parent or ()) if isinstance(part, ListMap) else ()
        texts += [sql for field in part.fields.values() for sql in field.expressions]
        named = {name.lower() for sql in (rows, *texts) for pair in _NAMES(sql) for name in pair}
        is_read = is_read or table in named
        for sql in texts:
            pairs = [
                (name.lower().rpartition(".")[2], alias.lower())
                for name, alias in _ALIASES(f"{rows} {sql}")
            ]
            # a name behind another table's alias is no column of this table
            own = {alias for name, alias in pairs if name == table}
            others = {alias for _, alias in pairs} - own
            names = _NAMES(_QUOTED(" ", sql))
            used |= {name.lower() for before, name in names if before.lower() not in others}
    return used if is_read else None
