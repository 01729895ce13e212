"""Defines the masks, which show a part of a value in the same type and format.

A mask is a function of the value alone, and cannot be undone. A value that it cannot read is hidden
altogether.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from gateway.contract.fields import DAY, EMAIL, INSTANT, MONEY, NUMBER, PERCENT, TEXT, Field, Format
from gateway.policy.towns import town_of

STARS = "***"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MaskKind:
    """A way to show a part of a value.

    `formats` are those of the fields that it fits. `hide` takes a value as msgspec reads it (a day
    is a date, an amount is text) and the argument, and returns a value of the same type, or None.
    `largest` bounds the argument, and is None for a mask without one. `says` is what partners are
    told, and `pattern` what their schema says by format, both with the argument as {n}.
    """

    name: str
    formats: tuple[Format, ...]
    hide: Callable[[Any, int], Any]
    says: str
    example: str
    largest: int | None = None
    pattern: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mask:
    """A kind of mask with its argument, which is 0 where the kind has none."""

    kind: MaskKind
    argument: int = 0

    def __str__(self) -> str:
        return f"{self.kind.name}({self.argument})" if self.kind.largest else self.kind.name

    def __call__(self, value: Any) -> Any:
        """Returns the masked value; None where nothing of it can be shown."""
        return self.kind.hide(value, self.argument)

    def shows_no_more_than(self, other: "Mask") -> bool:
        """Returns whether this mask shows no more of any value than the other one.

        `last(2)` shows something of short texts that `last(4)` hides. A rounding follows from a
        finer one only if its step is 1, 5, 9, ... times as large: then halves round alike.
        """
        if self.kind is not ROUNDED or other.kind is not ROUNDED:
            return self == other
        times, rest = divmod(self.argument, other.argument)
        return rest == 0 and times % 4 == 1

    @property
    def says(self) -> str:
        return self.kind.says.replace("{n}", str(self.argument))

    def schema(self, field: Field) -> dict[str, Any]:
        """Returns what the schema of a masked field adds to that of the whole field."""
        about = f"{field.summary} " if field.summary else ""
        extra: dict[str, Any] = {"description": f"{about}Masked: {self.says}", "x-mask": str(self)}
        pattern = self.kind.pattern.get(field.format.name)
        if pattern is not None:
            extra["pattern"] = pattern.replace("{n}", str(self.argument))
        if self.kind is ROUNDED and field.format is NUMBER:
            extra["multipleOf"] = self.argument
        return extra


def _last(text: str, count: int) -> str:
    """Hides at least as much as it shows."""
    text = text.strip()
    return STARS + text[-count:] if len(text) >= 2 * count else STARS


def _year(value: date, _: int) -> date:
    if isinstance(value, datetime):
        return value.replace(month=1, day=1, hour=0, minute=0, second=0)
    return value.replace(month=1, day=1)


def _rounded(value: Any, step: int) -> Any:
    """Returns the nearest multiple; of two that are equally near, the even one."""
    is_amount = isinstance(value, str)  # or a percentage, with two places
    try:
        parts, whole = (int(value.replace(".", "")), 100) if is_amount else value.as_integer_ratio()
        steps, rest = divmod(parts, step * whole)
        steps += 2 * rest > step * whole or (2 * rest == step * whole and steps % 2 == 1)
        # the bounds within which msgspec writes integers, and floats hold them exactly
        largest = 2**63 if isinstance(value, int) else 2**53
        if is_amount:
            return f"{steps * step}.00"
        return steps * step if abs(steps * step) < largest else None
    except (ValueError, OverflowError):
        return None


LAST = MaskKind(
    name="last",
    formats=(TEXT,),
    hide=_last,
    largest=8,
    says=f"{STARS} and the last {{n}} characters, none of a text that is shorter than twice that.",
    example="last(2)",
    pattern={TEXT.name: r"^\*{3}[\s\S]{0,{n}}$"},
)
DOMAIN = MaskKind(
    name="domain",
    formats=(EMAIL,),
    hide=lambda text, _: f"{STARS}@{text.rpartition('@')[2]}",
    says=f"{STARS} and what follows the @.",
    example="domain",
    pattern={EMAIL.name: r"^\*{3}@"},
)
INITIAL = MaskKind(
    name="initial",
    formats=(TEXT,),
    hide=lambda text, _: next(filter(str.isalnum, text), "*") + ".",
    says="the first letter and a full stop.",
    example="initial",
    pattern={TEXT.name: r"^[\s\S]{1,2}\.$"},
)
YEAR = MaskKind(
    name="year",
    formats=(DAY, INSTANT),
    hide=_year,
    says="the first day of the year.",
    example="year",
    pattern={DAY.name: r"^[0-9]{4}-01-01$", INSTANT.name: r"^[0-9]{4}-01-01T00:00:00Z$"},
)
CITY = MaskKind(
    name="city",
    formats=(TEXT,),
    hide=lambda text, _: town_of(text),
    says="the town, null where no postal code tells it from the street.",
    example="city",
)
ROUNDED = MaskKind(
    name="rounded",
    formats=(MONEY, NUMBER, PERCENT),
    hide=_rounded,
    largest=1_000_000,
    says="the nearest multiple of {n}.",
    example="rounded(10)",
)

KINDS: Mapping[str, MaskKind] = {
    kind.name: kind for kind in (LAST, DOMAIN, INITIAL, YEAR, CITY, ROUNDED)
}
_written = re.compile(r"([A-Za-z]+)(?:\( *([0-9]{1,7}) *\))?").fullmatch


def fitting(field: Field) -> list[MaskKind]:
    is_plain = not (field.values or field.fields or field.many)
    return [kind for kind in KINDS.values() if is_plain and field.format in kind.formats]


def read_mask(text: Any) -> Mask | str | None:
    """Returns the mask, or what is wrong with its argument; None where it is no mask."""
    match = _written(text) if isinstance(text, str) else None
    kind = KINDS.get(match[1]) if match else None
    if match is None or kind is None:
        return None
    if kind.largest is None:
        return Mask(kind) if match[2] is None else f"{kind.name} takes no number: write {kind.name}"
    count = int(match[2] or 0)
    if not 1 <= count <= kind.largest:
        return f"{kind.name} takes a number from 1 to {kind.largest}, such as {kind.example}"
    return Mask(kind, count)
