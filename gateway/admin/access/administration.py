"""What the panel knows of its administrators, and what they do."""

from collections.abc import Callable
from datetime import datetime

from gateway.administrators.failures import Failures
from gateway.administrators.passwords import Passwords
from gateway.administrators.sessions import SessionStore
from gateway.administrators.store import AdministratorStore
from gateway.audit.buffer import Buffer
from gateway.inquiries.deeds import Deeds
from gateway.store import Store


class Administration(Deeds):
    """The administrators of a store, their sessions, and the log of what they do."""

    def __init__(self, store: Store, audit: Buffer, now: Callable[[], datetime]) -> None:
        super().__init__(store, audit, now)
        self.administrators = AdministratorStore(store)
        self.sessions = SessionStore(store)
        self.failures = Failures(store)
        self.passwords = Passwords()
