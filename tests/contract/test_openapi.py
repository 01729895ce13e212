"""The OpenAPI document says all that the tables say, and to a key only what the key may know."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

from gateway.contract.access import LEVELS, Permission
from gateway.contract.errors import (
    COMMON_STATUSES,
    GatewayError,
    InvalidField,
    InvalidRequest,
    KeyReused,
    NotARequest,
    PatientIsDeceased,
)
from gateway.contract.fields import Resource
from gateway.contract.openapi import View, document
from gateway.contract.operations import OPERATIONS, Operation, Param
from gateway.contract.resources import GOVERNED, INVOICE, SLOT

URL = "https://gateway.clinic.example"
WHOLE = document(public_url=URL)
SCHEMAS = WHOLE["components"]["schemas"]


def called(described: dict[str, Any], operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = described["paths"][operation.path][operation.method.lower()]
    return found


def parameters(described: dict[str, Any], operation: Operation) -> dict[str, Any]:
    return {each["name"]: each for each in called(described, operation).get("parameters", [])}


def resolved(described: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in item:
        reference, item = item["$ref"], described
        for part in reference.removeprefix("#/").split("/"):
            item = item[part]
    return item


def answer(described: dict[str, Any], operation: Operation, status: int) -> dict[str, Any]:
    return resolved(described, called(described, operation)["responses"][str(status)])


def checker(name: str) -> OAS31Validator:
    return OAS31Validator(SCHEMAS[name], format_checker=OAS31Validator.FORMAT_CHECKER)


def operation(name: str) -> Operation:
    return next(each for each in OPERATIONS if each.id == name)


def test_the_document_is_valid_and_says_where_and_how_to_call() -> None:
    validate(WHOLE)
    assert json.loads(json.dumps(WHOLE)) == WHOLE
    assert WHOLE["openapi"].startswith("3.1.")
    assert WHOLE["info"]["version"] == "1.0.0"
    assert WHOLE["servers"] == [{"url": f"{URL}/api/v1"}]
    assert document(public_url=f"{URL}/")["servers"] == WHOLE["servers"]
    scheme = WHOLE["components"]["securitySchemes"]["apiKey"]
    assert (scheme["type"], scheme["in"], scheme["name"]) == ("apiKey", "header", "X-API-Key")
    assert WHOLE["security"] == [{"apiKey": []}]


def test_the_levels_are_explained() -> None:
    assert all(f"`{level}`" in WHOLE["info"]["description"] for level in LEVELS)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.id)
def test_an_operation_says_its_permission_and_what_else_must_be_known(operation: Operation) -> None:
    said = called(WHOLE, operation)["description"]
    assert f"`{operation.permission}`" in said
    assert said.endswith(operation.notes)


def test_whoever_asks_for_slots_is_told_where_a_vets_id_comes_from() -> None:
    assert "the clinic hands their ids over" in operation("list_available_slots").notes


def test_each_operation_is_listed_once_and_nothing_else_is() -> None:
    listed = {
        (each["operationId"], method.upper(), path, each["x-permission"])
        for path, methods in WHOLE["paths"].items()
        for method, each in methods.items()
    }
    assert listed == {(each.id, each.method, each.path, each.permission) for each in OPERATIONS}
    assert len(listed) == len(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.id)
def test_an_operation_lists_every_status_that_it_may_answer(operation: Operation) -> None:
    expected = {operation.status, *COMMON_STATUSES, *operation.errors}
    assert set(called(WHOLE, operation)["responses"]) == set(map(str, expected))
    for status in expected:
        headers = answer(WHOLE, operation, status)["headers"]
        assert resolved(WHOLE, headers["X-Request-Id"])["required"]
        assert ("X-RateLimit-Limit" in headers) == (status not in {401, 403})
        assert ("Retry-After" in headers) == (status in {429, 503})
        assert ("WWW-Authenticate" in headers) == (status == 401)
        assert ("X-Access-Level" in headers) == (status == operation.status)
        replayed = operation.creates and status in {201, 404, 409}
        assert ("Idempotent-Replayed" in headers) == replayed


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.id)
def test_a_good_answer_is_the_record_or_an_array_of_records(operation: Operation) -> None:
    good = answer(WHOLE, operation, operation.status)
    schema = good["content"]["application/json"]["schema"]
    if operation.many:
        assert schema["type"] == "array"
        schema = schema["items"]
    assert schema == {"$ref": f"#/components/schemas/{operation.returns.title}"}
    assert ("Link" in good["headers"]) == operation.paged
    assert ("X-Skipped-Records" in good["headers"]) == operation.many
    assert ("Location" in good["headers"]) == operation.creates


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.id)
def test_every_parameter_is_there_with_its_bounds(operation: Operation) -> None:
    found = parameters(WHOLE, operation)
    own = {each.name for each in (*operation.params, *operation.query)}
    assert set(found) == own | ({"Idempotency-Key"} if operation.creates else set())
    assert {f"{{{name}}}" for name, each in found.items() if each["in"] == "path"} == set(
        re.findall(r"\{\w+\}", operation.path)
    )
    if operation.paged:
        limit = found["limit"]["schema"]
        assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 200, 50)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "search",
            ["lé", "Anne Marie", "x" * 100],
            ["", "a", "x" * 101, "a\nb", "a\x00b", "a\x7fb"],
        ),
        ("updatedSince", ["2026-03-01T09:00:00Z", "2026-03-01T09:00:00+02:00"], ["2026-03-01"]),
        ("limit", [1, 200], [0, 201, "1", 1.5]),
        ("cursor", ["abc_-"], ["", "a b", "abc=", "x" * 2_801]),
    ],
)
def test_a_parameter_tells_good_values_from_bad_ones(
    name: str, good: list[Any], bad: list[Any]
) -> None:
    schema = parameters(WHOLE, operation("list_clients"))[name]["schema"]
    checks = OAS31Validator(schema, format_checker=OAS31Validator.FORMAT_CHECKER)
    assert [value for value in good if not checks.is_valid(value)] == []
    assert [value for value in bad if checks.is_valid(value)] == []


SOME_ID = "0b9f6c1e-7a52-8d3b-9c41-5e2f8a6d7b10"
BOOKING = {
    "clientId": SOME_ID,
    "patientId": SOME_ID,
    "vetId": SOME_ID,
    "scheduledAt": "2026-03-01T09:00:00+01:00",
}


@pytest.mark.parametrize(
    "change",
    [
        {"isUrgnet": True},
        {"isUrgent": 1},
        {"isUrgent": None},
        {"reason": "x" * 501},
        {"reason": "tab\there"},
        {"vetId": SOME_ID.upper()},
        {"vetId": f"{SOME_ID}\n"},
        {"scheduledAt": "2026-03-01"},
    ],
)
def test_a_booking_with_a_mistake_does_not_match_the_schema(change: dict[str, Any]) -> None:
    checks = checker("CreateAppointmentRequest")
    whole = BOOKING | {"reason": "limps\nsince Monday", "isUrgent": True}
    assert checks.is_valid(BOOKING)
    assert checks.is_valid(whole)
    assert not checks.is_valid(whole | change)
    assert not any(checks.is_valid({k: BOOKING[k] for k in BOOKING if k != out}) for out in BOOKING)
    assert called(WHOLE, operation("create_appointment"))["requestBody"]["required"] is True


def subclasses(kind: type[GatewayError]) -> set[type[GatewayError]]:
    return {kind}.union(*(subclasses(each) for each in kind.__subclasses__()))


def test_every_error_is_an_object_with_a_message_and_the_examples_are_such() -> None:
    shown: dict[str, set[int]] = {}
    for each in OPERATIONS:
        for status in (*COMMON_STATUSES, *each.errors):
            media = answer(WHOLE, each, status)["content"]["application/json"]
            schema = media["schema"]["$ref"].rpartition("/")[2]
            assert schema == {400: "InvalidRequest", 429: "LimitExceeded"}.get(status, "Error")
            for name, example in media["examples"].items():
                checker(schema).validate(example["value"])
                shown.setdefault(name, set()).add(status)
    for kind in subclasses(GatewayError):
        if kind.__name__ in shown:
            assert shown[kind.__name__] == {kind.status}
    assert {"KeyMissing", "KeyInvalid", "TimeSlotConflict", "BookingUnknown"} <= set(shown)
    assert not checker("Error").is_valid({})
    assert not checker("LimitExceeded").is_valid({"message": "Wait."})
    assert not checker("InvalidRequest").is_valid({"message": "Invalid request: x is required"})


def test_every_400_names_what_is_wrong() -> None:
    refusals = (
        NotARequest(),
        KeyReused(),
        PatientIsDeceased(),
        InvalidRequest(InvalidField("limit", "is too large")),
    )
    assert {type(each) for each in refusals} == {
        kind for kind in subclasses(GatewayError) if getattr(kind, "status", 0) == 400
    }
    for each in refusals:
        checker("InvalidRequest").validate(each.members())


def test_a_read_shows_no_example_that_only_a_booking_can_meet() -> None:
    media = answer(WHOLE, operation("get_client"), 504)["content"]["application/json"]
    assert list(media["examples"]) == ["BackendTooSlow"]


def views() -> st.SearchStrategy[dict[str, frozenset[str]]]:
    return st.fixed_dictionaries(
        {each.name: st.sets(st.sampled_from(each.paths)).map(frozenset) for each in GOVERNED}
    )


def members(schema: dict[str, Any], prefix: str = "") -> set[str]:
    found = set()
    for name, member in schema["properties"].items():
        items = member.get("items", {})
        if "properties" in items:
            found |= members(items, f"{prefix}{name}[].")
        else:
            found.add(prefix + name)
    return found


@given(views(), st.sets(st.sampled_from(Permission)))
def test_a_key_is_told_only_of_its_operations_and_of_the_fields_that_it_sees(
    view: dict[str, frozenset[str]], permissions: set[Permission]
) -> None:
    reached = [each for each in OPERATIONS if each.permission in permissions]
    seen = document(
        public_url=URL,
        visible=lambda each: View(view[each.name]),
        offered=reached,
    )
    validate(seen)
    ids = {each["operationId"] for path in seen["paths"].values() for each in path.values()}
    assert ids == {each.id for each in reached}
    for each in reached:
        schema = seen["components"]["schemas"][each.returns.title]
        fields = view[each.returns.name] if each.returns.governed else set(each.returns.paths)
        assert members(schema) == fields
        assert schema["required"] == list(schema["properties"])
        assert schema["additionalProperties"] is False
        offered = {name for name, found in parameters(seen, each).items() if found["in"] == "query"}
        assert offered == {
            param.name for param in each.query if not param.match or set(param.fields) <= fields
        }
    unreached = {each.returns.title for each in OPERATIONS} - {
        each.returns.title for each in reached
    }
    assert unreached.isdisjoint(seen["components"]["schemas"])


def test_a_hidden_field_is_not_mentioned_anywhere() -> None:
    view = frozenset(INVOICE.paths) - {
        "payments[].method",
        "payments[].amount",
        "payments[].paidAt",
    }
    seen = document(
        public_url=URL,
        visible=lambda each: View(view),
        offered=[each for each in OPERATIONS if each.permission is Permission.INVOICE_READ],
    )
    assert '"payments"' not in json.dumps(seen)


def test_a_filter_that_the_practice_system_cannot_serve_is_absent() -> None:
    def servable(operation: Operation, param: Param) -> bool:
        return param.name != "search"

    seen = document(public_url=URL, servable=servable)
    assert "search" not in parameters(seen, operation("list_clients"))
    assert "updatedSince" in parameters(seen, operation("list_clients"))
    assert "clientId" in parameters(seen, operation("list_client_invoices"))


def test_resources_that_no_level_governs_are_whole_whatever_the_view() -> None:
    def nothing(resource: Resource) -> View:
        return View(frozenset())

    seen = document(public_url=URL, visible=nothing)["components"]["schemas"]
    assert list(seen["Slot"]["properties"]) == [field.name for field in SLOT.fields]
    assert seen["Client"]["properties"] == {}


def unnamed(schema: dict[str, Any], path: str) -> list[str]:
    """Where, below a record, something is that becomes a class and has no name of its own."""
    found = [path] if {"enum", "properties"} & schema.keys() and "title" not in schema else []
    for name, member in schema.get("properties", {}).items():
        found += unnamed(member, f"{path}.{name}")
    return found + (unnamed(schema["items"], f"{path}[]") if "items" in schema else [])


def test_what_generated_clients_make_classes_of_has_a_name() -> None:
    for title, schema in SCHEMAS.items():
        assert unnamed(schema | {"title": title}, title) == []
    assert SCHEMAS["Appointment"]["properties"]["status"]["title"] == "Status"
    assert SCHEMAS["Client"]["title"] == "ClientRecord", "generated packages have a Client"


def test_every_member_of_an_answer_but_the_id_may_be_null() -> None:
    for each in OPERATIONS:
        for name, member in SCHEMAS[each.returns.title]["properties"].items():
            assert ("null" in member["type"]) == (name != "id")
