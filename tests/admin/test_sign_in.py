"""Signing in: who comes in, who waits, and what of a session is left when it is over."""

from datetime import UTC, datetime, timedelta

import aiohttp
import pytest

from gateway.administrators.administrator import AdministratorStore
from gateway.administrators.passwords import FREE, AttemptLimiter, Passwords
from gateway.administrators.sessions import SessionStore
from tests.admin.manager import PASSWORD, guessed, manager_of, tried
from tests.conftest import RunningGateway


async def test_whoever_is_not_signed_in_is_sent_to_sign_in_and_back(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    manager = await manager_of(running_gateway, session)
    assert (await manager.get("/keys")).status == 200
    page = await manager.other().get("/keys?q=x")
    assert page.status == 303
    assert page.headers["Location"] == "/sign-in?next=%2Fkeys%3Fq%3Dx"


async def test_the_one_time_password_lets_in_once_and_asks_for_another(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    boss = await manager_of(running_gateway, session)
    made = await boss.fill("/people", {"name": "Denis", "role": "auditor"})
    assert made.status == 200
    password = made.text.split("data-secret>")[1].split("<")[0]
    denis = boss.other("Denis")
    assert (await denis.sign_in(password)).headers["Location"] == "/account"
    assert (await denis.get("/keys")).headers["Location"] == "/account"
    new = {"new": PASSWORD, "again": PASSWORD}
    changed = await denis.fill("/account", new, "/account/password")
    assert changed.headers["Location"] == "/keys"
    assert (await denis.get("/keys")).status == 200
    again = boss.other("Denis")
    assert (await again.sign_in(password)).status == 401
    assert (await again.sign_in()).status == 303


@pytest.mark.parametrize("name", ["Claire", "Nobody"])
async def test_after_five_failures_the_next_attempt_waits_whoever_is_named(
    running_gateway: RunningGateway, session: aiohttp.ClientSession, name: str
) -> None:
    manager = await manager_of(running_gateway, session)
    guesser = manager.other(name)
    assert [(await guesser.sign_in("a guess of mine")).status for _ in range(5)] == [401] * 5
    # four more make the wait longer than this test takes; without the five there would be none
    await guessed(running_gateway.gateway.store, name, 4)
    told = await guesser.sign_in(PASSWORD)
    assert told.status == 429
    assert int(told.headers["Retry-After"]) >= 1


async def test_one_name_is_one_name_however_it_is_spelt(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    manager = await manager_of(running_gateway, session)
    for name in ("Claire", "CLAIRE", "\uff23laire", "Cl\uff41ire", "  claire"):
        assert (await manager.other(name).sign_in("a guess of mine")).status == 401
    failures = AttemptLimiter(running_gateway.gateway.store)
    assert await failures.try_now("name claire", datetime.now(UTC)) > timedelta()


async def test_a_stolen_cookie_opens_nothing_once_its_owner_has_signed_out(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    manager = await manager_of(running_gateway, session)
    thief = manager.other()
    thief.cookies.update(manager.cookies)
    assert (await thief.get("/keys")).status == 200
    await manager.fill("/keys", {}, "/sign-out")
    assert (await thief.get("/keys")).status == 303


ASTRAY = (
    *("https://evil.example", "//evil.example", "/\\evil.example"),
    *("javascript:1", "/\nx", "x"),
)


async def test_signing_in_leads_to_pages_of_this_panel_alone(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    claire = await manager_of(running_gateway, session)
    for wanted in ASTRAY:
        manager = claire.other()
        page = await manager.get("/sign-in")
        form = {"asked": page.field("asked"), "name": "Claire", "password": PASSWORD}
        told = await manager.send("/sign-in", form | {"next": wanted})
        assert (told.status, told.headers["Location"]) == (303, "/keys"), wanted


async def test_what_lets_somebody_in_rests_nowhere(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    manager = await manager_of(running_gateway, session)
    files = [file for file in running_gateway.folder.rglob("*") if file.is_file()]
    kept = b"".join(file.read_bytes() for file in files)
    assert b"argon2id" in kept
    held = [*manager.cookies.values(), PASSWORD]
    assert len(held) >= 3
    assert [each for each in held if each.encode() in kept] == []


async def test_the_old_password_cannot_be_guessed_without_waiting(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    """Whoever comes by an open browser or a stolen cookie does not know it."""
    manager = await manager_of(running_gateway, session)
    new = {"new": "another battery staple", "again": "another battery staple"}
    guess = await manager.fill("/account", {"old": "a guess", **new}, "/account/password")
    assert guess.status == 422
    store = running_gateway.gateway.store
    [signed_in] = await SessionStore(store).list(datetime.now(UTC))
    await tried(store, f"session {signed_in.id}", FREE + 3)
    told = await manager.fill("/account", {"old": PASSWORD, **new}, "/account/password")
    assert told.status == 429
    assert int(told.headers["Retry-After"]) >= 1
    deeds = (await manager.get("/audit/deeds")).plain
    assert "password change refused" in deeds
    await AttemptLimiter(store).forgive(f"session {signed_in.id}")
    assert (
        await manager.fill("/account", {"old": PASSWORD, **new}, "/account/password")
    ).status == 303


async def test_whoever_signs_in_again_has_one_session(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    manager = await manager_of(running_gateway, session)
    before = manager.other()
    before.cookies.update(manager.cookies)
    page = await manager.other().get("/sign-in")
    manager.cookies["clinic-gateway-asked"] = page.field("asked")
    form = {"asked": page.field("asked"), "name": "Claire", "password": PASSWORD}
    assert (await manager.send("/sign-in", form)).status == 303
    assert (await manager.get("/keys")).status == 200
    assert (await before.get("/keys")).status == 303


async def test_a_password_that_is_changed_while_somebody_signs_in_with_it_lets_nobody_in(
    running_gateway: RunningGateway,
    session: aiohttp.ClientSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manager = await manager_of(running_gateway, session)
    administrators = AdministratorStore(running_gateway.gateway.store)
    claire = await administrators.find("Claire")
    assert claire is not None
    looks = Passwords.is_right

    async def changed_meanwhile(self: Passwords, kept: str, password: str) -> bool:
        is_right = await looks(self, kept, password)
        await administrators.set_password(claire.administrator.id, "another", one_time=False)
        return is_right

    monkeypatch.setattr(Passwords, "is_right", changed_meanwhile)
    late = manager.other()
    assert (await late.sign_in()).status == 403
    assert (await late.get("/keys")).status == 303


async def test_whoever_changes_a_password_that_was_reset_meanwhile_changes_nothing(
    running_gateway: RunningGateway,
    session: aiohttp.ClientSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manager = await manager_of(running_gateway, session)
    administrators = AdministratorStore(running_gateway.gateway.store)
    makes = Passwords.hash

    async def reset_meanwhile(self: Passwords, password: str) -> str:
        claire = await administrators.find("Claire")
        assert claire is not None
        await administrators.set_password(claire.administrator.id, "reset", one_time=True)
        return await makes(self, password)

    monkeypatch.setattr(Passwords, "hash", reset_meanwhile)
    form = {"old": PASSWORD, "new": "another battery staple", "again": "another battery staple"}
    assert (await manager.fill("/account", form, "/account/password")).status == 403
    claire = await administrators.find("Claire")
    assert claire is not None
    assert (claire.password, claire.administrator.one_time) == ("reset", True)
