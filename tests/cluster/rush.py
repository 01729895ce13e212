"""Partners who race through the proxy for the same few times, while a node dies and comes back."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from examples.postgres_slots.values import ZONE as CLINIC
from gateway.booking.times import IN_DOUBT
from tests.adapters.servers import execute_async
from tests.chaos.history import LOST, UNKNOWN, Attempt, Row, Wish
from tests.chaos.storm import Storm
from tests.cluster.stack import BOOKING_TIMEOUT, Stack
from tests.processes.gateways import get
from tests.races.practice import ZONE

API = "/api/v1"
KINDS = (1, 2)
# Each with rooms that no other one of them works in: who is refused was in the way of its own vet.
VETS = (1, 3, 4)
NAMES = """SELECT "Id", concat_ws(' ', "Title", trim(split_part("Name", ',', 2)),
  split_part("Name", ',', 1)) FROM "Staff" """
BOOKED = """SELECT a."Note", a."StaffId", a."ScheduleId", a."StartsUtc", a."Minutes",
  (SELECT count(*) FROM "AppointmentLog" l WHERE l."AppointmentId" = a."Id"),
  CAST(a."PatientId" IS NOT NULL AS integer)
  FROM "Appointment" a WHERE a."State" NOT IN (0, 8, 9) AND a."Note" ~ '^[12] [0-9]+$'"""
STRAYS = """SELECT count(*) FROM "AppointmentLog" l WHERE NOT EXISTS
  (SELECT 1 FROM "Appointment" a WHERE a."Id" = l."AppointmentId")"""


@dataclass
class Rush(Storm):
    """A storm over what was free when it began: (vet, kind, start, end), by the partners' clock."""

    offered: Sequence[tuple[int, int, datetime, datetime]] = field(default_factory=list)

    async def asked(self, times: int) -> None:
        """Once so many attempts have ended."""
        while len(self.attempts) < times:  # noqa: ASYNC110 - a storm tells nobody
            await asyncio.sleep(0.01)

    def _wish(self, chance: random.Random) -> Wish:
        self._wishes += 1
        vet, kind, start, end = chance.choice(self.offered)
        key = f"wish-{self._wishes}" if chance.random() < 0.6 else None
        return Wish(note=f"{kind} {self._wishes}", vet=vet, start=start, end=end, key=key)


@dataclass(frozen=True)
class Known:
    """Public ids as a storm wants them, and what is free on some days."""

    ids: dict[tuple[str, int], str]
    offered: list[tuple[int, int, datetime, datetime]]


async def known(stack: Stack, secret: str, days: Sequence[date]) -> Known:
    """What a partner learns through the proxy, and from the clinic who its vets are."""
    numbers = {name: number for number, name in await execute_async(stack.practice, NAMES)}
    told = await asyncio.to_thread(stack.nodes[0].gateway.command, "vets")
    vets = {numbers[each["name"]]: each["id"] for each in told}
    return await asyncio.to_thread(_known, stack, secret, vets, days)


def _known(stack: Stack, secret: str, vets: dict[int, str], days: Sequence[date]) -> Known:
    ids = {("vets", number): each for number, each in vets.items()}
    types = _asked(stack, "/appointments/types", secret)
    for kind in KINDS:
        ids["appointmentTypes", kind] = types[kind - 1]["id"]
    owned = _asked(stack, "/patients", secret)
    for patient in owned:
        path = f"/clients/{patient['clientId']}"
        if patient["status"] == "ACTIVE" and get(stack.port, API + path, secret)[0] == 200:
            ids |= {("clients", 1): patient["clientId"], ("patients", 1): patient["id"]}
            break
    offered = [
        (number, kind, _wall(each["startTime"]), _wall(each["endTime"]))
        for number, vet in vets.items()
        if number in VETS
        for kind in KINDS
        for day in days
        for each in _asked(
            stack,
            f"/appointments/available-slots?vetId={vet}&date={day}"
            f"&appointmentTypeId={ids['appointmentTypes', kind]}",
            secret,
        )
    ]
    return Known(ids, offered)


def _asked(stack: Stack, path: str, secret: str) -> Any:
    status, data = get(stack.port, API + path, secret)
    assert status == 200, data
    return data


def working_day() -> date:
    """The first one from three days on."""
    today = datetime.now(CLINIC).date()
    ahead = (today + timedelta(days=number) for number in range(3, 8))
    return next(day for day in ahead if day.isoweekday() <= 5)


async def diary(stack: Stack) -> tuple[list[Row], list[Row], int]:
    """What partners booked, by vet and by room, and how many rows belong to nothing."""
    booked = await execute_async(stack.practice, BOOKED)
    [(strays,)] = await execute_async(stack.practice, STRAYS)
    by_vet, by_room = [], []
    for note, vet, room, starts, minutes, logs, patients in booked:
        start = starts.replace(tzinfo=UTC).astimezone(ZONE).replace(tzinfo=None)
        end = start + timedelta(minutes=minutes)
        parts = (logs, patients)
        by_vet.append(Row(note=note, vet=vet, start=start, end=end, parts=parts))
        by_room.append(Row(note=note, vet=room, start=start, end=end, parts=parts))
    return by_vet, by_room, strays


def _wall(moment: str) -> datetime:
    return datetime.fromisoformat(moment).astimezone(ZONE).replace(tzinfo=None)


def held(attempts: Sequence[Attempt]) -> list[Attempt]:
    """With what a gateway holds for those of which nobody knows, be it for a while."""
    unknown = (
        each
        for each in attempts
        if each.status in UNKNOWN or each.ended - each.sent > BOOKING_TIMEOUT - 1
    )
    return [*attempts, *(replace(longest(each), status=LOST) for each in unknown)]


def longest(attempt: Attempt) -> Attempt:
    """With the time that a gateway holds for it until it knows its end.

    In this practice a visit's length depends on its room, so that it may be any: two hours.
    """
    return replace(attempt, wish=replace(attempt.wish, end=attempt.wish.start + IN_DOUBT))


@dataclass(frozen=True)
class Blow:
    """When a node was struck: before its first process was killed, and after its last was."""

    before: float
    after: float

    def met(self, attempt: Attempt) -> bool:
        """Whether the attempt was under way in between."""
        return attempt.sent <= self.after and attempt.ended >= self.before
