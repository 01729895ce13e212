"""The public interface, sentence by sentence, against the running gateway and the sample clinic.

The ids of the tests carry the part and the number of the sentence. Tables (fields, permissions,
endpoints, errors) are written out here once more, on purpose: this file is the second opinion on
`gateway/contract`.
"""

import base64
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from gateway.keys.key import DEFAULT_LIMIT
from tests.partner import Answer, Partner
from tests.policy.test_policy import DECISION

pytestmark = pytest.mark.asyncio(loop_scope="module")

UUID_FORM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
TIME_FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").fullmatch

APPOINTMENT = {
    "id": "uuid",
    "clientId": "uuid",
    "patientId": "uuid",
    "appointmentTypeId": "uuid",
    "vetId": "uuid",
    "scheduledAt": "date-time",
    "endTime": "date-time",
    "reason": "string",
    "isUrgent": "boolean",
    "status": "string",
    "displayStatus": "string",
    "createdAt": "date-time",
}
TYPE = {"id": "uuid", "name": "string", "durationMinutes": "integer", "color": "color"}
SLOT = {"startTime": "date-time", "endTime": "date-time"}
CLIENT = {
    "id": "uuid",
    "firstName": "string",
    "lastName": "string",
    "phone": "string",
    "email": "email",
    "address": "string",
    "createdAt": "date-time",
    "updatedAt": "date-time",
}
CONSULTATION = {
    "id": "uuid",
    "appointmentId": "uuid",
    "patientId": "uuid",
    "vetId": "uuid",
    "status": "string",
    "importance": "string",
    "startedAt": "date-time",
    "validatedAt": "date-time",
    "ownerSummary": "string",
    "ownerDiagnosis": "string",
    "ownerInstructions": "string",
    "createdAt": "date-time",
}
FORMS = {
    "uuid": UUID_FORM,
    "date-time": TIME_FORM,
    "string": lambda value: isinstance(value, str),
    "email": lambda value: "@" in value,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "color": re.compile("#[0-9A-Fa-f]{6}").fullmatch,
}
ENDPOINTS = [
    ("POST", "/appointments", "APPOINTMENT_CREATE"),
    ("GET", "/appointments/available-slots", "APPOINTMENT_READ"),
    ("GET", "/appointments/types", "APPOINTMENT_READ"),
    ("GET", "/appointments/{id}", "APPOINTMENT_READ"),
    ("GET", "/clients", "CLIENT_READ"),
    ("GET", "/clients/{id}", "CLIENT_READ"),
    ("GET", "/patients", "PATIENT_READ"),
    ("GET", "/patients/{id}", "PATIENT_READ"),
    ("GET", "/consultations/{id}", "CONSULTATION_READ"),
    ("GET", "/invoices/{id}", "INVOICE_READ"),
    ("GET", "/invoices/client/{clientId}", "INVOICE_READ"),
    ("GET", "/stock", "STOCK_READ"),
    ("GET", "/stock/{stockId}", "STOCK_READ"),
    ("GET", "/stock/low", "STOCK_READ"),
]
PERMISSIONS = sorted({permission for _, _, permission in ENDPOINTS})


def conforms(record: dict[str, Any], fields: dict[str, str]) -> None:
    """Every member is a known one in its form; only the id must have a value."""
    assert set(record) == set(fields)
    for name, form in fields.items():
        if record[name] is None:
            assert name != "id"
        else:
            assert FORMS[form](record[name]), (name, record[name])


async def call(partner: Partner, method: str, path: str, draft: Mapping[str, Any]) -> Answer:
    """The endpoint with ids, parameters and a body that are right."""
    ids = await partner.ids()
    if path == "/appointments/available-slots":
        return await partner.get(path, vetId=ids["vet"], date="2030-01-07")
    if method == "POST":
        return await partner.post(path, dict(draft))
    name = {
        "/appointments/{id}": "appointments",
        "/clients/{id}": "clients",
        "/patients/{id}": "patients",
        "/consultations/{id}": "consultations",
        "/invoices/{id}": "invoices",
        "/invoices/client/{clientId}": "clients",
        "/stock/{stockId}": "stock",
    }.get(path)
    return await partner.get(re.sub(r"\{\w+\}", ids[name] if name else "", path))


@pytest.fixture
def partner(lasting_partner: Partner) -> Partner:
    return lasting_partner


# What the service does


@pytest.mark.parametrize(("method", "path", "permission"), ENDPOINTS)
async def test_endpoints_needs_its_permission_and_no_other(
    partner: Partner, method: str, path: str, permission: str
) -> None:
    """Endpoints: the permission listed; Authentication 5: what each grants; 6.3: else 403."""
    draft = await partner.draft()
    allowed = await call(await partner.with_key(permissions=[permission]), method, path, draft)
    assert allowed.status == (201 if method == "POST" else 200), allowed.text
    others = [each for each in PERMISSIONS if each != permission]
    denied = await call(await partner.with_key(permissions=others), method, path, draft)
    assert denied.status == 403
    assert denied.data == {"message": "Insufficient permissions"}


async def test_service_3_writing_is_limited_to_one_operation(partner: Partner) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for endpoint_method, path, _ in ENDPOINTS:
            if method == endpoint_method:
                continue
            answer = await partner.send(method, re.sub(r"\{\w+\}", str(uuid4()), path))
            assert answer.status == 405, (method, path)
            assert answer.data == {"message": "Method not allowed"}


async def test_service_5_answers_are_json(partner: Partner) -> None:
    for path in ("/clients", f"/clients/{uuid4()}", "/nowhere"):
        answer = await partner.get(path)
        assert answer.headers["Content-Type"].split(";")[0] == "application/json"


async def test_service_6_the_booking_flow(partner: Partner) -> None:
    """Types, slots, 201, then 409 for the same slot, then the slots without it."""
    key = await partner.with_key(permissions=["APPOINTMENT_READ", "APPOINTMENT_CREATE"])
    types = (await key.get("/appointments/types")).data
    kind = next(each for each in types if each["durationMinutes"] == 30)
    draft = await partner.draft(kind["id"])
    day = partner.local_day(draft["scheduledAt"])
    query = {"vetId": draft["vetId"], "date": day, "appointmentTypeId": kind["id"]}
    slots = (await key.get("/appointments/available-slots", **query)).data
    assert draft["scheduledAt"] in [slot["startTime"] for slot in slots]
    made = await key.post("/appointments", draft)
    assert made.status == 201
    conforms(made.data, APPOINTMENT)
    assert made.data["status"] == "SCHEDULED"
    again = await key.post("/appointments", draft)
    assert again.status == 409
    assert again.data == {"message": "Time slot conflict"}
    left = (await key.get("/appointments/available-slots", **query)).data
    assert draft["scheduledAt"] not in [slot["startTime"] for slot in left]


# Resources and their fields


async def test_fields_of_every_shown_resource(partner: Partner) -> None:
    ids = await partner.ids()
    for path, fields in (
        (f"/appointments/{ids['appointments']}", APPOINTMENT),
        (f"/clients/{ids['clients']}", CLIENT),
        (f"/consultations/{ids['consultations']}", CONSULTATION),
    ):
        conforms((await partner.get(path)).data, fields)
    for kind in (await partner.get("/appointments/types")).data:
        conforms(kind, TYPE)


async def test_fields_a_new_appointment_carries_what_was_asked_for(partner: Partner) -> None:
    draft = await partner.draft() | {"reason": "Boite", "isUrgent": True}
    made = (await partner.post("/appointments", draft)).data
    assert {name: made[name] for name in draft} == draft
    shown = (await partner.get(f"/appointments/{made['id']}")).data
    assert shown == made


async def test_fields_is_urgent_defaults_to_false(partner: Partner) -> None:
    made = await partner.post("/appointments", await partner.draft())
    assert made.data["isUrgent"] is False
    assert made.data["appointmentTypeId"] is None


@pytest.mark.parametrize("field", ["clientId", "patientId", "vetId", "scheduledAt"])
async def test_fields_required_members_of_a_booking(partner: Partner, field: str) -> None:
    draft = await partner.draft()
    del draft[field]
    answer = await partner.post("/appointments", draft)
    assert answer.status == 400
    assert field in answer.data["message"]


async def test_levels_open_more_and_more_and_a_scope_overrides_them(partner: Partner) -> None:
    """Access levels: set for the key, overridden per resource type; Authentication 6.4."""
    ids = await partner.ids()
    path = f"/clients/{ids['clients']}"
    seen, decided = [], set[str]()
    for level, added in zip(("BASIC", "STANDARD", "FULL"), DECISION["clients"], strict=True):
        answer = await (await partner.with_key(level=level)).get(path)
        assert answer.headers["X-Access-Level"] == level
        decided |= set(added.split())
        assert set(answer.data) == decided
        seen.append(answer.data)
    basic, standard, full = seen
    assert set(full) == set(CLIENT)
    assert basic.items() <= standard.items() <= full.items()
    mixed = await partner.with_key(level="FULL", scopes={"clients": "BASIC"})
    assert (await mixed.get(path)).data == basic
    patient = await mixed.get(f"/patients/{ids['patients']}")
    assert patient.headers["X-Access-Level"] == "FULL"
    assert "microchip" in patient.data


# Endpoints


async def test_slots_span_the_duration_of_the_type(partner: Partner) -> None:
    draft = await partner.draft()
    for kind in (await partner.get("/appointments/types")).data:
        query = {
            "vetId": draft["vetId"],
            "date": partner.local_day(draft["scheduledAt"]),
            "appointmentTypeId": kind["id"],
        }
        for slot in (await partner.get("/appointments/available-slots", **query)).data:
            conforms(slot, SLOT)
            start, end = (datetime.fromisoformat(slot[name]) for name in SLOT)
            assert end - start == timedelta(minutes=kind["durationMinutes"])


@pytest.mark.parametrize("missing", ["vetId", "date"])
async def test_slots_need_a_vet_and_a_date(partner: Partner, missing: str) -> None:
    query = {"vetId": (await partner.ids())["vet"], "date": "2030-01-07"}
    del query[missing]
    answer = await partner.get("/appointments/available-slots", **query)
    assert answer.status == 400
    assert answer.data["errors"][0]["field"] == missing


@pytest.mark.parametrize("field", ["clientId", "patientId"])
async def test_booking_for_someone_unknown_is_404(partner: Partner, field: str) -> None:
    draft = await partner.draft() | {field: str(uuid4())}
    answer = await partner.post("/appointments", draft)
    assert answer.status == 404
    assert answer.data == {"message": "Resource not found"}


@pytest.mark.parametrize(("method", "path"), [(m, p) for m, p, _ in ENDPOINTS if "{" in p])
async def test_an_unknown_id_is_404(partner: Partner, method: str, path: str) -> None:
    answer = await partner.send(method, re.sub(r"\{\w+\}", str(uuid4()), path))
    assert answer.status == 404
    assert answer.data == {"message": "Resource not found"}


async def test_client_invoices_are_that_clients(partner: Partner) -> None:
    invoice = (await partner.get(f"/invoices/{(await partner.ids())['invoices']}")).data
    answer = await partner.get(f"/invoices/client/{invoice['clientId']}", limit="200")
    assert invoice in answer.data
    assert {each["clientId"] for each in answer.data} == {invoice["clientId"]}


async def test_low_stock_is_the_stock_that_is_low(partner: Partner) -> None:
    stock = (await partner.get("/stock", limit="200")).data
    low = (await partner.get("/stock/low", limit="200")).data
    assert low == [item for item in stock if item["isLow"]]
    assert len(low) == 15


# Authentication


@pytest.mark.parametrize(("method", "path", "permission"), ENDPOINTS)
async def test_authentication_6_1_without_a_key(
    partner: Partner, method: str, path: str, permission: str
) -> None:
    answer = await partner.anonymous().send(method, re.sub(r"\{\w+\}", str(uuid4()), path))
    assert answer.status == 401
    assert answer.data == {"message": "Authentication required"}


async def test_authentication_6_2_unknown_invalid_expired_and_revoked_look_the_same(
    partner: Partner,
) -> None:
    expired = await partner.with_key(expires="2026-01-01T00:00:00Z")
    revoked = await partner.with_key()
    await revoked.revoke()
    secrets = ["vk_" + "A" * 48, "nonsense", "", expired.secret, revoked.secret]
    answers = [await partner.as_key(secret).get("/clients") for secret in secrets]
    twice = [("X-API-Key", partner.secret or ""), ("X-API-Key", partner.secret or "")]
    answers.append(await partner.anonymous().send("GET", "/clients", headers=twice))
    assert {answer.status for answer in answers} == {401}
    assert {answer.text for answer in answers} == {'{"message":"Invalid or expired API key"}'}
    own = {"date", "x-request-id"}  # of each call, whatever it asks for
    headers = [{n: v for n, v in each.headers.items() if n.lower() not in own} for each in answers]
    assert all(each == headers[0] for each in headers)


async def test_authentication_1_there_is_no_other_scheme(partner: Partner) -> None:
    anonymous = partner.anonymous()
    for headers in ({"Authorization": f"Bearer {partner.secret}"}, {"Api-Key": partner.secret}):
        answer = await anonymous.send("GET", "/clients", headers=headers)
        assert answer.data == {"message": "Authentication required"}
    answer = await anonymous.send("GET", f"/clients?api_key={partner.secret}")
    assert answer.status == 401


async def test_authentication_2_the_form_of_a_key(partner: Partner) -> None:
    assert partner.secret.startswith("vk_")
    body = partner.secret.removeprefix("vk_")
    assert len(body) == 48
    assert base64.urlsafe_b64encode(base64.urlsafe_b64decode(body)).decode() == body


async def test_authentication_4_the_default_limit_is_a_thousand(partner: Partner) -> None:
    plain = await partner.with_key(limit=DEFAULT_LIMIT)
    answer = await plain.get("/appointments/types")
    assert answer.headers["X-RateLimit-Limit"] == "1000"


# Errors and limits


async def test_errors_are_objects_with_a_message(partner: Partner) -> None:
    for path in ("/clients/x", "/clients?limit=0", "/nowhere", f"/stock/{uuid4()}"):
        answer = await partner.get(path)
        assert answer.status in (400, 404)
        assert isinstance(answer.data["message"], str)


async def test_limits_1_and_2_the_429(partner: Partner) -> None:
    key = await partner.with_key(limit=3)
    left = [(await key.get("/appointments/types")).headers for _ in range(3)]
    assert [headers["X-RateLimit-Remaining"] for headers in left] == ["2", "1", "0"]
    answer = await key.get("/appointments/types")
    assert answer.status == 429
    assert answer.data["message"] == "Rate limit exceeded. Please try again later."
    wait = answer.data["retryAfter"]
    assert isinstance(wait, int)
    assert 1 <= wait <= 3600
    assert answer.headers["Retry-After"] == str(wait)
    assert answer.headers["X-RateLimit-Limit"] == "3"
    assert answer.headers["X-RateLimit-Remaining"] == "0"
    assert set(answer.data) == {"message", "retryAfter"}


# Versioning


async def test_versioning_1_and_2(partner: Partner) -> None:
    document = (await partner.anonymous().get("/openapi.json")).data
    assert document["info"]["version"] == "1.0.0"
    assert all(server["url"].endswith("/api/v1") for server in document["servers"])
    described = {
        (method.upper(), path) for path, item in document["paths"].items() for method in item
    }
    assert described == {(method, path) for method, path, _ in ENDPOINTS}


async def test_ids_are_uuids_and_times_are_utc_everywhere(partner: Partner) -> None:
    texts = [
        (await partner.get(path, limit="200")).text
        for path in ("/clients", "/patients", "/stock", "/stock/low")
    ]
    for record in [each for text in texts for each in json.loads(text)]:
        assert UUID(record["id"]).version == 8
        for name in ("createdAt", "updatedAt"):
            if record.get(name) is not None:
                assert TIME_FORM(record[name])
                assert datetime.fromisoformat(record[name]) <= datetime.now(UTC)
