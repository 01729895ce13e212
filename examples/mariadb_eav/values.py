"""How this practice system writes its values: amounts, days that are none, ids of parties."""

from dataclasses import dataclass
from datetime import date, timedelta

from examples.practice import Practice

NO_DAY = "1000-01-01"
NO_DAY_EITHER = "0000-00-00"
NO_MOMENT = "1000-01-01 00:00:00"
FIRST_TYPE, FIRST_VET, FIRST_SUPPLIER, FIRST_CLIENT = 1, 11, 31, 100


def amount(cents: int) -> str:
    """Cents as '1.234,50'."""
    whole, rest = divmod(abs(cents), 100)
    thousands = f"{whole:,}".replace(",", ".")
    return f"{'-' if cents < 0 else ''}{thousands},{rest:02d}"


def length(minutes: int) -> str:
    """Minutes as '00:30:00'."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}:00"


def clock(minutes: timedelta) -> str:
    """The time of day so long after midnight."""
    return length(int(minutes.total_seconds()) // 60)


def old_day(day: date) -> str:
    """A day as the first versions wrote it: '31/12/2020'."""
    return day.strftime("%d/%m/%Y")


@dataclass(frozen=True)
class Ids:
    """Every party has a number of one sequence: kinds of visit, vets, suppliers, clients, ..."""

    practice: Practice

    def type(self, number: int) -> int:
        return FIRST_TYPE + number - 1

    def vet(self, number: int) -> int:
        return FIRST_VET + number - 1

    @property
    def former_vet(self) -> int:
        return self.vet(self.practice.vets + 1)

    def client(self, number: int) -> int:
        return FIRST_CLIENT + number - 1

    def home(self, client: int) -> int:
        return self.client(client) + len(self.practice.clients)

    def pet(self, number: int) -> int:
        return self.home(number) + len(self.practice.clients)
