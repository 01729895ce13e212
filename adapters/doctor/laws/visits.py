"""The law of visits: what was seen in a consultation had been neither cancelled nor missed."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from adapters.base import Record
from adapters.doctor.case import DoctorCase, LawLook, Look
from adapters.doctor.laws.hours import NOT_HELD
from adapters.doctor.laws.trials import RowTrial, Trial, told
from adapters.doctor.values import ENOUGH, pages
from adapters.documents.document import Place
from adapters.examination import agreeing, counted

# The share of consultations that may belong to a visit that was not held.
MOST_VOID = 0.5
STATUS: Place = ("resources", "appointments", "fields", "status")


class VisitsWereHeld(RowTrial):
    """The appointment of a consultation was neither cancelled nor missed."""

    fields = ("appointmentId",)

    def __init__(self, part: LawLook, case: DoctorCase) -> None:
        super().__init__(part)
        records = chain.from_iterable(pages(case, "appointments"))
        # of each id a mark is kept, as all of them may be looked at
        self._status = {hash(record["id"]): record["status"] for record in records}
        self._case, self._void = case, Counter[str]()

    def holds(self, record: Record) -> bool | None:
        if (status := self._status.get(hash(record["appointmentId"]))) is None:
            return None
        self._void.update([status] if status in NOT_HELD else [])
        return status not in NOT_HELD

    def example(self, record: Record) -> str:
        return told(record, {"status": self._status[hash(record["appointmentId"])]})

    def tell(self) -> None:
        part = self.part
        if part.too_few(part.count, ENOUGH):
            return
        count = counted(part.broken, "consultation")
        text = f"{count} of {part.count:,} {agreeing(part.broken, 'belong')} to an appointment"
        text = f"{text} that is {' or '.join(sorted(NOT_HELD))}"
        if part.broken > MOST_VOID * part.count:
            [(status, _)] = self._void.most_common(1)
            part.breach(text, place=code_place(self._case, status))
        else:
            part.ok(text)


def code_place(case: DoctorCase, status: str) -> Place:
    """Returns where the only code of a status stands, else where the status is read."""
    source = case.adapter.mapping.resources["appointments"].fields["status"]
    codes = [code for code, value in (source.codes or {}).items() if value == status]
    return (*STATUS, "codes", codes[0]) if len(codes) == 1 else STATUS


def visit_trials(case: DoctorCase, look: Look) -> Iterator[Trial]:
    """Yields the law of consultations, as far as both sides of it are mapped."""
    consultations, appointments = map(
        case.adapter.mapping.resources.get, ("consultations", "appointments")
    )
    if consultations is None or "appointmentId" not in consultations.fields:
        return
    if appointments is None or "status" not in appointments.fields:
        return
    if part := case.law("visits-were-held", look, *STATUS):
        yield VisitsWereHeld(part, case)
