"""Reads the values of a guess from a sample of rows, as the laws that prove it want them."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

from adapters.draft.sources import Guess
from adapters.draft.tables import Rows

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?").fullmatch


def columns_in(guess: Guess) -> list[str]:
    """Returns the SQL of a guess, each column by itself, and that of a length that is added."""
    parts = list(guess.sql) if isinstance(guess.sql, tuple) else [str(guess.sql)]
    more = [str(guess.parameters["plus"])] if "plus" in guess.parameters else []
    return [f"({sql})" if sql.startswith("SELECT") else sql for sql in [*parts, *more]]


def sample_of(rows: Rows, names: Sequence[str], *, limit: int) -> dict[str, list[tuple[Any, ...]]]:
    """Returns the raw values of fields in the newest rows; a field that cannot be read is left out.

    The values of all fields are of the same rows. `key` and `parent` are fields too.
    """
    guesses = {name: rows.fields[name] for name in names}
    texts = {name: columns_in(guess) for name, guess in guesses.items()}
    texts["key"] = [rows.key]
    if rows.parent is not None:
        texts["parent"] = columns_in(rows.parent)
    wanted = [sql for each in texts.values() for sql in each]
    found = rows.source.catalog.probe.rows(
        wanted, f"{rows.source}{rows.joins}", rows.where, newest=rows.key, limit=limit
    )
    if not found:
        return {}
    at, made = 0, {}
    for name, each in texts.items():
        made[name] = [row[at : at + len(each)] for row in found]
        at += len(each)
    return made


def moment(raw: tuple[Any, ...], guess: Guess) -> datetime | None:
    """Returns a time without its zone, as it is stored; None for what is no time."""
    parts = raw[: len(guess.sql)] if isinstance(guess.sql, tuple) else raw[:1]
    if any(part is None for part in parts):
        return None
    if len(parts) == 1 and isinstance(parts[0], datetime):
        stored: datetime = parts[0]
        return stored.astimezone(UTC).replace(tzinfo=None) if stored.tzinfo else stored
    if len(parts) == 1 and isinstance(parts[0], date):
        return datetime(parts[0].year, parts[0].month, parts[0].day)  # noqa: DTZ001
    text = " ".join(str(part).strip() for part in parts)
    return None if guess.parameters.get("as") == "epoch" else _read(text, guess)


def _read(text: str, guess: Guess) -> datetime | None:
    try:
        if "pattern" in guess.parameters:
            return datetime.strptime(text, guess.parameters["pattern"])  # noqa: DTZ007
        made = datetime.fromisoformat(text)
    except ValueError:
        return None
    return made.astimezone(UTC).replace(tzinfo=None) if made.tzinfo else made


def number(raw: Any) -> float | None:
    """Returns a number, or what a text says as one; None for anything else."""
    if raw is None or isinstance(raw, bool):
        return None
    text = str(raw).replace(" ", "")
    text = text.replace(".", "").replace(",", ".") if "," in text else text
    return float(text) if _NUMBER(text) else None


def minutes(raw: Any) -> float | None:
    """Returns a length in minutes, also out of a text HH:MM."""
    hours, is_clock, rest = str(raw).partition(":")
    if is_clock and hours.strip().isdecimal() and rest[:2].isdecimal():
        return int(hours) * 60 + int(rest[:2])
    return number(raw)
