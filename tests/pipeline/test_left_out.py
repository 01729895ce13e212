"""What a practice system leaves out: no document, form or answer offers it."""

import aiohttp
import pytest

from gateway.contract.operations import OPERATIONS
from tests.admin.manager import manager_of
from tests.conftest import Begin
from tests.partner import Partner
from tests.world import SOME_ID, World

LEFT_OUT = frozenset({"stock", "invoices", "slots", "vets", "booking"})
GONE = {"list_stock", "get_stock_item", "list_low_stock", "get_invoice", "list_client_invoices"}
GONE |= {"list_available_slots", "create_appointment"}


@pytest.fixture
async def partner(partner_of: Begin) -> Partner:
    return await partner_of(World(left_out=LEFT_OUT))


async def test_fact_33_it_is_not_found_after_the_key_and_the_permission_and_uncounted(
    partner: Partner,
) -> None:
    nobody, all_of_it = await partner.with_key(permissions=[]), await partner.with_key(limit=1)
    for known in OPERATIONS:
        path = known.path.replace("{id}", SOME_ID).replace("{stockId}", SOME_ID)
        path = path.replace("{clientId}", SOME_ID)
        if known.id in GONE:
            answer = await all_of_it.send(known.method, path)
            assert (answer.status, answer.data) == (404, {"message": "Resource not found"})
            assert "X-RateLimit-Limit" not in answer.headers
            assert (await nobody.send(known.method, path)).status == 403
            assert (await partner.anonymous().send(known.method, path)).status == 401
    assert (await all_of_it.get("/clients")).status == 200


async def test_no_document_has_it(partner: Partner) -> None:
    for caller in (partner.anonymous(), await partner.with_key()):
        document = (await caller.get("/openapi.json")).data
        told = {
            each["operationId"] for path in document["paths"].values() for each in path.values()
        }
        assert told == {known.id for known in OPERATIONS} - GONE
        assert {"Invoice", "StockItem", "Slot"}.isdisjoint(document["components"]["schemas"])


async def test_invoices_of_a_client_need_the_clients(partner_of: Begin) -> None:
    partner = await partner_of(World(left_out=frozenset({"clients"})))
    document = (await partner.anonymous().get("/openapi.json")).data
    assert "/invoices/{id}" in document["paths"]
    assert "/invoices/client/{clientId}" not in document["paths"]


async def test_no_form_of_the_panel_has_it(
    partner: Partner, session: aiohttp.ClientSession
) -> None:
    manager = await manager_of(partner.gateway, session)
    form = (await manager.get("/keys/new")).text
    for gone in ("STOCK_READ", "INVOICE_READ", "APPOINTMENT_CREATE", "scope.stock"):
        assert gone not in form
    for there in ("CLIENT_READ", "APPOINTMENT_READ", "scope.clients"):
        assert there in form
    preview = (await manager.get("/preview")).text
    assert 'value="clients"' in preview
    assert 'value="stock"' not in preview
    directory = await manager.get("/directory")
    assert directory.status == 200
    assert "available-slots" not in directory.text


async def test_it_is_told_once_at_the_start(
    partner_of: Begin, capsys: pytest.CaptureFixture[str]
) -> None:
    await partner_of(World(left_out=LEFT_OUT))
    logged = capsys.readouterr()
    told = "".join(logged).count("not offered, as the mapping leaves it out")
    assert told == 1
