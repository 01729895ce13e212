"""Seals a short key of the practice system into a UUID, and opens it again without a table.

The 122 free bits of a UUID version 8 hold the key (64 bits: a whole number, or a text of up to 8
bytes) and a mark of the resource and of the type of key (58 bits). They pass a keyed permutation:
eight Feistel rounds over two halves of 61 bits, with BLAKE2b as the round function. Without the
secret nobody can guess, count or forge an id. A forged or foreign UUID fails its mark, so it is
refused without a query.
"""

import re
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from adapters.values.convert import AsItIs, Unreadable, by_value, whole

# The kinds of ids, as a mapping names them.
SEALED, NATIVE, HASHED = "id", "native id", "hashed id"
ROUNDS = 8
HALF = 61
_HALF_MASK = (1 << HALF) - 1
_MARK_BITS = 58
# Ids that are remembered of those shown, and of those asked for, which anybody can make up.
REMEMBERED, REMEMBERED_ASKED = 65_536, 8_192
LONGEST_TEXT = 8
_NUMBER = re.compile("0|-?[1-9][0-9]{0,18}").fullmatch


class PublicIds(ABC):
    """The ids of one resource; a key of several columns is a tuple."""

    __slots__ = ()

    @abstractmethod
    def shown(self, raw: Any) -> str | None:
        """Returns the public id of a raw key; None for no key. Raises Unreadable for a bad key."""

    def referred(self, raw: Any) -> str | None:
        """Does the same for a key that refers to the resource, where it may be spelt otherwise."""
        return self.shown(raw)

    @abstractmethod
    def keys(self, public_id: str) -> tuple[Any, ...]:
        """Returns the raw keys with that id in all spellings, the one to write first; or ()."""


@dataclass(frozen=True, slots=True)
class Id(AsItIs):
    """The converter of a field that refers to a resource, or of the resource's `own` key."""

    ids: PublicIds
    own: bool = False

    def decode(self, raw: Any) -> str | None:
        return self.ids.shown(raw) if self.own else self.ids.referred(raw)

    def encode(self, value: Any) -> tuple[Any, ...]:
        return self.ids.keys(value)


class SealedIds(PublicIds):
    """Ids that contain a whole number or a text of up to 8 bytes, sealed by a 32-byte secret."""

    def __init__(self, secret: bytes, resource: str) -> None:
        key = blake2b(b"sealed ids", key=secret, digest_size=32).digest()
        states = [
            blake2b(key=key, digest_size=8, person=bytes([number])) for number in range(ROUNDS)
        ]
        # a copy of each round's state, in the order of the rounds
        self._rounds = tuple(state.copy for state in states)
        self._mark = _mark(key, resource, b"mark")
        self._text_mark = _mark(key, resource, b"text mark")
        self.seal = lru_cache(maxsize=REMEMBERED, typed=True)(self._seal)
        self.unseal = lru_cache(maxsize=REMEMBERED_ASKED)(self._unseal)

    def shown(self, raw: Any) -> str | None:
        key = _sealable(raw)
        try:
            return None if key is None else self.seal(key)
        except (ValueError, OverflowError) as error:
            raise Unreadable from error

    def keys(self, public_id: str) -> tuple[Any, ...]:
        key = self.unseal(public_id)
        if key is None:
            return ()
        # an expression may give a number as a text
        return (key, str(key)) if isinstance(key, int) else (key,)

    def _seal(self, key: int | str) -> str:
        """Returns a key's id. Raises ValueError or OverflowError where the key does not fit."""
        if isinstance(key, str):
            letters = key.encode()
            if not 0 < len(letters) <= LONGEST_TEXT or letters[-1] == 0:
                raise ValueError(f"only texts of 1 to {LONGEST_TEXT} bytes can be sealed")
            block = self._text_mark << 64 | int.from_bytes(letters.ljust(LONGEST_TEXT, b"\0"))
        else:
            block = self._mark << 64 | int.from_bytes(key.to_bytes(8, signed=True))
        left, right = block >> HALF, block & _HALF_MASK
        for copy in self._rounds:
            left, right = right, left ^ _mixed(copy(), right)
        return _uuid_of(left << HALF | right)

    def _unseal(self, text: str) -> int | str | None:
        """Returns the key behind a canonical UUID; None where this resource never made it."""
        digits = int(text.replace("-", ""), 16)
        if digits >> 76 & 0xF != 8 or digits >> 62 & 0x3 != 2:
            return None
        block = digits >> 80 << 74 | (digits >> 64 & 0xFFF) << 62 | digits & (1 << 62) - 1
        left, right = block >> HALF, block & _HALF_MASK
        for copy in reversed(self._rounds):
            left, right = right ^ _mixed(copy(), left), left
        block = left << HALF | right
        key = block & (1 << 64) - 1
        if block >> 64 == self._mark:
            return int.from_bytes(key.to_bytes(8), signed=True)
        if block >> 64 == self._text_mark:
            with suppress(UnicodeDecodeError):
                return key.to_bytes(LONGEST_TEXT).rstrip(b"\0").decode()
        return None


def _mixed(state: blake2b, half: int) -> int:
    """Returns what a round makes of the other half, from its state, which is used up."""
    state.update(half.to_bytes(8))
    return int.from_bytes(state.digest()) >> 3


def _mark(key: bytes, resource: str, person: bytes) -> int:
    digest = blake2b(resource.encode(), key=key, digest_size=8, person=person).digest()
    return int.from_bytes(digest) >> (64 - _MARK_BITS)


def uuid_of_digest(digest: bytes) -> str:
    """Returns a UUID version 8 with the first 122 bits of 16 bytes."""
    return _uuid_of(int.from_bytes(digest) >> 6)


def _uuid_of(block: int) -> str:
    high, middle, low = block >> 74, block >> 62 & 0xFFF, block & (1 << 62) - 1
    digits = f"{high << 80 | 8 << 76 | middle << 64 | 2 << 62 | low:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _sealable(raw: Any) -> int | str | None:
    """Returns a key as a whole number where it is one, however it is kept, else as a text."""
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if raw is None or raw == "":
        return None
    if isinstance(raw, str):
        # CHAR columns add blanks at the end; '007' is no number, as 7 would be another key
        text = raw.rstrip()
        return int(text) if _NUMBER(text) else text or None
    number = by_value(raw)
    if isinstance(number, Decimal):  # a code with a point in it
        return str(number)
    number = whole(number)
    if number is None or isinstance(raw, bool):
        raise Unreadable
    return number
