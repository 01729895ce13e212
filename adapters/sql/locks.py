"""Keeps two bookings of one vet or schedule apart: by a name, a row, or the mapping's own SQL."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from adapters.base import BackendNonsense, BackendUnavailable
from adapters.mapping.models import NAMED, MappingFile
from adapters.sql.columns import Columns, rows_of
from adapters.sql.engines.base import Expression, Speech, given

NO_LOCK = (
    "this database gives no way to keep two bookings apart: say in booking.lock which statement"
    " locks, such as UPDATE vet SET id = id WHERE id = :vet"
)
NO_LOCK_ALONE = (
    "it locks schedules, and a vet without one can be booked: give all hours and slots by schedule,"
    " or lock one row for all bookings, such as UPDATE numbers SET last = last WHERE name = 'visit'"
)
_ONE: Expression = sa.literal_column("1")


class BookingLock:
    """What a booking locks before it looks at the diary. Each lock lasts until its end."""

    def __init__(self, mapping: MappingFile, speech: Speech) -> None:
        self._speech, self._sql = speech, mapping.booking.lock
        diary, vets = mapping.diary, mapping.resources.get("vets")
        self._of_schedules = self._sql is not None and "schedule" in NAMED(self._sql)
        # whether it leaves out vets who have no schedule, and yet free times
        omits = self._of_schedules and not all(
            source.of_schedule for source in (*diary.hours, *diary.slots)
        )
        self._rows: dict[bool, tuple[sa.Select[Any], Columns]] = {}
        if speech.locks_rows and vets is not None and (self._sql is None or omits):
            self._rows[False] = rows_of(vets, _ONE), Columns(vets.key.source)
        if speech.locks_rows and diary.schedules is not None and self._sql is None:
            self._rows[True] = rows_of(diary.schedules, _ONE), Columns((diary.schedules.key.text,))
        self.omits_vets = omits and not speech.locks_names and not speech.locks_rows
        """Whether nothing keeps two bookings of a vet apart who has no schedule."""

    @property
    def is_missing(self) -> bool:
        """Returns whether nothing keeps two bookings apart."""
        return self._sql is None and not self._speech.locks_names and not self._speech.locks_rows

    def take(
        self, connection: sa.Connection, name: str, keys: Sequence[Any], values: Mapping[str, Any]
    ) -> None:
        """Locks a vet or a schedule, by its name and as the mapping says.

        `keys` are those of its row, `values` what `:vet` and `:schedule` stand for. Raises
        BackendUnavailable, BackendNonsense or DBAPIError where that fails.
        """
        is_schedule = values["schedule"] is not None
        self._speech.lock(connection, name)
        # each schedule has its turn, or else the vet alone
        if self._sql is not None and is_schedule == self._of_schedules:
            self._run(connection, written(self._sql, values))
        elif self._sql is None and is_schedule in self._rows:
            self._lock_row(connection, keys, is_schedule=is_schedule)
        elif self.is_missing:
            raise BackendUnavailable(NO_LOCK)

    def take_alone(self, connection: sa.Connection, keys: Sequence[Any]) -> None:
        """Locks the row of a vet who has no schedule, where the mapping locks schedules.

        Raises BackendUnavailable where nothing does, BackendNonsense or DBAPIError.
        """
        if self.omits_vets:
            raise BackendUnavailable(NO_LOCK_ALONE)
        if self._of_schedules and False in self._rows:
            self._lock_row(connection, keys, is_schedule=False)

    def _lock_row(
        self, connection: sa.Connection, keys: Sequence[Any], *, is_schedule: bool
    ) -> None:
        rows, key = self._rows[is_schedule]
        self._run(connection, self._speech.row_lock(rows.where(key.among(keys))))

    def _run(self, connection: sa.Connection, statement: sa.Executable) -> None:
        result = connection.execute(statement)
        if not (result.all() if result.returns_rows else result.rowcount):
            raise BackendNonsense("the row that a booking locks is not there")

    def derived(self) -> dict[str, sa.Select[Any]]:
        """Returns the statements that lock a row and are not the mapping's, by what they lock."""
        names = {False: "vets", True: "schedules"}
        return {
            names[which]: self._speech.row_lock(rows.where(key.present))
            for which, (rows, key) in self._rows.items()
        }


def written(statement: str, values: Mapping[str, Any]) -> sa.TextClause:
    """Returns the mapping's own statement, with the values that it names."""
    bound = [given(name, values[name]) for name in dict.fromkeys(NAMED(statement))]
    # nosemgrep: sql-is-never-put-together-as-text - the mapping is the clinic's own
    return sa.text(statement).bindparams(*bound)
