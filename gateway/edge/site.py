"""A proxy and the gateways behind it: who listens where, every bound, and its file as text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from math import ceil
from pathlib import Path
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from gateway.settings import Settings
from gateway.settings.kinds import split_address
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
    """Whether it stands for all addresses of a machine."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return not host


def node_here(settings: Settings) -> Node:
    """The one gateway that listens on this machine."""

    def listener(address: str) -> tuple[str, int]:
        host, port = split_address(address)
        if is_anywhere(host):
            host = "::1" if ":" in host else "127.0.0.1"
        return host, port

    host, port = listener(settings.listen)
    operations_host, operations_port = listener(settings.operations_listen)
    return Node("gateway", host, port, operations_host, operations_port)


def named_node(text: str, settings: Settings) -> Node:
    """The node of `NAME=HOST[:PORT[/OPERATIONS_PORT]]`; ports that are not given are the settings'.

    ValueError for anything else.
    """
    found = _named(text)
    if found is None:
        raise ValueError(f"{text} is no NAME=HOST[:PORT[/OPERATIONS_PORT]]")
    host, here = found["host"].strip("[]"), node_here(settings)
    ports = [int(found[name] or getattr(here, name)) for name in ("port", "operations_port")]
    if wrong := [text for text in (found["port"], found["operations_port"]) if not _is_port(text)]:
        raise ValueError(f"{wrong[0]} is no port")
    return Node(found["name"], host, ports[0], host, ports[1])


def _is_port(text: str | None) -> bool:
    return text is None or 0 < int(text) <= 65535


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
    idle: int = ceil(KEEP_ALIVE)
    keep_alive: int = ceil(KEEP_ALIVE - SOONER)
    strict: str = STRICT["Strict-Transport-Security"]


def site_of(
    settings: Settings,
    nodes: Sequence[Node],
    listen: str | None,
    *,
    certificate: str,
    key: str = "",
) -> Site:
    """The proxy of these gateways, whose settings have a public_url.

    It listens on that address or `:port`, by default on the port of the public address.
    """
    public_url, backend = settings.public_url or "", settings.backend
    found = urlsplit(public_url)
    host, port = "", found.port or PORTS[found.scheme]
    if listen is not None:
        host, port = ("", int(listen[1:])) if listen[:1] == ":" else split_address(listen)
    processes = settings.workers * len(nodes)
    booking = settings.body_timeout + settings.booking_wait + backend.booking_timeout
    speaks_tls = public_url.startswith("https:")
    return Site(
        public_url=public_url,
        host=host,
        port=port,
        certificate=certificate if speaks_tls else "",
        key=key if speaks_tls else "",
        nodes=nodes,
        connections=settings.connections * processes,
        per_caller=settings.connections_per_address * processes if settings.proxy_hops == 1 else 0,
        hops=settings.proxy_hops,
        body=ceil(settings.body_timeout + LONGER),
        read=ceil(ROOM + QUESTIONS * (backend.timeout + 1)),
        booking=ceil(booking + ROOM + LONGER),
    )


def render(program: str, site: Site) -> str:
    """The whole configuration of `haproxy` or `nginx`."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(FILES[program]).render(site=site)
