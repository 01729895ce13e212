"""The sample clinic and the small practice, as the conformance suite wants them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, time
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from adapters.base import Adapter, Trouble
from adapters.conformance import Place, Practice
from adapters.ids.seal import SealedIds
from gateway.backend import shapes
from tests.adapters.ailing import Ailing, AilingFile
from tests.adapters.asked import Asked, asked
from tests.adapters.clinic import NOW, SECRET, connect, copy_to, run
from tests.adapters.shelf import Times
from tests.adapters.waits import Waits

PARIS = ZoneInfo("Europe/Paris")
BULK, FRONT = 1_000_000, 500_000


class SqlPractice(Practice):
    """What all practice systems with a database have in common: counting, failing, sealed ids."""

    shapes = shapes()
    now = NOW
    zone = PARIS
    slack = 0.3

    def __init__(self, ailing: Ailing, waits: Waits) -> None:
        self.waits = waits
        self.patience = waits.read + self.slack
        self.troubles: list[Trouble] = []
        self.times = Times()
        self.ailing = ailing
        self._said: list[Asked] = []
        self._bulk, self._front = BULK, FRONT

    async def asked(self) -> int:
        return len(self._said)

    async def stop(self) -> None:
        await self.ailing.stop()

    async def slow(self) -> None:
        await self.ailing.slow()

    async def garble(self) -> None:
        await self.ailing.garble()

    async def mend(self) -> None:
        await self.ailing.mend()

    def numbers(self, count: int, *, front: bool) -> range:
        """Keys for new rows."""
        if front:
            self._front += count
            return range(self._front - count, self._front)
        self._bulk += count
        return range(self._bulk - count, self._bulk)

    def local(self, moment: datetime) -> str:
        return moment.astimezone(self.zone).strftime("%Y-%m-%d %H:%M:%S")

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count the statements of every database; begin and end are none."""
        with asked() as self._said:
            yield


class SampleClinic(SqlPractice):
    """The sample, with its odd values."""

    def __init__(self, folder: Path, waits: Waits) -> None:
        self.database = copy_to(folder)
        super().__init__(AilingFile(self.database), waits)

    def open(self) -> Adapter:
        read, booking = self.waits
        return connect(
            self.database,
            self.troubles,
            timeout=read,
            booking_timeout=booking,
            times=self.times,
        )

    def _run(self, statement: str, *values: object) -> Sequence[Any]:
        return run(self.database, statement, *values)

    async def add_clients(self, count: int, *, front: bool) -> None:
        numbers = self.numbers(count, front=front)
        rows = ", ".join(f"({each}, 'C', 'Nouveau', 'O')" for each in numbers)
        self._run(f"INSERT INTO PERSONNES (ID_PERS, GENRE_PERS, NOM, ACTIF) VALUES {rows}")

    async def set_hours(self, vet: str, weekday: int, start: time, end: time) -> None:
        self._run("DELETE FROM HORAIRES WHERE ID_VETO = ?", key("vets", vet))
        values = (key("vets", vet), weekday, f"{start:%H:%M}", f"{end:%H:%M}")
        self._run("INSERT INTO HORAIRES VALUES (NULL, ?, ?, ?, ?)", *values)

    async def add_absence(self, vet: str, start: datetime, end: datetime) -> None:
        values = (key("vets", vet), self.local(start), self.local(end))
        self._run("INSERT INTO ABSENCES VALUES (NULL, ?, ?, ?, NULL)", *values)

    async def add_appointment(self, vet: str, start: datetime, end: datetime) -> str:
        made = self._run(
            "INSERT INTO RDV (ID_ANIMAL, ID_VETO, D_DEBUT, D_FIN, STATUT)"
            " VALUES (1, ?, ?, ?, 'P') RETURNING ID_RDV",
            key("vets", vet),
            self.local(start),
            self.local(end),
        )
        return SealedIds(SECRET, "appointments").seal(made[0][0])

    async def cancel(self, appointment: str) -> None:
        self._run("UPDATE RDV SET STATUT = 'A' WHERE ID_RDV = ?", key("appointments", appointment))

    async def write_unknown_code(self) -> Place:
        self._run("UPDATE RDV SET STATUT = '?' WHERE ID_RDV = 7")
        return place("appointments", 7, "status")

    async def write_unreadable(self) -> Place:
        self._run("UPDATE ANIMAUX SET DT_NAISSANCE = '2020-02-31' WHERE ID_ANIMAL = 7")
        return place("patients", 7, "birthDate")

    async def write_zero_date(self) -> Place:
        self._run("UPDATE ANIMAUX SET DT_NAISSANCE = '0000-00-00' WHERE ID_ANIMAL = 8")
        return place("patients", 8, "birthDate")


def key(resource: str, public_id: str) -> int:
    """The key in a sealed id."""
    found = SealedIds(SECRET, resource).unseal(public_id)
    assert isinstance(found, int)
    return found


def place(resource: str, number: int, field: str) -> Place:
    return Place(resource, SealedIds(SECRET, resource).seal(number), field)
