"""Settings that cannot work behind a proxy, and settings that should be changed."""

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from gateway.edge.node import Node, is_anywhere
from gateway.edge.site import Site
from gateway.settings import Settings, is_loopback, split_address
from gateway.web.addresses import Proxies

# Seconds within which a proxy leaves out a node that says that it is ending.
NOTICED = 3.0


def obstacles(settings: Settings, nodes: Sequence[Node]) -> Iterator[str]:
    """Why a proxy before these gateways would not work, each with its remedy."""
    if settings.public_url is None:
        yield (
            "public_url is not set, so links would lead partners past the proxy: set it to the"
            " address that partners call, such as https://gateway.example.org"
        )
    elif (path := _path(settings.public_url)) is None:
        yield (
            f"public_url is {settings.public_url}, which names no host or an impossible port:"
            " correct it"
        )
    elif path:
        yield (
            f"public_url has a path, {path}, which this proxy does not remove: give the gateway a"
            " host or a port of its own"
        )
    if settings.tls_certificate is not None:
        yield (
            "tls_certificate is set, so the gateway expects TLS, but this proxy calls it without:"
            " remove tls_certificate and tls_key, and name the proxy's certificate with"
            " --certificate"
        )
    yield from _untrusted(settings, nodes)
    yield from _out_of_reach(settings, nodes)
    yield from _apart(settings, nodes)


def _path(url: str) -> str | None:
    """The path; None where the host or the port are none."""
    try:
        found = urlsplit(url)
        named = found.hostname and found.port != 0
    except ValueError:
        return None
    return found.path if named else None


def _untrusted(settings: Settings, nodes: Sequence[Node]) -> Iterator[str]:
    """The gateways do not believe the proxy."""
    if not settings.proxies:
        yield (
            "trusted_proxies is empty, so all partners would seem to call from the proxy's address:"
            " set it to the address from which the proxy calls"
        )
        return
    trusts = Proxies(settings.proxies, settings.proxy_hops).trusts
    for node in nodes:
        source = "::1" if node.host == "::1" else "127.0.0.1"
        if is_loopback(node.host) and not trusts(source):
            yield (
                f"trusted_proxies does not name {source}, from which a proxy on the same machine"
                f" calls {node.name}: add it"
            )


def _out_of_reach(settings: Settings, nodes: Sequence[Node]) -> Iterator[str]:
    """The proxy does not reach them from its machine."""
    others = [node.name for node in nodes if not is_loopback(node.host)]
    for setting, address, ports in (
        ("listen", settings.listen, [node.port for node in nodes]),
        ("operations_listen", settings.operations_listen, [node.operations_port for node in nodes]),
    ):
        host, port = split_address(address)
        # the one gateway of this machine may have each listener elsewhere
        here = len(nodes) == 1 and host in {nodes[0].host, nodes[0].operations_host}
        if 0 in ports:
            yield f"{setting} is {address}, which takes any free port: set a fixed one"
        if is_loopback(host) and others and not here:
            yield (
                f"{setting} is {address}, which the proxy cannot reach on {', '.join(others)}:"
                f" listen on 0.0.0.0:{port} there, and let the firewall admit the proxy alone"
            )


def _apart(settings: Settings, nodes: Sequence[Node]) -> Iterator[str]:
    """They do not share what several gateways have to."""
    if len(nodes) != settings.nodes:
        yield (
            f"nodes is {settings.nodes}, but {_many(len(nodes))} here: set nodes to the number of"
            " gateways, and name each with --node NAME=HOST"
        )
    names = [node.name for node in nodes]
    for name in sorted({each for each in names if names.count(each) > 1}):
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


def _many(number: int) -> str:
    return "1 node is named" if number == 1 else f"{number} nodes are named"


def in_the_way(site: Site) -> Iterator[str]:
    """Why the proxy could not listen there."""
    for node in site.nodes:
        if is_loopback(node.host) and site.port == node.port and not _is_other(site.host, node):
            yield (
                f"port {site.port} is already used by {node.name} on the same machine: choose"
                " another port with --listen, or change listen of the gateway"
            )


def _is_other(host: str, node: Node) -> bool:
    """Whether the proxy listens on another address of the same machine."""
    return not is_anywhere(host) and host != node.host


def warnings(settings: Settings, site: Site) -> Iterator[str]:
    """What works but should be changed."""
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
