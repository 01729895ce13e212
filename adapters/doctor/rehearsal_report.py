"""Looks at a rehearsed booking while it stands, and tells what became of each."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from adapters.base import AdapterError, BackendNonsense, Record, SlotTaken
from adapters.doctor.case import DoctorCase, Look
from adapters.doctor.rehearsal import BookingKind, Planner, again
from adapters.documents.document import Place
from adapters.examination import short
from adapters.mapped.clock_change import KnownTimes
from adapters.mapped.session import BookingProgress, Session
from adapters.mapping.checker import parts
from adapters.mapping.conversion import DRAFT_FIELDS
from adapters.mapping.models import NAMED, StepMap

# How far from now a new appointment may be created, and the kinds that one line names.
FRESH = timedelta(minutes=20)
MOST_KINDS = 3
FIELDS: Place = ("resources", "appointments", "fields")
# A sentence, and the place in the mapping that it is about.
Wrong = tuple[str, Place]


@dataclass(slots=True)
class Rehearsed:
    """What became of one booking: how far it came, its id, what is wrong, what has to be deleted.

    `is_half` tells that rows were written that no ROLLBACK undoes, and that could not be deleted;
    `deletions` would do it. `words` say how it ended well.
    """

    progress: BookingProgress = field(default_factory=BookingProgress)
    made: str = ""
    wrong: Wrong | None = None
    is_half: bool = False
    deletions: list[str] = field(default_factory=list)
    words: str = "rehearsed and undone"


@dataclass(slots=True)
class RehearsalReport:
    """Tells what became of the rehearsed bookings; what failed is told once, with its kinds."""

    look: Look
    failures: dict[Wrong, list[str]] = field(default_factory=lambda: defaultdict(list))
    taken: set[int] = field(default_factory=set)
    groups: set[tuple[int, int, bool]] = field(default_factory=set)
    tables: dict[str, None] = field(default_factory=dict)

    def tell(self, kind: BookingKind, done: Rehearsed, *, is_left: bool, took: float) -> None:
        self.taken |= done.progress.taken
        self.groups |= done.progress.groups
        if done.wrong is not None:
            self.failures[done.wrong].append(kind.words)
        if is_left:
            remedy = f"run: {'; '.join(done.deletions)}" if done.deletions else "delete it by hand"
            text, ids = f"{kind.words}: it was made, and could NOT be undone", [done.made]
            self.look.failed(text, place=("booking",), remedy=remedy, ids=filter(None, ids))
        elif done.wrong is None:
            self.look.ok(f"{kind.words}: {done.words}", ids=kind.about, seconds=took)
            self.tables |= dict.fromkeys(done.progress.tables)

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
                    self.look.note(f"{text} booking without it", place=branch)


async def seen(
    case: DoctorCase, planner: Planner, kind: BookingKind, record: Record, session: Session
) -> Wrong | None:
    """Returns what is wrong with a booking that was made, while it stands; None for nothing.

    The session is another one than that of the booking. It books the same time again, and takes
    back what should have been refused.
    """
    offered = await planner.still_offered(session, kind)
    if offered is not None:
        is_vet = offered.vet == kind.draft.vet_id
        whose = "the vet in another schedule" if is_vet else "its schedule for another vet"
        whose = "its vet" if is_vet and offered == kind.free.offer.calendar else whose
        return f"the new appointment does not block {whose}", ("diary", "busy")
    try:
        await case.adapter.bookings.book(session, again(kind.draft), KnownTimes())
    except SlotTaken:
        pass
    else:
        with suppress(BackendNonsense):  # without booking.cancel it stays in the test tenant
            await session.withdraw()
        return "the same time was booked twice", ("diary", "busy")
    if (created := record.get("createdAt")) is None:
        return None
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
    case: DoctorCase, done: BookingProgress, error: AdapterError, detail: str = ""
) -> Wrong:
    """Returns why a booking was refused, and the place in the mapping that has to be mended."""
    place = done.place
    sentence = f"it was refused, and undone: {short(error)}{detail}"
    name = place[-1] if place[:3] == FIELDS else ""
    if isinstance(name, str) and name in DRAFT_FIELDS:
        sentence += f"; booking.steps must write what {name} is read from, as {{draft: {name}}}"
        place = place if _is_written(case, name) else ("booking", "steps")
    return sentence, place


def _is_written(case: DoctorCase, name: str) -> bool:
    """Returns whether a booking writes that field; an end may be written as minutes."""
    names = {name, "minutes"} if name == "endTime" else {name}
    values = [part for step in case.adapter.mapping.booking.steps for _, part in parts(step)]
    return any(
        getattr(value, "draft", None) in names
        or names & {*NAMED(getattr(value, "sql", None) or "")}
        for value in values
    )
