"""People in the panel: what is wrong with a form stands at its field."""

import re
from typing import Any

import aiohttp
import pytest

from gateway.administrators.administrator import AdministratorStore
from tests.admin.manager import manager_of
from tests.conftest import RunningGateway


async def test_what_is_wrong_stands_at_its_field_and_at_no_other(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    manager = await manager_of(running_gateway, session)
    await manager.fill("/people", {"name": "Denis", "role": "auditor"})
    [claire, denis] = sorted(
        await AdministratorStore(running_gateway.gateway.store).list(), key=lambda each: each.name
    )
    forms: list[tuple[str, dict[str, Any], str, str]] = [
        ("/people/act", {"id": denis.id, "do": "remove", "confirm": "D"}, "confirm", "<input"),
        ("/people/act", {"id": denis.id, "do": "role", "role": "boss"}, "role", "<select"),
        ("/people/act", {"id": claire.id, "do": "role", "role": "auditor"}, "last", "<select"),
        ("/people", {"name": "Eve", "role": "boss"}, "role", "<fieldset"),
        ("/people", {"name": "", "role": "admin"}, "name", "<input"),
    ]
    for to, form, name, tag in forms:
        page = await manager.fill("/people", form, to)
        assert page.status == 422
        [told] = re.findall(rf'<[^>]* aria-describedby="{name}-wrong"[^>]*>', page.text)
        assert told.startswith(tag)
        before, _ = page.text.split(f'id="{name}-wrong"')
        if "id" in form:  # in the row of whom it is about
            assert form["id"] in before.split("<tr>")[-1]
        else:
            assert "</table>" in before


@pytest.mark.parametrize(("left_out", "name"), [("permission", "permissions"), ("level", "level")])
async def test_a_group_of_choices_is_tied_to_what_is_wrong_with_it(
    running_gateway: RunningGateway, session: aiohttp.ClientSession, left_out: str, name: str
) -> None:
    manager = await manager_of(running_gateway, session)
    form = {"name": "Insurer", "permission": "CLIENT_READ", "level": "BASIC", "limit": "1"}
    page = await manager.fill("/keys/new", {**form, left_out: ""})
    assert page.status == 422
    assert f'<fieldset aria-describedby="{name}-wrong">' in page.text
    assert f'id="{name}-wrong"' in page.text
