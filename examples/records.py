"""What a made-up practice is made of, in plain terms; all times are the clinic's wall clock."""

from collections.abc import Sequence
from datetime import date, datetime, time
from typing import NamedTuple

from adapters.sample import vocabulary as words


class Client(NamedTuple):
    """Somebody who owns animals; a company has no first name."""

    id: int
    last: str
    first: str | None
    street: str
    zip: str
    town: str
    created: datetime
    changed: datetime | None
    gone: bool

    @property
    def phone(self) -> str:
        return f"{words.MOBILE} {self.id // 100 % 100:02d} {self.id % 100:02d}"

    @property
    def email(self) -> str:
        return f"client{self.id}@example.com"


class Animal(NamedTuple):
    """A patient; `owner` is a client's id, None for a stray."""

    id: int
    owner: int | None
    former: int | None
    name: str
    species: int
    breed: str
    sex: int
    neutered: bool | None
    born: date | None
    died: date | None
    coat: str | None
    grams: int | None
    chip: str | None
    alerts: Sequence[str]
    created: datetime
    deleted: bool


class Visit(NamedTuple):
    """A place in the diary: `state` is one of planned confirmed done cancelled missed."""

    id: int
    vet: int
    kind: int
    animal: Animal
    start: datetime
    minutes: int
    state: str
    urgent: bool
    reason: str | None
    created: datetime


class Line(NamedTuple):
    """A line of a bill; `total` in cents, without tax."""

    label: str
    quantity: int
    cents: int
    rate: int
    animal: int | None

    @property
    def total(self) -> int:
        return self.quantity * self.cents


class Bill(NamedTuple):
    """What a client was asked to pay; a credit note has negative quantities."""

    id: int
    client: int
    issued: datetime
    state: str  # open part paid cancelled draft
    lines: Sequence[Line]

    @property
    def net(self) -> int:
        return sum(line.total for line in self.lines)

    @property
    def tax(self) -> int:
        return sum(round(line.total * line.rate / 100) for line in self.lines)

    @property
    def paid(self) -> int:
        if self.state not in ("part", "paid"):
            return 0
        gross = self.net + self.tax
        return gross if self.state == "paid" else gross // 2


class Shift(NamedTuple):
    """A vet's weekly hours; an end that is not after the start is on the next day."""

    vet: int
    weekday: int  # 1 is Monday
    start: time
    end: time
