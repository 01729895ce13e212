"""A rehearsal says what became of each booking: seen, undone, or left, and what it could not do."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.base import BackendUnavailable
from adapters.doctor import rehearsal, rehearsal_report
from adapters.doctor.rehearsal import Planner, again
from adapters.doctor.rehearsal_report import RehearsalReport
from adapters.doctor.sql import likeness
from adapters.examination import UNREHEARSED, Finding, Verdict
from adapters.mapped.diary import Diary
from adapters.mapped.session import Calendar
from examples.json_cloud.backend import Cloud
from tests.adapters.clinic import NOW
from tests.adapters.doctor.test_learning import rehearsed
from tests.adapters.doctor.test_rest_doctor import CANCEL, found_in, sound_cloud
from tests.races.practice import practice

pytestmark = pytest.mark.long

OK, NOTE, WARNING, FAILED = Verdict.OK, Verdict.NOTE, Verdict.WARNING, Verdict.FAILED
SLOT_DAYS = tuple(NOW.date() + timedelta(days=ahead) for ahead in range(1, 6))
RULE = "    - {status: 400, path: error, text: already booked, means: slot taken}\n"
VET, TYPE = "vets-are-bookable", "types-are-bookable"


def bookings(found: list[Finding], *verdicts: Verdict) -> list[Finding]:
    """What is said of the bookings, of those verdicts."""
    about = ("rehearsal", VET, TYPE)
    return [each for each in found if each.subject in about and each.verdict in verdicts]


def line_of(found: Finding, mapping: str) -> str:
    return mapping.splitlines()[int(found.place.split(":")[-2]) - 1].strip()


async def test_a_column_that_lacks_letters_is_named_until_the_mapping_says_its_encoding(
    tmp_path: Path,
) -> None:
    latin = "note = convert_from(convert_to(note, 'LATIN1'), 'LATIN1')"
    with practice("postgresql", tmp_path, f"ALTER TABLE appointment ADD CHECK ({latin})") as made:
        lines = bookings(await rehearsed(made, tmp_path, made.mapping), FAILED)
        assert lines
        assert all("a reason with any letters" in each.text for each in lines)
        assert all("write an encoding beside draft: reason" in each.text for each in lines)
        mapping = made.mapping.replace(
            "note: {draft: reason}", "note: {draft: reason, encoding: latin-1}"
        )
        found = await rehearsed(made, tmp_path, mapping)
    assert not bookings(found, FAILED)


# What stands is told


COUNT = (
    "SELECT (SELECT COUNT(*) FROM appointment), (SELECT COUNT(*) FROM attendance),"
    " (SELECT COUNT(*) FROM journal)"
)
MYISAM = [f"ALTER TABLE {each} ENGINE = MyISAM" for each in ("appointment", "attendance")]
ALLOWED = "booking:\n  without_transactions: [appointment, attendance]\n"
SIGNAL = "FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'"


async def test_without_transactions_what_is_rehearsed_is_deleted_again(tmp_path: Path) -> None:
    with practice("mariadb", tmp_path, *MYISAM) as made:
        mapping = made.mapping.replace("booking:\n", ALLOWED)
        before = await made.run(COUNT)
        found = await rehearsed(made, tmp_path, mapping)
        assert await made.run(COUNT) == before
        assert [each.text for each in bookings(found, FAILED)] == []
        assert [each for each in bookings(found, OK) if each.text.endswith("rehearsed and undone")]
        await made.run(f"CREATE TRIGGER full BEFORE INSERT ON journal {SIGNAL}")
        found = await rehearsed(made, tmp_path, mapping)
        assert await made.run(COUNT) == before
        [refused] = [each for each in bookings(found, FAILED) if "it was refused" in each.text]
        assert "it was refused, and undone" in refused.text
        assert not [each for each in bookings(found, FAILED) if "NOT" in each.text]


async def test_without_transactions_what_cannot_be_deleted_is_told_with_its_statements(
    tmp_path: Path,
) -> None:
    kept = f"CREATE TRIGGER kept BEFORE DELETE ON attendance {SIGNAL}"
    with practice("mariadb", tmp_path, *MYISAM, kept) as made:
        [before] = await made.run("SELECT COUNT(*) FROM attendance")
        found = await rehearsed(made, tmp_path, made.mapping.replace("booking:\n", ALLOWED))
        [after] = await made.run("SELECT COUNT(*) FROM attendance")
        left = [each for each in bookings(found, FAILED) if "could NOT be undone" in each.text]
        assert len(left) == after[0] - before[0] > 0
        await made.run("DROP TRIGGER kept", *(each.remedy.removeprefix("run: ") for each in left))
        assert await made.run("SELECT COUNT(*) FROM attendance") == [before]
    assert not [each for each in bookings(found, OK) if "undone" in each.text]


def standing(cloud: Cloud) -> set[int]:
    return {key for key, each in cloud.records.visits.items() if each["state"] != "cancelled"}


def failing(method: Callable[..., Any], *times: int) -> Callable[..., Any]:
    """The method, which fails at those times that it is called."""
    calls = 0

    async def called(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls in times:
            raise BackendUnavailable("the backend answers 503")
        return await method(*given)

    return called


async def test_a_booking_that_cannot_be_looked_at_is_withdrawn_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = sound_cloud()
    before = standing(cloud)
    monkeypatch.setattr(Planner, "still_offered", failing(Planner.still_offered, 1))
    found = await found_in(cloud, tmp_path, alone=True, booking=True, tenant=True)
    assert standing(cloud) == before
    [only] = bookings(found, FAILED)
    assert "it could not be looked at while it stood, and undone: the backend answers 503" in (
        only.text
    )


async def test_what_stands_is_told_although_a_later_search_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = sound_cloud(KeepingCloud)
    before = standing(cloud)
    monkeypatch.setattr(Planner, "renewed", failing(Planner.renewed, 2))
    found = await found_in(cloud, tmp_path, alone=True, booking=True, tenant=True)
    left = [each for each in bookings(found, FAILED) if "could NOT be undone" in each.text]
    assert len(left) == len(standing(cloud) - before) > 2
    assert all(len(each.ids) == 1 for each in left)
    [missed] = [each for each in bookings(found, FAILED) if each.code == UNREHEARSED]
    assert "no free time could be searched: the backend answers 503" in missed.text
    assert not bookings(found, OK)


class KeepingCloud(Cloud):
    """It cancels nothing."""

    async def cancel(self, request: web.Request) -> web.Response:
        return web.Response(status=500)


async def test_what_was_told_stays_told_where_the_rest_cannot_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise BackendUnavailable("the backend answers 503")

    monkeypatch.setattr(RehearsalReport, "end", fails)
    found = await found_in(sound_cloud(), tmp_path, alone=True, booking=True)
    [rest] = bookings(found, FAILED)
    assert rest.text == "the rest could not be looked at: the backend answers 503"
    assert len(bookings(found, OK)) > 10


@pytest.mark.parametrize("withdraws", [True, False])
async def test_both_of_two_bookings_are_named_where_neither_can_be_withdrawn(
    withdraws: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the second comes to stand, as where nothing blocks the time
    monkeypatch.setattr(
        rehearsal_report,
        "again",
        lambda draft: replace(again(draft), scheduled_at=draft.scheduled_at + timedelta(days=1)),
    )
    cloud = sound_cloud(KeepingCloud)
    before = standing(cloud)
    gone = () if withdraws else ((CANCEL, ""),)
    found = await found_in(cloud, tmp_path, *gone, alone=True, booking=True, tenant=True)
    said = "could NOT be undone" if withdraws else "it stays in the test tenant"
    told = [each for each in bookings(found, FAILED, NOTE) if said in each.text]
    twice = [each for each in told if len(set(each.ids)) == 2]
    assert len(twice) > 5
    assert sum(len(each.ids) for each in told) <= len(standing(cloud) - before)
    assert not [each for each in found if "and undone" in each.text]


# A time that is refused as taken


async def test_an_update_that_changes_no_row_is_no_doing_of_the_desk_s(tmp_path: Path) -> None:
    with practice("sqlite", tmp_path, slots_on=SLOT_DAYS) as made:
        free = "id = :slot AND state = 'FREE'"
        mapping = made.mapping.replace(free, f"{free} AND :appointmentTypeId IS NULL")
        found = await rehearsed(made, tmp_path, mapping)
    [wrong] = [each for each in bookings(found, FAILED) if "changes no row" in each.text]
    assert line_of(wrong, mapping).startswith("where: id = :slot")
    assert not [each for each in bookings(found, WARNING, FAILED) if "meanwhile" in each.text]


async def test_a_rule_that_takes_each_refusal_for_a_taken_time_is_named(tmp_path: Path) -> None:
    class StrictCloud(Cloud):
        async def book(self, request: web.Request) -> web.Response:
            if (await request.json())["kind"] is not None:
                return web.json_response({"error": "no such kind"}, status=422)
            return await super().book(request)

    rule = "    - {status: 422, means: slot taken}\n"
    found = await found_in(
        sound_cloud(StrictCloud), tmp_path, (RULE, rule), alone=True, booking=True, tenant=True
    )
    [wrong] = [each for each in bookings(found, FAILED) if "free before and after" in each.text]
    assert line_of(wrong, (tmp_path / "mapping.yaml").read_text()) == rule.strip()


async def test_a_time_that_the_desk_takes_meanwhile_is_rehearsed_at_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Planner.plan
    with practice("sqlite", tmp_path) as made:

        async def planned(planner: Planner) -> None:
            await plan(planner)
            day = f"{NOW.date()} 00:00:00", f"{NOW.date() + timedelta(days=2)} 00:00:00"
            await made.run(
                "INSERT INTO absence (vet, starts, ends)"
                f" SELECT id, '{day[0]}', '{day[1]}' FROM vet"
            )

        monkeypatch.setattr(Planner, "plan", planned)
        found = await rehearsed(made, tmp_path, made.mapping)
    assert [each.text for each in bookings(found, WARNING, FAILED)] == []
    assert len(bookings(found, OK)) > 10


async def test_a_kind_without_another_time_is_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Planner.plan
    with practice("sqlite", tmp_path) as made:

        async def planned(planner: Planner) -> None:
            await plan(planner)
            await made.run("DELETE FROM hours")

        monkeypatch.setattr(Planner, "plan", planned)
        found = await rehearsed(made, tmp_path, made.mapping)
    missed = [each for each in bookings(found, FAILED) if each.code == UNREHEARSED]
    assert len(missed) > 10
    assert all("each free time was taken meanwhile" in each.text for each in missed)


# What could not be rehearsed


def more_vets(count: int, opens: str = "09:00", closes: str = "17:00") -> list[str]:
    return [
        statement
        for vet in range(4, 4 + count)
        for statement in (
            f"INSERT INTO vet VALUES ({vet}, 'Dr {vet}')",
            *(
                f"INSERT INTO hours VALUES ({vet}, {day}, '{opens}', '{closes}')"
                for day in range(1, 6)
            ),
        )
    ]


async def test_a_booking_is_rehearsed_with_each_of_many_vets(tmp_path: Path) -> None:
    with practice("sqlite", tmp_path, *more_vets(57)) as made:
        adapter = made.open(tmp_path)
        vets = {adapter.readers["vets"].table.ids.referred(vet) for vet in range(1, 61)}
        await adapter.aclose()
        found = await rehearsed(made, tmp_path, made.mapping)
    assert vets <= {shown for each in bookings(found, OK) for shown in each.ids}
    assert "60 vets, each with working hours" in [each.text for each in found]


async def test_what_lies_behind_the_first_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rehearsal, "MOST", 2)
    monkeypatch.setattr("adapters.doctor.sql.rows.SqlCase.most_vets", 2)
    with practice("sqlite", tmp_path) as made:
        found = await rehearsed(made, tmp_path, made.mapping)
    assert {each.text for each in bookings(found, FAILED)} == {
        "vets: 1 more vet comes behind 2: not rehearsed",
        "appointmentTypes: 1 more type comes behind 2: not rehearsed",
    }
    [beyond] = [each for each in found if (each.check, each.subject) == ("diary", "beyond")]
    assert (beyond.verdict, beyond.text) == (
        WARNING, "of 3 vets the diary of the first 2 was looked at",
    )  # fmt: skip
    assert "the first 2 vets, each with working hours" in [each.text for each in found]


async def test_a_type_that_is_longer_than_any_shift_is_given_up_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = set[tuple[Calendar, str | None, date]]()
    offers = Diary.offers

    async def counted(
        diary: Diary, session: Any, calendar: Calendar, visit: Any, *more: Any
    ) -> Any:
        asked.add((calendar, visit.type, more[0]))
        return await offers(diary, session, calendar, visit, *more)

    monkeypatch.setattr(Diary, "offers", counted)
    types = [f"INSERT INTO kind VALUES ({each}, 'Long {each}', 600)" for each in range(4, 8)]
    with practice("sqlite", tmp_path, *types) as made:
        found = await rehearsed(made, tmp_path, made.mapping)
    told = bookings(found, FAILED)
    assert {each.subject for each in told} == {TYPE}
    lost = {shown for each in told for shown in each.ids}
    assert len(told) == len(lost) == 4
    assert not lost & {kind for _, kind, _ in asked}


async def test_a_search_that_takes_too_long_is_red_and_what_was_found_is_rehearsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    types = Planner._of_types

    async def late(planner: Planner, *given: Any) -> Any:
        planner._until = 0.0
        return await types(planner, *given)

    monkeypatch.setattr(Planner, "_of_types", late)
    with practice("sqlite", tmp_path) as made:
        found = await rehearsed(made, tmp_path, made.mapping)
    told = bookings(found, FAILED)
    assert len([each for each in told if "the search took longer than 300 s" in each.text]) == 3
    assert [each for each in bookings(found, OK) if "no type" in each.text]


async def test_a_vet_without_a_free_time_is_red_unless_the_mapping_accepts_it(
    tmp_path: Path,
) -> None:
    with practice("sqlite", tmp_path, *more_vets(1, "09:00", "09:10")) as made:
        found = await rehearsed(made, tmp_path, made.mapping)
        accepted = f"accepted:\n  {VET}: Dr 4 answers the telephone\n"
        mapping = made.mapping + accepted
        quiet = await rehearsed(made, tmp_path, mapping)
    [told] = bookings(found, FAILED)
    assert told.subject == told.code == VET
    assert "no free time was found in 14 days, so no booking was rehearsed" in told.text
    assert bookings(quiet, FAILED, WARNING) == []
    [note] = [each for each in bookings(quiet, NOTE) if "which `accepted` allows" in each.text]
    assert line_of(note, mapping).startswith(VET)
    assert note.ids == told.ids


async def test_vets_who_are_away_or_have_retired_are_told_in_one_line_each(tmp_path: Path) -> None:
    retired = [f"INSERT INTO vet VALUES ({vet}, 'Dr {vet}')" for vet in range(4, 34)]
    away = "INSERT INTO absence (vet, starts, ends) VALUES (2, '2026-01-01', '2027-01-01')"
    with practice("sqlite", tmp_path, *retired, away) as made:
        found = await rehearsed(made, tmp_path, made.mapping)
    assert bookings(found, FAILED) == []
    assert [(it.verdict, it.text) for it in bookings(found, NOTE, WARNING) if it.code == VET] == [
        (WARNING, "vets: 1 vet taken or away in all hours and rows of 14 days: not rehearsed"),
        (NOTE, "vets: 30 vets without hours and slot rows in 14 days: not rehearsed"),
    ]


async def test_a_vet_who_has_times_for_a_type_alone_is_rehearsed_with_it(tmp_path: Path) -> None:
    short = more_vets(1, "09:00", "09:20")
    with practice("sqlite", tmp_path, *short) as made:
        found = await rehearsed(made, tmp_path, made.mapping)
    assert bookings(found, FAILED) == []


async def test_after_a_change_of_clocks_a_vet_who_is_there_is_booked(tmp_path: Path) -> None:
    away = "INSERT INTO absence (vet, starts, ends) VALUES (1, '2026-03-28', '2026-04-20')"
    with practice("sqlite", tmp_path, away) as made:
        found = await rehearsed(made, tmp_path, made.mapping)
    assert bookings(found, FAILED, WARNING) == []


async def test_a_change_of_clocks_behind_the_slot_rows_is_told_as_not_rehearsed(
    tmp_path: Path,
) -> None:
    with practice("sqlite", tmp_path, slots_on=SLOT_DAYS) as made:
        found = await rehearsed(made, tmp_path, made.mapping)
    told = [each for each in bookings(found, WARNING) if each.code == UNREHEARSED]
    assert len(told) == 2
    assert all("after the clocks change" in each.text for each in told)


# Like the desk's


DESKS = [
    "INSERT INTO appointment (vet, kind, starts, ends, state, urgent, source, made) VALUES"
    f" (1, 2, '2026-04-{day:02} 09:00:00', '2026-04-{day:02} 09:30:00', 'BOOKED', FALSE,"
    " 'gateway', '2026-02-01 10:00:00')"
    for day in range(1, 29)
]


async def test_each_step_whose_rows_were_compared_with_none_is_named(tmp_path: Path) -> None:
    with practice("sqlite", tmp_path, *DESKS) as made:
        found = await rehearsed(made, tmp_path, made.mapping)
    told = [each for each in found if "not compared with the desk's" in each.text]
    assert [(each.verdict, line_of(each, made.mapping)) for each in told] == [
        (WARNING, "- insert: attendance"),
        (WARNING, "- insert: journal"),
    ]


async def test_what_was_compared_with_no_row_is_not_said_to_be_like_the_desk_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(likeness, "named", lambda tables, name: None)
    with practice("sqlite", tmp_path, *DESKS) as made:
        found = await rehearsed(made, tmp_path, made.mapping)
    told = [each for each in found if "the tables whose columns could be read" in each.text]
    assert [each.subject for each in told] == ["appointment", "attendance", "journal"]
    assert not [each for each in found if "like the desk's" in each.text]
