"""Facts of practice systems, numbered, of a backend that speaks JSON: a mapping undoes each."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from aiohttp import web
from time_machine import travel

from adapters.base import BackendNonsense, Filter
from adapters.rest.adapter import RestAdapter
from examples.json_cloud.backend import BASE, Cloud
from tests.adapters.clinic import TODAY, a_draft, ask
from tests.adapters.rest.cloud import connect, listening, replaced

Rows = list[dict[str, Any]]


class Lists:
    """A backend of lists alone: a parameter leaves the rows whose member is one of its values.

    Where a `page` is asked for, it has three rows.
    """

    def __init__(self, **lists: Rows) -> None:
        self.lists = lists
        self.asked: list[str] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.add_routes([web.get(f"{BASE}/{{name}}", self.rows)])
        return app

    async def rows(self, request: web.Request) -> web.Response:
        self.asked.append(name := request.match_info["name"])
        rows = self.lists[name]
        for member in request.query.keys() - {"page"}:
            wanted = request.query.getall(member)
            rows = [row for row in rows if str(row[member]) in wanted]
        if (page := int(request.query.get("page", "0"))) > 0:
            rows = rows[3 * page - 3 : 3 * page]
        return web.json_response(rows)


@asynccontextmanager
async def mapped(lists: Lists, folder: Path, resources: str) -> AsyncIterator[RestAdapter]:
    """An adapter over the lists, by a mapping of these resources; its check finds nothing."""
    text = f"version: 2\nzone: Europe/Paris\n{resources}"
    async with listening(lists) as url, aclosing(connect(url, folder, lambda _: text)) as adapter:
        assert await adapter.check() == []
        yield adapter


async def shown(adapter: RestAdapter, resource: str, *fields: str, **filters: Any) -> list[Any]:
    """The fields of each record, in an order of their own."""
    by = tuple(Filter("equals", (name,), value) for name, value in filters.items())
    page = await adapter.read_many(ask(resource, limit=50, filters=by))
    return sorted(tuple(record[name] for name in fields) for record in page.records)


def parties() -> Lists:
    """1 and 2 are customers, 2 a company; 3 is a vet, and a customer too; 4 a nurse; 5 a ward."""
    return Lists(
        parties=[
            {"id": 1, "person": {"given": "Ada", "family": "Berg"}, "roles": [{"is": "customer"}]},
            {"id": 2, "company": "Cole Farms", "roles": [{"is": "customer"}]},
            {
                "id": 3,
                "person": {"given": "Mia", "family": "Lind"},
                "roles": [{"is": "staff", "job": "vet"}, {"is": "customer"}],
            },
            {
                "id": 4,
                "person": {"given": "Tom", "family": "Moss"},
                "roles": [{"is": "staff", "job": "nurse"}],
            },
            {"id": 5, "company": "Ward North", "roles": [{"is": "place", "job": "vet"}]},
            {
                "id": 6,
                "person": {"given": "Old", "family": "Gone"},
                "roles": [{"is": "customer", "ended": True}],
            },
        ],
        phones=[
            {"party": 1, "line": "fax", "digits": "0100"},
            {"party": 3, "line": "mobile", "digits": "0103"},
            {"party": 1, "line": "home", "digits": "0101", "ended": "2021-01-01"},
            {"party": 1, "line": "mobile", "digits": "0102"},
        ],
        animals=[
            {
                "id": 1,
                "name": "Rex",
                "of": [{"is": "housed", "party": 5}, {"is": "owned", "party": 1}],
            },
            {"id": 2, "name": "Kit", "of": [{"is": "owned", "party": 3}]},
            {"id": 3, "name": "Stray", "of": [{"is": "housed", "party": 5}]},
        ],
    )


OF_PARTIES = """\
resources:
  clients:
    list: /parties
    where: "roles[?is == 'customer' && !ended]"
    key: id
    joins:
      phones: {get: /phones, query: {party: {given: of}}, of: id, key: party, many: true}
    fields:
      firstName: person.given
      lastName: person.family || company
      phone: "phones[?line != 'fax' && !ended] | [0].digits"
  vets:
    list: /parties
    where: "roles[?is == 'staff' && job == 'vet']"
    key: id
    fields: {name: person.family}
  patients:
    list: /animals
    key: id
    fields: {clientId: "of[?is == 'owned'] | [0].party", name: name}
"""


async def test_fact_21_a_party_is_what_its_roles_say(tmp_path: Path) -> None:
    async with mapped(parties(), tmp_path, OF_PARTIES) as adapter:
        assert await shown(adapter, "vets", "name") == [("Lind",)]
        assert await shown(adapter, "clients", "lastName", "firstName", "phone") == [
            ("Berg", "Ada", "0102"),
            ("Cole Farms", None, None),
            ("Lind", "Mia", "0103"),
        ]
        clients = (await adapter.read_many(ask("clients"))).records
        owners = {client["id"]: client["lastName"] for client in clients} | {None: None}
        animals = await shown(adapter, "patients", "name", "clientId")
        assert [(name, owners[owner]) for name, owner in animals] == [
            ("Kit", "Lind"),
            ("Rex", "Berg"),
            ("Stray", None),
        ]


def things() -> Lists:
    """Of each kind something; the second animal has no species, the third one without a label."""
    return Lists(
        things=[
            {
                "id": 1,
                "kind": "pet",
                "name": "Rex",
                "details": [{"word": "sex", "held": "m"}, {"word": "species", "held": "DOG"}],
            },
            {"id": 2, "kind": "pet", "name": "Kit", "details": [{"word": "sex", "held": "x"}]},
            {
                "id": 3,
                "kind": "pet",
                "name": "Emu",
                "details": [{"word": "species", "held": "EMU"}],
            },
            {
                "id": 4,
                "kind": "drug",
                "name": "Syrup",
                "details": [{"word": "least", "held": "10"}, {"word": "stock", "held": "9"}],
            },
            {
                "id": 5,
                "kind": "drug",
                "name": "Balm",
                "details": [{"word": "stock", "held": "100"}, {"word": "least", "held": "20"}],
            },
            {"id": 6, "kind": "room", "name": "Two", "details": [{"word": "stock", "held": "1"}]},
        ],
        labels=[
            {"list": "coat", "code": "DOG", "shown": "Wiry"},
            {"list": "species", "code": "*", "shown": "Other animal"},
            {"list": "species", "code": "DOG", "shown": "Canine"},
        ],
    )


OF_THINGS = """\
expressions:
  held(word): details[?word == {word}] | [0].held
resources:
  patients:
    list: /things
    where: kind == 'pet'
    key: id
    joins:
      label:
        get: /labels
        query: {list: species, code: {given: of}}
        of: "{held('species')}"
        key: code
      other: {get: /labels, query: {list: species, code: {given: of}}, of: "'*'", key: code}
    fields:
      name: name
      species: label.shown || other.shown
      sex: {source: "{held('sex')}", codes: {m: MALE, x: UNKNOWN}}
  stock:
    list: {get: /things, query: {kind: drug}, sift: [isLow]}
    key: id
    fields:
      name: name
      quantity: "{held('stock')}"
      isLow: to_number({held('stock')}) <= to_number({held('least')})
"""


async def test_fact_22_a_kind_and_names_with_values_make_records(tmp_path: Path) -> None:
    lists = things()
    async with mapped(lists, tmp_path, OF_THINGS) as adapter:
        lists.asked.clear()
        assert await shown(adapter, "patients", "name", "species", "sex") == [
            ("Emu", "Other animal", None),
            ("Kit", "Other animal", "UNKNOWN"),
            ("Rex", "Canine", "MALE"),
        ]
        assert lists.asked == ["things", "labels", "labels"]
        # as numbers: as texts, 9 would not be below 10, and 100 would be below 20
        assert await shown(adapter, "stock", "name", "quantity", isLow=True) == [("Syrup", 9)]
        assert len(await shown(adapter, "stock", "name")) == 2


def moves() -> Lists:
    def moved(
        product: int, amount: float, unit: str, source: str, target: str, state: str = "done"
    ) -> dict[str, Any]:
        return {
            "product": product,
            "amount": amount,
            "unit": unit,
            "from": source,
            "to": target,
            "state": state,
        }

    return Lists(
        products=[
            {"id": 1, "title": "Bandage", "least": 20},
            {"id": 2, "title": "Syringe", "least": 5},
            {"id": 3, "title": "Collar", "least": 1},
            {"id": 4, "title": "Saline", "least": 0.3},
        ],
        moves=[
            moved(1, 2, "box", "supplier", "own/cellar/shelf"),
            moved(2, 1, "box", "supplier", "own/cellar"),
            moved(1, 5, "piece", "own/cellar/shelf", "used"),
            moved(1, 9, "box", "supplier", "own/cellar", "planned"),
            moved(1, 4, "piece", "own/cellar/shelf", "own/ward"),
            moved(2, 2, "piece", "own/cellar", "used", "cancelled"),
            moved(4, 0.1, "piece", "supplier", "own/ward"),
            moved(4, 0.2, "piece", "supplier", "own/ward"),
        ],
    )


OF_MOVES = """\
expressions:
  pieces: "product([amount, (unit == 'box' && `12` || `1`)])"
  moved(way): "sum(map(&{pieces}, moves[?state == 'done' && starts_with({way}, 'own/')]))"
  quantity: "sum([{moved(to)}, product([`-1`, {moved(from)}])])"
resources:
  stock:
    list: {get: /products, sift: [isLow]}
    key: id
    joins:
      moves:
        get: /moves
        query: {product: {given: of}}
        of: id
        key: product
        many: true
    fields: {name: title, quantity: "{quantity}", isLow: "{quantity} <= least"}
"""


async def test_fact_23_stock_is_a_sum_of_moves_in_several_units(tmp_path: Path) -> None:
    lists = moves()
    async with mapped(lists, tmp_path, OF_MOVES) as adapter:
        lists.asked.clear()
        assert await shown(adapter, "stock", "name", "quantity", "isLow") == [
            ("Bandage", 19, True),
            ("Collar", 0, True),
            ("Saline", 0.3, True),
            ("Syringe", 12, False),
        ]
        assert lists.asked == ["products", "moves"]
        assert len(await shown(adapter, "stock", "name", isLow=True)) == 3


async def test_moves_of_one_product_may_stand_on_several_pages(tmp_path: Path) -> None:
    lists = moves()
    lists.lists["moves"].sort(key=lambda move: (move["product"], -move["amount"]))
    paged = OF_MOVES.replace(
        "many: true", "many: true\n        page: {by: page, page: page, most: 3}"
    )
    async with mapped(lists, tmp_path, paged) as adapter:
        quantities = await shown(adapter, "stock", "quantity")
        assert quantities == [(0,), (0.3,), (12,), (19,)]


async def test_a_sum_is_never_one_of_some_of_the_moves(tmp_path: Path) -> None:
    lists = moves()
    async with mapped(lists, tmp_path, OF_MOVES) as adapter:
        lists.lists["moves"] *= 1000
        with pytest.raises(BackendNonsense, match=r"GET /moves: 4 records have more .* smaller"):
            await shown(adapter, "stock", "quantity")


PARTICIPANTS = """\
        participants:
          - {role: pet, party: {draft: patientId}}
          - {role: owner, party: {draft: clientId}}
          - {if: appointmentTypeId, then: {role: kind, party: {draft: appointmentTypeId}}}
          - {role: vet, party: {draft: vetId}}
          - {role: desk, party: 7}
"""


@pytest.mark.parametrize("of_type", [True, False])
async def test_fact_28_a_booking_has_one_entry_for_each_role(
    of_type: bool, url: str, cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    enter = Cloud._enter
    monkeypatch.setattr(
        Cloud,
        "_enter",
        lambda self, body: (sent.extend(body["participants"]), enter(self, body))[1],
    )
    change = replaced(("        source: gateway\n", PARTICIPANTS))
    async with aclosing(connect(url, tmp_path, change)) as adapter:
        kind = (await adapter.read_many(ask("appointmentTypes"))).records[0]["id"]
        draft = await a_draft(adapter)
        await adapter.create_appointment(
            replace(draft, appointment_type_id=kind if of_type else None)
        )
    visit = cloud.records.visits[max(cloud.records.visits)]
    pet = cloud.records.animals[visit["animal"]]
    assert [(it["role"], str(it["party"]).upper()) for it in sent] == [
        ("pet", str(visit["animal"])),
        ("owner", str(pet["owner"])),
        *([("kind", "1")] if of_type else []),
        ("vet", visit["vet"]),
        ("desk", "7"),
    ]


def day(number: int) -> str:
    return str(TODAY + timedelta(days=number))


def offers() -> Lists:
    return Lists(
        items=[
            {
                "id": 1,
                "prices": [
                    {"from": day(1), "till": None, "amount": 3},
                    {"from": day(-9), "till": day(-1), "amount": 1},
                    {"from": day(0), "till": day(0), "amount": 2},
                ],
            }
        ],
        people=[
            {
                "id": 1,
                "phones": [
                    {"from": day(-9), "till": day(-1), "digits": "left"},
                    {"from": day(1), "till": None, "digits": "later"},
                    {"from": day(0), "till": day(0), "digits": "today"},
                ],
            }
        ],
    )


OF_OFFERS = """\
expressions:
  valid: from <= :today && (!till || till >= :today)
resources:
  stock:
    list: {get: /items, sift: [isLow]}
    key: id
    fields: {salePrice: "prices[?{valid}] | [0].amount", isLow: "`false`"}
  clients:
    list: /people
    key: id
    fields: {phone: "phones[?{valid}] | [0].digits"}
"""


async def test_fact_30_what_is_valid_today_is_so_on_the_clinics_clock(tmp_path: Path) -> None:
    midnight = datetime.combine(TODAY, datetime.min.time(), ZoneInfo("Europe/Paris"))
    async with mapped(offers(), tmp_path, OF_OFFERS) as adapter:
        # in the first hour of the clinic's day the server's day is the one before
        for moment, price, phone in (
            (midnight, "2.00", "today"),
            (midnight - timedelta(minutes=1), "1.00", "left"),
            (midnight + timedelta(days=1), "3.00", "later"),
        ):
            with travel(moment.astimezone(UTC)):
                assert await shown(adapter, "stock", "salePrice") == [(price,)]
                assert await shown(adapter, "clients", "phone") == [(phone,)]


async def test_fact_31_bills_of_two_directions_are_told_apart_by_a_named_condition(
    url: str, cloud: Cloud, tmp_path: Path
) -> None:
    first, second, third, *_ = sorted(cloud.records.bills)
    for number, bill in cloud.records.bills.items():
        bill["kind"] = {first: "purchase", second: "credit"}.get(number, "sale")
    named = (
        "expressions:\n  ours: (kind == 'sale' || kind == 'credit')\n"
        "  sign: \"(kind == 'credit' && `-1` || `1`)\"\nresources:\n"
    )
    changes = [("resources:\n", named)]
    changes.append(("    key: id\n    fields:\n      number: ref\n",
        '    where: "{ours} && id"\n    key: id\n    fields:\n      number: ref\n'))  # fmt: skip
    changes.append(("      total: gross\n", '      total: "product([{sign}, to_number(gross)])"\n'))
    async with aclosing(connect(url, tmp_path, replaced(*changes))) as adapter:
        bills = {it["number"]: it for it in (await adapter.read_many(ask("invoices"))).records}
    of = {number: bill["ref"] for number, bill in cloud.records.bills.items()}
    assert of[first] not in bills
    assert bills[of[second]]["total"].startswith("-")
    assert not bills[of[third]]["total"].startswith("-")


OF_BILLS = """\
expressions:
  # of the rates of a line only the charged one is the client's
  rate: "taxes[?use == 'charged'] | [0] | {percent}"
  percent: "percent || product([fraction, `100`]) || (code == 'N' && `20`)"
  taxed: "sum([`1`, quotient({rate}, `100`)])"
resources:
  clients: {list: /clients, key: id, fields: {lastName: name}}
  invoices:
    list: {get: /bills, sift: [clientId]}
    key: id
    fields: {number: number, clientId: client}
    lists:
      lines:
        items: lines
        key: id
        fields:
          taxRate: "{rate}"
          total: "net || quotient(gross, {taxed})"
          unitPrice: "product([quotient(gross, {taxed}), `0.5`])"
"""


async def test_fact_32_taxes_are_percent_fraction_or_code_and_prices_gross_or_net(
    tmp_path: Path,
) -> None:
    taxes: list[Rows] = [
        [{"use": "deducted", "percent": 7}, {"use": "charged", "percent": 20}],
        [{"use": "charged", "fraction": 0.055}],
        [{"use": "charged", "code": "N"}, {"use": "deducted", "code": "R"}],
        [{"use": "charged", "percent": 10}],
    ]
    prices: Rows = [{"gross": 120}, {"gross": 105.5}, {"gross": 60}, {"net": 40}]
    lines = [
        {"id": number, "taxes": taxes, **price}
        for number, (taxes, price) in enumerate(zip(taxes, prices, strict=True), 1)
    ]
    lists = Lists(
        bills=[{"id": 1, "number": "F1", "client": 1, "lines": lines}],
        clients=[{"id": 1, "name": "Berg"}],
    )
    async with mapped(lists, tmp_path, OF_BILLS) as adapter:
        [invoice] = (await adapter.read_many(ask("invoices"))).records
    assert [(it["taxRate"], it["total"], it["unitPrice"]) for it in invoice["lines"]] == [
        ("20.00", "100.00", "50.00"),
        ("5.50", "100.00", "50.00"),
        ("20.00", "50.00", "25.00"),
        ("10.00", "40.00", None),
    ]
