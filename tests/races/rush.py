"""One race: two gateway processes, the desk's process, many who book at once, and the history."""

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp

from adapters.base import Query
from gateway.contract.access import AccessLevel, Permission
from gateway.keys.key import Key
from gateway.keys.store import KeyStore
from gateway.settings import load_settings
from gateway.state import open_own_store
from tests.command import Forked, serving
from tests.races.desk import work
from tests.races.history import Call, History, Row, Stay
from tests.races.practice import (
    CLOSES,
    SECRET,
    SLOT,
    TYPES,
    VETS,
    ZONE,
    Practice,
    at,
    starts_of,
)

AT_ONCE = 48  # calls under way
SLACK = 5_000_000  # nanoseconds by which a server's clock may be taken for a later one
IMPOSSIBLE = timedelta(hours=12)
# How many bookings a gateway works on at once.
ROOM = {"postgresql": 4, "mariadb": 4, "sqlite": 1, "firebird": 4}
_CONFIGURATION = f"""\
listen: 127.0.0.1:0
operations_listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
state: .
shutdown_delay: 0
backend:
  mapping: practice.yaml
  secret: {SECRET}
  url: """


@dataclass(frozen=True)
class Wish:
    """A booking that somebody is going to ask for."""

    note: str
    vet: int
    kind: int
    start: datetime
    lasts: timedelta


@dataclass(frozen=True)
class Ended:
    """What a race left: its history, and what the gateways said on stderr beside `serving`."""

    history: History
    said: str


def wishes(count: int, days: Sequence[date], seed: int, *, slot_rows: bool) -> list[Wish]:
    """Bookings of which most clash, and a few are for times at which nobody works."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        kind = chance.choice(list(TYPES)[: 2 if slot_rows else 3])
        start = chance.choice(list(starts_of(chance.choice(list(days)))))
        start += IMPOSSIBLE if chance.random() < 0.03 else timedelta()
        lasts = SLOT if slot_rows else timedelta(minutes=TYPES[kind])
        found.append(Wish(f"race {number}", chance.choice(VETS), kind, start, lasts))
    return found


def offered(days: Sequence[date], *, slot_rows: bool) -> frozenset[tuple[int, datetime, datetime]]:
    """What an empty diary has to offer."""
    lengths = [SLOT] if slot_rows else [timedelta(minutes=each) for each in TYPES.values()]
    return frozenset(
        (vet, start, start + lasts)
        for vet in VETS
        for day in days
        for start in starts_of(day)
        for lasts in lengths
        if start + lasts <= at(day, CLOSES)
    )


async def race(
    practice: Practice,
    folder: Path,
    days: Sequence[date],
    *,
    count: int,
    seed: int,
    broken: str = "",
) -> Ended:
    """Let everybody book at once; `broken` is Python that spoils each gateway before it starts."""
    secret = await state_folders(practice, folder)
    wanted = wishes(count, days, seed, slot_rows=practice.slot_rows)
    log = folder / "desk.jsonl"
    with desk(practice, log, days, seed) as opens, gateways(folder, broken) as (ports, said):
        ids = await public_ids(practice, folder)
        opens()
        calls = await book_all(ports, secret, ids, wanted)
    history = History(
        calls=calls,
        stays=stays_of(log),
        offered=offered(days, slot_rows=practice.slot_rows),
        room=ROOM[practice.kind],
        **await what_is_left(practice),
    )
    return Ended(history, "".join(said))


async def state_folders(practice: Practice, folder: Path) -> str:
    """Two state folders with the sealing secret and a key in common; the key's secret."""
    for name in ("one", "two"):
        (folder / name).mkdir(mode=0o700)
        (folder / name / "practice.yaml").write_text(practice.mapping)
        (folder / name / "gateway.yaml").write_text(_CONFIGURATION + practice.url + "\n")
    first = load_settings(folder / "one" / "gateway.yaml", {})
    store = open_own_store(first)
    await store.migrate()
    key = Key(
        name="races",
        permissions=frozenset([Permission("APPOINTMENT_CREATE")]),
        level=AccessLevel("FULL"),
        created_at=datetime.now(UTC),
        limit=1_000_000,
    )
    secret = await KeyStore(store).add(key)
    await store.aclose()
    made = (folder / "one" / "gateway.db").read_bytes()
    (folder / "two" / "gateway.db").write_bytes(made)
    return secret


@contextmanager
def gateways(folder: Path, broken: str) -> Iterator[tuple[list[int], list[str]]]:
    """Two gateways that serve; their ports, and in the end what they said."""
    running = [
        serving("serve", "--config", str(folder / name / "gateway.yaml"), spoilt=broken)
        for name in ("one", "two")
    ]
    said: list[str] = []
    try:
        begun = [each.stderr.readline() for each in running]
        served = [json.loads(line) for line in begun]
        assert [each["event"] for each in served] == ["serving"] * 2, begun
        yield [each["port"] for each in served], said
    finally:
        for each in running:
            each.terminate()
        said += [each.communicate()[1] for each in running]


@contextmanager
def desk(
    practice: Practice, log: Path, days: Sequence[date], seed: int
) -> Iterator[Callable[[], None]]:
    """The desk, which works once it was called; it has committed all that it logs in the end."""
    alone = practice.kind == "sqlite"  # there one who writes keeps all others out
    orders = {
        "url": practice.url,
        "log": str(log),
        "days": [each.isoformat() for each in days],
        "seed": seed,
        "clerks": 2 if alone else 6,
        "longest": 0.03 if alone else 0.2,
        "slot_rows": practice.slot_rows,
    }
    with Forked(work, orders) as process:

        def opens() -> None:
            process.stdin.write("open\n")
            process.stdin.flush()
            assert process.stdout.readline() == "open\n", process.stderr.read()

        try:
            yield opens
        finally:
            process.stdin.close()
            assert process.wait(timeout=30) == 0


async def public_ids(practice: Practice, folder: Path) -> dict[tuple[str, int], str]:
    """What the gateways call the practice's rows, by resource and number."""
    adapter = practice.open(folder)
    try:
        now, found = datetime.now(UTC), {}
        for resource in ("vets", "clients", "patients", "appointmentTypes"):
            page = await adapter.read_many(Query(resource=resource, now=now))
            found |= {(resource, n): each["id"] for n, each in enumerate(page.records, 1)}
        return found
    finally:
        await adapter.aclose()


async def book_all(
    ports: Sequence[int], secret: str, ids: dict[tuple[str, int], str], wanted: Sequence[Wish]
) -> list[Call]:
    """Everybody's calls, to both gateways in turn."""
    room = asyncio.Semaphore(AT_ONCE)
    headers = {"X-API-Key": secret}
    async with aiohttp.ClientSession(
        headers=headers, connector=aiohttp.TCPConnector(limit=0)
    ) as session:

        async def one(number: int, wish: Wish) -> Call:
            which = number % len(ports)
            url = f"http://127.0.0.1:{ports[which]}/api/v1/appointments"
            body = {
                "clientId": ids["clients", 1],
                "patientId": ids["patients", 1],
                "vetId": ids["vets", wish.vet],
                "appointmentTypeId": ids["appointmentTypes", wish.kind],
                "scheduledAt": wish.start.replace(tzinfo=ZONE).isoformat(),
                "reason": wish.note,
                "isUrgent": False,
            }
            async with room:
                return await _called(session, url, body, wish, which)

        return list(await asyncio.gather(*(one(n, each) for n, each in enumerate(wanted))))


async def _called(
    session: aiohttp.ClientSession, url: str, body: dict[str, Any], wish: Wish, which: int
) -> Call:
    status: int | None = None
    start, end = wish.start, wish.start + wish.lasts
    sent = time.monotonic_ns()
    try:
        async with session.post(url, json=body) as response:
            answer = await response.json()
            status = response.status
    except aiohttp.ClientError:
        answer = {}
    answered = time.monotonic_ns()
    if status == 201:  # where it stands is what the partner was told
        start, end = _wall(answer["scheduledAt"]), _wall(answer["endTime"])
    return Call(
        note=wish.note, vet=wish.vet, start=start, end=end, gateway=which,
        sent=sent, answered=answered, status=status,
    )  # fmt: skip


def _wall(moment: str) -> datetime:
    return datetime.fromisoformat(moment).astimezone(ZONE).replace(tzinfo=None)


def stays_of(log: Path) -> list[Stay]:
    """The desk's log as the times that it took."""
    here: dict[str, Stay] = {}
    found = []
    for line in log.read_text("utf-8").splitlines():
        told = json.loads(line)
        if told["what"] == "gone":
            gone = here.pop(told["note"])
            found.append(replace(gone, leaving=told["committing"], left=told["committed"]))
        else:
            here[told["note"]] = Stay(
                note=told["note"], vet=told["vet"],
                start=datetime.fromisoformat(told["start"]),
                end=datetime.fromisoformat(told["end"]),
                committing=told["committing"], committed=told["committed"],
            )  # fmt: skip
    return [*found, *here.values()]


async def what_is_left(practice: Practice) -> dict[str, Any]:
    """The rows of the tables, and how many belong to nothing."""
    appointments = await practice.run(
        "SELECT id, note, vet, starts, ends, source, state FROM appointment"
        " WHERE state <> 'GONE' AND COALESCE(source, '') <> 'old'"
    )
    journal = await practice.run("SELECT appointment, happened FROM journal")
    attendance = await practice.run("SELECT appointment FROM attendance WHERE appointment > 1")
    since = time.time_ns() - time.monotonic_ns()
    marks: dict[int, list[int]] = {}
    for number, happened in journal:
        marks.setdefault(number, []).append(happened * 1000 - since - SLACK)
    attended = [number for (number,) in attendance]
    known = {each[0] for each in appointments}
    rows = [
        Row(
            note=note, vet=vet, start=_moment(starts), end=_moment(ends),
            ours=source == "gateway", free=state == "FREE",
            attended=attended.count(number), marks=tuple(marks.get(number, ())),
        )
        for number, note, vet, starts, ends, source, state in appointments
    ]  # fmt: skip
    strays = sum(number not in known for number in [*attended, *marks])
    return {"rows": rows, "strays": strays}


def _moment(raw: Any) -> datetime:
    return raw if isinstance(raw, datetime) else datetime.fromisoformat(raw)
