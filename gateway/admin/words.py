"""Every word of the panel in each language: a catalogue of files, and a browser's language."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from adapters.documents.problems import DocumentErrors, Problem

LANGUAGES = ("en", "fr")
_before_mark = re.compile(" (?=[:;?!])").sub
FOLDER = Path(__file__).with_name("texts")
# A text, or one of it for one thing and one for several.
Text = str | Sequence[str]


@cache
def catalogue() -> Mapping[str, Mapping[str, Text]]:
    """`file.name` -> language -> text; a list holds it for one thing, and for several.

    DocumentErrors where a file is no TOML.
    """
    found: dict[str, Mapping[str, Text]] = {}
    for file in sorted(FOLDER.glob("*.toml")):
        try:
            data = tomllib.loads(file.read_text("utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise DocumentErrors(
                [Problem(str(file), 0, 0, f"is not valid TOML: {error}")]
            ) from error
        found |= {f"{file.stem}.{name}": texts for name, texts in data.items()}
    return found


class Words:
    """The texts in one language; called with a text's name and what stands in its braces."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.texts = {name: _set(texts[language], language) for name, texts in catalogue().items()}

    def __call__(self, name: str, n: int | None = None, /, **values: Any) -> str:
        """KeyError for a name that no text has; `n` chooses between one and several."""
        text = self.texts[name]
        if not isinstance(text, str):
            text = text[0 if self._is_one(n or 0) else 1]
        if n is not None:
            values["n"] = self.number(n)
        return text.format(**values) if values else text

    def raw(self, name: str) -> str:
        """The text with its braces, which somebody else fills; KeyError, TypeError for a list."""
        text = self.texts[name]
        if not isinstance(text, str):
            raise TypeError(f"{name} has a form for one thing and one for several")
        return text

    def has(self, name: str) -> bool:
        """Whether there is a text of that name."""
        return name in self.texts

    def number(self, value: float, places: int = 0) -> str:
        """As it is written in that language: 1,234.5 or 1 234,5."""
        text = f"{value:,.{places}f}"
        if self.language == "fr":
            # a narrow blank that does not break
            return text.replace(",", "\u202f").replace(".", ",")
        return text

    def percent(self, share: float) -> str:
        """A share of 1 in hundredths; what is above nothing is never shown as nothing."""
        hundredths = share * 100
        text = "<1" if 0 < hundredths < 1 else f"{hundredths:.0f}"
        return f"{text}\u202f%" if self.language == "fr" else f"{text}%"

    def _is_one(self, n: int) -> bool:
        return n <= 1 if self.language == "fr" else n == 1


def _set(text: Text, language: str) -> Text:
    """As it is printed: in French no line begins with one of the marks that a blank precedes."""
    if language != "fr":
        return text
    if isinstance(text, str):
        return _before_mark("\u00a0", text)
    return [_before_mark("\u00a0", each) for each in text]


@cache
def words(language: str) -> Words:
    """Made once for each language."""
    return Words(language)


def language_of(accepted: str) -> str:
    """The language that a browser likes best (its Accept-Language); English where it has none."""
    best, liked = LANGUAGES[0], 0.0
    for each in accepted.split(","):
        tag, _, more = each.strip().partition(";")
        language = tag.strip().partition("-")[0].lower()
        weight = _weight(more)
        if language in LANGUAGES and weight > liked:
            best, liked = language, weight
    return best


def _weight(text: str) -> float:
    name, _, value = text.strip().partition("=")
    if name.strip() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0
