"""Ids inside records: what it means that some lead to no record."""

from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from adapters.base import Record
from adapters.doctor.case import CheckStep, DoctorCase
from adapters.doctor.findings import MOST_IDS, FindingMaker, agreeing, rows
from adapters.documents.document import Place
from adapters.examination import Finding, Verdict
from adapters.mapped.session import Session

# More than half of the ids that lead nowhere: they are ids of something else.
TOLERABLE = 0.5


def links(case: DoctorCase) -> Iterator[CheckStep]:
    """One look at each field that refers to a resource, of records and of lists inside them."""
    for resource, shapes in case.shapes.items():
        for path, shape in shapes.items():
            if shape.refers is None or case.is_lost("resources", shape.refers):
                continue
            owner, _, name = path.rpartition("[].")
            sample = f"{resource}.{owner}" if owner else resource
            inner = ("lists", owner) if owner else ()
            place = ("resources", resource, *inner, "fields", name)
            run = partial(_field, case, sample, name, shape.refers, place)
            yield CheckStep("links", f"{resource}.{path}", run, place)


async def _field(
    case: DoctorCase, sample: str, name: str, target: str, place: Place, session: Session
) -> AsyncIterator[Finding]:
    leads = Leads()
    for page in case.pages(session, sample):
        records = [each for each in page if each.get(name)]
        ids = {each[name] for each in records}
        looked_for, gone, hidden = await case.missing(session, target, ids)
        leads.take(name, [each for each in records if each[name] in looked_for], gone, hidden)
    if leads.count:
        yield led(case, f"{sample}.{name}", place, target, leads)


@dataclass(slots=True)
class Leads:
    """Where the ids of one field lead, in so many records as were taken."""

    count: int = 0
    lost: int = 0
    hidden: int = 0
    ids: list[str] = field(default_factory=list)

    def take(
        self, name: str, records: Sequence[Record], gone: Collection[str], hidden: Collection[str]
    ) -> None:
        """Records that all have the field.

        `gone` are the public ids that lead to nothing at all, `hidden` those that `where` hides.
        """
        lost = [each for each in records if each[name] in gone]
        self.count += len(records)
        self.lost += len(lost)
        self.hidden += sum(each[name] in hidden for each in records)
        shown = [each["id"] for each in lost if each.get("id")]
        self.ids += shown[: MOST_IDS - len(self.ids)]


def led(maker: FindingMaker, subject: str, place: Place, target: str, leads: Leads) -> Finding:
    """The finding about one field of records which all have it."""
    if leads.lost:
        lead = agreeing(leads.lost, "lead")
        text = f"{rows(leads.lost)} of {leads.count:,} {lead} to none of the {target}"
        verdict = Verdict.FAILED if leads.lost > TOLERABLE * leads.count else Verdict.WARNING
        remedy = f"is it the key of {target}?" if verdict is Verdict.FAILED else ""
        return maker.judged(verdict, "links", subject, text, place, remedy=remedy, ids=leads.ids)
    text = f"{rows(leads.count)} {agreeing(leads.count, 'lead')} to {target}"
    if leads.hidden:
        text += f"; {leads.hidden:,} of them to one that `where` hides"
    if leads.hidden > TOLERABLE * leads.count:
        return maker.warning("links", subject, text, place, remedy=f"is it the key of {target}?")
    return maker.ok("links", subject, text)
