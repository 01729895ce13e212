"""Converters: each reads and writes one way in which a practice system keeps a value.

Each decodes a raw value of the driver into its JSON form (None for no value) and encodes a value
back. A mapping names them under `as`, by the table in adapters/mapping/converters.py.
Times are in `times`, ids in adapters/ids/. A value in several columns has a tuple as its raw value.
"""

import codecs
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any, ClassVar, Protocol

# The most characters of a value. A longer one would hold up all calls while it is passed on.
LONGEST = 100_000
# The most digits of a number; no database keeps more.
LONGEST_NUMBER = 1_000
# Decimal's own context would round a number of more than 28 digits.
_EXACT = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)


class Unreadable(Exception):
    """A raw value that the converter cannot read; `kind` is that of its Trouble."""

    kind = "unreadable"


class UnknownCode(Unreadable):
    """A code that the mapping's table does not name."""

    kind = "unknown code"


class Converter(Protocol):
    """Decodes a raw value; encodes a value as every raw value that stands for it.

    `compares`: whether raw values can be compared with what `encode` gives, and so filtered by.
    """

    @property
    def compares(self) -> bool: ...

    def decode(self, raw: Any) -> Any:
        """Returns the JSON form; None for no value. Raises Unreadable."""

    def encode(self, value: Any) -> tuple[Any, ...]:
        """Returns the raw values that read as `value`, first the one to write; () for none."""


def whole(raw: Any) -> int | None:
    """Returns a key as a whole number, however it is kept; None for what is none."""
    try:
        key = int(raw)
    except (ValueError, TypeError, OverflowError):
        return None
    return None if isinstance(raw, float | Decimal) and raw != key else key


def by_value(raw: Any) -> Any:
    """Returns a key, or a part, by its value: 12 for 12.00, 12.5 for 12.50. Texts stay texts."""
    if isinstance(raw, float) and raw.is_integer() and abs(raw) < 2**53:  # larger ones were rounded
        return int(raw)
    if not isinstance(raw, Decimal) or not raw.is_finite() or raw.adjusted() > LONGEST_NUMBER:
        return raw
    number = whole(raw)
    return Decimal(f"{raw.normalize(_EXACT):f}") if number is None else number


def plain(raw: Any, encoding: str = "utf-8") -> str | None:
    """Returns a text without the blanks around it; None where nothing is left.

    `encoding` is that of bytes. Raises Unreadable where it does not fit, and for a huge text.
    """
    if raw is None:
        return None
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, bytes | str) and len(raw) > LONGEST:
        raise Unreadable
    if isinstance(raw, bytes):
        try:
            raw = raw.decode(encoding)
        except UnicodeDecodeError as error:
            raise Unreadable from error
    return str(raw).strip() or None


class AsItIs:
    """A converter that writes a value as it is, unless `encode` is overridden."""

    __slots__ = ()
    compares: ClassVar[bool] = True

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (value,)


class ReadOnly(AsItIs):
    """A converter of values that are put together, and so cannot be written or compared."""

    __slots__ = ()
    compares = False

    def encode(self, value: Any) -> tuple[Any, ...]:
        return ()


# What MySQL long called utf8, in which a letter has three bytes at most.
THREE_BYTES = "utf8mb3"
codecs.register(lambda name: codecs.lookup("utf-8") if name == THREE_BYTES else None)


@dataclass(frozen=True, slots=True)
class Text(AsItIs):
    """Text, stripped; blank is no value.

    What the encoding lacks is written as a question mark, and no more than the `longest` letters.
    """

    encoding: str = "utf-8"
    longest: int | None = None

    def decode(self, raw: Any) -> str | None:
        return plain(raw, self.encoding)

    def encode(self, value: Any) -> tuple[Any, ...]:
        value = value[: self.longest].rstrip() if self.longest else value
        if self.encoding == "utf-8":
            return (value,)
        if self.encoding == THREE_BYTES:
            return ("".join(letter if letter <= "\uffff" else "?" for letter in value),)
        return (value.encode(self.encoding, "replace").decode(self.encoding),)


@dataclass(frozen=True, slots=True)
class JoinedText(ReadOnly):
    """Several texts or columns joined to one; blank ones are left out."""

    separator: str = ", "
    encoding: str = "utf-8"

    def decode(self, raw: Any) -> str | None:
        parts = raw if isinstance(raw, tuple) else (raw,)
        texts = [text for part in parts if (text := plain(part, self.encoding))]
        return self.separator.join(texts) or None


@dataclass(frozen=True, slots=True)
class PartOfText(ReadOnly):
    """One part of a text such as `Last,First`: 1 is the first (or only) one, -1 the last."""

    separator: str = ","
    part: int = 1
    encoding: str = "utf-8"

    def decode(self, raw: Any) -> str | None:
        text = plain(raw, self.encoding)
        if text is None:
            return None
        parts = [part.strip() for part in text.split(self.separator)]
        place = self.part - 1 if self.part > 0 else self.part
        return parts[place] or None if -len(parts) <= place < len(parts) else None


@dataclass(frozen=True, slots=True)
class Email(AsItIs):
    """An e-mail address; what has no @ in it is unreadable."""

    encoding: str = "utf-8"

    def decode(self, raw: Any) -> str | None:
        text = plain(raw, self.encoding)
        if text is not None and re.fullmatch(r"[^@\s]+@[^@\s]+", text) is None:
            raise Unreadable
        return text


@dataclass(frozen=True, slots=True)
class SplitText(AsItIs):
    """Several texts in one, with a separator between them."""

    separator: str = ";"
    encoding: str = "utf-8"

    def decode(self, raw: Any) -> list[str] | None:
        text = plain(raw, self.encoding)
        if text is None:
            return None
        return [part.strip() for part in text.split(self.separator) if part.strip()]

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (self.separator.join(value),)


@dataclass(frozen=True, slots=True)
class Codes(AsItIs):
    """A code table: raw code (as text) -> value. A code outside it raises UnknownCode.

    A code with the value None is known to mean nothing; "" is the code of a blank or NULL.
    """

    codes: Mapping[str, Any]

    def decode(self, raw: Any) -> Any:
        text = plain(bits(raw))
        if text is None:
            return self.codes.get("")
        if text not in self.codes:
            raise UnknownCode
        return self.codes[text]

    def encode(self, value: Any) -> tuple[Any, ...]:
        return tuple(code for code, meaning in self.codes.items() if meaning == value)


@dataclass(frozen=True, slots=True)
class CodesOf(AsItIs):
    """A code table whose values are raw ones too, which another converter reads on."""

    table: Codes
    converter: Converter
    compares: ClassVar[bool] = False

    def decode(self, raw: Any) -> Any:
        value = self.table.decode(raw)
        return None if value is None else self.converter.decode(value)

    def encode(self, value: Any) -> tuple[Any, ...]:
        meanings = self.table.codes.items()
        return tuple(
            code
            for code, meaning in meanings
            if meaning is not None and self.converter.decode(meaning) == value
        )


def bits(raw: Any) -> Any:
    """Returns the number in the bytes of a BIT column; any other value as it is."""
    is_bits = isinstance(raw, bytes) and raw != b"" and max(raw) < 0x20
    return int.from_bytes(raw) if is_bits else raw


@dataclass(frozen=True, slots=True)
class Boolean(AsItIs):
    """A truth value in one of several spellings of yes and no."""

    yes: tuple[Any, ...] = (1, "1", "true")
    no: tuple[Any, ...] = (0, "0", "false")

    def decode(self, raw: Any) -> bool | None:
        raw = int.from_bytes(raw) if isinstance(raw, bytes) else raw
        raw = raw.strip() if isinstance(raw, str) else raw
        if isinstance(raw, Decimal) and raw.is_snan():  # to compare it is an error
            raise UnknownCode
        if raw is None or raw == "":
            return None
        if raw in self.yes:
            return True
        if raw in self.no:
            return False
        raise UnknownCode

    def encode(self, value: Any) -> tuple[Any, ...]:
        return self.yes if value else self.no


def decimal(raw: Any) -> Decimal | None:
    """Returns a number however it is spelt: 4.5, '4,5', '1 234,50'; None for a blank."""
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


def number_or_none(raw: Any) -> Decimal | None:
    """Returns the number; None also for what is none."""
    try:
        return decimal(raw)
    except Unreadable:
        return None


# The form of most numbers, which needs no second look.
_SIMPLE = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?").fullmatch
_BLANKS = re.compile(r"[\s\u00a0\u202f']").sub
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,3})?").fullmatch


def _pointed(text: str) -> str:
    """Returns the number with a point before its fraction: the last of two marks begins it.

    A mark that occurs more than once separates thousands. A single comma begins the fraction.
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


@dataclass(frozen=True, slots=True)
class Scaled(AsItIs):
    """A number that is kept in another unit: what `converter` reads is `factor` times that."""

    converter: Converter
    factor: Decimal
    compares: ClassVar[bool] = False

    def decode(self, raw: Any) -> Any:
        number = decimal(raw)
        return None if number is None else self.converter.decode(number * self.factor)

    def encode(self, value: Any) -> tuple[Any, ...]:
        numbers = (Decimal(str(raw)) / self.factor for raw in self.converter.encode(value))
        return tuple(map(Number().decode, numbers))


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


# The most characters of a text that are searched.
LONGEST_FOLDED = 1_000
# Letters that keep their form when accents are taken off, and how people type them.
WHOLE_LETTERS = {
    "æ": "ae",
    "œ": "oe",
    "ß": "ss",
    "ø": "o",
    "đ": "d",
    "ð": "d",
    "ħ": "h",
    "\u0131": "i",  # without its dot
    "ł": "l",
    "ŧ": "t",
    "þ": "th",
}
_WHOLE = str.maketrans(WHOLE_LETTERS)


def fold(text: str | bytes | None) -> str:
    """Returns lower case without accents, with blanks for other signs and one blank in front."""
    if isinstance(text, bytes):
        text = text[: 4 * LONGEST_FOLDED].decode(errors="replace")
    bare = unicodedata.normalize("NFKD", (text or "")[:LONGEST_FOLDED])
    kept = "".join(letter for letter in bare if not unicodedata.combining(letter))
    plain = kept.casefold().translate(_WHOLE)
    return " " + "".join(letter if letter.isalnum() else " " for letter in plain)


def all_begin(words: str, texts: Iterable[str | None]) -> bool:
    """Returns whether each word begins a word of the texts; False where there is no word at all."""
    beginnings = fold(words).split()
    text = "".join(map(fold, texts))
    return bool(beginnings) and all(f" {word}" in text for word in beginnings)
