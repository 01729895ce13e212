"""Settings that cannot work behind a proxy, and settings that should be changed."""

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from gateway.edge.site import Node, Site, is_anywhere
from gateway.settings import Settings
from gateway.settings.kinds import is_loopback, split_address
from gateway.web.addresses import Proxies

# Seconds within which a proxy leaves out a node that says that it is ending.
NOTICED = 3.0


def obstacles(settings: Settings, nodes: Sequence[Node]) -> Iterator[str]:
    """Why a proxy before these gateways would not work, each with its remedy."""
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
        found = urlsplit(url)
        is_whole = found.hostname and found.port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        yield f"public_url is {url}, which names no host or an impossible port: correct it"
    elif found.path:
        yield (
            f"public_url has a path, {found.path}, which this proxy does not remove: give the"
            " gateway a host or a port of its own"
        )


def _out_of_reach(settings: Settings, nodes: Sequence[Node]) -> Iterator[str]:
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


def site_obstacles(site: Site) -> Iterator[str]:
    """Why the proxy could not listen there."""
    for node in site.nodes:
        # the proxy may listen on another address of the same machine
        is_other = not is_anywhere(site.host) and site.host != node.host
        if is_loopback(node.host) and site.port == node.port and not is_other:
            yield (
                f"port {site.port} is already used by {node.name} on the same machine: choose"
                " another port with --listen, or change listen of the gateway"
            )


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
