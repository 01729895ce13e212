"""The words of the sample clinic as words.yaml has them: names, animals, acts, goods, sentences."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from adapters.documents.document import read_document


class AppointmentKind(NamedTuple):
    """A row of TYPES_RDV."""

    id_type: int
    libelle: str
    duree_min: int
    couleur: int
    actif: str


class Act(NamedTuple):
    """Something done and billed, in cents; `halves` says that half a unit of it can be billed."""

    label: str
    cents: int
    halves: bool = False


class CaseText(NamedTuple):
    """What a visit of one kind may leave on paper."""

    summary: str
    diagnosis: str
    advice: str


class Goods(NamedTuple):
    """One family of shelf labels: `label` takes each of `variants` in turn, at a growing price."""

    family: str
    unit: str
    cents: int
    label: str
    variants: tuple[str, ...]


# Stock in tenths, and the threshold in whole units where there is one.
Level = tuple[int, int | None]
# By weekday (1 is Monday) the spans of work, such as ("08:30", "12:00").
Week = dict[int, list[tuple[str, str]]]

_DATA: Mapping[str, Any] = read_document(Path(__file__).with_name("words.yaml")).data


def _rows(name: str) -> tuple[Any, ...]:
    return tuple(tuple(row) if isinstance(row, list) else row for row in _DATA[name])


def _by_kind(name: str) -> dict[int, list[Any]]:
    return {int(kind): rows for kind, rows in _DATA[name].items()}


def _week(days: Mapping[str, Sequence[str]]) -> Week:
    spans = {int(day): [span.split("-") for span in given] for day, given in days.items()}
    return {day: [(opens, closes) for opens, closes in given] for day, given in spans.items()}


FAMILY_NAMES: tuple[str, ...] = tuple(_DATA["family_names"].split())
FIRST_NAMES: tuple[str, ...] = tuple(_DATA["first_names"].split())
ANIMAL_NAMES: tuple[str, ...] = tuple(_DATA["animal_names"].split())
NOTABLE_CLIENTS: tuple[tuple[str, str, str], ...] = _rows("notable_clients")
CLIENT_COMPANIES: tuple[str, ...] = _rows("client_companies")
SUPPLIERS: tuple[str, ...] = _rows("suppliers")
STREETS: tuple[str, ...] = _rows("streets")
SECOND_LINES: tuple[str, ...] = _rows("second_lines")
TOWNS: tuple[tuple[str, str], ...] = _rows("towns")
LANDLINES = ("01 99 00", "02 61 91", "03 53 01", "04 65 71", "05 36 49")
MOBILE = "06 39 98"
MAIL_DOMAINS = ("example.fr", "example.com", "example.org")
DESKS = ("ACCUEIL", "ACCUEIL2", "ASV1", "ASV2")

SPECIES: tuple[tuple[str, str], ...] = _rows("species")
SPECIES_WEIGHTS = (50, 36, 5, 3, 3, 2, 1)
CARNIVORES = ("CN", "CT")
BREEDS: Mapping[str, Sequence[str]] = _DATA["breeds"]
WEIGHTS: Mapping[str, tuple[int, int]] = _DATA["weights"]
COATS: tuple[str, ...] = _rows("coats")
ALERTS: tuple[str, ...] = _rows("alerts")

KINDS = tuple(
    AppointmentKind(number, label, minutes, int(colour, 16), offered)
    for number, label, minutes, colour, offered in _DATA["kinds"]
)
CONSULTATION, VACCINATION, _, EMERGENCY, CHECK, SCALING, _, BEHAVIOUR, GROOMING = KINDS
FOR_CARNIVORES = (VACCINATION, SCALING, BEHAVIOUR, GROOMING)
ACTS = {kind: [Act(*row) for row in rows] for kind, rows in _by_kind("acts").items()}
COMPLEMENTS = [Act(*row) for row in _DATA["complements"]]
GOODS = [Goods(*row) for row in _DATA["goods"]]
RETIRED_GOODS = [Goods(*row) for row in _DATA["retired_goods"]]
LEVELS: Mapping[str, list[Level]] = {
    name: [(tenths, threshold) for tenths, threshold in rows]
    for name, rows in _DATA["levels"].items()
}

REASONS = _by_kind("reasons")
CASES = {kind: [CaseText(*row) for row in rows] for kind, rows in _by_kind("cases").items()}
INTERNAL_NOTES: tuple[str, ...] = _rows("internal_notes")
WEEKS = [_week(days) for days in _DATA["weeks"]]
FORMER_WEEK = _week(_DATA["former_week"])
AWAY: tuple[tuple[int, int, str | None], ...] = _rows("away")


def tax_rate(family: str) -> int:
    """The percentage of tax on goods of this family."""
    return 10 if family == "ALI" else 20
