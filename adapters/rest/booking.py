"""The calls of a booking: made in order, looked up, withdrawn."""

import asyncio
from contextlib import aclosing, suppress
from typing import Any

from adapters.base import (
    AdapterError,
    BackendNonsense,
    BackendTimeout,
    BackendUnavailable,
    Draft,
    NotFound,
    OutcomeUnknown,
    Record,
)
from adapters.mapped.records import Endless
from adapters.mapped.session import BookingProgress
from adapters.mapping.checker import DRAFT
from adapters.mapping.conversion import DRAFT_FIELDS
from adapters.mapping.models import BookingMap, RowSource, StepMap
from adapters.mapping.paths import path
from adapters.rest.paging import MOST_ROWS, Pager
from adapters.rest.records import raw_value
from adapters.rest.requests import TemplateValues
from adapters.rest.resource import Components, ResourceCalls
from adapters.values.convert import Unreadable

# Seconds that must be left for a call that writes to be sent at all.
LEAST_PATIENCE = 0.5
CANCELLED = "CANCELLED"


class BookingCalls:
    """Makes, finds and withdraws appointments; `reader` reads them."""

    def __init__(self, booking: BookingMap, reader: ResourceCalls, parts: Components) -> None:
        self._reader, self._backend = reader, parts.backend
        self._appointment = booking.appointment
        self._steps = [_StepCall(step, parts) for step in booking.steps]
        find = booking.find or RowSource(get="/")  # the checker knows that there is one
        self._find = parts.templates.call(find, DRAFT_FIELDS)
        self._pager = Pager(find.page, path(find.items), reader.key.plain, self._find.label)
        self._reference = path(booking.reference) if booking.reference else None
        cancel = booking.cancel
        self._cancel = None if cancel is None else parts.templates.call(cancel, DRAFT_FIELDS)

    async def make(
        self, values: TemplateValues, deadline: float, progress: BookingProgress, *, of_slot: bool
    ) -> str:
        """Every call that is for such a time, in order; the public id of the appointment.

        OutcomeUnknown as soon as something was sent and it is not known what came of it.
        """
        wrote = False
        for number, step in enumerate(self._steps):
            if not step.is_for(values, of_slot=of_slot):
                continue
            progress.place = ("booking", "steps", number)
            try:
                await step.run(self._backend, values, deadline)
            except OutcomeUnknown:
                raise
            except AdapterError as error:
                if wrote and self._appointment not in values.made:
                    raise OutcomeUnknown(f"a booking stopped halfway: {error}") from error
                if wrote:
                    await self.withdraw(values, None, deadline)
                if isinstance(error, BackendTimeout):  # of a read, or a login: nothing was done
                    raise BackendUnavailable(str(error)) from error
                raise
            wrote = wrote or step.writes
        return self._made(values)

    def _made(self, values: TemplateValues) -> str:
        made: str | None = None
        with suppress(Unreadable):
            made = self._reader.key.converter.decode(values.made[self._appointment])
        if made is None:
            raise OutcomeUnknown("the new appointment has no id that can be read")
        return made

    async def withdraw(
        self, values: TemplateValues, appointment: str | None, deadline: float
    ) -> None:
        """Take the appointment back.

        BackendNonsense where the mapping says no way to; OutcomeUnknown where it may not be gone.
        """
        if self._cancel is None:
            raise BackendNonsense(
                "an appointment that is not good stays: the mapping has no booking.cancel"
            )
        try:
            request = self._cancel.request(values)
            await self._backend.write(request, max(LEAST_PATIENCE, _left(deadline)), bare=True)
            if appointment is None:
                return
            record = await self._reader.one(appointment)
        except NotFound:
            return
        except AdapterError as error:
            raise OutcomeUnknown(f"an appointment could not be withdrawn: {error}") from error
        if record["status"] != CANCELLED:
            raise OutcomeUnknown("an appointment that was withdrawn still stands")

    async def find(self, draft: Draft, values: TemplateValues) -> list[Record]:
        """The appointments that the lookup gives, which carry the reference where one is kept.

        OutcomeUnknown where ours may be among what was not given.
        """
        found: list[Record] = []
        reference = self._reference if draft.reference else None

        def carries(row: Any) -> bool:
            with suppress(Unreadable):  # what we wrote could be read
                return reference is None or reference(row) == draft.reference
            return False

        looked_at, ask = 0, self._backend.pages(self._find, values)
        endless = f"{self._find.label}: there is no end of what it gives"
        try:
            async with aclosing(self._pager.batches(ask, None, MOST_ROWS)) as batches:
                async for batch in batches:
                    # what has no usable id is an empty record
                    made = (self._reader.record(row, ()) for row in filter(carries, batch.rows))
                    found += filter(None, made)
                    looked_at += len(batch.rows)
                    # a reference names one booking: no page behind has another
                    if batch.last or (reference is not None and found):
                        break
                    if looked_at >= MOST_ROWS:
                        raise OutcomeUnknown(endless)
        except Endless as error:
            raise OutcomeUnknown(endless) from error
        if reference is not None and looked_at and not found:  # the parameter was ignored
            raise OutcomeUnknown(f"{self._find.label}: the backend gives others than was asked for")
        return found


class _StepCall:
    def __init__(self, step: StepMap, parts: Components) -> None:
        self._step = step
        self._endpoint = parts.templates.call(step, DRAFT)
        self._keep = {name: raw_value(kept) for name, kept in step.keep.items()}
        self.writes = step.get is None

    def is_for(self, values: TemplateValues, *, of_slot: bool) -> bool:
        """Whether a booking of a slot row, or of another time, has it."""
        asked = self._step.if_ is None or values.given[self._step.if_] is not None
        return asked and self._step.for_ in (None, "slot" if of_slot else "time")

    async def run(self, backend: Any, values: TemplateValues, deadline: float) -> None:
        """Ask, and keep what later steps need."""
        request = self._endpoint.request(values)
        left = _left(deadline)
        if left < LEAST_PATIENCE:
            raise BackendUnavailable("there was no time left to book in")
        if self.writes:
            data = await backend.write(request, left, bare=not self._keep)
        else:
            data = (await backend.read(request)).data
        made: Any = values.made
        for name, find in self._keep.items():
            value = None
            with suppress(Unreadable):
                value = find(data)
            if value is None or isinstance(value, dict | list | bool):
                text = f"{self._endpoint.label}: the answer lacks what booking.steps keeps of it"
                raise OutcomeUnknown(text) if self.writes else BackendNonsense(text)
            made[name] = value


def _left(deadline: float) -> float:
    return deadline - asyncio.get_running_loop().time()
