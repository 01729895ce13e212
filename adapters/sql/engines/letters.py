"""Accented letters and the plain ones that `fold` makes of them, as tables for a server's SQL."""

import unicodedata
from collections.abc import Sequence

from adapters.values.convert import fold

_LETTERS = [chr(code) for code in (*range(0xC0, 0x180), *range(0x1E00, 0x1F00))]
_MARKS = [chr(code) for code in (*range(0xA1, 0xC0), 0xD7, 0xF7, *range(0x2010, 0x2028))]
_FOLDED = {letter: fold(letter)[1:] for letter in _LETTERS}
_ONE_TO_ONE = {
    letter: plain for letter, plain in _FOLDED.items() if len(plain) == 1 and plain != letter
}
BLANKED = "".join(["\u00a0", *(mark for mark in _MARKS if fold(mark) == "  ")])
# Accents that stand behind their letter.
COMBINING = "".join(chr(code) for code in range(0x300, 0x370) if unicodedata.combining(chr(code)))
# Letters that stay as they are, the commonest first: a server goes through the table from its
# beginning for each letter of a text, and so seldom gets far.
_COMMON = "etaoinsrhldcumfpgwybvkxjqz "
_STAYING = _COMMON + _COMMON.strip().upper()
# For TRANSLATE: what has no letter at its place in PLAIN is left out.
ACCENTED = _STAYING + "".join(_ONE_TO_ONE) + BLANKED + COMBINING
PLAIN = _STAYING + "".join(_ONE_TO_ONE.values()) + " " * len(BLANKED)
# One letter that becomes several.
SEVERAL = {
    letter: plain
    for letter, plain in _FOLDED.items()
    if len(plain) > 1 and plain.isascii() and plain.isalpha()
}


def narrowed(codec: str) -> Sequence[tuple[str, str]]:
    """What to write for these tables, pair by pair, where an encoding lacks some of the letters."""
    accented = "".join(each for each in ACCENTED if _has(codec, each))
    plain = "".join(to for letter, to in zip(ACCENTED, PLAIN, strict=False) if _has(codec, letter))
    lost = [(f"'{letter}'", "''") for letter in SEVERAL if not _has(codec, letter)]
    return [(ACCENTED, accented), (PLAIN, plain), *lost]


def _has(codec: str, letter: str) -> bool:
    try:
        return bool(letter.encode(codec))
    except UnicodeEncodeError:
        return False
