"""A redactor passes on the open fields, whole and in order, and nothing that is not one of them."""

import json
import math
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openapi_schema_validator import OAS31Validator

from adapters.base import Trouble
from gateway.contract import fields as formats
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Field, Resource, opened
from gateway.contract.openapi import View, document
from gateway.contract.resources import (
    APPOINTMENT,
    APPOINTMENT_TYPE,
    CLIENT,
    GOVERNED,
    INVOICE,
    PATIENT,
    RESOURCES,
    SLOT,
    STOCK_ITEM,
)
from gateway.policy import values
from gateway.policy.redactor import NoUsableId, Redactor
from tests.policy.records import JUNK, good, records

views = st.sampled_from(RESOURCES).flatmap(
    lambda resource: st.tuples(
        st.just(resource), st.sets(st.sampled_from(resource.paths)).map(frozenset)
    )
)


def ignore(trouble: Trouble) -> None:
    pass


def answered(redactor: Redactor, record: dict[str, Any]) -> bytes | None:
    try:
        return redactor.one(record)
    except NoUsableId:
        return None


def test_whatever_stands_for_utc_is_a_time_in_utc() -> None:
    troubles: list[Trouble] = []
    redactor = Redactor(CLIENT, frozenset({"id", "createdAt"}), troubles.append)
    record = {"id": "0e37df36-f698-11e6-8dd4-cb9ced3df976"}
    for zone, shown in ((UTC, True), (ZoneInfo("UTC"), True), (ZoneInfo("Europe/Paris"), False)):
        moment = datetime(2026, 3, 1, 9, tzinfo=zone)
        told = json.loads(redactor.one(record | {"createdAt": moment}))["createdAt"]
        assert told == ("2026-03-01T09:00:00Z" if shown else None)
    assert [each.kind for each in troubles] == ["unreadable"]


def pruned(record: dict[str, Any], fields: tuple[Field, ...]) -> dict[str, Any]:
    """The plain and slow way to say what a view shows of a record without broken values."""
    shown: dict[str, Any] = {}
    for field in fields:
        value = record.get(field.name)
        if field.fields and value is not None:
            value = [pruned(item, field.fields) for item in value]
        shown[field.name] = value
    return shown


@given(st.data())
def test_the_answer_is_the_open_members_in_their_order_and_null_for_what_is_missing(
    data: st.DataObject,
) -> None:
    resource, visible = data.draw(views)
    record = data.draw(records(resource.fields))
    redactor = Redactor(resource, visible, ignore)
    expected = pruned(record, redactor.fields)
    assert json.dumps(json.loads(redactor.one(record))) == json.dumps(expected)
    assert list(json.loads(redactor.one(record))) == [field.name for field in redactor.fields]


def with_other_hidden_fields(
    data: st.DataObject, record: dict[str, Any], fields: tuple[Field, ...], visible: frozenset[str]
) -> dict[str, Any]:
    """A record that looks the same through the view, and like anything beside it."""

    def other(raw: dict[str, Any], members: tuple[Field, ...], prefix: str) -> dict[str, Any]:
        changed = dict(raw)
        for field in members:
            path = prefix + field.name
            if not field.fields:
                hidden = path not in visible
            else:
                inner = f"{path}[]."
                hidden = not any(each.startswith(inner) for each in visible)
                if not hidden and isinstance(raw.get(field.name), list):
                    changed[field.name] = [
                        other(item, field.fields, inner) if isinstance(item, dict) else item
                        for item in raw[field.name]
                    ]
            if hidden:
                changed.pop(field.name, None)
                if data.draw(st.booleans()):
                    changed[field.name] = data.draw(JUNK | good(field))
        if data.draw(st.booleans()):
            changed["passport"] = data.draw(JUNK)
        return changed

    return other(record, fields, "")


@given(st.data())
def test_records_that_differ_only_in_hidden_fields_give_the_same_bytes(data: st.DataObject) -> None:
    resource, visible = data.draw(views)
    record = data.draw(records(resource.fields, JUNK))
    other = with_other_hidden_fields(data, record, resource.fields, visible)
    redactor = Redactor(resource, visible, ignore)
    assert answered(redactor, record) == answered(redactor, other)
    assert redactor.many([record, record]) == redactor.many([other, other])


def described(resource: Resource, visible: frozenset[str]) -> OAS31Validator:
    """What the document promises of a record; a record that no operation returns has no promise."""
    whole = document(
        public_url="https://clinic.example", visible=lambda each: View(frozenset(visible))
    )
    schema = whole["components"]["schemas"][resource.title]
    return OAS31Validator(schema, format_checker=OAS31Validator.FORMAT_CHECKER)


SHOWN = [resource for resource in RESOURCES if resource.name != "vets"]


@pytest.mark.hypothesis
@pytest.mark.parametrize("resource", SHOWN, ids=lambda each: each.name)
def test_whatever_comes_in_what_goes_out_is_as_the_document_describes_it(
    resource: Resource,
) -> None:
    whole = frozenset(resource.paths)
    for visible in {whole, whole if not resource.governed else frozenset(resource.paths[::2])}:
        promise = described(resource, visible)
        redactor = Redactor(resource, visible, ignore)

        @given(records(resource.fields, JUNK))
        def holds(record: dict[str, Any]) -> None:
            answer = answered(redactor, record)  # noqa: B023  # run before the next turn
            if answer is not None:
                promise.validate(json.loads(answer))  # noqa: B023
            many, left_out = redactor.many([record])  # noqa: B023
            assert many == (b"[]" if answer is None else b"[" + answer + b"]")
            assert left_out == (answer is None)

        holds()


@given(st.data())
def test_the_fast_way_and_the_mended_way_write_the_same_bytes(data: st.DataObject) -> None:
    resource, visible = data.draw(views)
    record = data.draw(records(resource.fields))
    redactor = Redactor(resource, visible, ignore)
    mended = msgspec.json.encode(redactor._mended(record))
    assert redactor._finish(msgspec.convert(record, redactor._shape))
    assert redactor.one(record) == mended


BROKEN = [
    (CLIENT, "phone", 33612345678, "unreadable"),
    (CLIENT, "phone", "\ud800", "unreadable"),
    (CLIENT, "email", "no address", "unreadable"),
    (CLIENT, "email", "dr\N{NO-BREAK SPACE}leroy@example.com", "unreadable"),
    (CLIENT, "createdAt", "2026-03-01T09:00:00", "unreadable"),
    (CLIENT, "createdAt", "2026-03-01T10:00:00+01:00", "unreadable"),
    (CLIENT, "createdAt", "2026-03-01T09:00:00.5Z", "unreadable"),
    (CLIENT, "createdAt", "2026-02-30T09:00:00Z", "unreadable"),
    (APPOINTMENT, "vetId", "17", "unreadable"),
    (APPOINTMENT, "status", "PLANIF", "unknown code"),
    (APPOINTMENT, "status", 3, "unreadable"),
    (APPOINTMENT, "isUrgent", 1, "unreadable"),
    (PATIENT, "birthDate", "2026-02-30", "unreadable"),
    (PATIENT, "birthDate", "0000-00-00", "unreadable"),
    (PATIENT, "weightKg", "4.5", "unreadable"),
    (PATIENT, "weightKg", math.nan, "unreadable"),
    (PATIENT, "weightKg", math.inf, "unreadable"),
    (PATIENT, "alerts", "bites", "unreadable"),
    (PATIENT, "alerts", ["bites", None], "unreadable"),
    (STOCK_ITEM, "salePrice", 45.0, "unreadable"),
    (STOCK_ITEM, "salePrice", "45.0", "unreadable"),
    (STOCK_ITEM, "salePrice", "45.00\n", "unreadable"),
    (INVOICE, "lines", {"id": 1}, "unreadable"),
    (APPOINTMENT_TYPE, "durationMinutes", 30.5, "unreadable"),
    (APPOINTMENT_TYPE, "color", "blue", "unreadable"),
    (SLOT, "startTime", "09:00", "unreadable"),
]
SOME_ID = "0b9f6c1e-7a52-8d3b-9c41-5e2f8a6d7b10"


@pytest.mark.parametrize(("resource", "field", "value", "kind"), BROKEN)
def test_a_value_that_cannot_be_read_is_null_and_reported_by_the_id_of_its_record(
    resource: Resource, field: str, value: Any, kind: str
) -> None:
    troubles: list[Trouble] = []
    redactor = Redactor(resource, resource.paths, troubles.append)
    record = {"id": SOME_ID, field: value}
    answer = json.loads(redactor.one(record))
    assert answer[field] is None
    assert troubles == [Trouble(kind, resource.name, field, SOME_ID)]
    assert json.loads(redactor.many([record, {"id": SOME_ID}])[0])[0] == answer


@pytest.mark.parametrize(
    ("member", "value"), [("unitPrice", "45.0"), ("taxRate", "20"), ("description", 7)]
)
def test_a_value_inside_a_list_that_cannot_be_read_is_null_and_reported_too(
    member: str, value: Any
) -> None:
    troubles: list[Trouble] = []
    redactor = Redactor(INVOICE, INVOICE.paths, troubles.append)
    good = {"id": SOME_ID, member: "1.00"}
    record = {"id": SOME_ID, "lines": [good, {"id": SOME_ID, member: value}]}
    lines = json.loads(redactor.one(record))["lines"]
    assert [line[member] for line in lines] == ["1.00", None]
    assert [(each.field, each.record) for each in troubles] == [(f"lines[].{member}", SOME_ID)]


def test_a_broken_value_that_is_hidden_is_not_even_looked_at() -> None:
    troubles: list[Trouble] = []
    redactor = Redactor(CLIENT, {"id"}, troubles.append)
    assert redactor.one({"id": SOME_ID, "phone": object()}) == b'{"id":"%s"}' % SOME_ID.encode()
    assert troubles == []


@pytest.mark.parametrize("record", [{}, {"id": None}, {"id": 17}, {"id": "17"}, None, "row"])
def test_a_record_without_a_usable_id_is_left_out_of_a_list_and_no_answer_alone(
    record: Any,
) -> None:
    troubles: list[Trouble] = []
    redactor = Redactor(CLIENT, {"id", "phone"}, troubles.append)
    content, left_out = redactor.many([{"id": SOME_ID}, record])
    assert json.loads(content) == [{"id": SOME_ID, "phone": None}]
    assert left_out == 1
    with pytest.raises(NoUsableId):
        redactor.one(record)
    assert troubles == [Trouble("no id", "clients", "id", "")] * 2


def test_where_the_id_is_hidden_a_record_without_one_is_shown_like_any_other() -> None:
    redactor = Redactor(CLIENT, {"firstName"}, ignore)
    assert redactor.one({"firstName": "Ada"}) == b'{"firstName":"Ada"}'


def test_a_list_of_objects_shows_the_open_members_and_is_absent_where_none_is_open() -> None:
    line = {"id": SOME_ID, "unitPrice": "45.00", "description": "secret", "supplier": "secret"}
    record = {"id": SOME_ID, "lines": [line, line], "payments": [{"method": "secret"}]}
    shown = Redactor(INVOICE, {"id", "lines[].id", "lines[].unitPrice"}, ignore).one(record)
    assert json.loads(shown) == {
        "id": SOME_ID,
        "lines": [{"id": SOME_ID, "unitPrice": "45.00"}] * 2,
    }


def test_an_object_in_a_list_that_has_no_usable_id_is_left_out_and_reported() -> None:
    troubles: list[Trouble] = []
    redactor = Redactor(INVOICE, {"id", "lines[].id", "lines[].total"}, troubles.append)
    record = {"id": SOME_ID, "lines": [{"id": 1}, {"id": SOME_ID, "total": 4}, "row"]}
    assert json.loads(redactor.one(record))["lines"] == [{"id": SOME_ID, "total": None}]
    assert {(each.kind, each.field) for each in troubles} == {
        ("no id", "lines[].id"),
        ("unreadable", "lines[].total"),
        ("unreadable", "lines[]"),
    }


def test_a_view_without_any_field_is_an_empty_object() -> None:
    assert Redactor(CLIENT, (), ignore).one({"id": SOME_ID, "phone": "1"}) == b"{}"


def test_no_records_are_an_empty_list() -> None:
    assert Redactor(CLIENT, CLIENT.paths, ignore).many([]) == (b"[]", 0)


def test_every_format_has_a_type_to_read_it_or_a_pattern() -> None:
    known = [each for each in vars(formats).values() if isinstance(each, formats.Format)]
    assert len(known) > 10
    for each in known:
        field = Field(name="value", format=each)
        assert values.value_type(field) is not None
        assert each.name in values._TYPES or each.pattern
        with pytest.raises(values.BROKEN):
            values.typed_value(field, b"\xff")


def test_long_lists_of_awkward_texts_are_read_in_one_go() -> None:
    troubles: list[Trouble] = []
    redactor = Redactor(CLIENT, CLIENT.paths, troubles.append)
    record = {"id": SOME_ID, "address": '"\\\n\u2028' * 5_000}
    content, _ = redactor.many([record] * 200)
    assert json.loads(content)[199]["address"] == record["address"]
    assert troubles == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("resource", GOVERNED, ids=lambda each: each.name)
def test_the_fields_of_a_view_are_those_that_the_document_opens(
    resource: Resource, level: AccessLevel
) -> None:
    visible = frozenset(resource.paths[: 2 + 3 * LEVELS.index(level)])
    assert Redactor(resource, visible, ignore).fields == opened(resource.fields, visible)
