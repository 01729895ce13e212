"""Looks at a database before there is a mapping: does it answer, and what may the account do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, inspect
from sqlalchemy.engine import make_url

from adapters.mapping.models import StepMap
from adapters.sql.engines import Engine, open_engine, wrong_with
from adapters.sql.engines.base import Speech

PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What a database shows at once: its tables, and what its account may do beyond its needs."""

    tables: int
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
    inspector: Any = inspect(connection)
    count = len(inspector.get_table_names()) + len(inspector.get_view_names())
    return FirstLook(count, list(engine.speech.rights(connection)))


def check_address(text: str) -> None:
    """Raises ValueError, with a sentence, for what is no database's address without a password."""
    if wrong := wrong_with(text):
        raise ValueError(f"an address {'; '.join(wrong)}")
    if make_url(text).password:
        raise ValueError("leave the password out: it is asked for unseen")


def has_server(url: str) -> bool:
    """Returns whether the address names a server, and so perhaps an account with a password."""
    return bool(make_url(url).host)


def with_password(url: str, password: str) -> str:
    """Returns the address with the account's password in it."""
    address = make_url(url)
    return address.set(password=password or None).render_as_string(hide_password=False)


async def grants(url: str, steps: Sequence[StepMap] = ()) -> list[str]:
    """Returns the statements that give the account its rights: reads, and what the steps write.

    There are none for a file, which has no accounts. Nothing is asked of the database.
    """
    engine, address = open_engine(url, timeout=PATIENCE, booking_timeout=PATIENCE), make_url(url)
    await engine.aclose()
    speech = engine.speech
    names = {"account": address.username or "gateway", "database": address.database or "clinic"}
    every = [*speech.grants, *(_writes(steps, speech) if speech.grants else ())]
    return [line.format(**names) for line in dict.fromkeys(every)]


def _writes(steps: Sequence[StepMap], speech: Speech) -> Iterator[str]:
    for step in steps:
        if step.table:
            right = "INSERT" if step.insert else "UPDATE"
            yield f"GRANT {right} ON {speech.grants_in}{step.table} TO {{account}};"
        elif speech.grants_sequences:
            yield f"GRANT USAGE ON SEQUENCE {step.sequence} TO {{account}};"
