"""Named expressions are written out where a mapping has expressions, and nowhere else."""

from pathlib import Path
from typing import Any

import pytest

from adapters.documents.document import parse_document
from adapters.documents.problems import DocumentErrors, Misfit
from adapters.mapping import checker  # noqa: F401 - with its table of checks
from adapters.mapping.expressions import LONGEST, NamedExpressions, OnClock, dated, on_clock
from adapters.mapping.loader import load_mapping
from adapters.mapping.models import MappingFile
from adapters.mapping.paths import path
from gateway.backend import shapes
from tests.adapters.mapping.test_mapping import SAMPLE
from tests.adapters.rest import cloud

TABLE = """\
expressions:
  label(code): SELECT l.TEXT FROM LABELS l WHERE l.CODE = {code}
  extra(of, name): "SELECT x.VALUER FROM EXTRAS x WHERE x.ID = {of}.ID AND x.NAME = {name}"
  minutes: "COALESCE(r.DUREE, {extra(r, 'MIN')}, 30)"
  plain: r.DUREE
  either: r.A = 1 OR r.B = 2
  joined: LEFT  JOIN TYPES t ON t.ID = r.ID_TYPE AND {either}
  lefts: LEFT(r.NOM, 3)
"""


def table(text: str = TABLE) -> NamedExpressions:
    return NamedExpressions(parse_document(text.encode(), "clinic.yaml"))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("r.DUREE", "r.DUREE"),
        ("{either}", "r.A = 1 OR r.B = 2"),
        ("r.C AND {either}", "r.C AND (r.A = 1 OR r.B = 2)"),
        ("{plain} + 1", "r.DUREE + 1"),
        ("{lefts} || 'x'", "(LEFT(r.NOM, 3)) || 'x'"),
        ("{ label( a.SEXE ) }", "SELECT l.TEXT FROM LABELS l WHERE l.CODE = a.SEXE"),
        ("{label(a.X + 1)}", "SELECT l.TEXT FROM LABELS l WHERE l.CODE = (a.X + 1)"),
        (
            "COALESCE({label('a, (b')}, '')",
            "COALESCE((SELECT l.TEXT FROM LABELS l WHERE l.CODE = 'a, (b'), '')",
        ),
        (
            "{label({plain})}",
            "SELECT l.TEXT FROM LABELS l WHERE l.CODE = r.DUREE",
        ),
        (
            "{minutes}",
            "COALESCE(r.DUREE, (SELECT x.VALUER FROM EXTRAS x WHERE x.ID = r.ID"
            " AND x.NAME = 'MIN'), 30)",
        ),
        ("RDV r {joined}", "RDV r LEFT  JOIN TYPES t ON t.ID = r.ID_TYPE AND (r.A = 1 OR r.B = 2)"),
        # what is no name stays
        ("r.NOM LIKE '{plain}' AND \"{plain}\" = `{plain}`",) * 2,
        ("r.X ~ '^[0-9]{4}$'",) * 2,
        ("{fn UCASE(r.NOM)} {d '2026-03-01'}",) * 2,
        ("{chip: chips[0], tag: 'x'}",) * 2,
        ("{minutes: {plain}}", "{minutes: r.DUREE}"),
    ],
)
def test_a_name_is_replaced_by_what_it_stands_for(written: str, meant: str) -> None:
    assert table().expanded(written) == meant


PATHS = """\
expressions:
  contacts: "telecom[?s == 'p']"
  either: telecom || others
  piped: "@ | telecom[?s == 'p']"
  values: "{contacts}.v"
  past: "telecom[?'2000-01-01' < :today]"
  first(x): "{x}[0]"
"""


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("{contacts}.v", [1, 2]),
        ("{contacts}.v | [0]", 1),
        (" { contacts } .v | [0]", 1),
        ("none || {contacts}.v", [1, 2]),
        ("length({contacts}.v)", 2),
        ("{values} | [0]", 1),
        ("{piped}.v | [1]", 2),
        ("{either}[1].v", 2),
        ("{either}.v", None),
        ("{past}.v", [1, 2, 3]),
        # brackets are of the list as a whole
        ("{contacts}[0].v", 1),
        ("{first({contacts})}.v", 1),
    ],
)
def test_a_path_goes_on_behind_a_name_as_if_it_were_written_out(written: str, found: Any) -> None:
    named = NamedExpressions(parse_document(PATHS.encode(), "cloud.yaml"), is_sql=False)
    assert named.problems == []
    telecom = [{"s": "p", "v": 1}, {"s": "p", "v": 2}, {"s": "f", "v": 3}]
    assert path(dated(named.expanded(written), "UTC"))({"telecom": telecom}) == found


def test_a_dot_behind_a_name_in_sql_leaves_its_parentheses() -> None:
    assert table("expressions:\n  row: f(a.X)\n").expanded("{row}.Y") == "(f(a.X)).Y"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{labl(r.X)}", "expressions has no labl (did you mean label?)"),
        ("{label}", "{label} has 0 values; label(code) takes 1"),
        ("{label(1, 2)}", "{label} has 2 values; label(code) takes 1"),
        ("{plain()} {plain(1)}", "{plain} has 1 values; plain takes none"),
        ("{label(r.X}", "{label(: write {label(value, value)}"),
        ("{extra(, 'x')}", "{extra(: write {extra(value, value)}"),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused(written: str, said: str) -> None:
    with pytest.raises(Misfit) as caught:
        table().expanded(written)
    assert str(caught.value) == said


def test_all_that_is_wrong_with_the_table_is_said_once_with_its_place() -> None:
    wrong = """\
expressions:
  a: "{b} + 1"
  b: "{a} + 1"
  c: "{b}"
  d(x, y): "{x}"
  e f: 1 + 1
  g: ""
  h: "{gone}"
  d(z): "{z}"
"""
    assert list(map(str, sorted(table(wrong).problems))) == [
        "clinic.yaml:2:3: a leads back to itself: a, b, a",
        "clinic.yaml:5:3: d(x, y): {y} stands nowhere in it",
        "clinic.yaml:6:3: e f is no name: write name, or name(parameter, parameter)",
        "clinic.yaml:7:3: g is empty: write an expression",
        "clinic.yaml:8:3: expressions has no gone",
        "clinic.yaml:9:3: d has its expression already, under d(x, y)",
    ]


def test_names_that_lead_to_names_without_end_stop() -> None:
    doubled = "\n".join(f'  a{n + 1}: "{{a{n}}} + {{a{n}}}"' for n in range(30))
    long = table(f"expressions:\n  a0: '{'x' * 99}'\n{doubled}\n")
    assert "makes it longer than 16 KiB" in str(long.problems[0])
    assert len(long.expanded("{a5}")) < LONGEST
    deep = "\n".join(f'  a{n + 1}: "{{a{n}}} + 1"' for n in range(500))
    problems = table(f"expressions:\n  a0: x\n{deep}\n").problems
    assert "leads through more than 32 names" in str(problems[0])


def test_names_in_values_that_are_thrown_away_cost_nothing() -> None:
    lines = ["expressions:", "  k(p): '1'", "  g0: '1'"]
    lines += [f'  g{at}: "{{k({{g{at - 1}}} {{g{at - 1}}})}}"' for at in range(1, 30)]
    assert table("\n".join(lines)).expanded("{g29}") == "1"


@pytest.mark.parametrize(
    "sql", [r"REPLACE(p.PATH, '\', '/') || {plain} || 'x'", r"'\' || :now", r"'O\'Brien' || :today"]
)
def test_a_backslash_before_a_quote_is_refused_beside_names(sql: str) -> None:
    """It ends the text on PostgreSQL and not on MySQL."""
    with pytest.raises(Misfit, match="a backslash before a quote"):
        on_clock(table().expanded(sql), "Europe/Paris")
    assert table().expanded(r"r.A LIKE '\'") == r"r.A LIKE '\'"
    in_json = NamedExpressions(parse_document(TABLE.encode(), "clinic.yaml"), is_sql=False)
    assert in_json.expanded(r"a[?b=='it\'s'].{plain}")


def test_a_name_that_nothing_uses_is_a_warning() -> None:
    named = table()
    named.expanded("{minutes}")
    unused = named.unused()
    assert {each.text for each in unused} == {
        f"nothing uses {{{name}}}" for name in ("label", "plain", "either", "joined", "lefts")
    }
    assert {each.check.severity for each in unused} == {"warning"}


def loaded(folder: Path, text: str) -> MappingFile:
    (folder / "clinic.yaml").write_text(text)
    return load_mapping(folder / "clinic.yaml", shapes(), "sql")[0]


def test_every_expression_of_a_mapping_may_have_names(tmp_path: Path) -> None:
    named = "resources:\n"
    changes = [
        (
            named,
            "expressions:\n  t(x): TRIM({x})\n  gone: p.GONE = 1\n  start: r.D_DEBUT\n"
            "  nine(n): \"'{n}' || {n}\"\nresources:\n",
        ),
        ("      firstName: p.PRENOM\n", '      firstName: "{t(p.PRENOM)}"\n'),
        ("p.ACTIF = 'O'\n    key: p.ID_PERS", "p.ACTIF = 'O' AND {gone}\n    key: p.ID_PERS"),
        ("      start: r.D_DEBUT\n", '      start: {source: "{start}"}\n'),
        ("printf('%06d', :number)", "{t(:number)}"),
        ("      where: NOM = 'RDV'\n", "      where: NOM = {t('RDV')}\n"),
        (
            "        key: l.ID_LIGNE\n",
            '        key: "{t(l.ID_LIGNE)}"\n        order: "{t(l.X)}"\n',
        ),
        ("reference: r.REF_EXT", 'reference: "{t(r.REF_EXT)}"'),
    ]
    text = SAMPLE
    for right, wrong in changes:
        assert right in text, right
        text = text.replace(right, wrong, 1)
    mapping = loaded(tmp_path, text)
    clients = mapping.resources["clients"]
    assert clients.fields["firstName"].source == ("TRIM(p.PRENOM)",)
    assert clients.where == "p.GENRE_PERS = 'C' AND p.ACTIF = 'O' AND (p.GONE = 1)"
    assert mapping.diary.busy[0].start.source == ("r.D_DEBUT",)
    lines = mapping.resources["invoices"].lists["lines"]
    assert (lines.key.source, lines.order) == (("TRIM(l.ID_LIGNE)",), ("TRIM(l.X)",))  # type: ignore[union-attr]
    counter, insert, _ = mapping.booking.steps
    assert counter.where == "NOM = (TRIM('RDV'))"
    assert str(insert.values["NUM_RDV"].sql).endswith("(TRIM(:number))")
    assert mapping.booking.reference == "TRIM(r.REF_EXT)"


def test_paths_into_json_may_have_names_and_paths_of_calls_keep_theirs(tmp_path: Path) -> None:
    text = cloud.MAPPING.read_text()
    assert "one: /owners/{id}" in text
    text = text.replace(
        "resources:\n",
        "expressions:\n  shelf: location.shelf\n  first(x): '{x}[0]'\nresources:\n",
        1,
    )
    text = text.replace("location: shelf", 'location: "{shelf}.name || {first(places)}"', 1)
    (tmp_path / "cloud.yaml").write_text(text)
    mapping, _ = load_mapping(
        tmp_path / "cloud.yaml", shapes(), "rest", ["user", "password", "token"]
    )
    assert mapping.resources["stock"].fields["location"].source == (
        "location.shelf.name || (places[0])",
    )
    one = mapping.resources["clients"].one
    assert one is not None
    assert one.get == "/owners/{id}"


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("firstName: p.PRENOM", 'firstName: "{prenom}"', "expressions has no prenom"),
        (
            "firstName: p.PRENOM",
            "firstName: {prenom}",
            'must be a text: put it in quotes, "{prenom}"',
        ),
        ("where: c.SUPPRIME = 0", "where: {kept}", 'must be a text: put it in quotes, "{kept}"'),
        (
            "firstName: p.PRENOM",
            "firstName: {source: {t(p.X, 'y')}}",
            "stands in quotes: write \"{t(p.X, 'y')}\"",
        ),
        (
            "firstName: p.PRENOM",
            "firstName: p.PRENOM || :tody",
            "nothing here is called :tody (did you mean :today?)",
        ),
        (
            "firstName: p.PRENOM",
            "firstName: p.PRENOM || :reference",
            ":reference stands only in what a booking writes",
        ),
    ],
)
def test_mistakes_stand_at_their_line(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    line = SAMPLE[: SAMPLE.index(right)].count("\n") + 1
    with pytest.raises(DocumentErrors) as caught:
        loaded(tmp_path, SAMPLE.replace(right, wrong, 1))
    [problem] = caught.value.problems
    assert problem.line == line
    assert said in problem.text


def test_the_clock_is_named_outside_quotes_alone() -> None:
    plain = "x::date = ':now' AND a[1:2] = '10:30' AND y = :nobody"
    assert type(on_clock(plain, "Europe/Paris")) is str
    made = on_clock("x < :now AND ':today' = y::text AND z = :today", "Europe/Paris")
    assert isinstance(made, OnClock)
    assert list(made.pieces()) == [
        ("x < ", "now"),
        (" AND ':today' = y::text AND z = ", "today"),
        ("", ""),
    ]


def test_the_day_is_named_in_a_path_outside_quotes_alone() -> None:
    plain = """a[1:2] || ':today' || `":today"` || {a:today, "b":today} || {a: b}"""
    assert dated(plain, "Europe/Paris") == plain
    made = dated("[?from <= :today && till >= :today]", "Asia/Tokyo")
    assert made == "[?from <= today('Asia/Tokyo') && till >= today('Asia/Tokyo')]"


@pytest.mark.parametrize("zone", ["zone: Nowhere/X\n", 'zone: "O\'x"\n', ""])
def test_a_wrong_zone_is_told_once(tmp_path: Path, zone: str) -> None:
    text = cloud.MAPPING.read_text().replace("zone: Europe/Paris\n", zone)
    path = tmp_path / "cloud.yaml"
    path.write_text(text.replace("location: shelf", 'location: "shelf[?since <= :today]"', 1))
    with pytest.raises(DocumentErrors) as caught:
        load_mapping(path, shapes(), "rest", ["user", "password", "token"])
    [problem] = caught.value.problems
    assert "zone" in problem.text
