"""Ids inside records: what it means that some lead to no record."""

from collections import Counter
from collections.abc import Collection, Sequence

from adapters.base import Record
from adapters.document import Place
from adapters.examine import Finding, Verdict
from adapters.findings.maker import FindingMaker, rows

# More than half of the ids that lead nowhere: they are ids of something else.
TOLERABLE = 0.5


def led(
    maker: FindingMaker,
    subject: str,
    place: Place,
    target: str,
    records: Sequence[Record],
    gone: Collection[str],
    hidden: Collection[str],
) -> Finding:
    """The finding about one field of records which all have it.

    `gone` are the public ids that lead to nothing at all, `hidden` those that `where` hides.
    """
    name = subject.rpartition(".")[2]
    counted = Counter(each[name] for each in records)
    lost = sum(counted[each] for each in gone)
    if lost:
        ids = [each["id"] for each in records if each[name] in gone and each.get("id")]
        text = f"{rows(lost)} of {len(records):,} lead to none of the {target}"
        verdict = Verdict.FAILED if lost > TOLERABLE * len(records) else Verdict.WARNING
        remedy = f"is it the key of {target}?" if verdict is Verdict.FAILED else ""
        return maker.judged(verdict, "links", subject, text, place, remedy=remedy, ids=ids)
    past = sum(counted[each] for each in hidden)
    text = f"{rows(len(records))} lead to {target}"
    if past:
        text += f"; {past:,} of them to one that `where` hides"
    if past > TOLERABLE * len(records):
        return maker.warning("links", subject, text, place, remedy=f"is it the key of {target}?")
    return maker.ok("links", subject, text)
