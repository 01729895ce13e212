"""Who speaks for others: the address of a caller behind proxies that are trusted.

The rules are those of aiohttp-remotes' XForwardedStrict. Its middleware needs a web.Application and
changes the request's host and scheme too; what reads the header and compares each address with who
is trusted stands by itself, and is what is taken here.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address

from aiohttp.web import HTTPBadRequest
from aiohttp_remotes import XForwardedStrict
from aiohttp_remotes.exceptions import RemoteError, UntrustedIP
from aiohttp_remotes.utils import check_ip, parse_trusted_element, remote_ip
from multidict import MultiMapping

from gateway.contract.errors import NotARequest

X_FORWARDED_FOR = "X-Forwarded-For"


def ip_of(address: str) -> IPv4Address | IPv6Address:
    """Of a socket's address, without the interface that may stand behind it."""
    return ip_address(address.partition("%")[0])


class Proxies:
    """The proxies between callers and the gateway: `hops` in a row, each at one of `trusted`.

    `trusted` are addresses and networks; without any, nobody speaks for others.
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
            raise NotARequest(X_FORWARDED_FOR, self._rule()) from error

    def _rule(self) -> str:
        many = len(self._row)
        return f"must come once, with {many} address{'es' if many > 1 else ''}"
