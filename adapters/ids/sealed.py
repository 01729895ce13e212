"""Ids that hold their key, sealed."""

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from adapters.ids.seal import Sealer
from adapters.values.convert import Unreadable, by_value, whole


@dataclass(frozen=True, slots=True)
class SealedIds:
    """A whole number, or a text of up to 8 bytes, within its id."""

    sealer: Sealer = field(repr=False)

    def shown(self, raw: Any) -> str | None:
        key = _sealable(raw)
        try:
            return None if key is None else self.sealer.seal(key)
        except (ValueError, OverflowError) as error:
            raise Unreadable from error

    def referred(self, raw: Any) -> str | None:
        return self.shown(raw)

    def keys(self, public_id: str) -> tuple[Any, ...]:
        key = self.sealer.unseal(public_id)
        if key is None:
            return ()
        # an expression may give a number as a text
        return (key, str(key)) if isinstance(key, int) else (key,)


def _sealable(raw: Any) -> int | str | None:
    """A key as a whole number where it is one, however it is kept; else as the text that it is."""
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if raw is None or raw == "":
        return None
    if isinstance(raw, str):
        # blanks at the end come of CHAR columns; '007' is no number: 7 would be another key
        text = raw.rstrip()
        return int(text) if _NUMBER(text) else text or None
    number = by_value(raw)
    if isinstance(number, Decimal):  # a code with a point in it
        return str(number)
    number = whole(number)
    if number is None or isinstance(raw, bool):
        raise Unreadable
    return number


_NUMBER = re.compile("0|-?[1-9][0-9]{0,18}").fullmatch
