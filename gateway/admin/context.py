"""What the panel stands on: the gateway's store, what runs, how it fares, and who works here."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from aiohttp import web
from multidict import MultiMapping

from adapters.base import Adapter
from gateway.administrators.administrator import AdministratorStore
from gateway.administrators.passwords import AttemptLimiter, Passwords
from gateway.administrators.sessions import SessionStore
from gateway.audit.buffer import Buffer
from gateway.inquiries.deeds import Deeds
from gateway.inquiries.keys import KeyBook
from gateway.limits.base import Used
from gateway.observe.logs import Events
from gateway.observe.metrics import Snapshot
from gateway.policy.policy import Policy
from gateway.policy.running.keeper import PolicyStatus
from gateway.policy.running.versions import Version
from gateway.settings import Settings
from gateway.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelContext:
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
    standing: Callable[[], PolicyStatus]
    running: Callable[[], Version]
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


class Administration(Deeds):
    """The administrators of a store, their sessions, and the log of what they do."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context.store, context.audit, context.now)
        self.administrators = AdministratorStore(context.store)
        self.sessions = SessionStore(context.store)
        self.attempts = AttemptLimiter(context.store)
        self.passwords = Passwords()


CONTEXT = web.AppKey("context", PanelContext)
ADMINISTRATION = web.AppKey("administration", Administration)
KEYS = web.AppKey("keys", KeyBook)
