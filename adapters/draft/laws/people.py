"""Proves who the clients, the animals and the vets are."""

import re
from collections import Counter, defaultdict
from datetime import timedelta

from adapters.draft.laws.sample import FEWEST, Law, Sample, Samples, are, is_word

# The share of a staff that must have appointments.
AT_WORK = 0.8
_PHONE = re.compile(r"[+(0-9][\d\s()./+-]{5,24}").fullmatch
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+").fullmatch
_CHIP = re.compile(r"\d{15}").fullmatch
_DIGITS = re.compile(r"\d{3}").search


def _names(sample: Sample, samples: Samples) -> None:
    del samples
    if not sample.has("firstName", "lastName"):
        return
    firsts, lasts = sample.texts("firstName"), sample.texts("lastName")
    is_parts = sample.rows.fields["firstName"].parameters.get("part") == 2
    is_first = sample.is_named("firstName", 0.8) or sample.is_surname("lastName")
    is_named = is_parts or (sample.is_named("lastName", 0.8) and is_first)
    are_names = are(is_word, firsts) and are(is_word, lasts)
    if is_named and are_names and len({*firsts}) <= len({*lasts}):
        sample.prove("persons with a first and a last name", "firstName", "lastName")


def _contacts(sample: Sample, samples: Samples) -> None:
    del samples
    fields = sample.rows.fields
    if sample.has("email") and are(_EMAIL, sample.texts("email")) and not fields["email"].others:
        sample.prove("every value is an e-mail address", "email")
    if sample.has("phone") and are(_PHONE, sample.texts("phone")) and sample.is_named("phone"):
        sample.prove("every value is a telephone number", "phone")
    if not sample.has("address") or not isinstance(fields["address"].sql, tuple):
        return
    parts = zip(*(raw for raw in sample.raw["address"] if None not in raw), strict=True)
    if any(all(_DIGITS(str(value)) for value in part) for part in parts):
        sample.prove("a street, a postcode and a town", "address")


def _animal_names(sample: Sample, samples: Samples) -> None:
    del samples
    if sample.has("name") and sample.is_named("name") and are(is_word, sample.texts("name")):
        sample.prove("every value is a name", "name")


def _kinds(sample: Sample, samples: Samples) -> None:
    """Proves species and breed: each breed is nearly always of the same species."""
    del samples
    for name in ("species", "color"):
        is_kind = sample.has(name) and sample.is_named(name) and sample.is_few(name)
        if is_kind and are(is_word, sample.texts(name)):
            sample.prove("few kinds, each a word", name)
    if not sample.has("species", "breed"):
        return
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for breed, species in zip(sample.raw["breed"], sample.raw["species"], strict=True):
        if breed[0] and species[0]:
            kinds[breed[0]][species[0]] += 1
    alike = sum(counted.most_common(1)[0][1] for counted in kinds.values())
    whole = sum(counted.total() for counted in kinds.values())
    species_seen = {each for counted in kinds.values() for each in counted}
    is_tree = whole >= FEWEST and alike >= 0.95 * whole and len(kinds) > len(species_seen) > 1
    if is_tree and are(is_word, sample.texts("species")):
        sample.prove("each breed is of one species", "species", "breed")


def _sex(sample: Sample, samples: Samples) -> None:
    del samples
    if not sample.has("sex"):
        return
    codes = sample.rows.fields["sex"].parameters.get("codes", {})
    counted = Counter(codes.get(str(raw[0]).strip()) for raw in sample.raw["sex"])
    halves = [counted["MALE"], counted["FEMALE"]]
    if None not in codes.values() and min(halves) >= 0.25 * sum(halves) > 0:
        sample.prove("about as many males as females", "sex")


def _body(sample: Sample, samples: Samples) -> None:
    del samples
    if sample.has("birthDate") and sample.is_named("birthDate") and sample.is_past("birthDate"):
        old = sample.now - timedelta(days=365 * 60)
        if sample.holds(lambda born: born > old, sample.times("birthDate")):
            sample.prove("every day is in the past", "birthDate")
    if sample.has("weightKg") and sample.is_named("weightKg"):
        weights = sample.numbers("weightKg")
        if sample.holds(lambda kilos: 0 <= kilos < 1200, weights):
            sample.prove("every value is an animal's weight", "weightKg")
    if sample.has("microchip") and are(_CHIP, sample.texts("microchip")):
        sample.prove("every value is a number of 15 digits", "microchip")


def _death(sample: Sample, samples: Samples) -> None:
    del samples
    if not sample.has("status") or "CASE" not in str(sample.rows.fields["status"].sql):
        return
    meanings = sample.rows.fields["status"].parameters.get("codes", {}).values()
    dead = sum(text == "D" for text in sample.texts("status"))
    if {*meanings} <= {"ACTIVE", "DECEASED"} and 0 < dead <= 0.5 * sample.number:
        sample.prove("some are dead, and fewer than live", "status")


def _vets(sample: Sample, samples: Samples) -> None:
    del samples
    texts = sample.texts("name")
    if texts and sample.is_named("name", 0.8) and all(map(is_word, texts)):
        sample.prove("every value is a name", "name")


def clients_table(sample: Sample, samples: Samples) -> str:
    """Returns why the table is the clients'; nothing where that is not proven."""
    patients = samples.get("patients")
    is_referred = patients is not None and patients.is_proven("clientId")
    return "persons who own the animals" if sample.is_proven("lastName") and is_referred else ""


def patients_table(sample: Sample, samples: Samples) -> str:
    """Returns why the table is the animals'; nothing where that is not proven."""
    told = [name for name in ("species", "breed", "sex", "birthDate") if sample.is_proven(name)]
    visits = [samples[name] for name in ("appointments", "consultations") if name in samples]
    is_referred = any(each.is_proven("patientId") for each in visits)
    is_one = told and (sample.is_proven("clientId") or is_referred)
    return "animals with owners or appointments" if is_one else ""


def vets_table(sample: Sample, samples: Samples) -> str:
    """Returns why the table is the vets'; nothing where that is not proven."""
    del samples
    is_login = sample.rows.source.best("password", least=0.8) is not None
    is_one = sample.is_proven("name") and sample.rows.used >= AT_WORK and not is_login
    return "most of them have appointments" if is_one else ""


CLIENTS: tuple[Law, ...] = (_names, _contacts)
PATIENTS: tuple[Law, ...] = (_animal_names, _kinds, _sex, _body, _death)
VETS: tuple[Law, ...] = (_vets,)
