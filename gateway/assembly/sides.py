"""The two listeners: where partners are answered, and where the operator asks."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from socket import socket

from aiohttp import web

from gateway.assembly.kit import Kit
from gateway.observe.troubles import CertificateTroubles, ConnectionTroubles
from gateway.serving import PublicSide, SystemSide
from gateway.settings import Settings, StartRefused, split_address
from gateway.web.entrance import Entrance, entrance
from gateway.web.front import Front
from gateway.web.proxies import Proxies
from gateway.web.server import PublicServer, bind
from gateway.web.system import Readiness, system_server
from gateway.web.tls import Certificate, context_of

# Seconds that a listener's last answers have to leave, once nothing is waited for any more.
CUT_OFF = 1.0


def bind_both(settings: Settings) -> tuple[socket, socket]:
    """Both addresses, taken before anything else is touched: partners', and the operator's."""
    public = bind(*split_address(settings.listen), "listen")
    try:
        return public, bind(*split_address(settings.operations_listen), "operations_listen")
    except BaseException:
        public.close()
        raise


def open_entrance(kit: Kit, proxies: Proxies) -> Entrance:
    """Who lets connections in, and how many."""
    settings, troubles = kit.settings, ConnectionTroubles(kit.metrics, kit.events)
    most, most_of_one = settings.connections, settings.connections_per_address
    inside = entrance(most, most_of_one, proxies, troubles.turned_away)
    kit.metrics.ask("gateway_connections", lambda: len(inside.doorman))
    return inside


def public_side(kit: Kit, front: Front, server: PublicServer, listening: socket) -> PublicSide:
    """Where partners are answered."""
    return PublicSide(
        front=front,
        runner=web.ServerRunner(server, shutdown_timeout=CUT_OFF),
        socket=listening,
        certificate=_certificate(kit),
        drain=kit.settings.drain,
        events=kit.events,
    )


def system_side(
    kit: Kit, readiness: Readiness, listening: socket, figures: Callable[[], Awaitable[bytes]]
) -> SystemSide:
    """Where the operator asks."""
    server = system_server(readiness, figures, kit.events)
    runner = web.ServerRunner(server, shutdown_timeout=CUT_OFF)
    return SystemSide(readiness=readiness, runner=runner, socket=listening)


def _certificate(kit: Kit) -> Certificate | None:
    """What the gateway speaks TLS with, where it does."""
    pair = _pair(kit.settings)
    if pair is None:
        return None
    told = CertificateTroubles(kit.events)
    return kit.closing(Certificate(*pair, renewed=told.renewed, refused=told.refused))


def check_tls(settings: Settings) -> None:
    """StartRefused where the gateway is to speak TLS and has no pair of files for it."""
    pair = _pair(settings)
    if pair is not None:
        context_of(*pair)


def _pair(settings: Settings) -> tuple[Path, Path] | None:
    """The certificate and its key, where there are such."""
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        lacking = "tls_key" if key is None else "tls_certificate"
        raise StartRefused(f"{lacking} is not set: TLS takes a certificate and its key", lacking)
    return certificate, key
