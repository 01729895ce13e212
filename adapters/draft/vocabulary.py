"""Compares names of tables and columns with the words that practice systems use."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from adapters.documents.document import read_document

# The cached pairs of a name and a phrase, enough for all those of a large database.
REMEMBERED = 1 << 17
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+").findall

Tokens = tuple[str, ...]


class Phrases(tuple[Tokens, ...]):  # noqa: SLOT001 - a tuple that knows more cannot have slots
    """Phrases, with the beginnings and the ends of their words, and the likeness of known names."""

    starts: frozenset[str]
    ends: frozenset[str]
    known: dict[Tokens, float]

    def __new__(cls, phrases: Iterable[Tokens] = ()) -> "Phrases":
        made = super().__new__(cls, phrases)
        words = {form for phrase in made for word in phrase for form in (word, _singular(word))}
        made.starts = frozenset(word[:3] for word in words)
        made.ends = frozenset(word[-3:] for word in words if len(word) >= 3)
        made.known = {}
        return made

    def may_name(self, name: Tokens) -> bool:
        """Returns whether any word of the name begins or ends as one of the phrases'."""
        return any(
            word[:3] in self.starts or word[-3:] in self.ends or _singular(word)[-3:] in self.ends
            for word in name
        )


@cache
def tokens(name: str) -> Tokens:
    """Returns the words in a name such as `ID_PERS` or `lastName`: lower case, no accents."""
    bare = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    plain = "".join(letter for letter in bare if not unicodedata.combining(letter))
    return tuple(part.lower() for part in _PARTS(plain))


def phrases(text: str) -> Phrases:
    """Returns the phrases of a line of the vocabulary, between which commas stand."""
    return Phrases(words for phrase in text.split(",") if (words := tokens(phrase)))


def likeness(name: Tokens, among: Iterable[Tokens]) -> float:
    """Returns how alike a name's words and the best of the phrases are, from 0 to 1."""
    if not isinstance(among, Phrases):
        return max((_likeness(name, phrase) for phrase in among), default=0.0) if name else 0.0
    if name not in among.known:
        score = 0.0
        if among.may_name(name):
            score = max(_likeness(name, phrase) for phrase in among)
        among.known[name] = score
    return among.known[name]


@lru_cache(REMEMBERED)
def _likeness(name: Tokens, phrase: Tokens) -> float:
    if "".join(name) == "".join(phrase):
        return 1.0
    left, score = list(name), 0.0
    for word in phrase:
        best = max(left, key=lambda token: _word_likeness(token, word), default="")
        alike = _word_likeness(best, word) if best else 0.0
        if not alike:
            return 0.0
        left.remove(best)
        score += alike
    extra = sum(0.02 if token in NOISE or token.isdigit() else 0.15 for token in left)
    return max(0.0, score / len(phrase) - min(0.45, extra))


@cache
def _word_likeness(token: str, word: str) -> float:
    """Returns how alike two words are: equal, plural, shortened, or part of a compound."""
    bare = _singular(token)
    if token == word or bare == _singular(word):
        return 1.0
    if len(token) >= 3 and word.startswith(token):
        return 0.85
    if len(word) >= 4 and (token.endswith(word) or bare.endswith(_singular(word))):
        return 0.75
    return 0.7 if len(word) >= 4 and token.startswith(word) else 0.0


@cache
def _singular(word: str) -> str:
    for ending in ("aux", "ies", "nen", "en", "es", "er", "s", "e", "n", "x"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + {"aux": "al", "ies": "y"}.get(ending, "")
    return word


def without_prefix(names: Sequence[str], own: str = "") -> dict[str, Tokens]:
    """Returns each name's words, without a first one that most of them, or the table, share."""
    split = {name: tokens(name) for name in names}
    firsts = Counter(words[0] for words in split.values() if len(words) > 1)
    common = {word for word, times in firsts.items() if times >= max(3, 0.6 * len(names))}
    common |= {word for word in firsts if word in NOISE and firsts[word] >= 3 and not own}
    common |= {word for word in firsts if word in tokens(own) and firsts[word] > 1} - {"id"}
    return {
        name: words[1:] if len(words) > 1 and words[0] in common else words
        for name, words in split.items()
    }


def _phrases_of(table: Mapping[str, str]) -> dict[str, Phrases]:
    return {key: phrases(text.format_map(_DATA["shared"])) for key, text in table.items()}


def _words(name: str) -> frozenset[str]:
    return frozenset(_DATA["words"][name].split(", "))


_DATA: Mapping[str, Any] = read_document(Path(__file__).with_name("vocabulary.yaml")).data
# What a table of each resource, another table or a column may be called.
TABLES = _phrases_of(_DATA["tables"])
PHRASES = _phrases_of(_DATA["phrases"])
_KINDS_OF_VISITS = product(PHRASES["visit_kinds"], TABLES["appointments"])
TABLES["appointmentTypes"] = Phrases(
    [*TABLES["appointmentTypes"], *((*kind, *visit) for kind, visit in _KINDS_OF_VISITS)]
)
_LINES_OF_BILLS = product(PHRASES["lines"], TABLES["invoices"])
PHRASES["lines"] = Phrases([*PHRASES["lines"], *((*line, *bill) for line, bill in _LINES_OF_BILLS)])
# What the columns of a resource's fields may be called, by resource and field.
FIELDS = {resource: _phrases_of(fields) for resource, fields in _DATA["fields"].items()}
# What a column that refers to a resource may be called, beside its `id`.
REFERS = _phrases_of(_DATA["refers"])
# What codes may mean, by `resource.field` and value.
CODES = {place: _phrases_of(meanings) for place, meanings in _DATA["codes"].items()}
PARTIES = _phrases_of(_DATA["parties"])
ID, ASIDE, NOISE = _words("id"), _words("aside"), _words("noise")
YES, NO = _words("yes"), _words("no")
