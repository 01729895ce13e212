"""A comparison of two policies says what changes for those who are answered, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.base import Trouble
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.resources import GOVERNED
from gateway.policy.reading.document import parse_policy
from gateway.policy.rules import Rules, both, no_wider
from gateway.policy.telling.wording import Effect, changes
from tests.policies import TEXT, never, part
from tests.policy.decisions import rules as any_rules

BASIC, STANDARD, FULL = LEVELS


def ignore(trouble: Trouble) -> None:
    pass


def parsed(text: str) -> Rules:
    return parse_policy(text.encode(), "policies.yaml", ignore).rules


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


@given(any_rules(), any_rules())
def test_what_two_policies_both_show_is_no_wider_than_either(one: Rules, other: Rules) -> None:
    shared = both(one, other)
    assert no_wider(shared, one)
    assert no_wider(shared, other)
    for each in (one, other):
        assert all(change.effect is Effect.LOSS for change in changes(each, shared))


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
