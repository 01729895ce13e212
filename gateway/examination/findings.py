"""What is found, in sentences that carry no value of the practice system."""

from collections.abc import Iterable, Sequence
from typing import Any

from adapters.base import AdapterError
from adapters.documents.problems import Problem
from adapters.examination import Finding, Verdict

MOST_IDS = 3


def problems(found: Iterable[Problem], verdict: Verdict = Verdict.FAILED) -> list[Finding]:
    """What is wrong with a file, as findings."""
    return [
        Finding(
            check="mapping",
            subject="file",
            verdict=verdict,
            text=each.text,
            place=f"{each.file}:{each.line}:{each.column}" if each.line else each.file,
        )
        for each in found
    ]


def count(records: Sequence[Any]) -> str:
    return "1 record" if len(records) == 1 else f"{len(records)} records"


def finding(
    check: str, subject: str, verdict: Verdict, text: str, ids: Sequence[str] = ()
) -> Finding:
    """A finding, with the first of the ids."""
    return Finding(
        check=check, subject=subject, verdict=verdict, text=text, ids=tuple(ids[:MOST_IDS])
    )


def said(error: Exception) -> str:
    """An adapter's own error in its words; of any other nothing but its kind."""
    if isinstance(error, AdapterError):
        return " ".join(str(error).split()) or type(error).__name__
    return f"the adapter itself fails: {type(error).__name__}"
