"""Tells who calls and which host is called, and how often an address may call without a key."""

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from aiohttp import web
from aiohttp.web import HTTPBadRequest
from aiohttp_remotes import XForwardedStrict
from aiohttp_remotes.exceptions import RemoteError, UntrustedIP
from aiohttp_remotes.utils import check_ip, parse_trusted_element, remote_ip
from multidict import MultiMapping, istr

from gateway.contract.errors import NotARequest

HOST = istr("Host")
X_FORWARDED_FOR = "X-Forwarded-For"
# Bits of an IPv6 network -> how many times the connections of one address it may hold.
IPV6_NETWORKS = {64: 1, 56: 4}
# Tokens that come in a second, and the most that there may be.
RATE, BURST = 100.0, 200.0
# The most seconds that a call waits for its token.
LONGEST = 1.0
# Addresses that are remembered. Beyond these, the one that called longest ago is forgotten.
MOST = 10_000

# A name, an IPv4 address, or an IP literal in brackets, with a port or without.
_match = re.compile(
    r"(?P<name>(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+|\[(?P<literal>[0-9A-Fa-f:.]+)\])"
    r"(?::[0-9]*)?"
).fullmatch


def ip_of(address: str) -> IPv4Address | IPv6Address:
    """Reads a socket's address without its interface, as of %eth0; raises ValueError."""
    return ip_address(address.partition("%")[0])


def networks_of(address: str) -> Mapping[Hashable, int]:
    """Returns each network that an address counts in -> how many times the connections it may hold.

    With IPv6 a network of 64 bits counts as one address. Homes mostly get one of 56 bits.
    """
    try:
        ip = ip_of(address)
    except ValueError:
        return {address: 1}
    if not isinstance(ip, IPv6Address):
        return {ip: 1}
    if ip.ipv4_mapped is not None:
        return {ip.ipv4_mapped: 1}
    return {IPv6Network((ip, bits), strict=False): times for bits, times in IPV6_NETWORKS.items()}


class AddressBuckets:
    """A bucket of tokens for each address that calls without a valid key; `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # when each bucket will be full again; a full one need not be remembered
        self._full_at: OrderedDict[Hashable, float] = OrderedDict()

    def take(self, address: str) -> float:
        """Takes a token; returns the seconds until it is there, LONGEST at most."""
        now, network = self._clock(), next(iter(networks_of(address)))
        full_at = max(now, self._full_at.pop(network, now)) + 1 / RATE
        latest = now + BURST / RATE + LONGEST
        self._full_at[network] = min(full_at, latest)
        # forgets up to two full buckets, or the oldest where there are too many
        for _ in range(2):
            oldest = next(iter(self._full_at))
            if self._full_at[oldest] > now and len(self._full_at) <= MOST:
                break
            del self._full_at[oldest]
        return max(0.0, self._full_at[network] - now - BURST / RATE)


class Proxies:
    """The proxies between callers and the gateway: `hops` in a row, each at one of `trusted`.

    `trusted` are addresses and networks. Without any, nobody speaks for others. The rules are those
    of aiohttp-remotes' XForwardedStrict, whose middleware would need a web.Application.
    """

    def __init__(self, trusted: tuple[str, ...] = (), hops: int = 1) -> None:
        self._trusted = parse_trusted_element(trusted)
        self._row = [self._trusted] * hops
        self._listed = XForwardedStrict(self._row).get_forwarded_for

    def trusts(self, address: str) -> bool:
        """Returns whether a connection from there comes through a proxy."""
        try:
            check_ip(self._trusted, ip_of(address))
        except (UntrustedIP, ValueError):
            return False
        return True

    def caller(self, peer: str, headers: MultiMapping[str]) -> str:
        """Returns the address of the caller behind the trusted `peer`.

        A proxy that names nobody speaks for itself, as for a health check. Raises NotARequest where
        the header comes twice, has too many or too few addresses, a proxy that is not trusted, or
        what is no address.
        """
        if X_FORWARDED_FOR not in headers:
            return peer
        try:
            return str(remote_ip(self._row, [ip_of(peer), *reversed(self._listed(headers))]))
        except (RemoteError, HTTPBadRequest) as error:
            many = len(self._row)
            rule = f"must come once, with {many} address{'es' if many > 1 else ''}"
            raise NotARequest(X_FORWARDED_FOR, rule) from error


@lru_cache(maxsize=1024)
def host_of(text: str) -> str:
    """Returns the host (RFC 9112 3.2) in lower case, without port and brackets; "" for none."""
    parts = _match(text)
    if parts is None:
        return ""
    if parts["literal"] is None:
        return parts["name"].lower()
    try:
        return str(IPv6Address(parts["literal"]))
    except ValueError:
        return ""


def check_addressed(request: web.BaseRequest) -> None:
    """Raises NotARequest where the Host or the target names no host of HTTP."""
    host = request.headers.get(HOST)
    # HTTP/1.0 need not have one; the parser refuses two, and none in HTTP/1.1
    if host is not None and not host_of(host):
        raise NotARequest("Host", "must be a host name or address, with a port or without")
    target = request.raw_path
    # other targets are `*`, the host and port of CONNECT, or a whole address
    if target.startswith("/") or (request.method, target) == ("OPTIONS", "*"):
        return
    if request.method == "CONNECT":
        return
    scheme, _, rest = target.partition("://")
    if scheme.lower() not in {"http", "https"}:
        raise NotARequest("request", "must ask for a path, or for an address of http or https")
    if not host_of(re.split("[/?#]", rest, maxsplit=1)[0]):
        raise NotARequest("request", "must ask for an address whose host is a name or address")


def is_own(request: web.BaseRequest, names: frozenset[str]) -> bool:
    """Returns whether the Host is one of the names, an IP address or localhost, or is missing.

    A page in a browser can make a name of its own lead to this machine (DNS rebinding), but neither
    an address nor localhost. A browser always sends a Host.
    """
    text = request.headers.get(HOST)
    if text is None:
        return True
    host = host_of(text)
    with suppress(ValueError):
        return host == "localhost" or host in names or ip_address(host) is not None
    return False
