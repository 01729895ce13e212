"""Who may come in: how many connections a process and an address may hold, and who makes room."""

import resource
import time
from collections import Counter
from collections.abc import Callable, Container, Hashable, Mapping
from contextlib import suppress
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Protocol

from gateway.settings import StartRefused

# Files beside connections: databases, logs, the operations listener, what is closed in a moment.
SPARE_FILES = 300
# Seconds between two looks over all connections for those that are idle.
LOOK_EVERY = 0.02
# Seconds for which those make no room before others do who have just come, or have just begun to
# wait: what they ask for, or the rest of it, is on its way.
GRACE = 0.25
# Calls of one key that may have just begun to wait; those of a key with more of them are a crowd.
MOST_OF_KEY = 20

# Bits of an IPv6 network -> how many times as many connections it may hold as one address.
IPV6_NETWORKS = {64: 1, 56: 4}

# Who makes room, in this order: who is idle; who has just come and sent nothing; whose call has
# just begun to wait and has no key; whose call has just begun to wait and is one of a crowd.
_IDLE, _SILENT, _NO_KEY, _CROWD = range(4)

# Why a connection was refused or closed: names for `told`.
ADDRESS, PROCESS, IDLE, STRANGER = "address", "process", "idle", "stranger"


class Guest(Protocol):
    """A connection, as the doorman sees it."""

    @property
    def is_silent(self) -> bool:
        """Whether nothing has come of it yet."""

    @property
    def waits_for(self) -> str | None:
        """The id of the key whose call waits for room or for its body, "" for a call without one.

        None where no call waits.
        """

    @property
    def is_known(self) -> bool:
        """Whether a key that counts has come of it."""

    def idle_since(self) -> float | None:
        """The moment since which nobody works for it; None while somebody does."""

    def cut_off(self) -> None:
        """Close it at once."""


class Doorman:
    """Counts the connections of one process.

    `most` is for all of them, `most_of_one` for those of one address, except where `exempt`; of
    IPv6 a network of 64 bits is one address, and one of 56 bits, which is what homes mostly get,
    may hold four times as many. `told` hears why one was refused or closed: ADDRESS, PROCESS, IDLE
    or STRANGER.
    """

    def __init__(
        self,
        most: int,
        most_of_one: int,
        *,
        exempt: Callable[[str], bool] = lambda address: False,
        told: Callable[[str], None] = lambda reason: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._exempt = exempt
        self._told = told
        self._clock = clock
        # in the order in which they came: what each is counted as, and when that was
        self._inside: dict[Guest, tuple[Mapping[Hashable, int], float]] = {}
        self._of: Counter[Hashable] = Counter()
        self._idle: list[tuple[int, float, Guest]] = []
        self._looked = float("-inf")

    def __len__(self) -> int:
        return len(self._inside)

    def admit(self, guest: Guest, address: str) -> bool:
        """Whether it may come in; then it is inside until it leaves."""
        networks = {} if self._exempt(address) else networks_of(address)
        if any(self._of[each] >= times * self._most_of_one for each, times in networks.items()):
            self._told(ADDRESS)
            return False
        if len(self._inside) >= self._most and not self._make_room():
            self._told(PROCESS)
            return False
        self._inside[guest] = networks, self._clock()
        self._of.update(networks.keys())
        return True

    def leave(self, guest: Guest) -> None:
        """It is gone; once or more often."""
        if guest not in self._inside:
            return
        networks, _ = self._inside.pop(guest)
        self._of.subtract(networks.keys())
        for each in networks:
            if not self._of[each]:
                del self._of[each]

    def _make_room(self) -> bool:
        """Close the connection that does the least, and return whether there was one.

        In this order: who has been idle for the longest; who has just come and has sent nothing
        yet; whose call has no key and has just begun to wait; who has been busy for the longest
        without a key that counts; whose call has just begun to wait, like many others of its key.
        """
        rank, guest = self._least_busy()
        reason = IDLE
        if guest is None or rank == _CROWD:
            stranger = self._longest_stranger()
            if stranger is not None:
                guest, reason = stranger, STRANGER
        if guest is None:
            return False
        self._told(reason)
        self.leave(guest)
        guest.cut_off()
        return True

    def _longest_stranger(self) -> Guest | None:
        before = self._clock() - GRACE
        for guest, (_, came) in self._inside.items():
            if came > before:
                return None
            if not guest.is_known:
                return guest
        return None

    def _least_busy(self) -> tuple[int, Guest | None]:
        """One look over all gives many; who came to be idle since is younger than all of these."""
        now = self._clock()
        while True:
            looked_just_now = now - self._looked < LOOK_EVERY
            while self._idle:
                rank, since, guest = self._idle[-1]
                if rank != _IDLE and not looked_just_now:
                    break
                if guest in self._inside and guest.idle_since() == since:
                    return rank, guest
                self._idle.pop()
            if looked_just_now or not self._look(now):
                return _IDLE, None

    def _look(self, now: float) -> bool:
        """Whether anybody is idle; who makes room first is the last of them."""
        self._looked = now
        found = [(at, each) for each in self._inside if (at := each.idle_since()) is not None]
        waiting = Counter(key for at, each in found if now - at < GRACE and (key := each.waits_for))
        crowds = {key for key, many in waiting.items() if many > MOST_OF_KEY}
        ranked = ((_rank(each, now - at, crowds), at, each) for at, each in found)
        self._idle = [(rank, at, each) for rank, at, each in ranked if rank is not None]
        self._idle.sort(key=lambda each: each[:2], reverse=True)
        return bool(self._idle)


def _rank(guest: Guest, idle: float, crowds: Container[str]) -> int | None:
    """The rank of somebody who has been idle for so many seconds; None for whom to leave alone."""
    if idle >= GRACE:
        return _IDLE
    key = guest.waits_for
    if key is None:
        return _SILENT if guest.is_silent else _IDLE
    if not key:
        return _NO_KEY
    return _CROWD if key in crowds else None


def networks_of(address: str) -> Mapping[Hashable, int]:
    """What is counted as one address, and how many times as many connections it may hold."""
    with suppress(ValueError):
        read = ip_address(address.partition("%")[0])
        if not isinstance(read, IPv6Address):
            return {read: 1}
        if read.ipv4_mapped is not None:
            return {read.ipv4_mapped: 1}
        return {
            IPv6Network((read, bits), strict=False): times for bits, times in IPV6_NETWORKS.items()
        }
    return {address: 1}


def reserve_files(connections: int) -> None:
    """Let this process open that many connections; StartRefused where it may not."""
    wanted = connections + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise StartRefused(
            f"connections: {connections} connections need {wanted} open files, and this process may"
            f" have {hard}: raise that (LimitNOFILE, ulimit -Hn) or set connections to at most"
            f" {max(0, hard - SPARE_FILES)}",
            "connections",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
