"""The models of what a mapping says of a vet's time: hours, what blocks, slot rows, durations."""

from pydantic import (
    Field,
    field_validator,
    model_validator,
)

from adapters.mapped.slots import Shift, closed_days, days_of_week, hours_of_day
from adapters.mapping.conversion import Listed, Strict
from adapters.sql.mapping.rows import Columns, Expression, Rows, Sql


class Hours(Strict):
    """Working hours of a vet or in a schedule: rows of the practice system, or written here.

    As rows: `weekday` is 1 for Monday to 7 (0 is Sunday too), or `day` a date; `start` and `end`
    read HH:MM. Written: `days` such as mon-fri, `times` such as 08:30-12:00, for the keys in
    `vets` or `schedules`, or for everybody.
    """

    from_: str | None = Field(default=None, alias="from", min_length=1)
    where: Sql | None = None
    vet: Sql | None = None
    schedule: Sql | None = None
    weekday: Sql | None = None
    day: Sql | None = None
    start: Sql | None = None
    end: Sql | None = None
    days: Listed[str] | None = None
    times: Listed[str] | None = None
    vets: Listed[str | int] | None = None
    schedules: Listed[str | int] | None = None

    @model_validator(mode="after")
    def _rows_or_written(self) -> "Hours":
        rows = {name: getattr(self, name) for name in ("where", "vet", "schedule", "start", "end")}
        rows |= {"weekday": self.weekday, "day": self.day}
        written = {name: getattr(self, name) for name in ("days", "times", "vets", "schedules")}
        strangers = written if self.from_ is not None else rows
        given = [name for name, value in strangers.items() if value is not None]
        if given:
            side = "rows (from)" if self.from_ is not None else "hours that are written here (days)"
            raise ValueError(f"{' and '.join(given)} does not go with {side}")
        if self.from_ is not None:
            self._must_be_whole()
        elif self.days is None or self.times is None:
            raise ValueError("needs from, weekday, start and end, or else days and times")
        return self

    def _must_be_whole(self) -> None:
        if (self.weekday is None) == (self.day is None):
            raise ValueError("rows of hours need weekday or day, one of both")
        if self.start is None or self.end is None:
            raise ValueError("rows of hours need start and end")
        if self.vet is not None and self.schedule is not None:
            raise ValueError("takes vet or schedule, not both")

    @field_validator("days")
    @classmethod
    def _known_days(cls, days: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for each in days or ():
            days_of_week(each)
        return days

    @field_validator("times")
    @classmethod
    def _known_times(cls, times: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for each in times or ():
            hours_of_day(each)
        return times

    @property
    def rows(self) -> Rows:
        """Where the rows of hours are."""
        return Rows(from_=self.from_ or "", where=self.where)

    @property
    def shifts(self) -> tuple[Shift, ...]:
        """The hours that are written here."""
        return tuple(
            Shift(weekday, *hours_of_day(each))
            for days in self.days or ()
            for weekday in days_of_week(days)
            for each in self.times or ()
        )


class Rowspan(Rows):
    """Rows that last from a start to an end, or for so many `minutes`, of a vet or a schedule."""

    vet: Sql | None = None
    schedule: Sql | None = None
    start: Expression = Field(examples=["a.start_time"])
    end: Expression | None = None
    minutes: Sql | None = None

    @model_validator(mode="after")
    def _one_owner(self) -> "Rowspan":
        if self.vet is not None and self.schedule is not None:
            raise ValueError("takes vet or schedule, not both")
        return self


class Busy(Rowspan):
    """What blocks: a vet, a schedule, or where neither is named everybody.

    Without an end it lasts `minutes`, else the default duration. `key` is the appointment's, in the
    source that holds the bookings. With `endless` what has no end goes on for good. `longest`
    (days) promises that no row that has an end lasts longer, so that an index on the start serves.
    """

    key: Columns | None = None
    endless: bool = False
    longest: int | None = Field(default=None, ge=1, le=3660)


class SlotRows(Rowspan):
    """Free slots that the practice system keeps as rows; `key` names one in a booking."""

    key: Sql

    @model_validator(mode="after")
    def _somebodys(self) -> "SlotRows":
        if self.vet is None and self.schedule is None:
            raise ValueError("needs vet or schedule: whose slot it is")
        if self.end is None and self.minutes is None:
            raise ValueError("needs end or minutes")
        return self


class Schedules(Rows):
    """The calendars of a vet, where they belong to rooms or schedules."""

    vet: Sql = Field(examples=["s.vet_id"])
    key: Sql


class Durations(Rows):
    """How long a type lasts, in a schedule or in all."""

    type: Columns = Field(examples=["t.id"])
    schedule: Sql | None = None
    minutes: Sql = Field(examples=["t.minutes"])


class Diary(Strict):
    """How free times come about; `step` and `duration` in minutes."""

    step: int = Field(default=15, ge=5, le=240)
    duration: int = Field(default=30, ge=5, le=1440)
    hours: Listed[Hours] = ()
    busy: Listed[Busy] = Field(min_length=1)
    closed: Listed[str] = ()
    slots: Listed[SlotRows] = ()
    schedules: Schedules | None = None
    durations: Listed[Durations] = ()

    @field_validator("closed")
    @classmethod
    def _known_days(cls, closed: tuple[str, ...]) -> tuple[str, ...]:
        for each in closed:
            closed_days(each)
        return closed

    @model_validator(mode="after")
    def _some_time(self) -> "Diary":
        if not self.hours and not self.slots:
            raise ValueError("needs hours or slots: when there is time at all")
        return self
