"""Tries laws of plausibility on real rows: what makes no sense together is hardly mapped right.

adapters/mapping/laws.toml has what each law says. The laws of references and of the diary are tried
where their rows are read, the others here.
"""

from collections.abc import Iterator
from functools import partial

from adapters.base import inside
from adapters.doctor.case import DoctorCase, LawLook, Look
from adapters.doctor.laws.calendars import duration_laws
from adapters.doctor.laws.clocks import clock_trials
from adapters.doctor.laws.conditions import condition_laws
from adapters.doctor.laws.hours import hour_laws
from adapters.doctor.laws.rows import row_trials
from adapters.doctor.laws.shares import share_trials
from adapters.doctor.laws.trials import Trial
from adapters.doctor.laws.visits import visit_trials
from adapters.doctor.laws.writes import write_laws
from adapters.doctor.values import pages
from adapters.documents.document import Place
from adapters.mapping.models import ListMap, ResourceMap


def laws(case: DoctorCase) -> Iterator[Look]:
    """Yields a look at each law that is switched off, then one at the rows of each resource."""
    for name, reason in case.adapter.mapping.accepted.items():
        look = case.look("laws", name, None, "accepted", name)
        look.note(f"switched off: {reason}", place=look.place)
        yield look
    for name, mapped in case.adapter.mapping.resources.items():
        lists = [f"{name}.{inner}" for inner in mapped.lists]
        for of in (name, *lists):
            yield case.look("laws", of, partial(_tried, of), "resources", name)
    for looks in (hour_laws, duration_laws, condition_laws, write_laws):
        yield from looks(case)


async def _tried(of: str, case: DoctorCase, look: Look) -> None:
    """Takes the rows past all their laws at once, which then tell what they found."""
    trials = _trials(of, case, look)
    resource, _, _ = of.partition(".")
    if trials and resource not in case.samples:
        laws_of = ", ".join(dict.fromkeys(trial.part.name for trial in trials))
        _not_looked_at(case.adapter.mapping.resources[resource], laws_of, look)
        return
    for page in pages(case, of) if trials else ():
        for trial in trials:
            await trial.take(page)
    for trial in trials:
        trial.tell()


def _trials(of: str, case: DoctorCase, look: Look) -> list[Trial]:
    resource, _, inner = of.partition(".")
    mapped: ResourceMap | ListMap = case.adapter.mapping.resources[resource]
    place: Place = ("resources", resource)
    if isinstance(mapped, ResourceMap) and inner:
        mapped, place = mapped.lists[inner], (*place, "lists", inner)

    def part_of(law: str, at: str) -> LawLook | None:
        return case.law(law, look, *place, "fields", at)

    shapes = inside(case.adapter.options.shapes[resource], inner and f"{inner}[].")
    trials = [] if inner else [*row_trials(resource, case, part_of)]
    trials += visit_trials(case, look) if of == "consultations" else ()
    trials += clock_trials(of, mapped, shapes, case, part_of)
    return [*trials, *share_trials(of, mapped, shapes, part_of, case)]


def _not_looked_at(mapped: ResourceMap, laws_of: str, look: Look) -> None:
    """Tells that laws could not look; only warns where the mapping lists no records on purpose."""
    if mapped.from_ is None and mapped.list_ is None:
        remedy = "write its `list`, where the backend has one"
        look.warning(f"without a list nothing was looked at: {laws_of}", remedy=remedy)
    else:
        text = f"could not be looked at, as its rows could not be read: {laws_of}"
        look.failed(text, remedy="mend what is red about them above")
