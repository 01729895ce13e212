"""Whether the time of a 401 tells why a key was refused.

Unknown, malformed, revoked and expired keys are asked for in turn, in a new order each round, over
one connection to a gateway in a process of its own: Welch's t of every two is below 4.5. Then
`authenticate` alone, without the noise of a network, where t would show single nanoseconds: what is
left is below 50 of these, which no network shows. Who sends two keys knows that; what must not be
told is whether they are good. TIMING_PAIRS says how many of each there are (20000).
"""

import asyncio
import os
import random
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Self

from attack.base import Row
from attack.clinic import Clinic
from attack.statistics import Compared, compared
from attack.target import Target
from gateway.contract.errors import KeyInvalid
from gateway.keys.key import Key
from gateway.keys.ring import KeyRing
from gateway.keys.secret import digest, hint, mint
from gateway.keys.store import KeyAndSecrets, KnownSecret
from gateway.pipeline.steps import authenticate, digest_of

PAIRS = int(os.environ.get("TIMING_PAIRS", "20000"))
BOUND = 4.5
NEAR_BOUND = 0.05
"""Microseconds: a hit in a dict takes some hundredths longer than a miss."""
WARM_UP = 500
SOON = 20
"""Seconds until a key expires: it is made by a command, which takes its time."""
PATH = "/api/v1/clients"
ADDRESS = b"10.000.000.000"
"""As long as what takes its place."""
WIRE, NEAR = "over the wire", "in one process"
Times = dict[str, list[float]]


class Connection:
    """One connection that is asked again and again, and made anew when it is closed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._addresses = (b"10.%d.%d.%d" % each for each in product(range(100, 200), repeat=3))
        self._socket = self._connected()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _connected(self) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self._port), timeout=10)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def ask(self, sent: bytes) -> tuple[float, bytes]:
        """The seconds until the whole answer was there, and the answer.

        Each call comes from another address, as the proxy says: who calls often without a good key
        waits, whatever is wrong with it.
        """
        sent = sent.replace(ADDRESS, next(self._addresses))
        began = time.perf_counter()
        self._socket.sendall(sent)
        heard = self._socket.recv(1 << 16)
        while not _whole(heard):
            more = self._socket.recv(1 << 16)
            if not more:
                raise ConnectionError("the answer was cut off")
            heard += more
        taken = time.perf_counter() - began
        if b"\r\nconnection: close\r\n" in heard.lower():
            self._socket.close()
            self._socket = self._connected()
        return taken, heard


def _whole(heard: bytes) -> bool:
    head, blank, body = heard.partition(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return bool(blank) and len(body) >= int(length or 0)


def requests(secrets: Mapping[str, tuple[str, ...]]) -> dict[str, bytes]:
    """A request for each state; all have as many headers and bytes, however many keys."""
    made = {}
    for state, given in secrets.items():
        names = ["X-API-Key", "X-API-Key" if len(given) > 1 else "X-API-Kex"]
        values = [given[0], given[-1]]
        lines = [f"{name}: {value}" for name, value in zip(names, values, strict=True)]
        lines.append(f"X-Forwarded-For: {ADDRESS.decode()}")
        head = [f"GET {PATH} HTTP/1.1", "Host: x", *lines, "", ""]
        made[state] = "\r\n".join(head).encode()
    return made


def over_the_wire(port: int, asked: Mapping[str, bytes], pairs: int) -> Times:
    """The times of as many answers to each; all must be the same refusal."""
    with Connection(port) as connection:
        for sent in [*asked.values()] * (WARM_UP // len(asked)):
            _, heard = connection.ask(sent)
            if not heard.startswith(b"HTTP/1.1 401 "):
                raise ValueError(f"no refusal: {heard[:100]!r}")
        return _in_turn({name: _asking(connection, sent) for name, sent in asked.items()}, pairs)


def _asking(connection: Connection, sent: bytes) -> Callable[[], float]:
    return lambda: connection.ask(sent)[0]


def _in_turn(timed: Mapping[str, Callable[[], float]], pairs: int) -> Times:
    """Each once in a round, in an order that nothing else goes by."""
    order = random.Random(1)
    times: Times = {name: [] for name in timed}
    names = [*timed]
    for _ in range(pairs):
        order.shuffle(names)
        for name in names:
            times[name].append(timed[name]())
    return times


def in_process(
    ring: KeyRing, secrets: Mapping[str, tuple[str, ...]], now: datetime, pairs: int
) -> Times:
    """The times of as many refusals of each by `authenticate` alone."""

    def asking(given: tuple[str, ...]) -> Callable[[], float]:
        def ask() -> float:
            began = time.perf_counter()
            try:
                authenticate(digest_of(given), ELSEWHERE, ring, now, settled=True)
            except KeyInvalid:
                return time.perf_counter() - began
            raise ValueError("a key that is not good was taken for one")

        return ask

    timed = {state: asking(given) for state, given in secrets.items()}
    _in_turn(timed, WARM_UP)
    return _in_turn(timed, pairs)


ALONE = ("unknown", "malformed", "revoked", "expired", "elsewhere")
# Where the attacker calls from, and a network that this is not in.
ELSEWHERE, NETWORK = "127.0.0.1", "192.0.2.0/24"
TWICE = ("unknown twice", "good twice")


def states(good: str, revoked: str, expired: str, elsewhere: str) -> dict[str, tuple[str, ...]]:
    """What is sent in each state."""
    unknown = mint()
    return {
        "unknown": (mint(),),
        "malformed": (mint()[:-1] + "!",),
        "revoked": (revoked,),
        "expired": (expired,),
        "elsewhere": (elsewhere,),
        "unknown twice": (unknown, unknown),
        "good twice": (good, good),
    }


def ring_of(secrets: Mapping[str, tuple[str, ...]], now: datetime) -> KeyRing:
    """A ring that holds the keys behind these states, among others."""

    def key(name: str, **more: object) -> Key:
        every: Mapping[str, object] = {"permissions": frozenset(), "level": "FULL"}
        made = {"id": name, "name": name, "created_at": now - timedelta(days=1), **every, **more}
        return Key(**made)  # type: ignore[arg-type]

    kept = [(key(f"other {n}"), mint()) for n in range(100)]
    kept.append((key("good"), secrets["good twice"][0]))
    kept.append((key("revoked", revoked_at=now), secrets["revoked"][0]))
    kept.append((key("expired", expires_at=now), secrets["expired"][0]))
    kept.append((key("elsewhere", networks=(NETWORK,)), secrets["elsewhere"][0]))
    changes = {
        each.id: (each, (KnownSecret(hint(secret), digest(secret)),)) for each, secret in kept
    }
    ring = KeyRing(_Kept(changes), None)  # type: ignore[arg-type]  # nothing is told here
    asyncio.run(ring.refresh())
    return ring


@dataclass(frozen=True)
class _Kept:
    """As much of a store as a ring reads."""

    rows: Mapping[str, KeyAndSecrets]

    async def changes(self, since: int) -> tuple[int, Mapping[str, KeyAndSecrets]]:
        return 1, self.rows


def run(target: Target) -> Row:
    """Every two states compared, over the wire and in one process; each comparison is told."""
    found = measured(target, PAIRS)
    print("\n".join(table(found)), flush=True)
    failures = tuple(
        f"{how}: {each.one} and {each.other} are told apart"
        for how, pairs in found.items()
        for each in pairs
        if not alike(how, each)
    )
    largest = max(abs(each.t) for each in found[WIRE])
    return Row(attack="timing", failures=failures, note=f"t at most {largest:.1f}, {PAIRS} pairs")


def measured(target: Target, pairs: int) -> dict[str, list[Compared]]:
    clinic = Clinic(target)
    soon = datetime.now(UTC) + timedelta(seconds=SOON)
    late = clinic.key(expires=soon.isoformat(timespec="seconds"))
    gone = clinic.key()
    clinic.command("keys", "revoke", "--yes", gone["id"])
    bound = clinic.key(network=NETWORK)
    time.sleep(max(0.0, (soon - datetime.now(UTC)).total_seconds()) + 1.5)
    sent = states(target.stolen, gone["key"], late["key"], bound["key"])
    wire = over_the_wire(target.port, requests(sent), pairs)
    alone = states(mint(), mint(), mint(), mint())
    now = datetime.now(UTC)
    near = in_process(ring_of(alone, now), alone, now, pairs)
    return {
        how: [*compared(times, *ALONE), *compared(times, *TWICE)]
        for how, times in ((WIRE, wire), (NEAR, near))
    }


def alike(how: str, each: Compared) -> bool:
    """Whether nobody can tell the two apart."""
    return abs(each.t) < BOUND if how == WIRE else abs(each.microseconds) < NEAR_BOUND


def table(found: Mapping[str, Iterable[Compared]]) -> list[str]:
    lines = []
    for how, pairs in found.items():
        for each in pairs:
            verdict = "alike" if alike(how, each) else "TOLD APART"
            names = f"{each.one} / {each.other}"
            figures = f"t {each.t:6.2f}  {each.microseconds:+8.3f} us"
            lines.append(f"{how:15} {names:28} {figures}  {each.pairs} pairs  {verdict}")
    return lines
