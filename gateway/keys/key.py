"""A key: what the clinic decided about one partner. The secret is not part of it."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    collapse_addresses,
    ip_address,
    ip_network,
)
from typing import Annotated
from uuid import uuid4

from msgspec import Meta

from gateway.contract.access import AccessLevel, Permission

DEFAULT_LIMIT = 1000
MOST_NETWORKS = 100
# Addresses whose places are remembered.
REMEMBERED = 10_000
# The places of IPv6 addresses are behind those of IPv4, and what is no address is before all.
_IPV6, _NOWHERE = 1 << 32, -1
# IPv4 addresses that are written as IPv6 ones.
_MAPPED = IPv6Network("::ffff:0:0/96")


def read_network(text: str) -> str:
    """Returns the network or address in its shortest form; raises ValueError with the remedy."""
    try:
        network = ip_network(text.strip())
    except ValueError as error:
        remedy = "one such as 192.0.2.0/24, or an address such as 192.0.2.7"
        with suppress(ValueError):
            remedy = str(ip_network(text.strip(), strict=False))
        raise ValueError(f"{text.strip()} is no network: write {remedy}") from error
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        bits = network.prefixlen - _MAPPED.prefixlen
        network = IPv4Network((int(network.network_address) & 0xFFFFFFFF, bits))
    return str(network if network.num_addresses > 1 else network.network_address)


@lru_cache(REMEMBERED)
def _place_of(address: str) -> int:
    """Returns the place of an address among all of both versions."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return _NOWHERE
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return _place(parsed)


def _place(address: IPv4Address | IPv6Address) -> int:
    return int(address) + (_IPV6 if isinstance(address, IPv6Address) else 0)


def within_some(networks: Iterable[str]) -> Callable[[str], bool]:
    """Returns what tells whether an address is in one of the networks.

    It takes as long however many there are, so that the time of a refusal tells nothing of them.
    """
    known = [ip_network(network) for network in networks]
    apart: list[IPv4Network | IPv6Network] = [
        *collapse_addresses(each for each in known if isinstance(each, IPv4Network)),
        *collapse_addresses(each for each in known if isinstance(each, IPv6Network)),
    ]
    firsts = [_place(network[0]) for network in apart]
    lasts = [_NOWHERE - 1, *(_place(network[-1]) for network in apart)]

    def is_within(address: str) -> bool:
        place = _place_of(address)
        return place <= lasts[bisect_right(firsts, place)]

    return is_within


Moment = Annotated[datetime, Meta(tz=True)]
Count = Annotated[int, Meta(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What a key may do; `scopes` override the level per resource name, times are in UTC.

    `networks` are all that it may be used from, as `read_network` writes them, and `within` tells
    whether an address is in one. Without networks it may be used from anywhere, and without
    `bookings_per_day` it may book any number.
    """

    id: str = field(default_factory=lambda: str(uuid4()))
    name: str
    permissions: frozenset[Permission]
    level: AccessLevel
    created_at: Moment
    contact: str | None = None
    scopes: Mapping[str, AccessLevel] = field(default_factory=dict)
    limit: Count = DEFAULT_LIMIT
    expires_at: Moment | None = None
    last_used_at: Moment | None = None
    revoked_at: Moment | None = None
    bookings_per_day: Count | None = None
    networks: tuple[str, ...] = ()
    within: Callable[[str], bool] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "within", within_some(self.networks) if self.networks else None)

    def level_for(self, resource: str) -> AccessLevel:
        return self.scopes.get(resource, self.level)

    def active(self, now: datetime) -> bool:
        """Returns whether it is neither revoked nor expired; it expires at its date, not after."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
