"""When the vets of the sample clinic work: their weeks, their absences, and each shift to fill."""

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from random import Random
from typing import NamedTuple

from adapters.sample.people import People
from adapters.sample.values import stamp

QUARTER = timedelta(minutes=15)
FORMER_VET_LEFT = 300  # days ago

Week = dict[int, tuple[tuple[str, str], ...]]

DAY = (("08:30", "12:00"), ("14:00", "18:30"))
LATE_DAY = (("09:00", "12:30"), ("14:30", "19:00"))
MORNING = (("08:30", "12:00"),)
SATURDAY = (("09:00", "12:30"),)
NIGHT = (("20:00", "06:00"),)

WEEKS: tuple[Week, ...] = (  # 1 is Monday; two at least are in from Monday to Saturday
    {1: DAY, 2: DAY, 3: DAY, 4: DAY, 5: DAY},
    {1: DAY, 2: DAY, 4: DAY, 5: DAY, 6: SATURDAY},
    {1: LATE_DAY, 3: LATE_DAY, 4: LATE_DAY, 5: LATE_DAY},
    {2: DAY, 3: LATE_DAY, 4: DAY, 5: (("08:15", "12:15"),), 6: DAY},
    {1: MORNING, 2: MORNING, 3: DAY, 4: MORNING, 5: MORNING, 6: SATURDAY},
    {1: (("14:00", "18:30"),), 2: DAY, 5: NIGHT, 6: NIGHT},
)
FORMER_WEEK: Week = {1: DAY, 2: DAY, 4: DAY}

AWAY = (  # days from today, length in days (0: one afternoon), reason
    (-700, 10, "Congés"),
    (-610, 0, "Formation"),
    (-540, 14, "Congés"),
    (-455, 3, "Maladie"),
    (-370, 7, "Congés"),
    (-215, 12, "Congés"),
    (-120, 2, "Congrès"),
    (-45, 5, None),
    (4, 0, "Formation"),
    (11, 5, "Congés"),
    (24, 2, "Congrès"),
    (36, 7, "Congés"),
)


class Shift(NamedTuple):
    """A row of HORAIRES."""

    id_hor: int
    id_veto: int
    jour: int
    h_debut: str
    h_fin: str


class Absence(NamedTuple):
    """A row of ABSENCES."""

    id_abs: int
    id_veto: int
    d_debut: str
    d_fin: str
    motif: str | None


@dataclass(slots=True)
class Sheet:
    """One vet's shift of one day: its free quarter hours, and those that are taken."""

    vet: int
    quarters: list[datetime]
    taken: set[datetime] = field(default_factory=set)

    def spot(self, rng: Random, minutes: int) -> list[datetime]:
        """Quarters in a row somewhere in the shift; nothing if it is too short or broken."""
        count = minutes // 15
        if len(self.quarters) < count:
            return []
        first = rng.randrange(len(self.quarters) - count + 1)
        row = self.quarters[first : first + count]
        return row if row[-1] - row[0] == (count - 1) * QUARTER else []

    def take(self, rng: Random, minutes: int) -> datetime | None:
        """Try one spot; at least half of the shift always stays free."""
        row = self.spot(rng, minutes)
        if not row or 2 * (len(self.taken) + len(row)) > len(self.quarters):
            return None
        if not self.taken.isdisjoint(row):
            return None
        self.taken.update(row)
        return row[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """The weeks of the vets by id, who is away when, and until when the former vet stayed."""

    weeks: dict[int, Week]
    shifts: list[Shift]
    absences: list[Absence]
    left: dict[int, date]

    def sheets(self, first: date, last: date) -> list[Sheet]:
        """Every shift that begins in the period, both days included, by day."""
        found = []
        for offset in range((last - first).days + 1):
            day = first + timedelta(days=offset)
            for vet, week in self.weeks.items():
                if day < self.left.get(vet, date.max):
                    for opens, closes in week.get(day.isoweekday(), ()):
                        found.append(self._sheet(vet, *_bounds(day, opens, closes)))
        return [sheet for sheet in found if sheet.quarters]

    def _sheet(self, vet: int, start: datetime, end: datetime) -> Sheet:
        """The quarters from the start on; two to three at night is left out, as clocks change."""
        away = [
            (row.d_debut, row.d_fin)
            for row in self.absences
            if row.id_veto == vet and row.d_debut < stamp(end) and stamp(start) < row.d_fin
        ]
        quarters = [start + n * QUARTER for n in range((end - start) // QUARTER)]
        awake = [quarter for quarter in quarters if quarter.hour != 2]
        for a, b in away:
            awake = [
                quarter
                for quarter in awake
                if not (a < stamp(quarter + QUARTER) and stamp(quarter) < b)
            ]
        return Sheet(vet, awake)


def make_roster(rng: Random, today: date, people: People) -> Roster:
    """Hours for the active vets; the former one's rows are gone, the past shows them."""
    vets = [person.id_pers for person in people.of("V", active=True)]
    weeks = dict(zip(rng.sample(vets, len(vets)), WEEKS, strict=True))
    lines = [
        (vet, day, opens, closes)
        for vet in vets
        for day, spans in weeks[vet].items()
        for opens, closes in spans
    ]
    former = people.of("V", active=False)[0].id_pers
    return Roster(
        weeks=weeks | {former: FORMER_WEEK},
        shifts=[Shift(number, *line) for number, line in enumerate(lines, 1)],
        absences=[
            Absence(number, rng.choice(vets), *_absence(today, offset, days), why)
            for number, (offset, days, why) in enumerate(AWAY, 1)
        ],
        left={former: today - timedelta(days=FORMER_VET_LEFT)},
    )


def _absence(today: date, offset: int, days: int) -> tuple[str, str]:
    """Whole days from midnight to midnight, or the afternoon of a working day."""
    first = today + timedelta(days=offset)
    if days:
        end = first + timedelta(days=days)
        return stamp(datetime.combine(first, time())), stamp(datetime.combine(end, time()))
    if first.isoweekday() > 5:
        first += timedelta(days=8 - first.isoweekday())
    return stamp(datetime.combine(first, time(14))), stamp(datetime.combine(first, time(18, 30)))


def _bounds(day: date, opens: str, closes: str) -> tuple[datetime, datetime]:
    """Start and end of a shift; one that does not end after its start ends on the next day."""
    start = datetime.combine(day, time.fromisoformat(opens))
    end = datetime.combine(day, time.fromisoformat(closes))
    return start, end if end > start else end + timedelta(days=1)
