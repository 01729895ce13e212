"""Steps of a booking that happen for some bookings only."""

from pathlib import Path

import pytest

from adapters.base import BackendNonsense
from adapters.documents.problems import DocumentErrors
from tests.adapters.sql.rooms import EVERY_KIND, booked, changed
from tests.races.practice import Practice, practice

OUTSIDE = (
    "CREATE TABLE outside (vet INTEGER)",
    "INSERT INTO outside VALUES (2)",
    "CREATE TABLE entry (vet INTEGER, appointment INTEGER, reason VARCHAR(60))",
)
STEP = """\
    - insert: entry
      if: {sql: "EXISTS (SELECT 1 FROM outside o WHERE o.vet = :vetId)"}
      values: {vet: {draft: vetId}, appointment: {made: appointment}, reason: {draft: reason}}
"""
JOURNAL = "    - insert: journal\n"


def of_some(made: Practice, step: str = STEP) -> str:
    return changed(made.mapping, (JOURNAL, step + JOURNAL))


@pytest.mark.parametrize("kind", EVERY_KIND)
async def test_fact_26_a_step_happens_only_for_vets_of_whom_its_sql_is_true(
    kind: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path, *OUTSIDE) as made:
        adapter = made.open(tmp_path, of_some(made))
        assert not await adapter.check()
        await booked(adapter, "09:00", vet=1)
        assert await made.run("SELECT * FROM entry") == []
        await booked(adapter, "09:00", vet=2)
        [(vet, appointment, reason)] = await made.run("SELECT * FROM entry")
        [newest] = await made.run("SELECT MAX(id) FROM appointment")
        assert (vet, appointment, reason) == (2, newest[0], "a test")
        await adapter.aclose()


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize(
    ("condition", "count"),
    [
        (":appointment > 0 AND :firstSlot IS NULL", 1),
        (":reason = 'a test'", 1),
        (":reason = 'another'", 0),
        ("NULL = 1", 0),
        (":appointmentTypeId IS NULL", 1),
    ],
)
async def test_a_condition_knows_the_draft_and_what_steps_made(
    kind: str, condition: str, count: int, tmp_path: Path
) -> None:
    step = STEP.replace("EXISTS (SELECT 1 FROM outside o WHERE o.vet = :vetId)", condition)
    with practice(kind, tmp_path, *OUTSIDE) as made:
        adapter = made.open(tmp_path, of_some(made, step))
        await booked(adapter, "09:00")
        assert len(await made.run("SELECT * FROM entry")) == count
        await adapter.aclose()


@pytest.mark.parametrize("kind", EVERY_KIND)
async def test_a_condition_that_the_database_does_not_know_is_told_at_its_line(
    kind: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path, *OUTSIDE) as made:
        text = of_some(made, STEP.replace("o.vet =", "o.vett ="))
        adapter = made.open(tmp_path, text)
        with pytest.raises(DocumentErrors) as caught:
            await adapter.check()
        [problem] = caught.value.problems
        assert "vett" in problem.text.lower()
        assert "vett" in text.splitlines()[problem.line - 1]
        with pytest.raises(BackendNonsense):
            await booked(adapter, "09:00")
        assert await made.run("SELECT * FROM journal") == []
        await adapter.aclose()


MISTAKES = {
    "a name that nothing fills": ("{sql: \":vett = 1\"}", "no step before this one is called vett"),
    "no draft": ("vett", "a draft has no vett (did you mean vetId?)"),
    "two": ("{sql: \"1 = 1\", draft: reason}", "takes a name of the draft, or one of made and sql"),
    "JSON": ("{made: appointment}", "made stands only in a mapping of the rest adapter"),
}  # fmt: skip


@pytest.mark.parametrize(("written", "said"), MISTAKES.values(), ids=MISTAKES)
async def test_a_wrong_condition_is_refused_with_a_remedy(
    written: str, said: str, tmp_path: Path
) -> None:
    right = '{sql: "EXISTS (SELECT 1 FROM outside o WHERE o.vet = :vetId)"}'
    with practice("sqlite", tmp_path, *OUTSIDE) as made:
        with pytest.raises(DocumentErrors) as caught:
            made.open(tmp_path, of_some(made, STEP.replace(right, written)))
        assert said in caught.value.problems[0].text
