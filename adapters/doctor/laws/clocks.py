"""The law of clocks: times are read by the clock that wrote them, as far as the seasons tell."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from adapters.base import FieldShape, Record
from adapters.doctor.case import DoctorCase, LawLook
from adapters.doctor.laws.hours import TIMED
from adapters.doctor.laws.trials import PartOf, Trial
from adapters.examination import Verdict, counted
from adapters.mapping.checker import LAWS
from adapters.mapping.models import ListMap, ResourceMap
from adapters.values.clocks import clock_of
from adapters.values.times import LocalTime, UtcTime

# Different times that are kept, and the fields whose clock the working hours tell better.
MOST_TIMES = 10_000
WORKED = {name for timed in TIMED for name in (timed.start, timed.end)}


class ClockStays(Trial):
    """Times are read by the clock that wrote them; nothing is told where the seasons do not."""

    def __init__(self, part: LawLook, name: str, zone: ZoneInfo, *, is_utc: bool) -> None:
        super().__init__(part)
        self._name, self._zone, self._is_utc = name, zone, is_utc
        # what was written in one moment, such as an import, counts once
        self._times = set[datetime]()

    async def take(self, page: Sequence[Record]) -> None:
        for record in page:
            if (value := record[self._name]) and len(self._times) < MOST_TIMES:
                moment = datetime.fromisoformat(value)
                shown = moment if self._is_utc else moment.astimezone(self._zone)
                self._times.add(shown.replace(tzinfo=None))

    def tell(self) -> None:
        times = {time for time in self._times if time.time() != time.min.time()}
        clock, count = clock_of([*times], self._zone), counted(len(times), "different time")
        if (clock.is_proven or clock.is_likely) and clock.is_utc != self._is_utc:
            kinds = ("the clinic's wall clock", "UTC")
            written, read = kinds if self._is_utc else kinds[::-1]
            remedy = f"write `as: {'local' if self._is_utc else 'utc'} time`"
            text = f"{count} show the working hours of {written}, and are read as {read}"
            if clock.is_likely:
                text += ", unless the practice opens an hour earlier in summer: too few are near"
                text += " the changes of the clock to tell"
            self.part.breach(text, Verdict.WARNING, remedy=f"{remedy}: {LAWS[self.part.name].help}")
        elif clock.is_proven:
            self.part.ok(f"{count}, of the clock by which they are read")


def clock_trials(
    of: str,
    mapped: ResourceMap | ListMap,
    shapes: Mapping[str, FieldShape],
    case: DoctorCase,
    part_of: PartOf,
) -> Iterator[Trial]:
    """Yields a law for each time without a zone of its own."""
    for name in mapped.fields:
        converter = case.rows(of).by_name[name].converter
        is_naive = isinstance(converter, LocalTime | UtcTime)
        if name in WORKED or shapes[name].format != "date-time" or not is_naive:
            continue
        if part := part_of("clock-stays", name):
            is_utc, zone = isinstance(converter, UtcTime), case.adapter.diary.zone
            yield ClockStays(part, name, zone, is_utc=is_utc)
