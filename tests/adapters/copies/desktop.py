"""A practice as a desktop product leaves it on a disk: dBASE tables, or an Access file."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.adapters.copies.access_files import write_access
from tests.adapters.copies.dbf_files import write_dbf

MAPPING = """\
version: 2
zone: Europe/Berlin
resources:
  clients:
    from: KUNDEN k
    key: k.KDNR
    fields:
      firstName: k.VORNAME
      lastName: k.NAME
      phone: k.TELEFON
  patients:
    from: TIERE t
    key: [t.KDNR, t.LFD]
    fields:
      clientId: t.KDNR
      name: t.NAME
      species: {source: t.ART, codes: {H: DOG, K: CAT}}
      birthDate: t.GEBOREN
      weightKg: t.GEWICHT
      breed: t.NOTIZ
  vets:
    from: ARZT a
    key: a.KUERZEL
    fields:
      name: a.NAME
  appointmentTypes:
    from: ART s
    key: s.NR
    fields:
      name: s.NAME
      durationMinutes: s.MINUTEN
  appointments:
    from: TERMINE d
    where: d.KDNR IS NOT NULL
    key: d.NR
    fields:
      clientId: d.KDNR
      patientId: [d.KDNR, d.LFD]
      appointmentTypeId: d.ARTNR
      vetId: d.ARZT
      status: {source: d.STAND, codes: {O: SCHEDULED, E: COMPLETED}}
      scheduledAt: {source: [d.TAG, d.UHR], as: local time}
diary:
  hours:
    - days: [mon-fri]
      times: ["09:00-17:00"]
  busy:
    - from: TERMINE d
      vet: d.ARZT
      start: {source: [d.TAG, d.UHR], as: local time}
      minutes: d.MINUTEN
      key: d.NR
"""
DAY = dt.date(2026, 3, 2)
# table -> fields of dBASE, kinds of Access, rows
TABLES: dict[str, tuple[str, str, Sequence[Sequence[Any]]]] = {
    "KUNDEN": (
        "KDNR N(6,0); VORNAME C(20); NAME C(30); TELEFON C(20)",
        "long text text text",
        [(1, "Jörg", "Müller", "030 1"), (2, "Anke", "Groß", "030 2"), (3, "", "Weiß", "")],
    ),
    "TIERE": (
        "KDNR N(6,0); LFD N(3,0); NAME C(20); ART C(1); GEBOREN D; GEWICHT N(7,2); NOTIZ M",
        "long integer text text datetime currency memo",
        [
            (1, 1, "Bärli", "H", dt.date(2020, 2, 29), 12.5, "beißt"),
            (1, 2, "Mia", "K", None, 4.0, ""),
            (2, 1, "Rex", "H", dt.date(2019, 1, 1), 30.0, ""),
        ],
    ),
    "ARZT": (
        "KUERZEL C(3); NAME C(30)",
        "text text",
        [("KB", "Dr. Köhler"), ("LM", "Dr. Lind")],
    ),
    "ART": (
        "NR N(3,0); NAME C(20); MINUTEN N(3,0)",
        "long text long",
        [(1, "Kontrolle", 30), (2, "Impfung", 15)],
    ),
    "TERMINE": (
        "NR N(8,0); KDNR N(6,0); LFD N(3,0); ARTNR N(3,0); ARZT C(3); STAND C(1); TAG D;"
        " UHR C(5); MINUTEN N(3,0)",
        "long long integer long text text datetime text long",
        [
            (11, 1, 1, 1, "KB", "E", DAY, "09:00", 30),
            (12, 2, 1, 2, "LM", "O", DAY, "10:15", 15),
        ],
    ),
}


def as_dbf(folder: Path) -> str:
    """Writes the practice as dBASE tables; the end of its address."""
    folder.mkdir()
    for name, (fields, _, rows) in TABLES.items():
        write_dbf(folder / f"{name}.DBF", fields, rows)
    return f"dbf:///{folder}"


def as_access(file: Path) -> str:
    """Writes the practice as an Access file, likewise."""
    tables = {}
    for name, (fields, kinds, rows) in TABLES.items():
        names = [field.split()[0] for field in fields.split(";")]
        columns = dict(zip(names, kinds.split(), strict=True))
        tables[name] = (columns, [list(map(_moment, row)) for row in rows])
    write_access(file, tables)
    return f"access:///{file}"


def _moment(value: Any) -> Any:
    return dt.datetime.combine(value, dt.time()) if isinstance(value, dt.date) else value
