"""Rules written as a policy file come back as they were, also where no file could say them."""

from hashlib import sha256

import pytest
from hypothesis import given, settings

from gateway.contract.access import AccessLevel
from gateway.contract.resources import GOVERNED
from gateway.policy.masks import CITY, INITIAL, LAST, Mask
from gateway.policy.policy import (
    HIDDEN,
    WHOLE,
    ResourceRules,
    Rules,
    Version,
    both,
    narrowed,
    no_wider,
)
from gateway.policy.reading.document import parse_policy, read_version, write_rules
from gateway.policy.rows import ValueTest
from tests.policies import TEXT, moved, never, part
from tests.policy.rules import any_rules


def ignore(trouble: object) -> None:
    pass


def read_stored(content: bytes) -> Rules:
    return read_version(Version(hash=sha256(content).hexdigest(), content=content, file="p"))


def loaded(text: str) -> Rules:
    return parse_policy(text.encode(), "p", ignore).rules


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


MASKED = part(
    "clients",
    "BASIC: [id, firstName, email: domain]",
    "STANDARD: [lastName, phone: last(2), createdAt]",
    "FULL: [email, phone, updatedAt: year]",
    never("clients", "address", "updatedAt"),
)
RICH = changed(
    moved("stock.quantity", "BASIC", MASKED),
    ("[microchip, alerts]\n", "[microchip, alerts]\n  only: {status: [ACTIVE], species: DOG,"
     """ name: ['é\\ "x"', 'no', '12', "\\u0085"]}\n"""),
    ("FULL: [reason]\n", "FULL: [reason]\n  only:\n    BASIC: {status: {not: [CANCELLED]}}\n"
     "    STANDARD: {status: {not: [CANCELLED]}}\n    FULL: {status: {not: [CANCELLED]}}\n"),
    ("purchasePrice]\n", "purchasePrice]\n  only: {name: {not: [x]}, quantity: {min: 0.1, below: 9}"
     "}\n"),
)  # fmt: skip


def test_the_loader_reads_what_is_written_of_a_policy() -> None:
    rules = loaded(TEXT)
    assert loaded(write_rules(rules)) == rules


def test_the_loader_reads_what_is_written_of_masks_and_conditions() -> None:
    rules = loaded(RICH)
    assert rules["stock"].rows
    assert loaded(write_rules(rules)) == rules
    assert read_stored(write_rules(rules).encode()) == rules
    assert read_stored(RICH.encode()) == rules


def test_equal_rules_are_written_alike() -> None:
    rules = loaded(TEXT)
    again = {name: rules[name] for name in reversed(rules)}
    assert write_rules(again) == write_rules(rules)


@settings(max_examples=30)
@given(any_rules(), any_rules(), any_rules())
def test_whatever_rules_come_of_files_are_read_back_from_the_store(
    one: Rules, two: Rules, three: Rules
) -> None:
    rules = both(both(one, two), three)
    assert read_stored(write_rules(rules).encode()) == rules


@settings(max_examples=30)
@given(any_rules(), any_rules())
def test_what_runs_without_approval_shows_no_more_than_what_ran(one: Rules, two: Rules) -> None:
    found = narrowed(one, two)
    if found is None:
        assert no_wider(one, two)
    else:
        assert no_wider(found, one)
        assert no_wider(found, two)


def only_of(text: str) -> ResourceRules:
    stored = changed(TEXT, ("[microchip, alerts]\n", f"[microchip, alerts]\n  {text}\n"))
    return read_stored(stored.encode())["patients"]


@pytest.mark.parametrize(
    "text",
    [
        "only: nonsense",
        "only: {}",
        "only: {status: [DECEASED, NEVER]}",
        "only: {gone: [x]}",
        "only: {gone: []}",
        "only: {gone: [x], id: [00000000-0000-4000-8000-000000000001]}",
        "only: {name: []}",
        "only: {BASIC: {}}",
        "only: {BASIC: {gone: [x]}}",
    ],
)
def test_where_a_kept_condition_cannot_be_read_no_record_exists(text: str) -> None:
    [test] = only_of(text).rows_of(AccessLevel.BASIC).tests.values()
    assert test == ValueTest(allowed=frozenset())


def test_a_field_that_a_kept_policy_does_not_name_is_hidden() -> None:
    text = TEXT.replace("firstName, ", "gone, ").replace("stock:", "stok:")
    rules = read_stored(text.encode())
    assert rules["clients"].fields["firstName"] == (HIDDEN, HIDDEN, HIDDEN)
    assert rules["clients"].fields["lastName"] == (WHOLE, WHOLE, WHOLE)
    assert set(rules["stock"].fields.values()) == {(HIDDEN, HIDDEN, HIDDEN)}
    assert list(rules) == [each.name for each in GOVERNED]


def test_masks_that_no_file_can_have_are_kept() -> None:
    rules = dict(loaded(TEXT))
    fields = dict(rules["clients"].fields)
    fields["lastName"] = (Mask(LAST, 2), Mask(LAST, 4), WHOLE)
    fields["address"] = (Mask(CITY), HIDDEN, WHOLE)
    fields["firstName"] = (Mask(INITIAL), HIDDEN, HIDDEN)
    rules["clients"] = ResourceRules(fields, {})
    assert read_stored(write_rules(rules).encode()) == rules
