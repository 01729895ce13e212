"""The networks of a key: how they are written, and who is within."""

from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.keys.key import REMEMBERED, _place_of, read_network, within_some


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("192.0.2.0/24", "192.0.2.0/24"),
        (" 192.0.2.7 ", "192.0.2.7"),
        ("192.0.2.7/32", "192.0.2.7"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("2001:DB8:0::/48", "2001:db8::/48"),
        ("2001:db8::1/128", "2001:db8::1"),
        ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("::/0", "::/0"),
    ],
)
def test_a_network_is_kept_in_its_shortest_form(written: str, kept: str) -> None:
    assert read_network(written) == kept
    assert read_network(kept) == kept


@pytest.mark.parametrize(
    ("written", "remedy"),
    [
        ("192.0.2.1/24", "192.0.2.1/24 is no network: write 192.0.2.0/24"),
        ("2001:db8::1/48", "2001:db8::1/48 is no network: write 2001:db8::/48"),
        ("192.0.2", "192.0.2 is no network: write one such as 192.0.2.0/24"),
        ("example.org", "example.org is no network: write one such as"),
        ("", " is no network: write one such as"),
        ("192.0.2.0/33", "192.0.2.0/33 is no network: write one such as"),
        ("10.0.0.1-10.0.0.9", "10.0.0.1-10.0.0.9 is no network"),
    ],
)
def test_what_is_no_network_is_refused_with_the_remedy(written: str, remedy: str) -> None:
    with pytest.raises(ValueError, match="is no network") as error:
        read_network(written)
    assert str(error.value).startswith(remedy)


@pytest.mark.parametrize(
    ("address", "within"),
    [
        ("192.0.2.7", True),
        ("::ffff:192.0.2.7", True),
        ("::ffff:c000:207", True),
        ("192.0.3.7", False),
        ("2001:db8::7", True),
        ("2001:db8::7%eth0", True),
        ("2001:db9::7", False),
        ("::192.0.2.7", False),
        ("", False),
        ("unix", False),
        ("192.0.2.7:80", False),
    ],
)
def test_an_address_is_within_one_of_them_or_not(address: str, within: bool) -> None:
    is_within = within_some(["192.0.2.0/24", "2001:db8::/48"])
    assert [is_within(address) for _ in range(2)] == [within, within]


NETWORK = st.one_of(
    st.builds(ip_network, st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 32)), st.just(False)),
    st.builds(ip_network, st.tuples(st.just(10 << 24), st.integers(7, 32)), st.just(False)),
    st.builds(
        ip_network,
        st.tuples(st.sampled_from([b"\0" * 16, b"\xff" * 16]), st.integers(0, 128)),
        st.just(False),
    ),
)


@given(st.lists(NETWORK, max_size=6), st.data())
def test_who_is_within_is_what_each_network_says(
    networks: list[IPv4Network | IPv6Network], data: st.DataObject
) -> None:
    ends = [each[number] for each in networks for number in (0, -1)]
    near = [type(end)(int(end) + step) for end in ends for step in (-1, 0, 1) if fits(end, step)]
    address = data.draw(st.sampled_from([*near, ip_address("10.0.0.1"), ip_address("::1:0:1")]))
    within = any(address in network for network in networks)
    assert within_some(map(str, networks))(str(address)) == within


def fits(address: IPv4Address | IPv6Address, step: int) -> bool:
    return 0 <= int(address) + step < 2**address.max_prefixlen


def test_so_many_addresses_are_remembered_and_no_more() -> None:
    is_within = within_some(["10.0.0.0/8"])
    for number in range(REMEMBERED + 5):
        assert is_within(f"10.0.{number // 256}.{number % 256}")
    assert 0 < _place_of.cache_info().currsize <= REMEMBERED
