"""The panel, with what it stands on in the process that decides the policy."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from gateway.admin.context import PanelContext
from gateway.admin.panel import panel
from gateway.assembly.kit import Kit
from gateway.assembly.practice import Practice
from gateway.assembly.sides import Sockets, is_open, panel_side
from gateway.audit.buffer import Buffer
from gateway.backend import clinic_zone
from gateway.limits import LimiterDown, Peeker, Used
from gateway.observe.metrics import Snapshot
from gateway.policy.running.keeper import Keeper
from gateway.serving import PanelSide
from gateway.settings import Settings, split_address
from gateway.store import Store
from gateway.web.addresses import Proxies
from gateway.web.system import Readiness
from gateway.web.tls import STRICT

# What this machine is called by its own browsers.
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What the process knows of the whole gateway."""

    store: Store
    readiness: Readiness
    keeper: Keeper
    snapshot: Callable[[], Awaitable[Snapshot]]
    audit: Buffer
    limiter: Peeker


def panel_of(kit: Kit, practice: Practice, watched: Watched, sockets: Sockets) -> PanelSide | None:
    """The panel, where there is to be one."""
    settings, listening = kit.settings, sockets.panel
    if listening is None:
        return None
    proxies = Proxies(settings.proxies, settings.proxy_hops)
    speaks_tls = is_open(settings) and settings.tls_certificate is not None
    context = PanelContext(
        settings=settings,
        store=watched.store,
        now=kit.now,
        zone=clinic_zone(settings),
        public_url=settings.public_url_at(sockets.public.getsockname()[1]),
        origins=_origins(settings, listening.getsockname()[1]),
        is_secure=settings.admin_url is not None and settings.admin_url.startswith("https:"),
        more_headers=STRICT if speaks_tls else {},
        # what the network can reach without TLS of its own is reached through the proxy alone
        only_through_proxies=is_open(settings) and not speaks_tls,
        trusts=proxies.trusts,
        caller=proxies.caller,
        policy=watched.keeper.policy,
        standing=lambda: watched.keeper.status,
        running=lambda: watched.keeper.status.version,
        adapter=practice.adapter,
        readiness=watched.readiness.report,
        snapshot=watched.snapshot,
        used=partial(_used, watched.limiter),
        audit=watched.audit,
        events=kit.events,
    )
    return panel_side(kit, panel(context), listening)


def _origins(settings: Settings, port: int) -> frozenset[str]:
    """The addresses under which browsers may reach the panel: this machine's own, and the named."""
    named = {settings.admin_url} if settings.admin_url is not None else set()
    if is_open(settings):
        return frozenset(named)
    host, _ = split_address(settings.admin_listen)
    hosts = {f"[{each}]" if ":" in each else each for each in (host, *_LOOPBACK)}
    return frozenset(named | {f"http://{each}:{port}" for each in hosts})


async def _used(limiter: Peeker, key_ids: Sequence[str]) -> Mapping[str, Used] | None:
    try:
        return await limiter.peek(key_ids)
    except LimiterDown:
        return None
