"""The sample clinic holds what it promises: its counts, its flaws, and nothing beyond them."""

import itertools
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from adapters.sample import MAPPING, SCHEMA, create, make_tables

TODAY = date(2026, 3, 4)  # a Wednesday
NO_DAY = "0000-00-00"
NO_MOMENT = "0000-00-00 00:00:00"
Span = tuple[datetime, datetime]

COUNTS = [
    (300, "PERSONNES WHERE GENRE_PERS = 'C' AND ACTIF = 'O'"),
    (12, "PERSONNES WHERE GENRE_PERS = 'C' AND ACTIF = 'N'"),
    (6, "PERSONNES WHERE GENRE_PERS = 'V' AND ACTIF = 'O'"),
    (1, "PERSONNES WHERE GENRE_PERS = 'V' AND ACTIF = 'N'"),
    (8, "PERSONNES WHERE GENRE_PERS = 'F'"),
    (450, "ANIMAUX WHERE SUPPRIME = 0"),
    (10, "ANIMAUX WHERE SUPPRIME = 1"),
    (30, "PROPRIETAIRES WHERE ROLE = 'D'"),
    (40, "PROPRIETAIRES WHERE ROLE = 'P' AND DT_FIN <> '0000-00-00'"),
    (8, "TYPES_RDV WHERE ACTIF = 'O'"),
    (1, "TYPES_RDV WHERE ACTIF = 'N'"),
    (2500, "RDV"),
    (500, "RDV WHERE D_DEBUT >= '2026-03-05'"),
    (60, "RDV WHERE D_FIN IS NULL OR D_FIN = '0000-00-00 00:00:00'"),
    (40, "RDV WHERE ID_VETO IS NULL"),
    (24, "RDV WHERE ID_TYPE IS NULL"),
    (3, "RDV WHERE STATUT = 'Z' AND D_DEBUT < '2026-03-04'"),
    (6, "RDV WHERE STATUT IS NULL AND D_DEBUT > '2026-03-04'"),
    (2500, "RDV_JOURNAL WHERE ACTION = 'C'"),
    (12, "ABSENCES"),
    (1200, "CONSULTATIONS WHERE SUPPRIME = 0"),
    (15, "CONSULTATIONS WHERE SUPPRIME = 1"),
    (1500, "FACTURES"),
    (40, "FACTURES WHERE ETAT = 'B'"),
    (120, "ARTICLES WHERE ACTIF = 'O'"),
    (6, "ARTICLES WHERE ACTIF = 'N'"),
]


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("clinic") / "clinic.sqlite3"
    create(path, today=TODAY)
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        yield connection


def number(text: str) -> Decimal:
    return Decimal(text.replace(" ", "").replace(",", "."))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def blocking(clinic: sqlite3.Connection) -> Iterator[tuple[int, Span]]:
    """Vet and time of every row that takes time, as a reader fills in what is missing."""
    rows = clinic.execute(
        "SELECT RDV.*, COALESCE(DUREE_MIN, 30) AS MINUTES FROM RDV LEFT JOIN TYPES_RDV"
        " USING (ID_TYPE) WHERE ID_VETO IS NOT NULL AND COALESCE(STATUT, 'P') NOT IN ('A', 'N')"
    )
    for row in rows:
        start = moment(row["D_DEBUT"])
        end = start + timedelta(minutes=row["MINUTES"])
        if row["D_FIN"] not in (None, NO_MOMENT):
            assert moment(row["D_FIN"]) == end
        yield row["ID_VETO"], (start, end)


def shifts(clinic: sqlite3.Connection, day: date) -> Iterator[tuple[int, Span]]:
    """Vet and time of every shift that begins on `day`."""
    for row in clinic.execute("SELECT * FROM HORAIRES WHERE JOUR = ?", (day.isoweekday(),)):
        start = datetime.combine(day, time.fromisoformat(row["H_DEBUT"]))
        end = datetime.combine(day, time.fromisoformat(row["H_FIN"]))
        yield row["ID_VETO"], (start, end if end > start else end + timedelta(days=1))


def away(clinic: sqlite3.Connection, vet: int, span: Span) -> timedelta:
    """How much of `span` the vet is absent."""
    total = timedelta()
    for row in clinic.execute("SELECT * FROM ABSENCES WHERE ID_VETO = ?", (vet,)):
        start, end = max(moment(row["D_DEBUT"]), span[0]), min(moment(row["D_FIN"]), span[1])
        total += max(end - start, timedelta())
    return total


def stock(clinic: sqlite3.Connection) -> dict[int, Decimal]:
    levels: dict[int, Decimal] = defaultdict(Decimal)
    for row in clinic.execute("SELECT ID_ART, QTE FROM LOTS"):
        levels[row["ID_ART"]] += number(row["QTE"])
    return levels


@pytest.mark.parametrize(("count", "rows"), COUNTS)
def test_the_clinic_holds_exactly_this_many(
    clinic: sqlite3.Connection, count: int, rows: str
) -> None:
    assert clinic.execute(f"SELECT COUNT(*) FROM {rows}").fetchone()[0] == count


@pytest.mark.long
def test_the_same_day_and_seed_give_the_same_clinic(
    clinic: sqlite3.Connection, tmp_path: Path
) -> None:
    create(tmp_path / "again", today=TODAY)
    create(tmp_path / "other", today=TODAY, seed=2001)
    with (
        closing(sqlite3.connect(tmp_path / "again")) as again,
        closing(sqlite3.connect(tmp_path / "other")) as other,
    ):
        assert list(again.iterdump()) == list(clinic.iterdump())
        assert list(other.iterdump()) != list(clinic.iterdump())


@pytest.mark.parametrize(
    ("today", "seed"),
    [
        (date(2024, 2, 29), 1),
        (date(2025, 3, 30), 2),
        *(
            pytest.param(day, seed, marks=pytest.mark.long)
            for day, seed in (
                (date(2025, 10, 25), 3),
                (date(2026, 12, 31), 4),
                (date(2027, 1, 3), 5),
            )
        ),
    ],
)
def test_any_day_and_any_seed_give_a_full_clinic(today: date, seed: int) -> None:
    tables = make_tables(today, seed)

    assert len(tables["RDV"]) == 2500
    assert len(tables["CONSULTATIONS"]) == 1215
    assert len(tables["FACTURES"]) == 1500
    ahead = [row for row in tables["RDV"] if row[5] > f"{today} 23:59"]
    assert sum(row[5] >= f"{today + timedelta(days=1)} 06:00" for row in ahead) >= 499


def test_the_clinic_has_a_mapping_beside_it() -> None:
    assert (MAPPING.parent, MAPPING.name) == (SCHEMA.parent, "clinic.yaml")


def test_an_existing_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "clinic"
    path.write_text("mine")

    with pytest.raises(FileExistsError):
        create(path, today=TODAY)

    assert path.read_text() == "mine"


def test_an_interrupted_run_leaves_no_clinic_and_the_next_one_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(today: date, seed: int) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "clinic"
    with monkeypatch.context() as patch:
        patch.setattr("adapters.sample.make_tables", interrupted)
        with pytest.raises(KeyboardInterrupt):
            create(path, today=TODAY)
    assert not path.exists()
    assert (tmp_path / "clinic.part").exists()

    create(path, today=TODAY)

    assert [file.name for file in tmp_path.iterdir()] == ["clinic"]


def test_rows_have_the_columns_of_their_table(clinic: sqlite3.Connection) -> None:
    tables = make_tables(TODAY, 1987)
    named = clinic.execute("SELECT name FROM sqlite_master WHERE type = 'table'")

    assert {row[0] for row in named} == set(tables)
    for table, rows in tables.items():
        columns = [row["name"] for row in clinic.execute(f"PRAGMA table_info({table})")]
        assert {len(row) for row in rows} == {len(columns)}
        assert [field.upper() for field in getattr(rows[0], "_fields", columns)] == columns


def test_every_reference_leads_to_a_row(clinic: sqlite3.Connection) -> None:
    references = [
        ("COORDONNEES", "ID_PERS", "PERSONNES", "ID_PERS"),
        ("PROPRIETAIRES", "ID_PERS", "PERSONNES", "ID_PERS"),
        ("PROPRIETAIRES", "ID_ANIMAL", "ANIMAUX", "ID_ANIMAL"),
        ("ANIMAUX", "CODE_ESP", "ESPECES", "CODE_ESP"),
        ("RDV", "ID_ANIMAL", "ANIMAUX", "ID_ANIMAL"),
        ("RDV", "ID_VETO", "PERSONNES", "ID_PERS"),
        ("RDV", "ID_TYPE", "TYPES_RDV", "ID_TYPE"),
        ("RDV_JOURNAL", "ID_RDV", "RDV", "ID_RDV"),
        ("CONSULTATIONS", "ID_RDV", "RDV", "ID_RDV"),
        ("CONSULTATIONS", "ID_ANIMAL", "ANIMAUX", "ID_ANIMAL"),
        ("CONSULTATIONS", "ID_VETO", "PERSONNES", "ID_PERS"),
        ("FACTURES", "ID_PERS", "PERSONNES", "ID_PERS"),
        ("LIGNES_FACT", "ID_FACT", "FACTURES", "ID_FACT"),
        ("REGLEMENTS", "ID_FACT", "FACTURES", "ID_FACT"),
        ("ARTICLES", "ID_FOURN", "PERSONNES", "ID_PERS"),
        ("LOTS", "ID_ART", "ARTICLES", "ID_ART"),
    ]
    for table, column, target, key in references:
        lost = clinic.execute(
            f"SELECT COUNT(*) FROM {table} WHERE {column} IS NOT NULL"
            f" AND {column} NOT IN (SELECT {key} FROM {target})"
        )
        assert lost.fetchone()[0] == 0, (table, column)


def test_names_are_as_untidy_as_people_type_them(clinic: sqlite3.Connection) -> None:
    rows = clinic.execute("SELECT * FROM PERSONNES WHERE GENRE_PERS = 'C'").fetchall()
    named = [row["NOM"] for row in rows if row["NOM"]]

    assert 0.25 < sum(name != name.strip() for name in named) / len(named) < 0.42
    assert 0.4 < sum(name == name.upper() for name in named) / len(named) < 0.6
    assert sum(row["PRENOM"] == "" for row in rows) >= 5
    companies = [row for row in rows if row["NOM"] == ""]
    assert len(companies) == 12
    assert all(row["RAISON_SOC"].strip() and row["PRENOM"] is None for row in companies)
    assert {"Éléonore", "François", "Jean-Pierre"} <= {
        (row["PRENOM"] or "").strip() for row in rows
    }
    assert {"LEFÈVRE", "CHÂTELAIN", "D'ALMEIDA"} <= {name.strip().upper() for name in named}
    assert {row["DT_MODIF"] for row in rows} >= {None, NO_MOMENT}


def test_contacts_reach_nobody_and_at_most_one_of_a_kind_is_preferred(
    clinic: sqlite3.Connection,
) -> None:
    rows = clinic.execute("SELECT * FROM COORDONNEES").fetchall()
    fictional = ("019900", "026191", "035301", "046571", "053649", "063998")

    for row in rows:
        if row["TYPE"] == "M":
            assert row["VALEUR"].endswith(("@example.fr", "@example.com", "@example.org"))
            assert row["VALEUR"].isascii()
        else:
            digits = row["VALEUR"].replace("+33 ", "0").replace(" ", "").replace(".", "")
            assert len(digits) == 10
            assert digits.startswith(fictional)
    preferred = Counter((row["ID_PERS"], row["TYPE"]) for row in rows if row["PREFERE"] == "O")
    assert set(preferred.values()) == {1}
    per_person = Counter(row["ID_PERS"] for row in rows)
    assert max(per_person.values()) == 4
    assert len(per_person) < 327
    first = {row["ID_PERS"]: row["ACTIF"] for row in reversed(rows)}
    assert sum(active == "N" for active in first.values()) > 30


def test_an_animal_has_one_owner_at_a_time(clinic: sqlite3.Connection) -> None:
    periods: dict[int, list[tuple[str, str, int]]] = defaultdict(list)
    for row in clinic.execute("SELECT * FROM PROPRIETAIRES WHERE ROLE = 'P' ORDER BY DT_DEBUT"):
        periods[row["ID_ANIMAL"]].append((row["DT_DEBUT"], row["DT_FIN"], row["ID_PERS"]))

    assert len(periods) == 455
    for owned in periods.values():
        assert [end for _, end, _ in owned].count(NO_DAY) == 1
        assert owned[-1][1] == NO_DAY
        assert owned[-1][0] <= TODAY.isoformat()
        for (start, end, before), (following, _, after) in itertools.pairwise(owned):
            assert start < end <= following
            assert before != after


def test_a_keeper_is_never_the_owner(clinic: sqlite3.Connection) -> None:
    both = clinic.execute(
        "SELECT COUNT(*) FROM PROPRIETAIRES D JOIN PROPRIETAIRES P USING (ID_ANIMAL, ID_PERS)"
        " WHERE D.ROLE = 'D' AND P.ROLE = 'P' AND P.DT_FIN = '0000-00-00'"
    )
    assert both.fetchone()[0] == 0


def test_one_former_client_still_has_animals_and_appointments(clinic: sqlite3.Connection) -> None:
    rows = clinic.execute(
        "SELECT ID_PERS, COUNT(DISTINCT ID_ANIMAL), SUM(D_DEBUT < '2026-03-04'),"
        " SUM(D_DEBUT > '2026-03-05') FROM PERSONNES JOIN PROPRIETAIRES USING (ID_PERS)"
        " JOIN RDV USING (ID_ANIMAL) WHERE GENRE_PERS = 'C' AND ACTIF = 'N' GROUP BY ID_PERS"
    ).fetchall()

    assert len(rows) == 1
    assert all(count > 0 for count in rows[0][1:])


def test_extra_fields_are_missing_for_some_and_hold_lists_and_commas(
    clinic: sqlite3.Connection,
) -> None:
    fields: dict[str, list[str]] = defaultdict(list)
    for row in clinic.execute("SELECT * FROM CHAMPS_SUPPL WHERE TABLE_NOM = 'ANIMAUX'"):
        fields[row["CHAMP"]].append(row["VALEUR"])

    assert set(fields) == {"ROBE", "POIDS", "PUCE", "ALERTES"}
    assert all(20 < len(values) < 460 for values in fields.values())
    assert any("," in value for value in fields["POIDS"])
    assert all(number(value) > 0 for value in fields["POIDS"])
    assert all(len(value) == 15 and value.startswith("250269") for value in fields["PUCE"])
    assert len(set(fields["PUCE"])) == len(fields["PUCE"])
    assert any(";" in value for value in fields["ALERTES"])


def test_no_vet_is_booked_twice_at_a_time(clinic: sqlite3.Connection) -> None:
    days: dict[int, list[Span]] = defaultdict(list)
    for vet, span in blocking(clinic):
        days[vet].append(span)

    assert len(days) == 7
    for spans in days.values():
        for (_, end), (start, _) in itertools.pairwise(sorted(spans)):
            assert end <= start


def test_rows_to_come_lie_in_a_shift_on_its_grid_and_outside_absences(
    clinic: sqlite3.Connection,
) -> None:
    rows = clinic.execute("SELECT * FROM RDV WHERE D_DEBUT >= '2026-03-05'").fetchall()

    for row in rows:
        vet, start, end = row["ID_VETO"], moment(row["D_DEBUT"]), moment(row["D_FIN"])
        days = (start.date() - timedelta(days=1), start.date())
        around = [
            opens
            for day in days
            for other, (opens, closes) in shifts(clinic, day)
            if other == vet and opens <= start and end <= closes
        ]
        assert len(around) == 1
        assert (start - around[0]) % timedelta(minutes=15) == timedelta()
        assert not away(clinic, vet, (start, end))
        assert row["STATUT"] in ("P", "C", "A", None)


def test_half_of_every_shift_to_come_is_free(clinic: sqlite3.Connection) -> None:
    taken = list(blocking(clinic))
    for offset in range(43):
        for vet, (opens, closes) in shifts(clinic, TODAY + timedelta(days=offset)):
            present = closes - opens - away(clinic, vet, (opens, closes))
            booked = sum(
                (
                    end - start
                    for who, (start, end) in taken
                    if who == vet and opens <= start < closes
                ),
                timedelta(),
            )
            assert 2 * booked <= present


def test_patients_to_come_live_and_have_an_owner(clinic: sqlite3.Connection) -> None:
    rows = clinic.execute(
        "SELECT COUNT(*) FROM RDV JOIN ANIMAUX A USING (ID_ANIMAL) JOIN PROPRIETAIRES P ON"
        " P.ID_ANIMAL = A.ID_ANIMAL AND P.ROLE = 'P' AND P.DT_FIN = '0000-00-00' WHERE"
        " D_DEBUT >= '2026-03-05' AND DT_DECES = '0000-00-00' AND ACTIF = 'O' AND SUPPRIME = 0"
    )
    assert rows.fetchone()[0] == 500


def test_no_patient_came_after_its_death(clinic: sqlite3.Connection) -> None:
    ghosts = clinic.execute(
        "SELECT COUNT(*) FROM RDV JOIN ANIMAUX USING (ID_ANIMAL) WHERE SUPPRIME = 1"
        " OR DT_DECES <> '0000-00-00' AND substr(D_DEBUT, 1, 10) > DT_DECES"
    )
    assert ghosts.fetchone()[0] == 0


def test_the_rows_of_today_are_done_going_on_or_expected(clinic: sqlite3.Connection) -> None:
    rows = clinic.execute("SELECT * FROM RDV WHERE D_DEBUT LIKE '2026-03-04%'").fetchall()

    assert len(rows) >= 10
    for row in rows:
        if row["D_FIN"] <= "2026-03-04 11:00:00":
            assert row["STATUT"] in "TPC"
        elif row["D_DEBUT"] <= "2026-03-04 11:00:00":
            assert row["STATUT"] == "E"
        else:
            assert row["STATUT"] in (None, "R", "P", "C")


def test_numbers_count_up_in_the_order_of_entry_to_the_counter(clinic: sqlite3.Connection) -> None:
    rows = clinic.execute("SELECT * FROM RDV ORDER BY ID_RDV").fetchall()
    numbers = [int(row["NUM_RDV"][6:]) for row in rows]

    assert numbers == list(range(numbers[0], numbers[0] + 2500))
    assert (
        clinic.execute("SELECT VALEUR FROM COMPTEURS WHERE NOM = 'RDV'").fetchone()[0]
        == (numbers[-1])
    )
    assert all(row["NUM_RDV"][1:5] == row["DT_SAISIE"][:4] for row in rows)
    entered = [row["DT_SAISIE"] for row in rows]
    assert entered == sorted(entered)
    assert entered[-1] < "2026-03-04 11:00:00"


def test_each_booking_was_journalled_once_as_created(clinic: sqlite3.Connection) -> None:
    rows = clinic.execute(
        "SELECT COUNT(DISTINCT ID_RDV) FROM RDV_JOURNAL JOIN RDV USING (ID_RDV)"
        " WHERE ACTION = 'C' AND D_ACTION = DT_SAISIE"
    )
    assert rows.fetchone()[0] == 2500


def test_two_vets_are_in_from_monday_to_saturday(clinic: sqlite3.Connection) -> None:
    days = defaultdict(set)
    for row in clinic.execute("SELECT * FROM HORAIRES"):
        days[row["ID_VETO"]].add(row["JOUR"])

    assert len(days) == 6
    assert all(4 <= len(worked) <= 6 for worked in days.values())
    for weekday in range(1, 7):
        assert sum(weekday in worked for worked in days.values()) >= 2
    nights = clinic.execute("SELECT ID_VETO, JOUR FROM HORAIRES WHERE H_FIN <= H_DEBUT").fetchall()
    assert [row["JOUR"] for row in nights] == [5, 6]
    assert nights[0]["ID_VETO"] == nights[1]["ID_VETO"]


def test_one_vet_at_most_is_away(clinic: sqlite3.Connection) -> None:
    rows = clinic.execute("SELECT * FROM ABSENCES ORDER BY D_DEBUT").fetchall()

    assert all(row["D_DEBUT"] < row["D_FIN"] for row in rows)
    assert all(a["D_FIN"] <= b["D_DEBUT"] for a, b in itertools.pairwise(rows))
    assert rows[0]["D_DEBUT"] < "2026-03-04" < rows[-1]["D_DEBUT"]


def test_the_former_vet_stands_only_on_the_past(clinic: sqlite3.Connection) -> None:
    row = clinic.execute(
        "SELECT COUNT(*), MAX(D_DEBUT) FROM RDV JOIN PERSONNES ON ID_PERS = ID_VETO"
        " WHERE ACTIF = 'N'"
    ).fetchone()
    assert row[0] > 20
    assert row[1] < (TODAY - timedelta(days=299)).isoformat()


def test_consultations_follow_their_booking(clinic: sqlite3.Connection) -> None:
    rows = clinic.execute(
        "SELECT C.*, R.ID_ANIMAL AS PATIENT, R.ID_VETO AS VET, STATUT FROM CONSULTATIONS C"
        " LEFT JOIN RDV R USING (ID_RDV)"
    ).fetchall()

    assert 40 < sum(row["ID_RDV"] is None for row in rows) < 80
    for row in rows:
        if row["ID_RDV"]:
            assert (row["ID_ANIMAL"], row["ID_VETO"]) == (row["PATIENT"], row["VET"])
            assert row["STATUT"] in "TE"
        assert row["NOTES_INTERNES"].startswith("INTERNE:")
        assert "INTERNE" not in row["RESUME"] + row["DIAGNOSTIC"] + row["CONSIGNES"]
        assert (row["D_VALID"] == NO_MOMENT) == (row["ETAT"] == "E")
        assert row["ETAT"] == "E" or row["D_DEBUT"] < row["D_VALID"]
    assert {row["IMPORTANCE"] for row in rows} == {"1", "2", "3"}
    assert sum(row["ETAT"] == "E" for row in rows) >= 12


def test_invoices_come_to_the_sum_of_their_lines(clinic: sqlite3.Connection) -> None:
    net: dict[int, Decimal] = defaultdict(Decimal)
    tax: dict[int, Decimal] = defaultdict(Decimal)
    counts: Counter[int] = Counter()
    for row in clinic.execute("SELECT * FROM LIGNES_FACT"):
        total = number(row["TOTAL_HT"])
        assert number(row["QTE"]) * number(row["PU_HT"]) == total
        net[row["ID_FACT"]] += total
        tax[row["ID_FACT"]] += total * number(row["TAUX_TVA"]) / 100
        counts[row["ID_FACT"]] += 1

    assert set(counts.values()) == {1, 2, 3, 4, 5}
    for row in clinic.execute("SELECT * FROM FACTURES"):
        sums = (net[row["ID_FACT"]], tax[row["ID_FACT"]])
        if row["ETAT"] == "B":
            assert row["NUMERO"] == row["TOTAL_HT"] == row["TOTAL_TVA"] == row["TOTAL_TTC"] == ""
            assert row["D_EMISSION"] == row["D_ECHEANCE"] == NO_DAY
        else:
            assert (number(row["TOTAL_HT"]), number(row["TOTAL_TVA"])) == sums
            assert number(row["TOTAL_TTC"]) == sum(sums)


def test_money_is_written_with_commas_blanks_and_minus(clinic: sqlite3.Connection) -> None:
    totals = [row[0] for row in clinic.execute("SELECT TOTAL_TTC FROM FACTURES WHERE ETAT <> 'B'")]

    assert all(total[-3] == "," and "." not in total for total in totals)
    assert any(" " in total for total in totals)
    assert 5 <= sum(total.startswith("-") for total in totals) <= 12
    assert any("," in row[0] for row in clinic.execute("SELECT QTE FROM LIGNES_FACT"))


def test_invoice_numbers_run_through_each_year(clinic: sqlite3.Connection) -> None:
    years: dict[str, list[int]] = defaultdict(list)
    rows = clinic.execute("SELECT * FROM FACTURES WHERE NUMERO <> '' ORDER BY D_EMISSION, ID_FACT")
    for row in rows:
        assert row["NUMERO"][1:5] == row["D_EMISSION"][:4]
        years[row["NUMERO"][1:5]].append(int(row["NUMERO"][6:]))

    assert len(years) == 3
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in years.values())


def test_settled_invoices_are_paid_to_the_cent_and_others_are_not(
    clinic: sqlite3.Connection,
) -> None:
    paid: dict[int, Decimal] = defaultdict(Decimal)
    for row in clinic.execute("SELECT * FROM REGLEMENTS JOIN FACTURES USING (ID_FACT)"):
        assert row["D_REGL"] >= row["D_EMISSION"]
        assert row["MODE"] in ("CB", "CH", "ES", "VI")
        paid[row["ID_FACT"]] += number(row["MONTANT"])

    states: Counter[str] = Counter()
    for row in clinic.execute("SELECT * FROM FACTURES"):
        states[row["ETAT"]] += 1
        if row["ETAT"] == "S":
            assert paid[row["ID_FACT"]] == number(row["TOTAL_TTC"])
        elif row["ETAT"] == "P":
            assert 0 < paid[row["ID_FACT"]] < number(row["TOTAL_TTC"])
        else:
            assert row["ID_FACT"] not in paid
    assert all(states[state] > 20 for state in "BEPSA")


def test_most_payers_are_active_clients_and_some_are_not_the_owner(
    clinic: sqlite3.Connection,
) -> None:
    active = clinic.execute(
        "SELECT COUNT(*) FROM FACTURES JOIN PERSONNES USING (ID_PERS)"
        " WHERE GENRE_PERS = 'C' AND ACTIF = 'O'"
    ).fetchone()[0]
    strangers = clinic.execute(
        "SELECT COUNT(DISTINCT F.ID_FACT) FROM FACTURES F JOIN LIGNES_FACT L USING (ID_FACT)"
        " WHERE LIEN <> '' AND NOT EXISTS (SELECT 1 FROM PROPRIETAIRES P WHERE ROLE = 'P'"
        " AND P.ID_PERS = F.ID_PERS AND 'ANIMAL:' || P.ID_ANIMAL = LIEN)"
    ).fetchone()[0]

    assert 1450 <= active <= 1500
    assert 20 <= strangers <= 100


def test_fifteen_articles_are_low_and_texts_would_miss_three(clinic: sqlite3.Connection) -> None:
    levels = stock(clinic)
    rows = clinic.execute(
        "SELECT ID_ART, VALEUR FROM ARTICLES JOIN CHAMPS_SUPPL ON TABLE_NOM = 'ARTICLES'"
        " AND ID_FICHE = ID_ART AND CHAMP = 'SEUIL' WHERE ACTIF = 'O'"
    ).fetchall()
    low = [row for row in rows if levels[row["ID_ART"]] <= number(row["VALEUR"])]

    assert len(rows) == 112
    assert len(low) == 15
    assert sum(str(levels[row["ID_ART"]]) > row["VALEUR"] for row in low) == 3
    assert any(levels[row["ID_ART"]] == number(row["VALEUR"]) for row in low)
    assert any(levels[row["ID_ART"]] == 0 for row in low)
    high = [row for row in rows if row not in low]
    assert sum(str(levels[row["ID_ART"]]) <= row["VALEUR"] for row in high) >= 3


def test_a_stock_is_spread_over_lots_and_some_have_none(clinic: sqlite3.Connection) -> None:
    lots = Counter(row["ID_ART"] for row in clinic.execute("SELECT ID_ART FROM LOTS"))

    assert set(lots.values()) == {1, 2, 3}
    assert 3 <= 126 - len(lots) <= 12
    assert all(level >= 0 for level in stock(clinic).values())
