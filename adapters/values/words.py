"""Words as a search compares them: whatever the case, the accents, and what stands between."""

import unicodedata
from collections.abc import Iterable

# Characters of a text that are searched.
LONGEST_FOLDED = 1_000
# Letters that stay whole when accents are taken off, and how people type them.
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
    """Lower case without accents; all but letters and digits become blanks; one blank before."""
    if isinstance(text, bytes):
        text = text[: 4 * LONGEST_FOLDED].decode(errors="replace")
    bare = unicodedata.normalize("NFKD", (text or "")[:LONGEST_FOLDED])
    kept = "".join(letter for letter in bare if not unicodedata.combining(letter))
    plain = kept.casefold().translate(_WHOLE)
    return " " + "".join(letter if letter.isalnum() else " " for letter in plain)


def all_begin(words: str, texts: Iterable[str | None]) -> bool:
    """Whether each word begins a word of the texts; False where there is no word at all."""
    wanted = fold(words).split()
    text = "".join(map(fold, texts))
    return bool(wanted) and all(f" {word}" in text for word in wanted)
