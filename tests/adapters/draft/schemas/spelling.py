"""Spells the values of the made-up practice as the families of schemas do."""

from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from typing import Any

from tests.adapters.draft.schemas.world import OTHERS, VETS, Appointment, on, utc

__all__ = ["on"]

Put = Callable[[str, Iterable[tuple[Any, ...]]], None]
DAY, STAMP, CLOCK = "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%H:%M:%S"
GERMAN, GERMAN_STAMP = "%d.%m.%Y", "%d.%m.%Y %H:%M"
PEOPLE = (*((*vet, True) for vet in VETS), *((*other, False) for other in OTHERS))
BREEDS = ("Beagle", "Birman", "Labrador", "Lop", "Persian", "Poodle", "Rex", "Siamese")
SPECIES = ("cat", "dog", "rabbit")
LATER = timedelta(minutes=2)


def stamp(moment: datetime) -> str:
    return moment.strftime(STAMP)


def in_utc(moment: datetime) -> str:
    return utc(moment).strftime(STAMP)


def yes(is_so: bool, letters: str = "YN") -> str:
    return letters[not is_so]


def day(value: date | None, form: str = DAY) -> str | None:
    return value and value.strftime(form)


def hours(*vets: int) -> list[tuple[Any, ...]]:
    pairs = ((vet, weekday) for vet in vets for weekday in range(1, 6))
    return [(n, vet, weekday, "08:30", "18:00") for n, (vet, weekday) in enumerate(pairs, 1)]


def finding(visit: Appointment) -> str:
    return f"{visit.reason or 'check'}: nothing unusual was found in number {visit.id}"
