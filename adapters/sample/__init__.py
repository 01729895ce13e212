"""The sample clinic: a legacy-looking practice system to try the gateway on, and its mapping.

Each table is made from a seed and a day; one file is written in one go.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from random import Random

from adapters.sample import vocabulary as words
from adapters.sample.accounts import Shop, make_accounts, make_consults, make_sales
from adapters.sample.diary import LAST_NUMBER_BEFORE, Desk, make_journal, make_roster
from adapters.sample.people import (
    make_animals,
    make_contacts,
    make_extras,
    make_herd,
    make_people,
)
from adapters.sample.rows import Row, numbered
from adapters.sample.stock import make_stock

__all__ = ["MAPPING", "SCHEMA", "create", "make_tables"]

MAPPING = Path(__file__).with_name("clinic.yaml")
SCHEMA = Path(__file__).with_name("schema.sql")

Tables = Mapping[str, Sequence[Row]]


def create(path: Path, *, today: date, seed: int = 1987) -> None:
    """Write the clinic as it looks on `today` to a new file; the same arguments, the same clinic.

    The file appears under its name only when it is whole. `FileExistsError` if there is one.
    """
    if path.exists():
        raise FileExistsError(path)
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        _write(connection, make_tables(today, seed))
    part.rename(path)


def make_tables(today: date, seed: int) -> Tables:
    """Every table's rows by its name.

    Each part draws from its own stream, so that a change to one leaves the others as they were.
    """

    def stream(name: str) -> Random:
        return Random(f"{seed}/{name}")

    people = make_people(stream("people"), today)
    clients = people.of("C", active=True)
    animals = make_animals(stream("animals"), today, people)
    herd = make_herd(stream("owners"), today, animals, clients)
    roster = make_roster(stream("hours"), today, people)
    desk = Desk(stream("diary"), today, herd, people.lingering.id_pers)
    bookings = desk.bookings(roster)
    consults = make_consults(stream("consults"), today, bookings, roster, herd)
    stock = make_stock(stream("stock"), today, people.of("F", active=True))
    shop = Shop(clients, herd, bookings, consults, stock.wares)
    accounts = make_accounts(stream("billing"), today, make_sales(stream("sales"), today, shop))
    return {
        "PERSONNES": people.persons,
        "COORDONNEES": make_contacts(stream("contacts"), today, people.persons),
        "ESPECES": words.SPECIES,
        "ANIMAUX": herd.animals,
        "PROPRIETAIRES": herd.ownerships,
        "CHAMPS_SUPPL": numbered(make_extras(stream("extras"), herd.animals) + stock.extras),
        "TYPES_RDV": words.KINDS,
        "RDV": bookings,
        "COMPTEURS": [("RDV", LAST_NUMBER_BEFORE + len(bookings))],
        "RDV_JOURNAL": make_journal(stream("journal"), today, bookings),
        "HORAIRES": roster.shifts,
        "ABSENCES": roster.absences,
        "CONSULTATIONS": consults,
        "FACTURES": accounts.invoices,
        "LIGNES_FACT": accounts.lines,
        "REGLEMENTS": accounts.payments,
        "ARTICLES": stock.articles,
        "LOTS": stock.lots,
    }


def _write(connection: sqlite3.Connection, tables: Tables) -> None:
    """Schema and rows in one transaction, left to the file's own journal."""
    # nosemgrep: sql-is-never-put-together-as-text - a file of ours
    connection.executescript("BEGIN;\n" + SCHEMA.read_text(encoding="utf-8"))
    for table, rows in tables.items():
        marks = ", ".join("?" * len(rows[0]))
        # nosemgrep: sql-is-never-put-together-as-text - tables of ours
        connection.executemany(
            f"INSERT INTO {table} VALUES ({marks})",  # noqa: S608 - our own table names
            rows,
        )
    connection.execute("COMMIT")
