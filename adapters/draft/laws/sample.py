"""Holds the values of a resource's fields in some rows, and what laws prove of them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from adapters.draft.clocks import is_sure_of
from adapters.draft.readings import moment, number, sample_of
from adapters.draft.tables import Rows
from adapters.draft.vocabulary import FIELDS, ID, PHRASES, likeness, tokens

# The rows that laws are tried on, the fewest that prove anything, and the share that may differ.
MOST, FEWEST, ODD = 400, 8, 0.02
# How alike a name must be to the vocabulary before a law about one column by itself proves it.
EXACT = 0.95
is_word = re.compile(r"[^\W\d_][^\d_@/:;]{0,60}").fullmatch


class Sample:
    """The values of a resource's fields in some of its rows, and what is proven of them."""

    def __init__(self, rows: Rows, now: datetime) -> None:
        self.rows, self.now = rows, now.replace(tzinfo=None)
        names = list(rows.fields)
        self.raw = sample_of(rows, names, limit=MOST)
        if not self.raw:  # one field may be unreadable, or too slow
            own = [name for name in names if not str(rows.fields[name].sql).startswith("SELECT")]
            self.raw = sample_of(rows, own, limit=MOST)
        self.number = len(self.raw.get("key", ()))

    def has(self, *names: str) -> bool:
        """Returns whether the fields are guessed and were read, in rows enough."""
        are_there = all(name in self.rows.fields and name in self.raw for name in names)
        return are_there and self.number >= FEWEST

    def is_dated(self, *names: str) -> bool:
        """Returns whether the fields are times whose clock is known."""
        return self.has(*names) and all(is_sure_of(self.rows, name) for name in names)

    def texts(self, name: str) -> list[str]:
        """Returns a field's values that are not blank; those of several columns as one text."""
        joined = (
            " ".join(str(part).strip() for part in raw if part is not None)
            for raw in self.raw.get(name, ())
        )
        return [text for text in joined if text.strip()]

    def times(self, name: str) -> list[datetime | None]:
        """Returns a field's times as they are stored; zero dates are None."""
        guess = self.rows.fields[name]
        times = [moment(raw, guess) for raw in self.raw[name]]
        return [time if time and time.year > 1900 else None for time in times]

    def numbers(self, name: str) -> list[float | None]:
        return [number(raw[0]) for raw in self.raw[name]]

    def holds(self, law: Callable[..., bool], *columns: Sequence[Any], share: float = ODD) -> bool:
        """Returns whether a law holds in nearly all rows that have all of the values."""
        whole = [row for row in zip(*columns, strict=True) if None not in row]
        broken = sum(not law(*row) for row in whole)
        return len(whole) >= FEWEST and broken <= share * len(whole)

    def is_past(self, name: str) -> bool:
        """Returns whether no time of the field is later than now."""
        late = self.now + timedelta(days=1)
        return self.holds(lambda time: time <= late, self.times(name))

    def is_named(self, name: str, least: float = EXACT) -> bool:
        """Returns whether the column's name is one for the field, and no other column's is."""
        guess = self.rows.fields[name]
        phrases = FIELDS[self.rows.place].get(name, ())
        column, _, attribute = guess.name.partition(":")
        words = tokens(attribute or column.rpartition(".")[2])
        own = () if attribute else self.rows.source.words.get(guess.own or column, ())
        if guess.own:
            words = tuple(word for word in tokens(guess.own) if word not in ID)
        used = {each.name for each in self.rows.fields.values()}
        used |= {sql.rpartition(".")[2] for each in self.rows.fields.values() for sql in each.sql}
        alike = max(likeness(words, phrases), likeness(own, phrases))
        return alike >= least and used.issuperset(guess.others)

    def is_surname(self, name: str) -> bool:
        """Returns whether a column's name says that it has last names, and not just names."""
        column = self.rows.fields[name].name.rpartition(".")[2]
        return likeness(tokens(column), PHRASES["surname"]) >= 0.85

    def is_few(self, name: str, most: int = 60) -> bool:
        """Returns whether a field has few different values, again and again."""
        texts = self.texts(name)
        return len(texts) >= FEWEST and len({*texts}) <= min(most, max(3, 0.4 * len(texts)))

    def is_unique(self, name: str) -> bool:
        """Returns whether every row has a value of its own."""
        texts = self.texts(name)
        return len(texts) == self.number > 1 and len({*texts}) >= 0.97 * len(texts)

    def prove(self, law: str, *names: str) -> None:
        """Notes by which law fields are proven; an earlier one stays."""
        for name in names:
            guess = self.rows.fields.get(name)
            if guess is not None and not guess.proof:
                self.rows.fields[name] = replace(guess, proof=law)

    def refute(self, *names: str) -> None:
        """Takes the proof of fields away."""
        for name in names:
            self.rows.fields[name] = replace(self.rows.fields[name], proof="")

    def is_proven(self, *names: str) -> bool:
        return all(name in self.rows.fields and self.rows.fields[name].proof for name in names)


Samples = Mapping[str, Sample]
Law = Callable[[Sample, Samples], None]


def are(test: Callable[[str], Any], texts: Iterable[str]) -> bool:
    """Returns whether nearly all texts, and enough of them, pass a test."""
    given = list(texts)
    passed = sum(test(text) is not None for text in given)
    return len(given) >= FEWEST and passed >= (1 - ODD) * len(given)
