"""Proves working hours by the appointments that lie within them."""

from collections.abc import Sequence
from datetime import UTC, datetime

from adapters.draft.readings import moment, sample_of
from adapters.draft.sources import TableSource

# The appointments that are looked at, the fewest that prove anything, the share that lies within
# the hours where they are right, and how much less must lie there on any other first day.
MOST, FEWEST, WITHIN, LESS = 400, 20, 0.9, 0.1


def share_within(source: TableSource, vet: str, day: str, start: str, end: str) -> float | None:
    """Returns the share of the appointments that begin in hours of their vet, 1 being Monday.

    It is None where that proves nothing: too few lie within them, or as many with another first
    day.
    """
    seen = (source.table.columns[name].seen for name in (vet, day, start, end))
    shifts = {
        (str(who), int(str(on)) % 7, _clock(begins), _clock(ends))
        for who, on, begins, ends in zip(*seen, strict=True)
        if str(on).strip().isdecimal()
    }
    visits = _visits(source)
    if len(visits) < FEWEST or not shifts:
        return None
    found, *others = (_share(shifts, visits, later) for later in range(7))
    return found if found >= WITHIN and max(others) <= found - LESS else None


def _clock(raw: object) -> str:
    hours, _, rest = str(raw).strip().partition(":")
    return f"{hours:0>2}:{rest[:2]:0>2}"


def _visits(source: TableSource) -> Sequence[tuple[str, datetime]]:
    """Returns the vets and the starts of appointments, on the clinic's clock."""
    rows = source.catalog.chosen.get("appointments")
    if rows is None or not {"vetId", "scheduledAt"} <= rows.fields.keys():
        return ()
    sample, start = (
        sample_of(rows, ["vetId", "scheduledAt"], limit=MOST),
        rows.fields["scheduledAt"],
    )
    is_utc = start.parameters.get("as") == "utc time"
    found = []
    pairs = zip(sample.get("vetId", ()), sample.get("scheduledAt", ()), strict=True)
    for vet, raw in pairs:
        time = moment(raw, start)
        if time is not None:
            local = time.replace(tzinfo=UTC).astimezone(source.catalog.zone) if is_utc else time
            found.append((str(vet[0]), local))
    return found


def _share(
    shifts: set[tuple[str, int, str, str]], visits: Sequence[tuple[str, datetime]], later: int
) -> float:
    inside = sum(
        any(
            who == vet
            and on == (time.isoweekday() + later) % 7
            and begins <= f"{time:%H:%M}" < ends
            for who, on, begins, ends in shifts
        )
        for vet, time in visits
    )
    return inside / len(visits)
