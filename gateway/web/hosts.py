"""The host that a request is addressed to, in the forms of RFC 9112 3.2 and RFC 3986 3.2.2."""

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from aiohttp import web
from multidict import istr

from gateway.contract.errors import NotARequest

HOST = istr("Host")
# A name or an IPv4 address, or an IP literal in brackets; then perhaps a port.
_match = re.compile(
    r"(?P<name>(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+|\[(?P<literal>[0-9A-Fa-f:.]+)\])"
    r"(?::[0-9]*)?"
).fullmatch
_SCHEMES = frozenset({"http", "https"})


def check_addressed(request: web.BaseRequest) -> None:
    """NotARequest where the Host or the target names no host of HTTP."""
    host = request.headers.get(HOST)
    # HTTP/1.0 has none; the parser refuses its absence in HTTP/1.1, and two of them
    if host is not None and not is_host(host):
        raise NotARequest("Host", "must be a host name or address, with a port or without")
    if not request.raw_path.startswith("/"):
        _check_target(request.method, request.raw_path)


@lru_cache(maxsize=1024)
def is_host(text: str) -> bool:
    """Whether that is a host, with a port or without."""
    return host_of(text) != ""


def host_of(text: str) -> str:
    """The host without its port, in lower case and without brackets; "" where it is none."""
    found = _match(text)
    if found is None:
        return ""
    literal = found["literal"]
    if literal is None:
        return found["name"].lower()
    try:
        return str(IPv6Address(literal))
    except ValueError:
        return ""


def is_address(host: str) -> bool:
    """Whether a host is an IP address, not a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_own(request: web.BaseRequest, names: frozenset[str]) -> bool:
    """Whether the request is addressed to one of the names, to an IP address, or to localhost.

    A page in a browser can have a name of its own lead to this machine (DNS rebinding), but neither
    an address nor localhost. A browser always sends a Host; HTTP/1.0 need not.
    """
    text = request.headers.get(HOST)
    if text is None:
        return True
    host = host_of(text)
    return host == "localhost" or is_address(host) or host in names


def _check_target(method: str, target: str) -> None:
    """What does not begin with a slash is `*`, of CONNECT host and port, or a whole address."""
    if method == "CONNECT" or (target == "*" and method == "OPTIONS"):
        return
    scheme, _, rest = target.partition("://")
    if scheme.lower() not in _SCHEMES:
        raise NotARequest("request", "must ask for a path, or for an address of http or https")
    if not is_host(re.split("[/?#]", rest, maxsplit=1)[0]):
        raise NotARequest("request", "must ask for an address whose host is a name or address")
