"""Opens the listeners: for partners, for the operator, and for the panel."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import socket

from aiohttp import web

from adapters.base import Adapter
from gateway.assembly.kit import Kit
from gateway.audit.buffer import Buffer
from gateway.backend import clinic_zone
from gateway.lifecycle import BoundListener
from gateway.limits.base import Limiter, LimiterDown, Used
from gateway.policy.running.keeper import Keeper
from gateway.settings import Settings, StartRefused
from gateway.settings.kinds import is_loopback, split_address, split_hosts
from gateway.store import Store
from gateway.web.addresses import Proxies
from gateway.web.connection_limiter import ConnectionLimiter
from gateway.web.server import AppRunner, bind, refusal_of
from gateway.web.system import Figures, Readiness, system_server
from gateway.web.tls import STRICT, Certificate, context_of

# Seconds that the last answers of a listener have to be sent.
CUT_OFF = 1.0
# Administrators are few, and a browser opens six connections at most.
PANEL_CONNECTIONS, PANEL_CONNECTIONS_OF_ONE = 100, 50
# The names of this machine in its own browsers.
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Sockets:
    """The sockets that are listened on; `panel` is None where there is no panel."""

    public: socket
    system: socket
    panel: socket | None

    @property
    def ports(self) -> dict[str, int]:
        """The port of each, by its name in the log."""
        named = {"port": self.public, "operations_port": self.system, "admin_port": self.panel}
        return {name: bound.getsockname()[1] for name, bound in named.items() if bound is not None}


def bind_all(settings: Settings, closers: ExitStack | AsyncExitStack) -> Sockets:
    """Binds all addresses until the closers close them, before anything else is touched.

    Raises StartRefused where that fails or the panel is unsafe, DocumentErrors for its texts.
    """
    check_panel(settings)
    if settings.admin_listen:
        from gateway.admin.words import check_words  # noqa: PLC0415 - as for the panel below

        check_words()

    def bound(address: str, setting: str) -> socket:
        return closers.enter_context(closing(bind(*split_address(address), setting)))

    return Sockets(
        bound(settings.listen, "listen"),
        bound(settings.operations_listen, "operations_listen"),
        bound(settings.admin_listen, "admin_listen") if settings.admin_listen else None,
    )


def check_panel(settings: Settings) -> None:
    """Raises StartRefused where passwords for the panel would cross a network in the clear."""
    if not _is_open(settings):
        return
    setting = "admin_listen"
    text = f"{settings.admin_listen} is open to the network"
    if settings.admin_url is None:
        text += ": set admin_url to the address under which browsers reach the panel, such as"
        text += " https://panel.clinic.example"
    elif not settings.admin_url.startswith("https://"):
        setting = "admin_url"
        text = f"{settings.admin_url} would send passwords in the clear: it must begin with"
        text += " https://"
    elif _pair(settings) is None and not settings.proxies:
        text += " without TLS: set tls_certificate and tls_key, or name in trusted_proxies the"
        text += " proxy that speaks TLS"
    else:
        return
    remedy = "or leave admin_listen at 127.0.0.1:8082 and reach it through an SSH tunnel"
    raise StartRefused(f"{setting}: {text}; {remedy}", setting)


def _is_open(settings: Settings) -> bool:
    """Returns whether other machines can reach the panel's address."""
    address = settings.admin_listen
    return bool(address) and not is_loopback(split_address(address)[0])


def panel_listener(  # noqa: PLR0913 - the panel tells of that many parts
    kit: Kit,
    sockets: Sockets,
    *,
    store: Store,
    adapter: Adapter,
    readiness: Readiness,
    keeper: Keeper,
    figures: Figures,
    audit: Buffer,
    limiter: Limiter,
) -> BoundListener | None:
    """Opens the panel's listener, if it has one; with TLS where the network can reach it."""
    settings, listening = kit.settings, sockets.panel
    if listening is None:
        return None
    # imported late: a process without the panel does not load its pages, which take megabytes
    from gateway.admin.context import Panel  # noqa: PLC0415
    from gateway.admin.guard import HEADERS  # noqa: PLC0415
    from gateway.admin.panel import panel  # noqa: PLC0415

    is_open = _is_open(settings)
    proxies = Proxies(settings.proxies, settings.proxy_hops)
    certificate = certificate_of(kit) if is_open else None
    headers = {} if certificate is None else STRICT
    parts = Panel(
        settings=settings,
        store=store,
        now=kit.now,
        zone=clinic_zone(settings),
        public_url=settings.public_url_at(sockets.public.getsockname()[1]),
        origins=_origins(settings, listening.getsockname()[1]),
        is_secure=settings.admin_url is not None and settings.admin_url.startswith("https:"),
        more_headers=headers,
        # a panel that is open to the network without TLS must be reached through the proxy
        only_through_proxies=is_open and certificate is None,
        trusts=proxies.trusts,
        caller=proxies.caller,
        standing=lambda: keeper.status,
        adapter=adapter,
        readiness=readiness.report,
        snapshot=figures,
        used=partial(_used, limiter),
        audit=audit,
        events=kit.events,
    )

    def refuse(error: BaseException | None, status: int) -> web.Response:
        refusal = refusal_of(error, status)
        if refusal.status >= 500 and error is not None:
            kit.events.report("panel_failed", error)
        text = f"{refusal.message}\n"
        response = web.Response(status=refusal.status, text=text, headers={**HEADERS, **headers})
        response.force_close()
        return response

    bounds = ConnectionLimiter(PANEL_CONNECTIONS, PANEL_CONNECTIONS_OF_ONE, proxies)
    runner = AppRunner(panel(parts), refuse, bounds, end=CUT_OFF)
    return kit.closing(BoundListener(runner=runner, socket=listening, certificate=certificate))


def _origins(settings: Settings, port: int) -> frozenset[str]:
    """Returns the addresses for browsers: admin_url, and this machine's own unless it is open."""
    named = {settings.admin_url} if settings.admin_url is not None else set()
    if _is_open(settings):
        return frozenset(named)
    host, _ = split_address(settings.admin_listen)
    hosts = {f"[{name}]" if ":" in name else name for name in (host, *_LOOPBACK)}
    return frozenset(named | {f"http://{name}:{port}" for name in hosts})


async def _used(limiter: Limiter, key_ids: Sequence[str]) -> Mapping[str, Used] | None:
    try:
        return await limiter.peek(key_ids)
    except LimiterDown:
        return None


def system_listener(
    kit: Kit, readiness: Readiness, listening: socket, figures: Figures
) -> BoundListener:
    """Opens the listener that the operator asks."""
    settings = kit.settings
    own, _ = split_address(settings.operations_listen)
    hosts = frozenset({own.lower(), *split_hosts(settings.operations_hosts)})
    server = system_server(readiness, figures, kit.events, hosts)
    runner = web.ServerRunner(server, shutdown_timeout=CUT_OFF)
    return kit.closing(BoundListener(runner=runner, socket=listening))


def certificate_of(kit: Kit) -> Certificate | None:
    """Opens the certificate of the gateway's own TLS, if it has one."""
    pair = _pair(kit.settings)
    return None if pair is None else kit.closing(Certificate(*pair, kit.events))


def check_tls(settings: Settings) -> None:
    """Raises StartRefused where the certificate and key in the settings are no usable pair."""
    if (pair := _pair(settings)) is not None:
        context_of(*pair)


def _pair(settings: Settings) -> tuple[Path, Path] | None:
    """Returns the certificate and its key, if set; raises StartRefused where one is missing."""
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        lacking = "tls_key" if key is None else "tls_certificate"
        raise StartRefused(f"{lacking} is not set: TLS takes a certificate and its key", lacking)
    return certificate, key
