"""A masked field is shown in part, told of in the key's own document, and hidden for filters."""

from pathlib import Path
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator

from adapters.base import Page
from gateway.contract.resources import CLIENT, INVOICE
from tests.conftest import Begin
from tests.partner import Partner
from tests.policies import TEXT, never, part
from tests.world import World, record_of

CLIENTS = part(
    "clients",
    "BASIC: [id, firstName, {lastName: initial, phone: last(2), createdAt: year}]",
    "STANDARD: [lastName, phone, {email: domain}, createdAt, updatedAt]",
    "FULL: [email]",
    never("clients", "address"),
)
MASKED = part(
    "stock",
    "BASIC: [id, name, {category: initial}, isLow, {quantity: rounded(10), salePrice: rounded(5)}]",
    "STANDARD: [category, reference, unit, reorderThreshold, expiresAt, updatedAt, salePrice]",
    "FULL: [quantity, location, batchNumber, supplier, purchasePrice]",
    text=CLIENTS,
)
ANNA = record_of(CLIENT) | {
    "firstName": "Anna",
    "lastName": "Martin",
    "phone": "06 12 34 56 78",
    "email": "anna@example.org",
}


@pytest.fixture
def masked(tmp_path: Path) -> Path:
    file = tmp_path / "policies.yaml"
    file.write_text(MASKED, encoding="utf-8")
    return file


async def schema_of(partner: Partner, title: str) -> dict[str, Any]:
    document = (await partner.get("/openapi.json")).data
    schema: dict[str, Any] = document["components"]["schemas"][title]
    return schema


async def test_an_answer_shows_masked_values_as_the_keys_own_document_describes_them(
    partner_of: Begin, masked: Path
) -> None:
    world = World(one=lambda query: ANNA, many=lambda query: Page(records=[ANNA, ANNA]))
    partner = await partner_of(world, policy=masked)
    basic = await partner.with_key(level="BASIC")
    answer = await basic.get(f"/clients/{ANNA['id']}")
    assert answer.data == {
        "id": ANNA["id"],
        "firstName": "Anna",
        "lastName": "M.",
        "phone": "***78",
        "createdAt": "2026-01-01T00:00:00Z",
    }
    assert (await basic.get("/clients")).data == [answer.data] * 2
    schema = await schema_of(basic, "Client")
    OAS31Validator(schema, format_checker=OAS31Validator.FORMAT_CHECKER).validate(answer.data)
    members = schema["properties"]
    assert {name for name, each in members.items() if "x-mask" in each} == {
        "lastName",
        "phone",
        "createdAt",
    }
    assert members["phone"]["x-mask"] == "last(2)"
    assert "Masked: *** and the last 2 characters" in members["phone"]["description"]
    whole = await schema_of(await partner.with_key(level="FULL"), "Client")
    assert [name for name, each in whole["properties"].items() if "x-mask" in each] == []
    assert "address" not in whole["properties"]


async def test_a_scope_opens_the_whole_value_for_one_resource(
    partner_of: Begin, masked: Path
) -> None:
    partner = await partner_of(World(one=lambda query: ANNA), policy=masked)
    scoped = await partner.with_key(level="BASIC", scopes={"clients": "STANDARD"})
    shown = (await scoped.get(f"/clients/{ANNA['id']}")).data
    assert (shown["phone"], shown["email"]) == ("06 12 34 56 78", "***@example.org")


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/clients", {"search": "martin"}),
        ("/stock", {"category": "FOOD"}),
        ("/stock/low", {"category": "FOOD"}),
    ],
)
async def test_to_filter_by_a_masked_field_would_be_to_read_it(
    partner_of: Begin, masked: Path, path: str, params: dict[str, str]
) -> None:
    partner = await partner_of(World(), policy=masked)
    basic = await partner.with_key(level="BASIC")
    [name] = params
    refused = await basic.get(path, **params)
    assert refused.status == 400
    problem = {"field": name, "problem": "is not available at this access level"}
    assert refused.data["errors"] == [problem]
    document = (await basic.get("/openapi.json")).data
    offered = [each["name"] for each in document["paths"][path]["get"]["parameters"]]
    assert name not in offered
    assert (await (await partner.with_key(level="STANDARD")).get(path, **params)).status == 200


async def test_masks_reach_into_lists_and_keep_what_is_no_value(
    partner_of: Begin, tmp_path: Path
) -> None:
    old = 'BASIC: [id, number, clientId, status, "lines[].id"]'
    new = (
        'BASIC: [id, number, clientId, status, "lines[].id", {"lines[].total": rounded(10)},'
        ' {"payments[].amount": rounded(10)}, {"payments[].paidAt": year}]'
    )
    assert TEXT.count(old) == 1
    file = tmp_path / "policies.yaml"
    file.write_text(TEXT.replace(old, new), encoding="utf-8")
    invoice = record_of(INVOICE)
    line, payment = invoice["lines"][0], invoice["payments"][0]
    bill = invoice | {
        "lines": [line | {"total": "47.35"}, line | {"total": None}],
        "payments": [payment | {"amount": "-12.00", "paidAt": None}],
    }
    partner = await partner_of(World(one=lambda query: bill), policy=file)
    shown = (await (await partner.with_key(level="BASIC")).get(f"/invoices/{bill['id']}")).data
    assert [each["total"] for each in shown["lines"]] == ["50.00", None]
    assert shown["payments"] == [{"paidAt": None, "amount": "-10.00"}]
