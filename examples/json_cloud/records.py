"""The records of the made-up cloud: seeded, around a given day, in the cloud's own odd shapes."""

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from random import Random
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

ZONE = ZoneInfo("Europe/Paris")
OWNERS, BILLS, STOCK = 230, 150, 45
FIRST = ("Anna", "Zoé", "Karim", "Jules", "Nadia", "Hélène", "Pavel", "Mia", "Tom", "Ines")
LAST = ("Arnaud", "Brun", "Çelik", "Dubois", "Étienne", "Faure", "Garnier", "Haddad", "Ivanov")
ANIMALS = ("Pixel", "Moka", "Olive", "Titus", "Nala", "Rusty", "Plume", "Gizmo", "Luna", "Basil")
SPECIES = {"dog": ("Beagle", "Collie"), "cat": ("Siamois", "Européen"), "rabbit": ("Nain",)}
WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

Rows = dict[Any, dict[str, Any]]


@dataclass
class Records:
    """All that the cloud keeps, by its own ids."""

    owners: Rows = field(default_factory=dict)
    animals: Rows = field(default_factory=dict)
    vets: Rows = field(default_factory=dict)
    kinds: Rows = field(default_factory=dict)
    visits: Rows = field(default_factory=dict)
    reports: Rows = field(default_factory=dict)
    bills: Rows = field(default_factory=dict)
    stock: Rows = field(default_factory=dict)
    absences: list[dict[str, Any]] = field(default_factory=list)


def naive(moment: datetime) -> str:
    """A time as the cloud writes it: without a zone."""
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def money(amount: float) -> str:
    """An amount as the cloud writes it."""
    return f"{amount:.10f}"


def made(today: date, seed: int = 7) -> Records:
    """A clinic around that day; the same day and seed make the same clinic."""
    random, records = Random(seed), Records()
    for make in (_vets, _kinds, _owners, _animals, _visits, _bills, _stock):
        make(records, random, today)
    return records


def _vets(records: Records, random: Random, today: date) -> None:
    for number, name in enumerate(("Dr Lemaire", "Dr Okafor", "Dr Sato", "Dr Weiss", "Dr Zola")):
        key = str(UUID(int=random.getrandbits(128), version=4)).upper()
        week = [
            {"day": WEEK[day], "open": begin, "close": end}
            for day in range(5)
            for begin, end in (("08:30", "12:00"), ("14:00", "18:30"))
        ]
        if number == 4:  # the night shift
            week = [{"day": "fri", "open": "20:00", "close": "02:00"}]
        records.vets[key] = {"uuid": key, "label": name, "retired": number == 3, "week": week}
    away = list(records.vets)[1]
    begin = datetime.combine(today + timedelta(days=3), time(), ZONE)
    records.absences.append(
        {"vet": away, "from": begin.isoformat(), "to": (begin + timedelta(days=5)).isoformat()}
    )


def _kinds(records: Records, random: Random, today: date) -> None:
    kinds = (("Consultation", 30, 0x4C9AFF), ("Vaccin", 15, 0x36B37E), ("Chirurgie", 90, 0xFF5630))
    for number, (label, length, colour) in enumerate(kinds, 1):
        records.kinds[number] = {
            "id": number, "label": label, "length_min": length, "colour": colour
        }  # fmt: skip


def _owners(records: Records, random: Random, today: date) -> None:
    for number in range(1, OWNERS + 1):
        created = datetime.combine(today, time(9), ZONE) - timedelta(days=random.randrange(2000))
        changed = created + timedelta(days=3) if random.random() < 0.5 else None
        records.owners[number] = {
            "name": {"first": random.choice(FIRST), "last": f" {random.choice(LAST)}"},
            "phones": [
                {"kind": "fax", "number": f"+33 1 90 00 {number:04d}"},
                {"kind": "mobile", "number": f"+33 6 00 00 {number:04d}"},
            ],
            "mail": f"owner{number}@example.org",
            "address": {"street": f"{number} rue des Lilas", "zip": "75011", "city": "Paris"},
            "passport": f"P{random.randrange(10**8):08d}",
            "archived": number % 50 == 0,
            "created": naive(created),
            "changed": naive(changed or created),
        }


def _animals(records: Records, random: Random, today: date) -> None:
    for number in range(1, OWNERS + 71):
        species = random.choice(list(SPECIES))
        born = today - timedelta(days=random.randrange(100, 5000))
        created = datetime.combine(today - timedelta(days=random.randrange(900)), time(10))
        records.animals[number] = {
            "id": number,
            "owner": (number - 1) % OWNERS + 1,
            "name": random.choice(ANIMALS),
            "species": species,
            "race": random.choice(SPECIES[species]),
            "state": random.choice(("in", "in", "in", "gone", "dead")) if number > 40 else "in",
            "sex": random.choice("MF?"),
            "fixed": random.choice((True, False, None)),
            "born": f"{born} 00:00:00",
            "kg": f"{random.uniform(1, 40):.3f}",
            "tags": random.choice(([], ["mord"], ["mord", "allergie pénicilline"])),
            "chip": f"2502{random.randrange(10**11):011d}",
            "created": naive(created),
            "changed": "0000-00-00 00:00:00" if number % 3 else naive(created),
        }


def _visits(records: Records, random: Random, today: date) -> None:
    vets = list(records.vets)
    for number in range(1, 61):
        day = today + timedelta(days=random.randrange(-20, 12))
        day += timedelta(days=2 if day.weekday() > 4 else 0)  # nobody works at the weekend
        start = datetime.combine(day, time(9 + number % 3, 0))
        records.visits[number] = {
            "id": number,
            "animal": 1 + number,
            "vet": vets[number % 3],
            "kind": 1,
            "starts_at": naive(start),
            "ends_at": naive(start + timedelta(minutes=30)),
            "state": random.choice(("booked", "booked", "done", "cancelled")),
            "urgent": 0,
            "note": "Contrôle",
            "entered": naive(start - timedelta(days=30)),
            "ext_ref": None,
        }
        weight = random.choice((1, 2, 3))
        if day >= today:  # nothing is reported of a visit to come
            continue
        records.reports[number] = {
            "id": number,
            "visit": {"id": number, "vet": vets[number % 3], "animal": {"id": 1 + number}},
            "weight": weight,
            "signed": naive(start) if number % 2 else None,
            "begun": naive(start),
            "texts": {"summary": "Bonne forme", "diagnosis": None, "advice": "Repos"},
        }


def _bills(records: Records, random: Random, today: date) -> None:
    for number in range(1, BILLS + 1):
        net = random.randrange(1000, 20000) / 100
        tax = round(net * 0.2, 2)
        paid = net + tax if number % 3 else 0.0
        issued = datetime.combine(today - timedelta(days=number), time(11))
        records.bills[number] = {
            "id": number,
            "ref": f"F-{number:05d}",
            "owner": number % 40 + 1,
            "state": "paid" if paid else "open",
            "issued": naive(issued),
            "due": str((issued + timedelta(days=30)).date()),
            "net": money(net),
            "tax": money(tax),
            "gross": money(net + tax),
            "paid": money(paid),
            "open": money(net + tax - paid),
            "rows": [
                {
                    "no": number * 10, "text": "Acte", "animal": {"id": 1 + number},
                    "each": money(net), "count": "1.000", "vat": "20.0000", "net": money(net),
                }
            ],
            "payments": [{"at": naive(issued), "sum": money(paid), "by": "card"}] if paid else [],
        }  # fmt: skip


def _stock(records: Records, random: Random, today: date) -> None:
    for number in range(1, STOCK + 1):
        records.stock[number] = {
            "id": number,
            "label": f"{random.choice(('Amoxicilline', 'Croquettes', 'Gants', 'Vaccin'))} {number}",
            "family": random.choice(("med", "food", "gear")),
            "code": f"A{number:04d}",
            "unit": "pc",
            "on_hand": f"{random.randrange(0, 40)}.000",
            "minimum": "10.000",
            "best_before": str(today + timedelta(days=random.randrange(500))),
            "price": {"sale": money(random.randrange(100, 9000) / 100), "buy": money(1.5)},
            "shelf": f"R{number % 7}",
            "touched": naive(datetime.combine(today, time(7))),
        }
