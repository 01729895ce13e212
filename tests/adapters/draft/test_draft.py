"""A drafted mapping: how much of it is right, that it loads, and that it changes nothing."""

import asyncio
import hashlib
import re
import socket
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from adapters.base import BackendUnavailable, Query
from adapters.documents.document import parse_document
from adapters.documents.problems import DocumentErrors
from adapters.draft import draft_mapping
from adapters.draft.database import are_codes
from adapters.draft.document import quote
from adapters.draft.vocabulary import FIELDS, likeness, phrases, tokens
from adapters.mapping.loader import load_mapping
from gateway.backend import shapes
from gateway.contract.fields import UUID
from gateway.contract.resources import RESOURCES
from tests.adapters.clinic import NOW, connect, copy_to
from tests.adapters.draft.answers import DUTCH, ENGLISH, GERMAN, SAMPLE, answers
from tests.adapters.servers import execute, mariadb_database, postgres_database
from tests.policies import NEW

HERE = Path(__file__).parent


def statements(name: str) -> list[str]:
    text = (HERE / name).read_text(encoding="utf-8")
    return [each.strip() for each in text.split(";\n") if each.strip()]


class Draft(NamedTuple):
    text: str
    guesses: dict[str, Any]


async def drafted(url: str) -> Draft:
    said = "the clock on the wall"
    return Draft(*await draft_mapping(url, shapes(), "Europe/Berlin", said, accept=True))


def guessed(draft: Draft) -> dict[str, str]:
    found: dict[str, str] = {}
    for resource, rows in draft.guesses.items():
        if rows is None:
            continue
        found |= {f"{resource}.{name}": each["column"] for name, each in rows["fields"].items()}
        for part, inner in rows.get("lists", {}).items():
            found |= {
                f"{resource}.{part}.{name}": each["column"]
                for name, each in inner["fields"].items()
            }
    return found


def wrong(draft: Draft, answer: str) -> dict[str, Any]:
    """The fields that were not guessed right, with what was guessed."""
    found = guessed(draft)
    return {
        field: (found.get(field), column)
        for field, column in answers(answer).items()
        if found.get(field) != column
    }


@contextmanager
def english() -> Iterator[str]:
    with postgres_database(*statements("english.sql")) as url:
        yield url


@contextmanager
def german() -> Iterator[str]:
    with mariadb_database(*statements("german.sql")) as url:
        yield url


def url_of(database: Path) -> str:
    return f"sqlite:///{database}"


@contextmanager
def dutch() -> Iterator[str]:
    """A small practice whose tables and columns are called in Dutch."""
    with TemporaryDirectory() as folder:
        database = Path(folder, "praktijk.db")
        with closing(sqlite3.connect(database)) as connection:
            connection.executescript((HERE / "dutch.sql").read_text(encoding="utf-8"))
        yield url_of(database)


@contextmanager
def sample() -> Iterator[str]:
    with TemporaryDirectory() as folder:
        yield url_of(copy_to(Path(folder)))


@cache
def draft_of(opened: Callable[[], AbstractContextManager[str]]) -> Draft:
    """The draft of one of these databases as it is, made once for all tests that read it."""
    with opened() as url, ThreadPoolExecutor(1) as thread:  # a test has a loop of its own
        return thread.submit(asyncio.run, drafted(url)).result()


@pytest.mark.parametrize(
    ("opened", "answer"), [(sample, SAMPLE), (english, ENGLISH), (german, GERMAN)]
)
def test_nearly_all_fields_of_a_database_are_guessed(opened: Any, answer: str) -> None:
    missed = wrong(draft_of(opened), answer)
    assert len(missed) <= 1, missed


@pytest.mark.parametrize(
    ("opened", "answer"),
    [(sample, SAMPLE), (english, ENGLISH), (german, GERMAN), (dutch, DUTCH)],
)
def test_no_wrong_column_is_called_sure(opened: Any, answer: str) -> None:
    draft = draft_of(opened)
    missed = {field.rpartition(".") for field in wrong(draft, answer)}
    for place, _, field in missed:
        resource, _, part = place.partition(".")
        rows = draft.guesses[resource]
        fields = (rows["lists"][part] if part else rows)["fields"]
        assert not fields.get(field, {"proof": ""})["proof"], (place, field)


def plural(tmp_path: Path, change: Callable[[str], str] = str) -> Path:
    """Another, whose tables are called in the plural, and one of whose clients is a company."""
    database = tmp_path / "dieren.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(change((HERE / "dutch_plural.sql").read_text(encoding="utf-8")))
    return database


def test_all_fields_of_a_dutch_database_are_guessed() -> None:
    assert wrong(draft_of(dutch), DUTCH) == {}


def test_a_dutch_diary_and_names_are_guessed() -> None:
    data = parse_document(draft_of(dutch).text.encode(), "draft").data
    assert data["diary"]["hours"][0]["from"] == "rooster r"
    assert [each["from"] for each in data["diary"]["busy"]] == ["afspraak a", "afwezig a"]
    last = data["resources"]["clients"]["fields"]["lastName"]
    assert last["source"] == ["k.tussenvoegsel", "k.achternaam"]
    assert data["booking"]["steps"][0]["key"] == "afspraaknr"
    assert "afspraaknr" not in data["booking"]["steps"][0]["values"]


async def test_a_company_keeps_its_name_beside_a_prefix_of_last_names(tmp_path: Path) -> None:
    draft = await drafted(url_of(plural(tmp_path)))
    clients = parse_document(draft.text.encode(), "draft").data["resources"]["clients"]
    assert clients["fields"]["lastName"]["source"] == [
        "e.tussenvoegsel",
        "COALESCE(NULLIF(TRIM(e.achternaam), ''), e.bedrijfsnaam)",
    ]


@pytest.mark.parametrize("vets", ["dierenartsen", "dierenarts", "medewerkers"])
@pytest.mark.parametrize("linked", [True, False])
async def test_animals_are_not_taken_for_their_doctors(
    vets: str, linked: bool, tmp_path: Path
) -> None:
    def change(script: str) -> str:
        named = script.replace("dierenartsen", vets)
        return named if linked else re.sub(r" REFERENCES \w+\(\w+\)", "", named)

    found = guessed(await drafted(url_of(plural(tmp_path, change))))
    assert found["vets.name"] == f"{vets}.achternaam"
    assert found["patients.name"] == "dieren.naam"
    assert found["appointments.patientId"] == "afspraken.dier_id"
    assert found["appointments.vetId"] == "afspraken.dierenarts_id"


VOIDED = """\
CREATE TABLE client (client_id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, phone TEXT,
  email TEXT, voided INTEGER NOT NULL, voided_by INTEGER);
CREATE TABLE bill (bill_id INTEGER PRIMARY KEY, client_id INTEGER REFERENCES client, number TEXT,
  total NUMERIC, bill_date TEXT, voided INTEGER NOT NULL);
CREATE TABLE bill_line (line_id INTEGER PRIMARY KEY, bill_id INTEGER REFERENCES bill,
  description TEXT, quantity INTEGER, price NUMERIC, is_voided INTEGER NOT NULL);
CREATE TABLE provider (provider_id INTEGER PRIMARY KEY, name TEXT, speciality TEXT,
  retired INTEGER NOT NULL);
WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 60)
INSERT INTO client SELECT n, 'Ana', 'Silva ' || n, '+351910000' || n, n || '@example.org',
  n % 9 = 0, CASE WHEN n % 9 = 0 THEN 1 END FROM n;
INSERT INTO bill SELECT client_id, client_id, 'R' || client_id, 20.5, '2026-10-10 10:00:00',
  voided FROM client;
INSERT INTO bill_line SELECT bill_id, bill_id, 'Pill', 1, 20.5, bill_id % 2 FROM bill;
INSERT INTO provider SELECT client_id, 'Dr. Vet ' || client_id, 'surgery', client_id = 6
  FROM client WHERE client_id < 7;
"""


async def test_rows_that_are_voided_or_retired_are_left_out(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "voided.db")) as database:
        database.executescript(VOIDED)
    text, _ = await draft_mapping(
        f"sqlite:///{tmp_path}/voided.db", shapes(), "Europe/Lisbon", "", accept=True
    )
    resources = parse_document(text.encode(), "draft").data["resources"]
    assert resources["clients"]["where"] == "c.voided = 0"  # and nothing of voided_by
    assert resources["vets"]["where"] == "p.retired = 0"
    assert resources["invoices"]["where"] == "b.voided = 0"
    assert resources["invoices"]["lists"]["lines"]["where"] == "i.is_voided = 0"


@pytest.mark.parametrize("opened", [english, german])
def test_a_draft_loads_without_a_problem(tmp_path: Path, opened: Any) -> None:
    file = tmp_path / "draft.yaml"
    file.write_text(draft_of(opened).text, encoding="utf-8")
    mapping, _ = load_mapping(file, shapes(), "sql")
    assert set(mapping.resources) == set(shapes()) - {"slots"}
    assert mapping.zone == "Europe/Berlin"


async def test_the_sample_clinic_reads_the_same_through_its_draft(tmp_path: Path) -> None:
    database = copy_to(tmp_path)
    draft, _ = await draft_mapping(url_of(database), shapes(), "Europe/Paris", "", accept=True)
    own, other = connect(database), connect(database, mapping=draft)
    try:
        await other.check()
        same = []
        for resource in sorted(set(shapes()) - {"slots"}):
            query = Query(resource=resource, now=NOW, limit=100)
            one = {each["id"]: each for each in (await own.read_many(query)).records}
            two = {each["id"]: each for each in (await other.read_many(query)).records}
            assert one.keys() == two.keys(), resource
            known = set(shapes()[resource]) - set(NEW.get(resource, ()))
            fields = sorted(field for field in known if "[]" not in field)
            same += [alike(resource, field, one, two) for field in fields]
    finally:
        await own.aclose()
        await other.aclose()
    missed = [f"{resource}.{field} {share:.0%}" for resource, field, share in same if share < 0.9]
    assert len(missed) <= 0.05 * len(same), missed


def alike(resource: str, field: str, one: Any, two: Any) -> tuple[str, str, float]:
    """In how many of the records a field is the same."""
    equal = sum(1 for each in one if one[each].get(field) == two[each].get(field))
    return resource, field, equal / len(one)


def test_nothing_is_written_to_a_file(database: Path) -> None:
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    asyncio.run(drafted(url_of(database)))
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert {each.name for each in database.parent.iterdir()} == {database.name}


async def test_nothing_is_written_to_a_server() -> None:
    with english() as url:
        asked = "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables"
        before = execute(url, "SELECT pg_stat_force_next_flush()", asked)
        await drafted(url)
        assert execute(url, "SELECT pg_stat_force_next_flush()", asked) == before


@pytest.mark.parametrize("opened", [english, german])
def test_no_value_of_a_person_is_shown(opened: Any) -> None:
    draft = draft_of(opened)
    told = f"{draft.text}{draft.guesses}"
    names = ["Muster", "Eva1", "Miller", "Rex", "Bello", "Smith"]
    for value in [*names, "@example.org", "0170", "+44", "bissig", "High Street"]:
        assert value not in told


def test_codes_that_nobody_knows_are_listed_for_a_decision() -> None:
    text = draft_of(sample).text
    assert "Z: null  # TODO: which status is this?" in text
    assert "A: CANCELLED" in text


def test_the_meaning_of_a_code_is_never_sure() -> None:
    lines = draft_of(sample).text.splitlines()
    guessed = [
        at
        for at, line in enumerate(lines)
        if line.strip().startswith("codes:") and any(": CANCELLED" in e for e in lines[at : at + 6])
    ]
    assert guessed
    for at in guessed:
        assert lines[at].endswith(
            "codes:  # likely, by their words: ask the clinic what each means"
        )
        assert not re.search("# sure(?! of the column)", lines[at - 2])
    assert "  # the code of a new appointment" not in "\n".join(lines)


async def test_codes_that_are_the_values_themselves_are_no_guess(tmp_path: Path) -> None:
    database = tmp_path / "plain.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(
            "CREATE TABLE appointments (id INTEGER PRIMARY KEY, starts DATETIME, status TEXT);"
            "INSERT INTO appointments (starts, status) VALUES"
            " ('2026-03-01 10:00', 'scheduled'), ('2026-03-02 10:00', 'CANCELLED')"
        )
    text = (await drafted(url_of(database))).text
    assert "status:  # likely: by its name\n" in text
    assert "codes:\n" in text


async def test_bits_are_written_as_the_gateway_reads_them() -> None:
    table = (
        "CREATE TABLE appointments (id INT AUTO_INCREMENT PRIMARY KEY, starts DATETIME,"
        " reason TEXT, status BIT({}), urgent BIT(1))"
    )
    rows = "INSERT INTO appointments (starts, status, urgent) VALUES ('2026-03-01', {}, b'1')"
    for width, codes in ((1, (0, 1)), (3, (0, 5))):
        some = [rows.format(each) for each in codes]
        with mariadb_database(table.format(width), *some) as url:
            text = (await drafted(url)).text
        assert "x0" not in text
        assert all(f'"{each}": null  # TODO: which status' in text for each in codes)
        assert "isUrgent: a.urgent  # likely" in text


def test_names_are_quoted_as_the_engine_wants_it() -> None:
    text = draft_of(english).text
    assert '"Pets" p' in text
    assert 'p."petName"' in text
    assert "branch_code: TODO  # TODO: branch_code must be written; what with?" in text


async def test_what_was_not_found_is_said_loudly(tmp_path: Path) -> None:
    database = tmp_path / "small.db"
    connection = sqlite3.connect(database)
    connection.execute(
        "CREATE TABLE klanten (id INTEGER PRIMARY KEY, voornaam TEXT, achternaam TEXT)"
    )
    connection.commit()
    connection.close()
    draft = await drafted(url_of(database))
    assert "firstName: k.voornaam" in draft.text
    assert "# no column was found for phone, email," in draft.text
    assert "TODO: no table was found for patients" in draft.text
    file = tmp_path / "draft.yaml"
    file.write_text(draft.text)
    with pytest.raises(DocumentErrors) as caught:
        load_mapping(file, shapes(), "sql")
    assert [each.text.split()[0] for each in caught.value.problems] == ["diary:"]


async def test_a_key_without_a_default_is_not_said_to_be_numbered() -> None:
    table = "CREATE TABLE appointments (id INT {} PRIMARY KEY, starts DATETIME, reason TEXT)"
    for numbered in ("", "AUTO_INCREMENT"):
        with mariadb_database(table.format(numbered)) as url:
            text = (await drafted(url)).text
        assert ("key: id  # the database numbers it" in text) is bool(numbered)
        assert ("TODO: if the database numbers it" in text) is not bool(numbered)


@pytest.mark.parametrize(
    ("table", "numbered"),
    [
        ("afspraken (id INTEGER PRIMARY KEY, aanvang DATETIME, reden TEXT)", True),
        ("afspraken (aanvang DATETIME, reden TEXT, nr INTEGER, PRIMARY KEY (nr))", True),
        ("afspraken (id INT PRIMARY KEY, aanvang DATETIME, reden TEXT)", False),
        (
            "afspraken (id INTEGER PRIMARY KEY, aanvang DATETIME, reden TEXT) WITHOUT ROWID",
            False,
        ),
    ],
)
async def test_a_key_that_sqlite_numbers_is_left_out_of_the_booking(
    tmp_path: Path, table: str, *, numbered: bool
) -> None:
    database = tmp_path / "small.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(f"CREATE TABLE {table}")
    text = (await drafted(url_of(database))).text
    assert ("  # the database numbers it" in text) is numbered
    assert ("TODO: if the database numbers it" in text) is not numbered


async def test_a_database_without_tables_makes_a_draft_of_todos(tmp_path: Path) -> None:
    database = tmp_path / "empty.db"
    sqlite3.connect(database).close()
    draft = await drafted(url_of(database))
    assert draft.text.count("TODO: no table was found") == 8
    assert "# TODO: booking is missing" in draft.text
    assert not re.search(r"TODO:\W*TODO", draft.text)


def test_a_text_with_a_backslash_is_no_code() -> None:
    """MySQL takes it and the next letter for one."""
    assert are_codes({"A", "B"})
    assert not are_codes({"A", "\\' OR 1=1 -- "})


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://nobody:hidden@127.0.0.1:1/none", "nothing listens there .ECONNREFUSED"),
        ("mysql://nobody:hidden@127.0.0.1:1/none", "nothing listens there .ECONNREFUSED"),
        ("sqlite:////nowhere/clinic.db", "does not exist"),
    ],
)
async def test_a_database_that_cannot_be_had_is_said_without_its_password(
    url: str, said: str
) -> None:
    with pytest.raises(BackendUnavailable, match=said) as caught:
        await drafted(url)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("url", ["oracle://a/b", "clinic.db", "postgresql://a:b:c:d/e"])
async def test_what_is_no_address_is_said_in_a_sentence(url: str) -> None:
    with pytest.raises(ValueError, match="database"):
        await drafted(url)


@pytest.mark.parametrize(
    ("server", "option", "said"),
    [
        (postgres_database, "foo=bar", "postgresql does not take foo as it is.*take it away"),
        (postgres_database, "sslmode=bogus", "postgresql does not take sslmode as.*take it away"),
        (mariadb_database, "foo=bar", "an option 'foo' that is not known: ssl_ca"),
    ],
)
async def test_an_option_of_the_address_that_is_not_taken_is_named_with_its_remedy(
    server: Any, option: str, said: str
) -> None:
    with server() as url, pytest.raises(ValueError, match=said):
        await drafted(f"{url}?{option}")


async def test_a_file_takes_no_options(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="takes nothing behind a"):
        await drafted(f"sqlite:///{tmp_path}/clinic.db?foo=bar")


async def test_a_table_that_cannot_be_read_keeps_no_other_from_being_read(tmp_path: Path) -> None:
    overflow = "AS (abs(-9223372036854775807 - id))"
    with closing(sqlite3.connect(tmp_path / "small.db")) as connection:
        connection.executescript(
            "CREATE TABLE clients (id INTEGER PRIMARY KEY, surname TEXT);"
            "CREATE TABLE pets (id INTEGER PRIMARY KEY, name TEXT, sex TEXT);"
            "INSERT INTO clients (surname) VALUES ('Miller');"
            "INSERT INTO pets (name, sex) VALUES ('Rex', 'm');"
            f"ALTER TABLE clients ADD COLUMN active INT {overflow}"
        )
    text = (await drafted(url_of(tmp_path / "small.db"))).text
    assert "from: clients c" in text
    assert "m: MALE" in text


async def test_the_options_of_the_gateway_s_own_address_are_taken() -> None:
    with postgres_database("CREATE TABLE clients (id int primary key)") as url:
        assert "from: clients c" in (await drafted(f"{url}?sslmode=prefer")).text


@pytest.mark.parametrize(
    ("name", "words", "least"),
    [
        ("ID_PERS", "personne", 0.5),
        ("DT_CREATION", "creation", 0.9),
        ("LastName", "last name", 1.0),
        ("geb-datum", "geb", 0.9),
        ("tbl_rechnungspositionen", "position", 0.7),
        ("ANIMAUX", "animal", 1.0),
        ("Klanten", "klant", 1.0),
    ],
)
def test_names_are_compared_by_their_words(name: str, words: str, least: float) -> None:
    assert likeness(tokens(name), phrases(words)) >= least
    assert likeness(tokens(name), phrases("invoice")) == 0


# What is made of other columns, or of the diary.
MADE = {"appointments.displayStatus", "stock.isLow", "slots.startTime", "slots.endTime"}


def test_each_field_that_a_column_holds_has_words_by_which_it_is_found() -> None:
    fields = {
        f"{resource.name}.{path}".replace("[]", "")
        for resource in RESOURCES
        for path in resource.paths
        if resource.at(path).format is not UUID
    }
    named = {f"{place}.{field}" for place, words in FIELDS.items() for field in words}
    assert fields - named == MADE, "add what its columns are called to vocabulary.yaml"
    assert named <= fields


@pytest.mark.parametrize(
    "value",
    ["a: b", "no", "null", "- x", "#x", "x #y", "'", '"', "a\\b", "1", "", "é", "{a", "@x", "true"],
)
def test_a_scalar_reads_back_as_it_was(value: str) -> None:
    read = parse_document(f"value: {quote(value)}\n".encode(), "draft").data["value"]
    assert read == value


ODD = """
CREATE TABLE "Clientes Activos" ("id cliente" TEXT PRIMARY KEY, nombre TEXT, "left" TEXT, alta INT);
CREATE TABLE mascotas (centro INT, num INT, nombre TEXT, "id cliente" TEXT,
    PRIMARY KEY (centro, num));
CREATE TABLE citas (cod_cita INTEGER PRIMARY KEY, centro INT, num INT, fecha TEXT, hora TEXT,
    duracion TEXT, motivo TEXT, FOREIGN KEY (centro, num) REFERENCES mascotas (centro, num));
INSERT INTO "Clientes Activos" VALUES ('CLI-0000001', 'Ana', '', 1700000000);
INSERT INTO mascotas VALUES (1, 7, 'Luna', 'CLI-0000001');
INSERT INTO citas VALUES (1, 1, 7, '28/03/2026', '10:30', '00:30:00', 'control');
"""


async def test_odd_keys_times_and_names_are_written_as_the_language_has_them(
    tmp_path: Path,
) -> None:
    database = tmp_path / "odd.db"
    connection = sqlite3.connect(database)
    connection.executescript(ODD)
    connection.close()
    data = parse_document((await drafted(url_of(database))).text.encode(), "draft").data
    clients = data["resources"]["clients"]
    assert clients["from"] == '"Clientes Activos" c'
    assert clients["key"] == {"source": 'c."id cliente"', "as": "hashed id"}
    assert clients["fields"]["createdAt"] == {"source": "c.alta", "as": "epoch"}
    assert data["resources"]["patients"]["key"] == ["m.centro", "m.num"]
    fields = data["resources"]["appointments"]["fields"]
    assert fields["patientId"] == ["c.centro", "c.num"]
    when = {"source": ["c.fecha", "c.hora"], "as": "local time", "pattern": "%d/%m/%Y %H:%M"}
    assert fields["scheduledAt"] == when
    assert fields["endTime"] == {**when, "plus": "c.duracion"}
    written = data["booking"]["steps"][-1]["values"]
    assert written["fecha"] == {"draft": "scheduledAt", "pattern": "%d/%m/%Y"}
    assert written["hora"] == {"draft": "scheduledAt", "pattern": "%H:%M"}


def test_the_head_of_a_draft_leaves_no_decision_open() -> None:
    with english() as url:
        head = asyncio.run(drafted(url)).text.partition("version: 2")[0]
    assert "backend check" in head
    assert "TODO" not in head


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_server_that_cannot_be_reached_is_named_with_its_port(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    said = f"the database on 127.0.0.1, port {port}, can't be reached: nothing listens there"
    with pytest.raises(BackendUnavailable, match=re.escape(said)):
        asyncio.run(drafted(f"{scheme}://u:pw@127.0.0.1:{port}/x"))
