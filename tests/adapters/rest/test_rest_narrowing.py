"""Which records exist for who asks, over HTTP: asked for, sifted, or refused at its line."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from adapters.base import Condition, Filter, NotFound, Only, Record, Trouble
from adapters.conformance.pages import let_be
from adapters.rest.adapter import RestAdapter
from examples.json_cloud.backend import Cloud
from tests.adapters.clinic import NOW, a_draft, ask, everything
from tests.adapters.rest.cloud import connect, replaced


def among(field: str, *values: object) -> Only:
    return (Condition(field, "in", values),)


def but(field: str, *values: object) -> Only:
    return (Condition(field, "not in", values),)


async def all_of(adapter: RestAdapter, resource: str, only: Only) -> list[Record]:
    records: list[Record] = []
    after = None
    while True:
        page = await adapter.read_many(ask(resource, limit=7, only=only, after=after))
        records += page.records
        if page.after is None:
            return records
        assert len(page.records) + page.skipped == 7
        after = page.after


def since(cloud: Cloud, begin: int) -> list[str]:
    """What the cloud was asked from then on, logins aside."""
    return [each for each in cloud.calls[begin:] if not each.endswith("/session")]


@pytest.fixture
async def sifting(url: str, tmp_path: Path) -> AsyncIterator[RestAdapter]:
    """One whose mapping lets clients be sifted too."""
    change = replaced(
        (
            "        search: {query: q, fields: [firstName, lastName]}\n",
            "        search: {query: q, fields: [firstName, lastName]}\n      sift: [lastName]\n",
        )
    )
    opened = connect(url, tmp_path, change)
    yield opened
    await opened.aclose()


async def test_one_value_is_asked_for_and_what_has_no_parameter_is_sifted(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    patients = await everything(adapter, "patients")
    owner = patients[5]["clientId"]
    name = patients[0]["name"]
    updated = sorted(each["updatedAt"] for each in patients if each["updatedAt"])
    middle = Condition("name", "in", (name, "none"))
    for only in (
        among("clientId", owner),
        but("name", name),
        (middle,),
        but("id", patients[3]["id"]),
    ):
        assert adapter.narrows("patients", only) == []
        assert await all_of(adapter, "patients", only) == let_be(patients, only) != []
    assert updated
    begin = len(cloud.calls)
    await all_of(adapter, "patients", among("clientId", owner))
    sifted = len(cloud.calls)
    await all_of(adapter, "patients", but("name", name))
    assert sifted - begin < len(cloud.calls) - sifted


async def test_a_time_from_which_on_is_asked_for_and_told_exactly(adapter: RestAdapter) -> None:
    clients = await everything(adapter, "clients")
    times = sorted({each["updatedAt"] for each in clients if each["updatedAt"]})
    at = times[len(times) // 2].replace("Z", "+00:00")
    for test in ("min", "above"):
        only = (Condition("updatedAt", test, datetime.fromisoformat(at)),)
        assert adapter.narrows("clients", only) == []
        assert await all_of(adapter, "clients", only) == let_be(clients, only)
    for test in ("max", "below"):
        assert adapter.narrows("clients", (Condition("updatedAt", test, NOW),))


@pytest.mark.parametrize(
    ("resource", "condition", "line", "said"),
    [
        ("patients", Condition("breed", "in", ("x",)), "      breed: race", "name it in `sift`"),
        ("patients", Condition("clientId", "not in", ("x",)), "      clientId: {source", "`sift`"),
        ("patients", Condition("alerts", "in", ("x",)), "      alerts: tags", "several values"),
        ("stock", Condition("name", "min", Decimal(1)), "      name: label", "does not sort"),
    ],
)
async def test_what_lists_cannot_leave_out_is_told_at_its_line(
    adapter: RestAdapter, tmp_path: Path, resource: str, condition: Condition, line: str, said: str
) -> None:
    (found,) = adapter.narrows(resource, (condition,))
    assert f"{resource}.{condition.field}" in found.text
    assert said in found.text
    lines = (tmp_path / "mapping.yaml").read_text().splitlines()
    assert lines[found.line - 1].startswith(line)
    assert found.column == 7


async def test_who_is_hidden_costs_the_calls_of_one_who_is_not_there(
    sifting: RestAdapter, cloud: Cloud
) -> None:
    draft = await a_draft(sifting)
    client = await sifting.read_one(ask("clients", id=draft.client_id))
    only = but("lastName", client["lastName"])
    by_client = (Filter("equals", ("clientId",), client["id"]),)
    asked = ask("invoices", within=("clients", client["id"]), within_only=only, filters=by_client)

    async def calls() -> list[list[str]]:
        found = []
        for verb, query in (
            (sifting.read_one, ask("clients", id=client["id"], only=only)),
            (sifting.read_many, asked),
            (sifting.create_appointment, replace(draft, only={"clients": only})),
        ):
            begin = len(cloud.calls)
            with pytest.raises(NotFound):
                await verb(query)  # type: ignore[operator]
            found.append(sorted(since(cloud, begin)))
        return found

    hidden = await calls()
    number = next(n for n, each in cloud.records.owners.items() if each["mail"] == client["email"])
    del cloud.records.owners[number]
    assert await calls() == hidden


async def test_where_one_is_looked_for_in_the_list_a_hidden_one_is_too(
    url: str, tmp_path: Path, cloud: Cloud
) -> None:
    adapter = connect(url, tmp_path, replaced(("    one: /owners/{id}\n", "")))
    clients = await everything(adapter, "clients")
    first = clients[0]
    begin = len(cloud.calls)
    with pytest.raises(NotFound):
        await adapter.read_one(ask("clients", id=first["id"], only=but("id", first["id"])))
    hidden = since(cloud, begin)
    cloud.records.owners.pop(min(cloud.records.owners))
    begin = len(cloud.calls)
    with pytest.raises(NotFound):
        await adapter.read_one(ask("clients", id=first["id"]))
    assert since(cloud, begin) == hidden
    await adapter.aclose()


async def test_what_is_hidden_is_neither_reported_nor_skipped(
    url: str, tmp_path: Path, cloud: Cloud
) -> None:
    troubles: list[Trouble] = []
    adapter = connect(url, tmp_path, troubles=troubles)
    cloud.records.animals[1]["state"] = "lost"
    cloud.records.animals[2]["id"] = None
    names = [cloud.records.animals[number]["name"] for number in (1, 2)]
    page = await adapter.read_many(ask("patients", limit=200, only=but("name", *names)))
    assert page.skipped == 0
    assert troubles == []
    page = await adapter.read_many(ask("patients", limit=200))
    assert page.skipped == 1
    await adapter.aclose()


async def test_a_row_of_ids_without_one_is_nobody_s_where_conditions_are(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    stock = cloud.records.stock
    stock[None] = next(iter(stock.values()))
    assert (await adapter.read_many(ask("stock", limit=200))).skipped == 1
    page = await adapter.read_many(ask("stock", limit=200, only=among("isLow", True, False)))
    assert page.skipped == 0
    assert page.records


async def test_a_lost_booking_is_found_whoever_is_hidden(adapter: RestAdapter) -> None:
    draft = await a_draft(adapter)
    made = await adapter.create_appointment(draft)
    hiding = replace(draft, only={"clients": among("id"), "patients": among("id")})
    assert list(await adapter.find_appointments(hiding, NOW - timedelta(seconds=1))) == [made]


@pytest.mark.parametrize("limit", [1, 3])
async def test_hidden_records_at_the_end_of_a_list_are_not_announced(
    adapter: RestAdapter, limit: int
) -> None:
    whole = await everything(adapter, "patients")
    shown = [each["id"] for each in whole[: 2 * limit]]
    only = (Condition("id", "in", tuple(shown)),)
    first = await adapter.read_many(ask("patients", limit=limit, only=only))
    assert [each["id"] for each in first.records] == shown[:limit]
    last = await adapter.read_many(ask("patients", limit=limit, only=only, after=first.after))
    assert [each["id"] for each in last.records] == shown[limit:]
    assert last.after is None
