"""What a proxy's file is made of: who listens where, and every bound, read off the settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from urllib.parse import urlsplit

from gateway.edge.node import Node
from gateway.settings import Settings, split_address
from gateway.web.connection import KEEP_ALIVE
from gateway.web.tls import STRICT

# Seconds of a call beside the practice system: its key, its room, its place in the queue.
ROOM = 3
# Times that one read may ask the practice system: a list whose page is too large asks again.
QUESTIONS = 3
# Seconds by which the proxy's patience is longer than the gateway's, which answers in words.
LONGER = 5
# Seconds by which the proxy lets go of an idle connection before the gateway does.
SOONER = 2
PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One proxy and the gateways behind it; times are whole seconds.

    `certificate` is empty where the proxy does not speak TLS, `key` where it lies in the same file.
    `per_caller` is how many connections one caller may hold, 0 where other proxies call this one;
    `hops` counts these too. `strict` is what a Strict-Transport-Security header says.
    """

    public_url: str
    host: str
    port: int
    certificate: str
    key: str
    nodes: Sequence[Node]
    connections: int
    per_caller: int
    hops: int
    body: int
    read: int
    booking: int
    idle: int
    keep_alive: int
    strict: str

    @property
    def is_ipv6(self) -> bool:
        """Whether it listens on an address of IPv6."""
        return ":" in self.host


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where partners reach the proxy: an address, or only a port, and the files of its TLS."""

    listen: str | None = None
    certificate: str = ""
    key: str = ""


def site_of(settings: Settings, nodes: Sequence[Node], place: Place) -> Site:
    """The proxy of these gateways, whose settings have a public_url."""
    public_url = settings.public_url or ""
    host, port = _listening(place.listen, public_url)
    processes = settings.workers * len(nodes)
    backend = settings.backend
    speaks_tls = public_url.startswith("https:")
    return Site(
        public_url=public_url,
        host=host,
        port=port,
        certificate=place.certificate if speaks_tls else "",
        key=place.key if speaks_tls else "",
        nodes=nodes,
        connections=settings.connections * processes,
        per_caller=settings.connections_per_address * processes if settings.proxy_hops == 1 else 0,
        hops=settings.proxy_hops,
        body=ceil(settings.body_timeout + LONGER),
        read=ceil(ROOM + QUESTIONS * (backend.timeout + 1)),
        booking=ceil(
            settings.body_timeout + settings.booking_wait + backend.booking_timeout + ROOM + LONGER
        ),
        idle=ceil(KEEP_ALIVE),
        keep_alive=ceil(KEEP_ALIVE - SOONER),
        strict=STRICT["Strict-Transport-Security"],
    )


def _listening(listen: str | None, public_url: str) -> tuple[str, int]:
    """Host, empty for all addresses, and port; by default the port of the public address."""
    if listen is None:
        found = urlsplit(public_url)
        return "", found.port or PORTS[found.scheme]
    return ("", int(listen[1:])) if listen[:1] == ":" else split_address(listen)
