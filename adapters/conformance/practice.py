"""What the suite asks of a test's practice system beside its adapter: what its own people do there.

Ids are public, as the adapter tells them; moments are aware. Every verb is done when it returns.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, time
from typing import NamedTuple, Protocol, TypeVar
from zoneinfo import ZoneInfo

from adapters.base import Adapter, Shapes, Trouble

F = TypeVar("F", bound=Callable[..., object])


class Place(NamedTuple):
    """Where a verb wrote: the resource, the record's public id, and the field."""

    resource: str
    id: str
    field: str


class Practice(Protocol):
    """A practice system made for one test, with some rows of every resource.

    A client with an animal, and a vet who has free times within the next fortnight, are among
    them. `now` is the present of its rows; `troubles` is what its adapters reported; within
    `patience` seconds they answer a read, one way or the other, and within twice that a booking.
    Those verbs that it lacks are named in `AdapterConformance.cannot`.
    """

    shapes: Shapes
    now: datetime
    zone: ZoneInfo
    troubles: list[Trouble]
    patience: float = 3.0

    def open(self) -> Adapter:
        """An adapter of its own, as another process has; the suite closes it."""

    async def settle(self) -> None:
        """Return once what was written at the desk has to be seen: an adapter may remember."""
        await asyncio.sleep(0)

    async def add_clients(self, count: int, *, front: bool) -> None:
        """Enter so many clients.

        In `front`: in the adapter's order before all that were added otherwise, and behind none
        of those, where keys can be chosen; else wherever new ones go.
        """
        raise _lacks("add_clients")

    async def asked(self) -> int:
        """How many statements or HTTP requests it was asked so far.

        Beginning and ending a transaction, or a login, is none.
        """
        raise _lacks("asked")

    async def set_hours(self, vet: str, weekday: int, start: time, end: time) -> None:
        """Let a vet work every week on that day (1 is Monday), and at no other time.

        An end that is not after the start is on the next day.
        """
        raise _lacks("set_hours")

    async def add_absence(self, vet: str, start: datetime, end: datetime) -> None:
        """Let a vet be away."""
        raise _lacks("add_absence")

    async def add_appointment(self, vet: str, start: datetime, end: datetime) -> str:
        """Enter an appointment at the desk, for any animal, whatever stands there; its id."""
        raise _lacks("add_appointment")

    async def cancel(self, appointment: str) -> None:
        """Cancel an appointment that was added."""
        raise _lacks("cancel")

    async def write_unknown_code(self) -> Place:
        """Write a code that nothing explains into a field that has allowed values."""
        raise _lacks("write_unknown_code")

    async def write_unreadable(self) -> Place:
        """Write into a field what is no value of its kind, such as a 31st of February."""
        raise _lacks("write_unreadable")

    async def write_zero_date(self) -> Place:
        """Write the practice system's way to say `no date` into a field with a date or time."""
        raise _lacks("write_zero_date")

    async def stop(self) -> None:
        """Let the practice system be down."""
        raise _lacks("stop")

    async def slow(self) -> None:
        """Let it take whatever it is asked, and not answer for longer than anybody waits."""
        raise _lacks("slow")

    async def garble(self) -> None:
        """Let it answer what is no answer at all."""
        raise _lacks("garble")

    async def mend(self) -> None:
        """Let it answer again as before."""
        raise _lacks("mend")


VERBS = frozenset(
    {
        "add_clients",
        "asked",
        "set_hours",
        "add_absence",
        "add_appointment",
        "cancel",
        "write_unknown_code",
        "write_unreadable",
        "write_zero_date",
        "stop",
        "slow",
        "garble",
        "mend",
    }
)


def needs(*verbs: str) -> Callable[[F], F]:
    """Say of a test which verbs it cannot do without."""

    def mark(test: F) -> F:
        vars(test)["needs"] = frozenset(verbs)
        return test

    return mark


def needs_of(test: object) -> frozenset[str]:
    """What was said of it."""
    found: object = getattr(test, "needs", None)
    return found if isinstance(found, frozenset) else frozenset()


def _lacks(verb: str) -> NotImplementedError:
    return NotImplementedError(f"write {verb}() of this practice, or name it in the suite's cannot")
