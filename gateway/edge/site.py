"""Writes the configuration of a proxy in front of the gateways, from the gateways' own settings.

First it tells which settings cannot work behind a proxy, and which should be changed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

from gateway.assets import templates
from gateway.settings import Settings
from gateway.settings.kinds import is_loopback, split_address
from gateway.web.addresses import Proxies
from gateway.web.connection import KEEP_ALIVE
from gateway.web.tls import STRICT

# Seconds that a call may take besides the practice system: to check its key, and to wait its turn.
ROOM = 3
# How often one read may ask the practice system: a list asks again where its page is too large.
QUESTIONS = 3
# Seconds that the proxy waits longer than the gateway, whose answer says what went wrong.
LONGER = 5
# Seconds by which the proxy closes an idle connection before the gateway does.
SOONER = 2
# Seconds within which a proxy stops using a node that says that it is ending.
NOTICED = 3.0
PORTS = {"https": 443, "http": 80}
TEMPLATES = Path(__file__).with_name("templates")
# Program -> the name of its template.
FILES = {"haproxy": "haproxy.cfg", "nginx": "nginx.conf"}
_named = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*)=(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][\w.-]*)"
    r"(?::(?P<port>[0-9]{1,5})(?:/(?P<operations_port>[0-9]{1,5}))?)?",
    re.ASCII,
).fullmatch


@dataclass(frozen=True, slots=True)
class Node:
    """One gateway as its proxy reaches it; hosts are addresses without brackets, or names."""

    name: str
    host: str
    port: int
    operations_host: str
    operations_port: int

    @property
    def address(self) -> str:
        """Where partners' calls are sent."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def is_anywhere(host: str) -> bool:
    """Returns whether the host stands for all addresses of a machine."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return not host


def node_here(settings: Settings) -> Node:
    """Returns the gateway that listens on this machine."""

    def listener(address: str) -> tuple[str, int]:
        host, port = split_address(address)
        if is_anywhere(host):
            host = "::1" if ":" in host else "127.0.0.1"
        return host, port

    host, port = listener(settings.listen)
    operations_host, operations_port = listener(settings.operations_listen)
    return Node("gateway", host, port, operations_host, operations_port)


def named_node(text: str, settings: Settings) -> Node:
    """Returns the node of `NAME=HOST[:PORT[/OPERATIONS_PORT]]`; raises ValueError otherwise."""
    match = _named(text)
    if match is None:
        raise ValueError(f"{text} is no NAME=HOST[:PORT[/OPERATIONS_PORT]]")
    host, here = match["host"].strip("[]"), node_here(settings)
    ports = [int(match[name] or getattr(here, name)) for name in ("port", "operations_port")]
    given = filter(None, (match["port"], match["operations_port"]))
    if wrong := [text for text in given if not 0 < int(text) <= 65535]:
        raise ValueError(f"{wrong[0]} is no port")
    return Node(match["name"], host, ports[0], host, ports[1])


def site_of(
    settings: Settings, nodes: Sequence[Node], listen: tuple[str, int] | None, tls: dict[str, str]
) -> SimpleNamespace:
    """Returns what a template needs to know of the proxy. Its times are whole seconds.

    The settings must have a public_url, on whose port the proxy listens unless `listen` is given.
    `certificate` is empty where it does not speak TLS, `key` where the certificate's file holds it.
    `per_caller` is how many connections one caller may hold, 0 where other proxies call this one.
    `hops` counts those too. `strict` is the value of a Strict-Transport-Security header.
    """
    public_url, backend = settings.public_url or "", settings.backend
    parts = urlsplit(public_url)
    host, port = listen or ("", parts.port or PORTS[parts.scheme])
    processes, speaks_tls = settings.workers * len(nodes), public_url.startswith("https:")
    booking = settings.body_timeout + settings.booking_wait + backend.booking_timeout
    return SimpleNamespace(
        public_url=public_url,
        host=host,
        port=port,
        certificate=tls["certificate"] if speaks_tls else "",
        key=tls.get("key", "") if speaks_tls else "",
        nodes=nodes,
        connections=settings.connections * processes,
        per_caller=settings.connections_per_address * processes if settings.proxy_hops == 1 else 0,
        hops=settings.proxy_hops,
        body=ceil(settings.body_timeout + LONGER),
        read=ceil(ROOM + QUESTIONS * (backend.timeout + 1)),
        booking=ceil(booking + ROOM + LONGER),
        idle=ceil(KEEP_ALIVE),
        keep_alive=ceil(KEEP_ALIVE - SOONER),
        strict=STRICT["Strict-Transport-Security"],
    )


def render(program: str, site: SimpleNamespace) -> str:
    """Returns the whole configuration of `haproxy` or `nginx`."""
    return templates(TEMPLATES).get_template(FILES[program]).render(site=site)


def obstacles(settings: Settings, nodes: Sequence[Node]) -> Iterator[str]:
    """Yields why a proxy before these gateways would not work, each with its remedy."""
    yield from _url_obstacles(settings.public_url)
    if settings.tls_certificate is not None:
        yield (
            "tls_certificate is set, so the gateway expects TLS, but this proxy calls it without:"
            " remove tls_certificate and tls_key, and name the proxy's certificate with"
            " --certificate"
        )
    if not settings.proxies:
        yield (
            "trusted_proxies is empty, so all partners would seem to call from the proxy's address:"
            " set it to the address from which the proxy calls"
        )
    trusts = Proxies(settings.proxies, settings.proxy_hops).trusts
    for node in nodes if settings.proxies else ():
        source = "::1" if node.host == "::1" else "127.0.0.1"
        if is_loopback(node.host) and not trusts(source):
            yield (
                f"trusted_proxies does not name {source}, from which a proxy on the same machine"
                f" calls {node.name}: add it"
            )
    yield from _out_of_reach(settings, nodes)
    yield from _apart(settings, nodes)


def _url_obstacles(url: str | None) -> Iterator[str]:
    if url is None:
        yield (
            "public_url is not set, so links would lead partners past the proxy: set it to the"
            " address that partners call, such as https://gateway.example.org"
        )
        return
    try:
        parts = urlsplit(url)
        is_whole = parts.hostname and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        yield f"public_url is {url}, which names no host or an impossible port: correct it"
    elif parts.path:
        yield (
            f"public_url has a path, {parts.path}, which this proxy does not remove: give the"
            " gateway a host or a port of its own"
        )


def _out_of_reach(settings: Settings, nodes: Sequence[Node]) -> Iterator[str]:
    others = [node.name for node in nodes if not is_loopback(node.host)]
    for setting, address, ports in (
        ("listen", settings.listen, [node.port for node in nodes]),
        ("operations_listen", settings.operations_listen, [node.operations_port for node in nodes]),
    ):
        host, port = split_address(address)
        # a single gateway may have its two listeners on different addresses
        here = len(nodes) == 1 and host in {nodes[0].host, nodes[0].operations_host}
        if 0 in ports:
            yield f"{setting} is {address}, which takes any free port: set a fixed one"
        if is_loopback(host) and others and not here:
            yield (
                f"{setting} is {address}, which the proxy cannot reach on {', '.join(others)}:"
                f" listen on 0.0.0.0:{port} there, and let the firewall admit the proxy alone"
            )


def _apart(settings: Settings, nodes: Sequence[Node]) -> Iterator[str]:
    if len(nodes) != settings.nodes:
        many = "1 node is named" if len(nodes) == 1 else f"{len(nodes)} nodes are named"
        yield (
            f"nodes is {settings.nodes}, but {many} here: set nodes to the number of gateways, and"
            " name each with --node NAME=HOST"
        )
    names = [node.name for node in nodes]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{name} is the name of several nodes: give each a name of its own"
    if len(nodes) > 1:
        if settings.limiter.get_secret_value() == "memory:":
            yield (
                "limiter is memory:, so each node would admit the whole limit: set a limiter that"
                " the nodes share, such as redis://127.0.0.1:6379"
            )
        if settings.store is None or settings.store.get_secret_value().startswith("sqlite"):
            yield (
                "store is a file on one machine, so each node would have keys and bookings of its"
                " own: set a database that the nodes share, such as"
                " postgresql://user:password@host/database"
            )


def site_obstacles(site: SimpleNamespace) -> Iterator[str]:
    """Yields why the proxy could not listen on its port."""
    for node in site.nodes:
        # the proxy may listen on another address of the same machine
        is_other = not is_anywhere(site.host) and site.host != node.host
        if is_loopback(node.host) and site.port == node.port and not is_other:
            yield (
                f"port {site.port} is already used by {node.name} on the same machine: choose"
                " another port with --listen, or change listen of the gateway"
            )


def warnings(settings: Settings, site: SimpleNamespace) -> Iterator[str]:
    """Yields what works but should be changed."""
    if not site.certificate and not is_loopback(urlsplit(site.public_url).hostname or ""):
        yield (
            f"public_url is {site.public_url}: partners' keys would cross the network in the clear;"
            " let it begin with https://"
        )
    if len(site.nodes) > 1 and settings.shutdown_delay < NOTICED:
        yield (
            f"shutdown_delay is {settings.shutdown_delay:g}, shorter than the proxy takes to notice"
            f" that a node is ending: set it to {NOTICED:g} or more"
        )
