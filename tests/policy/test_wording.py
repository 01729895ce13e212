"""What a policy decides, why, and what differs from another one, in plain words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.resources import CLIENT, CONSULTATION, GOVERNED, INVOICE, PATIENT
from gateway.policy.masks import Mask, read_mask
from gateway.policy.policy import HIDDEN, WHOLE, Rules, both, no_wider
from gateway.policy.reading.document import parse_policy, spots_of
from gateway.policy.rows import NOTHING, RowFilter, ValueTest
from gateway.policy.telling.wording import (
    Effect,
    Reason,
    changes,
    conditions,
    kind_of,
    masks_of,
    reasons,
    row_sentences,
)
from tests.policies import TEXT, moved, never, part
from tests.policy.decisions import rules as any_rules

BASIC, STANDARD, FULL = LEVELS


def parsed(text: str) -> Rules:
    return parse_policy(text.encode(), "policies.yaml", lambda trouble: None).rules


def rules_with(only: str) -> Rules:
    """Rules with conditions for patients, of which BASIC sees every field."""
    before, _, rest = TEXT.partition("patients:\n")
    after = rest[rest.index("consultations:\n") :]
    opened = f"BASIC: [{', '.join(PATIENT.paths)}], STANDARD: [], FULL: [], never: []"
    text = f"{before}patients: {{{opened}, only: {only}}}\n{after}"
    return parsed(text)


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
    assert [str(each) for each in (WHOLE, HIDDEN, mask)] == [
        "whole",
        "hidden",
        "last(2)",
    ]
    assert [kind_of(each) for each in (WHOLE, HIDDEN, mask)] == ["whole", "hidden", "masked"]
    assert mask.says.startswith("*** and the last 2 characters")


def test_each_mask_is_named_once_however_often_it_is_used() -> None:
    text = TEXT.replace(
        "firstName, lastName]", "firstName, lastName, {phone: last(2)}, {address: last(2)}]"
    ).replace("STANDARD: [breed,", "STANDARD: [{microchip: last(4)}, breed,")
    policy = parse_policy(text.encode(), "policies.yaml", lambda trouble: None)
    assert [str(each) for each in masks_of(policy.rules.values())] == ["last(2)", "last(4)"]


MASKED = moved("clients.address", "never").replace(
    "[id, firstName, lastName]", "[id, firstName, lastName, {phone: last(2)}]"
)
ROWS = "consultations:\n  only: {BASIC: {status: [VALIDATED]}}\n"
TEXTS = MASKED.replace("consultations:\n", ROWS)


def explained(level: AccessLevel, resource: object = CLIENT) -> dict[str, Reason]:
    rules = parsed(TEXTS)
    spots = spots_of(TEXTS.encode())
    [wanted] = [each for each in GOVERNED if each is resource]
    return {each.path: each for each in reasons(wanted, rules[wanted.name], level, spots)}


def at(word: str, line_with: str) -> tuple[int, int]:
    [line] = [each for each in TEXTS.splitlines() if line_with in each]
    return TEXTS.splitlines().index(line) + 1, line.index(word) + 1


def test_each_field_names_the_level_that_decides_and_its_place() -> None:
    basic = explained(BASIC)
    assert basic["firstName"] == Reason(
        path="firstName",
        sight="whole",
        why="BASIC opens it",
        spot=at("firstName", "[id, firstName"),
    )
    assert basic["phone"] == Reason(
        path="phone",
        sight="last(2)",
        why="BASIC masks it; whole from STANDARD on",
        spot=at("phone", "{phone: last(2)}"),
    )
    assert basic["email"] == Reason(
        path="email", sight="hidden", why="STANDARD opens it", spot=at("email", "[phone, email")
    )
    assert basic["address"] == Reason(
        path="address", sight="hidden", why="no level opens it", spot=at("address", "address]")
    )
    assert explained(STANDARD)["phone"].why == "STANDARD opens it"
    assert explained(STANDARD)["phone"].spot == at("phone", "[phone, email")
    assert list(basic) == ["", *CLIENT.paths]


def test_the_records_that_exist_are_explained_too() -> None:
    assert explained(BASIC, CONSULTATION)[""] == Reason(
        path="",
        sight="{status: [VALIDATED]}",
        why="only these records exist at BASIC",
        spot=at("BASIC", "only: {BASIC"),
    )
    assert explained(FULL, CONSULTATION)[""] == Reason(
        path="", sight="all", why="every record exists at FULL", spot=None
    )


def with_clients(*lines: str) -> Rules:
    """The policy with another part for clients."""
    return parsed(part("clients", *lines))


OLD = parsed(TEXT)


@pytest.mark.parametrize(
    ("lines", "effect", "levels", "sentence"),
    [
        (
            (
                "BASIC: [id, firstName, lastName, phone]",
                "STANDARD: [email, createdAt, updatedAt]",
                "FULL: [address]",
            ),
            Effect.GAIN,
            (BASIC,),
            "clients.phone becomes visible at BASIC",
        ),
        (
            (
                "BASIC: [id, firstName, lastName]",
                "STANDARD: [email, createdAt, updatedAt]",
                "FULL: [address]",
                never("clients", "phone"),
            ),
            Effect.LOSS,
            (STANDARD, FULL),
            "clients.phone is hidden at STANDARD and FULL",
        ),
        (
            (
                "BASIC: [id, firstName, lastName, {phone: last(2)}]",
                "STANDARD: [phone, email, createdAt, updatedAt]",
                "FULL: [address]",
            ),
            Effect.GAIN,
            (BASIC,),
            "clients.phone becomes visible as last(2) at BASIC",
        ),
        (
            (
                "BASIC: [id, firstName, lastName]",
                "STANDARD: [{phone: last(2)}, email, createdAt, updatedAt]",
                "FULL: [address, phone]",
            ),
            Effect.LOSS,
            (STANDARD,),
            "clients.phone is shown as last(2) at STANDARD (was whole)",
        ),
        (
            (
                "only: {lastName: {not: Martin}}",
                "BASIC: [id, firstName, lastName]",
                "STANDARD: [phone, email, createdAt, updatedAt]",
                "FULL: [address]",
            ),
            Effect.LOSS,
            (BASIC, STANDARD, FULL),
            'clients shows fewer records at BASIC, STANDARD and FULL: {lastName: {not: ["Martin"]}}'
            " (was all)",
        ),
    ],
)
def test_a_change_is_said_in_a_sentence(
    lines: tuple[str, ...], effect: Effect, levels: tuple[AccessLevel, ...], sentence: str
) -> None:
    [found] = changes(OLD, with_clients(*lines))
    assert (found.effect, found.levels, found.sentence) == (effect, levels, sentence)
    [back] = changes(with_clients(*lines), OLD)
    other = {Effect.GAIN: Effect.LOSS, Effect.LOSS: Effect.GAIN}[effect]
    assert (back.effect, back.before, back.after) == (other, found.after, found.before)


def test_another_order_and_other_words_are_no_change() -> None:
    again = with_clients(
        "# another comment",
        never("clients"),
        "FULL: [address]",
        "STANDARD: [updatedAt, createdAt, email, phone]",
        "BASIC:",
        "  - lastName",
        "  - firstName",
        "  - id",
    )
    assert changes(OLD, again) == []


def test_one_mask_for_another_shows_some_more_and_some_less() -> None:
    def masked(mask: str) -> Rules:
        return with_clients(
            f"BASIC: [id, firstName, lastName, {{phone: {mask}}}]",
            "STANDARD: [phone, email, createdAt, updatedAt]",
            "FULL: [address]",
        )

    [found] = changes(masked("last(2)"), masked("initial"))
    assert found.effect is Effect.OTHER
    assert found.widens
    assert found.sentence == "clients.phone is shown as initial at BASIC (was last(2))"
    for pair in (("last(2)", "last(4)"), ("last(4)", "last(2)")):  # which hides more short texts
        [other] = changes(*map(masked, pair))
        assert other.effect is Effect.OTHER


@pytest.mark.long
@given(any_rules(), any_rules())
def test_what_two_policies_both_show_is_no_wider_than_either(one: Rules, other: Rules) -> None:
    shared = both(one, other)
    assert no_wider(shared, one)
    assert no_wider(shared, other)
    for each in (one, other):
        assert all(change.effect is Effect.LOSS for change in changes(each, shared))


@pytest.mark.long
@given(any_rules(), any_rules())
def test_a_change_that_widens_nothing_is_no_wider_and_the_other_way_round(
    one: Rules, other: Rules
) -> None:
    widens = any(change.widens for change in changes(one, other))
    assert no_wider(other, one) is not widens
    assert (changes(one, other) == []) is (
        {each.name: same(one, each.name) for each in GOVERNED}
        == {each.name: same(other, each.name) for each in GOVERNED}
    )


def same(rules: Rules, name: str) -> object:
    """By what two policies are the same for a resource."""
    conditions = [rules[name].rows_of(level).tests for level in LEVELS]
    return dict(rules[name].fields), [dict(each) for each in conditions]


@given(st.data())
def test_a_policy_differs_from_itself_in_nothing(data: st.DataObject) -> None:
    rules = data.draw(any_rules())
    assert changes(rules, rules) == []
    assert no_wider(rules, rules)
