"""Who the gateway says it is: a token is got once, renewed in time, and never asked for twice."""

import asyncio
import time
from pathlib import Path

import pytest

from adapters.base import BackendNonsense, BackendUnavailable, OutcomeUnknown
from adapters.rest import login as login_module
from adapters.rest.adapter import RestAdapter
from examples.json_cloud.backend import Cloud
from tests.adapters.clinic import a_draft, ask
from tests.adapters.rest.backends import ASK, WRITE, asking
from tests.adapters.rest.cloud import connect, listening, new_cloud, replaced
from tests.adapters.rest.raw import http, raw

LOGIN = "POST /v2/session"


async def test_many_calls_at_once_log_in_once(adapter: RestAdapter, cloud: Cloud) -> None:
    await asyncio.gather(*(adapter.read_many(ask("vets")) for _ in range(20)))
    assert cloud.calls.count(LOGIN) == 1


async def test_a_token_that_was_withdrawn_is_renewed_once_for_all(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    await adapter.read_many(ask("vets"))
    cloud._tokens.clear()
    await asyncio.gather(*(adapter.read_many(ask("vets")) for _ in range(10)))
    assert cloud.calls.count(LOGIN) == 2


async def test_a_token_is_renewed_before_it_ends(tmp_path: Path) -> None:
    cloud = new_cloud(token_lives=0.5)
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path, replaced(("seconds: ttl", "lifetime: 5")))
        await adapter.ping()
        await asyncio.sleep(0.6)
        await adapter.ping()  # refused, and renewed
        assert cloud.calls.count(LOGIN) == 2
        await adapter.aclose()
        short = connect(url, tmp_path, replaced(("seconds: ttl", "seconds: '`1`'")))
        await short.ping()
        cloud.calls.clear()
        await asyncio.sleep(0.85)
        await short.ping()
        assert cloud.calls == [LOGIN, "GET /v2/status"]
        await short.aclose()


async def test_a_booking_that_was_refused_for_its_token_is_sent_with_another(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    draft = await a_draft(adapter)
    known = cloud._tokens

    class Forgetful(dict[str, object]):
        def get(self, *args: object) -> object:
            if cloud.calls[-1] == "POST /v2/visits":
                cloud._tokens = known
                return known.get("") or args[1]
            return known.get(*args)  # type: ignore[arg-type]

    cloud._tokens = Forgetful()  # type: ignore[assignment]
    await adapter.create_appointment(draft)
    assert cloud.calls.count("POST /v2/visits") == 2
    assert [each["ext_ref"] for each in cloud.records.visits.values()].count(draft.reference) == 1


async def test_a_login_that_fails_says_which_settings_to_look_at(tmp_path: Path) -> None:
    async with listening(new_cloud()) as url:
        adapter = connect(url, tmp_path, replaced(("name: {secret: user}", "name: nobody")))
        with pytest.raises(BackendNonsense, match=r"backend\.user and backend\.password"):
            await adapter.ping()
        await adapter.aclose()


@pytest.mark.parametrize("answer", ['{"a": 1}', '{"token": 5}', '{"token": "x\\r\\ny: z"}', "[]"])
async def test_a_login_without_a_usable_token_is_turned_down(answer: str) -> None:
    login = {"post": "/login", "token": "token", "lifetime": 60}
    async with raw(http(answer)) as server, asking(server.url, login=login) as backend:
        with pytest.raises(BackendNonsense, match="no token"):
            await backend.read(ASK)
        assert len(server.seen) == 1


async def test_who_is_refused_for_ever_asks_only_once_more() -> None:
    login = {"post": "/login", "token": "token", "lifetime": 60}
    token, refused = http('{"token": "t"}'), http("{}", status="401 Unauthorized")
    answers = (token, refused, token, refused)
    async with raw(*answers) as server, asking(server.url, login=login) as backend:
        with pytest.raises(BackendNonsense):
            await backend.read(ASK)
        assert len(server.seen) == 4
        assert "Authorization: Bearer t\r\n" in server.seen[1]


async def test_a_login_that_was_turned_down_is_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    login = {"post": "/login", "token": "token", "lifetime": 60}
    refused = http("{}", status="401 Unauthorized")
    async with raw(refused) as server, asking(server.url, login=login) as backend:
        for _ in range(5):
            with pytest.raises(BackendNonsense, match=r"backend\.password"):
                await backend.read(ASK)
        assert len(server.seen) == 1
        monkeypatch.setattr(login_module, "REST", 0.0)
        with pytest.raises(BackendNonsense):
            await backend.read(ASK)
        assert len(server.seen) == 2


async def test_calls_that_are_refused_for_ever_do_not_log_in_each_time() -> None:
    login = {"post": "/login", "token": "token", "lifetime": 60}
    token, refused = http('{"token": "t"}'), http("{}", status="401 Unauthorized")
    answers = (token, refused, token, refused)
    async with raw(*answers) as server, asking(server.url, login=login) as backend:
        for _ in range(5):
            with pytest.raises(BackendNonsense):
                await backend.read(ASK)
        assert sum("POST /api/login" in each for each in server.seen) == 2


async def test_a_write_with_a_new_token_has_what_is_left_of_its_time() -> None:
    login = {"post": "/login", "token": "token", "lifetime": 60}

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.4)
        writer.write(http("{}", "Connection: close", status="401 Unauthorized"))
        await writer.drain()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    token = http('{"token": "t"}')
    async with (
        raw(token, late, token, silent) as server,
        asking(server.url, login=login) as backend,
    ):
        begun = time.monotonic()
        with pytest.raises(OutcomeUnknown):
            await backend.write(WRITE, 0.6)
        assert time.monotonic() - begun < 0.9
        assert len(server.seen) == 4


async def test_a_life_that_makes_no_sense_is_none() -> None:
    login = {"post": "/login", "token": "token", "seconds": "lives", "lifetime": 60}
    answers = (http('{"token": "t", "lives": -1}'), http())
    async with raw(*answers) as server, asking(server.url, login=login) as backend:
        for _ in range(5):
            await backend.read(ASK)
        assert sum("POST /api/login" in each for each in server.seen) == 1


async def test_a_login_that_is_down_is_a_backend_that_is_down() -> None:
    login = {"post": "/login", "token": "token", "lifetime": 60}
    busy = http("{}", status="503 Busy")
    async with raw(busy) as server, asking(server.url, login=login) as backend:
        with pytest.raises(BackendUnavailable):
            await backend.read(ASK)


async def test_user_and_password_go_as_http_has_them() -> None:
    async with raw(http()) as server, asking(server.url, basic=["user", "password"]) as backend:
        await backend.read(ASK)
        assert "Authorization: Basic Z2F0ZXdheTpjb3JyZWN0IGhvcnNl\r\n" in server.seen[0]


async def test_a_header_without_a_value_is_left_out() -> None:
    headers = {"X-None": None, "X-Some": 1}
    async with raw(http()) as server, asking(server.url, headers=headers) as backend:
        await backend.read(ASK)
        assert "X-Some: 1\r\n" in server.seen[0]
        assert "X-None" not in server.seen[0]
