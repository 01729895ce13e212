"""What protects the panel: every page asks for a right, every form for its token and its origin."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest

from gateway.admin.guard import POLICY
from gateway.admin.panel import static
from gateway.admin.views import PAGES
from gateway.administrators.administrator import RIGHTS, AdministratorStore, Right, Role
from gateway.administrators.log import DeedLog
from gateway.administrators.passwords import LONGEST_PAUSE, pause_after
from gateway.administrators.sessions import IDLE, LASTS, SessionStore
from gateway.assembly.listeners import check_panel
from gateway.settings import Settings, StartRefused
from gateway.store import Store, StoreError
from tests.admin.manager import PASSWORD, Manager, manager_of
from tests.conftest import RunningGateway, Start

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
WITHOUT_SIGNING_IN = {("GET", "/sign-in"), ("POST", "/sign-in")}


@pytest.fixture
async def manager(running_gateway: RunningGateway, session: aiohttp.ClientSession) -> Manager:
    return await manager_of(running_gateway, session)


def path_of(page: str) -> str:
    return re.sub(r"\{\w+\}", "0" * 8, page)


async def test_nobody_sees_or_does_anything_without_signing_in(manager: Manager) -> None:
    stranger = manager.other()
    for page in PAGES:
        if (page.method, page.path) in WITHOUT_SIGNING_IN:
            continue
        if page.method == "GET":
            answer = await stranger.get(path_of(page.path))
        else:
            answer = await stranger.send(path_of(page.path), {})
        assert answer.status == 303, page
        assert answer.headers["Location"].startswith("/sign-in"), page


@pytest.mark.parametrize("role", Role)
async def test_a_role_does_what_its_rights_allow_and_nothing_else(
    manager: Manager, running_gateway: RunningGateway, role: Role
) -> None:
    other = await manager_of(running_gateway, manager.session, role=role, name="Denis")
    for page in PAGES:
        if page.needs is None or page.needs in RIGHTS[role]:
            continue
        ask = other.get if page.method == "GET" else None
        answer = await (ask(path_of(page.path)) if ask else other.send(path_of(page.path), {}))
        assert answer.status == 403, page
    assert (await other.get("/keys")).status == 200


def test_an_auditor_only_reads() -> None:
    assert RIGHTS[Role.AUDITOR] == {Right.READ}
    assert Right.KEYS not in RIGHTS[Role.OPERATOR]


FORGED: list[dict[str, str]] = [
    {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "", "Sec-Fetch-Site": "same-site"},
]


async def test_a_form_of_another_site_does_nothing(manager: Manager) -> None:
    page = await manager.get("/keys/new")
    for headers in FORGED:
        answer = await manager.send("/sign-out", {"csrf": page.csrf}, **headers)
        assert answer.status == 403, headers
        assert (await manager.get("/keys")).status == 200


async def test_every_action_asks_for_the_token_of_its_session(
    manager: Manager, running_gateway: RunningGateway
) -> None:
    other = await manager_of(running_gateway, manager.session, name="Denis")
    foreign = (await other.get("/keys/new")).csrf
    for page in PAGES:
        if page.method == "GET" or page.needs is None:
            continue
        for token in ({}, {"csrf": ""}, {"csrf": foreign}):
            assert (await manager.send(path_of(page.path), token)).status == 403, page


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-www-form-urlencoded", b"name=\xff"),
        ("application/x-www-form-urlencoded; charset=none", b"name=a"),
        ("multipart/form-data", b"name"),
    ],
)
async def test_what_no_browser_sends_is_refused_and_is_no_fault(
    manager: Manager, kind: str, body: bytes
) -> None:
    stranger = manager.other()
    page = await stranger.send("/sign-in", body, **{"Content-Type": kind})
    assert page.status == 400
    assert "did not arrive whole" in page.plain


async def test_a_session_is_another_one_after_signing_in(manager: Manager) -> None:
    """Whoever planted a cookie before does not share what comes after."""
    planted = dict(manager.cookies)
    again = manager.other()
    again.cookies.update(planted)
    await again.fill("/keys", {}, "/sign-out")
    again.cookies["clinic-gateway"] = "planted"
    await again.sign_in()
    assert again.cookies["clinic-gateway"] not in {"planted", *planted.values()}
    thief = manager.other()
    thief.cookies["clinic-gateway"] = "planted"
    assert (await thief.get("/keys")).status == 303


async def test_a_form_to_sign_in_that_was_not_fetched_here_does_not_count(
    manager: Manager,
) -> None:
    page = await manager.other().get("/sign-in")
    form = {"asked": page.field("asked"), "name": "Claire", "password": "x"}
    assert (await manager.other().send("/sign-in", form)).status == 403


async def test_every_answer_says_what_a_browser_may_do_with_it(manager: Manager) -> None:
    for path in ("/keys", "/sign-in", "/nothing", "/keys/new", static("panel.css")):
        headers = (await manager.get(path)).headers
        assert headers["Content-Security-Policy"] == POLICY
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in headers
        kept = "immutable" if path.startswith("/static/") else "no-store"
        assert kept in headers["Cache-Control"]
    assert "unsafe" not in POLICY
    assert "frame-ancestors 'none'" in POLICY


async def test_files_come_packed_to_whoever_takes_them_so(manager: Manager) -> None:
    at = static("vendor/htmx/htmx.min.js")
    plain = await manager.get(at, **{"Accept-Encoding": "identity"})
    packed = await manager.get(at, **{"Accept-Encoding": "br, gzip"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert int(packed.headers["Content-Length"]) < int(plain.headers["Content-Length"]) / 2
    assert packed.text == plain.text
    assert packed.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"


async def test_the_cookie_is_for_this_site_and_for_no_script(manager: Manager) -> None:
    told: list[str] = []
    page = await manager.other().get("/sign-in")
    told += page.headers.getall("Set-Cookie")
    other = manager.other()
    signed_in = await other.sign_in()
    told += signed_in.headers.getall("Set-Cookie")
    assert len(told) >= 2
    for cookie in (each for each in told if '=""' not in each):
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie


async def test_behind_tls_the_cookie_is_bound_to_this_very_host(
    start_gateway: Start, session: aiohttp.ClientSession
) -> None:
    running = await start_gateway(admin_url="https://panel.clinic.example")
    panel = running.gateway.panel
    assert panel is not None
    own = {"Host": "panel.clinic.example", "Origin": "https://panel.clinic.example"}
    manager = Manager(panel.url, session, headers=own)
    page = await manager.get("/sign-in")
    assert "Secure" in page.headers["Set-Cookie"]
    store = AdministratorStore(running.gateway.store)
    await manager_of(running, session)
    assert len(await store.list()) == 1
    form = {
        "asked": page.field("asked"),
        "name": "Claire",
        "password": "correct horse battery staple",
    }
    signed_in = await manager.send("/sign-in", form, **own)
    cookies = [
        each for each in signed_in.headers.getall("Set-Cookie") if each.startswith("__Host-")
    ]
    names = sorted(each.partition("=")[0] for each in cookies)
    assert names[0] == "__Host-clinic-gateway"
    assert names[1].startswith("__Host-clinic-gateway-device-")
    for cookie in cookies:
        assert "Secure" in cookie
        assert "Path=/" in cookie
        assert "Domain" not in cookie


async def test_under_another_name_the_panel_is_not_there(manager: Manager) -> None:
    for host in ("evil.example", "127.0.0.1", "localhost:1", ""):
        for path in ("/sign-in", "/static/panel.css", "/nowhere"):
            assert (await manager.get(path, Host=host)).status in {400, 421}, (host, path)


def test_the_wait_grows_and_has_an_end() -> None:
    waits = [pause_after(times) for times in range(60)]
    assert waits[:5] == [timedelta()] * 5
    assert waits[5:9] == [timedelta(seconds=each) for each in (1, 2, 4, 8)]
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_PAUSE


async def test_a_session_ends_after_its_time_and_when_it_is_idle(store: Store) -> None:
    administrators, sessions = AdministratorStore(store), SessionStore(store)
    claire = await administrators.add("Claire", Role.ADMIN, "x", NOW, one_time=False)
    token = await sessions.begin(claire.id, "x", {}, NOW, "127.0.0.1", "a browser")
    assert await sessions.find(token, NOW + IDLE - timedelta(seconds=1), is_use=False) is not None
    assert await sessions.find(token, NOW + IDLE) is None
    moment = NOW
    while moment < NOW + LASTS - IDLE:
        moment += IDLE - timedelta(minutes=1)
        assert await sessions.find(token, moment) is not None
    assert await sessions.find(token, NOW + LASTS) is None


async def test_what_the_page_asks_for_by_itself_is_no_use_of_it(store: Store) -> None:
    claire = await AdministratorStore(store).add("C", Role.ADMIN, "x", NOW, one_time=False)
    sessions = SessionStore(store)
    token = await sessions.begin(claire.id, "x", {}, NOW, "127.0.0.1", "a browser")
    for minutes in range(1, 30):
        at = NOW + timedelta(minutes=minutes)
        assert await sessions.find(token, at, is_use=False) is not None
    assert await sessions.find(token, NOW + IDLE, is_use=False) is None


OPEN = {"admin_listen": "0.0.0.0:8082"}
URL = {"admin_url": "https://panel.clinic.example"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (OPEN, "set admin_url"),
        ({**OPEN, "admin_url": "http://panel.clinic.example"}, "https://"),
        ({**OPEN, **URL}, "without TLS"),
        ({"admin_listen": "192.0.2.7:8082", **URL}, "without TLS"),
        ({"admin_listen": "panel.clinic.example:8082", **URL}, "without TLS"),
        ({"admin_listen": "[::]:8082", **URL}, "without TLS"),
    ],
)
def test_a_panel_open_to_the_network_without_protection_does_not_start(
    changes: dict[str, str], said: str
) -> None:
    with pytest.raises(StartRefused, match=said):
        check_panel(Settings.model_validate(changes))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"admin_listen": ""},
        {"admin_listen": "[::1]:8082"},
        {"admin_listen": "localhost:8082"},
        {**OPEN, **URL, "trusted_proxies": "10.0.0.5"},
        {**OPEN, **URL, "tls_certificate": Path("c.pem"), "tls_key": Path("k.pem")},
    ],
)
def test_a_panel_that_is_protected_starts(changes: dict[str, object]) -> None:
    check_panel(Settings.model_validate(changes))


async def test_behind_a_proxy_nobody_comes_past_it(
    start_gateway: Start, session: aiohttp.ClientSession
) -> None:
    proxied = {**OPEN, "admin_listen": "0.0.0.0:0", **URL}
    running = await start_gateway(trusted_proxies="192.0.2.1", **proxied)
    panel = running.gateway.panel
    assert panel is not None
    own = {"Host": "panel.clinic.example"}
    assert (await Manager(panel.url, session, headers=own).get("/sign-in")).status == 403
    through = await start_gateway("other", trusted_proxies="127.0.0.1", **proxied)
    assert through.gateway.panel is not None
    answer = await Manager(through.gateway.panel.url, session, headers=own).get("/sign-in")
    assert answer.status == 200
    two = own | {"X-Forwarded-For": "192.0.2.7, 192.0.2.8"}
    astray = Manager(through.gateway.panel.url, session, headers=two)
    page = await astray.get("/sign-in")
    form = {"asked": page.field("asked"), "name": "Claire", "password": PASSWORD}
    refused = await astray.send("/sign-in", form, Origin=URL["admin_url"])
    assert refused.status == 400
    assert "proxy" in refused.plain


async def test_without_an_address_there_is_no_panel(start_gateway: Start) -> None:
    running = await start_gateway(admin_listen="")
    assert running.gateway.panel is None


async def test_what_nobody_can_audit_is_not_done(
    manager: Manager, running_gateway: RunningGateway
) -> None:
    page = await manager.get("/people")
    folder = running_gateway.folder / "audit"
    moved = folder.rename(folder.with_name("gone"))
    folder.touch()
    try:
        form = {"csrf": page.csrf, "name": "Denis", "role": "auditor"}
        assert (await manager.send("/people", form)).status == 503
    finally:
        folder.unlink()
        moved.rename(folder)
    found = await AdministratorStore(running_gateway.gateway.store).find("Denis")
    assert found is None


async def test_what_was_done_is_not_said_to_be_undone_where_its_end_cannot_be_written(
    manager: Manager, running_gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise StoreError("the store is gone")

    page = await manager.get("/people")
    form = {"csrf": page.csrf, "name": "Denis", "role": "auditor"}
    monkeypatch.setattr(DeedLog, "add", broken)
    told = await manager.send("/people", form)
    assert told.status == 503
    assert "was done" in told.plain
    assert "nothing was changed" not in told.plain
    found = await AdministratorStore(running_gateway.gateway.store).find("Denis")
    assert found is not None


def test_a_page_is_registered_once() -> None:
    named = [(page.method, page.path) for page in PAGES]
    assert len(named) == len(set(named))
    assert all(page.needs is not None or page.path == "/sign-in" for page in PAGES)


async def test_from_a_page_that_is_not_there_one_goes_on_or_signs_out(manager: Manager) -> None:
    page = await manager.get("/nothing")
    assert page.status == 404
    assert 'href="/keys"' in page.text
    assert (await manager.send("/sign-out", {"csrf": page.csrf})).status == 303
    assert 'href="/keys"' not in (await manager.get("/nothing")).text
