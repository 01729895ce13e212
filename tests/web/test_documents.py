"""The description of the interface, as the key that asks for it sees it."""

from typing import Any

import pytest

from gateway.contract.access import LEVELS, AccessLevel, Permission
from gateway.contract.operations import OPERATIONS
from gateway.contract.resources import GOVERNED
from tests.conftest import Begin
from tests.partner import ALL, Partner
from tests.world import World

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def partner(lasting_partner: Partner) -> Partner:
    return lasting_partner


def operations(document: dict[str, Any]) -> set[str]:
    return {each["operationId"] for item in document["paths"].values() for each in item.values()}


def fields(document: dict[str, Any], title: str) -> list[str]:
    """The members of a resource, those of objects in lists with their path."""
    found = []
    for name, schema in document["components"]["schemas"][title]["properties"].items():
        items = schema.get("items", {}).get("properties")
        found += [name] if items is None else [f"{name}[].{member}" for member in items]
    return found


async def described(partner: Partner, **key: Any) -> dict[str, Any]:
    answer = await (await partner.with_key(**key)).get("/openapi.json")
    assert answer.status == 200
    document: dict[str, Any] = answer.data
    return document


async def test_without_a_key_it_is_the_whole_interface(partner: Partner) -> None:
    document = (await partner.anonymous().get("/openapi.json")).data
    assert operations(document) == {each.id for each in OPERATIONS}
    for resource in GOVERNED:
        assert fields(document, resource.title) == list(resource.paths)


@pytest.mark.parametrize("level", LEVELS)
async def test_a_key_sees_the_fields_that_are_open_at_its_levels(
    partner: Partner, level: AccessLevel
) -> None:
    policy = partner.gateway.gateway.keeper.policy()
    document = await described(partner, level=level)
    for resource in GOVERNED:
        opened = policy.redactor(resource.name, level).visible
        assert fields(document, resource.title) == [p for p in resource.paths if p in opened]
    scoped = await described(partner, level=level, scopes={"clients": "STANDARD"})
    assert "phone" in fields(scoped, "Client")
    assert "address" not in fields(scoped, "Client")
    assert fields(scoped, "Invoice") == fields(document, "Invoice")


@pytest.mark.parametrize("permission", ALL)
async def test_a_key_sees_only_the_operations_that_it_may_call(
    partner: Partner, permission: str
) -> None:
    document = await described(partner, permissions=[permission])
    allowed = [each for each in OPERATIONS if each.permission is Permission(permission)]
    assert operations(document) == {each.id for each in allowed}
    assert document["components"]["schemas"].keys() >= {each.returns.title for each in allowed}


async def test_a_filter_by_a_field_that_is_hidden_from_the_key_is_not_described(
    partner: Partner,
) -> None:
    for level, expected in (("BASIC", False), ("STANDARD", True)):
        document = await described(partner, level=level)
        names = [each["name"] for each in document["paths"]["/clients"]["get"]["parameters"]]
        assert ("updatedSince" in names) is expected
        assert "search" in names


@pytest.mark.asyncio(loop_scope="function")
async def test_a_filter_that_the_practice_system_cannot_serve_is_400_and_not_described(
    partner_of: Begin,
) -> None:
    partner = await partner_of(World(unfilterable=frozenset({"updatedAt", "category"})))
    document = (await partner.anonymous().get("/openapi.json")).data
    for path, unserved, served in (
        ("/clients", {"updatedSince": "2026-01-01T00:00:00Z"}, {"search": "ab"}),
        ("/stock", {"category": "FOOD"}, {"search": "ab"}),
    ):
        names = {each["name"] for each in document["paths"][path]["get"]["parameters"]}
        assert names.isdisjoint(unserved)
        assert names >= served.keys()
        refused = await partner.get(path, **unserved)
        assert refused.status == 400
        assert refused.data["errors"][0]["problem"] == "cannot be served by the practice system"
        assert (await partner.get(path, **served)).status == 200


async def test_the_pages_are_those_of_the_same_key(partner: Partner) -> None:
    basic = await partner.with_key(level="BASIC", permissions=["CLIENT_READ"])
    reference = (await basic.get("/docs/reference")).text
    assert "<code>/clients/{id}</code>" in reference
    assert "<code>/stock</code>" not in reference
    assert ">address<" not in reference
    page = (await basic.get("/docs")).text
    assert "<code>GET /clients/{id}</code>" in page
    assert "<td><code>BASIC</code></td>" in page.split('id="overview"')[1].split("</section>")[0]
    assert "/stock" not in page
    whole = (await partner.anonymous().get("/docs/reference")).text
    assert "<code>/stock</code>" in whole
    assert ">address<" in whole
    assert "<code>GET /stock</code>" in (await partner.anonymous().get("/docs")).text


async def test_each_operation_says_at_which_level_the_key_sees_it(partner: Partner) -> None:
    document = await described(partner, level="BASIC", scopes={"clients": "STANDARD"})
    said = {
        each["operationId"]: each.get("x-access-level")
        for item in document["paths"].values()
        for each in item.values()
    }
    for operation in OPERATIONS:
        governed = "STANDARD" if operation.returns.name == "clients" else "BASIC"
        assert said[operation.id] == (governed if operation.returns.governed else None)
    assert "x-access-level" not in (await partner.anonymous().get("/openapi.json")).text


async def test_a_key_that_is_not_good_gets_no_document(partner: Partner) -> None:
    gone = await partner.with_key()
    await gone.revoke()
    for path in ("/openapi.json", "/docs", "/docs/reference", "/docs/docs.css"):
        assert (await gone.get(path)).status == 401
        assert (await partner.as_key("vk_x").get(path)).status == 401
