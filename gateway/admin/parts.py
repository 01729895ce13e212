"""What the panel stands on: the gateway's own store, what runs, and how it fares."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from multidict import MultiMapping

from adapters.base import Adapter
from gateway.audit.buffer import Buffer
from gateway.limits.base import Used
from gateway.observe.logs import Events
from gateway.observe.metrics import Snapshot
from gateway.policy.policy import Policy
from gateway.policy.running.standing import Standing
from gateway.policy.running.versions import Version
from gateway.settings import Settings
from gateway.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """One gateway, as its panel sees it.

    `origins` are the addresses under which browsers may reach the panel; `more_headers` stand on
    every answer; `zone` is the clock on the clinic's wall; `snapshot` gives the figures of all
    processes of this machine, those of the ledger as they were told last. `used` gives what keys
    have used of their hour, None where what counts is down.
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
    policy: Callable[[], Policy]
    standing: Callable[[], Standing]
    running: Callable[[], Version]
    adapter: Adapter
    readiness: Callable[[], Awaitable[Mapping[str, Any]]]
    snapshot: Callable[[], Awaitable[Snapshot]]
    used: Callable[[Sequence[str]], Awaitable[Mapping[str, Used] | None]]
    audit: Buffer
    events: Events
