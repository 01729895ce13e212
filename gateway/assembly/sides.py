"""The listeners: where partners are answered, where the operator asks, and the panel."""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from socket import socket

from aiohttp import web

from gateway.admin.context import CONTEXT
from gateway.admin.guard import HEADERS
from gateway.admin.words import check_words
from gateway.assembly.kit import Kit
from gateway.observe.callers import CertificateTroubles, ConnectionTroubles
from gateway.serving import PanelSide, PublicSide, SystemSide
from gateway.settings import Settings, StartRefused, is_loopback, split_address, split_hosts
from gateway.web.addresses import Proxies
from gateway.web.front import Front
from gateway.web.server import AppRunner, ListenerOptions, PublicServer, bind, refusal_of
from gateway.web.system import Readiness, system_server
from gateway.web.tls import Certificate, context_of

# Seconds that a listener's last answers have to leave, once nothing is waited for any more.
CUT_OFF = 1.0
# A clinic's administrators are few, and a browser takes six at most.
PANEL_CONNECTIONS, PANEL_CONNECTIONS_OF_ONE = 100, 50


@dataclass(frozen=True, slots=True)
class Sockets:
    """The addresses that are listened on; `panel` is None where there is none."""

    public: socket
    system: socket
    panel: socket | None

    @property
    def ports(self) -> dict[str, int]:
        """What each listens on, as the log tells it."""
        named = {"port": self.public, "operations_port": self.system, "admin_port": self.panel}
        return {name: each.getsockname()[1] for name, each in named.items() if each is not None}

    def close(self) -> None:
        """Let go of all."""
        for each in (self.public, self.system, self.panel):
            if each is not None:
                each.close()


def bind_all(settings: Settings) -> Sockets:
    """All addresses, taken before anything else is touched.

    StartRefused or DocumentErrors where the panel cannot be served.
    """
    check_panel(settings)
    if settings.admin_listen:
        check_words()
    with ExitStack() as undone:

        def bound(address: str, setting: str) -> socket:
            return undone.enter_context(closing(bind(*split_address(address), setting)))

        sockets = Sockets(
            bound(settings.listen, "listen"),
            bound(settings.operations_listen, "operations_listen"),
            bound(settings.admin_listen, "admin_listen") if settings.admin_listen else None,
        )
        undone.pop_all()
    return sockets


def check_panel(settings: Settings) -> None:
    """StartRefused where the panel would be open to a network without anything that keeps it safe.

    A password that crosses a network in the clear is nobody's own any more.
    """
    if not is_open(settings):
        return
    remedy = "; or leave admin_listen at 127.0.0.1:8082 and reach it through an SSH tunnel"
    if settings.admin_url is None:
        raise StartRefused(
            f"admin_listen: {settings.admin_listen} is open to the network: set admin_url to the"
            f" address under which browsers reach the panel, such as https://panel.clinic.example"
            f"{remedy}",
            "admin_listen",
        )
    if not settings.admin_url.startswith("https://"):
        raise StartRefused(
            f"admin_url: {settings.admin_url} would send passwords in the clear: it must begin with"
            f" https://{remedy}",
            "admin_url",
        )
    if _pair(settings) is None and not settings.proxies:
        raise StartRefused(
            f"admin_listen: {settings.admin_listen} is open to the network without TLS: set"
            f" tls_certificate and tls_key, or name in trusted_proxies the proxy that speaks TLS"
            f"{remedy}",
            "admin_listen",
        )


def is_open(settings: Settings) -> bool:
    """Whether other machines can reach the panel's address."""
    if not settings.admin_listen:
        return False
    return not is_loopback(split_address(settings.admin_listen)[0])


def panel_side(kit: Kit, app: web.Application, listening: socket) -> PanelSide:
    """Where the clinic's administrators work; TLS where the network can reach it."""

    def refuse(error: BaseException | None, status: int) -> web.Response:
        refusal = refusal_of(error, status)
        if refusal.status >= 500 and error is not None:
            kit.events.fault("the panel failed", error)
        headers = {**HEADERS, **app[CONTEXT].more_headers}
        response = web.Response(status=refusal.status, text=f"{refusal.message}\n", headers=headers)
        response.force_close()
        return response

    proxies = Proxies(kit.settings.proxies, kit.settings.proxy_hops)
    options = ListenerOptions(PANEL_CONNECTIONS, PANEL_CONNECTIONS_OF_ONE, proxies)
    return PanelSide(
        runner=AppRunner(app, refuse, options, end=CUT_OFF),
        socket=listening,
        certificate=_certificate(kit) if is_open(kit.settings) else None,
    )


def public_options(kit: Kit, proxies: Proxies) -> ListenerOptions:
    """Who lets connections in, and how many."""
    settings, troubles = kit.settings, ConnectionTroubles(kit.metrics, kit.events)
    most, most_of_one = settings.connections, settings.connections_per_address
    options = ListenerOptions(most, most_of_one, proxies, troubles.turned_away)
    kit.metrics.ask("gateway_connections", lambda: len(options.limiter))
    return options


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
    settings = kit.settings
    own, _ = split_address(settings.operations_listen)
    hosts = frozenset({own.lower(), *split_hosts(settings.operations_hosts)})
    server = system_server(readiness, figures, kit.events, hosts)
    runner = web.ServerRunner(server, shutdown_timeout=CUT_OFF)
    return SystemSide(readiness=readiness, runner=runner, socket=listening)


def _certificate(kit: Kit) -> Certificate | None:
    """What the gateway speaks TLS with, where it does."""
    pair = _pair(kit.settings)
    if pair is None:
        return None
    troubles = CertificateTroubles(kit.events)
    return kit.closing(Certificate(*pair, on_renewal=troubles.renewed, on_refusal=troubles.refused))


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
