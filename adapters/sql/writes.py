"""The rows that a booking writes: the mapping's list of steps, in its order."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from adapters.base import Draft
from adapters.mapping.conversion import DRAFT_FIELDS, Conversion
from adapters.mapping.converters import Converters
from adapters.mapping.models import MappingFile
from adapters.sql.engines.base import HALF
from adapters.sql.steps import Done, step_of
from adapters.sql.values import Values
from adapters.values.convert import Converter, Text


class BookingWrites:
    """The rows that a booking writes, in the mapping's order."""

    def __init__(self, mapping: MappingFile, converters: Converters) -> None:
        booking = mapping.booking
        self._appointment = booking.appointment
        unsafe = frozenset(booking.without_transactions)
        drafts = _drafts(converters)
        self._steps = [
            (write, step_of(write, converters, drafts, undone=write.table in unsafe))
            for write in booking.steps
        ]
        self._reason = next(
            (
                Text(value.encoding)
                for write in booking.steps
                for value in write.values.values()
                if value.draft == "reason" and value.encoding is not None
            ),
            Text(),
        )
        # a slot's row that is not given another end is taken as a whole, however short the booking
        self.shortens_slots = any(
            value.draft in ("endTime", "minutes")
            for write in booking.steps
            if write.update is not None and write.for_ == "slot"
            for value in write.values.values()
        )

    def kept(self, draft: Draft) -> Draft:
        """The draft as the practice system can keep it: its encoding may lack letters."""
        if draft.reason is None:
            return draft
        return replace(draft, reason=self._reason.encode(draft.reason)[0])

    def write(self, connection: Connection, values: Values, done: Done, *, of_slot: bool) -> Any:
        """Write every row that is for such a time; the key of the appointment.

        SlotTaken where another program has taken the slot's own row.
        """
        which = "slot" if of_slot else "time"
        for number, (write, step) in enumerate(self._steps):
            asked = write.if_ is None or values[write.if_] is not None
            if asked and write.for_ in (None, which):
                done.progress.place = ("booking", "steps", number)
                step.run(connection, values, done)
                done.progress.tables += [write.table] if write.table else []
        return done.made[self._appointment]

    def withdraw(self, connection: Connection, done: Done) -> None:
        """Delete again, last first, what no transaction would undo; as far as it goes."""
        failure: SQLAlchemyError | None = None
        for undo in reversed(done.undo):
            try:
                undo()
            except SQLAlchemyError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        connection.info.pop(HALF, None)


def _drafts(converters: Converters) -> Mapping[str, Converter]:
    """How the draft's values are written where `sql` names them."""
    plain = Conversion()
    return {name: converters.make(plain, shape) for name, shape in DRAFT_FIELDS.items()}
