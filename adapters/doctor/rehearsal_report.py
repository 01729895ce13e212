"""Looks at a rehearsed booking while it stands, and tells what became of each."""

import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from adapters.base import AdapterError, NotFound, Record, SlotTaken
from adapters.doctor.case import DoctorCase, Look
from adapters.doctor.rehearsal import BookingKind, Planner, again
from adapters.documents.document import Place
from adapters.examination import UNREHEARSED, short
from adapters.mapped.appointment import CANCELLED
from adapters.mapped.clock_change import KnownTimes
from adapters.mapped.session import BookingProgress, Session
from adapters.mapping.checker import parts
from adapters.mapping.conversion import DRAFT_FIELDS
from adapters.mapping.models import NAMED, ErrorRule, StepMap

# How far from now a new appointment may be created, and the kinds that one line names.
FRESH = timedelta(minutes=20)
MOST_KINDS = 3
# The times at which a kind is tried, as the desk may take one after the other.
MOST_TIMES = 5
# Whose a row of the diary is -> the value of a draft that says so.
DRAFTED = {"vet": "vetId", "schedule": "schedule"}
_WORDS = re.compile(r"\w+").findall
FIELDS: Place = ("resources", "appointments", "fields")
# A sentence, and the place in the mapping that it is about.
Wrong = tuple[str, Place]


@dataclass(slots=True)
class Rehearsed:
    """What became of one booking: how far it came, the ids of what it made, and what is wrong.

    `taken` is why it was refused as taken. `deletions` would undo what no ROLLBACK undoes, and
    `is_half` tells that nobody knows whether it stands. It `is_kept` where nothing can withdraw it.
    `words` say how it ended well.
    """

    progress: BookingProgress = field(default_factory=BookingProgress)
    made: list[str] = field(default_factory=list)
    wrong: Wrong | None = None
    taken: SlotTaken | None = None
    deletions: list[str] = field(default_factory=list)
    is_half: bool = False
    is_kept: bool = False
    words: str = "rehearsed and undone"

    @property
    def is_undone(self) -> bool:
        """Whether it is known that nothing stands."""
        return not (self.deletions or self.is_half or (self.is_kept and self.made))


@dataclass(slots=True)
class RehearsalReport:
    """Tells what became of the rehearsed bookings; what failed is told once, with its kinds."""

    look: Look
    failures: dict[Wrong, list[str]] = field(default_factory=lambda: defaultdict(list))
    taken: set[int] = field(default_factory=set)
    groups: set[tuple[int, int, bool]] = field(default_factory=set)
    tables: dict[str, None] = field(default_factory=dict)

    def tell(self, kind: BookingKind, done: Rehearsed, left: Sequence[str], took: float) -> None:
        """Tells of one booking; `left` are the ids of what was to be undone and still stands."""
        self.taken |= done.progress.taken
        self.groups |= done.progress.groups
        if done.wrong is not None:
            self.failures[done.wrong].append(kind.words)
        if done.is_kept and done.made and done.wrong is not None:
            self.look.note(f"{kind.words}: it stays in the test tenant", ids=done.made)
        elif done.deletions or left:
            remedy = f"run: {'; '.join(done.deletions)}" if done.deletions else "delete it by hand"
            text = f"{kind.words}: it was made, and could NOT be undone"
            self.look.failed(text, place=("booking",), remedy=remedy, ids=left)
        elif done.is_half:
            text = f"{kind.words}: it may stand, as nobody knows what came of it"
            remedy = "look for it, and delete it by hand"
            self.look.failed(text, place=("booking",), remedy=remedy, ids=done.made)
        elif done.wrong is None:
            self.look.ok(f"{kind.words}: {done.words}", ids=kind.about, seconds=took)
            self.tables |= dict.fromkeys(done.progress.tables)

    def missed(self, kind: BookingKind, why: str) -> None:
        """Tells that a kind of booking could not be rehearsed."""
        text = f"{kind.words}: {why}, so it was not rehearsed"
        self.look.failed(text, place=("diary",), ids=kind.about, code=UNREHEARSED)

    def end(self, steps: Sequence[StepMap]) -> None:
        """Tells what failed, and what of the mapping's steps no booking took."""
        if self.tables:
            text = f"of {', '.join(self.tables)} nothing is left, but numbers that the database"
            self.look.ok(f"{text} counts by itself may have moved on")
        for (sentence, place), kinds in self.failures.items():
            named = list(dict.fromkeys(kinds))
            few, left = "; ".join(named[:MOST_KINDS]), len(named) - MOST_KINDS
            more = f"; and {left} more" if left > 0 else ""
            self.look.failed(f"{sentence} ({few}{more})", place=place)
        for number, step in enumerate(steps):
            at: Place = ("booking", "steps", number)
            if number not in self.taken:
                self.look.failed("no booking that was rehearsed takes this step", place=at)
                continue
            for group in (group for group, item in enumerate(step.items) if "if" in item):
                branch = (*at, "each", group, "if")
                if (number, group, True) not in self.groups:
                    self.look.failed(
                        "no booking that was rehearsed writes this group", place=branch
                    )
                elif (number, group, False) not in self.groups:
                    text = "every booking that was rehearsed writes this group: not rehearsed is a"
                    self.look.note(f"{text} booking without it", place=branch, code=UNREHEARSED)


async def rehearse(
    case: DoctorCase,
    planner: Planner,
    report: RehearsalReport,
    book: Callable[[BookingKind], Awaitable[Rehearsed]],
    *,
    renews: bool = False,
) -> None:
    """Has every kind booked, and tells what came of each, whatever becomes of the others.

    Where it `renews`, a free time is searched just before, as those booked before still stand.
    """
    for planned in planner.kinds:
        begun = time.monotonic()
        try:
            kind = await planner.renewed(planned) if renews else planned
            done = None if kind is None else await _booked(case, planner, kind, book)
        except AdapterError as error:
            report.missed(planned, f"no free time could be searched: {short(error)}")
            continue
        if done is None:
            report.missed(planned, "each free time was taken meanwhile")
            continue
        left = await _standing(case, done, report.look)
        report.tell(planned, done, left, time.monotonic() - begun)
    if planner.kinds:
        report.end(case.adapter.mapping.booking.steps)


async def _booked(
    case: DoctorCase,
    planner: Planner,
    planned: BookingKind,
    book: Callable[[BookingKind], Awaitable[Rehearsed]],
) -> Rehearsed | None:
    """Books a kind, at another time where its own was taken meanwhile; None for no other time."""
    kind: BookingKind | None = planned
    for _ in range(MOST_TIMES):
        if kind is None:
            break
        done = await book(kind)
        if done.taken is None or not done.is_undone:
            return done
        if await planner.is_offered(kind):
            done.wrong = _refused_for_nothing(case, done, done.taken)
            return done
        kind = await planner.renewed(kind)
    return None


def _refused_for_nothing(case: DoctorCase, done: Rehearsed, error: SlotTaken) -> Wrong:
    """Returns what refuses a time as taken that is free before and after."""
    place, free = done.progress.place, "though the time is free before and after"
    if place[:2] != ("booking", "steps"):
        return f"it was refused as taken, {free}: {short(error)}", place
    step = case.adapter.mapping.booking.steps[int(place[2])]
    if step.update is not None:
        return f"its update changes no row, {free}: see `where`", (*place, "where")
    rules: list[tuple[Place, ErrorRule]] = [
        *(((*place, "errors", number), rule) for number, rule in enumerate(step.errors)),
        *(
            (("backend", "errors", number), rule)
            for number, rule in enumerate(case.adapter.mapping.backend.errors)
        ),
    ]
    named = [at for at, rule in rules if rule.means == "slot taken"]
    sentence = f"it was refused as taken, {free}: {short(error)}"
    return sentence, named[0] if len(named) == 1 else place


async def _standing(case: DoctorCase, done: Rehearsed, look: Look) -> list[str]:
    """Returns the ids of bookings that were to be undone and still stand."""

    async def read(made: str, session: Session) -> Record:
        return await session.reader("appointments").one(made)

    left = []
    for made in () if done.is_kept else done.made:
        try:
            record = await case.run(partial(read, made))
        except NotFound:
            continue
        except AdapterError as error:
            text = f"whether a rehearsed booking still stands could not be seen: {short(error)}"
            look.failed(text, place=("booking",), ids=[made], remedy="see that it is gone")
        else:
            left += [made] if record["status"] != CANCELLED else []
    return left


async def seen(
    case: DoctorCase, planner: Planner, kind: BookingKind, record: Record, session: Session,
    done: Rehearsed,
) -> Wrong | None:  # fmt: skip
    """Returns what is wrong with a booking that was made, while it stands; None for nothing.

    The session is another one than that of the booking. It books the same time again; what should
    have been refused is among what was made then.
    """
    offered = await planner.still_offered(session, kind)
    if offered is not None:
        is_vet = offered.vet == kind.draft.vet_id
        whose = "the vet in another schedule" if is_vet else "its schedule for another vet"
        whose = "its vet" if is_vet and offered == kind.free.offer.calendar else whose
        return f"the new appointment does not block {whose}", ("diary", "busy")
    with suppress(SlotTaken):
        second = await case.adapter.bookings.book(session, again(kind.draft), KnownTimes())
        done.made.append(second["id"])
        return "the same time was booked twice", ("diary", "busy")
    if (created := record.get("createdAt")) is None:
        if case.adapter.bookings.has_reference:
            return None
        text = "createdAt of the new appointment is null, and there is no booking.reference: after"
        text = f"{text} a lost answer the booking cannot be told from others, or not found again"
        text = f"{text}; write what it is read from, as {{draft: createdAt}}"
        return text, (*FIELDS, "createdAt")
    # written by the gateway, or by the backend's clock
    moments, written = (datetime.now(UTC), kind.draft.now), datetime.fromisoformat(created)
    if abs(apart := min((now - written for now in moments), key=abs)) > FRESH:
        text = f"createdAt of the new appointment is {_in_words(apart)} this moment: write it with"
        return f"{text} {{draft: createdAt}}, or see how it is read", (*FIELDS, "createdAt")
    return None


def _in_words(apart: timedelta) -> str:
    hours = abs(apart) / timedelta(hours=1)
    size = f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.0f} days"
    return f"{size} {'before' if apart > timedelta() else 'after'}"


def refusal(
    case: DoctorCase,
    done: Rehearsed,
    error: AdapterError,
    detail: str = "",
    *,
    is_named: bool = False,
) -> Wrong:
    """Returns why a booking was refused, and the place in the mapping that has to be mended.

    `detail` tells the code of another status, and `is_named` whether the codes have that one.
    """
    place, undone = done.progress.place, ", and undone" if done.is_undone else ""
    what = "it could not be looked at while it stood" if done.made else "it was refused"
    sentence = f"{what}{undone}: {short(error)}{detail}"
    name = place[-1] if place[:3] == FIELDS else ""
    if isinstance(name, str) and name in DRAFT_FIELDS and not done.made:
        sentence += f"; booking.steps must write what {name} is read from, as {{draft: {name}}}"
        place = place if _is_written(case, name) else ("booking", "steps")
    elif is_named:
        place = _constant_of(case, done.progress, str(name)) or place
    elif place == ("diary", "busy") and not done.made:
        return _unblocked(case, done.progress, sentence)
    return sentence, place


def _constant_of(case: DoctorCase, done: BookingProgress, name: str) -> Place | None:
    """Returns where a booking writes the constant that the field is read from."""
    field = case.adapter.mapping.resources["appointments"].fields[name]
    read = words_in(" ".join(field.expressions))
    for number in sorted(done.taken):
        for column, value in case.adapter.mapping.booking.steps[number].values.items():
            if value.origin == "constant" and column.lower() in read:
                return ("booking", "steps", number, "values", column)
    return None


def _unblocked(case: DoctorCase, done: BookingProgress, sentence: str) -> Wrong:
    """Returns the step that lacks what `diary.busy` reads its owner from, or else the source."""
    owner = "schedule" if "its schedule" in sentence else "vet"
    mapping = case.adapter.mapping
    sources = [
        (("diary", "busy", number, owner), value)
        for number, source in enumerate(mapping.diary.busy)
        if source.key is not None and (value := getattr(source, owner)) is not None
    ]
    for number in sorted(done.taken):
        step = mapping.booking.steps[number]
        written = {column.lower() for column in step.values}
        is_appointment = step.insert is not None and step.name == mapping.booking.appointment
        reads = any(words_in(" ".join(value.expressions)) & written for _, value in sources)
        if is_appointment and sources and not reads:
            sentence += f"; this step must write what `{owner}` there is read from"
            return f"{sentence}, as {{draft: {DRAFTED[owner]}}}", ("booking", "steps", number)
    return sentence, sources[0][0][:3] if len(sources) == 1 else ("diary", "busy")


def words_in(expression: str) -> set[str]:
    """Returns the words of an expression in lower case."""
    return {word.lower() for word in _WORDS(expression)}


def _is_written(case: DoctorCase, name: str) -> bool:
    """Returns whether a booking writes that field; an end may be written as minutes."""
    names = {name, "minutes"} if name == "endTime" else {name}
    values = [part for step in case.adapter.mapping.booking.steps for _, part in parts(step)]
    return any(
        getattr(value, "draft", None) in names
        or names & {*NAMED(getattr(value, "sql", None) or "")}
        for value in values
    )
