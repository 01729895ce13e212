"""The doctor names the schedules and durations that cannot be read, each with its row."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from adapters.doctor import rest as rest_doctor
from adapters.doctor.sql import examine
from adapters.doctor.sql.rows import SqlCase
from adapters.examination import Examination, Finding, Verdict
from adapters.rest.adapter import RestAdapter
from tests.adapters.clinic import NOW as THEN
from tests.adapters.rest.cloud import connect, listening, replaced
from tests.adapters.rest.test_rest_diary import DIARY, SENT
from tests.adapters.rest.test_rest_schedules import ROOMS, CloudOfGrids, adapter, cloud
from tests.adapters.sql.rooms import NOW, in_rooms, rooms
from tests.races.practice import Practice

__all__ = ["adapter", "cloud"]
FAILED, WARNING, OK = Verdict.FAILED, Verdict.WARNING, Verdict.OK


async def found_in(made: Practice, folder: Path) -> list[Finding]:
    opened = made.open(folder, in_rooms(made))
    findings = [each async for each in examine(opened, Examination(now=NOW))]
    await opened.aclose()
    return told(findings)


def told(findings: Sequence[Finding]) -> list[Finding]:
    """Those about schedules and lengths."""
    subjects = ("schedules", "durations", "durations-usable")
    return [each for each in findings if each.subject in subjects]


async def test_sound_schedules_and_lengths_are_green(tmp_path: Path) -> None:
    with rooms("sqlite", tmp_path) as made:
        findings = await found_in(made, tmp_path)
        assert {each.verdict for each in findings} == {OK}
        assert any("2 schedules of 3 vets are read" in each.text for each in findings)


FAULTS = [
    ("UPDATE room SET step = 'often' WHERE id = 7", FAILED, "step: ", "often in schedule 7"),
    ("UPDATE room SET lasts = '100000' WHERE id = 8", FAILED, "duration: ", "100000 in schedule 8"),
    ("UPDATE room SET kind = 99 WHERE id = 8", FAILED, "default_type: ", "99 in schedule 8"),
    ("DELETE FROM room", WARNING, "schedules:", "no vet has a schedule"),
    ("UPDATE lengths SET kind = 99", FAILED, "type: ", "so none is offered"),
    ("DELETE FROM lengths WHERE kind = 1", WARNING, "only: ", "1 type has no row here"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "verdict", "line", "said"), FAULTS)
async def test_what_offers_nothing_is_named_with_its_row_and_line(
    statement: str, verdict: Verdict, line: str, said: str, tmp_path: Path
) -> None:
    with rooms("sqlite", tmp_path, statement) as made:
        [finding] = [each for each in await found_in(made, tmp_path) if said in each.text]
        assert finding.verdict is verdict
        lines = in_rooms(made).splitlines()
        assert line in lines[int(finding.place.split(":")[1]) - 1]


async def test_what_was_not_looked_at_is_not_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(SqlCase, "most_durations", 2)
    with rooms("sqlite", tmp_path) as made:
        texts = [each.text for each in await found_in(made, tmp_path)]
    some = "2 types are offered somewhere; for the other 1 not all 2 schedules were looked at"
    assert some in texts
    assert any(text.endswith(" keep it, in 2 of 6 calendars of a type") for text in texts), texts


async def test_of_json_too(adapter: RestAdapter, cloud: CloudOfGrids) -> None:
    async def look() -> list[Finding]:
        examination = Examination(now=THEN)
        return told([each async for each in rest_doctor.examine(adapter, examination)])

    cloud.rooms[0]["grid"] = 3
    cloud.lengths[0]["lasts"] = 100_000
    cloud.lengths.append({"kind": {"of": "nobody knows"}, "room": "A"})
    texts = [each.text for each in await look() if each.verdict is FAILED]
    assert any("3 in schedule A" in text for text in texts)
    # the row of no type that can be read, asked for with each of three types, and the long one
    assert any("4 rows of 4: a duration that cannot be used" in text for text in texts)


async def test_a_schedule_of_two_vets_is_red_where_none_is_shared(
    cloud: CloudOfGrids, tmp_path: Path
) -> None:
    unshared = ROOMS.replace("    key: name\n", "    key: name\n    shared: false\n")
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path, replaced((DIARY, unshared), SENT))

        async def red() -> list[str]:
            examination = Examination(now=THEN)
            found = told([each async for each in rest_doctor.examine(adapter, examination)])
            return [f"{each.place} {each.text}" for each in found if each.verdict is FAILED]

        assert await red() == []
        cloud.is_shared = True
        lines = (tmp_path / "mapping.yaml").read_text().splitlines()
        [text] = await red()
        assert f":{lines.index('    shared: false') + 1}:" in text
        assert "2 rows (A, B) of more than one vet" in text
        await adapter.aclose()
