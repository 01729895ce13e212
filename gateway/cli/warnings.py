"""What does not keep a gateway from serving, but is better mended: said when it begins."""

import ipaddress
from socket import socket

from gateway.observe.logs import Events
from gateway.settings import Settings
from gateway.state import open_to_others


def warn(settings: Settings, listening: socket, events: Events) -> None:
    """Say it."""
    state = settings.state
    if settings.public_url is None and not _on_loopback(listening):
        events.warn(
            "without public_url, Link and Location lead partners to their own machine",
            remedy="set public_url to the address that partners call",
        )
    if open_to_others(state):
        events.warn(
            "the state folder is open to others", folder=str(state), remedy=f"chmod 700 {state}"
        )


def _on_loopback(listening: socket) -> bool:
    return ipaddress.ip_address(listening.getsockname()[0]).is_loopback
