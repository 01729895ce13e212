"""What goes wrong with values, bookings, the logs, the store and the policy, and who says it."""

from gateway.observe.troubles.callers import (
    CertificateTroubles,
    ConnectionTroubles,
    KeyGuesses,
    KeysElsewhere,
    LoadTroubles,
    Unreadable,
)
from gateway.observe.troubles.keeping import LogTroubles, TraceTroubles, UsageTroubles
from gateway.observe.troubles.limits import KeyTroubles, LimiterTroubles
from gateway.observe.troubles.policy import PolicyNews
from gateway.observe.troubles.practice import BackendTroubles, BookingTroubles, Troubles

__all__ = [
    "BackendTroubles",
    "BookingTroubles",
    "CertificateTroubles",
    "ConnectionTroubles",
    "KeyGuesses",
    "KeyTroubles",
    "KeysElsewhere",
    "LimiterTroubles",
    "LoadTroubles",
    "LogTroubles",
    "PolicyNews",
    "TraceTroubles",
    "Troubles",
    "Unreadable",
    "UsageTroubles",
]
