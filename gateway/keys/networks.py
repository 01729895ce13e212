"""The networks that a key may be used from."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

MOST = 100
# Addresses for which it is remembered whether they are within.
REMEMBERED = 1_000
# An IPv4 address written as an IPv6 one has its own bits behind so many others.
_MAPPED, _MAPPED_BITS = IPv6Network("::ffff:0:0/96"), 96


def read_network(text: str) -> str:
    """The network, or the one address, in its shortest form; ValueError with the remedy."""
    try:
        network = ip_network(text.strip())
    except ValueError as error:
        raise ValueError(f"{text.strip()} is no network: write {_remedy(text)}") from error
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        bits = network.prefixlen - _MAPPED_BITS
        network = IPv4Network((int(network.network_address) & 0xFFFFFFFF, bits))
    return str(network if network.num_addresses > 1 else network.network_address)


def _remedy(text: str) -> str:
    try:
        return str(ip_network(text.strip(), strict=False))
    except ValueError:
        return "one such as 192.0.2.0/24, or an address such as 192.0.2.7"


class Networks:
    """Some networks; whether an address is within one is worked out once, and then remembered."""

    __slots__ = ("_known", "_networks")

    def __init__(self, networks: Iterable[str] = ()) -> None:
        self._networks = [ip_network(each) for each in networks]
        self._known: dict[str, bool] = {}

    def admit(self, address: str) -> bool:
        """Whether a caller's address is within one of them; what is no address never is."""
        known = self._known.get(address)
        if known is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            known = self._known[address] = self._is_within(address)
        return known

    def _is_within(self, address: str) -> bool:
        try:
            found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return any(_holds(each, found) for each in self._networks)


def _holds(network: IPv4Network | IPv6Network, address: IPv4Address | IPv6Address) -> bool:
    return network.version == address.version and address in network
