"""Laws of what blocks beside the appointments themselves: at their times, and by their statuses."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from adapters.base import Record
from adapters.doctor.case import DoctorCase, Look
from adapters.doctor.laws.hours import NOT_HELD, TIMED, times_of
from adapters.doctor.laws.trials import told
from adapters.doctor.laws.visits import code_place
from adapters.documents.document import Place
from adapters.examination import Verdict, counted
from adapters.mapped.diary import BusySource
from adapters.mapped.slots import Interval
from adapters.values.times import instant_text

# So many appointments of a status say how it blocks.
FEW = 3
# The share that decides: of cancelled appointments that block, and of rows with one explanation.
MOST = 0.5
COMPLETED = "COMPLETED"


@dataclass(slots=True)
class SourceBlocks:
    """What a source of `diary.busy` blocks of each appointment that it names, and of which vet.

    `keys` are the practice's own.
    """

    source: BusySource
    of: dict[str, list[tuple[Interval, str]]] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)

    def take(self, taken: Iterable[tuple[Interval, str | None]], vet: str) -> None:
        """Notes what is blocked of a vet."""
        for interval, shown in taken:
            if shown is not None:
                self.of.setdefault(shown, []).append((interval, vet))

    def place(self, *names: str) -> Place:
        """Returns the first of these names that the source has, else the source itself."""
        rows, own = self.source.rows, ("diary", "busy", self.source.number)
        there = (name for name in names if getattr(rows, "from_" if name == "from" else name))
        name = next(there, None)
        return own if name is None else (*own, name)


# The keyed sources by their numbers, and the raw keys of free rows by theirs.
Seen = dict[int, SourceBlocks]
FreeRows = dict[int, set[Any]]


class Coming(NamedTuple):
    """An appointment to come of a vet whose diary was read, with its time."""

    record: Record
    time: Interval


def coming(case: DoctorCase) -> Iterator[Coming]:
    """Yields the appointments to come, whatever their status."""
    now, vets = case.examination.now, {*case.vets()}
    for record, begins in times_of(case, TIMED[0], now, now + case.ahead, frozenset()):
        if record["id"] and record["vetId"] in vets:
            end = record.get("endTime")
            ends = datetime.fromisoformat(end).astimezone(UTC) if end else begins
            yield Coming(record, Interval(begins, max(begins, ends)))


async def block_laws(seen: Seen, case: DoctorCase, look: Look) -> None:
    """Compares each source that names appointments with the appointments that it names."""
    appointments = list(coming(case))
    for blocks in seen.values():
        _at_their_times(blocks, appointments, case, look)
        await _are_shown(blocks, case, look)
    for of_schedule in (False, True):
        group = [each for each in seen.values() if each.source.rows.of_schedule == of_schedule]
        if group:
            _by_status(group, appointments, case, look)


async def _are_shown(blocks: SourceBlocks, case: DoctorCase, look: Look) -> None:
    """Tells of rows that block, though they are appointments that `where` hides."""
    place = blocks.place("where", "from", "get")
    if (part := case.law("blocks-are-shown", look, *place)) is None:
        return
    hidden = await case.hidden_visits({*blocks.of})
    for shown in blocks.of:
        key = blocks.keys[shown]
        example = f"key {key}" if key != shown else ""  # over HTTP the public id is the key
        part.take(holds=shown not in hidden, example=example, shown=shown)
    part.tell()


def _at_their_times(
    blocks: SourceBlocks, appointments: Sequence[Coming], case: DoctorCase, look: Look
) -> None:
    """Tells where a part of an appointment is not blocked by its own row, and why."""
    if (part := case.law("busy-as-appointments", look)) is None:
        return
    uncovered = list[tuple[Interval, Interval]]()
    for record, time in appointments:
        rows = [interval for interval, _ in blocks.of.get(record["id"], ())]
        if rows and record["status"] not in NOT_HELD:
            holds = _is_blocked(time, rows)
            uncovered += [] if holds else [(time, min(rows))]
            shown = {
                "scheduledAt": time.start,
                "endTime": time.end,
                "blocked from": min(rows).start,
            }
            texts = {name: instant_text(moment) for name, moment in shown.items()}
            part.take(holds=holds, example=told(record, texts), shown=record["id"])
    zone = case.adapter.diary.zone
    moved = [(time, row) for time, row in uncovered if time.start != row.start]
    by_zone = sum(_is_offset(time.start, row.start, zone) for time, row in moved)
    from_end = sum(row.start == time.end for time, row in moved)
    why = ""
    if 2 * len(moved) < len(uncovered):
        part.look.place = blocks.place("end", "minutes", "start")
    else:
        part.look.place = blocks.place("start")
        if by_zone > MOST * len(uncovered):
            why = ", by the offset of the clinic's zone: is `start` in UTC, or the clinic's time?"
        elif from_end > MOST * len(uncovered):
            why = ", as it blocks from its end on: start and end seem to have changed places"
    part.tell(more=why)


def _is_blocked(time: Interval, rows: Sequence[Interval]) -> bool:
    """Returns whether rows hold a time between them; one without an end must be within a row."""
    if time.start < time.end:
        return time.is_covered(sorted(rows))
    return any(row.start <= time.start <= row.end for row in rows)


def _is_offset(moment: datetime, other: datetime, zone: ZoneInfo) -> bool:
    """Returns whether two moments differ by the zone's offset, where it has one."""
    offset = moment.astimezone(zone).utcoffset()
    return bool(offset) and abs(other - moment) == abs(offset or other - moment)


@dataclass(slots=True)
class StatusBlocks:
    """The appointments to come of a status that block, and those that do not."""

    blocking: list[Record] = field(default_factory=list)
    free: list[Record] = field(default_factory=list)

    @property
    def is_told(self) -> bool:
        return len(self.blocking) + len(self.free) >= FEW

    @property
    def blocks(self) -> bool:
        return len(self.blocking) > MOST * (len(self.blocking) + len(self.free))


def _by_status(
    group: Sequence[SourceBlocks], appointments: Sequence[Coming], case: DoctorCase, look: Look
) -> None:
    """Tells of statuses that do not block, and of cancelled appointments that do."""
    has_status = "status" in case.adapter.mapping.resources["appointments"].fields
    part = case.law("statuses-block", look, *group[0].place("where", "from", "get"))
    if part is None or not has_status:
        return
    known = _statuses(group, appointments)
    void = {status: some for status, some in known.items() if status in NOT_HELD and some.blocks}
    held = {status: some for status, some in known.items() if status not in NOT_HELD}
    free = {status: some for status, some in held.items() if not some.blocking}
    if len(free) == len(held):
        part.note("too few appointments to come to tell, or none blocks")
        return
    for status, some in (free | void).items():
        for record in some.free if status in free else some.blocking:
            part.take(holds=False, example=told(record, {"status": status}), shown=record["id"])
    said = [
        f"all {len(some.free):,} of status {status} block nothing" for status, some in free.items()
    ]
    said += [f"{len(some.blocking):,} of status {status} block" for status, some in void.items()]
    whose = "a schedule" if group[0].source.rows.of_schedule else "a vet"
    text = f"of the appointments to come, {' and '.join(said)} (of the time of {whose})"
    if not said:
        part.ok(f"{counted(len(appointments), 'appointment')} to come block as their status says")
    elif COMPLETED in free:  # what is to come can hardly be completed
        remedy = "see whether two codes of status have changed places"
        part.look.place = code_place(case, COMPLETED)
        part.breach(text, Verdict.WARNING, remedy=remedy)
    else:
        part.breach(text, Verdict.WARNING)


def _statuses(
    group: Sequence[SourceBlocks], appointments: Sequence[Coming]
) -> dict[str, StatusBlocks]:
    """Returns the statuses that enough appointments to come have."""
    by_status: dict[str, StatusBlocks] = defaultdict(StatusBlocks)
    for record, _ in appointments:
        if record["status"]:
            is_blocked = any(record["id"] in each.of for each in group)
            some = by_status[record["status"]]
            (some.blocking if is_blocked else some.free).append(record)
    return {status: some for status, some in sorted(by_status.items()) if some.is_told}


async def free_laws(free: FreeRows, number: int, case: DoctorCase, look: Look) -> None:
    """Tells of free rows that are served as appointments."""
    if (part := case.law("slots-are-free", look)) is None:
        return
    shown = {key: case.session.appointment(key) for key in free.get(number, ())}
    ids = {id_ for id_ in shown.values() if id_ is not None}
    _, gone, hidden = await case.missing("appointments", ids)
    served = ids - gone - hidden
    for key, id_ in shown.items():
        if id_ is not None:
            part.take(holds=id_ not in served, example=f"key {key}", shown=id_)
    part.tell(most=0.0)


def cause(seen: Seen, lost: Sequence[Record]) -> tuple[Place, str]:
    """Returns where the mapping loses appointments that block nothing, and how."""
    keyed = [each for each in seen.values() if not each.source.rows.of_schedule]
    if len(keyed or seen) != 1:
        return ("diary", "busy"), "see `where`, `vet` and `start` there"
    [blocks] = keyed or seen.values()
    ways = Counter(
        "absent"
        if record["id"] not in blocks.of
        else "there"
        if record["vetId"] in {vet for _, vet in blocks.of[record["id"]]}
        else "elsewhere"
        for record in lost
    )
    [(way, _)] = ways.most_common(1)
    if way == "absent":
        return blocks.place("where", "from", "get"), "no row there is theirs: see what is left out"
    if way == "elsewhere":
        return blocks.place("vet", "from", "get"), "their rows there are another vet's"
    return blocks.place("start"), "their rows there are at another time"
