"""What comes of a booking, beside the errors of the practice system's adapter."""

from dataclasses import dataclass

from adapters.base import Record


@dataclass(frozen=True, slots=True)
class Booked:
    """An appointment that was made; `replayed` where an earlier call made it."""

    record: Record
    replayed: bool


class Refused(Exception):
    """The practice system's no: the name of an adapter's error, and whether it is an old one."""

    def __init__(self, error: str, *, replayed: bool) -> None:
        super().__init__(error)
        self.error = error
        self.replayed = replayed
