"""Laws of what a booking writes."""

import re
from collections.abc import Iterator

from adapters.doctor.case import DoctorCase, LawLook, Look
from adapters.doctor.conditions import split_at
from adapters.examination import Verdict
from adapters.mapping.checker import parts, written_by
from adapters.mapping.models import NAMED, BookingMap, StepCondition, StepMap, TreePart

_QUOTED = re.compile(r"'(?:[^']|'')*'").sub
_NAMES = re.compile(r"(?<![:\w])[^\W\d]\w*").findall
# What partners may say of a visit, and what is lost where no step writes it.
_SAID = {
    "isUrgent": "the desk does not see that a visit is urgent",
    "reason": "the desk does not see what a visit is for",
}
# Words of conditions that are no columns.
_WORDS = frozenset(
    ("and", "or", "not", "is", "null", "in", "like", "between", "exists", "select", "from", "where")
)


def write_laws(case: DoctorCase) -> Iterator[Look]:
    """Yields a look at the whole booking, and at each update of a slot row."""
    if case.adapter.books:
        booking = case.adapter.mapping.booking
        look = case.look("laws", "booking", None, "booking")
        if part := case.law("drafts-are-written", look):
            _all_written(booking, part)
        if part := case.law("bookings-are-marked", look):
            _marked(booking, part)
        yield look
    for number, step in enumerate(case.adapter.mapping.booking.steps):
        is_of_slot = step.for_ == "slot" or "slot" in NAMED(step.where or "")
        if step.update is not None and is_of_slot:
            place = ("booking", "steps", number, "where")
            look = case.look("laws", "booking", None, *place)
            if part := case.law("update-names-state", look):
                _judged(step, case, part)
            yield look


def _all_written(booking: BookingMap, part: LawLook) -> None:
    """Judges whether what partners say of a visit reaches the desk."""
    named = {name for step in booking.steps for name in _named_by(step)}
    if missing := [name for name in _SAID if name not in named]:
        for name in missing:
            text = f"booking.steps writes {name} nowhere: {_SAID[name]}"
            remedy = f"write {{draft: {name}}} where the desk looks, or say under `accepted` how it"
            part.breach(text, Verdict.WARNING, remedy=f"{remedy} learns of it", at_key=True)
    else:
        part.ok(f"{' and '.join(_SAID)} are written")


def _named_by(step: StepMap) -> Iterator[str]:
    """Yields the names of a draft that a step writes, or on which what it writes depends."""
    yield from written_by(step)
    yield from (str(item["if"].constant) for item in step.items if "if" in item)
    for _, part in parts(step):
        if isinstance(part, StepCondition):
            yield from (part.draft or "", *NAMED(part.sql or ""))
        elif isinstance(part, TreePart):
            yield part.if_ or ""


def _marked(booking: BookingMap, part: LawLook) -> None:
    """Judges by what a booking is found whose answer was lost."""
    lost = "no reference: after a lost answer a booking is known by what was asked for"
    names = {name for step in booking.steps for name in written_by(step)}
    if booking.reference is not None:
        part.ok("a booking is found again by its mark")
    elif names & {"createdAt", "now"}:
        part.note(f"{lost} and its createdAt; only {{draft: reference}} makes it sure")
    else:
        part.breach(f"{lost} alone, as no step writes createdAt", Verdict.WARNING, at_key=True)


def _judged(step: StepMap, case: DoctorCase, part: LawLook) -> None:
    """Judges the conditions beside the row's key by those under which diary.slots are free."""
    conditions = split_at(step.where or "", "and")
    others = [it for it in conditions if "slot" not in NAMED(it)]
    if not others:
        part.breach(f"its condition names the row of {step.update}, and nothing of its state")
        return
    free = columns_in(" ".join(slots.where or "" for slots in case.adapter.mapping.diary.slots))
    if free and not free & columns_in(" ".join(others)):
        names = " or ".join(sorted(free))
        text = f"its condition has nothing of {names}, by which diary.slots are free"
        part.breach(text, Verdict.WARNING)
    else:
        part.ok("its condition names the row, and its state")


def columns_in(condition: str) -> set[str]:
    """Returns the names in a condition that may be columns, without their tables, in lower case."""
    bare = _QUOTED(" ", condition)
    aliases = {name.lower() for name in re.findall(r"\b(\w+)\s*\.", bare)}
    return {name.lower() for name in _NAMES(bare)} - _WORDS - aliases
