"""What the example's clinic keeps: FHIR resources, made from a seed around a day, and filled in."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from random import Random
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen
from uuid import UUID
from zoneinfo import ZoneInfo

from examples.fhir_clinic.server import CLIENT, SECRET

ZONE = ZoneInfo("Europe/Paris")
OWNERS, DAYS, SLOT = 45, 4, timedelta(minutes=20)
FIRST = ("Anna", "Karim", "Jules", "Nadia", "Pavel", "Mia", "Tom", "Ines")
LAST = ("Arnaud", "Brun", "Dubois", "Faure", "Garnier", "Haddad", "Ivanov")
ANIMALS = ("Pixel", "Moka", "Olive", "Titus", "Nala", "Rusty", "Plume", "Gizmo")
KINDS = {"check-up": ("Consultation", 20), "surgery": ("Chirurgie", 60)}
CODES, REFERENCE = "http://clinic.example.org/kinds", "urn:gateway"
Resource = dict[str, Any]


@dataclass(frozen=True)
class Desk:
    """Asks the server as the clinic's own desk does, with a token of its own."""

    address: str
    token: str

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Returns the JSON of the answer. Raises HTTPError for a refusal."""
        data = None if body is None else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/fhir+json"}
        url = f"{self.address}/fhir/R4/{path}"
        request = Request(url, data, sent | headers, method=method)  # noqa: S310 - made here
        with urlopen(request) as answer:  # noqa: S310 - as above
            return json.load(answer)

    def fill(self, resources: Iterator[Resource]) -> None:
        for resource in resources:
            self.ask("PUT", f"{resource['resourceType']}/{resource['id']}", resource)


def connected(address: str) -> Desk:
    """Returns the desk, logged in."""
    form = {"grant_type": "client_credentials", "client_id": CLIENT, "client_secret": SECRET}
    url = f"{address}/oauth2/token"
    with urlopen(url, urlencode(form).encode()) as answer:  # noqa: S310 - made here
        return Desk(address, json.load(answer)["access_token"])


def made(today: date, seed: int = 7) -> Iterator[Resource]:
    """Yields a clinic around that day; the same day and seed make the same clinic."""
    random = Random(seed)

    def key() -> str:
        return str(UUID(int=random.getrandbits(128), version=4))

    for code, (name, minutes) in KINDS.items():
        yield {
            "resourceType": "HealthcareService", "id": code, "name": name,
            "type": [{"coding": [{"system": CODES, "code": code}]}],
            "extension": [{"url": f"{CODES}/minutes", "valueInteger": minutes}],
        }  # fmt: skip
    vets = [key() for _ in range(2)]
    for vet, name in zip(vets, ("Lemaire", "Okafor"), strict=True):
        yield {
            "resourceType": "Practitioner", "id": vet, "active": True,
            "name": [{"prefix": ["Dr"], "family": name}],
        }  # fmt: skip
        yield from _calendar(key(), vet, key, today)
    for number in range(OWNERS):
        yield from _owner(number, key, random, today)


def _calendar(schedule: str, vet: str, key: Any, today: date) -> Iterator[Resource]:
    yield {
        "resourceType": "Schedule", "id": schedule, "active": True,
        "actor": [{"reference": f"Practitioner/{vet}"}],
    }  # fmt: skip
    for day in range(1, DAYS + 1):
        begin = datetime.combine(today + timedelta(days=day), time(9), ZONE)
        for number in range(12 * 2):  # 09:00 to 17:00
            start = begin + number * SLOT
            yield {
                "resourceType": "Slot", "id": key(), "status": "free",
                "schedule": {"reference": f"Schedule/{schedule}"},
                "start": written(start), "end": written(start + SLOT),
            }  # fmt: skip


def _owner(number: int, key: Any, random: Random, today: date) -> Iterator[Resource]:
    owner, animals = key(), [key() for _ in range(1 + number % 2)]
    name = {"given": [FIRST[number % 8]], "family": LAST[number % 7]}
    yield {
        "resourceType": "RelatedPerson", "id": owner, "active": number % 20 != 19, "name": [name],
        "patient": {"reference": f"Patient/{animals[0]}"},
        "telecom": [
            {"system": "phone", "value": f"+33 6 00 00 {number:04d}"},
            {"system": "email", "value": f"owner{number}@example.org"},
        ],
        "address": [{"line": [f"{number} rue des Lilas"], "postalCode": "75011", "city": "Paris"}],
    }  # fmt: skip
    for animal in animals:
        yield {
            "resourceType": "Patient", "id": animal, "active": True,
            "name": [{"text": random.choice(ANIMALS)}],
            "gender": random.choice(("male", "female")),
            "birthDate": str(today - timedelta(days=random.randrange(100, 4000))),
            "link": [{"type": "seealso", "other": {"reference": f"RelatedPerson/{owner}"}}],
            "extension": [
                {"url": f"{CODES}/species", "valueString": random.choice(("Chien", "Chat"))}
            ],
        }  # fmt: skip
    net = random.randrange(20, 200)
    yield {
        "resourceType": "Invoice", "id": key(), "status": "issued",
        "identifier": [{"value": f"F-{number:04d}"}],
        "recipient": {"reference": f"RelatedPerson/{owner}"},
        "subject": {"reference": f"Patient/{animals[0]}"},
        "date": written(datetime.combine(today, time(11), ZONE)),
        "totalNet": {"value": net, "currency": "EUR"},
        "totalGross": {"value": round(net * 1.2, 2), "currency": "EUR"},
        "lineItem": [
            {
                "sequence": 1, "chargeItemCodeableConcept": {"text": "Acte"},
                "priceComponent": [
                    {"type": "base", "amount": {"value": net, "currency": "EUR"}},
                    {"type": "tax", "factor": 0.2},
                ],
            }
        ],
    }  # fmt: skip


def written(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
