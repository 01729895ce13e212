"""Ids inside records: what it means that some lead to no record."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from adapters.base import Record
from adapters.doctor.findings import MOST_IDS, FindingMaker, agreeing, rows
from adapters.documents.document import Place
from adapters.examination import Finding, Verdict

# More than half of the ids that lead nowhere: they are ids of something else.
TOLERABLE = 0.5


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
