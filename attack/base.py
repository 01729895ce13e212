"""The shape of an attack: it is run against a target, and a row of the table comes out."""

from collections.abc import Callable
from dataclasses import dataclass

from attack.target import Target

# What must hold while an attack goes on, and after it.
SLOWEST = 250.0  # ms of an honest call, at the 99th percentile
GROWTH = 100.0  # MB
LOGGED = 100  # lines of the event log


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came of an attack; None is what it does not measure.

    `p50` and `p99` are milliseconds of the honest calls meanwhile, `grown` MB of memory, `recovery`
    seconds until nothing was left of it. `failures` say what did not hold, `note` what else is to
    be known.
    """

    attack: str
    p50: float | None = None
    p99: float | None = None
    grown: float | None = None
    recovery: float | None = None
    failures: tuple[str, ...] = ()
    note: str = ""

    @property
    def verdict(self) -> str:
        """`held`, or what did not."""
        return "; ".join(self.failures) or "held"


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack, by its name."""

    name: str
    summary: str
    run: Callable[[Target], Row]


class Missing(Exception):
    """A program that an attack needs is not installed; the text says how to get it."""
