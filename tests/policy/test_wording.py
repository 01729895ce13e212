"""What a policy decides, in plain words."""

import pytest

from gateway.contract.access import AccessLevel
from gateway.contract.resources import INVOICE, PATIENT
from gateway.policy.masks import Mask, read_mask
from gateway.policy.reading.document import parse_policy
from gateway.policy.rows import NOTHING, RowFilter, ValueTest
from gateway.policy.rules import HIDDEN, WHOLE, Rules
from gateway.policy.telling.wording import (
    conditions,
    kind_of,
    mask_in_words,
    masks_of,
    row_sentences,
    sight_in_words,
)
from tests.policies import TEXT


def rules_with(only: str) -> Rules:
    """Rules with conditions for patients, of which BASIC sees every field."""
    before, _, rest = TEXT.partition("patients:\n")
    after = rest[rest.index("consultations:\n") :]
    opened = f"BASIC: [{', '.join(PATIENT.paths)}], STANDARD: [], FULL: [], never: []"
    text = f"{before}patients: {{{opened}, only: {only}}}\n{after}"
    return parse_policy(text.encode(), "policies.yaml", lambda trouble: None).rules


@pytest.mark.parametrize(
    ("only", "words"),
    [
        ("{status: ACTIVE}", "status is ACTIVE"),
        ("{status: {not: ACTIVE}}", "status is DECEASED or INACTIVE"),
        ("{species: {not: [Dog, Cat]}}", "species is not Cat or Dog"),
        ("{neutered: true}", "neutered is true"),
        ("{weightKg: {min: 1, max: 9.5}}", "weightKg is at least 1 and at most 9.5"),
        ("{weightKg: {above: 1, below: 9}}", "weightKg is more than 1 and less than 9"),
        ("{weightKg: {not: 5, min: 1}}", "weightKg is not 5 and at least 1"),
        ("{birthDate: {min: 2020-01-01}}", "birthDate is from 2020-01-01"),
        ("{birthDate: {max: 2020-01-01}}", "birthDate is up to 2020-01-01"),
        (
            "{createdAt: {above: 2020-01-01T00:00:00Z, below: 2021-01-01T00:00:00+01:00}}",
            "createdAt is after 2020-01-01T00:00:00Z and before 2020-12-31T23:00:00Z",
        ),
        ("{species: [Dog], sex: [MALE]}", "species is Dog, and sex is MALE"),
    ],
)
def test_conditions_are_said_in_words(only: str, words: str) -> None:
    rules = rules_with(only)["patients"]
    assert conditions(PATIENT, rules.rows_of(AccessLevel.FULL)) == words


def test_a_condition_that_nothing_meets_is_said_too() -> None:
    """As of what two policies both show: no file can ask for it."""
    rows = RowFilter({"status": NOTHING, "species": ValueTest(allowed=frozenset({"Dog"}))})
    assert conditions(PATIENT, rows) == "status is nothing at all, and species is Dog"


def test_each_level_is_told_where_any_has_conditions() -> None:
    rules = rules_with("{BASIC: {status: ACTIVE}}")
    assert row_sentences(PATIENT, rules["patients"]) == [
        ("BASIC", "only records whose status is ACTIVE"),
        ("STANDARD", "all records"),
        ("FULL", "all records"),
    ]
    assert row_sentences(INVOICE, rules["invoices"]) == []


def test_a_sight_is_whole_hidden_or_a_mask() -> None:
    mask = read_mask("last(2)")
    assert isinstance(mask, Mask)
    assert [sight_in_words(each) for each in (WHOLE, HIDDEN, mask)] == [
        "whole",
        "hidden",
        "last(2)",
    ]
    assert [kind_of(each) for each in (WHOLE, HIDDEN, mask)] == ["whole", "hidden", "masked"]
    assert mask_in_words(mask).startswith("*** and the last 2 characters")


def test_each_mask_is_named_once_however_often_it_is_used() -> None:
    text = TEXT.replace(
        "firstName, lastName]", "firstName, lastName, {phone: last(2)}, {address: last(2)}]"
    ).replace("STANDARD: [breed,", "STANDARD: [{microchip: last(4)}, breed,")
    policy = parse_policy(text.encode(), "policies.yaml", lambda trouble: None)
    assert [str(each) for each in masks_of(policy.rules.values())] == ["last(2)", "last(4)"]
