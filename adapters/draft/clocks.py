"""Tells by the values which clock wrote a column of times: the clinic's, or one that shows UTC."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from adapters.base import inside
from adapters.draft.readings import moment, sample_of
from adapters.draft.sources import Guess
from adapters.draft.tables import Rows
from adapters.values.clocks import ShownClock, clock_of

# The times that are looked at.
MOST = 2_000
# A newest row may be so much later than UTC's now that only the clinic's own clock can show it.
AHEAD = timedelta(minutes=10)


def set_clocks(chosen: Mapping[str, Rows], zone: ZoneInfo, now: datetime) -> bool:
    """Returns whether the practice's times are in UTC, as far as is known.

    Gives each guessed time the converter of its clock, and the proof where there is one.
    """
    seen: list[tuple[Rows, str, ShownClock]] = []
    for rows in chosen.values():
        for each in (rows, *rows.lists.values()):
            seen += ((each, name, clock) for name, clock in _clocks(each, zone, now))
    proven = {clock.is_utc for _, _, clock in seen if clock.is_proven}
    whole = next(iter(proven)) if len(proven) == 1 else None
    for rows, name, clock in seen:
        guess = rows.fields[name]
        # where all that is proven agrees, a column that agrees too is as good
        is_sure = clock.is_proven or (whole is not None and clock.is_utc == whole)
        is_utc = clock.is_utc if is_sure else whole if whole is not None else clock.is_utc
        given = {key: value for key, value in guess.parameters.items() if key != "as"}
        kept = guess.parameters.get("as")
        how = {"as": "utc time"} if is_utc else {"as": kept} if kept else {}
        rows.clocks[name] = "" if not is_sure else "in UTC" if is_utc else "on the clinic's clock"
        rows.fields[name] = replace(guess, parameters={**how, **given})
    return bool(whole)


def _clocks(rows: Rows, zone: ZoneInfo, now: datetime) -> list[tuple[str, ShownClock]]:
    shapes = inside(rows.shapes)
    names = [
        name
        for name, guess in rows.fields.items()
        if shapes[name].format == "date-time"
        and guess.parameters.get("as") in (None, "local time")
        and not str(guess.sql).startswith("SELECT")
    ]
    samples = sample_of(rows, names, limit=MOST) if names else {}
    found = []
    for name in names:
        guess = rows.fields[name]
        times = [time for raw in samples.get(name, ()) if (time := moment(raw, guess))]
        if any(time.time() != datetime.min.time() for time in times):
            found.append((name, _clock(times, zone, now, is_made=name == "createdAt")))
        elif times:  # days without a time, which no clock moves
            rows.clocks[name] = "a day"
    return found


def _clock(
    times: Sequence[datetime], zone: ZoneInfo, now: datetime, *, is_made: bool
) -> ShownClock:
    utc = now.astimezone(UTC).replace(tzinfo=None)
    if is_made and utc + AHEAD < max(times) <= now.astimezone(zone).replace(tzinfo=None):
        return ShownClock(is_utc=False, is_proven=True)
    return clock_of(times, zone)


def is_sure_of(rows: Rows, name: str) -> bool:
    """Returns whether it is known by which clock a time was written."""
    return bool(rows.clocks.get(name)) or rows.fields[name].parameters.get("as") in (
        "epoch",
        "zoned time",
    )


def said_of(rows: Rows, name: str) -> str:
    return rows.clocks.get(name) or "with its offset"


__all__ = ["Guess", "is_sure_of", "said_of", "set_clocks"]
