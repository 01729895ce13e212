"""Tokens of OAuth 2: asked for as RFC 6749 has it, renewed in time, errors told without secrets."""

import asyncio
import time
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from adapters.base import BackendNonsense, BackendUnavailable
from adapters.doctor.rest import examine
from adapters.documents.problems import DocumentErrors
from adapters.examination import Examination, Verdict
from adapters.mapping.models import BackendMap
from adapters.rest import login as login_module
from adapters.rest.login import error_told
from tests.adapters.clinic import NOW
from tests.adapters.rest.backends import ASK, asking
from tests.adapters.rest.cloud import CREDENTIALS, connect, replaced
from tests.adapters.rest.raw import Talk, http, raw

OAUTH: dict[str, Any] = {"url": "/oauth2/token"}
TOKEN = http('{"access_token": "t1", "token_type": "bearer", "expires_in": 300}')
BASIC = f"Basic {b64encode(b'gateway:correct+horse').decode()}"


def form_of(request: str) -> dict[str, str]:
    return dict(parse_qsl(request.partition("\r\n\r\n")[2], strict_parsing=True))


async def test_fact_34_client_credentials_go_as_a_form_with_the_client_in_a_header() -> None:
    oauth = OAUTH | {"scope": "a b", "more": {"audience": "https://api.example.org"}}
    async with raw(TOKEN, http()) as server, asking(server.url, oauth=oauth) as backend:
        await backend.read(ASK)
        asked, read = server.seen
    assert asked.startswith("POST /api/oauth2/token HTTP/1.1\r\n")
    assert "Content-Type: application/x-www-form-urlencoded\r\n" in asked
    assert f"Authorization: {BASIC}\r\n" in asked
    assert form_of(asked) == {
        "grant_type": "client_credentials",
        "scope": "a b",
        "audience": "https://api.example.org",
    }
    assert "Authorization: Bearer t1\r\n" in read


async def test_the_client_goes_into_the_form_where_the_server_wants_it_there() -> None:
    oauth = OAUTH | {"authenticate": "body", "client": ["user", "token"]}
    async with raw(TOKEN, http()) as server, asking(server.url, oauth=oauth) as backend:
        await backend.read(ASK)
        asked = server.seen[0]
    assert "Authorization" not in asked
    assert form_of(asked) == {
        "grant_type": "client_credentials",
        "client_id": "gateway",
        "client_secret": "t0ken",
    }


async def test_a_refresh_token_of_the_settings_gets_tokens() -> None:
    oauth = OAUTH | {"grant": "refresh_token"}
    answers = (rotated("another"), http())
    async with raw(*answers) as server, asking(server.url, oauth=oauth) as backend:
        await backend.read(ASK)
        assert form_of(server.seen[0]) == {"grant_type": "refresh_token", "refresh_token": "t0ken"}
        assert backend.logins.rotates


async def test_a_refresh_token_that_came_is_used_until_it_is_refused() -> None:
    given = http('{"access_token": "t1", "expires_in": 300, "refresh_token": "r1"}')
    same = http('{"access_token": "t2", "expires_in": 300}')
    gone = http('{"error": "invalid_grant"}', status="400 Bad Request")
    expired = http("{}", status="401 Unauthorized")
    answers = (given, expired, same, http(), expired, gone, TOKEN, http())
    async with raw(*answers) as server, asking(server.url, oauth=OAUTH) as backend:
        await backend.read(ASK)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(login_module, "REST", 0.0)
            await backend.read(ASK)
        asked = [each for each in server.seen if "POST /api/oauth2/token" in each]
    grants = [form_of(each) for each in asked]
    assert [each["grant_type"] for each in grants] == [
        "client_credentials", "refresh_token", "refresh_token", "client_credentials"
    ]  # fmt: skip
    assert grants[1]["refresh_token"] == grants[2]["refresh_token"] == "r1"
    assert not backend.logins.rotates


@pytest.mark.parametrize(
    "blip",
    [
        http("{}", status="503 Busy"),
        http("{}", status="429 Too Many"),
        http("{}", status="500 Broken"),
        http('{"error": "invalid_client"}', status="401 Unauthorized"),
        http('{"token": "none"}'),
        http("<html>", status="404 Gone", kind="text/html"),
        http("<html>", status="400 Bad Request", kind="text/html"),
        http("{}", status="401 Unauthorized"),
        http('{"error": {"code": 1}}', status="400 Bad Request"),
        http('{"error": "invalid_request"}', status="400 Bad Request"),
        None,
    ],
)
async def test_a_blip_loses_no_refresh_token(
    blip: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_module, "REST", 0.0)
    oauth = OAUTH | {"grant": "refresh_token"}
    expired = http("{}", status="401 Unauthorized")
    answers = (rotated("r1"), http(), expired, blip, rotated("r2"), http())
    async with raw(*answers) as server, asking(server.url, oauth=oauth) as backend:
        await backend.read(ASK)
        with pytest.raises((BackendNonsense, BackendUnavailable)):
            await backend.read(ASK)
        await backend.read(ASK)
    asked = [form_of(each) for each in server.seen if "POST /api/oauth2/token" in each]
    assert [each["refresh_token"] for each in asked] == ["t0ken", "r1", "r1"]


async def test_a_refresh_token_that_has_ended_is_followed_by_that_of_the_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(login_module, "REST", 0.0)
    oauth = OAUTH | {"grant": "refresh_token"}
    expired = http("{}", status="401 Unauthorized")
    ended = http('{"error": "invalid_grant"}', status="400 Bad Request")
    answers = (rotated("r1"), http(), expired, ended, rotated("r2"), http())
    async with raw(*answers) as server, asking(server.url, oauth=oauth) as backend:
        for _ in range(2):
            await backend.read(ASK)
    asked = [form_of(each) for each in server.seen if "POST /api/oauth2/token" in each]
    assert [each["refresh_token"] for each in asked] == ["t0ken", "r1", "t0ken"]


async def test_the_check_warns_of_refresh_tokens_that_live_in_memory_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CREDENTIALS, "token", "t0ken")
    async with raw(rotated("r1")) as tokens, raw(http("[]")) as server:
        address = tokens.url.replace("/api", "/token")
        change = with_oauth(f"url: {address}, grant: refresh_token")
        adapter = connect(server.url, tmp_path, change)
        found = [it async for it in examine(adapter, Examination(now=NOW))]
        await adapter.aclose()
    [renewal] = [it for it in found if it.subject == "renewal"]
    assert "after this check, and after each restart, it refuses backend.token" in renewal.text
    assert renewal.verdict is Verdict.WARNING


async def test_another_grant_is_used_where_a_refresh_token_meets_a_broken_server() -> None:
    given = http('{"access_token": "t1", "expires_in": 300, "refresh_token": "r1"}')
    expired, broken = http("{}", status="401 Unauthorized"), http("{}", status="500 Broken")
    answers = (given, expired, broken, TOKEN, http())
    async with raw(*answers) as server, asking(server.url, oauth=OAUTH) as backend:
        await backend.read(ASK)
    asked = [form_of(each) for each in server.seen if "POST /api/oauth2/token" in each]
    assert [each["grant_type"] for each in asked] == [
        "client_credentials", "refresh_token", "client_credentials"
    ]  # fmt: skip


def rotated(refresh: str) -> bytes:
    return http(f'{{"access_token": "t1", "expires_in": 300, "refresh_token": "{refresh}"}}')


async def test_many_calls_ask_for_one_token() -> None:
    async with raw(TOKEN, http()) as server, asking(server.url, oauth=OAUTH) as backend:
        await asyncio.gather(*(backend.read(ASK) for _ in range(20)))
        assert sum("/oauth2/token" in each for each in server.seen) == 1
        assert backend.logins.count == 1


async def test_fact_34_a_token_is_renewed_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw(TOKEN, http(), TOKEN, http()) as server:
        async with asking(server.url, oauth=OAUTH) as backend:
            await backend.read(ASK)
            assert backend.logins.lives == 300
            now = time.monotonic()
            monkeypatch.setattr(login_module.time, "monotonic", lambda: now + 271)
            await backend.read(ASK)
        assert ["oauth2" in each for each in server.seen] == [True, False, True, False]


async def test_a_token_is_used_until_its_end_where_a_renewal_ahead_of_it_fails() -> None:
    busy = http("{}", status="503 Busy")
    answers = (TOKEN, http(), busy, http())
    async with raw(*answers) as server, asking(server.url, oauth=OAUTH) as backend:
        await backend.read(ASK)
        backend.logins._until = 0.0
        for _ in range(5):
            await backend.read(ASK)
        asked = ["oauth2" in each for each in server.seen]
        assert asked == [True, False, True, False, False, False, False, False]
        backend.logins._ends = 0.0
        with pytest.raises(BackendUnavailable, match="answers 503"):
            await backend.read(ASK)
        assert len(server.seen) == len(asked)


async def test_no_call_waits_long_for_a_token_while_the_old_one_is_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(login_module, "PATIENCE", 0.02)
    late = http('{"access_token": "t2", "expires_in": 300}')
    async with raw(TOKEN, http(), slowly(late), http()) as server:
        async with asking(server.url, oauth=OAUTH) as backend:
            await backend.read(ASK)
            backend.logins._until = 0.0
            while backend.logins.count == 1:
                await backend.read(ASK)
            await backend.read(ASK)
        assert "Bearer t1" in server.seen[3]
        assert "Bearer t2" in server.seen[-1]


async def test_a_call_that_is_cancelled_loses_no_token() -> None:
    async with raw(slowly(TOKEN), http()) as server, asking(server.url, oauth=OAUTH) as backend:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await backend.read(ASK)
        await backend.read(ASK)
        assert ["oauth2" in each for each in server.seen] == [True, False]


def slowly(answer: bytes) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2)
        writer.write(answer)
        await writer.drain()

    return talk


@pytest.mark.parametrize(
    ("error", "see"),
    [
        ("unsupported_grant_type", "backend.oauth.grant"),
        ("invalid_scope", "backend.oauth.scope"),
        ("invalid_client", "backend.user and backend.password"),
        ("invalid_request", "backend.oauth"),
    ],
)
async def test_the_servers_own_error_is_told_without_secrets(error: str, see: str) -> None:
    text = f'{{"error": "{error}", "error_description": "gateway/correct horse: \\u001b[31m no"}}'
    refused = http(text, status="400 Bad Request")
    async with raw(refused) as server, asking(server.url, oauth=OAUTH) as backend:
        with pytest.raises(BackendNonsense) as raised:
            await backend.read(ASK)
    said = str(raised.value)
    assert said == f"POST backend.oauth.url: it answers 400: {error}, ***/***: [31m no; see {see}"


@pytest.mark.parametrize(
    ("password", "said", "told"),
    [
        ("pässwörd", "bad pässwörd for u", "bad *** for u"),
        ("pässwörd", r"bad p\u00e4ssw\u00f6rd", "bad ***"),
        ("pässwörd", "bad p%c3%a4ssw%c3%b6rd", "bad ***"),
        ('a"b\\c/d', r'{"password": "a\"b\\c/d"}', '{"password": "***"}'),
        ('a"b\\c/d', r'{"password": "a\"b\\c\/d"}', '{"password": "***"}'),
        ("a b(c)", "?password=a+b%28c%29 or a%20b(c)", "?password=*** or ***"),
        ("abc", "no user abc", "no user ***"),
        ("", "the refresh token r3fr3sh was used", "the refresh token *** was used"),
    ],
)
def test_no_spelling_of_a_secret_is_told(password: str, said: str, told: str) -> None:
    secrets = {"user": "u", "password": password}
    assert error_told({"message": said}, secrets, ["r3fr3sh", ""]) == f": {told}"


async def test_tokens_that_the_server_gave_are_not_told() -> None:
    expired = http("{}", status="401 Unauthorized")
    basic = BASIC.removeprefix("Basic ")
    text = '{"error": "invalid_client", "error_description": "%s"}'
    refused = http(text % f"token-1, refresh-1, {basic}", status="401 Unauthorized")
    given = http('{"access_token": "token-1", "refresh_token": "refresh-1"}')
    answers = (given, expired, refused)
    async with raw(*answers) as server, asking(server.url, oauth=OAUTH) as backend:
        with pytest.raises(BackendNonsense, match=r"401: invalid_client, \*\*\*, \*\*\*, \*\*\*;"):
            await backend.read(ASK)


async def test_a_login_does_not_tell_the_token_that_it_gave() -> None:
    login = {"post": "/login", "token": "token", "lifetime": 60}
    refused = http('{"message": "token-1 still lives"}', status="403 Forbidden")
    answers = (http('{"token": "token-1"}'), http("{}", status="401 Unauthorized"), refused)
    async with raw(*answers) as server, asking(server.url, login=login) as backend:
        with pytest.raises(BackendNonsense, match=r"refused: \*\*\* still lives"):
            await backend.read(ASK)


async def test_a_login_tells_the_servers_own_error_too() -> None:
    login = {"post": "/login", "content": "form", "body": {"name": {"secret": "user"}},
             "token": "token", "lifetime": 60}  # fmt: skip
    refused = http('{"message": "this account is locked"}', status="403 Forbidden")
    async with raw(refused) as server, asking(server.url, login=login) as backend:
        with pytest.raises(BackendNonsense, match="403, refused: this account is locked: see"):
            await backend.read(ASK)
        assert server.seen[0].endswith("\r\n\r\nname=gateway")


async def test_a_token_server_that_is_down_is_a_backend_that_is_down() -> None:
    busy = http("<html>", status="503 Busy", kind="text/html")
    async with raw(busy) as server, asking(server.url, oauth=OAUTH) as backend:
        with pytest.raises(BackendUnavailable, match="answers 503"):
            await backend.read(ASK)


@pytest.mark.parametrize("answer", ["[]", "{}", "x", '{"access_token": "a\\r\\nb: c"}'])
async def test_an_answer_without_a_usable_token_is_turned_down(answer: str) -> None:
    async with raw(http(answer)) as server, asking(server.url, oauth=OAUTH) as backend:
        with pytest.raises(BackendNonsense, match="no access_token"):
            await backend.read(ASK)


async def test_tokens_may_come_from_another_address(tmp_path: Path) -> None:
    async with raw(TOKEN) as tokens, raw(http('{"up": true}')) as server:
        address = tokens.url.replace("/api", "/o/token/")
        adapter = connect(server.url, tmp_path, with_oauth(f"url: {address}"))
        await adapter.ping()
        await adapter.aclose()
        assert tokens.seen[0].startswith("POST /o/token/ HTTP/1.1\r\n")
        assert "Authorization: Bearer t1\r\n" in server.seen[0]


def test_a_secret_goes_over_no_open_line(tmp_path: Path) -> None:
    change = with_oauth("url: http://login.example.org/token")
    with pytest.raises(DocumentErrors, match=r"mapping\.yaml:7:\d+: must begin with https"):
        connect("https://cloud.example.org/v2", tmp_path, change)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("url: login.example.org/token", "must be a path such as /oauth2/token, or an address"),
        ("url: /t, grant: password", "client_credentials"),
        ("url: /t, grant: refresh_token", r"backend\.token is not set"),
        ("url: /t, client: [user, token]", r"backend\.token is not set"),
        ("url: /t, client: [user]", "client"),
        ("url: /t, more: {scope: a}", "scope is no further parameter"),
        ("url: /t, authenticate: header", "basic"),
        ("url: /t, token: x", "token is not known here"),
    ],
)
def test_what_is_wrong_is_said_at_its_line(tmp_path: Path, written: str, said: str) -> None:
    with pytest.raises(DocumentErrors, match=rf"mapping\.yaml:\d+:\d+: .*{said}"):
        connect("http://127.0.0.1:1/v2", tmp_path, with_oauth(written))


@pytest.mark.parametrize(
    "other", [{"basic": ["user", "password"]}, {"login": {"post": "/s", "token": "t"}}]
)
def test_only_one_scheme_writes_the_token(other: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"basic and oauth both|takes login or oauth"):
        BackendMap.model_validate({"oauth": OAUTH, **other})


def with_oauth(written: str) -> Any:
    text = """  login:
    post: /session
    body: {name: {secret: user}, password: {secret: password}}
    token: token
    seconds: ttl
    form: "Token {}"
"""
    return replaced((text, f"  oauth: {{{written}}}\n"))
