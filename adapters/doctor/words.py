"""Puts the doctor's counts into words."""

from adapters.examination import Verdict


def short(error: Exception) -> str:
    return " ".join(str(error).split())


def counted(count: int, noun: str, verb: str = "") -> str:
    """Returns `2 rows`, or with a verb, given as of several, `2 rows lead`."""
    rows = f"1 {noun}" if count == 1 else f"{count:,} {noun}s"
    return f"{rows} {agreeing(count, verb)}" if verb else rows


def agreeing(count: int, several: str) -> str:
    """Returns the verb that goes with a count, given as of several: 2 `lead`, 1 `leads`."""
    odd = {"are": "is", "have": "has", "were": "was"}
    return odd.get(several, f"{several}s") if count == 1 else several


def weighed(bad: int, all_: int, *, most: float) -> Verdict:
    """Returns FAILED where more than the share `most` is bad."""
    return Verdict.FAILED if bad > most * all_ else Verdict.WARNING
