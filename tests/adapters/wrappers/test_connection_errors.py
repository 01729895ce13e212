"""A server that can't be reached: the reason is said in words, with its code and no secret."""

import asyncio
import errno
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from socket import create_server

import pytest
from click.testing import CliRunner
from sqlalchemy.engine import URL

from adapters.base import BackendUnavailable
from adapters.rest.client import Client, Request
from adapters.sql.engines import open_engine
from adapters.wrappers.connection_errors import reason
from gateway.cli import main
from tests.adapters.servers import execute, server

ROOT = Path(__file__).resolve().parents[3]
# what has a meaning in an address
PASSWORD = "h@i/d#d%e?n:"
ODD = re.compile("hidden|h@i|h%40i|gw_")


@pytest.fixture(scope="module", params=["postgresql", "mysql"])
def account(request: pytest.FixtureRequest) -> Iterator[URL]:
    """The address of an account that may log in, and see none of the server's databases."""
    address = server(request.param)
    outside, name = address.render_as_string(hide_password=False), f"gw_{token_hex(4)}"
    mysql = request.param == "mysql"
    who, by = (f"{name}@'%'", "IDENTIFIED BY") if mysql else (name, "PASSWORD")
    made = f"CREATE USER {who} {by} '{PASSWORD}'"
    execute(outside, made)
    try:
        yield address.set(username=name, password=PASSWORD)
    finally:
        execute(outside, f"DROP USER {who}")


async def said_by_the_gateway(url: str) -> str:
    engine = open_engine(url, timeout=2, booking_timeout=2)
    try:
        with pytest.raises(BackendUnavailable) as caught:
            await engine.ping()
        return str(caught.value)
    finally:
        await engine.aclose()


def unreachable(address: URL) -> list[tuple[URL, str]]:
    """Addresses, each wrong in one way, and what is to be said of it."""
    mysql = address.get_backend_name() == "mysql"
    there = address.set(database="mysql" if mysql else "postgres")
    own = server(address.get_backend_name()).set(database="no_such_database")
    return [
        (own, f"it has no database of that name ({1049 if mysql else '3D000'})"),
        (there.set(host="no-such-host.invalid"), "its host name is not found (EAI_"),
        (there.set(port=1), "nothing listens there (ECONNREFUSED)"),
    ]


async def test_the_gateway_says_why_a_database_cannot_be_reached(account: URL) -> None:
    for address, said in unreachable(account):
        found = await said_by_the_gateway(address.render_as_string(hide_password=False))
        assert found.startswith("the database can't be reached: ")
        assert said in found
        assert found.endswith("; see backend.url")
        assert not ODD.search(found)


async def test_a_draft_says_it_too_and_names_its_option(account: URL) -> None:
    for address, said in unreachable(account):
        url = address.render_as_string(hide_password=False)
        command = ["backend", "draft", "--url", url]
        result = await asyncio.to_thread(CliRunner().invoke, main, command)
        assert result.exit_code == 1
        assert result.stderr.startswith("--url: the database on ")
        assert said in result.stderr
        assert not ODD.search(result.stderr)


async def test_a_check_says_it_too(account: URL, tmp_path: Path) -> None:
    for address, said in unreachable(account):
        url = address.render_as_string(hide_password=False)
        environment = {
            "GATEWAY_BACKEND_URL": url,
            "GATEWAY_STATE": str(tmp_path),
            "GATEWAY_BACKEND_MAPPING": str(ROOT / "adapters/sample/clinic.yaml"),
        }
        runner, command = CliRunner(env=environment), ["backend", "check", "--json"]
        result = await asyncio.to_thread(runner.invoke, main, command)
        assert result.exit_code == 1
        assert said in result.output
        assert not ODD.search(result.output)


@pytest.mark.parametrize("account", ["mysql"], indirect=True)  # PostgreSQL's may trust everybody
async def test_an_account_without_a_right_and_one_with_a_wrong_password_are_told_apart(
    account: URL,
) -> None:
    # the address of the docs: each odd letter by its number
    right = str(account.render_as_string(hide_password=False))
    assert "h%40i%2Fd%23d%25e%3Fn%3A" in right
    found = await said_by_the_gateway(f"{right.rstrip('/')}/mysql")
    assert "the account has no right to that database (1044); see backend.url" in found
    wrong = account.set(password="another", database="mysql")
    found = await said_by_the_gateway(wrong.render_as_string(hide_password=False))
    assert "it refuses the account or its password (1045); see backend.url" in found


async def test_a_postgresql_account_that_is_not_known_is_refused() -> None:
    address = server("postgresql").set(username="gw_nobody", password="hidden")
    found = await said_by_the_gateway(address.render_as_string(hide_password=False))
    assert re.search("it refuses the account or its password .28(000|P01).; see backend.url", found)
    assert not ODD.search(found)


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
async def test_a_server_that_says_nothing_has_not_answered_in_time(kind: str) -> None:
    # connections wait in its queue, and nobody takes them
    with create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        found = await said_by_the_gateway(f"{kind}://gw_a:hidden@127.0.0.1:{port}/clinic")
    assert found == (
        "the database can't be reached: there was no answer in time (ETIMEDOUT); see backend.url"
    )


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:1", "nothing listens there (ECONNREFUSED)"),
        ("http://no-such-host.invalid", "its host name is not found (EAI_"),
    ],
)
async def test_a_backend_that_speaks_http_is_told_of_in_the_same_words(url: str, said: str) -> None:
    client = Client(url, timeout=5)
    try:
        with pytest.raises(BackendUnavailable) as caught:
            await client.read(Request(label="ping", method="GET"), {})
    finally:
        await client.aclose()
    assert f"ping: it cannot be reached: {said}" in str(caught.value)
    assert str(caught.value).endswith("; see backend.url")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError("Multiple exceptions: [Errno 111] of ::1, [Errno 111] of 127.0.0.1"),
            "nothing listens there (ECONNREFUSED)",
        ),
        (OSError(errno.ENETUNREACH, "x"), "no way leads to that host (ENETUNREACH)"),
        (OSError(errno.EPIPE, "x"), None),
        (ValueError(), None),
        (ValueError([]), None),
    ],
)
def test_the_codes_of_the_system_have_words(error: Exception, said: str | None) -> None:
    assert reason(error) == said


def test_a_certificate_that_is_not_trusted_is_called_so() -> None:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED]")
    error.verify_message = "self-signed certificate"
    assert reason(error) == "its certificate is not to be trusted (self-signed certificate)"
