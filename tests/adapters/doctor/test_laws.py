"""Each law names the rows that break it, on SQL and on JSON, and sound clinics break none."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import literal_column

from adapters.doctor.laws.voids import is_mark
from adapters.doctor.sql import kinds
from adapters.examination import Finding, Verdict
from adapters.mapping.checker import LAWS
from examples.json_cloud.backend import Cloud
from tests.adapters.clinic import run
from tests.adapters.doctor import test_rest_doctor as on_json
from tests.adapters.doctor.test_sql_doctor import SAMPLE, found_in

pytestmark = pytest.mark.long

FAILED, WARNING, NOTE = Verdict.FAILED, Verdict.WARNING, Verdict.NOTE
# Laws that only slot rows can break, and those that only SQL can.
OF_SLOTS = {"update-names-state", "slots-are-free"}
OF_SQL = {*OF_SLOTS, "conditions-decide", "kinds-told-apart"}
STATUSES = (
    ("          T: COMPLETED\n", "          T: CANCELLED\n"),
    ("          A: CANCELLED\n", "          A: COMPLETED\n"),
)
# Those that rehearsals of bookings try: see test_rehearsal.py.
OF_BOOKINGS = {"vets-are-bookable", "types-are-bookable"}


@dataclass(frozen=True)
class Breach:
    """What breaks a law, and what is then said: at which line, of what, with which examples.

    Those of one number `together` are planted in one clinic.
    """

    law: str
    verdict: Verdict
    line: str
    said: str
    example: str = ""
    database: tuple[str, ...] = ()
    mapping: tuple[tuple[str, str], ...] = ()
    together: int = 1

    def __str__(self) -> str:
        return f"{self.law} {self.said}"


BREACHES = [
    Breach(
        "start-before-end", WARNING, "endTime: r.D_FIN",
        r"2 rows of 1,940: an end that is not after its start",
        "key 7: scheduledAt .*Z, endTime .*Z",
        ("UPDATE RDV SET D_FIN = D_DEBUT WHERE ID_RDV IN (7, 8)",),
    ),
    Breach(
        "start-before-end", FAILED, "endTime: r.D_DEBUT",
        "an end that is not after its start",
        "key .*: scheduledAt .*Z, endTime .*Z",
        mapping=(
            ("scheduledAt: r.D_DEBUT", "scheduledAt: r.D_FIN"),
            ("endTime: r.D_FIN", "endTime: r.D_DEBUT"),
        ),
        together=2,
    ),
    Breach(
        "validated-after-start", FAILED, "validatedAt: c.D_VALID",
        "a consultation that is validated before it begins",
        "key 40: startedAt .*Z, validatedAt .*Z",
        (
            "UPDATE CONSULTATIONS SET D_VALID = datetime(D_DEBUT, '-1 hour')"
            " WHERE ID_CONS % 20 = 0 AND D_VALID > '1'",
        ),
    ),
    Breach(
        "written-by-now", WARNING, "createdAt: a.DT_CREATION", "1 row of .* lies in the future",
        "key 9: createdAt 2027",
        ("UPDATE ANIMAUX SET DT_CREATION = '2027-01-01 10:00:00' WHERE ID_ANIMAL = 9",),
    ),
    Breach(
        "written-by-now", FAILED, "startedAt: {", "look like local time, but are read as UTC",
        "key .*: startedAt 2026-03-04T10:30:00Z",
        ("UPDATE CONSULTATIONS SET D_DEBUT = '2026-03-04 10:30:00' WHERE ID_CONS = 40",),
        (("startedAt: c.D_DEBUT", "startedAt: {source: c.D_DEBUT, as: utc time}"),),
        together=2,
    ),
    Breach(
        "total-is-net-plus-tax", FAILED, " total: {source: f.HT, as: cents}",
        "a total that is not the subtotal and the tax", r"key \d+: total .*, subtotal .*, taxTotal",
        mapping=(("total: {source: f.DU, as: cents}", "total: {source: f.HT, as: cents}"),),
        together=2,
    ),
    Breach(
        "total-is-net-plus-tax", WARNING, "total: {source: f.DU, as: cents}", "1 row of 1,500",
        r"key 30: total 5000.00, subtotal \d+.\d\d, taxTotal \d+.\d\d",
        ("UPDATE FACTURES SET TOTAL_TTC = '5 000,00' WHERE ID_FACT = 30",),
    ),
    Breach(
        "total-is-paid-plus-balance", FAILED, "balance: {", "not the amount paid and the balance",
        r"key \d+: total .*, amountPaid .*, balance",
        mapping=(("{source: f.DU - f.PAYE, as: cents}", "{source: f.DU, as: cents}"),),
        together=2,
    ),
    Breach(
        "lines-add-up", WARNING, "subtotal: {source: f.HT", "lines that do not add up",
        r"key \d+: subtotal \d+.\d\d, \d+ lines? of \d+.\d\d",
        ("UPDATE LIGNES_FACT SET TOTAL_HT = '999,00' WHERE ID_LIGNE = 40",),
    ),
    Breach(
        "payments-add-up", WARNING, "amountPaid: {source: f.PAYE", "payments that do not add up",
        r"key \d+: amountPaid \d+.\d\d, 0 payments of 0",
        mapping=(
            ("from: REGLEMENTS g\n", "from: REGLEMENTS g\n        where: g.MODE <> 'CB'\n"),
        ),
        together=2,
    ),
    Breach(
        "numbers-are-unique", WARNING, "number: ", r"\d+ rows of .* another invoice has too see",
        r"key \d+: number \d\d$",
        mapping=(("number: f.NUMERO", "number: SUBSTR(f.NUMERO, -2)"),),
        together=3,
    ),
    Breach(
        "numbers-are-unique", WARNING, "number: ", "each in another year: is the year a part of it",
        mapping=(("number: f.NUMERO", "number: SUBSTR(f.NUMERO, -5)"),),
        together=4,
    ),
    Breach(
        "tax-is-percent", FAILED, "taxRate: CAST", "all .* above 0 are below 1 %.*multiply",
        r"key \d+: taxRate 0\.\d",
        mapping=(
            (
                "taxRate: l.TAUX_TVA",
                "taxRate: CAST(REPLACE(l.TAUX_TVA, ',', '.') AS REAL) / 100",
            ),
        ),
        together=2,
    ),
    Breach(
        "not-one-code", WARNING, "sex: {source: a.SEXE", "all 450 rows are UNKNOWN",
        database=("UPDATE ANIMAUX SET SEXE = 'I'",),
    ),
    Breach(
        "not-one-code", WARNING, "species: e.LIBELLE", "all .* have the same value",
        database=("UPDATE ANIMAUX SET CODE_ESP = (SELECT MIN(CODE_ESP) FROM ESPECES)",),
    ),
    Breach(
        "codes-in-use", NOTE, "sex: {source: a.SEXE", "none has FEMALE or MALE",
        database=("UPDATE ANIMAUX SET SEXE = 'I'",),
    ),
    Breach(
        "owners-have-names", FAILED, "lastName: p.VILLE", "clients without any name", r"key \d+$",
        mapping=(
            ("lastName: COALESCE(NULLIF(TRIM(p.NOM), ''), p.RAISON_SOC)", "lastName: p.VILLE"),
            ("firstName: p.PRENOM", "firstName: p.CODE_POSTAL"),
        ),
        database=("UPDATE PERSONNES SET VILLE = NULL",),
        together=2,
    ),
    Breach(
        "references-kept", FAILED, "clientId: f.ID_PERS", r"1,\d+ rows of 1,500 have none",
        r"key \d+: clientId null",
        ("UPDATE FACTURES SET ID_PERS = NULL WHERE ID_FACT % 20 > 0",),
    ),
    Breach(
        "references-kept", WARNING, "clientId: f.ID_PERS", r"\d+ rows of 1,500 have none",
        database=("UPDATE FACTURES SET ID_PERS = NULL WHERE ID_FACT % 5 > 1",),
        together=2,
    ),
    Breach(
        "references-kept", WARNING, "clientId: >-\n        SELECT o.ID_PERS FROM PROPRIETAIRES o\n"
        "        WHERE o.ID_ANIMAL = r.",
        r"appointments.clientId: \d+ rows of .* have none, though the animals of \d+ of \d+ looked",
        r"key \d+: clientId null",
        ("UPDATE PROPRIETAIRES SET DT_DEBUT = '2026-02-20' WHERE ID_ANIMAL % 5 = 0",),
        together=5,
    ),
    Breach(
        "references-kept", WARNING, "clientId: f.ID_PERS",
        r"invoices.clientId: 300 rows of 1,500 have none, though the animals of \d+ of \d+ looked",
        database=(
            "UPDATE FACTURES SET ID_PERS = NULL WHERE ID_FACT % 5 = 0",
            "DELETE FROM LIGNES_FACT WHERE ID_FACT % 100 = 0",
        ),
        together=5,
    ),
    Breach(
        "references-shown", FAILED, "vetId: c.ID_VETO",
        "one of the vets that `where` hides: partners find none of them", r"key \d+$",
        (
            "UPDATE CONSULTATIONS SET ID_VETO = (SELECT MIN(ID_PERS) FROM PERSONNES"
            " WHERE GENRE_PERS = 'C')",
        ),
        (("where: v.GENRE_PERS = 'V' AND v.ACTIF = 'O'", "where: v.ID_PERS % 2 = 0"),),
        together=3,
    ),
    Breach(
        "references-shown", WARNING, "patientId: c.ID_ANIMAL", "one of the patients that `where`",
        r"key \d+$",
        database=("UPDATE ANIMAUX SET SUPPRIME = 1 WHERE ID_ANIMAL % 5 > 0",),
        together=2,
    ),
    Breach(
        "low-by-quantity", FAILED, 'isLow: "1"',
        "does not go with quantity and reorderThreshold",
        r"key \d+: isLow true, quantity \d+, reorderThreshold",
        mapping=(("isLow: COALESCE(a.QUANTITE <= a.SEUIL, 0)", 'isLow: "1"'),),
    ),
    Breach(
        "low-by-quantity", FAILED, "isLow: CAST", "as if the two were compared as texts",
        mapping=(
            (
                "isLow: COALESCE(a.QUANTITE <= a.SEUIL, 0)",
                "isLow: CAST(CAST(a.QUANTITE AS INTEGER) AS TEXT)"
                " <= CAST(CAST(a.SEUIL AS INTEGER) AS TEXT)",
            ),
        ),
        together=2,
    ),
    Breach(
        "low-by-quantity", FAILED, "isLow: COALESCE(a.QUANTITE < a.SEUIL, 0)",
        "as if it were quantity < reorderThreshold",
        database=(
            "UPDATE CHAMPS_SUPPL SET VALEUR = (SELECT SUM(CAST(REPLACE(l.QTE, ',', '.') AS REAL))"
            " FROM LOTS l WHERE l.ID_ART = ID_FICHE) WHERE CHAMP = 'SEUIL' AND ID_FICHE % 3 = 0",
        ),
        mapping=(
            ("isLow: COALESCE(a.QUANTITE <= a.SEUIL, 0)",
             "isLow: COALESCE(a.QUANTITE < a.SEUIL, 0)"),
        ),
        together=3,
    ),
    Breach(
        "times-in-hours", FAILED, "scheduledAt: {source: r.D_DEBUT, as: utc",
        "if what is read as UTC were the clinic's wall clock.*as: local time",
        r"key \d+: scheduledAt",
        mapping=(
            ("scheduledAt: r.D_DEBUT", "scheduledAt: {source: r.D_DEBUT, as: utc time}"),
            ("endTime: r.D_FIN", "endTime: {source: r.D_FIN, as: utc time}"),
        ),
        together=3,
    ),
    Breach(
        "times-in-hours", FAILED, "startedAt: {source: c.D_DEBUT, as: utc",
        "consultations lie within working hours, and .* were the clinic's wall clock",
        r"key \d+: startedAt",
        mapping=(("startedAt: c.D_DEBUT", "startedAt: {source: c.D_DEBUT, as: utc time}"),),
        together=6,
    ),
    Breach(
        "times-in-hours", WARNING, "scheduledAt: r.D_DEBUT", "are these the hours in force",
        database=("UPDATE HORAIRES SET H_DEBUT = '05:00', H_FIN = '06:00'",),
        together=4,
    ),
    Breach(
        "pairs-read-alike", FAILED, "endTime: {source: r.D_FIN, as: utc",
        "would if endTime were the clinic's wall clock of endTime write `as: local time`",
        r"key \d+: scheduledAt .*Z, endTime",
        mapping=(("endTime: r.D_FIN", "endTime: {source: r.D_FIN, as: utc time}"),),
        together=5,
    ),
    Breach(
        "pairs-read-alike", FAILED, "scheduledAt: {source: r.D_DEBUT, as: utc",
        "would if scheduledAt were the clinic's wall clock of scheduledAt write `as: local time`",
        mapping=(("scheduledAt: r.D_DEBUT", "scheduledAt: {source: r.D_DEBUT, as: utc time}"),),
        together=6,
    ),
    Breach(
        "pairs-read-alike", FAILED, "endTime: r.D_FIN", "would if endTime were UTC .*as: utc time",
        database=(
            "UPDATE RDV SET D_FIN = datetime(D_FIN, CASE WHEN SUBSTR(D_FIN, 6, 2) IN ('05', '06',"
            " '07', '08', '09') THEN '-2 hours' ELSE '-1 hours' END)",
        ),
        together=7,
    ),
    Breach(
        "lengths-of-types", WARNING, "endTime: r.D_FIN", "0% of .* are as long as their type",
        r"key \d+: minutes \d+",
        ("UPDATE TYPES_RDV SET DUREE_MIN = DUREE_MIN + 7",),
        together=4,
    ),
    Breach(
        "durations-usable", FAILED, "durationMinutes: t.DUREE_MIN", "a duration that cannot be",
        "key 2: durationMinutes 100000",
        ("UPDATE TYPES_RDV SET DUREE_MIN = 100000 WHERE ID_TYPE = 2",),
    ),
    Breach(
        "durations-usable", FAILED, "minutes: t.CATEGORY", "a duration that cannot be used",
        "type 1: no length",
        mapping=(
            (
                "  busy:\n",
                "  durations:\n    - from: (SELECT ID_TYPE, 'long' AS CATEGORY FROM TYPES_RDV) t\n"
                "      type: t.ID_TYPE\n      minutes: t.CATEGORY\n  busy:\n",
            ),
        ),
        together=4,
    ),
    Breach(
        "hours-are-worked", WARNING, "- from: HORAIRES h", "began in Sun 06:00-08:00",
        database=(
            "INSERT INTO HORAIRES (ID_VETO, JOUR, H_DEBUT, H_FIN)"
            " SELECT ID_VETO, 7, '06:00', '08:00' FROM HORAIRES GROUP BY ID_VETO",
            # as many visits as a year has
            "INSERT INTO RDV (ID_ANIMAL, ID_VETO, ID_TYPE, D_DEBUT, D_FIN, STATUT)"
            " SELECT ID_ANIMAL, ID_VETO, ID_TYPE, D_DEBUT, D_FIN, 'T' FROM RDV"
            " WHERE D_DEBUT BETWEEN '2025-10-01' AND '2026-03-01' AND STATUT = 'T'",
            "DELETE FROM RDV WHERE D_DEBUT < '2025-10-01'",
        ),
        together=5,
    ),
    Breach(
        "busy-has-rows", FAILED, "where: r.STATUT = 'QQ'",
        "`where` lets no row through, though there are rows",
        mapping=((
            "where: TRIM(COALESCE(r.STATUT, 'P')) NOT IN ('A', 'N')", "where: r.STATUT = 'QQ'",
        ),),
        together=6,
    ),
    Breach(
        "busy-has-rows", WARNING, "from: ABSENCES b", "it has no row at all",
        database=("DELETE FROM ABSENCES",),
        together=6,
    ),
    Breach(
        "busy-within-a-day", FAILED, "end: r.D_FIN", "blocks for longer than a day",
        r"key \d+: 40 hours",
        ("UPDATE RDV SET D_FIN = datetime(D_DEBUT, '+40 hours') WHERE D_DEBUT > '2026-03-04'",),
        together=4,
    ),
    Breach(
        "update-names-state", FAILED, "where: ID_RDV = :slot",
        "its condition names the row of RDV, and nothing of its state",
        mapping=(
            (
                "  busy:\n",
                "  slots:\n    - from: RDV s\n      where: s.STATUT = 'L'\n      vet: s.ID_VETO\n"
                "      key: s.ID_RDV\n      start: s.D_DEBUT\n      end: s.D_FIN\n  busy:\n",
            ),
            (
                "    - insert: RDV_JOURNAL\n",
                "    - update: RDV\n      where: ID_RDV = :slot\n      for: slot\n"
                "      name: rdv\n      values: {STATUT: P}\n"
                "    - update: RDV\n      where: ID_RDV = :slot AND URGENT = 'N'\n      for: slot\n"
                "      values: {MOTIF: x}\n    - insert: RDV_JOURNAL\n",
            ),
            ("      name: rdv\n      values:", "      name: rdv\n      for: time\n      values:"),
        ),
        together=8,
    ),
    Breach(
        "update-names-state", WARNING, "where: ID_RDV = :slot AND URGENT = 'N'",
        "its condition has nothing of statut, by which diary.slots are free",
        together=8,
    ),
    Breach(
        "drafts-are-written", WARNING, "booking:",
        "booking.steps writes isUrgent nowhere: the desk does not see that a visit is urgent",
        mapping=(("        URGENT: {draft: isUrgent, yes: [O], no: [N]}\n", ""),),
    ),
    Breach(
        "drafts-are-written", WARNING, "booking:",
        "booking.steps writes reason nowhere: the desk does not see what a visit is for",
        mapping=(("        MOTIF: {draft: reason}\n", ""),),
    ),
    Breach(
        "bookings-are-marked", NOTE, "appointment: rdv", "what was asked for and its createdAt",
        mapping=(
            ("  reference: r.REF_EXT", "  #"), ("        REF_EXT: {draft: reference}\n", ""),
        ),
    ),
    Breach(
        "bookings-are-marked", WARNING, "booking:", "alone, as no step writes createdAt",
        mapping=(
            ("  reference: r.REF_EXT", "  #"), ("        REF_EXT: {draft: reference}\n", ""),
            ("DT_SAISIE: {draft: createdAt}", "DT_SAISIE: {sql: \"datetime('now')\"}"),
            ("D_ACTION: {draft: createdAt}", "D_ACTION: {sql: \"datetime('now')\"}"),
        ),
        together=2,
    ),
    Breach(
        "conditions-decide", WARNING, "where: r.STATUT NOT IN ('A', 'N')",
        r"[\d,]+ rows are let through, and of \d+ rows it is neither true nor false", r"key \d+$",
        ("UPDATE RDV SET STATUT = NULL WHERE STATUT = 'P'",),
        (("where: TRIM(COALESCE(r.STATUT, 'P')) NOT IN ('A', 'N')",
          "where: r.STATUT NOT IN ('A', 'N')"),),
        together=7,
    ),
    Breach(
        "conditions-decide", WARNING, "where: a.SUPPRIME = 0", "neither true nor false",
        r"key \d+$",
        ("UPDATE ANIMAUX SET SUPPRIME = NULL WHERE ID_ANIMAL % 5 = 0",),
        together=7,
    ),
    Breach(
        "clock-stays", WARNING, "createdAt: {source: a.DT_CREATION, as: utc",
        "times show the working hours of the clinic's wall clock, and are read as UTC .*local time",
        mapping=(
            ("createdAt: a.DT_CREATION", "createdAt: {source: a.DT_CREATION, as: utc time}"),
        ),
        together=9,
    ),
    Breach(
        "clock-stays", WARNING, "createdAt: f.DT_CREATION",
        "times show the working hours of UTC, and are read as the clinic's wall clock .*utc time",
        database=(
            "UPDATE FACTURES SET DT_CREATION = datetime(DT_CREATION, CASE WHEN"
            " DATE(DT_CREATION) >= DATE(SUBSTR(DT_CREATION, 1, 4) || '-03-25', 'weekday 0') AND"
            " DATE(DT_CREATION) < DATE(SUBSTR(DT_CREATION, 1, 4) || '-10-25', 'weekday 0')"
            " THEN '-2 hours' ELSE '-1 hours' END)",
        ),
        together=9,
    ),
    Breach(
        "lines-multiply", WARNING, "total: l.PU_HT",
        "not quantity times unitPrice: unitPrice and total seem to have changed places",
        r"key \d+: total .*, quantity .*, unitPrice",
        mapping=(
            ("unitPrice: l.PU_HT", "unitPrice: l.TOTAL_HT"),
            ("          total: l.TOTAL_HT", "          total: l.PU_HT"),
        ),
        together=9,
    ),
    Breach(
        "kinds-told-apart", WARNING, "where: p.ACTIF = 'O'",
        r"taken here whatever their GENRE_PERS: C \(300\), F \(8\), V \(6\)",
        mapping=(("where: p.GENRE_PERS = 'C' AND p.ACTIF = 'O'", "where: p.ACTIF = 'O'"),),
        together=9,
    ),
    Breach(
        "kinds-told-apart", WARNING, "clientId: >-\n        SELECT o.ID_PERS FROM PROPRIETAIRES o",
        r"taken here whatever their ROLE: P \(\d+\), D \(30\), and chosen by it in 1 other place",
        mapping=(
            ("o.ID_ANIMAL = a.ID_ANIMAL AND o.ROLE = 'P' AND", "o.ID_ANIMAL = a.ID_ANIMAL AND"),
        ),
        together=9,
    ),
    Breach(
        "void-rows-hidden", WARNING, "from: TYPES_RDV t", "taken whatever their ACTIF says: O .*N",
        mapping=(("    where: t.ACTIF = 'O'\n", ""),),
        together=9,
    ),
    Breach(
        "busy-as-appointments", FAILED, "start: {source: r.D_DEBUT, as: utc",
        "a part is not blocked, by the offset of the clinic's zone",
        "key .*: scheduledAt .*Z, endTime .*Z, blocked from .*Z",
        mapping=(
            (
                "      start: r.D_DEBUT\n      end: r.D_FIN\n      minutes",
                "      start: {source: r.D_DEBUT, as: utc time}\n      end: r.D_FIN\n      minutes",
            ),
        ),
        together=9,
    ),
    Breach(
        "busy-as-appointments", FAILED, "end: r.D_DEBUT\n", "an appointment of which a part",
        mapping=(
            (
                "      end: r.D_FIN\n      minutes: t.DUREE_MIN",
                "      end: r.D_DEBUT\n      minutes: '1'",
            ),
        ),
        together=10,
    ),
    Breach(
        "visits-were-held", FAILED, "T: CANCELLED", "belong to an appointment that is CANCELLED",
        r"key \d+: status CANCELLED",
        mapping=STATUSES,
        together=10,
    ),
    Breach(
        "blocks-are-shown", WARNING, "where: TRIM(COALESCE(r.STATUT",
        r"\d+ rows of .* an appointment that blocks, and is not shown",
        r"key \d+$",
        mapping=(
            ("    from: RDV r\n    key", "    from: RDV r\n    where: r.ID_RDV % 10 > 0\n    key"),
        ),
        together=8,
    ),
    Breach(
        "statuses-block", WARNING, "A: COMPLETED", "of status COMPLETED block nothing .*two codes",
        r"key \d+: status COMPLETED",
        together=10,
    ),
    Breach(
        "statuses-block", WARNING, "where: TRIM(COALESCE(r.STATUT, 'P')) NOT IN ('A', 'C', 'N')",
        "all .* of status CONFIRMED block nothing .*of the time of a vet", "status CONFIRMED",
        mapping=(("NOT IN ('A', 'N')\n      vet", "NOT IN ('A', 'C', 'N')\n      vet"),),
        together=11,
    ),
    Breach(
        "slots-are-free", FAILED, "from: RDV r\n    key", "5 rows of 5: a free time that is served",
        r"key \d+",
        (
            "UPDATE RDV SET STATUT = 'L' WHERE ID_RDV IN (SELECT ID_RDV FROM RDV"
            " WHERE D_DEBUT > '2026-03-10' LIMIT 5)",
        ),
        (
            (
                "  busy:\n",
                "  slots:\n    - from: RDV s\n      where: s.STATUT = 'L'\n      vet: s.ID_VETO\n"
                "      key: s.ID_RDV\n      start: s.D_DEBUT\n      end: s.D_FIN\n  busy:\n",
            ),
            (
                "    - insert: RDV_JOURNAL\n",
                "    - update: RDV\n      where: ID_RDV = :slot AND STATUT = 'L'\n      for: slot\n"
                "      name: rdv\n      values: {STATUT: P}\n    - insert: RDV_JOURNAL\n",
            ),
            ("      name: rdv\n      values:", "      name: rdv\n      for: time\n      values:"),
        ),
        together=11,
    ),
]  # fmt: skip


def of_law(found: list[Finding], law: str) -> list[str]:
    return [
        f"{each.verdict} {each.place.rpartition('/')[2]} {each.text} {each.remedy} {each.examples}"
        for each in found
        if each.check == "laws" and each.subject == law
    ]


def matching(found: list[Finding], breach: Any, text: str) -> list[Finding]:
    line = text[: text.index(breach.line)].count("\n") + 1
    return [
        each
        for each in found
        if (each.check, each.subject, each.code) == ("laws", breach.law, breach.law)
        and each.verdict is breach.verdict
        and re.search(breach.said, f"{each.text} {each.remedy}")
        and int(each.place.split(":")[-2]) == line
        and len(each.examples) <= 3
        and (not breach.example or any(re.search(breach.example, it) for it in each.examples))
    ]


@pytest.fixture(scope="module")
def looked_at() -> dict[int, tuple[str, list[Finding]]]:
    """The mapping and the findings of each clinic with several breaches, once it was looked at."""
    return {}


@pytest.mark.parametrize("breach", BREACHES, ids=str)
async def test_a_breach_in_a_database_is_named_with_rows_and_line(
    database: Path, breach: Breach, looked_at: dict[int, tuple[str, list[Finding]]]
) -> None:
    if breach.together not in looked_at:
        text = SAMPLE
        for each in BREACHES:
            if each.together == breach.together:
                for right, wrong in each.mapping:
                    assert right in text
                    text = text.replace(right, wrong, 1)
                for statement in each.database:
                    run(database, statement)
        looked_at[breach.together] = text, await found_in(database, text, alone=True)
    text, found = looked_at[breach.together]
    assert matching(found, breach, text), of_law(found, breach.law)


LOOKED_UP = "vetId: SELECT v.ID_PERS FROM PERSONNES v WHERE v.ID_PERS = c.ID_VETO"


@pytest.mark.parametrize(
    ("asked", "named"), [(" AND v.GENRE_PERS = 'V'", []), ("", ["GENRE_PERS"])]
)
async def test_a_visit_of_old_may_lead_to_a_vet_who_left(
    database: Path, asked: str, named: list[str]
) -> None:
    run(database, "UPDATE PERSONNES SET ACTIF = 'N' WHERE ID_PERS % 10 = 0")
    text = SAMPLE.replace("vetId: c.ID_VETO", LOOKED_UP + asked)
    found = await found_in(database, text, rows=50, alone=True)
    told = [each.text for each in found if each.subject == "kinds-told-apart"]
    assert re.findall(r"consultations.vetId: .* whatever their (\w+)", " ".join(told)) == named


async def test_the_sample_clinic_breaks_no_law(database: Path) -> None:
    found = [each for each in await found_in(database, alone=True) if each.check == "laws"]
    assert {each.verdict for each in found} == {Verdict.OK}
    assert {each.subject for each in found} == {each.law for each in BREACHES} - OF_SLOTS


async def test_a_table_that_the_database_does_not_show_is_told_and_not_called_sound(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "literal_column", lambda _: literal_column("nowhere"))
    found = await found_in(database, rows=50, alone=True)
    told = [each for each in found if each.subject == "void-rows-hidden"]
    assert {each.verdict for each in told} == {Verdict.NOTE}
    assert all("could not be looked at: no such column: nowhere" in each.text for each in told)


@pytest.mark.parametrize("name", ["VOIDED", "is_deleted", "eliminato"])
def test_marks_of_void_rows_are_known_by_their_names(name: str) -> None:
    assert is_mark(name)


def change(rows: str, make: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Cloud], None]:
    """What writes values into every one of these rows."""

    def changed(cloud: Cloud) -> None:
        for each in getattr(cloud.records, rows).values():
            each.update(make(each))

    return changed


def add_fines(cloud: Cloud) -> None:
    for each in cloud.records.bills.values():
        each["rows"] = [*each["rows"], {**each["rows"][0], "no": 7}]


def later(start: str) -> str:
    return f"{datetime.fromisoformat(start) + timedelta(days=2):%Y-%m-%d %H:%M:%S}"


def visit_often(cloud: Cloud) -> None:
    """The same visits of one vet again and again, as many as a year has."""
    vet = next(iter(cloud.records.vets))
    for key, each in list(cloud.records.visits.items()):
        more = {key + 100 * n: {**each, "id": key + 100 * n, "vet": vet} for n in range(12)}
        cloud.records.visits |= more


@dataclass(frozen=True)
class JsonBreach:
    """The same in a cloud."""

    law: str
    verdict: Verdict
    line: str
    said: str
    example: str = ""
    cloud: Callable[[Cloud], None] = on_json.nothing
    mapping: tuple[tuple[str, str], ...] = ()
    together: int = 1

    def __str__(self) -> str:
        return self.law


JSON_BREACHES = [
    JsonBreach(
        "start-before-end", FAILED, "endTime: ends_at", "60 rows of 60", r"key \d+: scheduledAt",
        change("visits", lambda visit: {"ends_at": visit["starts_at"]}),
    ),
    JsonBreach(
        "validated-after-start", FAILED, "validatedAt: signed", "validated before it begins",
        "validatedAt 2020-01-01",
        change("reports", lambda report: {"signed": report["signed"] and "2020-01-01 10:00:00"}),
    ),
    JsonBreach(
        "written-by-now", WARNING, "createdAt: {source: entered", "60 rows of 60 lie in the future",
        "key 1: createdAt 2031",
        change("visits", lambda visit: {"entered": "2031-01-01 10:00:00"}),
    ),
    JsonBreach(
        "total-is-net-plus-tax", FAILED, " total: net", "the subtotal and the tax",
        r"key \d+: total (\d+.\d\d), subtotal \1, taxTotal",
        mapping=(("total: gross\n", "total: net\n"),),
    ),
    JsonBreach(
        "total-is-paid-plus-balance", FAILED, "balance: paid", "the amount paid and the balance",
        mapping=(("balance: open", "balance: paid"),),
    ),
    JsonBreach(
        "lines-add-up", WARNING, "subtotal: net", "150 rows of 150: lines that do not add up",
        r"2 lines of \d+.\d\d", add_fines,
    ),
    JsonBreach(
        "payments-add-up", WARNING, "amountPaid: paid", "payments that do not add up",
        r"amountPaid \d+.\d\d, 2 payments of \d+.\d\d",
        change("bills", lambda bill: {"payments": 2 * bill["payments"]}),
    ),
    JsonBreach(
        "numbers-are-unique", WARNING, "number: ref", "149 rows of 150: a number that another",
        r"key \d+: number 81/2026", change("bills", lambda bill: {"ref": "81/2026"}),
    ),
    JsonBreach(
        "tax-is-percent", FAILED, "taxRate: vat", "they look like fractions", "taxRate 0.20",
        change("bills", lambda bill: {"rows": [{**it, "vat": "0.2"} for it in bill["rows"]]}),
    ),
    JsonBreach(
        "not-one-code", WARNING, "sex: {", "all 300 rows are UNKNOWN",
        cloud=change("animals", lambda animal: {"sex": "?"}),
    ),
    JsonBreach(
        "codes-in-use", NOTE, "sex: {", "none has FEMALE or MALE",
        cloud=change("animals", lambda animal: {"sex": "?"}),
    ),
    JsonBreach(
        "owners-have-names", FAILED, "lastName: name.last", "clients without any name", r"key \d+",
        change("owners", lambda owner: {"name": {"first": " ", "last": "12"}}),
    ),
    JsonBreach(
        "references-kept", FAILED, "vetId: visit.vet", "38 rows of 38 have none", "vetId null",
        change("reports", lambda report: {"visit": {**report["visit"], "vet": None}}),
    ),
    JsonBreach(
        "references-shown", FAILED, "clientId: {source: owner.href",
        "one of the clients that `where` hides", r"key \d+",
        change("animals", lambda animal: {"owner": 200}),
    ),
    JsonBreach(
        "low-by-quantity", FAILED, 'isLow: "to_number(on_hand) < ', "quantity < reorderThreshold",
        "key .*: isLow false, quantity 10, reorderThreshold 10",
        change("stock", lambda item: {"on_hand": "10.000"}),
        (('isLow: "to_number(on_hand) <= ', 'isLow: "to_number(on_hand) < '),),
    ),
    JsonBreach(
        "times-in-hours", FAILED, "scheduledAt: {source: starts_at, as: utc",
        "if what is read as UTC were the clinic's wall clock", r"key \d+: scheduledAt",
        mapping=(
            ("scheduledAt: starts_at", "scheduledAt: {source: starts_at, as: utc time}"),
            ("endTime: ends_at", "endTime: {source: ends_at, as: utc time}"),
        ),
        together=2,
    ),
    JsonBreach(
        "pairs-read-alike", FAILED, "endTime: {source: ends_at, as: utc",
        "would if endTime were the clinic's wall clock", r"key \d+: scheduledAt",
        mapping=(("endTime: ends_at", "endTime: {source: ends_at, as: utc time}"),),
        together=3,
    ),
    JsonBreach(
        "lengths-of-types", WARNING, "endTime: ends_at", "0% of 60", r"key \d+: minutes 30",
        change("kinds", lambda kind: {"length_min": kind["length_min"] + 7}), together=4,
    ),
    JsonBreach(
        "durations-usable", FAILED, "durationMinutes: length_min", "a duration that cannot be used",
        r"key \d+: durationMinutes 100000",
        change("kinds", lambda kind: {"length_min": 100_000}),
    ),
    JsonBreach(
        "hours-are-worked", WARNING, "- get: /vets/{vet}/week", "began in Mon 14:00-18:30",
        cloud=visit_often, together=3,
    ),
    JsonBreach(
        "busy-has-rows", WARNING, "where: state == 'nothing'", "no row in the next 14 days",
        mapping=(("where: state != 'cancelled'", "where: state == 'nothing'"),), together=3,
    ),
    JsonBreach(
        "busy-within-a-day", FAILED, "end: leaves", r"blocks for longer than a day",
        r"key \d+: [45]\d hours",
        change("visits", lambda visit: {"leaves": later(visit["starts_at"])}),
        (("      end: ends_at\n", "      end: leaves\n"),),
    ),
    JsonBreach(
        "clock-stays", WARNING, "createdAt: {source: created, as: utc",
        "the clinic's wall clock, and are read as UTC",
        mapping=(
            (
                "createdAt: created\n      updatedAt: changed\n      address",
                "createdAt: {source: created, as: utc time}\n      updatedAt: changed\n"
                "      address",
            ),
        ),
        together=5,
    ),
    JsonBreach(
        "lines-multiply", WARNING, "total: net\n          description", "not quantity times",
        "key .*: total .*, quantity 2, unitPrice",
        change("bills", lambda bill: {"rows": [{**row, "count": "2.000"} for row in bill["rows"]]}),
        together=5,
    ),
    JsonBreach(
        "void-rows-hidden", WARNING, "clients:",
        r"whatever their archived says: False .*True \(4\)",
        mapping=(("    where: archived == `false`\n", ""),), together=5,
    ),
    JsonBreach(
        "busy-as-appointments", FAILED, "start: ends_at", "start and end seem to have changed",
        "key .*: scheduledAt",
        mapping=(
            ("      start: starts_at\n", "      start: ends_at\n"),
            ("      vet: vet.uuid\n      start: ends_at\n      end: ends_at\n",
             "      vet: vet.uuid\n      start: ends_at\n      end: starts_at\n"),
        ),
        together=5,
    ),
    JsonBreach(
        "blocks-are-shown", WARNING, "where: state != 'cancelled'",
        r"\d+ rows of .* that blocks, and is not shown",
        mapping=(
            (
                "    key: id\n    fields:\n      clientId: {source: animal",
                "    key: id\n    where: kind == `0`\n"
                "    fields:\n      clientId: {source: animal",
            ),
        ),
        together=7,
    ),
    JsonBreach(
        "statuses-block", WARNING, "status: {source: state, codes: {booked: SCHEDULED, done: CANC",
        "status COMPLETED block nothing and .* of status CANCELLED block", "status COMPLETED",
        mapping=(
            (
                "booked: SCHEDULED, done: COMPLETED, cancelled: CANCELLED",
                "booked: SCHEDULED, done: CANCELLED, cancelled: COMPLETED",
            ),
        ),
        together=5,
    ),
    JsonBreach(
        "visits-were-held", FAILED, "cancelled: CANCELLED}", "belong to an appointment that is",
        "status CANCELLED", change("visits", lambda visit: {"state": "cancelled"}), together=6,
    ),
    JsonBreach(
        "drafts-are-written", WARNING, "booking:", "writes isUrgent nowhere",
        mapping=(("        urgent: {draft: isUrgent, yes: [1], no: [0]}\n", ""),),
    ),
    JsonBreach(
        "bookings-are-marked", WARNING, "booking:", "known by what was asked for alone",
        mapping=(("  reference: ext_ref\n", ""),),
    ),
]  # fmt: skip


@pytest.mark.parametrize("together", range(1, 8))
async def test_breaches_in_json_are_named_with_rows_and_line(tmp_path: Path, together: int) -> None:
    cloud, changes = on_json.sound_cloud(), list[tuple[str, str]]()
    breaches = [each for each in JSON_BREACHES if each.together == together]
    for each in breaches:
        each.cloud(cloud)
        changes += each.mapping
    found = await on_json.found_in(cloud, tmp_path, *changes, alone=True)
    text = (tmp_path / "mapping.yaml").read_text()
    missed = [each for each in breaches if not matching(found, each, text)]
    assert missed == [], [of_law(found, each.law) for each in missed]


async def test_the_sound_cloud_breaks_no_law(tmp_path: Path) -> None:
    found = await on_json.found_in(on_json.sound_cloud(), tmp_path, alone=True)
    of_laws = [each for each in found if each.check == "laws"]
    assert [each for each in of_laws if each.verdict in (FAILED, WARNING)] == []
    assert [each.text for each in of_laws if each.verdict is NOTE] == [
        "invoices.lines.total: 0 rows: too few to tell, 20 are needed",
        "diary.hours: 21 appointments of the last year: too few to tell",
    ]
    assert {each.subject for each in of_laws} == {each.law for each in JSON_BREACHES}


async def test_urgency_reaches_the_desk_by_a_step_that_it_is_the_condition_of(
    database: Path,
) -> None:
    text = SAMPLE.replace("        URGENT: {draft: isUrgent, yes: [O], no: [N]}\n", "")
    step = "    - insert: RDV_JOURNAL\n"
    assert step in text
    found = await found_in(database, text.replace(step, f"{step}      if: isUrgent\n"), alone=True)
    told = [each.verdict for each in found if each.code == "drafts-are-written"]
    assert told == [Verdict.OK]


def test_each_law_is_broken_once_on_either_kind() -> None:
    assert {each.law for each in BREACHES} == {*LAWS} - OF_BOOKINGS
    assert {each.law for each in JSON_BREACHES} == {*LAWS} - OF_SQL - OF_BOOKINGS


def without_tax(cloud: Cloud) -> None:
    """Prices that include their tax."""
    for bill in cloud.records.bills.values():
        bill |= {"gross": bill["net"], "rows": [{**row, "vat": None} for row in bill["rows"]]}


@pytest.mark.parametrize("prices", [on_json.nothing, without_tax])
@pytest.mark.parametrize("change", [on_json.nothing, add_fines])
async def test_without_a_subtotal_lines_add_up_to_the_total(
    tmp_path: Path, prices: Callable[[Cloud], None], change: Callable[[Cloud], None]
) -> None:
    cloud = on_json.sound_cloud()
    prices(cloud)
    change(cloud)
    without = ("      subtotal: net\n", "")
    found = await on_json.found_in(cloud, tmp_path, without, alone=True)
    [told] = [each for each in found if each.subject == "lines-add-up"]
    if change is on_json.nothing:
        assert (told.verdict, told.text) == (Verdict.OK, "invoices.total: 150 rows keep it")
    else:
        lines = "invoices.total: 150 rows of 150: lines that do not add up to the invoice"
        assert (told.verdict, told.text) == (WARNING, lines)
        assert "such as voided ones" in told.remedy


OFF = """\
accepted:
  start-before-end: Two visits of 2024 were typed without an end
  references-shown: Vets who left are hidden
"""


async def test_a_law_is_switched_off_by_name_and_told_with_the_reason(database: Path) -> None:
    run(database, "UPDATE RDV SET D_FIN = D_DEBUT")
    text = SAMPLE + OFF
    found = await found_in(database, text, rows=50, alone=True)
    told = [each for each in found if each.subject in ("start-before-end", "references-shown")]
    assert of_law(told, "start-before-end") == [
        f"note clinic.yaml:{text.count(chr(10)) - 1}:21 switched off: Two visits of 2024 were typed"
        " without an end  ()"
    ]
    [off] = [each for each in told if each.subject == "references-shown"]
    assert off.text == "switched off: Vets who left are hidden"


@pytest.mark.parametrize("count", [19, 20])
async def test_few_rows_are_too_few_to_tell_a_share(database: Path, count: int) -> None:
    run(database, "UPDATE ANIMAUX SET SEXE = 'M'")
    run(database, "DELETE FROM ANIMAUX WHERE ID_ANIMAL > 20")
    some = f"(SELECT ID_ANIMAL FROM ANIMAUX ORDER BY ID_ANIMAL LIMIT {count})"
    text = SAMPLE.replace("where: a.SUPPRIME = 0", f"where: a.ID_ANIMAL IN {some}")
    found = await found_in(database, text, rows=50, alone=True)
    [told] = [
        each
        for each in found
        if each.subject == "not-one-code" and each.text.startswith("patients.sex")
    ]
    few = "patients.sex: 19 rows: too few to tell, 20 are needed"
    all_of = "patients.sex: all 20 rows are MALE"
    assert (told.verdict, told.text) == ((NOTE, few) if count < 20 else (WARNING, all_of))


@pytest.mark.parametrize(
    ("change", "laws"),
    [
        (
            "ALTER TABLE FACTURES RENAME TO BILLS",
            {"invoices", "invoices.lines", "invoices.payments"},
        ),
        (
            "ALTER TABLE TYPES_RDV RENAME TO KINDS",
            {"durations-usable", "conditions-decide"},
        ),
        (
            "ALTER TABLE HORAIRES RENAME TO OPENING",
            {"times-in-hours", "hours-are-worked"},
        ),
        (
            "ALTER TABLE CONSULTATIONS RENAME TO REPORTS",
            {"consultations", "pairs-read-alike", "times-in-hours", "conditions-decide"},
        ),
    ],
)
async def test_a_law_that_could_not_look_is_red(
    database: Path, change: str, laws: set[str]
) -> None:
    run(database, change)
    found = await found_in(database, rows=50, alone=True)
    red = [each for each in found if each.check == "laws" and "could not be looked" in each.text]
    assert {each.subject for each in red} == laws
    assert {each.verdict for each in red} == {FAILED}
    assert all(each.place and each.remedy for each in red)


async def test_without_a_list_on_purpose_a_law_only_warns(tmp_path: Path) -> None:
    listed = (
        "    list: {get: /visits, items: visits}          # no operation needs it; `sample` does\n"
    )
    found = await on_json.found_in(on_json.sound_cloud(), tmp_path, (listed, ""), alone=True)
    said = [each for each in found if each.check == "laws" and "without a list" in each.text]
    assert {each.verdict for each in said} == {WARNING}
    assert {each.subject for each in said} == {
        "appointments", "pairs-read-alike", "lengths-of-types", "times-in-hours", "hours-are-worked"
    }  # fmt: skip
    assert [each for each in found if each.verdict is FAILED and each.check == "laws"] == []
