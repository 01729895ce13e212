"""Converters of numbers: plain ones, amounts of money, and colours that are kept as numbers."""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from adapters.values.convert import AsItIs, Unreadable, plain, whole


def decimal(raw: Any) -> Decimal | None:
    """A number however it is spelt: 4.5, '4,5', '1 234,50'; None for blank."""
    if isinstance(raw, bool):
        raise Unreadable
    if isinstance(raw, float):
        raw = repr(raw)
    text = plain(raw)
    if text is None:
        return None
    if _SIMPLE(text):
        return Decimal(text) or Decimal(0)
    text = _pointed(_BLANKS("", text))
    if _NUMBER(text) is None or (number := Decimal(text)).adjusted() > 15:
        raise Unreadable
    return number or Decimal(0)  # -0 is 0


# What most numbers are: nothing in them needs a second look.
_SIMPLE = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?").fullmatch
_BLANKS = re.compile(r"[\s\u00a0\u202f']").sub
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,3})?").fullmatch


def _pointed(text: str) -> str:
    """The number with a point before its fraction: of two marks the last one parts it off.

    A mark that stands more than once parts thousands; a comma alone is the fraction's.
    """
    last = max(text.rfind(","), text.rfind("."))
    mark = text[last] if last >= 0 else ""
    if not mark or (mark == "." and "," not in text and text.count(".") == 1):
        return text
    other = "." if mark == "," else ","
    if text.count(mark) > 1:
        return text if other in text else text.replace(mark, "")
    return text.replace(other, "").replace(mark, ".")


@dataclass(frozen=True, slots=True)
class Number(AsItIs):
    """A number; whole ones stay whole."""

    def decode(self, raw: Any) -> int | float | None:
        number = decimal(raw)
        if number is None:
            return None
        return int(number) if number == number.to_integral_value() else float(number)


@dataclass(frozen=True, slots=True)
class Integer(AsItIs):
    """A whole number."""

    def decode(self, raw: Any) -> int | None:
        number = decimal(raw)
        if number is not None and number != number.to_integral_value():
            raise Unreadable
        return None if number is None else int(number)


@dataclass(frozen=True, slots=True)
class Money(AsItIs):
    """An amount, in whole units or (`cents`) in hundredths, as a string with two places."""

    cents: bool = False

    def decode(self, raw: Any) -> str | None:
        amount = decimal(raw)
        if amount is None:
            return None
        shown = f"{amount / 100 if self.cents else amount:.2f}"
        return "0.00" if shown == "-0.00" else shown

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (int(Decimal(value) * 100) if self.cents else value,)


is_colour = re.compile("#[0-9A-Fa-f]{6}").fullmatch


@dataclass(frozen=True, slots=True)
class Colour(AsItIs):
    """A colour as #RRGGBB: from that text, or from a whole number 0xRRGGBB (`bgr`: 0xBBGGRR)."""

    order: str = "rgb"

    def decode(self, raw: Any) -> str | None:
        text = plain(raw)
        if text is None or is_colour(text):
            return text
        number = whole(text)
        if number is None or not 0 <= number <= 0xFFFFFF:
            raise Unreadable
        parts = number.to_bytes(3, "little" if self.order == "bgr" else "big")
        return f"#{parts.hex().upper()}"
