"""A made-up practice with realistic proportions, which each family of schemas stores in its way."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

ZONE = ZoneInfo("Europe/Berlin")
TODAY = date(2026, 3, 4)
FIRST = [
    "Anna",
    "Ben",
    "Clara",
    "David",
    "Emma",
    "Finn",
    "Greta",
    "Hugo",
    "Ida",
    "Jonas",
    "Klara",
    "Lena",
    "Max",
    "Nora",
    "Otto",
    "Paula",
]
LAST = [
    "Ackerling",
    "Bremsted",
    "Cullmore",
    "Dornfeld",
    "Ekwall",
    "Farnham",
    "Gessler",
    "Holtby",
    "Imhoven",
    "Jessop",
    "Kalberg",
    "Lindqvist",
    "Marbach",
    "Norwell",
    "Ostrand",
    "Pellmann",
    "Quirke",
    "Rosmer",
    "Sandvik",
    "Tellmer",
    "Ulbrich",
    "Vossing",
    "Wexford",
    "Yarrow",
    "Zellner",
]
PETS = [
    "Balu",
    "Cleo",
    "Fritz",
    "Gina",
    "Kira",
    "Leo",
    "Luna",
    "Milo",
    "Nala",
    "Oskar",
    "Pepper",
    "Rocky",
    "Simba",
    "Tiger",
    "Zora",
]
BREEDS = {"dog": ["Labrador", "Beagle", "Poodle"], "cat": ["Siamese", "Persian", "Birman"]}
BREEDS |= {"rabbit": ["Lop", "Rex"]}
STREETS = ["Mill Lane", "Church Road", "Station Road", "High Street", "Garden Way"]
TOWNS = (("10115", "Lindenau"), ("20095", "Westerfeld"), ("50667", "Marienau"))
REASONS = [
    "limping",
    "annual check",
    "vaccination",
    "cough",
    "itching",
    "dental check",
    "weight loss",
]
DRUGS = [
    "Carprofen",
    "Amoxicillin",
    "Meloxicam",
    "Ivermectin",
    "Prednisolone",
    "Doxycycline",
    "Tramadol",
]
STATUSES = ["SCHEDULED", "CONFIRMED", "ARRIVED", "IN_PROGRESS", "COMPLETED", "CANCELLED", "NO_SHOW"]


@dataclass(slots=True)
class Client:
    id: int
    first: str
    last: str
    street: str
    town: tuple[str, str]
    phone: str | None
    email: str | None
    created: datetime
    updated: datetime


@dataclass(slots=True)
class Patient:
    id: int
    client: Client
    name: str
    species: str
    breed: str
    sex: str
    neutered: bool
    birth: date
    colour: str
    weight: float
    chip: str | None
    died: date | None
    created: datetime
    updated: datetime


@dataclass(slots=True)
class Appointment:
    id: int
    patient: Patient
    vet: int
    type: int
    start: datetime
    end: datetime
    status: str
    urgent: bool
    created: datetime
    reason: str | None


@dataclass(slots=True)
class Invoice:
    id: int
    number: str
    client: Client
    status: str
    issued: datetime
    due: date
    lines: list[tuple[int, Patient, str, int, float, int, float]]  # id ... quantity, price, rate
    payments: list[tuple[int, datetime, float, str]]

    @property
    def net(self) -> float:
        return round(sum(line[6] for line in self.lines), 2)

    @property
    def tax(self) -> float:
        return round(sum(line[6] * line[5] / 100 for line in self.lines), 2)

    @property
    def total(self) -> float:
        return round(self.net + self.tax, 2)

    @property
    def paid(self) -> float:
        return round(sum(payment[2] for payment in self.payments), 2)


@dataclass(slots=True)
class Product:
    id: int
    name: str
    category: str
    code: str
    unit: str
    least: int
    expires: date
    updated: datetime
    sale: float
    cost: float
    place: str
    batch: str
    supplier: int
    moves: list[tuple[int, datetime, int]] = field(default_factory=list)

    @property
    def quantity(self) -> int:
        return sum(move[2] for move in self.moves)


# Key, first name, last name; the others on the staff follow the vets.
VETS = ((3, "Mara", "Thornbeck"), (4, "Eskil", "Rauwolf"), (7, "Judith", "Hallam"))
OTHERS = ((1, "Olga", "Pretz"), (2, "Sven", "Dahler"), (5, "Tess", "Upmoor"), (6, "Uwe", "Finke"))
TYPES = (
    (1, "Consultation", 30),
    (2, "Vaccination", 15),
    (3, "Surgery", 60),
    (4, "Dental care", 45),
    (5, "Follow-up", 15),
)
SUPPLIERS = ((1, "Medvet Supply"), (2, "Nordpharm"), (3, "Animalia Trade"))


class World:
    """The practice; every call with the same seed makes the same one. Times are of its clock."""

    def __init__(self, seed: int = 7) -> None:
        self.random = Random(seed)
        self.clients = [self._client(number) for number in range(1, 121)]
        self.patients = [self._patient(number) for number in range(1, 181)]
        self.appointments = self._appointments()
        self.invoices = [self._invoice(number) for number in range(1, 201)]
        self.products = [self._product(number) for number in range(1, 61)]

    def _client(self, number: int) -> Client:
        draw = self.random
        first, last = draw.choice(FIRST), draw.choice(LAST)
        mail = f"{first}.{last}{number}@example.org".lower()
        created = self._worked(date(2019, 1, 1) + timedelta(draw.randrange(2500)))
        return Client(
            id=number,
            first=first,
            last=last,
            street=f"{draw.choice(STREETS)} {draw.randrange(1, 99)}",
            town=draw.choice(TOWNS),
            phone=f"+49 30 555 {draw.randrange(10000, 99999)}" if draw.random() < 0.9 else None,
            email=mail if draw.random() < 0.7 else None,
            created=created,
            updated=created + timedelta(days=draw.randrange(1, 60), minutes=draw.randrange(90)),
        )

    def _worked(self, day: date) -> datetime:
        """A moment of a working day, on the clinic's clock."""
        day += timedelta({5: 2, 6: 1}.get(day.weekday(), 0))
        minutes = self.random.randrange(8 * 60, 18 * 60)
        return on(day.year, day.month, day.day) + timedelta(minutes=minutes)

    def _patient(self, number: int) -> Patient:
        draw = self.random
        owner = self.clients[number - 1] if number <= 120 else draw.choice(self.clients)
        species = draw.choices(["dog", "cat", "rabbit"], [5, 4, 1])[0]
        birth = date(2010, 1, 1) + timedelta(draw.randrange(5500))
        created = owner.created + timedelta(days=draw.randrange(3))
        return Patient(
            id=number,
            client=owner,
            name=draw.choice(PETS),
            species=species,
            breed=draw.choice(BREEDS[species]),
            sex=draw.choices("MFU", [10, 10, 1])[0],
            neutered=draw.random() < 0.5,
            birth=birth,
            colour=draw.choice(["black", "white", "brown", "tabby"]),
            weight=round(draw.uniform(1, 45), 1),
            chip=f"2760981{draw.randrange(10**8):08}" if draw.random() < 0.6 else None,
            died=date(2025, 1, 1) + timedelta(draw.randrange(400)) if number % 15 == 0 else None,
            created=created,
            updated=created + timedelta(days=draw.randrange(1, 90)),
        )

    def _appointments(self) -> list[Appointment]:
        draw, made = self.random, []
        taken = set[tuple[int, date, int]]()
        for _ in range(700):
            day = date(2025, 3, 3) + timedelta(draw.randrange(390))
            day -= timedelta({5: 1, 6: 2}.get(day.weekday(), 0))
            vet, kind = draw.choice(VETS)[0], draw.choice(TYPES)
            hour = draw.randrange(9, 17)
            if (vet, day, hour) in taken:
                continue
            taken.add((vet, day, hour))
            start = on(day.year, day.month, day.day, hour) + timedelta(
                minutes=draw.choice([0, 15, 30]) if kind[2] < 45 else 0
            )
            before = start - timedelta(days=draw.randrange(1, 30))
            weights = [0, 0, 0, 0, 80, 12, 8] if day < TODAY else [70, 25, 0, 0, 0, 5, 0]
            if day == TODAY:
                weights = [30, 20, 30, 20, 0, 0, 0]
            made.append(
                (
                    start,
                    draw.choice(self.patients),
                    vet,
                    kind,
                    draw.choices(STATUSES, weights)[0],
                    draw.random() < 0.06,
                    self._worked(min(before.date(), TODAY - timedelta(1))),
                    draw.choice(REASONS) if draw.random() < 0.85 else None,
                )
            )
        made.sort(key=lambda each: each[6])
        return [
            Appointment(n, pet, vet, kind[0], at, at + timedelta(minutes=kind[2]), state, *rest)
            for n, (at, pet, vet, kind, state, *rest) in enumerate(made, 1)
        ]

    @property
    def seen(self) -> list[Appointment]:
        """The appointments that became consultations."""
        return [each for each in self.appointments if each.status == "COMPLETED"]

    def _invoice(self, number: int) -> Invoice:
        draw = self.random
        issued = self._worked(date(2025, 3, 1) + timedelta(number * 365 // 200))
        client = draw.choice(self.clients)
        pet = draw.choice([each for each in self.patients if each.client is client])
        lines = []
        for part in range(draw.randrange(1, 5)):
            quantity, price = draw.randrange(1, 4), round(draw.uniform(5, 120), 2)
            what = draw.choice([kind[1] for kind in TYPES] + DRUGS)
            rate = draw.choice([19, 19, 7])
            net = round(quantity * price, 2)
            lines.append((number * 10 + part, pet, what, quantity, price, rate, net))
        status = draw.choices(["PAID", "PARTIALLY_PAID", "ISSUED"], [7, 1, 2])[0]
        made = Invoice(
            number,
            f"R-{2600 + number}",
            client,
            status,
            issued,
            issued.date() + timedelta(14),
            lines,
            [],
        )
        if status != "ISSUED":
            paid = made.total if status == "PAID" else round(made.total / 2, 2)
            when = issued + timedelta(days=draw.randrange(1, 12))
            made.payments.append((number, when, paid, draw.choice(["card", "cash", "transfer"])))
        return made

    def _product(self, number: int) -> Product:
        draw = self.random
        cost = round(draw.uniform(1, 60), 2)
        product = Product(
            id=number,
            name=f"{DRUGS[number % 7]} {number * 5} mg",
            category=draw.choice(["Antibiotics", "Analgesics", "Parasites"]),
            code=f"A{1000 + number}",
            unit=draw.choice(["box", "vial", "tablet"]),
            least=draw.choice([5, 10, 20]),
            expires=date(2026, 6, 1) + timedelta(draw.randrange(700)),
            updated=self._worked(date(2025, 6, 1) + timedelta(draw.randrange(250))),
            sale=round(cost * 1.8, 2),
            cost=cost,
            place=draw.choice(["Cabinet 1", "Cabinet 2", "Fridge"]),
            batch=f"L{draw.randrange(10000, 99999)}",
            supplier=draw.choice(SUPPLIERS)[0],
        )
        left = 0
        for step in range(draw.randrange(3, 8)):
            change = draw.randrange(5, 30) if step % 2 == 0 else -draw.randrange(1, min(left, 20))
            left += change
            when = self._worked(date(2025, 4, 1) + timedelta(step * 40 + draw.randrange(30)))
            product.moves.append((number * 10 + step, when, change))
        return product


def on(*parts: int) -> datetime:
    """A moment of the clinic's clock."""
    return datetime(*parts)  # type: ignore[arg-type,misc]  # noqa: DTZ001


def utc(moment: datetime) -> datetime:
    """The moment of the clinic's clock in UTC, without a zone."""
    return moment.replace(tzinfo=ZONE).astimezone(UTC).replace(tzinfo=None)
