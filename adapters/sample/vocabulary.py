"""Reads the words of the sample clinic from words.yaml: names, animals, acts, goods, sentences."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from msgspec import convert

from adapters.documents.document import read_document
from adapters.sample.rows import Row, row_of

# Stock in tenths, and the threshold in whole units where there is one.
Level = tuple[int, int | None]
# By weekday (1 is Monday) the spans of work, such as "08:30-12:00".
Week = dict[int, list[str]]
Texts = tuple[str, ...]
T = TypeVar("T")
_DATA: Mapping[str, Any] = read_document(Path(__file__).with_name("words.yaml")).data


class Ware(NamedTuple):
    """A service or an article; `rate` is the tax in percent, `halves` allows half units of it."""

    label: str
    cents: int
    halves: bool = False
    rate: int = 20


class CaseText(NamedTuple):
    """The texts that a vet writes about a case."""

    summary: str
    diagnosis: str
    advice: str


class Goods(NamedTuple):
    """A family of articles: `label` takes each of `variants` in turn."""

    family: str
    unit: str
    cents: int
    label: str
    variants: tuple[str, ...]

    def wares(self) -> Iterator[Ware]:
        """Yields a ware for each variant; later ones cost more, in steps of ten cents."""
        for number, variant in enumerate(self.variants):
            cents = (self.cents * (10 + 6 * number) // 100) * 10
            yield Ware(self.label.format(variant), cents, rate=10 if self.family == "ALI" else 20)


def _read(name: str, kind: type[T]) -> T:
    """Returns a part of the file as that kind, whose keys may be numbers."""
    return convert(_DATA[name], kind, strict=False)


FAMILY_NAMES: Texts = tuple(_DATA["family_names"].split())
FIRST_NAMES: Texts = tuple(_DATA["first_names"].split())
ANIMAL_NAMES: Texts = tuple(_DATA["animal_names"].split())
NOTABLE_CLIENTS = _read("notable_clients", tuple[tuple[str, str, str], ...])
CLIENT_COMPANIES = _read("client_companies", Texts)
SUPPLIERS = _read("suppliers", Texts)
STREETS = _read("streets", Texts)
SECOND_LINES = _read("second_lines", Texts)
TOWNS = _read("towns", tuple[tuple[str, str], ...])
LANDLINES = ("01 99 00", "02 61 91", "03 53 01", "04 65 71", "05 36 49")
MOBILE = "06 39 98"
MAIL_DOMAINS = ("example.fr", "example.com", "example.org")
DESKS = ("ACCUEIL", "ACCUEIL2", "ASV1", "ASV2")

SPECIES = _read("species", tuple[tuple[str, str], ...])
SPECIES_WEIGHTS = (50, 36, 5, 3, 3, 2, 1)
CARNIVORES = ("CN", "CT")
BREEDS = _read("breeds", dict[str, list[str]])
WEIGHTS = _read("weights", dict[str, tuple[int, int]])
COATS = _read("coats", Texts)
ALERTS = _read("alerts", Texts)

AppointmentKind = row_of("TYPES_RDV")
KINDS: tuple[Row, ...] = tuple(
    AppointmentKind(number, label, minutes, int(colour, 16), offered)
    for number, label, minutes, colour, offered in _DATA["kinds"]
)
CONSULTATION, VACCINATION, _, EMERGENCY, CHECK, SCALING, _, BEHAVIOUR, GROOMING = KINDS
FOR_CARNIVORES = (VACCINATION, SCALING, BEHAVIOUR, GROOMING)
ACTS = _read("acts", dict[int, list[Ware]])
COMPLEMENTS = _read("complements", list[Ware])
GOODS = _read("goods", list[Goods])
RETIRED_GOODS = _read("retired_goods", list[Goods])
LEVELS = _read("levels", dict[str, list[Level]])

REASONS = _read("reasons", dict[int, list[str]])
CASES = _read("cases", dict[int, list[CaseText]])
INTERNAL_NOTES = _read("internal_notes", Texts)
WEEKS = _read("weeks", list[Week])
FORMER_WEEK = _read("former_week", Week)
AWAY = _read("away", tuple[tuple[int, int, str | None], ...])
