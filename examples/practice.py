"""A made-up practice in plain terms, of any size; each example writes it down in its own odd way.

All times are the clinic's wall clock. The same seed and day give the same practice. Big lists are
made while they are read, so that a million rows need no memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property
from random import Random

from adapters.sample import vocabulary as words
from examples.records import Animal, Bill, Client, Line, Shift, Visit

CLIENTS, PATIENTS, APPOINTMENTS, LINES = 300, 500, 3_000, 5_000
# A bigger practice keeps a longer history: at scale 50 it has 15,000 clients and 25,000 patients,
# 300,000 appointments and 1,000,000 lines.
MORE_VISITS, MORE_LINES = 1.1772, 1.3544
DAYS_AHEAD = 28
AHEAD_SHARE = 0.3  # of a day's places that are taken before the day comes
BUSY_SHARE = 0.85
TAKEOVER_DAYS = 6 * 365
SOLD_DAYS = 10  # so long ago those animals changed hands that had another owner
KINDS = (  # name, minutes, share
    ("Consultation", 30, 50),
    ("Vaccination", 15, 25),
    ("Surgery", 60, 8),
    ("Check-up", 15, 14),
    ("Emergency", 45, 3),
)
REASONS = ("Limps since yesterday", "Yearly vaccination", "Won't eat", "Coughs at night", None)
COLOURS = ("black", "tabby", "ginger", "white", "grey", None)
ALERTS = ("Bites", "Diabetic", "Allergic to penicillin", "Heart disease")
WARES = ("Amoxicillin", "Meloxicam", "Ivermectin", "Prednisolone", "Diet food", "Syringes")
SERVICES = (("Consultation", 3850), ("Vaccine", 2915), ("Blood count", 4420), ("Tablets", 1275))


@dataclass(frozen=True)
class Practice:
    """A practice of `scale` times the usual size, as it looks on `today`."""

    today: date
    scale: float = 1.0
    seed: int = 1

    def stream(self, name: str) -> Random:
        """A source of chance of its own for each part."""
        return Random(f"{self.seed}/{name}")

    def count(self, usual: int, growth: float = 1.0) -> int:
        return max(10, round(usual * float(self.scale**growth)))

    @property
    def vets(self) -> int:
        return 4 if self.scale < 10 else 12

    @property
    def now(self) -> datetime:
        """When its desk closed last: whatever the hour, nothing that is done lies in the future."""
        return datetime.combine(self.today - timedelta(days=1), time(19))

    @property
    def takeover(self) -> datetime:
        """When the older data came over from the product before, all in one moment."""
        return datetime.combine(self.today - timedelta(days=TAKEOVER_DAYS), time(4))

    @property
    def sold(self) -> date:
        """The day on which every animal changed hands that had another owner."""
        return self.today - timedelta(days=SOLD_DAYS)

    @cached_property
    def shifts(self) -> Sequence[Shift]:
        """Two halves of each weekday, Saturday mornings for some, a night for the first vet."""
        halves = ((time(8, 30), time(12)), (time(14), time(18, 30)))
        week = [
            Shift(vet, day, *half)
            for vet in range(1, self.vets + 1)
            for day in range(1, 6)
            for half in halves
        ]
        saturdays = [Shift(vet, 6, time(9), time(12)) for vet in range(1, self.vets + 1, 2)]
        return [*week, *saturdays, Shift(1, 3, time(21), time(5))]

    @cached_property
    def clients(self) -> Sequence[Client]:
        rng = self.stream("clients")
        return [self._client(rng, number) for number in range(1, self.count(CLIENTS) + 1)]

    def _client(self, rng: Random, number: int) -> Client:
        company = number % 25 == 0
        created = self._since(rng, 9 * 365)
        town = rng.choice(words.TOWNS)
        return Client(
            id=number,
            last=rng.choice(words.CLIENT_COMPANIES if company else words.FAMILY_NAMES),
            first=None if company else rng.choice(words.FIRST_NAMES),
            street=f"{rng.randrange(1, 120)} {rng.choice(words.STREETS)}",
            zip=town[0],
            town=town[1],
            created=created,
            changed=None
            if rng.random() < 0.4
            else awake(created + (self.now - created) * rng.random()),
            gone=number % 40 == 7,
        )

    @cached_property
    def animals(self) -> Sequence[Animal]:
        rng = self.stream("animals")
        return [self._animal(rng, number) for number in range(1, self.count(PATIENTS) + 1)]

    def _animal(self, rng: Random, number: int) -> Animal:
        species = rng.choices((0, 1, 2, 3), (50, 36, 9, 5))[0]
        clients = len(self.clients)
        born = self.today - timedelta(days=rng.randrange(90, 15 * 365))
        return Animal(
            id=number,
            owner=None if number % 50 == 9 else rng.randrange(1, clients + 1),
            former=rng.randrange(1, clients + 1) if number % 12 == 5 else None,
            name=rng.choice(words.ANIMAL_NAMES),
            species=species,
            breed=rng.choice(words.BREEDS[words.SPECIES[species][0]]),
            sex=rng.randrange(3),
            neutered=rng.choice((True, False, None)),
            born=born if rng.random() < 0.9 else None,
            died=self.today - timedelta(days=rng.randrange(80)) if number % 30 == 3 else None,
            coat=rng.choice(COLOURS),
            grams=rng.randrange(400, 45_000) if rng.random() < 0.8 else None,
            chip=f"250{number:012d}" if rng.random() < 0.7 else None,
            alerts=rng.sample(ALERTS, rng.choice((0, 0, 0, 1, 2))),
            created=self._since(rng, 9 * 365),
            deleted=number % 60 == 11,
        )

    def visits(self) -> Iterator[Visit]:
        """From the farthest day to come back into the past; no two of a vet overlap."""
        rng = self.stream("visits")
        wanted = self.count(APPOINTMENTS, MORE_VISITS)
        day = self.today + timedelta(days=DAYS_AHEAD)
        made = 0
        while made < wanted:
            share = AHEAD_SHARE if day > self.today else BUSY_SHARE
            for shift in self.shifts:
                if shift.weekday == day.isoweekday():
                    for visit in self._in_shift(rng, shift, day, share):
                        if made < wanted:
                            made += 1
                            yield visit._replace(id=made)
            day -= timedelta(days=1)

    def _in_shift(self, rng: Random, shift: Shift, day: date, share: float) -> Iterator[Visit]:
        at = datetime.combine(day, shift.start)
        end = datetime.combine(day, shift.end)
        if end <= at:  # the night is quiet, and keeps clear of the hour that the clocks change
            end, share = at + timedelta(hours=3), share / 3
        while True:
            kind = rng.choices(range(len(KINDS)), [each[2] for each in KINDS])[0]
            minutes = KINDS[kind][1]
            if at + timedelta(minutes=minutes) > end:
                return
            if rng.random() < share:
                yield self._visit(rng, shift.vet, kind, at)
            at += timedelta(minutes=minutes)

    def _visit(self, rng: Random, vet: int, kind: int, start: datetime) -> Visit:
        past = start < self.now
        states, weights = ("done", "cancelled", "missed"), (92, 5, 3)
        if not past:
            states, weights = ("planned", "confirmed", "cancelled"), (60, 32, 8)
        created = min(start, self.now) - timedelta(minutes=rng.randrange(20, 40_000))
        return Visit(
            id=0,
            vet=vet,
            kind=kind + 1,
            animal=rng.choice(self.animals),
            start=start,
            minutes=KINDS[kind][1],
            state=rng.choices(states, weights)[0],
            urgent=KINDS[kind][0] == "Emergency",
            reason=rng.choice(REASONS),
            created=awake(created),
        )

    def bills(self) -> Iterator[Bill]:
        """Bills of one to nine lines, so many that the lines come to what the scale asks for."""
        rng = self.stream("bills")
        left, number = self.count(LINES, MORE_LINES), 0
        while left > 0:
            number += 1
            lines = self._lines(rng, min(left, rng.randrange(1, 10)), credit=number % 35 == 4)
            left -= len(lines)
            yield self._bill(rng, number, lines)

    def _lines(self, rng: Random, count: int, *, credit: bool) -> Sequence[Line]:
        animal = rng.choice(self.animals).id
        lines = []
        for _ in range(count):
            label, cents = rng.choice(SERVICES)
            quantity = rng.randrange(1, 4)
            about = animal if rng.random() < 0.9 else None
            lines.append(Line(label, -quantity if credit else quantity, cents, 21, about))
        return lines

    def _bill(self, rng: Random, number: int, lines: Sequence[Line]) -> Bill:
        states = ("paid", "part", "open", "cancelled", "draft")
        return Bill(
            id=number,
            client=rng.randrange(1, len(self.clients) + 1),
            issued=self._since(rng, 3 * 365),
            state=rng.choices(states, (78, 6, 9, 3, 4))[0],
            lines=lines,
        )

    def _since(self, rng: Random, days: int) -> datetime:
        """Some moment of the last days; what is older came over in one go."""
        at = self.now - timedelta(minutes=rng.randrange(1_000, days * 1440))
        return max(awake(at), self.takeover)


def awake(moment: datetime) -> datetime:
    """Whole seconds, clear of the hours in which any clock of Europe is changed."""
    whole = moment.replace(microsecond=0)
    return whole.replace(hour=8) if whole.hour < 7 else whole
