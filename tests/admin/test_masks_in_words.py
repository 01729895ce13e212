"""Masks in the panel: told in the words of the page, wherever they are told."""

import asyncio
import html
import re
from pathlib import Path

import aiohttp

from tests.admin.manager import after, manager_of
from tests.conftest import Start
from tests.policies import TEXT


async def test_masks_are_told_in_words_of_the_page_before_a_call_and_after_it(
    start_gateway: Start, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    policy = tmp_path / "policies.yaml"
    lists = "BASIC: [id, firstName, lastName]\n  STANDARD: ["
    masked = "BASIC: [id, firstName, {lastName: initial, phone: last(2)}]\n  STANDARD: [lastName, "
    assert lists in TEXT
    policy.write_text(TEXT.replace(lists, masked), "utf-8")
    running = await start_gateway("masked", policy=policy)
    manager = await manager_of(running, session, language="fr")
    form = await manager.get("/keys/new")
    sent = {"csrf": form.csrf, "id": form.field("id"), "name": "Insurer", "limit": "500"}
    sent |= {"permission": "CLIENT_READ", "level": "BASIC"}
    told = "la première lettre et un point", "les 2 derniers caractères"
    sees = await manager.send("/keys/sees", sent)
    assert all(each in sees.plain for each in told)
    made = await manager.send("/keys/new", sent)
    secret = made.text.split('id="secret" data-secret>')[1].split("<")[0]
    await running.gateway.ring.refresh()
    async with session.get(f"{running.base}/clients", headers={"X-API-Key": secret}) as answer:
        assert answer.status == 200
    for _ in range(600):
        if seen := re.search(r'/audit/who\?[^"]+', (await manager.get("/audit")).text):
            break
        await asyncio.sleep(0.05)
    assert seen is not None
    who = await after(manager, html.unescape(seen[0]), "sont en cours de prise en compte")
    assert all(each in who.plain for each in told)
    assert "last(2)" not in sees.text + who.text
