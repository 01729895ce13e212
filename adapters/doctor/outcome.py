"""Defines what comes of comparing a figure with what is served, and puts it into words."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

# Names that a line lists.
LISTED = 12


class Outcome(StrEnum):
    """What came of comparing a figure: `not seen` could not be looked at."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNSEEN = "not seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of the file, at `file:line:column`, and what is served.

    Of lists, `missing` are items of the file that are not served, `surplus` those that the file
    does not have. `note` says why nothing was compared, or what else is to be known.
    """

    figure: str
    place: str
    outcome: Outcome
    said: Any = None
    served: Any = None
    missing: tuple[str, ...] = ()
    surplus: tuple[str, ...] = ()
    note: str = ""

    @property
    def text(self) -> str:
        """All that is to be said of it, in a line."""
        if self.outcome is Outcome.UNSEEN:
            return self.note
        parts = []
        if self.outcome is Outcome.AGREES:
            parts.append(_shown(self.said))
        elif not (self.missing or self.surplus or self.said is None):
            parts.append(f"served {_shown(self.served)}, the file says {_shown(self.said)}")
        parts += [f"missing: {_few(self.missing)}"] if self.missing else []
        parts += [f"too many: {_few(self.surplus)}"] if self.surplus else []
        return "; ".join(filter(None, (*parts, self.note)))


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"all {len(value)}" if isinstance(value, list) else str(value)


def _few(names: Sequence[str]) -> str:
    more = f", and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{', '.join(names[:LISTED])}{more}"


class Unseen(Exception):
    """Raised where a figure cannot be looked at; the text says why."""
