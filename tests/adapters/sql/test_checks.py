"""Before it serves, the database is asked for everything that the mapping names."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adapters.base import BackendUnavailable
from adapters.doctor.sql import examine
from adapters.documents.problems import DocumentErrors
from adapters.examination import Examination, Verdict
from adapters.sample import MAPPING
from adapters.sql.checks import checks_of
from adapters.sql.engines.sqlite import SqliteSpeech
from tests.adapters.clinic import connect, run

SAMPLE = MAPPING.read_text()

# what stands in the sample's mapping, what stands there instead, what the database says of it
WRONG = [
    ("c.TYPE = 'T'", "c.TIPE = 'T'", "no such column: c.TIPE"),
    ("key: p.ID_PERS", "key: p.ID_PERSON", "no such column: p.ID_PERSON"),
    ("from: RDV r\n", "from: RENDEZVOUS r\n", "no such table: RENDEZVOUS"),
    ("where: t.ACTIF = 'O'", "where: t.ACTIVE = 'O'", "no such column: t.ACTIVE"),
    ("from: HORAIRES h", "from: HOURS h", "no such table: HOURS"),
    ("weekday: h.JOUR", "weekday: h.JOURS", "no such column: h.JOURS"),
    ("start: b.D_DEBUT", "start: b.DEBUT", "no such column: b.DEBUT"),
    ("minutes: t.DUREE_MIN", "minutes: t.DUREE", "no such column: t.DUREE"),
    ("counter: COMPTEURS", "counter: COMPTEUR", "no such table: COMPTEUR"),
    ("column: VALEUR", "column: VALUE", "no such column: COMPTEURS.VALUE"),
    ("insert: RDV_JOURNAL", "insert: JOURNAL", "no such table: JOURNAL"),
    ("ACTION: C", "ACTIONS: C", "has no column named ACTIONS"),
    ("strftime('%Y', 'now')", "year('now')", "no such function: year"),
    ("firstName: p.PRENOM", 'firstName: TRIM("PRENOMM")', 'no such column: "PRENOMM"'),
    ("where: t.ACTIF = 'O'", "where: ('O' = \"ACTIVE\")", 'no such column: "ACTIVE"'),
    ("key: r.ID_RDV  ", "key: r.ID_RVD  ", "no such column: r.ID_RVD"),
    ("reference: r.REF_EXT", "reference: r.REF", "no such column: r.REF"),
]


async def said(database: Path, text: str) -> list[str]:
    """What `check` says of a mapping, as `line: what`."""
    adapter = connect(database, mapping=text)
    try:
        await adapter.check()
    except DocumentErrors as error:
        return [f"{each.line}: {each.text}" for each in error.problems]
    finally:
        await adapter.aclose()
    return []


@pytest.mark.parametrize(("right", "wrong", "expected"), WRONG)
async def test_what_the_database_does_not_have_is_named_with_its_line(
    database: Path, right: str, wrong: str, expected: str
) -> None:
    line = SAMPLE[: SAMPLE.index(right)].count("\n") + 1
    [problem] = await said(database, SAMPLE.replace(right, wrong, 1))
    assert expected in problem
    assert abs(int(problem.split(":")[0]) - line) <= 2


CUT = "; in YAML ` #` begins a comment, which cuts the text here: put the whole in quotes"


@pytest.mark.parametrize(
    ("wrong", "cut"),
    [
        ("firstName: p.PRENOM || ' #1'", True),
        ("firstName: UPPER(p.PRENOM #1)", True),
        ("firstName: {source: p.PRENOM || ' #1'\n      }", True),
        ("firstName: p.PRENOMM # the first name, it's short", False),
        ("firstName: \"p.PRENOMM || ' #1'\"", False),
    ],
)
async def test_a_text_that_a_comment_cut_short_is_named(
    database: Path, wrong: str, cut: bool
) -> None:
    [problem] = await said(database, SAMPLE.replace("firstName: p.PRENOM", wrong, 1))
    assert problem.endswith(CUT) == cut


async def test_a_quoted_name_that_is_one_and_a_text_of_the_same_letters_are_fine(
    database: Path,
) -> None:
    right = 'lastName: COALESCE(NULLIF(TRIM("p"."NOM"), \'\'), "RAISON_SOC", \'NOMM\')'
    text = re.sub("lastName: .*", lambda _: right, SAMPLE, count=1)
    assert await said(database, text) == []


async def test_texts_that_only_close_one_another_are_each_named(database: Path) -> None:
    text = SAMPLE.replace("firstName: p.PRENOM", 'firstName: "p.PRENOM), (\'x"', 1)
    text = re.sub("lastName: .*", 'lastName: "y\'), (p.NOM"', text, count=1)
    problems = await said(database, text)
    first = text[: text.index("firstName: ")].count("\n") + 1
    assert [int(each.split(":")[0]) for each in problems] == [first, first + 1]


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("key: t.LIBELLE", "the key of a row here is longer than 8 bytes"),
        ("key: {source: t.ID_TYPE, as: native id}", "the key of a row here is no UUID"),
    ],
)
async def test_a_key_of_one_row_that_makes_no_id_is_a_warning(
    database: Path, wrong: str, expected: str
) -> None:
    """Another row may come first tomorrow; all rows are looked at by `backend check`."""
    adapter = connect(database, mapping=SAMPLE.replace("key: t.ID_TYPE", wrong, 1))
    [warning] = await adapter.check()
    assert expected in warning.text
    found = [each async for each in examine(adapter, Examination(now=datetime.now(UTC)))]
    [same] = [each for each in found if each.text == warning.text]
    assert same.verdict is Verdict.WARNING
    assert same.place == f"{warning.file}:{warning.line}:{warning.column}"
    assert any(each.verdict is Verdict.FAILED and each.check == "rows" for each in found)
    await adapter.aclose()


async def test_a_sound_mapping_is_asked_about_row_by_row_not_field_by_field(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, explain = [], SqliteSpeech.explain

    def counted(self: SqliteSpeech, connection: Any, statement: Any, given: Any) -> Any:
        asked.append(statement)
        return explain(self, connection, statement, given)

    monkeypatch.setattr(SqliteSpeech, "explain", counted)
    assert await said(database, SAMPLE) == []
    adapter = connect(database)
    assert len(asked) < len(list(checks_of(adapter.mapping))) / 4
    await adapter.aclose()


async def test_everything_is_named_at_once_and_nothing_is_run(database: Path) -> None:
    text = SAMPLE
    for right, wrong, _ in WRONG[:4]:
        text = text.replace(right, wrong, 1)
    counted = "SELECT (SELECT VALEUR FROM COMPTEURS WHERE NOM = 'RDV'), (SELECT count(*) FROM RDV)"
    before = run(database, counted)
    assert len(await said(database, text)) == 4
    assert await said(database, SAMPLE) == []
    assert run(database, counted) == before


@pytest.mark.parametrize("name", ["nowhere.db", "spoilt.db"])
async def test_a_database_that_cannot_be_asked_is_unavailable(tmp_path: Path, name: str) -> None:
    (tmp_path / "spoilt.db").write_bytes(b"no database" * 100)
    adapter = connect(tmp_path / name)
    with pytest.raises(BackendUnavailable):
        await adapter.check()
    await adapter.aclose()
