"""Looks at a database before there is a mapping: does it answer, and what may the account do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, inspect
from sqlalchemy.engine import make_url

from adapters.mapping.models import StepMap
from adapters.sql.engines import Engine, open_engine, wrong_with

PATIENCE = 20.0
# The statements that let an account read, by the kind of database.
_READS = {
    "postgresql": (
        "GRANT USAGE ON SCHEMA public TO {account};",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {account};",
    ),
    "mysql": ("GRANT SELECT ON {database}.* TO {account};",),
    "mssql": ("GRANT SELECT ON SCHEMA::dbo TO {account};",),
}
_OTHERS = ("GRANT SELECT ON each table TO {account};",)


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


def grants(url: str, steps: Sequence[StepMap] = ()) -> list[str]:
    """Returns the statements that give the account its rights: reads, and what the steps write."""
    address = make_url(url)
    kind = address.get_backend_name()
    if address.host is None and not address.username:  # a file has no accounts
        return []
    kind = {"mariadb": "mysql", "postgres": "postgresql"}.get(kind, kind)
    names = {"account": address.username or "gateway", "database": address.database or "clinic"}
    reads = [line.format(**names) for line in _READS.get(kind, _OTHERS)]
    where = f"{names['database']}." if kind == "mysql" else ""
    return [*reads, *dict.fromkeys(_writes(steps, kind, where, names["account"]))]


def _writes(steps: Sequence[StepMap], kind: str, where: str, account: str) -> Iterator[str]:
    for step in steps:
        if step.sequence is not None and kind == "postgresql":
            yield f"GRANT USAGE ON SEQUENCE {step.sequence} TO {account};"
        elif step.table:
            right = "INSERT" if step.insert else "UPDATE"
            yield f"GRANT {right} ON {where}{step.table} TO {account};"
