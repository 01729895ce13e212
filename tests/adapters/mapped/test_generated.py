"""The generated functions read rows as the converters do, or leave a row to them."""

import ast
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.base import FieldShape, Formed, Trouble
from adapters.mapped.generated import REMEMBERED, Remembered
from adapters.mapped.records import MOST_MAKERS, RecordMaker, RowReader
from adapters.mapping.converters import CONVERTERS, Converters, conversion_faults
from adapters.mapping.models import ResourceMap
from adapters.rest.records import JsonRows
from adapters.sql.columns import KeyedRows
from gateway.contract import fields as formats
from gateway.contract.fields import Field, Resource
from gateway.policy.redactor import Redactor
from tests.policy.records import JUNK

STATES = ("OPEN", "SHUT")
ID = Field("id", formats.UUID)
# A field for every converter, and more for the formats that one makes.
FIELDS = (
    ID,
    Field("text"),
    Field("old", formats.TEXT),
    Field("state", values=STATES),
    Field("coded", values=STATES),
    Field("level", formats.INTEGER),
    Field("joined"),
    Field("part"),
    Field("many", many=True),
    Field("email", formats.EMAIL),
    Field("flag", formats.BOOLEAN),
    Field("loose", formats.BOOLEAN),
    Field("number", formats.NUMBER),
    Field("count", formats.INTEGER),
    Field("whole", formats.INTEGER),
    Field(
        "lines", title="Line", fields=(ID, Field("total", formats.MONEY), Field("at", formats.DAY))
    ),
    Field("money", formats.MONEY),
    Field("cents", formats.MONEY),
    Field("rate", formats.PERCENT),
    Field("colour", formats.COLOR),
    Field("local", formats.INSTANT),
    Field("french", formats.INSTANT),
    Field("utc", formats.INSTANT),
    Field("zoned", formats.INSTANT),
    Field("epoch", formats.INSTANT),
    Field("millis", formats.INSTANT),
    Field("later", formats.INSTANT),
    Field("day", formats.DAY),
    Field("sealed", formats.UUID, refers="sealed"),
    Field("native", formats.UUID, refers="native"),
    Field("hashed", formats.UUID, refers="hashed"),
    Field("unmapped"),
)
RESOURCE = Resource(name="things", title="Thing", summary="", fields=FIELDS)
SHAPES = {
    path: FieldShape(format=it.format.name, values=it.values, refers=it.refers, many=it.many)
    for path, it in ((path, RESOURCE.at(path)) for path in RESOURCE.paths)
}
CODES = {"1": "OPEN", "S": "SHUT", "": "SHUT", "X": None}
SOURCES: dict[str, Any] = {
    "text": {},
    "old": {"encoding": "cp1252"},
    "state": {},
    "coded": {"codes": CODES},
    "level": {"codes": {"1": 1, "true": 2}},
    "joined": {"as": "joined text"},
    "part": {"as": "part of text", "part": 2},
    "many": {},
    "email": {},
    "flag": {},
    "loose": {"yes": ["O ", "O", -1], "no": ["N", 0, 2.5]},
    "number": {},
    "count": {"as": "number"},
    "whole": {},
    "money": {},
    "cents": {"as": "cents"},
    "rate": {},
    "colour": {},
    "local": {"zero": ["2026-01-01 00:00:00", "1900-01-01"]},
    "french": {"pattern": "%d/%m/%Y %H:%M"},
    "utc": {"as": "utc time"},
    "zoned": {"as": "zoned time", "zero": ["1900-01-01", "2026-01-01T00:00:00Z"]},
    "epoch": {"as": "epoch", "zero": ["0", "-1"]},
    "millis": {"as": "epoch", "unit": "milliseconds"},
    "day": {},
    "sealed": {},
    "native": {"as": "native id"},
    "hashed": {"as": "hashed id"},
}
# How values are usually written, and how they are nearly so; equal ones of several types.
WRITTEN: list[Any] = [
    Decimal("sNaN"),
    *(None, "", " ", "Zoé ", "OPEN", " OPEN", "open", "S", " S", "X", "1", "1 ", "true", "O", "N"),
    *(
        0,
        1,
        -1,
        2,
        True,
        False,
        1.0,
        0.0,
        -0.0,
        2.5,
        1.5,
        Decimal("1.0"),
        Decimal(1),
        b"\x01",
        b"\x00",
    ),
    *("a@example.fr", " a@example.fr ", "a@b@c", "é@example.fr", "a @b", "Martin, Zoé", "a;b;;c"),
    *(
        "45.00",
        "45,00",
        "045.00",
        "-0.00",
        "1 234,50",
        "1e99",
        "NaN",
        "-3",
        45,
        4550,
        10**15,
        2**63,
    ),
    *("#2E86AB", "#2e86ab", 0x2E86AB, "red", 1 << 24, "x" * 100_001, "x" * 41),
    *("2026-03-01 10:00:00", "2026-03-01T10:00", "2026-03-01", "2026-02-30 10:00:00", "10:00"),
    *("2026-10-25 02:30:00", "2026-03-29 02:30:00", "2026-03-01 10:00:60", "2026-03-01 24:00:00"),
    *("2026-01-01 00:00:00", "1900-01-01 10:00:00", "0000-00-00 00:00:00", "9999-12-31 23:59:59"),
    *(
        "2026-03-01T10:00:00Z",
        "2026-03-01T10:00:00.5Z",
        "2026-03-01 10:00:00+01",
        "01/07/2026 10:00",
    ),
    *(
        "2026-03-01T24:00:00Z",
        "2026-02-30T10:00:00Z",
        "1900-01-01T10:00:00Z",
        "0001-01-01T00:00:00+14",
    ),
    *(
        "\N{FULLWIDTH DIGIT TWO}026-03-01T10:00:00Z",
        "2026-03-01T10:00:00Z\n",
        "0000-00-00T10:00:00Z",
        "0000-01-01T10:00:00Z",
    ),
    *(datetime(2026, 10, 25, 2, 30, fold=fold) for fold in (0, 1)),  # noqa: DTZ001 - a wall clock
    *(datetime(2026, 3, 1, 9, tzinfo=UTC), date(2026, 3, 1), date(1900, 1, 1), timedelta(1)),
    *(datetime(2026, 3, 1, 10, tzinfo=ZoneInfo("Europe/Paris")), 1_772_355_600, 10**17),
    *("7f1c1f7e-4f1a-4d7e-9a9b-000000000001", "7F1C1F7E-4F1A-4D7E-9A9B-00000000000A", "{no}"),
    *(
        [],
        ["a", " b ", 3],
        [["a"]],
        {},
        {"a": 1},
        ("2026-03-01", "10:00"),
        ("2026-03-01 10:00:00", 5),
    ),
]
KINDS = {"native id": ["7f1c1f7e-4f1a-4d7e-9a9b-000000000002"], "id": [7], "hashed id": ["a code"]}
VALUES = st.sampled_from(WRITTEN) | JUNK


class Reader:
    """Reads rows of one kind, and remembers the troubles."""

    def __init__(self, kind: type[RowReader], of: str = "id", path: str = "{}") -> None:
        self.troubles: list[Trouble] = []
        fields = {name: {"source": path.format(name), **how} for name, how in SOURCES.items()}
        fields["later"] = {"source": path.format("later"), "plus": "minutes"}
        line = {"key": "id", "fields": {"total": "total", "at": "at"}}
        line |= {"items": "lines"} if kind is JsonRows else {"from": "LINES", "parent": "thing"}
        mapped: dict[str, Any] = {
            "key": {"source": "id", "as": of},
            "fields": fields,
            "lists": {"lines": line},
        }
        if kind is KeyedRows:
            mapped["from"] = "THINGS"
        ids = {"things": of, "native": "native id", "hashed": "hashed id"}
        made = Converters(ZoneInfo("Europe/Paris"), b"k" * 32, kinds=ids)
        of_map = ResourceMap.model_validate(mapped)
        self.rows = kind("things", of_map, SHAPES, made, self.troubles.append)

    def by_converters(self, row: Any, maker: RecordMaker) -> tuple[Any, list[Trouble]]:
        return self._told(lambda: self.rows.record(row, maker))

    def generated(self, row: Any, fields: frozenset[str] | None) -> tuple[Any, list[Trouble]]:
        return self._told(lambda: self.rows.records([row], fields))

    def _told(self, ask: Any) -> tuple[Any, list[Trouble]]:
        del self.troubles[:]
        return ask(), list(self.troubles)


def json_row(values: Mapping[str, Any], of: str, lines: Any) -> dict[str, Any]:
    row = {name: value for name, value in values.items() if name != "later"}
    return {**row, "id": KINDS[of][0], "later": values["local"], "minutes": 5, "lines": lines}


def sql_row(values: Mapping[str, Any], of: str, lines: Any) -> tuple[Any, ...]:
    columns = [values[name] for name in SOURCES]
    return (KINDS[of][0], *columns, values["local"], 5)


def inside_row(values: Mapping[str, Any], of: str, lines: Any) -> dict[str, Any]:
    row = json_row(values, of, lines)
    return row | {"a": {"b": [None, row]}}


ROADS = {
    ("json", "id"): (Reader(JsonRows), json_row),
    ("json", "native id"): (Reader(JsonRows, "native id"), json_row),
    ("deep json", "id"): (Reader(JsonRows, path="a.b[-1].{}"), inside_row),
    ("sql", "id"): (Reader(KeyedRows), sql_row),
    ("sql", "hashed id"): (Reader(KeyedRows, "hashed id"), sql_row),
}


@cache
def strict(form: tuple[str, ...]) -> Redactor:
    return Redactor(RESOURCE, form, lambda trouble: pytest.fail(str(trouble)))


def judged(road: tuple[str, str], values: Mapping[str, Any], lines: Any, fields: Any) -> bool:
    """Whether the row is made a record at once, which must then be what the converters make."""
    reader, row_of = ROADS[road]
    row = row_of(values, road[1], lines)
    wanted, troubles = reader.by_converters(row, reader.rows.maker(fields))
    made, told = reader.generated(row, fields)
    assert (repr(made), told) == (repr([wanted]), troubles)
    if isinstance(made, Formed):
        assert troubles == []
        body = orjson.dumps(made[0])
        assert strict(made.form).many([dict(made[0])]) == (b"[%b]" % body, 0)
    return isinstance(made, Formed)


@pytest.mark.parametrize("road", ROADS, ids=" ".join)
def test_every_way_to_write_a_value_reads_alike_in_every_field(road: tuple[str, str]) -> None:
    blank = dict.fromkeys([*SOURCES, "later"])
    at_once = 0
    for _ in range(2):  # the second time some are remembered
        for name in SOURCES:
            for value in WRITTEN:
                at_once += judged(road, {**blank, name: value}, [], None)
    assert at_once > len(WRITTEN) * len(SOURCES) // 2


@pytest.mark.parametrize("road", ROADS, ids=" ".join)
@given(data=st.data())
def test_rows_of_anything_read_alike_with_any_fields(
    road: tuple[str, str], data: st.DataObject
) -> None:
    names = data.draw(st.lists(st.sampled_from([*SOURCES, "later"]), max_size=5))
    values = dict.fromkeys([*SOURCES, "later"]) | {name: data.draw(VALUES) for name in names}
    line = st.fixed_dictionaries({"id": VALUES | st.just(3), "total": VALUES, "at": VALUES})
    lines = data.draw(st.lists(line | VALUES, max_size=3) | VALUES)
    fields = st.sets(st.sampled_from(RESOURCE.paths), max_size=4).map(frozenset)
    judged(road, values, lines, data.draw(st.none() | fields))


# Times as they are shown, or nearly so.
SHOWN = st.from_regex(
    "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](Z|[.]0Z|[+]01)?", fullmatch=True
) | st.datetimes().map(lambda moment: f"{moment.replace(microsecond=0).isoformat()}Z")


@given(SHOWN, st.sampled_from(("zoned", "local", "utc")))
@example("2026-01-01T00:00:00Z", "zoned")
def test_times_read_alike_whether_they_stand_as_they_are_shown_or_not(
    value: str, name: str
) -> None:
    blank = dict.fromkeys([*SOURCES, "later"])
    for road in ROADS:
        judged(road, blank | {name: value}, [], None)


@pytest.mark.parametrize("row", [None, "row", [], 7])
def test_what_is_no_row_is_no_record(row: Any) -> None:
    reader = ROADS["json", "id"][0]
    assert reader.rows.records([row]) == [None]


def test_every_converter_is_among_the_fields() -> None:
    named = {how.get("as") for how in SOURCES.values()} | {None}
    default = {"text", "code", "email", "boolean", "integer", "money", "colour", "local time"}
    assert {*CONVERTERS} <= named | default | {"number", "date", "id", "split text"}
    mapped = ROADS["json", "id"][0].rows.mapped
    for name, source in mapped.fields.items():
        assert not list(conversion_faults(source, SHAPES[name], ["sealed", "native", "hashed"]))


def test_the_record_has_the_fields_that_are_asked_for_in_the_order_of_the_contract() -> None:
    reader = ROADS["json", "id"][0].rows
    blank = dict.fromkeys([*SOURCES, "later"])
    row = json_row({**blank, "text": "a", "day": "2026-03-01"}, "id", [{"id": 1, "total": 5}])
    [record] = reader.records([row], frozenset({"day", "text", "lines[].total"}))
    assert [*record] == ["id", "text", "lines", "day"]
    assert [*record["lines"][0]] == ["id", "total"]
    assert reader.maker(None).form == RESOURCE.paths
    assert reader.maker(frozenset({"day"})).form == ("id", "day")


def test_sets_of_fields_that_come_and_go_are_not_kept_for_ever() -> None:
    reader = Reader(JsonRows).rows
    for number in range(3 * MOST_MAKERS):
        reader.maker(frozenset({f"field{number}"}))
    assert reader.maker.cache_info().currsize == MOST_MAKERS
    both = [reader.maker(frozenset(fields)).make for fields in ({"day"}, {"day", "text"})]
    one, other = (make.__globals__ for make in both)  # type: ignore[attr-defined]
    [name] = [name for name in one if name.startswith("seen_")]
    assert one[name] is other[name]  # what is remembered is so once


def test_no_word_of_a_mapping_becomes_code() -> None:
    odd = "a'\"\\\n\r\u2028\x0cimport os"
    path = '"' + "".join(f"\\u{ord(letter):04x}" for letter in odd) + '"'
    source = Reader(JsonRows, path=path + ".{}").rows.maker(None).source
    tree = ast.parse(source)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree))
    assert all(name.isidentifier() and "os" not in name for name in names)
    assert any(isinstance(node, ast.Constant) and node.value == odd for node in ast.walk(tree))


def test_what_is_remembered_is_bounded_and_only_what_cannot_be_mistaken() -> None:
    asked: list[Any] = []
    seen = Remembered(lambda raw: asked.append(raw) or str(raw))
    for raw in ("x" * 41, datetime(2026, 3, 1, tzinfo=UTC), "short", "short"):
        for _ in range(2):
            assert seen[raw] == str(raw)
    assert [*seen] == ["short"]
    for number in range(REMEMBERED + 5):
        assert seen[number] == str(number)
    assert 0 < len(seen) <= REMEMBERED
