"""How alike the name of a table or column is to words of the vocabulary: a number from 0 to 1."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

# What names carry beside their meaning: of tables, of columns, of types.
NOISE = frozenset(
    word
    for line in (
        "tbl tab t table vet dbo pub d dt dat date datum ts str txt n s i is has fld col f c val",
        "fecha h hr de du der die das la le el van und and et the ist est",
    )
    for word in line.split()
)
# Pairs of a name and a phrase: those of a large database, as each is asked for again and again.
REMEMBERED = 1 << 17
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+").findall


@cache
def tokens(name: str) -> tuple[str, ...]:
    """The words in a name: `ID_PERS`, `lastName`, `geb-datum`; in lower case, without accents."""
    bare = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    plain = "".join(each for each in bare if not unicodedata.combining(each))
    return tuple(each.lower() for each in _PARTS(plain))


def phrases(text: str) -> tuple[tuple[str, ...], ...]:
    """The phrases of a line of the vocabulary, parted by commas."""
    return tuple(words for each in text.split(",") if (words := tokens(each)))


def likeness(name: Sequence[str], wanted: Iterable[Sequence[str]]) -> float:
    """How alike the words of a name are to the best of the phrases."""
    own = tuple(name)
    return max((_phrase(own, tuple(each)) for each in wanted), default=0.0) if own else 0.0


@lru_cache(REMEMBERED)
def _phrase(name: tuple[str, ...], phrase: tuple[str, ...]) -> float:
    if "".join(name) == "".join(phrase):
        return 1.0
    left, score = list(name), 0.0
    for word in phrase:
        best = max(left, key=lambda each: alike(each, word), default="")
        found = alike(best, word) if best else 0.0
        if not found:
            return 0.0
        left.remove(best)
        score += found
    return max(0.0, score / len(phrase) - min(0.45, sum(map(_weight, left))))


def _weight(token: str) -> float:
    return 0.02 if token in NOISE or token.isdigit() else 0.15


@cache
def alike(token: str, word: str) -> float:
    """How alike two words are: the same, in the plural, shortened, or as a part of a compound."""
    if token == word or _singular(token) == _singular(word):
        return 1.0
    if len(token) >= 3 and word.startswith(token):
        return 0.85
    bare = _singular(token)
    if len(word) >= 4 and (token.endswith(word) or bare.endswith(_singular(word))):
        return 0.75
    if len(word) >= 4 and token.startswith(word):
        return 0.7
    return 0.0


@cache
def _singular(word: str) -> str:
    for ending in ("aux", "ies", "nen", "en", "es", "er", "s", "e", "n", "x"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + {"aux": "al", "ies": "y"}.get(ending, "")
    return word


def without_prefix(names: Sequence[str], own: str = "") -> dict[str, tuple[str, ...]]:
    """The words of each column, without a first one that most columns of the table begin with."""
    split = {name: tokens(name) for name in names}
    firsts = Counter(each[0] for each in split.values() if len(each) > 1)
    common = {word for word, times in firsts.items() if times >= max(3, 0.6 * len(names))}
    common |= {word for word in firsts if word in tokens(own) and firsts[word] > 1} - {"id"}
    return {
        name: each[1:] if len(each) > 1 and each[0] in common else each
        for name, each in split.items()
    }
