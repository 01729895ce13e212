"""A gateway as its proxy reaches it: its address, and where it says whether it is ready."""

import re
from dataclasses import dataclass
from ipaddress import ip_address

from gateway.settings import Settings, split_address

_named = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*)=(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][\w.-]*)"
    r"(?::(?P<port>[0-9]{1,5})(?:/(?P<operations_port>[0-9]{1,5}))?)?",
    re.ASCII,
).fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One gateway; hosts are addresses without brackets, or names."""

    name: str
    host: str
    port: int
    operations_host: str
    operations_port: int

    @property
    def address(self) -> str:
        """Where partners' calls are sent."""
        return f"{bracketed(self.host)}:{self.port}"

    @property
    def check(self) -> str:
        """Where HAProxy asks whether it is ready, as words of its `server` line."""
        elsewhere = "" if self.operations_host == self.host else f"addr {self.operations_host} "
        return f"{elsewhere}port {self.operations_port}"


def is_anywhere(host: str) -> bool:
    """Whether it stands for all addresses of a machine."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return not host


def bracketed(host: str) -> str:
    """The host as it stands before a port."""
    return f"[{host}]" if ":" in host else host


def node_here(settings: Settings) -> Node:
    """The one gateway that listens on this machine."""
    host, port = split_address(settings.listen)
    operations_host, operations_port = split_address(settings.operations_listen)
    return Node(
        name="gateway",
        host=_from_here(host),
        port=port,
        operations_host=_from_here(operations_host),
        operations_port=operations_port,
    )


def _from_here(host: str) -> str:
    """The address under which this machine reaches a listener of its own."""
    if not is_anywhere(host):
        return host
    return "::1" if ":" in host else "127.0.0.1"


def named_node(text: str, settings: Settings) -> Node:
    """The node of `NAME=HOST[:PORT[/OPERATIONS_PORT]]`; ports that are not given are the settings'.

    ValueError for anything else.
    """
    found = _named(text)
    if found is None:
        raise ValueError(f"{text} is no NAME=HOST[:PORT[/OPERATIONS_PORT]]")
    host = found["host"].strip("[]")
    here = node_here(settings)
    return Node(
        name=found["name"],
        host=host,
        port=_port(found["port"]) if found["port"] else here.port,
        operations_host=host,
        operations_port=(
            _port(found["operations_port"]) if found["operations_port"] else here.operations_port
        ),
    )


def _port(value: str) -> int:
    port = int(value)
    if not 0 < port <= 65535:
        raise ValueError(f"{value} is no port")
    return port
