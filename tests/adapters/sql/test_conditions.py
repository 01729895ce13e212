"""Which records exist for who asks: the sql adapter against plain Python, and what it costs."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.base import Condition, Filter, NotFound, Only, Record, Trouble
from adapters.conformance.pages import MEMBERS, ORDERED, conditions, let_be
from adapters.ids.seal import SealedIds
from adapters.sample import MAPPING
from adapters.sql.adapter import SqlAdapter
from gateway.backend import shapes
from tests.adapters.asked import asked
from tests.adapters.clinic import NOW, SECRET, a_draft, ask, connect, copy_to, everything, run
from tests.adapters.sample_practice import key
from tests.adapters.shelf import Shelf

SHAPES = {name: each for name, each in shapes().items() if name != "slots"}
BOUNDS: dict[str, Any] = {
    "date-time": datetime.fromisoformat,
    "date": date.fromisoformat,
    **dict.fromkeys(("number", "integer", "money", "percent"), Decimal),
}
NEAR: dict[type, list[Any]] = {
    datetime: [timedelta(), timedelta(seconds=1), timedelta(hours=-1), timedelta(microseconds=1)],
    date: [timedelta(), timedelta(days=1), timedelta(days=-1)],
    Decimal: [Decimal(0), Decimal("0.001"), Decimal("-0.005"), Decimal(1)],
}


async def narrowed(
    adapter: SqlAdapter, resource: str, only: Only, *filters: Filter, limit: int = 37
) -> list[Record]:
    """All that exists, page by page; no page but the last is short."""
    records: list[Record] = []
    after = None
    while True:
        query = ask(resource, limit=limit, filters=filters, after=after, only=only)
        page = await adapter.read_many(query)
        records += page.records
        if page.after is None:
            return records
        assert len(page.records) + page.skipped == limit
        after = page.after


class Sample:
    """The sample practice, whole, and an adapter of it in a loop of its own."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.adapter = connect(copy_to(folder))
        self.records = {
            name: self.run(everything(self.adapter, name, limit=500)) for name in SHAPES
        }

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    made = Sample(tmp_path_factory.mktemp("sample"))
    yield made
    made.run(made.adapter.aclose())
    made.loop.close()


@st.composite
def drawn(draw: Any, sample: Sample) -> tuple[str, Only]:
    """A resource, and one or two conditions that it can be narrowed by."""
    resource = draw(st.sampled_from(sorted(SHAPES)))
    only = tuple(draw(_condition(sample, resource)) for _ in range(draw(st.integers(1, 2))))
    return resource, tuple(each for each in only if not sample.adapter.narrows(resource, (each,)))


@st.composite
def _condition(draw: Any, sample: Sample, resource: str) -> Condition:
    fields = [name for name, each in SHAPES[resource].items() if "[]." not in name]
    name = draw(st.sampled_from(fields))
    known = [each[name] for each in sample.records[resource] if each[name] is not None]
    known = [each for each in known if not isinstance(each, list)] or ["nothing"]
    shape = SHAPES[resource][name]
    read = BOUNDS.get(shape.format)
    if read is None or draw(st.booleans()):
        values = draw(st.lists(st.sampled_from(known), max_size=3))
        if shape.format == "text" and not shape.values and draw(st.booleans()):
            values = [each.swapcase() for each in values]
        return Condition(name, draw(st.sampled_from(MEMBERS)), tuple(values))
    bound = read(str(draw(st.sampled_from(known))))
    bound += draw(st.sampled_from(NEAR[type(bound)]))
    return Condition(name, draw(st.sampled_from(ORDERED)), bound)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_what_is_let_be_is_what_plain_python_lets_be(sample: Sample, data: st.DataObject) -> None:
    resource, only = data.draw(drawn(sample))
    limit = data.draw(st.sampled_from([25, 100, 500]))
    found = sample.run(narrowed(sample.adapter, resource, only, limit=limit))
    assert found == let_be(sample.records[resource], only)


def test_all_but_lists_of_texts_of_the_sample_can_be_narrowed_by(sample: Sample) -> None:
    for resource, fields in SHAPES.items():
        for name, shape in fields.items():
            if "[]." in name:
                continue
            refused = sample.adapter.narrows(resource, (Condition(name, "in", ()),))
            mapped = any(each[name] is not None for each in sample.records[resource])
            allowed = mapped and not shape.many and shape.format != "color"
            assert (refused == []) is allowed, (resource, name)


def test_a_page_is_full_by_the_statements_that_it_costs_without_conditions(sample: Sample) -> None:
    for resource, fields in SHAPES.items():
        for each in conditions(sample.records[resource], fields):
            served = not sample.adapter.narrows(resource, (each,))
            if served and let_be(sample.records[resource], (each,)):
                with asked() as without:
                    sample.run(sample.adapter.read_many(ask(resource, limit=5)))
                with asked() as narrowly:
                    sample.run(sample.adapter.read_many(ask(resource, limit=5, only=(each,))))
                assert len(narrowly) <= len(without), each


def clients(*names: str, test: str = "not in") -> Only:
    return (Condition("lastName", test, names),)


async def test_who_is_hidden_costs_what_one_costs_who_is_not_there(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    client = await adapter.read_one(ask("clients", id=draft.client_id))
    only = clients(client["lastName"])
    by_client = (Filter("equals", ("clientId",), client["id"]),)

    async def costs() -> list[list[str]]:
        queries = (
            (adapter.read_one, ask("clients", id=client["id"], only=only)),
            (
                adapter.read_many,
                ask(
                    "invoices",
                    within=("clients", client["id"]),
                    within_only=only,
                    filters=by_client,
                ),
            ),
            (adapter.create_appointment, replace(draft, only={"clients": only})),
        )
        found = []
        for verb, query in queries:
            with asked() as said, pytest.raises(NotFound):
                await verb(query)  # type: ignore[operator]
            found.append([each.text for each in said])
        return found

    hidden = await costs()
    run(database, "DELETE FROM PERSONNES WHERE ID_PERS = ?", key("clients", client["id"]))
    assert await costs() == hidden
    assert [sum("PERSONNES" in each for each in said) for said in hidden] == [1, 1, 1]


async def test_a_hidden_patient_cannot_be_booked_for_and_costs_what_a_missing_one_costs(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    patient = await adapter.read_one(ask("patients", id=draft.patient_id))
    only = {"patients": (Condition("name", "not in", (patient["name"],)),)}
    hiding = replace(draft, only=only)
    with asked() as hidden, pytest.raises(NotFound):
        await adapter.create_appointment(hiding)
    letting = {"patients": (Condition("name", "in", (patient["name"],)),), "clients": ()}
    made = await adapter.create_appointment(replace(draft, only=letting))
    assert list(await adapter.find_appointments(hiding, NOW)) == [made]
    run(database, "DELETE FROM ANIMAUX WHERE ID_ANIMAL = ?", key("patients", patient["id"]))
    with asked() as missing, pytest.raises(NotFound):
        await adapter.create_appointment(hiding)
    assert [each.text for each in missing] == [each.text for each in hidden]


async def test_of_a_hidden_invoice_no_lines_are_read(adapter: SqlAdapter) -> None:
    invoice = (await adapter.read_many(ask("invoices"))).records[0]
    only = (Condition("number", "not in", (invoice["number"],)),)
    with asked() as said, pytest.raises(NotFound):
        await adapter.read_one(ask("invoices", id=invoice["id"], only=only))
    assert not any("LIGNES_FACT l WHERE (l.ID_FACT)" in each.text for each in said)
    assert len(said) == 1


async def test_what_is_hidden_is_not_reported_nor_counted_as_skipped(
    adapter: SqlAdapter, database: Path, troubles: list[Trouble]
) -> None:
    run(database, "UPDATE ANIMAUX SET DT_NAISSANCE = '2020-02-31' WHERE ID_ANIMAL = 7")
    seventh = SealedIds(SECRET, "patients").seal(7)
    only = (Condition("id", "not in", (seventh,)),)
    whole = await everything(adapter, "patients")
    troubles.clear()
    assert await narrowed(adapter, "patients", only) == [e for e in whole if e["id"] != seventh]
    with pytest.raises(NotFound):
        await adapter.read_one(ask("patients", id=seventh, only=only))
    assert not [each for each in troubles if each.record == seventh]


async def test_an_id_can_be_a_condition_too(adapter: SqlAdapter) -> None:
    whole = await everything(adapter, "vets")
    for number, each in enumerate(whole):
        only = (Condition("id", "in", (each["id"], str(UUID(int=0)))),)
        assert await narrowed(adapter, "vets", only) == whole[number : number + 1]


async def test_conditions_may_name_ids_that_only_the_table_knows(database: Path) -> None:
    shelf = Shelf()
    mapping = MAPPING.read_text().replace(
        "key: p.ID_PERS\n", "key: {source: p.ID_PERS, as: hashed id}\n"
    )

    def another() -> SqlAdapter:
        return connect(database, mapping=mapping, ids=shelf)

    first = another()
    draft = await a_draft(first)
    owner = draft.client_id
    animals = let_be(await everything(first, "patients"), (Condition("clientId", "in", (owner,)),))
    only = (Condition("clientId", "in", (owner,)),)
    second, third, fourth = another(), another(), another()
    assert await narrowed(second, "patients", only) == animals != []
    query = ask("clients", only=(Condition("id", "in", (owner,)),))
    assert [each["id"] for each in (await third.read_many(query)).records] == [owner]
    booked = await fourth.create_appointment(replace(draft, only={"patients": only}))
    assert booked["clientId"] == owner
    for each in (first, second, third, fourth):
        await each.aclose()


TABLE = """
CREATE TABLE thing (id INTEGER, label, changed, day, price, cents INTEGER, code, yes, seen);
INSERT INTO thing VALUES
 (1, 'Élan', '2026-10-25 02:30:00', '2026-02-01', '1 234,50', 450, 'O', 1, 1700000000),
 (2, 'ÉLAN', '2026-10-25T01:30:00', '2026-02-01 12:00', 4.5, 451, 'o', 0, '1700000001'),
 (3, ' Élan ', '2026-10-25 03:00', '0000-00-00', '4.504', 449.6, ' O', NULL, 0),
 (4, 'Elan', '2026-03-29 02:30:00', '2026-02-02', '1.234,56', 450.4, 'X', 'true', NULL),
 (5, '', '0000-00-00 00:00:00', NULL, 'much', NULL, NULL, '?', 1700000000.5),
 (6, NULL, '2026-01-02', '2020-02-31', '', 0, '', 1, ''),
 (7, 'élan ' || char(9), ' 2026-03-29 03:00:00.7 ', '2026-02-03T08:00', 0.1, -1, 'N', 0, 1);
"""
FIELDS = """
      name: label
      updatedAt: changed
      expiresAt: day
      purchasePrice: price
      salePrice: {source: cents, as: cents}
      category: {source: code, codes: {O: MEDICINE, N: FOOD, "": OTHER}}
      isLow: yes
      quantity: price
"""
VALUES: dict[str, tuple[Any, ...]] = {
    "name": ("Élan", "ÉLAN", "Elan", "élan", "x"),
    "category": ("MEDICINE", "FOOD", "OTHER"),
    "isLow": (True, False),
    "quantity": (4.5, 1234.5, 0.1),
    "purchasePrice": ("4.50", "1234.50", "1234.56"),
    "salePrice": ("4.50", "4.51", "0.00"),
    "updatedAt": (
        "2026-10-25T00:30:00Z",
        "2026-03-29T01:00:00Z",
        "2026-03-29T01:30:00Z",
        "2026-01-01T23:00:00Z",
    ),
    "expiresAt": ("2026-02-01", "2026-02-02", "2026-02-03"),
}


def odd(folder: Path, extra: str = "") -> Path:
    """The sample with a table of odd things for its stock."""
    database = copy_to(folder)
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(TABLE + extra)
    return database


def with_things(mapping: str) -> str:
    begin, end = mapping.index("  stock:\n"), mapping.index("  appointmentTypes:\n")
    things = f"  stock:\n    from: thing\n    key: id\n    fields:{FIELDS}\n"
    return mapping[:begin] + things + mapping[end:]


def of_values(field: str, values: tuple[Any, ...]) -> Iterator[Condition]:
    read = BOUNDS.get(SHAPES["stock"][field].format)
    for each in values:
        yield from (Condition(field, test, (each,)) for test in MEMBERS)
        for test in ORDERED if read is not None else ():
            bound = read(str(each))
            yield from (Condition(field, test, bound + more) for more in NEAR[type(bound)])
    yield Condition(field, "in", values)
    yield Condition(field, "not in", values[:2])
    yield Condition(field, "not in", ())


async def test_a_record_is_judged_by_the_value_that_it_shows(tmp_path: Path) -> None:
    adapter = connect(odd(tmp_path), mapping=with_things(MAPPING.read_text()))
    whole = await everything(adapter, "stock")
    for field, values in VALUES.items():
        for only in of_values(field, values):
            assert adapter.narrows("stock", (only,)) == []
            found = await narrowed(adapter, "stock", (only,), limit=2)
            assert found == let_be(whole, (only,)), only
    await adapter.aclose()


async def test_what_only_looks_different_is_left_out_too(tmp_path: Path) -> None:
    extra = "INSERT INTO thing (id, label) VALUES (8, 'Rex' || char(160)), (9, 'Tom');"
    adapter = connect(odd(tmp_path, extra), mapping=with_things(MAPPING.read_text()))
    only = (Condition("name", "not in", ("Rex",)),)
    whole = await everything(adapter, "stock")
    assert "Rex" in {each["name"] for each in whole}
    for limit in (1, 2, 6, 7):
        assert await narrowed(adapter, "stock", only, limit=limit) == let_be(whole, only)
    with pytest.raises(NotFound):
        await adapter.read_one(ask("stock", id=whole[7]["id"], only=only))
    await adapter.aclose()


async def test_times_as_numbers_are_judged_as_times(tmp_path: Path) -> None:
    mapping = with_things(MAPPING.read_text()).replace(
        "updatedAt: changed", "updatedAt: {source: seen, as: epoch}"
    )
    adapter = connect(odd(tmp_path), mapping=mapping)
    whole = await everything(adapter, "stock")
    for only in of_values("updatedAt", ("2023-11-14T22:13:20Z", "1970-01-01T00:00:01Z")):
        found = await narrowed(adapter, "stock", (only,), limit=2)
        assert found == let_be(whole, (only,)), only
    await adapter.aclose()


async def test_rows_without_a_key_are_counted_where_they_would_exist(tmp_path: Path) -> None:
    extra = "INSERT INTO thing (id, label) VALUES (NULL, 'Élan'), (NULL, 'Élan'), (NULL, 'x');"
    adapter = connect(odd(tmp_path, extra), mapping=with_things(MAPPING.read_text()))
    for only, skipped in (
        ((), 3),
        ((Condition("name", "in", ("Élan",)),), 2),
        ((Condition("name", "in", ("ÉLAN",)),), 0),
        ((Condition("name", "in", ("none",)),), 0),
    ):
        assert (await adapter.read_many(ask("stock", only=only))).skipped == skipped
    await adapter.aclose()


@pytest.mark.parametrize(
    ("field", "new", "condition", "said"),
    [
        ("address", "", Condition("address", "in", ("x",)), "address is not in the mapping"),
        (
            "firstName",
            "{source: p.NOM, as: part of text, part: 1}",
            Condition("firstName", "in", ("x",)),
            "firstName is kept in a way that the database does not compare: leave it out",
        ),
        (
            "createdAt",
            "{source: p.DT_CREATION, as: zoned time}",
            Condition("createdAt", "min", NOW),
            "createdAt is kept in a way that the database does not sort: leave it out",
        ),
        (
            "createdAt",
            "{source: [p.DT_CREATION, p.DT_MODIF], as: local time}",
            Condition("createdAt", "min", NOW),
            "createdAt is kept in several columns: leave it out",
        ),
        (
            "firstName",
            "p.PRENOM",
            Condition("firstName", "min", Decimal(1)),
            "firstName is a text, which does not sort: name its values",
        ),
    ],
)
async def test_what_cannot_be_a_condition_is_told_at_its_line(
    database: Path, field: str, new: str, condition: Condition, said: str
) -> None:
    lines = MAPPING.read_text().splitlines()
    at = next(n for n, each in enumerate(lines) if each.startswith(f"      {field}:"))
    if new:
        lines[at] = f"      {field}: {new}"
    else:
        del lines[at : at + 5]
    adapter = connect(database, mapping="\n".join(lines))
    (found,) = adapter.narrows("clients", (Condition("phone", "in", ()), condition))
    assert found.text.startswith(f"clients.{said}")
    place = (at + 1, 7) if new else (lines.index("  clients:") + 5, 5)
    assert (Path(found.file), (found.line, found.column)) == (database.with_suffix(".yaml"), place)
    await adapter.aclose()


async def test_lists_and_what_is_no_resource_are_refused(adapter: SqlAdapter) -> None:
    for resource, name in (("patients", "alerts"), ("invoices", "lines[].total"), ("slots", "x")):
        (found,) = adapter.narrows(resource, (Condition(name, "in", ("x",)),))
        assert found.line > 0


async def test_pages_tell_nothing_of_many_rows_that_only_look_different(tmp_path: Path) -> None:
    rows = ", ".join(f"({number}, 'Rex' || char(160))" for number in range(8, 1008))
    extra = f"INSERT INTO thing (id, label) VALUES {rows};"
    extra += "INSERT INTO thing (id, label) VALUES (1008, 'Tom'), (NULL, 'Rex' || char(160));"
    adapter = connect(odd(tmp_path, extra), mapping=with_things(MAPPING.read_text()))
    only = (Condition("name", "not in", ("Rex",)),)
    after, shown = None, []
    while True:
        page = await adapter.read_many(ask("stock", only=only, limit=1, after=after))
        assert (len(page.records), page.skipped) == (1, 0)
        shown += [each["name"] for each in page.records]
        after = page.after
        if after is None:
            break
    assert shown[-1] == "Tom"
    await adapter.aclose()
