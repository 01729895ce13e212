"""What bounds a booking, in the interface's description: the window, and a key's own bounds."""

from dataclasses import dataclass, replace

from gateway.contract.operation import Operation
from gateway.contract.window import BookingWindow


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """What a key may be told of its own bounds: see gateway.keys.key.Key."""

    bookings_per_day: int | None = None
    networks: tuple[str, ...] = ()

    def of_bookings(self) -> str:
        """How many bookings it may make, as a sentence; empty where that is not bounded."""
        if self.bookings_per_day is None:
            return ""
        return (
            f"This key may book {self.bookings_per_day} a day, by the clinic's calendar: beyond"
            " that a new booking is 429 until the day has ended."
        )

    def of_networks(self) -> str:
        """Where it may be used from, likewise."""
        if not self.networks:
            return ""
        return f"This key is accepted from these networks only: {', '.join(self.networks)}.\n"


def bounded(operation: Operation, window: BookingWindow | None, own: KeyBounds) -> Operation:
    """The same, with the clinic's booking window told beside each time that it bounds.

    A call that creates has the key's own bounds in its notes.
    """
    if operation.creates:
        notes = " ".join(filter(None, (operation.notes, own.of_bookings())))
        operation = replace(operation, notes=notes)
    if window is None:
        return operation
    params = tuple(
        replace(each, summary=f"{each.summary} {_sentence(window.latest)}")
        if each.to_come
        else each
        for each in operation.params
    )
    bounds = window.latest if not window.lead_time else f"{window.earliest}, {window.latest}"
    body = tuple(
        replace(each, summary=f"{each.summary} {_sentence(bounds)}") if each.to_come else each
        for each in operation.body
    )
    return replace(operation, params=params, body=body)


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
