"""Working hours, what blocks, what is free, and the calls of a booking, in a mapping."""

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, model_validator

from adapters.mapping.conversion import Listed, Strict
from adapters.rest.mapping.calls import Call, Expr, Found, Kept, Many, Paged


class HoursCall(Many):
    """Weekly working hours of a vet, asked of the backend."""

    where: Expr | None = None
    vet: Found | None = None
    weekday: Found = Field(examples=["weekday"])
    start: Expr = Field(examples=["opens"])
    end: Expr = Field(examples=["closes"])


Clock = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-4]):[0-5][0-9]$")]
Weekday = Annotated[int, Field(ge=1, le=7)]


class HoursWritten(Strict):
    """Weekly working hours, written down; without `vets` they are everybody's."""

    days: Listed[Weekday] = Field(min_length=1)
    start: Clock
    end: Clock
    vets: Listed[int | str] | None = Field(default=None, min_length=1)


def _source_of_hours(value: Any) -> str:
    written = isinstance(value, HoursWritten) or (isinstance(value, dict) and "days" in value)
    return "<written>" if written else "<call>"


Hours = Annotated[
    Annotated[HoursWritten, Tag("<written>")] | Annotated[HoursCall, Tag("<call>")],
    Discriminator(_source_of_hours),
]


class Times(Paged):
    """Spans of time of a vet: what blocks, or what is free."""

    where: Expr | None = None
    key: Found | None = None
    vet: Found | None = None
    start: Found
    end: Found | None = None
    minutes: Expr | None = None
    endless: bool = False
    longest: int = Field(default=1, ge=1, le=366)


class Diary(Strict):
    """How free times come about; `step` and `duration` in minutes."""

    step: int = Field(default=15, ge=5, le=240)
    duration: int = Field(default=30, ge=5, le=1440)
    hours: Listed[Hours] = ()
    free: Listed[Times] = ()
    busy: Listed[Times] = ()

    @model_validator(mode="after")
    def _some_source(self) -> "Diary":
        if bool(self.hours) == bool(self.free):
            raise ValueError("takes either hours or free")
        if self.hours and not self.busy:
            raise ValueError("busy is missing: beside hours it must be said what blocks")
        return self


class Step(Call):
    """One call of a booking; `keep` takes values out of its answer."""

    keep: dict[str, Kept] = Field(default_factory=dict)


class Booking(Strict):
    """The calls of a booking, how to look one up, and how to withdraw one."""

    appointment: str = Field(examples=["visit"])
    reference: Expr | None = None
    calls: Listed[Step] = Field(min_length=1)
    find: Paged
    cancel: Call | None = None
    settle: int = Field(default=30, ge=0, le=600)
