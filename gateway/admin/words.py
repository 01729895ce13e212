"""Writes the panel's texts, numbers and times in each language, from the files in `texts`."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from adapters.documents.problems import DocumentErrors, Problem
from gateway.administrators.administrator import Role
from gateway.contract.access import LEVELS, AccessLevel, Permission
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED, RESOURCES
from gateway.policy.masks import KINDS, Mask
from gateway.policy.policy import HIDDEN, WHOLE, ResourceRules, Rules, Sight
from gateway.policy.rows import RowFilter
from gateway.policy.telling import wording

LANGUAGES = ("en", "fr")
_before_mark = re.compile(" (?=[:;?!])").sub
# A language without its country, and its weight.
_choice = re.compile(
    r"\s*([a-z]+)(?:-[a-z0-9-]*)?\s*(?:;\s*q\s*=\s*([01](?:\.[0-9]*)?|\.[0-9]+)\s*)?", re.IGNORECASE
).fullmatch
FOLDER = Path(__file__).with_name("texts")
_RESOURCES = {resource.name: resource for resource in GOVERNED}
# A text, or two: for one thing and for several.
Text = str | Sequence[str]


@cache
def catalogue() -> Mapping[str, Mapping[str, Text]]:
    """Returns `file.name` -> language -> text; raises DocumentErrors where a file is no TOML."""
    texts_of: dict[str, Mapping[str, Text]] = {}
    for file in sorted(FOLDER.glob("*.toml")):
        try:
            data = tomllib.loads(file.read_text("utf-8"))
        except tomllib.TOMLDecodeError as error:
            problem = Problem(str(file), 0, 0, f"is not valid TOML: {error}")
            raise DocumentErrors([problem]) from error
        texts_of |= {f"{file.stem}.{name}": texts for name, texts in data.items()}
    return texts_of


class Words:
    """The texts in one language, called with the name of a text and the values in its braces."""

    # `whole`, `masked` or `hidden`, as style sheets and texts name it
    kind = staticmethod(wording.kind_of)

    def __init__(self, language: str) -> None:
        self.language = language
        self.texts: dict[str, Sequence[str]] = {}
        for name, texts in catalogue().items():
            text = texts[language]
            forms = [text] if isinstance(text, str) else text
            # the blank before these marks must not break the line in French
            if language == "fr":
                forms = [_before_mark("\u00a0", form) for form in forms]
            self.texts[name] = forms
        self.phrases = {name: self.texts[f"conditions.{name}"][0] for name in wording.ENGLISH}

    def __call__(self, name: str, n: int | None = None, /, **values: Any) -> str:
        """Returns a text, its `n` choosing one or several; raises KeyError for an unknown name."""
        one, *several = self.texts[name]
        is_one = n == 1 or (self.language == "fr" and not n)
        text = one if is_one or not several else several[0]
        if n is not None:
            values["n"] = self.number(n)
        return text.format(**values) if values else text

    def has(self, name: str) -> bool:
        return name in self.texts

    def number(self, value: float, places: int = 0) -> str:
        """Returns a number as the language writes it: 1,234.5 or 1 234,5."""
        text = f"{value:,.{places}f}"
        # a narrow blank that does not break
        return text if self.language == "en" else text.replace(",", "\u202f").replace(".", ",")

    def percent(self, share: float) -> str:
        """Returns a share of 1 in percent; a share below one percent, but above 0, as <1."""
        text = "<1" if 0 < share < 0.01 else f"{share * 100:.0f}"
        return f"{text}\u202f%" if self.language == "fr" else f"{text}%"

    def listed(self, names: Sequence[str], phrase: str) -> str:
        """Returns `one, two and three`; `phrase` names the joining word, and or or."""
        return wording.listed(names, self.phrases[phrase])

    def mark(self, sight: Sight) -> str:
        return self(f"policy.mark_{wording.kind_of(sight)}")

    def mask(self, mask: Mask) -> str:
        return self(f"masks.{mask.kind.name}", number=mask.argument)

    def records(self, resource: Resource, rows: RowFilter) -> str:
        if not rows:
            return self("policy.all_records")
        return self("policy.only_records", condition=self.condition(resource, rows))

    def condition(self, resource: Resource, rows: RowFilter) -> str:
        return wording.conditions(resource, rows, self.phrases)

    def change(self, change: wording.PolicyChange, old: Rules, new: Rules) -> str:
        names = [level.value for level in change.levels]
        at = self("policy.at", len(names), levels=self.listed(names, "and"))
        if not change.path:
            resource, level = _RESOURCES[change.resource], change.levels[0]
            return self(
                f"policy.records_{change.effect}",
                resource=self(f"resources.{resource.name}"),
                at=at,
                after=self.records(resource, new[resource.name].rows_of(level)),
                before=self.records(resource, old[resource.name].rows_of(level)),
            )
        before = old[change.resource].sight(change.path, change.levels[0])
        after = new[change.resource].sight(change.path, change.levels[0])
        masked = self("policy.in_part", mask=self.mask(before)) if isinstance(before, Mask) else ""
        return self(
            f"policy.becomes_{wording.kind_of(after)}",
            field=f"{change.resource}.{change.path}",
            at=at,
            before=masked or self.mark(before),
            mask=self.mask(after) if isinstance(after, Mask) else "",
        )

    def why(self, rules: ResourceRules, path: str, level: AccessLevel) -> str:
        """Returns a sentence on why this level sees that much of a field."""
        sight, opened = rules.sight(path, level), rules.opened_at(path)
        if sight is WHOLE:
            return self("policy.why_whole", level=opened)
        if isinstance(sight, Mask):
            first = rules.first(path, lambda other: other == sight)
            if opened is None:
                return self("policy.why_masked_only", level=first)
            return self("policy.why_masked", level=first, opened=opened)
        lowest = rules.first(path, lambda other: other is not HIDDEN)
        if lowest is None:
            return self("policy.why_never")
        is_whole = rules.sight(path, lowest) is WHOLE
        return self(f"policy.why_{'later' if is_whole else 'later_masked'}", level=lowest)


words = cache(Words)


def language_of(accepted: str) -> str:
    """Returns the language that an Accept-Language prefers; English where it names none here."""
    choices = (choice for choice in map(_choice, accepted.split(",")) if choice is not None)
    weights = [(choice[1].lower(), float(choice[2] or 1)) for choice in choices]
    known = [pair for pair in weights if pair[0] in LANGUAGES and pair[1]]
    return max(known, key=itemgetter(1), default=LANGUAGES)[0]


def check_words() -> None:
    """Raises DocumentErrors with every text that is missing in any language."""
    empty = ", ".join(f'{language} = "..."' for language in LANGUAGES)
    texts, problems = catalogue(), []
    for full_name in (*(name for name in needed() if name not in texts), *texts):
        file, _, name = full_name.partition(".")
        absent = ", ".join(lang for lang in LANGUAGES if lang not in texts.get(full_name, ()))
        start = f"{name} has no text in {absent}; write"
        if full_name not in texts:
            start = f"there is no text for {name}; add a line"
        if absent:
            text = f'{start} "{name}" = {{ {empty} }}'
            problems.append(Problem(str(FOLDER / f"{file}.toml"), 0, 0, text))
    if problems:
        raise DocumentErrors(problems)


def needed() -> list[str]:
    """Returns the names of the texts that pages look up by a name from a table."""
    return [
        *(f"resources.{resource.name}" for resource in RESOURCES),
        *(f"fields.{resource.name}.{path}" for resource in RESOURCES for path in resource.paths),
        *(f"rights.{permission}" for permission in Permission),
        *(f"rights.{right}_about" for right in (*Permission, *LEVELS)),
        *(f"roles.{role}{about}" for role in Role for about in ("", "_about")),
        *(f"masks.{kind}" for kind in KINDS),
        *(f"conditions.{phrase}" for phrase in wording.ENGLISH),
    ]


class PageClock:
    """Writes times for one page, in the clinic's time zone and the page's language."""

    def __init__(self, zone: ZoneInfo, words: Words, now: Callable[[], datetime]) -> None:
        self.zone = zone
        self._words = words
        self._now = now

    def day(self, moment: datetime | date) -> str:
        """Returns a date as `22 Nov 2026`; in French the first of a month is `1er`."""
        local = moment.astimezone(self.zone) if isinstance(moment, datetime) else moment
        month = self._words("common.months").split()[local.month - 1]
        number = "1er" if local.day == 1 and self._words.language == "fr" else local.day
        return f"{number} {month} {local.year}"

    def time(self, moment: datetime) -> str:
        return f"{moment.astimezone(self.zone):%H:%M}"

    def at(self, moment: datetime) -> str:
        return f"{self.day(moment)}, {self.time(moment)}"

    def exact(self, moment: datetime) -> str:
        return f"{self.day(moment)}, {moment.astimezone(self.zone):%H:%M:%S}"

    def ago(self, moment: datetime) -> str:
        """Returns roughly how long ago a time was; its date from 90 days on."""
        words, past = self._words, self._now() - moment
        if past < timedelta(minutes=1):
            return words("common.just_now")
        if past < timedelta(hours=1):
            return words("common.minutes_ago", past // timedelta(minutes=1))
        if past < timedelta(days=1):
            return words("common.hours_ago", past // timedelta(hours=1))
        if past < timedelta(days=90):
            return words("common.days_ago", past // timedelta(days=1))
        return self.day(moment)
