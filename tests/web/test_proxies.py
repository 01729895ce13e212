import json
from collections.abc import Sequence

import pytest
from multidict import CIMultiDict

from gateway.contract.errors import NotARequest
from gateway.web.addresses import Proxies
from tests.conftest import Start
from tests.heard import Heard
from tests.partner import Partner
from tests.web.wire import head, say

TYPES = "/api/v1/appointments/types"
NGINX, OUTER = "10.0.0.5", "10.1.7.7"
TRUSTED = (NGINX, "10.1.0.0/16", "2001:db8::/32")


def caller(proxies: Proxies, *values: str) -> str:
    """Who calls through nginx, which sends these X-Forwarded-For."""
    return proxies.caller(NGINX, CIMultiDict([("X-Forwarded-For", each) for each in values]))


def test_only_those_that_are_named_are_proxies() -> None:
    proxies = Proxies(TRUSTED)
    assert all(map(proxies.trusts, (NGINX, OUTER, "2001:db8::1")))
    assert not any(map(proxies.trusts, ("10.0.0.6", "127.0.0.1", "::1", "fe80::1%eth0", "x", "")))
    assert not Proxies().trusts(NGINX)


def test_a_proxy_tells_for_whom_it_speaks() -> None:
    assert caller(Proxies(TRUSTED), "192.0.2.1") == "192.0.2.1"
    assert caller(Proxies(TRUSTED), " 2001:db8:9::1 ") == "2001:db8:9::1"
    assert caller(Proxies(TRUSTED)) == NGINX
    assert caller(Proxies(TRUSTED, hops=2), f"192.0.2.1, {OUTER}") == "192.0.2.1"


@pytest.mark.parametrize(
    ("hops", "values"),
    [
        (1, ["192.0.2.1, 192.0.2.2"]),
        (1, ["192.0.2.1", "192.0.2.2"]),
        (1, [""]),
        (1, ["unknown"]),
        (1, ["192.0.2.1:80"]),
        (1, ["<script>"]),
        (2, ["192.0.2.1"]),
        (2, ["192.0.2.1, 192.0.2.2"]),
        (2, [f"192.0.2.9, 192.0.2.1, {OUTER}"]),
    ],
)
def test_what_cannot_be_believed_is_refused(hops: int, values: Sequence[str]) -> None:
    with pytest.raises(NotARequest, match="X-Forwarded-For"):
        caller(Proxies(TRUSTED, hops), *values)


@pytest.mark.parametrize(
    ("trusted", "sent", "status", "address"),
    [
        ("", "192.0.2.1", 401, "127.0.0.1"),
        ("127.0.0.2", "192.0.2.1, unknown", 401, "127.0.0.1"),
        ("127.0.0.0/8", "192.0.2.1", 401, "192.0.2.1"),
        ("127.0.0.0/8", None, 401, "127.0.0.1"),
        ("127.0.0.0/8", "vk_secret", 400, None),
    ],
)
async def test_only_a_trusted_proxy_is_believed(
    start_gateway: Start,
    monkeypatch: pytest.MonkeyPatch,
    trusted: str,
    sent: str | None,
    status: int,
    address: str | None,
) -> None:
    gateway = await start_gateway(trusted_proxies=trusted)
    events = Heard()
    monkeypatch.setattr(gateway.gateway.public.front.observers, "events", events)
    lines = ["Host: x", "X-API-Key: junk", "Connection: close"]
    lines += [] if sent is None else [f"X-Forwarded-For: {sent}"]
    request = "\r\n".join([f"GET {TYPES} HTTP/1.1", *lines, "", ""]).encode()
    heard = await say(gateway.port, request)
    assert heard.statuses == [status]
    assert b"secret" not in heard.data
    seen = [each["address"] for each in events.details if "address" in each]
    assert seen == ([] if address is None else [address])


async def test_what_a_proxy_says_of_host_and_scheme_changes_nothing(
    start_gateway: Start, partner: Partner
) -> None:
    gateway = await start_gateway("proxied", trusted_proxies="127.0.0.1")
    partner = partner.as_key((await gateway.mint()).secret)
    spoofed = ("X-Forwarded-Host: evil", "X-Forwarded-Proto: evil", "Forwarded: host=evil")
    sent = head(partner, "GET", "/api/v1/clients?limit=1", *spoofed, "Connection: close")
    heard = await say(gateway.port, sent)
    assert heard.statuses == [200]
    assert b"evil" not in heard.data


async def test_a_refusal_of_what_a_proxy_says_is_in_our_shape(start_gateway: Start) -> None:
    gateway = await start_gateway(trusted_proxies="127.0.0.1", proxy_hops=2)
    request = f"GET {TYPES} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n".encode()
    [(status, headers, body)] = (await say(gateway.port, request)).answers
    assert (status, headers["connection"]) == (400, "close")
    assert json.loads(body)["errors"] == [
        {"field": "X-Forwarded-For", "problem": "must come once, with 2 addresses"}
    ]
