"""A mask keeps a value's type and format, shows the same value always alike, and is one-way."""

import json
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from openapi_schema_validator import OAS31Validator

from adapters.base import Formed, FormedRecord, Trouble
from gateway.contract.fields import Field, Resource, opened
from gateway.contract.resources import CLIENT, GOVERNED, INVOICE, PATIENT, STOCK_ITEM
from gateway.policy.masks import (
    CITY,
    DOMAIN,
    INITIAL,
    KINDS,
    LAST,
    ROUNDED,
    STARS,
    Mask,
    fitting,
    read_mask,
)
from gateway.policy.redactor import Redactor
from gateway.policy.rows import RowFilter, ValueTest
from gateway.policy.values import value_type
from tests.policy.records import JUNK, good, records

FIELDS = [(resource, path) for resource in GOVERNED for path in resource.paths]
MASKABLE = [(resource, path) for resource, path in FIELDS if fitting(resource.at(path))]


def ignore(trouble: Trouble) -> None:
    pass


def masks_of(field: Field) -> st.SearchStrategy[Mask]:
    return st.sampled_from(fitting(field)).flatmap(
        lambda kind: st.builds(
            Mask, st.just(kind), st.integers(1, kind.largest) if kind.largest else st.just(0)
        )
    )


@st.composite
def masked_values(draw: st.DrawFn) -> tuple[Field, Mask, Any]:
    """A field, a mask of its own, and a value as the redactor masks it."""
    resource, path = draw(st.sampled_from(MASKABLE))
    field = resource.at(path)
    value = msgspec.convert(draw(good(field)), value_type(field))
    return field, draw(masks_of(field)), value


@given(masked_values())
def test_a_masked_value_is_valid_under_the_schema_that_partners_are_told(
    made: tuple[Field, Mask, Any],
) -> None:
    field, mask, value = made
    shown = json.loads(msgspec.json.encode(mask(value)))
    schema = field.answer_schema() | mask.schema(field)
    for each in (field.answer_schema(), schema):
        OAS31Validator(each, format_checker=OAS31Validator.FORMAT_CHECKER).validate(shown)
    assert schema["x-mask"] == str(mask)


@given(masked_values())
def test_a_mask_is_stable_and_what_is_masked_stays_masked(made: tuple[Field, Mask, Any]) -> None:
    _, mask, value = made
    assert mask(value) == mask(value)
    once = mask(value)
    if once is not None and mask.kind not in (CITY, LAST):
        assert mask(once) == once


@given(masked_values())
def test_no_mask_can_be_undone(made: tuple[Field, Mask, Any]) -> None:
    """For each value there is another one that is shown alike."""
    _, mask, value = made
    shown = mask(value)
    others = {
        LAST.name: lambda: f"0000000000{value}",
        DOMAIN.name: lambda: f"x{value}",
        INITIAL.name: lambda: f"{value}-",
        "year": lambda: value.replace(month=1 + value.month % 12, day=1),
        CITY.name: lambda: f"1 other street, {value}",
    }
    if mask.kind is ROUNDED:
        other = near(value, mask.argument)
        assume(other is not None)
    elif shown in (STARS, None):  # short texts look alike, and so do those without a town
        other = "x" if value != "x" else "y"
    else:
        other = others[mask.kind.name]()
    assert other != value
    assert mask(other) == shown


TEXTS = st.text(st.sampled_from("ab 1"), max_size=12)
AMOUNTS = st.integers(-20_000, 20_000).map(lambda it: f"{'-' * (it < 0)}{abs(it):03d}").map(
    lambda it: f"{it[:-2]}.{it[-2:]}"
)  # fmt: skip


NARROWER = [
    (one, other, values)
    for kind, values, most in ((LAST, TEXTS, 8), (ROUNDED, AMOUNTS, 12))
    for one in (Mask(kind, number) for number in range(1, most + 1))
    for other in (Mask(kind, number) for number in range(1, most + 1))
    if one.shows_no_more_than(other)
]


@given(st.sampled_from(NARROWER), st.data())
def test_a_mask_that_shows_no_more_than_another_can_be_told_from_it(
    made: tuple[Mask, Mask, st.SearchStrategy[str]], data: st.DataObject
) -> None:
    one, other, values = made
    told: dict[Any, Any] = {}
    for value in data.draw(st.lists(values, min_size=20)):
        assert told.setdefault(other(value), one(value)) == one(value)


@pytest.mark.parametrize(
    ("one", "other", "holds"),
    [
        ("last(2)", "last(4)", False),  # of 12345 the first shows 45, and the second nothing
        ("last(4)", "last(2)", False),
        ("last(4)", "last(4)", True),
        ("rounded(20)", "rounded(10)", False),  # of 9.00 and 11.00, which are both 10.00
        ("rounded(30)", "rounded(10)", False),  # of 15.00 and 16.00, which are both 20.00
        ("rounded(50)", "rounded(10)", True),
        ("rounded(10)", "rounded(50)", False),
    ],
)
def test_one_mask_shows_no_more_than_another(one: str, other: str, holds: bool) -> None:
    masks = read_mask(one), read_mask(other)
    assert isinstance(masks[0], Mask)
    assert isinstance(masks[1], Mask)
    assert masks[0].shows_no_more_than(masks[1]) is holds


def near(value: Any, step: int) -> Any:
    """Another value that rounds to the same, where there is one of its kind."""
    if isinstance(value, str):
        cents = int(value.replace(".", ""))
        candidates = (f"{c // 100}.{c % 100:02d}" for c in (abs(cents) + 1, abs(cents) - 1))
        if cents < 0:
            candidates = (f"-{each}" for each in candidates)
    else:
        candidates = iter((value + 0.25, value - 0.25) if abs(value) < 2**40 else ())
    mask = Mask(ROUNDED, step)
    return next((each for each in candidates if each != value and mask(each) == mask(value)), None)


@pytest.mark.parametrize(
    ("mask", "value", "shown"),
    [
        ("last(2)", "06 12 34 56 78", "***78"),
        ("last(2)", " 06 12 34 56 78 ", "***78"),
        ("last(4)", "250269604123456", "***3456"),
        ("last(4)", "1234567", "***"),
        ("last(2)", "", "***"),
        ("domain", "anna.martin@example.org", "***@example.org"),
        ("initial", "Élodie", "É."),
        ("initial", "'t Hooft", "t."),
        ("initial", " - ", "*."),
        ("city", "12 rue des Lilas, 75011 Paris", "Paris"),
        ("city", "12 rue des Lilas\n13000 Saint-Rémy\nFrance", "Saint-Rémy"),
        ("city", "Keizersgracht 1, 1012 AB Amsterdam", "Amsterdam"),
        ("city", "10 Downing Street, London SW1A 2AA", "London"),
        ("city", "12 Main St, Springfield, IL 62701", "Springfield"),
        ("city", "1234 Main Street", None),
        ("city", "Building A, 1234 Oak Lane", None),
        ("city", "75011 Paris", None),
        ("city", "Ferme du Bois", None),
        ("rounded(10)", "47.35", "50.00"),
        ("rounded(10)", "-0.04", "0.00"),
        ("rounded(10)", "5.00", "0.00"),
        ("rounded(10)", "15.00", "20.00"),
        ("rounded(1)", 4.37, 4),
        ("rounded(5)", 12, 10),
    ],
)
def test_masks_show(mask: str, value: Any, shown: Any) -> None:
    made = read_mask(mask)
    assert isinstance(made, Mask)
    assert made(value) == shown
    assert str(made) == mask


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("lats(2)", None),
        ("", None),
        ("last(2) or so", None),
        (2, None),
        (None, None),
        ("last", "last takes a number from 1 to 8, such as last(2)"),
        ("last(0)", "last takes a number from 1 to 8, such as last(2)"),
        ("last(9)", "last takes a number from 1 to 8, such as last(2)"),
        ("rounded(0)", "rounded takes a number from 1 to 1000000, such as rounded(10)"),
        ("domain(2)", "domain takes no number: write domain"),
    ],
)
def test_what_is_no_mask_is_told_from_what_lacks_a_number(written: Any, said: str | None) -> None:
    assert read_mask(written) == said


def test_each_mask_fits_the_fields_of_its_formats_and_no_codes_lists_or_ids() -> None:
    def kinds(resource: Resource, path: str) -> list[str]:
        return [kind.name for kind in fitting(resource.at(path))]

    assert kinds(CLIENT, "phone") == ["last", "initial", "city"]
    assert kinds(CLIENT, "email") == ["domain"]
    assert kinds(CLIENT, "createdAt") == kinds(PATIENT, "birthDate") == ["year"]
    assert kinds(INVOICE, "payments[].amount") == kinds(STOCK_ITEM, "quantity") == ["rounded"]
    for resource, path in (
        (CLIENT, "id"),
        (PATIENT, "status"),
        (PATIENT, "alerts"),
        (PATIENT, "neutered"),
    ):
        assert kinds(resource, path) == []
    assert {kind.name for _, path in FIELDS for kind in fitting(_.at(path))} == set(KINDS)


@st.composite
def views(draw: st.DrawFn) -> tuple[Resource, frozenset[str], dict[str, Mask]]:
    """A resource with some fields whole, and some others under masks."""
    resource = draw(st.sampled_from(GOVERNED))
    visible = frozenset(draw(st.sets(st.sampled_from(resource.paths))))
    masks = {
        path: draw(masks_of(resource.at(path)))
        for path in resource.paths
        if path not in visible and fitting(resource.at(path)) and draw(st.booleans())
    }
    return resource, visible, masks


def masked(record: Any, fields: tuple[Field, ...], masks: dict[str, Mask], prefix: str = "") -> Any:
    """The plain and slow way to say what a view shows of a record without broken values."""
    shown: dict[str, Any] = {}
    for field in fields:
        path, value = prefix + field.name, record.get(field.name)
        if value is not None and field.fields:
            value = [masked(item, field.fields, masks, f"{path}[].") for item in value]
        elif value is not None and path in masks:
            typed = msgspec.convert(value, value_type(field))
            value = json.loads(msgspec.json.encode(masks[path](typed)))
        shown[field.name] = value
    return shown


@given(views(), st.data())
def test_an_answer_holds_masked_values_where_the_level_sees_masked_fields(
    view: tuple[Resource, frozenset[str], dict[str, Mask]], data: st.DataObject
) -> None:
    resource, visible, masks = view
    found = data.draw(st.lists(records(resource.fields), max_size=3))
    redactor = Redactor(resource, visible, ignore, masks=masks)
    wanted = [masked(each, redactor.fields, masks) for each in found]
    assert [json.loads(redactor.one(each)) for each in found] == wanted
    body, left_out = redactor.many(found)
    assert (json.loads(body), left_out) == (wanted, 0)
    assert redactor.visible == visible


def in_form(record: Any, fields: tuple[Field, ...]) -> Any:
    """The record with just these members, all of them, in the order of the contract."""
    made: dict[str, Any] = {}
    for field in fields:
        value = record.get(field.name)
        if field.fields and value is not None:
            value = [in_form(item, field.fields) for item in value]
        if isinstance(value, float) and abs(value) >= 1e16:
            value = 4.5  # the form bounds floats, since not all write larger ones alike
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            value = 4
        made[field.name] = value
    return made


@given(views(), st.data())
def test_records_known_to_be_in_the_form_of_the_contract_give_the_bytes_of_any_others(
    view: tuple[Resource, frozenset[str], dict[str, Mask]], data: st.DataObject
) -> None:
    resource, visible, masks = view
    redactor = Redactor(resource, visible, ignore, masks=masks)
    more = data.draw(st.sets(st.sampled_from(resource.paths)))
    for kept in (redactor.needed | more, redactor.needed, frozenset(more)):
        form = tuple(path for path in resource.paths if path in kept)
        shapes = opened(resource.fields, kept)
        found = data.draw(st.lists(records(resource.fields), max_size=3))
        plain = [in_form(record, shapes) for record in found]
        before = deepcopy(plain)
        assert redactor.many(Formed(plain, form)) == redactor.many(plain)
        is_whole = redactor.needed <= kept
        assert (redactor._of_formed(plain, form) is not None) is is_whole
        if plain and ("id" in kept or "id" not in redactor.needed):
            assert redactor.one(FormedRecord(plain[0], form)) == redactor.one(plain[0])
        assert plain == before


def test_a_text_that_no_encoding_can_carry_is_null_in_a_record_of_any_kind() -> None:
    troubles: list[Trouble] = []
    redactor = Redactor(CLIENT, {"id", "phone"}, troubles.append)
    record = {"id": "6f1c2b7e-0b5a-4b3e-9d27-0c2f5b8e1a11", "phone": "\ud800"}
    for records_ in ([record], Formed([record], ("id", "phone"))):
        assert json.loads(redactor.many(records_)[0])[0]["phone"] is None
    assert [trouble.field for trouble in troubles] == ["phone"] * 2


def test_what_a_row_condition_judges_is_needed_and_not_shown() -> None:
    rows = RowFilter({"status": ValueTest(allowed=frozenset({"ACTIVE"}))})
    redactor = Redactor(PATIENT, {"id"}, ignore, rows=rows)
    assert redactor.needed == {"id", "status"}
    alive = {"id": "6f1c2b7e-0b5a-4b3e-9d27-0c2f5b8e1a11", "status": "ACTIVE"}
    dead = alive | {"status": "DECEASED"}
    kept = redactor.admitted(Formed([alive, dead], ("id", "status")))
    assert (kept, type(kept)) == ([alive], Formed)
    assert redactor.many(kept) == (b'[{"id":"%b"}]' % alive["id"].encode(), 0)


@given(st.data())
def test_a_broken_record_never_shows_more_of_a_masked_field(data: st.DataObject) -> None:
    whole = {"id": "6f1c2b7e-0b5a-4b3e-9d27-0c2f5b8e1a11", "phone": "06 12 34 56 78"}
    broken = data.draw(records(CLIENT.fields, JUNK))
    phone, masks = broken.get("phone"), {"phone": Mask(LAST, 2)}
    body = Redactor(CLIENT, {"id", "email"}, ignore, masks=masks).many([broken, whole])[0]
    assert b"06 12 34 56" not in body
    shown = json.loads(body)
    assert shown[-1]["phone"] == "***78"
    if len(shown) == 2 and isinstance(phone, str) and shown[0]["phone"] is not None:
        assert shown[0]["phone"] == Mask(LAST, 2)(phone)


def test_a_number_that_is_too_large_when_rounded_costs_no_other_record() -> None:
    whole = {"id": "6f1c2b7e-0b5a-4b3e-9d27-0c2f5b8e1a11", "quantity": 12}
    views = Redactor(STOCK_ITEM, {"id"}, ignore, masks={"quantity": Mask(ROUNDED, 1_000_000)})
    shown = json.loads(views.many([whole | {"quantity": 2**64 - 1}, whole])[0])
    assert [each["quantity"] for each in shown] == [None, 0]
