"""The doctor is green on a sound cloud, and names each planted fault at its line."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters.doctor.rest import examine, tells_taken
from adapters.examination import Examination, Finding, Verdict
from examples.json_cloud.backend import Cloud
from examples.json_cloud.records import made
from gateway.examination import examined
from tests.adapters.clinic import NOW, TODAY
from tests.adapters.rest.cloud import MAPPING, connect, listening, replaced
from tests.adapters.rest.ill_clouds import (
    DeafCloud,
    ForgetfulCloud,
    LateCloud,
    ShufflingCloud,
    SlowCloud,
)
from tests.policies import NEW

pytestmark = pytest.mark.long

EXAMPLE = MAPPING.read_text()
FAILED, WARNING = Verdict.FAILED, Verdict.WARNING
KEY_OF_PATIENTS = "key: id\n    fields:\n      clientId: {source: owner"
HOURS = EXAMPLE[EXAMPLE.index("  hours:") : EXAMPLE.index("  busy:")]
FREE = """\
  slots:
    - get: /absences
      items: absences
      vet: vet
      start: {source: from, as: zoned time}
      end: {source: to, as: zoned time}
"""
CANCEL = '  cancel: {post: "/visits/{visit}/cancel", body: {}}\n'
KEEP = '      keep: {visit: {source: visit, match: "/visits/([0-9]+)$"}}\n'
BY_UNDO = ((CANCEL, ""), (KEEP, f"{KEEP}    {CANCEL.replace('cancel:', 'undo:', 1)}"))


def nothing(cloud: Cloud) -> None:
    """The cloud as it is."""


@dataclass(frozen=True)
class Fault:
    """What is done to the cloud and to the mapping, and what is then to be said, and where.

    Those of one number `together` leave each other alone, and are planted in one cloud.
    """

    what: str
    check: str
    verdict: Verdict
    line: str
    said: str
    cloud: Callable[[Cloud], None] = nothing
    mapping: tuple[tuple[str, str], ...] = ()
    kind: type[Cloud] = Cloud
    timeout: float = 60.0
    together: int | None = None

    def __str__(self) -> str:
        return self.what


def rename(rows: str, old: str, new: str) -> Callable[[Cloud], None]:
    def change(cloud: Cloud) -> None:
        for each in getattr(cloud.records, rows).values():
            each[new] = each.pop(old)

    return change


def write(rows: str, name: str, value: Any, every: int = 1) -> Callable[[Cloud], None]:
    """That value into the first row, and every so manieth behind it."""

    def change(cloud: Cloud) -> None:
        for each in list(getattr(cloud.records, rows).values())[::every]:
            each[name] = value

    return change


def lose_animals(cloud: Cloud) -> None:
    for key in list(cloud.records.reports)[5:20:5]:
        cloud.records.reports[key]["visit"]["animal"] = {"id": 999_999}


def book_over(cloud: Cloud) -> None:
    coming = [
        each
        for each in cloud.records.visits.values()
        if each["state"] == "booked" and each["starts_at"] > "2026-03-05"
    ]
    cloud.records.visits[1000] = {**coming[0], "id": 1000}


def work_in_words(cloud: Cloud) -> None:
    for each in cloud.records.vets.values():
        each["week"] = [{**shift, "open": "morning"} for shift in each["week"]]


def away_in_words(cloud: Cloud) -> None:
    cloud.records.absences[0]["from"] = "soon"


FAULTS = [
    Fault(
        "a moved endpoint", "calls", FAILED, "get: /customers", "GET /customers: it answers 404",
        mapping=(("get: /owners", "get: /customers"),),
        together=1,
    ),
    Fault(
        "a moved endpoint of single records", "calls", FAILED, "one: /pets/{id}",
        "GET /pets/{id}: it answers 404|there is none, for a record of its own list",
        mapping=(("one: /animals/{id}", "one: /pets/{id}"),),
        together=1,
    ),
    Fault(
        "a method that the backend does not know", "booking", FAILED, "find: {get: /bookings",
        "GET /bookings: it answers 404",
        mapping=(("find: {get: /visits", "find: {get: /bookings"),),
        together=1,
    ),
    Fault(
        "a renamed member", "mapping", WARNING, "breed: race",
        r"has race \(did you mean races\?\): race leads to nothing",
        rename("animals", "race", "races"),
        together=1,
    ),
    Fault(
        "a renamed member in an expression", "mapping", WARNING, "phone: ",
        r"has phones \(did you mean phone\?\)",
        rename("owners", "phones", "phone"),
        together=3,
    ),
    Fault(
        "a renamed list", "calls", FAILED, "items: lines", "no array.*near: results",
        mapping=(("items: results", "items: lines"),),
        together=2,
    ),
    Fault(
        "an unknown status", "values", FAILED, "status: {source: state, codes: {booked",
        r"6 rows with an unknown code: moved \(6\)", write("visits", "state", "moved", 10),
        together=1,
    ),
    Fault(
        "local times read as UTC", "laws", FAILED, "scheduledAt: ", "as: local time",
        mapping=(
            ("scheduledAt: starts_at", "scheduledAt: {source: starts_at, as: utc time}"),
            ("endTime: ends_at", "endTime: {source: ends_at, as: utc time}"),
        ),
    ),
    Fault(
        "a login that is refused", "login", FAILED, "post: /session",
        "it answers 200, rejected: .*see backend.user",
        mapping=(("password: {secret: password}", "password: {secret: user}"),),
    ),
    Fault(
        "tokens that die too early", "login", WARNING, "lifetime: 3600",
        "were refused.*write a shorter", mapping=(("seconds: ttl", "lifetime: 3600"),),
        kind=ForgetfulCloud,
    ),
    Fault(
        "money that is no number", "values", FAILED, "total: gross",
        "150 rows of 150 that its converter cannot read", write("bills", "gross", "Sesame"),
        together=1,
    ),
    Fault(
        "a page above the maximum", "pages", FAILED, "by: page, page: page", "write most: 100",
        mapping=(("size: per_page, most: 100", "size: per_page, most: 200"),),
        together=1,
    ),
    Fault(
        "a page number that is ignored", "calls", FAILED, "get: /animals",
        "the list does not end; does the backend know page", kind=DeafCloud,
    ),
    Fault(
        "rows in any order", "pages", WARNING, "get: /bills",
        "asked for again, has other rows or another order", kind=ShufflingCloud,
    ),
    Fault(
        "hours that cannot be read", "diary", FAILED, "start: open",
        "cannot be read, and open nothing", work_in_words,
        together=2,
    ),
    Fault(
        "absences that cannot be read", "diary", FAILED, "start: {source: from",
        "block whatever they may mean", away_in_words,
        together=1,
    ),
    Fault(
        "free times that cannot be read", "diary", FAILED, "start: {source: from",
        "are free for nobody", away_in_words, ((HOURS, FREE),),
        together=3,
    ),
    Fault(
        "free times of nobody", "diary", WARNING, "- get: /absences", "nothing is free by this",
        lambda cloud: cloud.records.absences.clear(), ((HOURS, FREE),),
    ),
    Fault(
        "vets without hours", "diary", FAILED, "- get: /vets/{vet}/week", "nothing can be booked",
        write("vets", "week", []),
        together=1,
    ),
    Fault(
        "two visits at one time", "diary", WARNING, "- get: /visits",
        "1 appointments to come lie over another", book_over,
        together=2,
    ),
    Fault(
        "visits that do not block", "diary", FAILED, "where: state == 'nothing'", "offered again",
        mapping=(("where: state != 'cancelled'", "where: state == 'nothing'"),),
        together=1,
    ),
    Fault(
        "records without an id", "rows", FAILED, KEY_OF_PATIENTS,
        "3 rows of 300 without a usable id", write("animals", "id", None, 100),
        together=2,
    ),
    Fault(
        "one id of two records", "rows", FAILED,
        KEY_OF_PATIENTS, "1 of 298 ids occur more than once",
        write("animals", "id", 1, 100),
        together=1,
    ),
    Fault(
        "records that are all hidden", "rows", FAILED, "where: archived", "though there are rows",
        mapping=(("where: archived == `false`", "where: archived == 'no'"),),
        together=3,
    ),
    Fault(
        "a member that is always null", "values", WARNING, "microchip: chip",
        "null in all of 300 rows", write("animals", "chip", None),
        together=1,
    ),
    Fault(
        "reports of an animal that is gone", "links", WARNING, "patientId: visit.animal.id",
        "3 rows of 38 lead to none of the patients", lose_animals,
        together=1,
    ),
    Fault(
        "a parameter that is ignored", "filters", WARNING, "filters: {clientId: customer}",
        "does not obey customer.*`sift`",
        mapping=(("filters: {clientId: owner}", "filters: {clientId: customer}"),),
        together=1,
    ),
    Fault(
        "a slow endpoint", "calls", WARNING, "list: /kinds", "GET /kinds is slow", kind=SlowCloud,
        timeout=1.1,
    ),
    Fault(
        "an endpoint that is too slow", "calls", FAILED, "list: /kinds",
        "backend.timeout is 0.5 s", kind=SlowCloud, timeout=0.5,
    ),
    Fault(
        "a clash that cannot be withdrawn", "booking", WARNING, "- post: /visits",
        "cannot be withdrawn", mapping=((CANCEL, ""),),
        together=1,
    ),
    Fault(
        "a decision that was left open", "mapping", FAILED, "source: TODO",
        "every booking would write it", mapping=(("source: gateway", "source: TODO"),),
    ),
    Fault(
        "a decision that was left open in a comment", "mapping", WARNING, "source: gateway",
        "TODO in a comment: which source",
        mapping=(("source: gateway", "source: gateway  # TODO: which source?"),),
        together=1,
    ),
]  # fmt: skip


def sound_cloud(kind: type[Cloud] = Cloud) -> Cloud:
    """The example's, in which no two visits are at one time."""
    cloud, seen = kind(made(TODAY)), set()
    for each in cloud.records.visits.values():
        at = (each["vet"], each["starts_at"])
        if each["state"] != "cancelled" and at in seen:
            each["state"] = "cancelled"
        seen.add(at)
    return cloud


async def found_in(
    cloud: Cloud,
    folder: Path,
    *changes: tuple[str, str],
    alone: bool = False,
    booking: bool = False,
    tenant: bool = False,
    patience: float = 60.0,
) -> list[Finding]:
    """What is found; `alone` without running the operations."""
    looked = Examination(now=NOW, booking=booking, is_tenant=tenant)
    async with listening(cloud) as url:
        adapter = connect(url, folder, replaced(*changes), timeout=patience)
        try:
            own = examine(adapter, looked)
            findings = own if alone else examined(adapter, looked, patience=patience)
            return [each async for each in findings]
        finally:
            await adapter.aclose()


def said(findings: list[Finding]) -> list[str]:
    """All that is not ok, to be read when a test fails."""
    return [
        f"{each.verdict} {each.check} {each.subject} {each.place.rpartition('/')[2]} {each.text}"
        f" {each.remedy}"
        for each in findings
        if each.verdict is not Verdict.OK
    ]


async def test_nothing_fails_a_partner_of_the_sound_cloud(tmp_path: Path) -> None:
    found = await found_in(sound_cloud(), tmp_path, booking=True)
    assert [each for each in found if each.verdict is FAILED] == []
    grown = {resource for resource, paths in NEW.items() if paths}  # not mapped, and told to be
    assert {each.subject for each in found if each.verdict is WARNING} - grown == {
        "patients",
        "stock",
        "consultations.ownerDiagnosis",
        "rehearsal",
    } - grown, said(found)


async def test_the_hours_of_the_vets_are_told_as_they_were_read(tmp_path: Path) -> None:
    cloud = sound_cloud()
    shifts = [{"day": day, "open": "09:00", "close": "17:00"} for day in ("mon", "tue", "sat")]
    for each in cloud.records.vets.values():
        each["week"] = shifts
    told = [each.text for each in await found_in(cloud, tmp_path, alone=True)]
    assert "4 vets: Mon-Tue 09:00-17:00; Sat 09:00-17:00" in told


@pytest.fixture(scope="module")
def looked_at() -> dict[int, tuple[str, list[Finding]]]:
    """The mapping and the findings of each cloud with several faults, once it was looked at."""
    return {}


async def with_faults(folder: Path, *faults: Fault) -> tuple[str, list[Finding]]:
    """The mapping with the faults in it, and all that is found."""
    cloud = sound_cloud(faults[0].kind)
    for each in faults:
        each.cloud(cloud)
    changes = [pair for each in faults for pair in each.mapping]
    found = await found_in(cloud, folder, *changes, alone=True, patience=faults[0].timeout)
    return (folder / "mapping.yaml").read_text(), found


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_a_planted_fault_is_named_at_its_line(
    fault: Fault, tmp_path: Path, looked_at: dict[int, tuple[str, list[Finding]]]
) -> None:
    if fault.together is None:
        text, found = await with_faults(tmp_path, fault)
    else:
        if fault.together not in looked_at:
            others = [each for each in FAULTS if each.together == fault.together]
            looked_at[fault.together] = await with_faults(tmp_path, *others)
        text, found = looked_at[fault.together]
    line = text[: text.index(fault.line)].count("\n") + 1
    assert [
        each
        for each in found
        if (each.check, each.verdict) == (fault.check, fault.verdict)
        and re.search(fault.said, f"{each.text} {each.remedy}")
        and int(each.place.split(":")[-2]) == line
    ], (line, said(found))


RULE = "    - {status: 400, path: error, text: already booked, means: slot taken}\n"
POST = "    - post: /visits\n"
TELL_TAKEN = {
    "nothing": ("", False),
    "an answer to a step": ("      errors: [{status: 409, means: slot taken}]\n", True),
    "another meaning": ("      errors: [{status: 409, means: rejected}]\n", False),
    "a version": ("      headers: {if-Match: {draft: reference}}\n", True),
    "what is missing": (
        f"    - {{get: /state, keep: {{free: {{source: id, missing: slot taken}}}}}}\n{POST}",
        True,
    ),
}


@pytest.mark.parametrize(("written", "tells"), TELL_TAKEN.values(), ids=TELL_TAKEN)
def test_a_step_may_tell_that_a_time_is_taken(written: str, tells: bool, tmp_path: Path) -> None:
    steps = written if POST in written else POST + written
    change = replaced((RULE, ""), (POST, steps))
    assert tells_taken(connect("http://127.0.0.1:1/v2", tmp_path, change).mapping) is tells


async def test_a_clock_that_is_late_is_told(tmp_path: Path) -> None:
    found = await found_in(sound_cloud(LateCloud), tmp_path, alone=True)
    [clock] = [each for each in found if (each.check, each.subject) == ("clock", "server")]
    assert clock.verdict is WARNING
    assert re.search("its clock is (299|30[0-2]) s behind this machine's", clock.text)


async def test_nothing_more_is_asked_of_a_backend_that_refuses_the_login(tmp_path: Path) -> None:
    cloud = sound_cloud()
    change = ("password: {secret: password}", "password: {secret: user}")
    [only] = await found_in(cloud, tmp_path, change, alone=True)
    assert only.verdict is FAILED
    assert cloud.calls == ["POST /v2/session"]


async def test_a_dry_rehearsal_writes_nothing_and_puts_each_call_together(tmp_path: Path) -> None:
    cloud = sound_cloud()
    found = await found_in(cloud, tmp_path, booking=True)
    assert {each for each in cloud.calls if not each.startswith("GET ")} == {"POST /v2/session"}
    dry, *rehearsed = [each for each in found if each.subject == "rehearsal"]
    assert dry.verdict is WARNING
    assert "dry: reads alone were sent" in dry.text
    assert "--tenant" in dry.remedy
    assert {each.verdict for each in rehearsed} == {Verdict.OK}, said(rehearsed)
    ending = ": its calls were put together, and not sent"
    words = [each.text.removesuffix(ending) for each in rehearsed]
    for said_of in ("no type", "a type", "no reason", "a reason of 500 characters", "urgent"):
        assert any(said_of in each.split(", ") for each in words)


@pytest.mark.parametrize(
    "changes",
    [pytest.param((), id="cancel"), pytest.param(BY_UNDO, id="undo", marks=pytest.mark.long)],
)
async def test_in_a_test_tenant_each_kind_is_booked_and_cancelled(
    changes: Sequence[tuple[str, str]], tmp_path: Path
) -> None:
    cloud = sound_cloud()
    before = {key for key, each in cloud.records.visits.items() if each["state"] != "cancelled"}
    found = await found_in(cloud, tmp_path, *changes, booking=True, tenant=True)
    assert not any("cannot be withdrawn" in each.text for each in found)
    rehearsed = [each for each in found if each.subject == "rehearsal"]
    assert {each.verdict for each in rehearsed} == {Verdict.OK}, said(rehearsed)
    assert all("booked and cancelled, in the test tenant" in each.text for each in rehearsed)
    after = {key for key, each in cloud.records.visits.items() if each["state"] != "cancelled"}
    assert after == before
    assert len(cloud.records.visits) >= len(before) + len(rehearsed)


async def test_what_a_booking_sends_wrongly_is_named_in_a_test_tenant(tmp_path: Path) -> None:
    cloud = sound_cloud()
    change = ("note: {draft: reason}", "note: {draft: reference}")
    found = await found_in(cloud, tmp_path, change, alone=True, booking=True, tenant=True)
    failed = [each for each in found if each.subject == "rehearsal" and each.verdict is FAILED]
    assert any("another reason" in each.text for each in failed), said(failed)


async def test_a_booking_that_cannot_be_told_from_others_is_named(tmp_path: Path) -> None:
    cloud = sound_cloud()
    changes = (
        ("  reference: ext_ref\n", ""),
        ("createdAt: {source: entered", "createdAt: {source: x"),
    )
    found = await found_in(cloud, tmp_path, *changes, alone=True, booking=True, tenant=True)
    failed = [each for each in found if each.subject == "rehearsal" and each.verdict is FAILED]
    assert any("there is no booking.reference: after a lost" in each.text for each in failed)
    text = (tmp_path / "mapping.yaml").read_text().splitlines()
    assert {text[int(each.place.split(":")[-2]) - 1].strip()[:18] for each in failed} == {
        "createdAt: {source"
    }


async def test_no_more_calls_are_under_way_than_one_read_may_have(tmp_path: Path) -> None:
    cloud = sound_cloud()
    found = await found_in(cloud, tmp_path, alone=True)
    assert cloud.busiest <= 8
    [stock] = [each for each in found if (each.check, each.subject) == ("pages", "stock")]
    assert stock.text == "45 records in 46 calls"


async def test_no_value_of_a_record_is_told(tmp_path: Path) -> None:
    cloud = sound_cloud()
    for key, each in cloud.records.visits.items():
        each["state"] = f"Sesame, and much more than any code {key}"
        each["ends_at"] = "Sesame"
    for each in cloud.records.bills.values():
        each["net"] = each["due"] = "Sesame"
        each["payments"] = "Sesame"
    for each in cloud.records.owners.values():
        each["created"] = "Sesame"
        each["name"] = {"given": "Sesame", "last": "Sesame"}
    work_in_words(cloud)
    found = await found_in(cloud, tmp_path, booking=True)
    assert any(each.verdict is FAILED for each in found)
    assert "Sesame" not in repr(found)


async def test_a_cloud_that_is_not_there_is_one_finding(tmp_path: Path) -> None:
    adapter = connect("http://127.0.0.1:9/v2", tmp_path)
    try:
        looked = Examination(now=NOW)
        [only] = [each async for each in examined(adapter, looked, patience=60.0)]
    finally:
        await adapter.aclose()
    assert (only.check, only.verdict) == ("connection", FAILED)
