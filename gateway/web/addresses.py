"""Who calls and what is called: trusted proxies, hosts, and how often an address may call."""

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
# Bits of an IPv6 network -> how many times as many connections it may hold as one address.
IPV6_NETWORKS = {64: 1, 56: 4}
# Tokens that come in a second, and how many there may be.
RATE, BURST = 100.0, 200.0
# Seconds that a call waits at most for its token.
LONGEST = 1.0
# So many addresses are remembered; the one that has called least lately is forgotten.
MOST = 10_000

# A name or an IPv4 address, or an IP literal in brackets; then perhaps a port.
_match = re.compile(
    r"(?P<name>(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+|\[(?P<literal>[0-9A-Fa-f:.]+)\])"
    r"(?::[0-9]*)?"
).fullmatch


def ip_of(address: str) -> IPv4Address | IPv6Address:
    """Of a socket's address, without the interface that may stand behind it; ValueError."""
    return ip_address(address.partition("%")[0])


def networks_of(address: str) -> Mapping[Hashable, int]:
    """What is counted as one address, and how many times as many connections it may hold.

    A network of 64 bits counts as one address of IPv6; one of 56 bits is what homes mostly get.
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
    """A bucket of tokens for each address that calls without a key that counts.

    `clock` gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # when the bucket of each will be full again; one that is full is as good as unknown
        self._full_at: OrderedDict[Hashable, float] = OrderedDict()

    def take(self, address: str) -> float:
        """Take a token; the seconds until it is there, LONGEST at most."""
        now, network = self._clock(), next(iter(networks_of(address)))
        full_at = max(now, self._full_at.pop(network, now)) + 1 / RATE
        latest = now + BURST / RATE + LONGEST
        self._full_at[network] = min(full_at, latest)
        # two that need not be remembered are forgotten, or the oldest where there are too many
        for _ in range(2):
            oldest = next(iter(self._full_at))
            if self._full_at[oldest] > now and len(self._full_at) <= MOST:
                break
            del self._full_at[oldest]
        return max(0.0, self._full_at[network] - now - BURST / RATE)


class Proxies:
    """The proxies between callers and the gateway: `hops` in a row, each at one of `trusted`.

    `trusted` are addresses and networks; without any, nobody speaks for others. The rules are those
    of aiohttp-remotes' XForwardedStrict, whose middleware needs a web.Application and changes the
    request's host and scheme too.
    """

    def __init__(self, trusted: tuple[str, ...] = (), hops: int = 1) -> None:
        self._trusted = parse_trusted_element(trusted)
        self._row = [self._trusted] * hops
        self._listed = XForwardedStrict(self._row).get_forwarded_for

    def trusts(self, address: str) -> bool:
        """Whether a connection from there comes through a proxy."""
        try:
            check_ip(self._trusted, ip_of(address))
        except (UntrustedIP, ValueError):
            return False
        return True

    def caller(self, peer: str, headers: MultiMapping[str]) -> str:
        """The address of who calls through the trusted `peer`.

        A proxy that names nobody speaks for itself, as when it looks whether the gateway is well.
        NotARequest where the header comes twice, names too many or too few, one on the way that is
        not trusted, or what is no address: then nobody can tell who calls.
        """
        if X_FORWARDED_FOR not in headers:
            return peer
        try:
            named = self._listed(headers)
            return str(remote_ip(self._row, [ip_of(peer), *reversed(named)]))
        except (RemoteError, HTTPBadRequest) as error:
            many = len(self._row)
            rule = f"must come once, with {many} address{'es' if many > 1 else ''}"
            raise NotARequest(X_FORWARDED_FOR, rule) from error


@lru_cache(maxsize=1024)
def host_of(text: str) -> str:
    """The host without its port, in lower case and without brackets; "" where it is none.

    The forms are those of RFC 9112 3.2 and RFC 3986 3.2.2.
    """
    found = _match(text)
    if found is None:
        return ""
    if found["literal"] is None:
        return found["name"].lower()
    try:
        return str(IPv6Address(found["literal"]))
    except ValueError:
        return ""


def check_addressed(request: web.BaseRequest) -> None:
    """NotARequest where the Host or the target names no host of HTTP."""
    host = request.headers.get(HOST)
    # HTTP/1.0 has none; the parser refuses its absence in HTTP/1.1, and two of them
    if host is not None and not host_of(host):
        raise NotARequest("Host", "must be a host name or address, with a port or without")
    target = request.raw_path
    # what does not begin with a slash is `*`, of CONNECT host and port, or a whole address
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
    """Whether the request is addressed to one of the names, to an IP address, or to localhost.

    A page in a browser can have a name of its own lead to this machine (DNS rebinding), but neither
    an address nor localhost. A browser always sends a Host; HTTP/1.0 need not.
    """
    text = request.headers.get(HOST)
    if text is None:
        return True
    host = host_of(text)
    with suppress(ValueError):
        return host == "localhost" or host in names or ip_address(host) is not None
    return False
