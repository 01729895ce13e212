"""Laws of what a booking writes."""

import re
from collections.abc import Iterator

from adapters.doctor.case import DoctorCase, LawLook, Look
from adapters.doctor.conditions import split_at
from adapters.examination import Verdict
from adapters.mapping.models import NAMED, StepMap

_QUOTED = re.compile(r"'(?:[^']|'')*'").sub
_NAMES = re.compile(r"(?<![:\w])[^\W\d]\w*").findall
# Words of conditions that are no columns.
_WORDS = frozenset(
    ("and", "or", "not", "is", "null", "in", "like", "between", "exists", "select", "from", "where")
)


def write_laws(case: DoctorCase) -> Iterator[Look]:
    """Yields a look at each update of a slot row."""
    for number, step in enumerate(case.adapter.mapping.booking.steps):
        is_of_slot = step.for_ == "slot" or "slot" in NAMED(step.where or "")
        if step.update is not None and is_of_slot:
            place = ("booking", "steps", number, "where")
            look = case.look("laws", "booking", None, *place)
            if part := case.law("update-names-state", look):
                _judged(step, case, part)
            yield look


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
