"""Proves appointments, their types, and consultations: by their times."""

from datetime import timedelta

from adapters.draft.clocks import said_of
from adapters.draft.laws.sample import Law, Sample, Samples
from adapters.draft.readings import minutes

# An appointment's greatest length in minutes, and the grid that lengths nearly always have.
LONGEST, GRID = 720, 5


def _lengths(sample: Sample) -> list[float | None]:
    """Returns the minutes of each appointment: as they are stored, or from start to end."""
    if "plus" in sample.rows.fields["endTime"].parameters:
        return [minutes(raw[-1]) for raw in sample.raw["endTime"]]
    pairs = zip(sample.times("scheduledAt"), sample.times("endTime"), strict=True)
    return [(end - start) / timedelta(minutes=1) if start and end else None for start, end in pairs]


def _start_and_end(sample: Sample, samples: Samples) -> None:
    del samples
    if not sample.has("scheduledAt", "endTime") or not sample.is_dated("scheduledAt"):
        return
    lengths = _lengths(sample)
    is_length = sample.holds(lambda length: 0 < length <= LONGEST, lengths)
    if is_length and sample.holds(lambda length: length % GRID == 0, lengths, share=0.2):
        law = f"start before end, {said_of(sample.rows, 'scheduledAt')}"
        sample.prove(law, "scheduledAt", "endTime")


def _made(sample: Sample, samples: Samples) -> None:
    """Refutes what was proven to be the creation where it is later than the appointment."""
    del samples
    if not sample.is_proven("createdAt") or not sample.has("createdAt", "scheduledAt"):
        return
    times = sample.times("createdAt"), sample.times("scheduledAt")
    if not sample.holds(lambda made, start: made <= start, *times, share=0.2):
        sample.refute("createdAt")


def _consultations(sample: Sample, samples: Samples) -> None:
    del samples
    if not sample.is_dated("startedAt"):
        return
    said = said_of(sample.rows, "startedAt")
    if sample.is_dated("validatedAt") and sample.is_named("validatedAt"):
        times = sample.times("startedAt"), sample.times("validatedAt")
        in_order = sample.holds(lambda start, end: start <= end, *times)
        if in_order and sample.is_named("startedAt", 0.8):
            sample.prove(f"started before validated, {said}", "startedAt", "validatedAt")
    if sample.is_named("startedAt") and sample.is_past("startedAt"):
        sample.prove(f"none is later than now, {said}", "startedAt")


def _type_names(sample: Sample, samples: Samples) -> None:
    del samples
    is_one = "name" in sample.raw and sample.is_named("name", 0.9)
    if is_one and sample.is_unique("name"):
        sample.prove("every name is there once", "name")


def _durations(sample: Sample, samples: Samples) -> None:
    """Proves a type's duration by the appointments of that type, most of which last so long."""
    visits = samples.get("appointments")
    needed = ("appointmentTypeId", "scheduledAt", "endTime")
    if "durationMinutes" not in sample.raw or visits is None or not visits.has(*needed):
        return
    keys = [str(raw[0]) for raw in sample.raw["key"]]
    lengths = [minutes(raw[0]) for raw in sample.raw["durationMinutes"]]
    planned = dict(zip(keys, lengths, strict=True))
    ours = [planned.get(str(raw[0])) for raw in visits.raw["appointmentTypeId"]]
    if visits.holds(lambda plan, real: plan == real, ours, _lengths(visits), share=0.4):
        sample.prove("appointments of the type last so long", "durationMinutes")


def appointments_table(sample: Sample, samples: Samples) -> str:
    """Returns why the table is the appointments'; nothing where that is not proven."""
    del samples
    is_one = sample.is_proven("scheduledAt", "endTime", "patientId")
    return "starts, ends and animals" if is_one else ""


def consultations_table(sample: Sample, samples: Samples) -> str:
    """Returns why the table is the consultations'; nothing where that is not proven."""
    visits = samples.get("appointments")
    is_own = visits is None or sample.rows.source.table.name != visits.rows.source.table.name
    is_one = sample.is_proven("patientId", "startedAt") and (is_own or sample.rows.source.kind)
    return "animals that were seen" if is_one else ""


def types_table(sample: Sample, samples: Samples) -> str:
    """Returns why the table is that of types; nothing where that is not proven."""
    visits = samples.get("appointments")
    is_referred = visits is not None and visits.is_proven("appointmentTypeId")
    return "appointments refer to it" if sample.is_proven("name") and is_referred else ""


APPOINTMENTS: tuple[Law, ...] = (_start_and_end, _made)
CONSULTATIONS: tuple[Law, ...] = (_consultations,)
TYPES: tuple[Law, ...] = (_type_names, _durations)
