"""What the panel stands on: one gateway, as whoever wires it hands it over."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from aiohttp import web
from multidict import MultiMapping

from adapters.base import Adapter
from gateway.audit.buffer import Buffer
from gateway.events import Events
from gateway.limits.base import Used
from gateway.observe.metrics import Snapshot
from gateway.policy.running.keeper import PolicyStatus
from gateway.settings import Settings
from gateway.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelContext:
    """One gateway, as its panel sees it.

    `origins` are the addresses under which browsers may reach the panel; `more_headers` stand on
    every answer; `zone` is the clock on the clinic's wall; `standing` gives the policy that runs;
    `snapshot` the figures of all processes of this machine, those of the ledger as they were told
    last; `used` what keys have used of their hour, None where what counts is down.
    """

    settings: Settings
    store: Store
    now: Callable[[], datetime]
    zone: ZoneInfo
    public_url: str
    origins: frozenset[str]
    is_secure: bool
    more_headers: Mapping[str, str]
    only_through_proxies: bool
    trusts: Callable[[str], bool]
    caller: Callable[[str, MultiMapping[str]], str]
    standing: Callable[[], PolicyStatus]
    adapter: Adapter
    readiness: Callable[[], Awaitable[Mapping[str, Any]]]
    snapshot: Callable[[], Awaitable[Snapshot]]
    used: Callable[[Sequence[str]], Awaitable[Mapping[str, Used] | None]]
    audit: Buffer
    events: Events

    def address_of(self, request: web.Request) -> str:
        """Returns who asks, whether or not through a proxy."""
        remote = request.remote or ""
        return self.caller(remote, request.headers) if self.trusts(remote) else remote
