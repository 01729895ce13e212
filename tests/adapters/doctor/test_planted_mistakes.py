"""Mistakes of meaning, each planted alone in a good mapping, are named at their lines.

The forty of `MISTAKES` were chosen before any of them was tried. `LIMITS` are some that the check
does not name; the page on connecting repeats them.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from adapters.base import AdapterOptions
from adapters.doctor import doctor_of
from adapters.examination import Examination, Finding, Verdict
from adapters.rest.adapter import RestAdapter
from adapters.sample import MAPPING as SAMPLE
from adapters.sql.adapter import SqlAdapter
from examples import mariadb_eav, postgres_slots
from examples.dropping import drop
from gateway.backend import shapes
from tests.adapters.clinic import NOW, SECRET, TODAY, copy_to
from tests.adapters.doctor.test_rest_doctor import sound_cloud
from tests.adapters.rest.cloud import CREDENTIALS, listening
from tests.adapters.rest.cloud import MAPPING as CLOUD
from tests.adapters.servers import server
from tests.adapters.shelf import Shelf

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[3] / "docs" / "connecting.md"
MAPPINGS = {
    "sqlite": SAMPLE,
    "postgresql": postgres_slots.MAPPING,
    "mysql": mariadb_eav.MAPPING,
    "json": CLOUD,
}
EXAMPLES = {"postgresql": postgres_slots, "mysql": mariadb_eav}
BAD = (Verdict.FAILED, Verdict.WARNING)


@dataclass(frozen=True)
class Mistake:
    """A mistake in a good mapping: the texts that it changes, and what is to be said of it.

    It is to be named at one of the lines that it changes, or at the line of the key `under` which
    they stand. With `booking` it takes rehearsals to see it.
    """

    kind: str
    what: str
    changes: tuple[tuple[str, str], ...]
    said: str = ""
    under: str = ""
    booking: bool = False

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"

    @property
    def text(self) -> str:
        """The mapping with the mistake in it."""
        return self._planted()[0]

    @property
    def lines(self) -> set[int]:
        """The lines that the mistake changes, and that of the key over them."""
        return self._planted()[1]

    def _planted(self) -> tuple[str, set[int]]:
        text, lines = MAPPINGS[self.kind].read_text(), set[int]()
        for number, (right, _) in enumerate(self.changes):
            assert text.count(right) == 1, right
            text = text.replace(right, f"\0{number}\0")
        for number, (right, wrong) in enumerate(self.changes):
            first = text[: text.index(f"\0{number}\0")].count("\n") + 1
            pairs = enumerate(zip(right.splitlines(), wrong.splitlines(), strict=False))
            lines |= {first + place for place, (old, new) in pairs if old != new}
            text = text.replace(f"\0{number}\0", wrong)
        if self.under:
            lines.add(text[: text.index(self.under)].count("\n") + 1)
        return text, lines


MISTAKES = [
    # a desktop product on SQLite
    Mistake(
        "sqlite", "local times of appointments read as UTC",
        (
            ("scheduledAt: r.D_DEBUT", "scheduledAt: {source: r.D_DEBUT, as: utc time}"),
            ("endTime: r.D_FIN", "endTime: {source: r.D_FIN, as: utc time}"),
        ),
        said=r"100% would if what is read as UTC were the clinic's wall clock",
    ),
    Mistake(
        "sqlite", "a local createdAt alone read as UTC",
        (("createdAt: r.DT_SAISIE", "createdAt: {source: r.DT_SAISIE, as: utc time}"),),
        booking=True,
        said=r"look like local time, but are read as UTC",
    ),
    Mistake(
        "sqlite", "a keeper of the animal taken for its owner",
        (("o.ID_ANIMAL = a.ID_ANIMAL AND o.ROLE = 'P' AND", "o.ID_ANIMAL = a.ID_ANIMAL AND"),),
        under="clientId: >-\n        SELECT o.ID_PERS FROM PROPRIETAIRES o\n"
        "        WHERE o.ID_ANIMAL = a.",
        said=r"PROPRIETAIRES are taken here whatever their ROLE: P \(\d+\), D \(30\)",
    ),
    Mistake(
        "sqlite", "suppliers and vets taken for clients",
        (("where: p.GENRE_PERS = 'C' AND p.ACTIF = 'O'", "where: p.ACTIF = 'O'"),),
        said=r"whatever their GENRE_PERS: C \(300\), F \(8\), V \(6\)",
    ),
    Mistake(
        "sqlite", "a condition of busy that a NULL loses",
        (("where: TRIM(COALESCE(r.STATUT, 'P')) NOT IN", "where: r.STATUT NOT IN"),),
        said=r"of 6 rows it is neither true nor false",
    ),
    Mistake(
        "sqlite", "an amount in cents beside others in euros",
        (("subtotal: {source: f.HT, as: cents}", "subtotal: f.HT"),),
        said=r"1,500 rows of 1,500: lines that do not add up to the invoice",
    ),
    Mistake(
        "sqlite", "cancelled and completed changed about",
        (
            ("          T: COMPLETED\n", "          T: CANCELLED\n"),
            ("          A: CANCELLED\n", "          A: COMPLETED\n"),
        ),
        under="status:\n        source: COALESCE(r.STATUT, 'P')",
        said=r"consultations of \d+ belong to an appointment that is CANCELLED",
    ),
    Mistake(
        "sqlite", "quantities compared as texts",
        (
            (
                "isLow: COALESCE(a.QUANTITE <= a.SEUIL, 0)",
                "isLow: COALESCE(CAST(a.QUANTITE AS TEXT) <= CAST(a.SEUIL AS TEXT), 0)",
            ),
        ),
        said=r"as if the two were compared as texts",
    ),
    Mistake(
        "sqlite", "a booking written as confirmed",
        (("        STATUT: P\n", "        STATUT: C\n"),),
        booking=True,
        said=r"reads back with another status: C, which is CONFIRMED",
    ),
    Mistake(
        "sqlite", "lines found by their own key",
        (("parent: l.ID_FACT", "parent: l.ID_LIGNE"),),
        said=r"lead to none of the invoices -> is `parent` the record's key",
    ),
    # rooms and slot rows on PostgreSQL
    Mistake(
        "postgresql", "what blocks a vet read as local time",
        (
            (
                '      vet: a."StaffId"\n      key: a."Id"\n'
                '      start: {source: a."StartsUtc", as: utc time}',
                '      vet: a."StaffId"\n      key: a."Id"\n      start: a."StartsUtc"',
            ),
        ),
        booking=True,
        said=r"a part is not blocked, by the offset of the clinic's zone",
    ),
    Mistake(
        "postgresql", "a createdAt in UTC read as local time",
        (
            (
                'createdAt: {source: c."CreatedUtc", as: utc time}\n      updatedAt',
                'createdAt: c."CreatedUtc"\n      updatedAt',
            ),
        ),
        said=r"show the working hours of UTC, and are read as the clinic's wall clock",
    ),
    Mistake(
        "postgresql", "a room taken for the vet",
        (('vetId: a."StaffId"', 'vetId: a."ScheduleId"'),),
        booking=True,
        said=r"reads back with another vetId",
    ),
    Mistake(
        "postgresql", "urgent read the other way round",
        (
            (
                """'COALESCE(a."Urgent", ''N'')', yes: ["Y"], no: ["N"]}""",
                """'COALESCE(a."Urgent", ''N'')', yes: ["N"], no: ["Y"]}""",
            ),
        ),
        booking=True,
        said=r"reads back with another isUrgent",
    ),
    Mistake(
        "postgresql", "a share of tax taken for a percentage",
        (('taxRate: l."TaxRate" * 100', 'taxRate: l."TaxRate"'),),
        said=r"rates above 0 are below 1 %: they look like fractions",
    ),
    Mistake(
        "postgresql", "free times among the appointments",
        (('where: a."State" <> 0  ', 'where: a."State" IS NOT NULL  '),),
        said=r"a free time that is served as an appointment",
    ),
    Mistake(
        "postgresql", "confirmed appointments that do not block the room",
        (
            (
                'where: a."State" NOT IN (0, 8, 9)\n      schedule',
                'where: a."State" NOT IN (0, 2, 8, 9)\n      schedule',
            ),
        ),
        booking=True,
        said=r"of status CONFIRMED block nothing \(of the time of a schedule\)",
    ),
    Mistake(
        "postgresql", "an update whatever the row's state",
        ((""" = :slot AND "State" = 0'""", """ = :slot'"""),),
        said=r"names the row of Appointment, and nothing of its state",
    ),
    Mistake(
        "postgresql", "a booking without its room",
        (("        ScheduleId: {draft: schedule}\n", ""),),
        under="- insert: Appointment\n      for: time",
        booking=True,
        said=r"this step must write what `schedule` there is read from",
    ),
    Mistake(
        "postgresql", "lengths in slots taken for minutes",
        (('minutes: x."Slots" * s."SlotMinutes"', 'minutes: x."Slots"'),),
        booking=True,
        said=r"0% of [\d,]+ appointments are as long as their type",
    ),
    # entities, attributes and values on MariaDB
    Mistake(
        "mysql", "weekdays counted from another day",
        (("weekday: h.`day-no` ", "weekday: h.`day-no` + 1 "),),
        said=r"would a day later: weekday is 1 for Monday, and here one too high",
    ),
    Mistake(
        "mysql", "a member of the home taken for its head",
        (
            (
                "ON h.`to` = l.`to` AND h.role = 'HEAD'\n      AND",
                "ON h.`to` = l.`to` AND h.role = 'MEMBER'\n      AND",
            ),
        ),
        under="clientId: h.`from`",
        said=r"patients.clientId: \d+ rows of \d+ have none",
    ),
    Mistake(
        "mysql", "start and end of the desk's box changed about",
        (
            ("left: {draft: scheduledAt,", "left: {draft: endTime,"),
            ("right: {draft: endTime,", "right: {draft: scheduledAt,"),
        ),
        booking=True,
        said=r"right comes before left in ours, and behind it",
    ),
    Mistake(
        "mysql", "deleted consultations among the others",
        (("where: a.type = 'visit' AND a.active = b'1'", "where: a.type = 'visit'"),),
        said=r"whatever their active: 1 \([\d,]+\), 0 \(\d+\)",
    ),
    Mistake(
        "mysql", "the vets who left, and none who is there",
        (("v.kind = 'VET' AND v.active = b'1'", "v.kind = 'VET' AND v.active = b'0'"),),
        said=r"it hides what [\d,]+ of [\d,]+ rows lead to, .*turned round",
    ),
    Mistake(
        "mysql", "done and missed changed about",
        (
            ("          DONE: COMPLETED\n", "          DONE: NO_SHOW\n"),
            ("          MISS: NO_SHOW\n", "          MISS: COMPLETED\n"),
        ),
        under="status:\n        source: COALESCE(a.status, 'PLAN')",
        said=r"belong to an appointment that is CANCELLED or NO_SHOW",
    ),
    Mistake(
        "mysql", "a line's price and total changed about",
        (("unitPrice: l.price", "unitPrice: l.total"), ("total: l.total", "total: l.price")),
        said=r"unitPrice and total seem to have changed places",
    ),
    Mistake(
        "mysql", "a booking that the desk's day view lacks",
        (
            (
                "    - insert: calendar            # what the desk's day view shows\n"
                "      values:\n"
                "        act_id: {made: act}\n"
                "        party_id: {draft: vetId}\n"
                '        left: {draft: scheduledAt, pattern: "%H:%M:%S"}\n'
                '        right: {draft: endTime, pattern: "%H:%M:%S"}\n'
                '        day: {draft: scheduledAt, pattern: "%Y-%m-%d"}\n',
                "",
            ),
        ),
        under="steps:\n",
        booking=True,
        said=r"have a row in calendar each, and ours none",
    ),
    Mistake(
        "mysql", "a booking written as another kind of act",
        (("        type: appointment\n", "        type: visit\n"),),
        booking=True,
        said=r"one value in 100% .* another in ours -> write the desk's value \(appointment\)",
    ),
    Mistake(
        "mysql", "a threshold compared as the text that it is",
        (
            (
                "CAST(REPLACE(f.value, ',', '.') AS DECIMAL(10,2)) FROM product_fields f\n",
                "f.value FROM product_fields f\n",
            ),
        ),
        under="isLow: >-",
        said=r"an isLow that does not go with quantity and reorderThreshold",
    ),
    # JSON over HTTP
    Mistake(
        "json", "a local createdAt read as UTC",
        (
            (
                "createdAt: created\n      updatedAt: changed\n      address",
                "createdAt: {source: created, as: utc time}\n      updatedAt: changed\n"
                "      address",
            ),
        ),
        said=r"show the working hours of the clinic's wall clock, and are read as UTC",
    ),
    Mistake(
        "json", "an animal taken for its owner",
        (
            (
                'clientId: {source: owner.href, match: "/owners/([0-9]+)$"}     # the whole',
                "clientId: id     # the whole",
            ),
        ),
        said=r"70 rows of 300 lead to none of the clients",
    ),
    Mistake(
        "json", "start and end of what blocks changed about",
        (
            ("      start: starts_at\n", "      start: ends_at\n"),
            ("      end: ends_at\n", "      end: starts_at\n"),
        ),
        said=r"start and end seem to have changed places",
    ),
    Mistake(
        "json", "archived owners among the clients",
        (("    where: archived == `false`\n", ""),),
        under="  clients:",
        said=r"taken whatever their archived says: False \(226\), True \(4\)",
    ),
    Mistake(
        "json", "booked visits that do not block",
        (("where: state != 'cancelled'", "where: state == 'done'"),),
        said=r"of status SCHEDULED block nothing",
    ),
    Mistake(
        "json", "net and gross changed about",
        (("subtotal: net\n", "subtotal: gross\n"), ("total: gross\n", "total: net\n")),
        said=r"a total that is not the subtotal and the tax",
    ),
    Mistake(
        "json", "quantities compared as texts",
        (('isLow: "to_number(on_hand) <= to_number(minimum)"', 'isLow: "on_hand <= minimum"'),),
        said=r"as if the two were compared as texts",
    ),
    Mistake(
        "json", "done and cancelled changed about",
        (
            (
                "booked: SCHEDULED, done: COMPLETED, cancelled: CANCELLED",
                "booked: SCHEDULED, done: CANCELLED, cancelled: COMPLETED",
            ),
        ),
        said=r"COMPLETED block nothing and \d+ of status CANCELLED block .*two codes",
    ),
    Mistake(
        "json", "weekdays counted from another day",
        (
            (
                '{mon: "1", tue: "2", wed: "3", thu: "4", fri: "5", sat: "6", sun: "7"}',
                '{mon: "2", tue: "3", wed: "4", thu: "5", fri: "6", sat: "7", sun: "1"}',
            ),
        ),
        said=r"would a day later: weekday is 1 for Monday, and here one too high",
    ),
    Mistake(
        "json", "a booking without its type",
        (("        kind: {draft: appointmentTypeId}\n", ""),),
        under="- post: /visits",
        booking=True,
        said=r"must write what appointmentTypeId is read from, as {draft: appointmentTypeId}",
    ),
]  # fmt: skip


# What the check does not name at its line, with the words of docs/connecting.md for it.
LIMITS = [
    (
        Mistake(
            "sqlite", "first and last names changed about",
            (
                (
                    "firstName: p.PRENOM",
                    "firstName: COALESCE(NULLIF(TRIM(p.NOM), ''), p.RAISON_SOC)",
                ),
                ("lastName: COALESCE(NULLIF(TRIM(p.NOM), ''), p.RAISON_SOC)", "lastName: p.PRENOM"),
            ),
        ),
        "first and last names that have changed places",
    ),
    (
        Mistake(
            "sqlite", "the key of an invoice taken for its number",
            (("number: f.NUMERO", "number: f.ID_FACT"),),
        ),
        "an invoice's key in the place of its number",
    ),
    (
        Mistake(
            "sqlite", "the server's zone taken for the clinic's",
            (("zone: Europe/Paris", "zone: UTC"),), booking=True,
        ),
        "a wrong `zone`, where all times are on the clinic's clock",
    ),
    (
        Mistake("postgresql", "a step that is not the desk's", (("step: 15", "step: 25"),)),
        "a `step` that is not the desk's",
    ),
    (
        Mistake(
            "mysql", "sale and purchase prices changed about",
            (
                ("salePrice: p.`sale-price`", "salePrice: p.`cost-price`"),
                ("purchasePrice: p.`cost-price`", "purchasePrice: p.`sale-price`"),
            ),
        ),
        "sale and purchase prices that have changed places",
    ),
    (
        Mistake(
            "json", "the sexes changed about",
            (("{M: MALE, F: FEMALE,", "{M: FEMALE, F: MALE,"),),
        ),
        "two codes of sex that have changed places",
    ),
    (
        Mistake(
            "json", "a fax taken for a telephone",
            (("phones[?kind == 'mobile'] | [0].number", "phones[0].number"),),
        ),
        "a fax taken for a telephone",
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def practices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The addresses of one database for each engine."""
    folder = tmp_path_factory.mktemp("clinic")
    urls = {"sqlite": f"sqlite:///{copy_to(folder)}"}
    made = list[tuple[str, str]]()
    try:
        for kind, example in EXAMPLES.items():
            own, name = server(kind), f"clinic_test_{uuid4().hex[:12]}"
            urls[kind] = own.set(database=name).render_as_string(hide_password=False)
            example.generate(urls[kind], today=TODAY)
            made.append((own.render_as_string(hide_password=False), name))
        yield urls
    finally:
        for own, name in made:
            asyncio.run(drop(own, name))


@asynccontextmanager
async def address_of(kind: str, practices: dict[str, str]) -> AsyncIterator[str]:
    """The address of a practice; a cloud is made for each that asks."""
    if kind in practices:
        yield practices[kind]
    else:
        async with listening(sound_cloud()) as url:
            yield url


async def found_in(
    kind: str, text: str, practices: dict[str, str], folder: Path, *, booking: bool
) -> list[Finding]:
    """What the check of a mapping finds, without running the operations."""
    mapping = folder / "mapping.yaml"
    mapping.write_text(text)
    is_json = kind == "json"
    async with address_of(kind, practices) as url:
        options = AdapterOptions(
            url=url,
            mapping=mapping,
            secret=SECRET,
            shapes=shapes(),
            report=lambda trouble: None,
            ids=Shelf(),
            timeout=60.0,
            credentials=CREDENTIALS if is_json else {},
        )
        adapter = RestAdapter(options) if is_json else SqlAdapter(options)
        looked = Examination(now=NOW, booking=booking, is_tenant=booking and is_json)
        try:
            examined = doctor_of(adapter).examine(adapter, looked)
            return [finding async for finding in examined]
        finally:
            await adapter.aclose()


def shown(finding: Finding) -> str:
    where = finding.place.rpartition("/")[2]
    return f"{finding.verdict} {finding.check} {where} {finding.text} -> {finding.remedy}"


def at_its_line(found: list[Finding], mistake: Mistake) -> list[Finding]:
    return [
        each
        for each in found
        if each.verdict in BAD and each.place and int(each.place.split(":")[-2]) in mistake.lines
    ]


def test_there_are_ten_mistakes_for_each_engine_and_nearly_all_are_named() -> None:
    kinds = [mistake.kind for mistake in MISTAKES]
    assert {kind: kinds.count(kind) for kind in MAPPINGS} == dict.fromkeys(MAPPINGS, 10)
    assert len({str(mistake) for mistake in MISTAKES}) == 40
    unnamed = {str(mistake) for mistake, _ in LIMITS}
    assert len([each for each in MISTAKES if str(each) not in unnamed]) >= 36


@pytest.mark.parametrize("kind", MAPPINGS)
async def test_the_good_mapping_is_spared(
    kind: str, practices: dict[str, str], tmp_path: Path
) -> None:
    text = MAPPINGS[kind].read_text()
    found = await found_in(kind, text, practices, tmp_path, booking=True)
    assert [shown(each) for each in found if each.verdict is Verdict.FAILED] == []
    laws = [each for each in found if each.check == "laws"]
    assert len(laws) > 20
    assert [shown(each) for each in laws if each.verdict in BAD] == []


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
async def test_a_mistake_is_named_at_its_line(
    mistake: Mistake, practices: dict[str, str], tmp_path: Path
) -> None:
    assert mistake.said
    found = await found_in(mistake.kind, mistake.text, practices, tmp_path, booking=mistake.booking)
    told = [shown(each) for each in at_its_line(found, mistake)]
    others = [shown(each) for each in found if each.verdict in BAD]
    assert any(re.search(mistake.said, each) for each in told), (mistake.lines, others)


@pytest.mark.parametrize(("mistake", "words"), LIMITS, ids=str)
async def test_what_is_not_named_is_a_limit_that_the_page_says(
    mistake: Mistake, words: str, practices: dict[str, str], tmp_path: Path
) -> None:
    assert words in " ".join(PAGE.read_text().split())
    good = MAPPINGS[mistake.kind].read_text()
    known = {
        each.text for each in await found_in(mistake.kind, good, practices, tmp_path, booking=False)
    }
    found = await found_in(mistake.kind, mistake.text, practices, tmp_path, booking=mistake.booking)
    assert [shown(each) for each in at_its_line(found, mistake) if each.text not in known] == []
