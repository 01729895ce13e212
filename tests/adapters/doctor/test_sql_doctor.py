"""The doctor is green on a sound clinic, and names each planted fault at its line."""

import asyncio
import re
import time
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path

import pytest
from sqlalchemy import create_engine, literal_column, select, text

from adapters.doctor.sql import examine, rows
from adapters.draft import draft_mapping
from adapters.examination import Examination, Finding, Verdict
from adapters.sample import MAPPING
from adapters.sql.columns import Columns
from gateway.backend import shapes
from gateway.examination import examined
from tests.adapters.clinic import NOW, connect, run

pytestmark = pytest.mark.long

SAMPLE = MAPPING.read_text()
FAILED, WARNING = Verdict.FAILED, Verdict.WARNING
LATER = "D_DEBUT > '2026-03-10' AND COALESCE(STATUT, 'P') NOT IN ('A', 'N') ORDER BY ID_RDV LIMIT 1"
MANY_LINES = (
    "INSERT INTO LIGNES_FACT (ID_FACT, LIBELLE, QTE, PU_HT, TAUX_TVA, TOTAL_HT, LIEN)"
    " WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {})"
    " SELECT f.ID_FACT, 'Acte', '1', '1,00', '20', '1,00', '' FROM n JOIN FACTURES f"
    " ON f.ID_FACT = (SELECT MIN(ID_FACT) FROM FACTURES) + n % 1000"
)
BLOCKS = "where: TRIM(COALESCE(r.STATUT, 'P')) NOT IN ('A', 'N')"
BLOCKS_WITHOUT_REFERENCE = "where: r.REF_EXT IS NULL AND r.STATUT NOT IN ('A', 'N')"
JOURNAL = "    - insert: RDV_JOURNAL\n"
NEXT_VISIT = f"ID_RDV = (SELECT ID_RDV FROM RDV WHERE {LATER})"
NUMBER = (
    "        NUM_RDV: {sql: \"'R' || strftime('%Y', 'now') || '-' || printf('%06d', :number)\"}\n"
)
NOBODYS_UPDATE = """\
    - update: RDV_JOURNAL
      where: ID_RDV = -1
      values: {QUI: X}
    - insert: RDV_JOURNAL
"""


@dataclass(frozen=True)
class Fault:
    """What is done to the database and to the mapping, and what is then to be said, and where.

    Those of one number `together` leave each other alone, and are planted in one clinic.
    """

    what: str
    check: str
    verdict: Verdict
    line: str
    said: str
    database: tuple[str, ...] = ()
    mapping: tuple[tuple[str, str], ...] = ()
    booking: bool = False
    together: int | None = None

    def __str__(self) -> str:
        return self.what


FAULTS = [
    Fault(
        "a renamed column",
        "mapping",
        FAILED,
        "firstName: p.PRENOM",
        "no such column: p.PRENOM.*near: p.PRENOMS",
        ("ALTER TABLE PERSONNES RENAME COLUMN PRENOM TO PRENOMS",),
        together=1,
    ),
    Fault(
        "a fixed text that is taken for a column",
        "mapping",
        FAILED,
        "currency: ",
        "no such column: ZWQ .*a fixed text is written \"'ZWQ'\", in both kinds of quotes",
        mapping=(("currency: f.DEVISE", "currency: ZWQ"),),
        together=1,
    ),
    Fault(
        "a fixed text with a converter that is taken for a column",
        "mapping",
        FAILED,
        "currency: ",
        "a fixed text is written \"'EUR'\", in both kinds of quotes",
        mapping=(("currency: f.DEVISE", "currency: {source: EUR}"),),
        together=2,
    ),
    Fault(
        "a renamed table",
        "mapping",
        FAILED,
        "- from: HORAIRES h",
        "no such table: HORAIRES.*near: HORAIRE",
        ("ALTER TABLE HORAIRES RENAME TO HORAIRE",),
        together=1,
    ),
    Fault(
        "a renamed column that a booking writes",
        "mapping",
        FAILED,
        "MOTIF: {draft: reason}",
        "no column named MOTIF.*near: MOTIFS",
        ("ALTER TABLE RDV RENAME COLUMN MOTIF TO MOTIFS",),
        together=1,
    ),
    Fault(
        "local times read as UTC",
        "laws",
        FAILED,
        "scheduledAt: ",
        "as: local time",
        mapping=(
            ("scheduledAt: r.D_DEBUT", "scheduledAt: {source: r.D_DEBUT, as: utc time}"),
            ("endTime: r.D_FIN", "endTime: {source: r.D_FIN, as: utc time}"),
        ),
    ),
    Fault(
        "UTC read as local times",
        "laws",
        FAILED,
        "scheduledAt: ",
        "as: utc time",
        (
            "UPDATE RDV SET D_DEBUT = datetime(D_DEBUT, '-1 hour'),"
            " D_FIN = datetime(D_FIN, '-1 hour') WHERE D_DEBUT LIKE '____-__-__ __:__:__'",
        ),
    ),
    Fault(
        "an unknown status",
        "values",
        FAILED,
        "status:\n        source: COALESCE(r.STATUT, 'P')",
        r"unknown code: Q \(",
        ("UPDATE RDV SET STATUT = 'Q' WHERE ID_RDV % 10 = 0",),
        together=2,
    ),
    Fault(
        "lists without an index",
        "plans",
        WARNING,
        "parent: l.ID_FACT",
        r"reads the whole of LIGNES_FACT.*CREATE INDEX \w+ ON \S+ \(ID_FACT\)",
        ("DROP INDEX IX_LIGNES_FACT", MANY_LINES.format(5_000)),
        together=3,
    ),
    Fault(
        "lists in a huge table without an index",
        "plans",
        FAILED,
        "parent: l.ID_FACT",
        r"reads the whole of LIGNES_FACT.*CREATE INDEX \w+ ON \S+ \(ID_FACT\)",
        ("DROP INDEX IX_LIGNES_FACT", MANY_LINES.format(120_000)),
        together=4,
    ),
    Fault(
        "two visits at one time",
        "diary",
        WARNING,
        "- from: RDV r LEFT JOIN TYPES_RDV t",
        "1 appointments to come lie over another",
        (
            "INSERT INTO RDV (ID_ANIMAL, ID_VETO, ID_TYPE, D_DEBUT, D_FIN, STATUT)"
            f" SELECT ID_ANIMAL, ID_VETO, ID_TYPE, D_DEBUT, D_FIN, 'P' FROM RDV WHERE {LATER}",
        ),
        together=4,
    ),
    Fault(
        "visits that are nobody's own",
        "diary",
        WARNING,
        "- from: RDV r LEFT JOIN TYPES_RDV t",
        "no `vet` here: each row blocks every vet",
        mapping=(("      vet: r.ID_VETO\n", ""),),
        together=2,
    ),
    Fault(
        "hours that are nobody's own",
        "diary",
        WARNING,
        "- from: HORAIRES h",
        "no `vet` here: each row opens every vet's day",
        mapping=(("      vet: h.ID_VETO\n", ""),),
        together=2,
    ),
    Fault(
        "consultations of an animal that is gone",
        "links",
        WARNING,
        "patientId: c.ID_ANIMAL",
        "3 rows of .* lead to none of the patients",
        ("UPDATE CONSULTATIONS SET ID_ANIMAL = 999999 WHERE ID_CONS IN (10, 20, 30)",),
        together=1,
    ),
    Fault(
        "an id of something else",
        "links",
        FAILED,
        "vetId: c.ID_VETO",
        "lead to none of the vets.*is it the key of vets",
        mapping=(("vetId: c.ID_VETO", "vetId: c.ID_CONS + 100000"),),
    ),
    Fault(
        "a join that doubles rows",
        "rows",
        FAILED,
        "from: PERSONNES p",
        "occur more than once.*sub-select",
        mapping=(
            (
                "from: PERSONNES p\n",
                "from: PERSONNES p LEFT JOIN COORDONNEES k ON k.ID_PERS = p.ID_PERS\n",
            ),
        ),
        together=2,
    ),
    Fault(
        "a row without a key",
        "rows",
        WARNING,
        "key: c.ID_CONS",
        "1 row without a key",
        mapping=(("key: c.ID_CONS", "key: NULLIF(c.ID_CONS, 5)"),),
    ),
    Fault(
        "a key that is no number and too long",
        "mapping",
        WARNING,
        "key: t.ID_TYPE",
        "longer than 8 bytes",
        mapping=(("key: t.ID_TYPE", "key: t.LIBELLE"),),
    ),
    Fault(
        "a visit whose time is words",
        "diary",
        FAILED,
        "start: r.D_DEBUT",
        "1 row cannot be read, and block",
        (f"UPDATE RDV SET D_DEBUT = 'demain' WHERE {NEXT_VISIT}",),
        together=3,
    ),
    Fault(
        "a placeholder that is not named",
        "values",
        WARNING,
        "birthDate: a.DT_NAISSANCE",
        "1899-12-30.*`zero`",
        ("UPDATE ANIMAUX SET DT_NAISSANCE = '1899-12-30' WHERE ID_ANIMAL % 3 = 0",),
        together=1,
    ),
    Fault(
        "zero dates that `zero` no longer names",
        "values",
        FAILED,
        "dueAt: ",
        "its converter cannot read",
        ("UPDATE FACTURES SET D_ECHEANCE = '0000-00-00' WHERE ID_FACT % 3 = 0",),
        (("dueAt: f.D_ECHEANCE", 'dueAt: {source: f.D_ECHEANCE, zero: ["1899-12-30"]}'),),
        together=3,
    ),
    Fault(
        "hours that are words",
        "diary",
        FAILED,
        "start: h.H_DEBUT",
        "1 row of 48 cannot be read",
        ("UPDATE HORAIRES SET H_DEBUT = 'matin' WHERE ID_HOR = 1",),
        together=2,
    ),
    Fault(
        "weekdays that count from 0",
        "laws",
        FAILED,
        "weekday: h.JOUR",
        "a day earlier.*add 1",
        ("UPDATE HORAIRES SET JOUR = JOUR - 1",),
        together=2,
    ),
    Fault(
        "nobody's hours",
        "diary",
        FAILED,
        "- from: HORAIRES h",
        "6 of 6 vets have no working hours",
        mapping=(("vet: h.ID_VETO", "vet: h.ID_HOR + 100000"),),
        together=3,
    ),
    Fault(
        "amounts with a currency in them",
        "values",
        FAILED,
        "unitPrice: l.PU_HT",
        "its converter cannot read",
        ("UPDATE LIGNES_FACT SET PU_HT = 'EUR ' || PU_HT WHERE ID_LIGNE % 5 = 0",),
        together=4,
    ),
    Fault(
        "rows of a list that have no parent",
        "links",
        FAILED,
        "parent: CASE",
        "lead to none of the invoices is `parent` the",
        mapping=(("parent: l.ID_FACT", "parent: CASE WHEN l.ID_LIGNE % 2 = 0 THEN l.ID_FACT END"),),
    ),
    Fault(
        "a list by a wrong parent",
        "links",
        FAILED,
        "parent: l.ID_FACT",
        "lead to none of the invoices is `parent` the",
        mapping=(("parent: l.ID_FACT", "parent: l.ID_LIGNE + 100000"),),
    ),
    Fault(
        "rows that `where` hides",
        "rows",
        FAILED,
        "where: c.SUPPRIME = 0",
        "0 records, though there are rows",
        mapping=(("where: c.SUPPRIME = 0", "where: c.SUPPRIME = 2"),),
    ),
    Fault(
        "a field that nobody has",
        "values",
        WARNING,
        "microchip: >-",
        "null in all of",
        mapping=(("x.CHAMP = 'PUCE'", "x.CHAMP = 'PUCES'"),),
        together=1,
    ),
    Fault(
        "a sub-select that does not name the row",
        "values",
        WARNING,
        "lastName: (select",
        "the same value in all 100 rows: does the sub-select name the row",
        mapping=(
            (
                "lastName: COALESCE(NULLIF(TRIM(p.NOM), ''), p.RAISON_SOC)",
                "lastName: (select NOM FROM PERSONNES WHERE NOM > ' ' LIMIT 1)",
            ),
        ),
        together=2,
    ),
    Fault(
        "a join that loses rows",
        "rows",
        WARNING,
        "from: ANIMAUX a JOIN ESPECES e",
        r"\d+ rows of [\d,]+ of ANIMAUX have no partner in ESPECES: the join .* LEFT JOIN",
        ("UPDATE ANIMAUX SET CODE_ESP = 'none' WHERE ID_ANIMAL % 9 = 0",),
        mapping=(("from: ANIMAUX a LEFT JOIN ESPECES e", "from: ANIMAUX a JOIN ESPECES e"),),
        together=3,
    ),
    Fault(
        "a join in a list that loses rows",
        "rows",
        WARNING,
        "from: LIGNES_FACT l JOIN ANIMAUX x",
        r"rows of [\d,]+ of LIGNES_FACT have no partner in ANIMAUX: the join",
        mapping=(
            (
                "from: LIGNES_FACT l",
                "from: LIGNES_FACT l JOIN ANIMAUX x ON x.ID_ANIMAL = l.TAUX_TVA",
            ),
        ),
        together=4,
    ),
    Fault(
        "a sub-select of a text in quotes",
        "values",
        WARNING,
        "firstName: SELECT",
        "the same value in all 100 rows: the sub-select asks for a text in quotes",
        mapping=(
            (
                "firstName: p.PRENOM",
                "firstName: SELECT 'q.PRENOM' FROM PERSONNES q WHERE q.ID_PERS = p.ID_PERS",
            ),
        ),
        together=2,
    ),
    Fault(
        "a sub-select in a list that does not name the row",
        "values",
        WARNING,
        "unitPrice: SELECT MAX",
        "the same value in all 100 rows: does the sub-select name the row",
        mapping=(("unitPrice: l.PU_HT", "unitPrice: SELECT MAX(MONTANT) FROM REGLEMENTS"),),
        together=3,
    ),
    Fault(
        "a field that is left out",
        "values",
        WARNING,
        "clientId: >-",
        "not mapped.*: breed",
        mapping=(("      breed: a.RACE\n", ""),),
        together=1,
    ),
    Fault(
        "a counter without its row",
        "booking",
        FAILED,
        "where: NOM = 'RDV'",
        "the counter is 0 rows",
        ("DELETE FROM COMPTEURS",),
        together=1,
    ),
    Fault(
        "visits that block nothing",
        "diary",
        FAILED,
        "- from: RDV r LEFT JOIN TYPES_RDV t",
        "block nothing: offered again",
        mapping=((BLOCKS, "where: r.STATUT = 'R'"),),
        together=2,
    ),
    Fault(
        "an update that changes no row",
        "booking",
        FAILED,
        "- update: RDV_JOURNAL",
        "changes 0 rows",
        mapping=(("    - insert: RDV_JOURNAL\n", NOBODYS_UPDATE),),
        booking=True,
    ),
    Fault(
        "a reference that is written elsewhere",
        "booking",
        FAILED,
        "reference: r.REF_EXT",
        "is not found by its reference",
        mapping=(
            ("REF_EXT: {draft: reference}", "REF_EXT: X"),
            ("QUI: PASSERELLE", "QUI: {draft: reference}"),
        ),
        booking=True,
    ),
    Fault(
        "a booking that does not block",
        "booking",
        FAILED,
        "- from: RDV r LEFT JOIN TYPES_RDV t",
        "diary.busy misses it",
        mapping=((BLOCKS, BLOCKS_WITHOUT_REFERENCE),),
        booking=True,
    ),
    Fault(
        "a booking with another status",
        "booking",
        FAILED,
        "STATUT: C",
        "reads back with another status: C, which is CONFIRMED",
        mapping=(("STATUT: P\n", "STATUT: C\n"),),
        booking=True,
    ),
    Fault(
        "a booking that writes no vet",
        "booking",
        FAILED,
        "- counter: COMPTEURS",
        "another vetId; booking.steps must write what vetId is read from, as {draft: vetId}",
        mapping=(("        ID_VETO: {draft: vetId}\n", ""),),
        booking=True,
    ),
    Fault(
        "a booking that writes the vet into another column",
        "booking",
        FAILED,
        "vetId: r.ID_VETO",
        "another vetId; booking.steps must write what vetId is read from",
        mapping=(("ID_VETO: {draft: vetId}", "NUM_RDV: {draft: vetId}"), (NUMBER, "")),
        booking=True,
    ),
    Fault(
        "a booking with an unknown status",
        "booking",
        FAILED,
        "status:\n        source: COALESCE(r.STATUT, 'P')",
        "reads back with another status: QQ, which its codes do not name",
        mapping=(("STATUT: P\n", "STATUT: QQ\n"),),
        booking=True,
    ),
    Fault(
        "a reason that only some bookings have, and that is written wrongly",
        "booking",
        FAILED,
        "reason: ",
        r"another reason; .*no type, a reason with any letters; .*; and 5 more\)",
        mapping=(("MOTIF: {draft: reason}", 'MOTIF: {sql: "SUBSTR(:reason, 1, 4)"}'),),
        booking=True,
    ),
    Fault(
        "urgency that is not written",
        "booking",
        FAILED,
        "- counter: COMPTEURS",
        r"another isUrgent.*\(a computed time, no type, no reason, urgent; ",
        mapping=(("URGENT: {draft: isUrgent, yes: [O], no: [N]}", "URGENT: N"),),
        booking=True,
    ),
    Fault(
        "a type that a booking must have",
        "booking",
        FAILED,
        "- insert: RDV\n",
        r"a rule of the database refused a row .*\(a computed time, no type, no reason; ",
        (
            "CREATE TRIGGER typed BEFORE INSERT ON RDV WHEN NEW.ID_TYPE IS NULL"
            " BEGIN SELECT RAISE(ABORT, 'NOT NULL constraint failed: RDV.ID_TYPE'); END",
        ),
        booking=True,
    ),
    Fault(
        "a step that no booking takes",
        "booking",
        FAILED,
        "- insert: RDV_JOURNAL",
        "no booking that was rehearsed takes this step",
        mapping=(
            ("    - insert: RDV_JOURNAL\n", "    - insert: RDV_JOURNAL\n      if: schedule\n"),
        ),
        booking=True,
    ),
    Fault(
        "an appointment that seems to be made long ago",
        "booking",
        FAILED,
        "createdAt: r.DT_SAISIE",
        "createdAt of the new appointment is .* days before this moment",
        mapping=(("DT_SAISIE: {draft: createdAt}", "DT_SAISIE: '2020-01-01 00:00:00'"),),
        booking=True,
    ),
    Fault(
        "a booking that nothing finds again",
        "booking",
        FAILED,
        "createdAt: r.DT_SAISIE",
        "createdAt of the new appointment is null, .* no booking.reference.*as {draft: createdAt}",
        mapping=(
            ("  reference: r.REF_EXT", "  # reference: r.REF_EXT"),
            ("        REF_EXT: {draft: reference}\n", ""),
            ("        DT_SAISIE: {draft: createdAt}\n", ""),
        ),
        booking=True,
    ),
    Fault(
        "a constant where each row has a number of its own",
        "booking",
        WARNING,
        "NUM_RDV: X",
        r"one value in all of ours, and one of its own in each of \d+ rows of the desk's is it a"
        " counter's",
        mapping=((NUMBER, "        NUM_RDV: X\n"),),
        booking=True,
    ),
    Fault(
        "animals that lead to no client",
        "booking",
        FAILED,
        "clientId: ",
        "no bookable client was found",
        ("UPDATE PROPRIETAIRES SET ID_PERS = 999999",),
        booking=True,
    ),
    Fault(
        "a decision that was left open",
        "mapping",
        FAILED,
        "QUI: TODO",
        "every booking would write it.*take the line away",
        mapping=(("QUI: PASSERELLE", "QUI: TODO"),),
        together=1,
    ),
    Fault(
        "a decision that was left open in a comment",
        "mapping",
        WARNING,
        "duration: 30",
        "TODO in a comment: how many.*decide it",
        mapping=(("duration: 30  ", "duration: 30  # TODO: how many? "),),
        together=1,
    ),
    Fault(
        "days that mean none in another spelling",
        "values",
        FAILED,
        "createdAt: p.DT_CREATION",
        r"cannot read.*mean no date, list them under `zero`.*\[\"30/12/1899\"\]",
        ("UPDATE PERSONNES SET DT_CREATION = '30/12/1899 00:00' WHERE ID_PERS % 5 = 0",),
        together=3,
    ),
    Fault(
        "times in another spelling",
        "values",
        FAILED,
        "createdAt: p.DT_CREATION",
        "cannot read.*say how they are written",
        ("UPDATE PERSONNES SET DT_CREATION = '30/12/2019 00:00' WHERE ID_PERS % 5 = 0",),
        together=2,
    ),
]


async def found_in(
    database: Path,
    text: str = SAMPLE,
    *,
    booking: bool = False,
    rows: int | None = 2_000,
    alone: bool = False,
) -> list[Finding]:
    """What is found; `alone` without running the operations."""
    adapter = connect(database, mapping=text)
    looked = Examination(now=NOW, booking=booking, rows=rows)
    try:
        own = examine(adapter, looked)
        findings = own if alone else examined(adapter, looked, patience=60.0)
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


@pytest.mark.parametrize("rows", [400, None])
async def test_nothing_fails_a_partner_of_the_sample_clinic(
    database: Path, rows: int | None
) -> None:
    found = await found_in(database, booking=True, rows=rows)
    assert [each for each in found if each.verdict is FAILED] == []
    assert {each.subject for each in found if each.verdict is WARNING} <= {
        "appointments.status",
        "appointments.displayStatus",
        # the gateway signs with a name of its own
        "RDV_JOURNAL.QUI",
    }


async def test_all_rows_are_looked_at_page_by_page(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table, key in (
        ("LIGNES_FACT", "ID_LIGNE"),
        ("CONSULTATIONS", "ID_CONS"),
        ("RDV", "ID_RDV"),
        ("FACTURES", "ID_FACT"),
        ("REGLEMENTS", "ID_REGL"),
    ):
        run(database, f"DELETE FROM {table} WHERE {key} > 250")
    run(database, "UPDATE CONSULTATIONS SET ID_ANIMAL = 999999 WHERE ID_CONS % 7 = 0")
    run(database, "UPDATE LIGNES_FACT SET ID_FACT = 999999 WHERE ID_LIGNE % 9 = 0")
    run(database, "UPDATE RDV SET STATUT = 'Q' WHERE ID_RDV % 10 = 0")
    run(database, "UPDATE ANIMAUX SET DT_CREATION = '2031-01-01 00:00:00' WHERE ID_ANIMAL % 5 = 0")

    async def looked_at() -> list[Finding]:
        found = await found_in(database, rows=None, alone=True)
        return [replace(each, seconds=None) for each in found if each.check != "plans"]

    whole = await looked_at()
    assert {each.check for each in whole if each.verdict is not Verdict.OK} >= {
        "values", "links", "laws"
    }  # fmt: skip
    monkeypatch.setattr(rows, "PAGE", 50)
    assert await looked_at() == whole
    monkeypatch.setattr(rows.SqlCase, "kept", 40)
    few = [each for each in await looked_at() if each.check in ("values", "links", "laws")]
    assert few == [each for each in whole if each.check in ("values", "links", "laws")]


async def test_rows_of_one_key_are_never_parted_between_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "PAGE", 3)
    engine = create_engine(f"sqlite:///{tmp_path}/keys.db")
    with engine.connect() as connection:
        connection.execute(text("CREATE TABLE keyed (k INT)"))
        for each in (1, 2, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5, 6):
            connection.execute(text(f"INSERT INTO keyed VALUES ({each})"))
        statement = select(literal_column("k")).select_from(text("keyed"))
        found = [
            [row[0] for row in page]
            for page in rows.pages(connection, statement, Columns(["k"]), most=None)
        ]
    assert [*chain.from_iterable(found)] == [1, 2, 3, 3, *[4] * 7, 5, 6]
    assert all(not set(one) & set(next_) for one, next_ in pairwise(found))
    engine.dispose()


@pytest.fixture(scope="module")
def looked_at() -> dict[int, tuple[str, list[Finding]]]:
    """The mapping and the findings of each clinic with several faults, once it was looked at."""
    return {}


async def with_faults(database: Path, *faults: Fault) -> tuple[str, list[Finding]]:
    """The mapping with the faults in it, and all that is found."""
    text = SAMPLE
    for fault in faults:
        for right, wrong in fault.mapping:
            assert right in text
            text = text.replace(right, wrong, 1)
        for statement in fault.database:
            run(database, statement)
    booking = any(each.booking for each in faults)
    return text, await found_in(database, text, booking=booking, rows=100, alone=True)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_a_planted_fault_is_named_at_its_line(
    database: Path, fault: Fault, looked_at: dict[int, tuple[str, list[Finding]]]
) -> None:
    if fault.together is None:
        text, found = await with_faults(database, fault)
    else:
        if fault.together not in looked_at:
            others = [each for each in FAULTS if each.together == fault.together]
            looked_at[fault.together] = await with_faults(database, *others)
        text, found = looked_at[fault.together]
    place = text if fault.line in text else SAMPLE
    line = str(place[: place.index(fault.line)].count("\n") + 1)
    assert [
        each
        for each in found
        if (each.check, each.verdict) == (fault.check, fault.verdict)
        and re.search(fault.said, f"{each.text} {each.remedy}")
        and abs(int(each.place.split(":")[-2]) - int(line)) <= 1
    ], (line, said(found))


async def test_the_hours_of_each_vet_are_told_as_they_were_read(database: Path) -> None:
    run(database, "DELETE FROM HORAIRES")
    run(
        database,
        "INSERT INTO HORAIRES (ID_VETO, JOUR, H_DEBUT, H_FIN) SELECT v.ID_VETO, n.n, '09:00',"
        " '17:00' FROM (SELECT DISTINCT ID_VETO FROM RDV) v, (SELECT 1 n UNION SELECT 2) n",
    )
    told = [
        each.text
        for each in await found_in(database, rows=100, alone=True)
        if each.check == "diary"
    ]
    assert [each for each in told if "vet" in each and "Mon-Tue 09:00-17:00" in each], told


FREE_ROWS = """\
  slots:
    - {from: RDV s, where: s.STATUT = 'L', vet: s.ID_VETO, key: s.ID_RDV, start: s.D_DEBUT,
       end: s.D_FIN}
  busy:
"""


@pytest.mark.parametrize(
    ("vets", "said"),
    [
        (2, "6 vets, each with working hours or slot rows"),
        (1, "1 of 6 vets have no working hours or slot rows"),
    ],
)
async def test_a_vet_with_slot_rows_needs_no_working_hours(
    database: Path, vets: int, said: str
) -> None:
    present = "SELECT ID_PERS FROM PERSONNES WHERE GENRE_PERS = 'V' AND ACTIF = 'O'"
    run(database, f"DELETE FROM HORAIRES WHERE ID_VETO IN ({present} LIMIT 2)")
    run(
        database,
        "INSERT INTO RDV (ID_VETO, D_DEBUT, D_FIN, STATUT) SELECT ID_PERS, '2026-03-09 09:00:00',"
        f" '2026-03-09 10:00:00', 'L' FROM ({present} LIMIT {vets})",
    )
    step = "      name: rdv\n      values:"
    free = SAMPLE.replace("  busy:\n", FREE_ROWS).replace(BLOCKS, f"{BLOCKS} AND r.STATUT <> 'L'")
    booked = "    - {update: RDV, where: \"ID_RDV = :slot AND STATUT = 'L'\", for: slot, name: rdv,"
    booked += f" values: {{STATUT: P}}}}\n{JOURNAL}"
    text = free.replace(step, f"      for: time\n{step}").replace(JOURNAL, booked)
    found = await found_in(database, text, rows=50, alone=True)
    [told] = [each.text for each in found if (each.check, each.subject) == ("diary", "vets")]
    assert told == said


NO_VET = SAMPLE.replace("      vet: r.ID_VETO\n", "").replace("      vet: h.ID_VETO\n", "")


async def test_visits_that_are_nobody_s_own_are_not_said_to_lie_over_one_another(
    database: Path,
) -> None:
    told = "\n".join(said(await found_in(database, NO_VET, rows=100, alone=True)))
    assert "each row blocks every vet" in told
    assert "lie over another" not in told


async def test_a_practice_of_one_vet_need_not_name_it(database: Path) -> None:
    some = "SELECT MIN(ID_PERS) FROM PERSONNES WHERE GENRE_PERS = 'V' AND ACTIF = 'O'"
    alone = NO_VET.replace("where: v.GENRE_PERS = 'V'", f"where: v.ID_PERS = ({some})")
    assert alone != NO_VET
    told = "\n".join(said(await found_in(database, alone, rows=100, alone=True)))
    assert "no `vet` here" not in told


async def test_a_source_of_the_rows_that_have_no_vet_names_none(database: Path) -> None:
    busy = "    - from: ABSENCES b\n"
    nobodys = f"{busy}      where: B.ID_VETO  IS NULL\n      start: b.D_DEBUT\n"
    text = SAMPLE.replace(busy, f"{nobodys}{busy}")
    assert text != SAMPLE
    told = "\n".join(said(await found_in(database, text, rows=100, alone=True)))
    assert "no `vet` here" not in told


async def test_a_name_that_is_there_is_not_said_to_be_near_itself(database: Path) -> None:
    text = SAMPLE.replace("STATUT: P\n", 'STATUT: {sql: "RDV.STATUT"}\n')
    assert text != SAMPLE
    found = await found_in(database, text, rows=100, alone=True)
    [red] = [each for each in found if "no such column: RDV.STATUT" in each.text]
    assert red.remedy == ""


async def test_closed_days_of_everybody_are_no_warning(database: Path) -> None:
    text = SAMPLE.replace("      vet: b.ID_VETO\n", "")
    assert text != SAMPLE
    found = await found_in(database, text, rows=100, alone=True)
    [told] = [each for each in found if "no `vet` here" in each.text]
    assert told.verdict is Verdict.NOTE
    assert "name `vet` where a row is of one vet" in told.remedy


async def test_an_untouched_draft_is_told_each_line_that_it_left_open(database: Path) -> None:
    draft, _ = await draft_mapping(f"sqlite:///{database}", shapes(), "Europe/Paris", "")
    found = await found_in(database, draft, rows=50, alone=True)
    lines = [each for each, line in enumerate(draft.splitlines(), 1) if "# TODO" in line]
    told = [int(each.place.split(":")[-2]) for each in found if "TODO" in each.text]
    assert len(lines) > 5
    assert set(lines) <= set(told)
    assert len(told) == len(set(told))


async def test_a_rehearsal_leaves_nothing_behind(database: Path) -> None:
    tables = ("COMPTEURS", "RDV", "RDV_JOURNAL")
    before = [run(database, f"SELECT * FROM {each}") for each in tables]
    found = await found_in(database, booking=True, rows=100, alone=True)
    rehearsed = [each for each in found if each.subject == "rehearsal"]
    assert {each.verdict for each in rehearsed} == {Verdict.OK}, said(rehearsed)
    assert all(each in rehearsed[-1].text for each in tables)
    words = [each.text.removesuffix(": rehearsed and undone") for each in rehearsed]
    for said_of in ("no type", "a type", "no reason", "a reason of 500 characters", "urgent"):
        assert any(said_of in each.split(", ") for each in words)
    assert len([each for each in words if "after the clocks change on" in each]) == 2
    vets = {each.ids for each in rehearsed if each.ids and ", no type, no reason" in each.text}
    assert len(vets) > 2
    assert [run(database, f"SELECT * FROM {each}") for each in tables] == before


async def test_nothing_is_written_unless_a_booking_is_asked_for(database: Path) -> None:
    before = await asyncio.to_thread(database.read_bytes)
    found = await found_in(database, rows=100)
    assert await asyncio.to_thread(database.read_bytes) == before
    assert "rehearsal" not in {each.subject for each in found}


async def test_no_value_of_a_record_is_told(database: Path) -> None:
    run(database, "UPDATE PERSONNES SET DT_CREATION = 'Sesame Confidential'")
    run(database, "UPDATE RDV SET STATUT = 'Sesame Confidential ' || ID_RDV, D_FIN = 'Sesame'")
    run(database, "UPDATE HORAIRES SET H_FIN = 'Sesame'")
    run(database, "UPDATE REGLEMENTS SET MODE = 'Sesame, in one and the same long text'")
    found = await found_in(database, booking=True, rows=300)
    assert any(each.verdict is FAILED for each in found)
    assert "Sesame" not in repr(found)


async def test_a_database_that_is_not_there_is_one_finding(tmp_path: Path) -> None:
    [only] = await found_in(tmp_path / "nowhere.db")
    assert (only.check, only.verdict) == ("connection", FAILED)
    assert "does not exist" in only.text


def clock_of(found: list[Finding]) -> str:
    return next(each.text for each in found if (each.check, each.subject) == ("clock", "server"))


async def test_now_is_spoken_of_only_where_the_mapping_asks_for_it(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    try:
        silent = clock_of(await found_in(database, rows=50, alone=True))
        asking = SAMPLE.replace(
            NUMBER, "        NUM_RDV: {sql: \"datetime('now', 'localtime')\"}\n"
        )
        told = clock_of(await found_in(database, asking, rows=50, alone=True))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert silent.endswith("; the database uses this machine's zone")
    assert told.endswith(
        "; the database uses this machine's zone, so localtime in the mapping is not the clinic's"
        " time (Europe/Paris)"
    )
