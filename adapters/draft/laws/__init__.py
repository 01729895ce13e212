"""Proves guesses by laws that the values of a practice obey; what no law proves is never sure."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from adapters.base import FieldShape, inside
from adapters.draft.clocks import said_of
from adapters.draft.laws import goods, people, visits
from adapters.draft.laws.sample import EXACT, Law, Sample, Samples
from adapters.draft.tables import Rows
from adapters.draft.vocabulary import CODES, likeness, tokens

# Texts that the practice must decide about, whatever their column is called: are they for owners?
CLINICAL = {"reason", "alerts", "ownerSummary", "ownerDiagnosis", "ownerInstructions"}


def prove(chosen: Mapping[str, Rows], now: datetime) -> None:
    """Notes for each guess by which law the data prove it.

    Fields of a table that is not proven to be the resource's are none.
    """
    samples = {resource: Sample(rows, now) for resource, rows in chosen.items()}
    for resource, sample in samples.items():
        _alike(sample)
        for law in LAWS[resource]:
            law(sample, samples)
    for resource, sample in samples.items():
        sample.rows.proof = TABLES[resource](sample, samples)
        for each in (sample.rows, *sample.rows.lists.values()):
            if not sample.rows.proof or not each.proof:
                each.fields = {n: replace(guess, proof="") for n, guess in each.fields.items()}


def _alike(sample: Sample) -> None:
    """Proves what is alike in all resources: codes, flags, the first and the last change."""
    for name, shape in inside(sample.rows.shapes).items():
        if sample.has(name) and name not in CLINICAL and not shape.refers:
            _value(sample, name, shape)
    if sample.is_dated("createdAt", "updatedAt"):
        times = sample.times("createdAt"), sample.times("updatedAt")
        named = sample.is_named("createdAt") and sample.is_named("updatedAt")
        if named and sample.holds(lambda first, last: first <= last, *times):
            law = f"created before updated, {said_of(sample.rows, 'createdAt')}"
            sample.prove(law, "createdAt", "updatedAt")
    for name in ("createdAt", "updatedAt"):
        if sample.is_dated(name) and sample.is_named(name) and sample.is_past(name):
            sample.prove(f"none is later than now, {said_of(sample.rows, name)}", name)


def _value(sample: Sample, name: str, shape: FieldShape) -> None:
    guess = sample.rows.fields[name]
    if shape.values and _are_own_words(sample, name):
        sample.prove("each code is the word for its value", name)
    is_flag = shape.format == "boolean" and sample.is_named(name) and "CASE" not in str(guess.sql)
    if is_flag and len({*sample.texts(name)}) <= 2:
        sample.prove("it is yes or no", name)


def _are_own_words(sample: Sample, name: str) -> bool:
    """Returns whether each code spells its value out, in a language of the vocabulary."""
    guess, place = sample.rows.fields[name], f"{sample.rows.place}.{name}"
    codes: Mapping[str, str | None] = guess.parameters.get("codes", {})
    meanings = CODES.get(place, {})
    return bool(codes) and all(
        value is not None
        and (len(code) >= 4 or code.upper() == value)
        and likeness(tokens(code), meanings.get(value, ())) >= EXACT
        for code, value in codes.items()
        if code
    )


LAWS: Mapping[str, tuple[Law, ...]] = {
    "appointments": visits.APPOINTMENTS,
    "clients": people.CLIENTS,
    "patients": people.PATIENTS,
    "consultations": visits.CONSULTATIONS,
    "invoices": goods.INVOICES,
    "stock": goods.STOCK,
    "appointmentTypes": visits.TYPES,
    "vets": people.VETS,
}
TABLES: Mapping[str, Callable[[Sample, Samples], str]] = {
    "appointments": visits.appointments_table,
    "clients": people.clients_table,
    "patients": people.patients_table,
    "consultations": visits.consultations_table,
    "invoices": goods.invoices_table,
    "stock": goods.stock_table,
    "appointmentTypes": visits.types_table,
    "vets": people.vets_table,
}
