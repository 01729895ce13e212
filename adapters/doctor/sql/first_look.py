"""Looks at a database before there is a mapping: does it answer, and what may the account do."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.engine import make_url
from sqlalchemy.exc import NoSuchModuleError

from adapters.mapping.models import MappingFile
from adapters.sql.engines import Engine, open_engine, wrong_with
from adapters.sql.engines.base import Speech
from adapters.sql.inspection import Unlisted, inspected
from adapters.sql.locks import BookingLock

PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What a database shows at once: its tables, and what its account may do beyond its needs.

    `tables` is None where the database cannot list them.
    """

    tables: int | None
    excess: Sequence[str]


async def looked_at(url: str) -> FirstLook:
    """Returns what the database at an address shows; nothing is written.

    Raises ValueError, with the end of a sentence, for a wrong address, and AdapterError where the
    database does not answer.
    """
    if wrong := wrong_with(url):
        raise ValueError("; ".join(wrong))
    engine = open_engine(url, timeout=PATIENCE, booking_timeout=PATIENCE)
    try:
        await engine.ping()
        return await engine.inspect(partial(_seen, engine))
    finally:
        await engine.aclose()


def _seen(engine: Engine, connection: Connection) -> FirstLook:
    count: int | None = None
    with suppress(Unlisted), inspected(connection) as inspector:
        count = len(inspector.get_table_names()) + len(inspector.get_view_names())
    return FirstLook(count, engine.speech.rights(connection) or ())


def check_address(text: str) -> None:
    """Raises ValueError, with a sentence, for what is no database's address without a password."""
    if wrong := wrong_with(text):
        raise ValueError(f"an address {'; '.join(wrong)}")
    if make_url(text).password:
        raise ValueError("leave the password out: it is asked for unseen")


def may_have_password(url: str) -> bool:
    """Returns whether the address names a server or an account."""
    address = make_url(url)
    return bool(address.host or address.username)


def with_password(url: str, password: str) -> str:
    """Returns the address with the account's password in it."""
    address = make_url(url)
    return address.set(password=password or None).render_as_string(hide_password=False)


async def read_grants(url: str) -> list[str]:
    """Returns the statements that let the account read; nothing is asked of the database.

    There are none for a file, which has no accounts.
    """
    return [line.format(**_names(url)) for line in (await _speech(url)).grants]


async def write_grants(url: str, mapping: MappingFile) -> list[str]:
    """Returns the statements that let the account write what a booking writes, and lock its rows.

    There are none for a file. Nothing is asked of the database.
    """
    speech, quote = await _speech(url), _quoting(url)
    lines = _writes(mapping, speech, quote) if speech.grants else ()
    return [line.format(**_names(url)) for line in dict.fromkeys(lines)]


async def _speech(url: str) -> Speech:
    engine = open_engine(url, timeout=PATIENCE, booking_timeout=PATIENCE)
    await engine.aclose()
    return engine.speech


def _names(url: str) -> dict[str, str]:
    address = make_url(url)
    return {"account": address.username or "gateway", "database": address.database or "DATABASE"}


def _quoting(url: str) -> Callable[[str], str]:
    """Returns what spells a name of the mapping in a statement."""
    try:
        preparer = make_url(url).get_dialect()().identifier_preparer
    except NoSuchModuleError:  # whatever an ODBC driver speaks
        return str
    return lambda name: ".".join(map(preparer.quote, name.split(".")))


def _writes(mapping: MappingFile, speech: Speech, quote: Callable[[str], str]) -> Iterator[str]:
    into = speech.grants_in
    for step in mapping.booking.steps:
        if step.table:
            right = "INSERT" if step.insert else "UPDATE"
            yield f"GRANT {right} ON {into}{quote(step.table)} TO {{account}};"
        elif speech.grants_sequences and step.sequence:
            yield f"GRANT USAGE ON SEQUENCE {quote(step.sequence)} TO {{account}};"
    locked = {"vets": mapping.resources.get("vets"), "schedules": mapping.diary.schedules}
    for name in BookingLock(mapping, speech).derived():
        rows = locked[name]
        if rows is not None and rows.from_:
            yield f"GRANT UPDATE ON {into}{rows.from_.split()[0]} TO {{account}};"
