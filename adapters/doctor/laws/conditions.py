"""The law of conditions: a comparison with NULL must not lose rows."""

from collections.abc import Iterator
from functools import partial

from adapters.doctor.case import DoctorCase, Look
from adapters.examination import Verdict, agreeing, counted
from adapters.mapping.models import BusyMap, ResourceMap

# So many rows, beside those that are let through, are lost and not left out.
LOST = 0.1


def condition_laws(case: DoctorCase) -> Iterator[Look]:
    """Yields a look at each condition of a resource, and of what blocks."""
    mapping = case.adapter.mapping
    for name, mapped in mapping.resources.items():
        if mapped.where is not None and mapped.from_ is not None:
            place = ("resources", name, "where")
            yield case.look("laws", name, partial(_decides, mapped), *place)
    for number, busy in enumerate(mapping.diary.busy):
        if busy.where is not None and busy.from_ is not None:
            yield case.look(
                "laws", "busy", partial(_decides, busy), "diary", "busy", number, "where"
            )


async def _decides(rows: ResourceMap | BusyMap, case: DoctorCase, look: Look) -> None:
    part = case.law("conditions-decide", look)
    if part is None:
        return
    if case.is_lost(*look.place[:-1]):
        part.unseen()
        return
    found = case.undecided(rows)
    if found is None:
        return
    part.examples = [f"key {key}" for key in found.keys]
    text = f"of {counted(found.neither, 'row')} it is neither true nor false"
    kept = f"{counted(found.kept, 'row')} {agreeing(found.kept, 'are')} let through, and {text}"
    # of what blocks, each row that is lost may be offered
    if found.neither > (0 if isinstance(rows, BusyMap) else LOST * found.kept):
        part.breach(kept, Verdict.WARNING)
    else:
        part.ok(kept)
