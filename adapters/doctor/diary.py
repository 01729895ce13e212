"""The appointments to come: those over one another, and those that block nothing."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from adapters.base import Record
from adapters.doctor.findings import FindingMaker, weighed
from adapters.doctor.values import TOLERABLE
from adapters.documents.document import Place
from adapters.examination import Finding, Verdict
from adapters.mapped.slots import Interval

# What does not block, or no longer.
PAST = frozenset({"CANCELLED", "NO_SHOW", "COMPLETED", None})
# A time of an appointment, and its public id.
Booked = tuple[Interval, str]


def to_come(records: Iterable[Record], now: datetime, ahead: timedelta) -> list[Record]:
    """The appointments that begin before so much time has gone by, and still stand."""
    found = []
    for each in records:
        if not each["scheduledAt"] or not each["id"] or each["status"] in PAST:
            continue
        begins = datetime.fromisoformat(each["scheduledAt"])
        if now < begins.astimezone(UTC) < now + ahead:
            found.append(each)
    return found


def overlaps(
    maker: FindingMaker,
    diaries: Iterable[Iterable[Booked]],
    now: datetime,
    place: Place,
    whose: str = "vet",
) -> Iterator[Finding]:
    """Appointments that begin before another one of the same diary has ended.

    `whose` is a diary: a vet, or a schedule.
    """
    over = [each for own in diaries for each in _over(own, now)]
    if over:
        text = f"{len(over)} appointments to come lie over another of the same {whose}"
        remedy = "the desk should part them; or some of them do not block: see `where`"
        yield maker.warning("diary", "overlaps", text, place, ids=over, remedy=remedy)


def _over(own: Iterable[Booked], now: datetime) -> Iterator[str]:
    latest: Booked | None = None
    for time, shown in sorted(own):
        if time.end <= now:
            continue
        # in an hour that comes twice one appointment may be at either time
        if latest is not None and latest[0].overlaps(time) and latest[1] != shown:
            yield shown
        if latest is None or time.end > latest[0].end:
            latest = time, shown


def missed(maker: FindingMaker, ids: Sequence[str], looked: int) -> Iterator[Finding]:
    """What it means that the appointments `ids`, of so many to come, block nothing."""
    if ids:
        text = f"{len(ids)} of {looked} appointments to come block nothing: offered again"
        verdict = weighed(len(ids), looked, most=TOLERABLE)
        remedy, place = "see `where`, `vet` and `start` there", ("diary", "busy")
        yield maker.judged(verdict, "diary", "busy", text, place, ids=ids, remedy=remedy)
    elif looked:
        yield maker.ok("diary", "busy", f"{looked} appointments to come block their time")


def idle(
    maker: FindingMaker, ids: Sequence[str], known: int, place: Place, *, hopeless: bool
) -> Finding:
    """What it means that the vets `ids`, of so many, have no working hours.

    It is `hopeless` where free times come from nothing else.
    """
    if not ids:
        return maker.ok("diary", "vets", f"{known} vets, each with working hours")
    text, verdict = f"{len(ids)} of {known} vets have no working hours", Verdict.WARNING
    if len(ids) == known and hopeless:
        verdict, text = Verdict.FAILED, f"{text}: nothing can be booked"
    remedy = "is `vet` the key of vets?"
    return maker.judged(verdict, "diary", "vets", text, place, remedy=remedy, ids=ids)
