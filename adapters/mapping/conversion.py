"""The part of a mapping that says how a value is converted: a converter and its parameters."""

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, ClassVar, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from adapters.base import FieldShape
from adapters.documents.problems import Misfit
from adapters.ids.table import REFERS
from adapters.values.times import is_zone

Scalar = str | int | float | bool | None
DRAFT_FIELDS = {
    **{name: FieldShape(format="uuid", refers=resource) for name, resource in REFERS.items()},
    **dict.fromkeys(("scheduledAt", "endTime", "createdAt"), FieldShape(format="date-time")),
    **dict.fromkeys(("reason", "reference", "uuid"), FieldShape(format="text")),
    "isUrgent": FieldShape(format="boolean"),
    "minutes": FieldShape(format="integer"),
}
# What a draft has besides, as the practice system writes it: its calendar, and its slot's rows.
DRAFT_KEYS = ("schedule", "slot", "firstSlot")

T = TypeVar("T")
# A list of the file, as an immutable tuple.
Listed = Annotated[
    tuple[T, ...], BeforeValidator(lambda raw: tuple(raw) if isinstance(raw, list) else raw)
]


@dataclass(frozen=True, slots=True)
class GoesWith:
    """Marks what stands only in a mapping of that adapter."""

    adapter: str


OfSql = Annotated[T, GoesWith("sql")]
OfRest = Annotated[T, GoesWith("rest")]


class Strict(BaseModel):
    """A part of a mapping, in which no unknown name may stand."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)
    # the check that its faults fail
    fails: ClassVar[str] = "unfit-parts"

    @classmethod
    @cache
    def only_with(cls, adapter: str) -> frozenset[str]:
        """Returns the names, as a file has them, that go with that adapter alone."""
        fields = cls.model_fields.items()
        mark = GoesWith(adapter)
        return frozenset(info.alias or name for name, info in fields if mark in info.metadata)

    def faults(self) -> Iterator[str]:
        """Yields what does not go together in it."""
        yield from ()

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if faults := "; ".join(self.faults()):
            raise Misfit(self.fails, faults)
        return self


def checked(check: Callable[[str], object]) -> AfterValidator:
    """Returns a validator of texts, which `check` refuses with a ValueError."""

    def kept(text: str) -> str:
        check(text)
        return text

    return AfterValidator(kept)


def _known_encoding(name: str) -> None:
    try:
        codecs.lookup(name)
    except LookupError as error:
        text = f"no encoding is called {name}; write one such as cp1252"
        raise Misfit("bad-converter", text) from error


def _known_zone(name: str) -> None:
    if not is_zone(name):
        text = f"no time zone is called {name}; write one such as Europe/Paris"
        raise Misfit("unknown-zone", text)


# The time zone of the clinic's wall clock.
Zone = Annotated[str, checked(_known_zone)]


class Conversion(Strict):
    """How a raw value is written: the converter's name and its parameters."""

    as_: str | None = Field(default=None, alias="as")
    codes: dict[str, Scalar] | None = None
    yes: Listed[Scalar] | None = Field(default=None, min_length=1)
    no: Listed[Scalar] | None = Field(default=None, min_length=1)
    separator: str | None = Field(default=None, min_length=1)
    part: int | None = None
    encoding: Annotated[str, checked(_known_encoding)] | None = None
    longest: OfSql[int | None] = Field(default=None, ge=1)
    order: Literal["rgb", "bgr"] | None = None
    pattern: str | None = None
    unit: Literal["seconds", "milliseconds"] | None = None
    zero: Listed[str] | None = None
    plus: str | None = None
    of: str | None = None
    factor: OfRest[float | int | None] = Field(default=None, gt=0)

    def faults(self) -> Iterator[str]:
        if self.as_ == "code" and self.codes is None:
            yield "as: code needs codes, a table of code: value"
        if self.part == 0:
            yield "part must be 1 or more, or -1 for the last"


PARAMETERS = tuple(name for name in Conversion.model_fields if name != "as_")
