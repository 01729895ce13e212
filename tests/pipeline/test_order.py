"""The order of the checks: what is wrong twice is told by the check that comes first."""

from uuid import uuid4

import pytest

from gateway.contract.errors import KeyInvalid
from tests.conftest import Begin
from tests.partner import Partner
from tests.world import SOME_ID, World


def left(answer: object) -> int:
    return int(answer.headers["X-RateLimit-Remaining"])  # type: ignore[attr-defined]


async def test_the_key_comes_before_the_path(partner: Partner) -> None:
    for caller, message in (
        (partner.anonymous(), "Authentication required"),
        (partner.as_key("vk_nonsense"), "Invalid or expired API key"),
    ):
        for method, path in (("GET", "/nowhere"), ("DELETE", "/clients"), ("GET", "/clients/%00")):
            answer = await caller.send(method, path)
            assert (answer.status, answer.data) == (401, {"message": message})
            assert answer.headers["WWW-Authenticate"] == 'ApiKey header="X-API-Key"'


async def test_the_path_comes_before_the_permission_and_is_not_counted(partner: Partner) -> None:
    nobody = await partner.with_key(permissions=[], limit=1)
    for _ in range(3):
        assert (await nobody.get("/nowhere")).status == 404
        answer = await nobody.send("PUT", "/stock/low")
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
        assert "X-RateLimit-Limit" not in answer.headers


async def test_the_permission_comes_before_the_limit_and_every_look_at_the_request(
    partner_of: Begin,
) -> None:
    world = World()
    partner = await partner_of(world)
    reader = await partner.with_key(permissions=["APPOINTMENT_READ"], limit=1)
    for method, path in (("GET", "/clients/nonsense?x=1"), ("POST", "/appointments")):
        answer = await reader.send(method, path, body=b"nonsense" if method == "POST" else None)
        assert answer.status == 403
        assert "X-RateLimit-Limit" not in answer.headers
    assert left(await reader.get("/appointments/types")) == 0
    assert [query.resource for query in world.asked] == ["appointmentTypes"]


async def test_every_call_counts_from_the_limit_on_however_it_ends(partner_of: Begin) -> None:
    partner = await (await partner_of(World())).with_key(limit=6)
    sent = [
        ("GET", "/clients/nonsense", None, 400),
        ("GET", f"/clients/{SOME_ID}", None, 200),
        ("POST", "/appointments", b"{}", 415),
        ("POST", "/appointments", {}, 400),
        ("POST", "/appointments", b" " * 70_000, 415),
        ("GET", "/clients?limit=0", None, 400),
    ]
    for rest, (method, path, body, status) in zip(range(5, -1, -1), sent, strict=True):
        answer = await partner.send(method, path, body=body)
        assert (answer.status, left(answer)) == (status, rest)
    for method, path in (("GET", "/clients/nonsense"), ("POST", "/appointments")):
        answer = await partner.send(method, path)
        assert (answer.status, left(answer)) == (429, 0)
        assert answer.headers["Retry-After"] == str(answer.data["retryAfter"])


async def test_nothing_is_asked_of_the_practice_system_before_the_request_is_sound(
    partner_of: Begin,
) -> None:
    world = World()
    partner = await partner_of(world)
    for path in ("/clients/nonsense", "/clients?limit=0", "/clients?cursor=x", "/stock?nme=1"):
        assert (await partner.get(path)).status == 400
    assert world.asked == []


async def test_a_key_revoked_while_the_body_arrives_books_nothing(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    booked = []
    partner = await partner_of(World(create=lambda draft: booked.append(draft) or {}))
    gateway = partner.gateway
    revoked = []
    find = gateway.gateway.ring.find

    def found_once(digest: bytes, now: object) -> object:
        revoked.append(digest)
        return find(digest, now) if len(revoked) == 1 else None

    monkeypatch.setattr(gateway.gateway.ring, "find", found_once)
    draft = {"clientId": SOME_ID, "patientId": SOME_ID, "vetId": SOME_ID}
    answer = await partner.post("/appointments", draft | {"scheduledAt": "2099-01-01T09:00:00Z"})
    assert answer.data == {"message": KeyInvalid.message}
    assert booked == []


async def test_documents_need_no_key_but_no_wrong_one_and_count_for_nothing(
    partner: Partner,
) -> None:
    limited = await partner.with_key(permissions=["STOCK_READ"], level="BASIC", limit=1)
    for path in ("/openapi.json", "/docs"):
        whole = await partner.anonymous().get(path)
        assert whole.status == 200
        assert (await partner.as_key("vk_nonsense").get(path)).status == 401
        assert (await partner.anonymous().send("POST", path)).status == 405
        seen = await limited.get(path)
        assert "X-RateLimit-Limit" not in seen.headers
        assert "purchasePrice" in whole.text
        assert "purchasePrice" not in seen.text
        assert "/clients" not in seen.text
    assert left(await limited.get("/stock")) == 0
    assert (await partner.anonymous().get(f"/openapi.json/{uuid4()}")).status == 401
