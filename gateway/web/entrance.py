"""What every connection of a listener shares: who lets it in, whom it trusts, what waits in it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.web.doorman import Doorman
from gateway.web.proxies import Proxies
from gateway.web.unsent import Unsent


def nobody(_: str) -> None:
    """Hears why a connection was refused or closed, and says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """One listener's, in one process; `told` hears why a connection was refused or closed."""

    doorman: Doorman
    proxies: Proxies = field(default_factory=Proxies)
    unsent: Unsent = field(default_factory=Unsent)
    told: Callable[[str], None] = nobody


def entrance(
    most: int,
    most_of_one: int,
    proxies: Proxies | None = None,
    told: Callable[[str], None] = nobody,
) -> Entrance:
    """For so many connections, and so many of one address that is no proxy's."""
    proxies = proxies or Proxies()
    return Entrance(
        doorman=Doorman(most, most_of_one, exempt=proxies.trusts, told=told),
        proxies=proxies,
        unsent=Unsent(told=told),
        told=told,
    )
