"""Bounds connections: admits them, closes the least busy ones, and turns the others away."""

import asyncio
import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from socket import SHUT_WR, socket

from gateway.contract.errors import Unavailable
from gateway.settings import StartRefused
from gateway.web.addresses import Proxies, networks_of
from gateway.web.connection import Connection, WriteBufferLimit
from gateway.web.replies import Replies

# Open files beside connections: databases, logs, the operations listener, refused connections.
SPARE_FILES = 300
# Seconds between two searches of all connections for idle ones.
LOOK_EVERY = 0.02
# Seconds for which a connection that has just come, or has just begun to wait, is closed only after
# others: its request, or the rest of it, is on its way.
GRACE = 0.25
# Calls of one key that may have just begun to wait. Those of a key with more are a crowd.
MOST_OF_KEY = 20

# Connections are closed in this order: idle ones; new ones that have sent nothing; those whose call
# has just begun to wait and has no key; those whose call has just begun to wait in a crowd.
_IDLE, _SILENT, _NO_KEY, _CROWD = range(4)

# Why a connection was refused or closed.
ADDRESS, PROCESS, IDLE, STRANGER = "address", "process", "idle", "stranger"

# Refused connections that are listened to at once, and answered in a second. The rest are closed.
MOST_AT_ONCE = 100
MOST_IN_A_SECOND = 500
# Seconds, and bytes, for which a refused connection is listened to after its answer.
LONGEST = 2.0
MOST_BYTES = 256 * 1024


@dataclass(eq=False)
class ConnectionLimiter:
    """Counts the connections of one process to one listener, and bounds what waits in them.

    `most` bounds all of them, `most_of_one` those of one address, unless it is a proxy's.
    `on_refusal` is called with the reason for each refused or closed one, such as ADDRESS or IDLE.
    """

    most: int
    most_of_one: int
    proxies: Proxies = field(default_factory=Proxies)
    on_refusal: Callable[[str], None] = lambda reason: None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.write_limit = WriteBufferLimit(on_refusal=self.on_refusal)
        # in the order in which they came: the networks of each, and when it came
        self._inside: dict[Connection, tuple[Mapping[Hashable, int], float]] = {}
        self._of: Counter[Hashable] = Counter()
        self._idle: list[tuple[int, float, Connection]] = []
        self._looked = float("-inf")

    def __len__(self) -> int:
        return len(self._inside)

    def admit(self, connection: Connection, address: str) -> bool:
        """Returns whether the connection may come in; then it counts until it leaves."""
        networks = {} if self.proxies.trusts(address) else networks_of(address)
        if any(self._of[name] >= times * self.most_of_one for name, times in networks.items()):
            self.on_refusal(ADDRESS)
            return False
        if len(self._inside) >= self.most and not self._make_room():
            self.on_refusal(PROCESS)
            return False
        self._inside[connection] = networks, self.clock()
        self._of.update(networks.keys())
        return True

    def leave(self, connection: Connection) -> None:
        """Stops counting a connection; does nothing where it was not counted."""
        if connection not in self._inside:
            return
        networks, _ = self._inside.pop(connection)
        self._of.subtract(networks.keys())
        for network in networks:
            if not self._of[network]:
                del self._of[network]

    def _make_room(self) -> bool:
        """Closes the least busy connection, and returns whether there was one.

        Before the last rank, _CROWD, comes the oldest busy connection without a valid key.
        """
        rank, connection = self._least_busy()
        reason = IDLE
        if connection is None or rank == _CROWD:
            before = self.clock() - GRACE
            came = takewhile(lambda entry: entry[1][1] <= before, self._inside.items())
            stranger = next((caller for caller, _ in came if not caller.is_known), None)
            if stranger is not None:
                connection, reason = stranger, STRANGER
        if connection is None:
            return False
        self.on_refusal(reason)
        self.leave(connection)
        connection.cut_off()
        return True

    def _least_busy(self) -> tuple[int, Connection | None]:
        """Returns the connection to close first, with its rank; searches all once in LOOK_EVERY."""
        now = self.clock()
        while True:
            looked_just_now = now - self._looked < LOOK_EVERY
            while self._idle:
                rank, since, connection = self._idle[-1]
                if rank != _IDLE and not looked_just_now:
                    break
                if connection in self._inside and connection.idle_since() == since:
                    return rank, connection
                self._idle.pop()
            if looked_just_now or not self._look(now):
                return _IDLE, None

    def _look(self, now: float) -> bool:
        """Sorts all that can make room, the first to close last; returns whether there are any."""
        self._looked = now
        idle = [(at, line) for line in self._inside if (at := line.idle_since()) is not None]
        waiting = Counter(key for at, line in idle if now - at < GRACE and (key := line.waits_for))
        self._idle = []
        for at, line in idle:
            key, rank = line.waits_for, _IDLE
            if now - at < GRACE:
                if key is None:
                    rank = _SILENT if line.is_silent else _IDLE
                elif not key:
                    rank = _NO_KEY
                elif waiting[key] > MOST_OF_KEY:
                    rank = _CROWD
                else:  # its request is on its way
                    continue
            self._idle.append((rank, at, line))
        # of those that are idle since the same moment, who came first is closed first
        self._idle.sort(key=lambda entry: entry[:2])
        self._idle.reverse()
        return bool(self._idle)


def reserve_files(connections: int) -> None:
    """Lets this process open that many connections; raises StartRefused where it may not."""
    needed = connections + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise StartRefused(
            f"connections: {connections} connections need {needed} open files, and this process may"
            f" have {hard}: raise that (LimitNOFILE, ulimit -Hn) or set connections to at most"
            f" {max(0, hard - SPARE_FILES)}",
            "connections",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class Overflow:
    """Answers the connections that there is no room for, and closes them; `clock` gives seconds.

    A close alone would be a reset where the caller has sent something that nobody read, and a reset
    takes away the answer that lies unread at the caller's side. So what the caller sends is read
    and thrown away for a moment. Beyond these bounds a connection is closed at once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._replies = Replies("")
        self._open: dict[socket, asyncio.TimerHandle] = {}
        self._second, self._answered = 0, 0

    def turn_away(self, line: socket) -> None:
        """Answers where there is no need to wait, and closes in a moment."""
        second = int(self._clock())
        if second != self._second:
            self._second, self._answered = second, 0
        if len(self._open) >= MOST_AT_ONCE or self._answered >= MOST_IN_A_SECOND:
            line.close()
            return
        self._answered += 1
        line.setblocking(False)
        # nobody knows when there is room again
        refusal = self._replies.error(os.urandom(16).hex(), Unavailable(0))
        try:
            # it fits the empty send buffer
            line.send(refusal.encoded("Connection: close\r\n"))
            line.shutdown(SHUT_WR)
        except OSError:
            line.close()
            return
        loop = asyncio.get_running_loop()
        self._open[line] = loop.call_later(LONGEST, self._close, line)
        loop.add_reader(line, partial(self._listen, line, [MOST_BYTES]))

    def close(self) -> None:
        for line in list(self._open):
            self._close(line)

    def _listen(self, line: socket, left: list[int]) -> None:
        """Reads and drops what comes; closes when the caller does, or has sent MOST_BYTES."""
        with suppress(BlockingIOError, InterruptedError):
            try:
                size = len(line.recv(64 * 1024))
            except ConnectionError:
                size = 0
            left[0] -= size
            if not size or left[0] <= 0:
                self._close(line)

    def _close(self, line: socket) -> None:
        self._open.pop(line).cancel()
        asyncio.get_running_loop().remove_reader(line)
        line.close()
