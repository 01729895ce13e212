"""Keys in the panel: made once, shown once, changed, rotated, revoked; and found among many."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from gateway.administrators.administrator import Role
from tests.admin.manager import Manager, Page, manager_of
from tests.conftest import RunningGateway

NASTY = "<script>alert(1)</script>\"'&{{7*7}}"
_NUMBERS = itertools.count(1)
KEY: dict[str, Any] = {
    "contact": "Anna, 06 12 34 56 78",
    "permission": "CLIENT_READ",
    "level": "BASIC",
    "limit": "500",
    "expires": "",
}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def manager(lasting_gateway: RunningGateway) -> AsyncIterator[Manager]:
    async with aiohttp.ClientSession() as session:
        yield await manager_of(lasting_gateway, session)


def secret_of(page: Page) -> str:
    assert page.status == 200, page.plain
    return page.text.split('id="secret" data-secret>')[1].split("<")[0]


def another() -> str:
    """A name that no key has yet."""
    return f"Insurer {next(_NUMBERS)}"


async def made(manager: Manager, **changes: Any) -> tuple[str, str]:
    """A new key's id and secret."""
    form = await manager.get("/keys/new")
    sent = {"csrf": form.csrf, "id": form.field("id"), "name": another(), **KEY, **changes}
    page = await manager.send("/keys/new", sent)
    return sent["id"], secret_of(page)


async def edited(manager: Manager, key_id: str, settings: dict[str, Any]) -> Page:
    """The form of a key, opened and sent with other settings."""
    at = f"/keys/{key_id}/edit"
    page = await manager.get(at)
    return await manager.send(at, {"csrf": page.csrf, "was": page.field("was"), **settings})


async def status_of(running: RunningGateway, manager: Manager, secret: str, path: str) -> int:
    await running.gateway.ring.refresh()
    async with manager.session.get(running.base + path, headers={"X-API-Key": secret}) as answer:
        return answer.status


async def test_a_key_that_was_made_opens_what_it_may_until_it_is_revoked(
    manager: Manager, lasting_gateway: RunningGateway
) -> None:
    name = another()
    key_id, secret = await made(manager, name=name)
    assert await status_of(lasting_gateway, manager, secret, "/clients") == 200
    assert await status_of(lasting_gateway, manager, secret, "/stock") == 403
    at = f"/keys/{key_id}"
    wrong = await manager.fill(at, {"confirm": "Insurer"}, f"{at}/revoke")
    assert wrong.status == 422
    assert await status_of(lasting_gateway, manager, secret, "/clients") == 200
    gone = await manager.fill(at, {"confirm": name}, f"{at}/revoke")
    assert gone.headers["Location"] == at
    assert await status_of(lasting_gateway, manager, secret, "/clients") == 401


async def test_a_form_that_is_sent_twice_makes_one_key_and_shows_its_secret_once(
    manager: Manager,
) -> None:
    form = await manager.get("/keys/new")
    sent = {"csrf": form.csrf, "id": form.field("id"), "name": another(), **KEY}
    first = await manager.send("/keys/new", sent)
    secret = secret_of(first)
    assert "no-store" in first.headers["Cache-Control"]
    again = await manager.send("/keys/new", {**sent, "name": "Twice the same form"})
    assert again.status == 409
    for page in (again, await manager.get("/keys"), await manager.get(f"/keys/{sent['id']}")):
        assert secret not in page.text
        assert "Twice the same form" not in page.text


async def test_a_rotated_key_has_two_secrets_for_a_while_and_one_form_rotates_once(
    manager: Manager, lasting_gateway: RunningGateway
) -> None:
    key_id, old = await made(manager)
    page = await manager.get(f"/keys/{key_id}")
    sent = {"csrf": page.csrf, "hint": page.field("hint"), "overlap": "1h"}
    new = secret_of(await manager.send(f"/keys/{key_id}/rotate", sent))
    assert await status_of(lasting_gateway, manager, old, "/clients") == 200
    assert await status_of(lasting_gateway, manager, new, "/clients") == 200
    assert (await manager.send(f"/keys/{key_id}/rotate", sent)).status == 409
    assert await status_of(lasting_gateway, manager, new, "/clients") == 200


async def test_what_is_chosen_shows_what_the_key_will_see(manager: Manager) -> None:
    form = await manager.get("/keys/new")
    chosen = {"csrf": form.csrf, "permission": "CLIENT_READ", "level": "BASIC"}
    basic = await manager.send("/keys/sees", chosen)
    assert "First name" in basic.text.split("Does not see")[0]
    assert "Telephone" in basic.text.split("Does not see")[1]
    full = await manager.send("/keys/sees", chosen | {"scope.clients": "FULL"})
    assert "Telephone" in full.text.split("Does not see")[0]
    nothing = await manager.send("/keys/sees", {"csrf": form.csrf, "level": "BASIC"})
    assert "Choose what the partner may do" in nothing.text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "a" * 201),
        ("name", "two\nlines"),
        ("contact", "two\nlines"),
        ("permission", "EVERYTHING"),
        ("level", "ALL"),
        ("limit", "0"),
        ("limit", "ten"),
        ("limit", "9" * 5000),
        ("expires", "2020-01-01"),
        ("expires", "soon"),
        ("bookings", "0"),
        ("bookings", "ten"),
        ("networks", "192.0.2.1/24"),
        ("networks", " ".join(f"10.0.0.{number}" for number in range(101))),
    ],
)
async def test_what_is_wrong_with_a_form_is_said_and_nothing_is_made(
    manager: Manager, lasting_gateway: RunningGateway, field: str, value: str
) -> None:
    before = len((await lasting_gateway.gateway.keys.list()).keys)
    page = await manager.fill("/keys/new", {"id": "", "name": another(), **KEY, field: value})
    assert page.status == 422
    assert "Nothing was changed" in page.text
    assert len((await lasting_gateway.gateway.keys.list()).keys) == before


async def test_a_key_is_bound_to_networks_and_to_bookings_a_day(
    manager: Manager, lasting_gateway: RunningGateway
) -> None:
    bounds = {"networks": "192.0.2.0/24,\n 2001:DB8::/32 192.0.2.0/24", "bookings": "12"}
    key_id, secret = await made(manager, **bounds)
    key = (await lasting_gateway.gateway.keys.show(key_id)).key
    assert (key.networks, key.bookings_per_day) == (("192.0.2.0/24", "2001:db8::/32"), 12)
    assert await status_of(lasting_gateway, manager, secret, "/clients") == 401
    page = await manager.get(f"/keys/{key_id}")
    assert "<code>192.0.2.0/24</code>, <code>2001:db8::/32</code>" in page.text
    assert "<dt>Bookings a day</dt><dd>12</dd>" in page.text
    form = await manager.get(f"/keys/{key_id}/edit")
    assert ">192.0.2.0/24\n2001:db8::/32</textarea>" in form.text
    await edited(manager, key_id, {"name": key.name, **KEY, "networks": "", "bookings": ""})
    key = (await lasting_gateway.gateway.keys.show(key_id)).key
    assert (key.networks, key.bookings_per_day) == ((), None)
    assert await status_of(lasting_gateway, manager, secret, "/clients") == 200


async def test_other_settings_hold_from_then_on_and_what_changed_is_noted(
    manager: Manager, lasting_gateway: RunningGateway
) -> None:
    name = another()
    key_id, secret = await made(manager, name=name)
    changed = {"name": name, **KEY, "permission": "STOCK_READ", "expires": "2036-01-31"}
    saved = await edited(manager, key_id, changed)
    assert saved.status == 303
    assert await status_of(lasting_gateway, manager, secret, "/stock") == 200
    assert await status_of(lasting_gateway, manager, secret, "/clients") == 403
    # the end of that day where the clinic is
    key = (await lasting_gateway.gateway.keys.show(key_id)).key
    assert key.expires_at is not None
    assert key.expires_at.isoformat() == "2036-01-31T23:00:00+00:00"
    deeds = [
        line
        for line in deeds_of(lasting_gateway)
        if (line["deed"], line["subject"]) == ("key changed", key_id)
    ]
    assert [line["result"] for line in deeds] == ["begun", "done"]
    assert deeds[1]["who"] == "Claire"
    assert deeds[1]["details"].keys() == {"permissions", "expiresAt"}


async def test_who_changes_a_key_meanwhile_is_not_undone(
    manager: Manager, lasting_gateway: RunningGateway
) -> None:
    name = another()
    key_id, _ = await made(manager, name=name)
    at = f"/keys/{key_id}/edit"
    opened = await manager.get(at)
    first = {"name": name, **KEY, "contact": "Ben"}
    assert (await edited(manager, key_id, first)).status == 303
    late = {"csrf": opened.csrf, "was": opened.field("was"), "name": name, **KEY, "limit": "7"}
    page = await manager.send(at, {**late, "show": "1"})
    assert page.field("was") == late["was"]
    page = await manager.send(at, late)
    assert (page.status, at in page.text) == (409, True)
    assert "Somebody else has changed this key" in page.plain
    key = (await lasting_gateway.gateway.keys.show(key_id)).key
    assert (key.contact, key.limit) == ("Ben", 500)


async def test_of_forms_that_are_sent_at_once_one_changes_and_one_rotates(
    manager: Manager, lasting_gateway: RunningGateway
) -> None:
    name = another()
    key_id, _ = await made(manager, name=name)
    for what, field in (("edit", "was"), ("rotate", "hint")):
        page = await manager.get(f"/keys/{key_id}{'/edit' if what == 'edit' else ''}")
        sent = {"csrf": page.csrf, field: page.field(field), "name": name, **KEY, "overlap": "1h"}
        pages = await asyncio.gather(
            *(
                manager.send(f"/keys/{key_id}/{what}", {**sent, "limit": str(limit)})
                for limit in (1, 2, 3)
            )
        )
        assert sorted(each.status for each in pages)[1:] == [409, 409]
    _, secrets = await lasting_gateway.gateway.keys.show(key_id)
    assert len(secrets) == 2


def deeds_of(running: RunningGateway) -> list[dict[str, Any]]:
    import json

    lines = [
        json.loads(line)
        for file in sorted((running.folder / "audit").glob("*.jsonl"))
        for line in file.read_bytes().splitlines()
    ]
    return [line for line in lines if line.get("kind") == "deed"]


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.AUDITOR])
async def test_whoever_may_not_touch_keys_reads_them_and_changes_nothing(
    manager: Manager, lasting_gateway: RunningGateway, role: Role
) -> None:
    key_id, _ = await made(manager)
    other = await manager_of(lasting_gateway, manager.session, role=role, name=f"Denis {role}")
    page = await other.get(f"/keys/{key_id}")
    assert page.status == 200
    assert "/revoke" not in page.text
    csrf = page.csrf
    for path in ("/keys/new", f"/keys/{key_id}/edit", "/people"):
        assert (await other.get(path)).status == 403
    for path in ("new", "sees", f"{key_id}/edit", f"{key_id}/rotate", f"{key_id}/revoke"):
        assert (await other.send(f"/keys/{path}", {"csrf": csrf, **KEY})).status == 403


async def test_texts_are_shown_as_texts(manager: Manager) -> None:
    key_id, _ = await made(manager, name=NASTY, contact=NASTY)
    for path in ("/keys", f"/keys/{key_id}", f"/keys/{key_id}/edit", "/keys?q=%3Cscript%3E"):
        page = await manager.get(path)
        assert "<script>alert" not in page.text
        assert "&lt;script&gt;" in page.text


async def test_keys_are_found_by_name_contact_and_beginning(manager: Manager) -> None:
    _, secret = await made(manager, name="Wanted insurer")
    await made(manager, name="Pharmacie Élan", contact="elan@example.org")
    for wanted, found in (
        ("insurer want", "Wanted insurer"),
        ("ÉLAN", "Pharmacie Élan"),
        ("elan@", "Pharmacie Élan"),
        (secret[:8], "Wanted insurer"),
    ):
        page = await manager.get(f"/keys?q={wanted}", **{"HX-Request": "true"})
        names = {"Wanted insurer", "Pharmacie Élan"} - {found}
        assert found in page.text
        assert not any(name in page.text for name in names)
    assert "No key fits" in (await manager.get("/keys?q=nobody")).text


async def test_a_call_of_just_now_is_not_taken_for_none(
    manager: Manager, lasting_gateway: RunningGateway
) -> None:
    key_id, secret = await made(manager)
    assert "No call yet" in (await manager.get(f"/keys/{key_id}")).text
    await status_of(lasting_gateway, manager, secret, "/clients")
    page = await manager.get(f"/keys/{key_id}")
    assert "It has called" in page.text
    assert "1 of 500 this hour" in page.plain
