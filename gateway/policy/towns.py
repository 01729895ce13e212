"""Finds the town in an address of one text, and finds none in case of doubt.

The town must be at the end, but for the country: after a postal code (75011 Paris, 1012 AB
Amsterdam) or before one (London SW1A 1AA; Springfield, IL 62701). House numbers look like postal
codes, and streets like towns, so an earlier part must be a street, and the town must not look so.
"""

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from adapters.documents.document import read_document

# The most characters of an address. A longer text may hold other things too.
LONGEST = 300

_ends = re.compile(r"[,;\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_words = re.compile(r"[^\W_]+").findall
_town = re.compile(
    r"[^\W\d_]+\.?(?:[ '\u2019/-]{1,2}[^\W\d_]+\.?){0,5}(?: \([A-Z]{2}\))?"
).fullmatch
_code_before = re.compile(r"(?:[A-Z]{1,2}-)?[0-9]{4,6}(?: [A-Z]{2})? {1,3}([^\d]+)").fullmatch
_british = "[A-Z]{1,2}[0-9][A-Z0-9]? [0-9][A-Z]{2}"
_code_behind = re.compile(rf"([^\d]+) {_british}").fullmatch
_code_alone = re.compile(rf"[A-Z]{{2}} {{1,3}}[0-9]{{5}}(?:-[0-9]{{4}})?|{_british}").fullmatch

_ending = re.compile(
    r".*(?:stra(?:ss|ß)e|str|weg|platz|gasse|allee|ufer|damm|ring|graben|pfad|chaussee"
    r"|straat|laan|plein|gracht|kade|singel|dijk|dreef)"
).fullmatch
# Name of a list -> its words. The file explains them.
_LISTS = read_document(Path(__file__).with_name("towns.yaml")).data
COUNTRIES = frozenset(map(str.strip, _LISTS["countries"].split("|")))
STREETS, LAST_WORDS, UNITS, PERSONS = (
    frozenset(_LISTS[name].split()) for name in ("streets", "last_words", "units", "persons")
)


def town_of(address: str) -> str | None:
    """Returns the town as it is written there; None in case of doubt."""
    if len(address) > LONGEST:
        return None
    written = _ends.split(unicodedata.normalize("NFC", address))
    parts = [part for text in written if (part := text.strip())]
    if parts and parts[-1].casefold() in COUNTRIES:
        parts.pop()
    if len(parts) < 2:
        return None
    *earlier, last = parts
    if match := _code_before(last):
        return _sure(match[1], any(map(_is_street, earlier)) or any(map(_is_numbered, earlier)))
    if match := _code_behind(last):
        return _sure(match[1], any(map(_is_street, earlier)))
    if _code_alone(last):
        return _sure(earlier[-1], any(map(_is_street, earlier[:-1])))
    return None


def _sure(town: str, has_street: bool) -> str | None:
    town = town.strip()
    words = _spelt(town.partition(" (")[0])
    is_more = _is_street(town) or not (UNITS | PERSONS).isdisjoint(words)
    return town if has_street and _town(town) and not is_more else None


def _is_street(part: str) -> bool:
    words = _spelt(part)
    letters = [word for word in words if not word.isdecimal()]
    return (
        not STREETS.isdisjoint(words)
        or (bool(letters) and letters[-1] in LAST_WORDS)
        or any(map(_ending, words))
    )


def _is_numbered(part: str) -> bool:
    """Returns whether a part has a house number, and not that of a flat."""
    words = _spelt(part)
    named = any(len(word) > 1 and word.isalpha() for word in words)
    return named and any(word[0].isdecimal() for word in words) and UNITS.isdisjoint(words)


def _spelt(part: str) -> Sequence[str]:
    return [str(word).lower() for word in _words(part)]
