"""Looks at the copy of files: how old it is, and what it does not hold."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.copies.code_pages import TO_SAY_IT
from adapters.copies.keeper import in_words
from adapters.doctor.case import Look
from adapters.doctor.sql.rows import SqlCase
from adapters.examination import Verdict
from adapters.sql.copied_reads import without_code_page


def copied(case: SqlCase) -> Iterator[Look]:
    if case.engine.copy is not None:
        yield case.look("connection", "copy", _copy)


async def _copy(case: Any, look: Look) -> None:
    copy = case.engine.copy
    age = copy.age or 0.0
    at = (datetime.now(UTC) - timedelta(seconds=age)).strftime("%Y-%m-%d %H:%M:%S")
    text = f"{copy.source} was last found to be as the copy is at {at} UTC"
    if copy.why:
        old = f"{text}, {in_words(age)} ago; no new copy can be made: {copy.why}"
        look.warning(old, remedy="mend what is said; backend.stale_after says how long it serves")
    else:
        look.ok(text)
    if copy.codeless:
        look.warning(without_code_page(copy.codeless), remedy=TO_SAY_IT)
    if copy.omitted:
        named = ", ".join(copy.omitted)
        look.judge(Verdict.NOTE, f"the copy does not hold {named}")
