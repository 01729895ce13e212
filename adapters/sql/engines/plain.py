"""Values in the plain forms that converters take, from and to the texts of a server."""

import re
from decimal import Decimal
from typing import Any

_WHOLE = re.compile("-?[0-9]{1,18}").fullmatch


def plain_number(shown: str | bytes) -> int | Decimal:
    """A decimal: an int where it is whole and has no places, else with the places it has."""
    text = shown.decode() if isinstance(shown, bytes) else shown
    return int(text) if _WHOLE(text) else Decimal(text)


def plain_text(value: Any) -> str:
    """A parameter as a text that any column can be compared with."""
    return str(int(value)) if isinstance(value, bool) else str(value)
