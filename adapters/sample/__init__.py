"""Creates the sample clinic: a legacy-looking SQLite practice system to try the gateway on."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import date
from pathlib import Path

from adapters.sample import people
from adapters.sample import vocabulary as words
from adapters.sample.accounts import make_accounts, make_consults, make_sales
from adapters.sample.diary import LAST_NUMBER_BEFORE, Desk, make_journal, make_roster
from adapters.sample.rows import SCHEMA, Chance, Row, numbered
from adapters.sample.stock import make_stock

__all__ = ["MAPPING", "SCHEMA", "create", "make_tables"]

MAPPING = Path(__file__).with_name("clinic.yaml")


def create(path: Path, *, today: date, seed: int = 1987) -> None:
    """Writes the clinic as it looks on `today` to a new file; equal arguments give equal clinics.

    The file appears under its name only when it is complete. Raises FileExistsError where one
    exists.
    """
    if path.exists():
        raise FileExistsError(path)
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        # schema and rows in one transaction, left to the file's own journal
        # nosemgrep: sql-is-never-put-together-as-text - a file of ours
        connection.executescript("BEGIN;\n" + SCHEMA.read_text(encoding="utf-8"))
        for table, rows in make_tables(today, seed).items():
            marks = ", ".join("?" * len(rows[0]))
            # nosemgrep: sql-is-never-put-together-as-text - tables of ours
            connection.executemany(
                f"INSERT INTO {table} VALUES ({marks})",  # noqa: S608 - our own table names
                rows,
            )
        connection.execute("COMMIT")
    part.rename(path)


def make_tables(today: date, seed: int) -> Mapping[str, Sequence[Row]]:
    """Returns the rows of every table by its name."""

    # each part has its own stream, so that a change to one leaves the others as they were
    def stream(name: str) -> Chance:
        return Chance(f"{seed}/{name}", today)

    persons = people.make_people(stream("people"))
    clients = people.of_kind(persons, "C", active=True)
    animals = people.make_animals(stream("animals"), persons)
    herd = people.make_herd(stream("owners"), animals, clients)
    roster = make_roster(stream("hours"), persons)
    bookings = Desk(stream("diary"), herd, people.lingering(persons)).bookings(roster)
    consults = make_consults(stream("consults"), bookings, roster, herd)
    suppliers = people.of_kind(persons, "F", active=True)
    articles, lots, thresholds, wares = make_stock(stream("stock"), suppliers)
    sales = make_sales(stream("sales"), clients, wares, herd, bookings, consults)
    return {
        "PERSONNES": persons,
        "COORDONNEES": people.make_contacts(stream("contacts"), persons),
        "ESPECES": words.SPECIES,
        "ANIMAUX": herd.animals,
        "PROPRIETAIRES": herd.ownerships,
        "CHAMPS_SUPPL": numbered(people.make_extras(stream("extras"), herd.animals) + thresholds),
        "TYPES_RDV": words.KINDS,
        "RDV": bookings,
        "COMPTEURS": [("RDV", LAST_NUMBER_BEFORE + len(bookings))],
        "RDV_JOURNAL": make_journal(stream("journal"), bookings),
        "HORAIRES": roster.shifts,
        "ABSENCES": roster.absences,
        "CONSULTATIONS": consults,
        **make_accounts(stream("billing"), sales),
        "ARTICLES": articles,
        "LOTS": lots,
    }
