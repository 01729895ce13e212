"""Makes the diary of the sample clinic: working hours, absences, bookings and their journal."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from adapters.sample import vocabulary as words
from adapters.sample.people import Herd, of_kind
from adapters.sample.rows import NO_MOMENT, YEAR, Chance, Row, awake, numbered, row_of, stamp

QUARTER = timedelta(minutes=15)
FORMER_VET_LEFT = 300  # days ago

BOOKINGS = 2500
AHEAD = 500
AHEAD_DAYS = 42
AHEAD_CANCELLED = 26
PAST_DAYS = 2 * YEAR
PAST_VOID = 160  # cancelled, or nobody came
LINGERING_PAST = 3
KIND_WEIGHTS = (40, 22, 8, 7, 12, 4, 5, 2, 4)

LAST_NUMBER_BEFORE = 6400  # the counter is older than the oldest row
OLD_DAYS = 400
WITHOUT_END = 60
WITHOUT_VET = 40
WITHOUT_KIND = 24
UNDOCUMENTED = 3
WITHOUT_STATUS = 6

DeskBooking = row_of("RDV")


@dataclass(slots=True)
class Sheet:
    """One vet's shift on one day: its quarter hours, and those that are taken."""

    vet: int
    quarters: list[datetime]
    taken: set[datetime] = field(default_factory=set)

    def spot(self, rng: Chance, minutes: int) -> list[datetime]:
        """Returns adjoining quarters at a random place; [] where the shift is short or broken."""
        count = minutes // 15
        if len(self.quarters) < count:
            return []
        first = rng.randrange(len(self.quarters) - count + 1)
        row = self.quarters[first : first + count]
        return row if row[-1] - row[0] == (count - 1) * QUARTER else []

    def take(self, rng: Chance, minutes: int) -> datetime | None:
        """Takes a random spot and returns its start, or None; half the shift always stays free."""
        row = self.spot(rng, minutes)
        is_full = 2 * (len(self.taken) + len(row)) > len(self.quarters)
        if not row or is_full or not self.taken.isdisjoint(row):
            return None
        self.taken.update(row)
        return row[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """When vets work: their weeks by id, the rows of HORAIRES and ABSENCES, and who left when."""

    weeks: dict[int, words.Week]
    shifts: list[Row]
    absences: list[Row]
    left: dict[int, date]

    def sheets(self, first: date, last: date) -> list[Sheet]:
        """Returns every shift that begins in the period, both days included, by day."""
        days = [first + timedelta(days=offset) for offset in range((last - first).days + 1)]
        sheets = (
            Sheet(vet, self._quarters(vet, day, *span.split("-")))
            for day in days
            for vet, week in self.weeks.items()
            if day < self.left.get(vet, date.max)
            for span in week.get(day.isoweekday(), ())
        )
        return [sheet for sheet in sheets if sheet.quarters]

    def _quarters(self, vet: int, day: date, opens: str, closes: str) -> list[datetime]:
        """Returns the quarters without absences and without 2 to 3 a.m., when clocks change."""
        start = datetime.combine(day, time.fromisoformat(opens))
        end = datetime.combine(day, time.fromisoformat(closes))
        end = end if end > start else end + timedelta(days=1)
        away = [(str(a), str(b)) for _, absent, a, b, _ in self.absences if absent == vet]
        quarters = [start + n * QUARTER for n in range((end - start) // QUARTER)]
        return [
            quarter
            for quarter in quarters
            if quarter.hour != 2
            and not any(a < stamp(quarter + QUARTER) and stamp(quarter) < b for a, b in away)
        ]


def make_roster(rng: Chance, persons: list[Row]) -> Roster:
    """Returns the hours of the active vets, and of a former one, who has no rows any more."""
    vets = [person.id_pers for person in of_kind(persons, "V", active=True)]
    weeks = dict(zip(rng.sample(vets, len(vets)), words.WEEKS, strict=True))
    former = of_kind(persons, "V", active=False)[0].id_pers
    return Roster(
        weeks=weeks | {former: words.FORMER_WEEK},
        shifts=numbered(
            (vet, day, *span.split("-"))
            for vet in vets
            for day, spans in weeks[vet].items()
            for span in spans
        ),
        absences=numbered(
            (rng.choice(vets), *_absence(rng.ago(-offset), days), why)
            for offset, days, why in words.AWAY
        ),
        left={former: rng.ago(FORMER_VET_LEFT)},
    )


def _absence(first: date, days: int) -> tuple[str, str]:
    """Returns the start and end of whole days, or of a working day's afternoon for 0 days."""
    start = datetime.combine(first, time())
    if days:
        return stamp(start), stamp(start + timedelta(days=days))
    if first.isoweekday() > 5:
        start += timedelta(days=8 - first.isoweekday())
    return stamp(start.replace(hour=14)), stamp(start.replace(hour=18, minute=30))


class Placement(NamedTuple):
    """A piece of a vet's time with a kind of visit; a void one leaves its time free."""

    vet: int
    start: datetime
    kind: Row
    void: bool = False

    @property
    def end(self) -> datetime:
        return self.start + timedelta(minutes=self.kind.duree_min)


class Desk:
    """The desk that fills in the diary; `lingering` is a former client whose animals still come."""

    def __init__(self, rng: Chance, herd: Herd, lingering: Row) -> None:
        self._rng, self._herd, self._lingering = rng, herd, lingering

    def bookings(self, roster: Roster) -> list[Row]:
        """Returns all rows of RDV in the order of entry: ids from 1, numbers from the counter."""
        ago = self._rng.ago
        now, ahead = roster.sheets(ago(0), ago(0)), roster.sheets(ago(-1), ago(-AHEAD_DAYS))
        past = roster.sheets(ago(PAST_DAYS), ago(1))[::-1]
        placements = self._placements(now, 2 * len(now), 0)
        placements += self._placements(ahead, AHEAD, AHEAD_CANCELLED)
        placements += self._placements(past, BOOKINGS - len(placements), PAST_VOID)
        rows = [self._booking(placement) for placement in placements]
        self._let_linger(rows)
        self._wear(rows)
        rows.sort(key=lambda row: (row.dt_saisie, row.d_debut, row.id_veto or 0))
        return [
            row._replace(id_rdv=n, num_rdv=f"R{row.dt_saisie[:4]}-{LAST_NUMBER_BEFORE + n:06d}")
            for n, row in enumerate(rows, 1)
        ]

    def _placements(self, sheets: list[Sheet], count: int, void: int) -> list[Placement]:
        """Returns up to `count` placements, `void` of them void; the first sheets are fuller."""
        placements: list[Placement] = []
        for _ in range(count * 40):
            if len(placements) == count - void:
                break
            sheet = sheets[int(len(sheets) * self._rng.random() ** 1.4)]
            kind = self._kind(sheet.quarters[0])
            start = sheet.take(self._rng, kind.duree_min)
            if start is not None:
                placements.append(Placement(sheet.vet, start, kind))
        kept = placements.copy()
        for _ in range(void):  # half of them at the time of a kept one, half at any time
            other = self._rng.choice(kept)
            if self._rng.random() >= 0.5:
                row = list[datetime]()
                while not row:
                    sheet = self._rng.choice(sheets)
                    row = sheet.spot(self._rng, other.kind.duree_min)
                other = Placement(sheet.vet, row[0], other.kind)
            placements.append(other._replace(void=True))
        return placements

    def _kind(self, opens: datetime) -> Row:
        """Returns a kind of visit for a shift; emergencies are unplanned, and fill most nights."""
        planned = opens.date() > self._rng.today
        if opens.hour >= 20:
            return words.CHECK if planned else words.EMERGENCY
        (kind,) = self._rng.choices(words.KINDS, KIND_WEIGHTS)
        no_longer = kind is words.GROOMING and opens.date() > self._rng.ago(400)
        return words.CHECK if no_longer or (kind is words.EMERGENCY and planned) else kind

    def _booking(self, placement: Placement) -> Row:
        """Returns a row of RDV for an animal that could come that day and that the kind suits."""
        kind, day, patient = placement.kind, placement.start.date(), None
        while patient is None:
            animal = self._rng.choice(self._herd.animals)
            if kind not in words.FOR_CARNIVORES or animal.code_esp in words.CARNIVORES:
                could = self._herd.patient_on(animal, day, planned=day >= self._rng.today)
                patient = animal if could else None
        return DeskBooking(
            id_animal=patient.id_animal,
            id_veto=placement.vet,
            id_type=kind.id_type,
            d_debut=stamp(placement.start),
            d_fin=stamp(placement.end),
            motif=self._rng.choice((None, "", *words.REASONS[kind.id_type] * 2)),
            urgent="O" if kind is words.EMERGENCY else self._rng.choice(("N", "N", "N", None)),
            statut=self._status(placement),
            dt_saisie=self._taken_down(placement, patient),
        )

    def _status(self, placement: Placement) -> str:
        """Returns the status that the desk would have set by now; it forgets a few."""
        rng, now = self._rng, self._rng.now
        if placement.void:
            return "A" if placement.start > now or rng.random() < 0.6 else "N"
        if placement.end <= now:
            return rng.choices("TCP", (97, 2, 1))[0]
        if placement.start <= now + timedelta(minutes=45):
            return "E" if placement.start <= now else "R"
        return rng.choice("PC")

    def _taken_down(self, placement: Placement, patient: Row) -> str:
        """Returns when it was booked: up to six weeks before, and after the animal was known."""
        rng = self._rng
        latest = min(placement.start, rng.now) - timedelta(minutes=rng.randrange(10, 180))
        days = 0 if placement.kind is words.EMERGENCY else rng.randrange(42)
        moment = latest - timedelta(days=days)
        if days:
            moment = moment.replace(hour=rng.randrange(8, 19), second=rng.randrange(60))
        elif moment.hour == 2:
            moment = moment.replace(hour=1)
        known = datetime.fromisoformat(patient.dt_creation) + timedelta(minutes=5)
        return stamp(max(moment, known))

    def _let_linger(self, rows: list[Row]) -> None:
        """Gives some past rows and one to come to the animals of the former client."""
        owned = self._herd.ownerships
        animals = [row.id_animal for row in owned if row.id_pers == self._lingering.id_pers]
        now = stamp(self._rng.now)
        simple = [n for n, row in enumerate(rows) if row.id_type == words.CONSULTATION.id_type]
        past = [n for n in simple if rows[n].d_debut < now]
        coming = [n for n in simple if rows[n].d_debut[:10] > now[:10]]
        for n in self._rng.sample(past, LINGERING_PAST) + self._rng.sample(coming, 1):
            rows[n] = rows[n]._replace(id_animal=self._rng.choice(animals))

    def _wear(self, rows: list[Row]) -> None:
        """Removes ends, vets, kinds and statuses from some rows, and sets an unexplained status.

        A row without its kind is half an hour long, and one without its end as long as its kind, so
        that these fallbacks create no overlap.
        """
        now, old = stamp(self._rng.now), stamp(self._rng.now - timedelta(days=OLD_DAYS))

        def some(count: int, condition: Callable[[Row], bool]) -> list[int]:
            return self._rng.sample([n for n, row in enumerate(rows) if condition(row)], count)

        for n in some(WITHOUT_END, lambda row: row.d_debut < old):
            rows[n] = rows[n]._replace(d_fin=self._rng.choice((None, NO_MOMENT)))
        for n in some(WITHOUT_VET, lambda row: row.d_debut < old and row.statut == "T"):
            rows[n] = rows[n]._replace(id_veto=None)
        for n in some(WITHOUT_KIND, lambda row: row.id_type == words.CONSULTATION.id_type):
            rows[n] = rows[n]._replace(id_type=None)
        for n in some(UNDOCUMENTED, lambda row: row.d_debut < old and row.statut == "T"):
            rows[n] = rows[n]._replace(statut="Z")
        for n in some(WITHOUT_STATUS, lambda row: row.d_debut > now and row.statut == "P"):
            rows[n] = rows[n]._replace(statut=None)


def make_journal(rng: Chance, bookings: list[Row]) -> list[Row]:
    """Returns the rows of RDV_JOURNAL by time: C for each booking, A where cancelled, some M."""
    rows: list[Row] = []
    for row in bookings:
        rows.append((row.id_rdv, "C", rng.choice(words.DESKS), row.dt_saisie))
        action = "A" if row.statut == "A" else "M" if rng.random() < 0.12 else ""
        if action:
            taken = datetime.fromisoformat(row.dt_saisie)
            until = min(datetime.fromisoformat(row.d_debut), rng.now)
            later = awake(taken + (until - taken) * rng.random())
            rows.append((row.id_rdv, action, rng.choice(words.DESKS), stamp(later)))
    return numbered(sorted(rows, key=lambda entry: str(entry[-1])))
