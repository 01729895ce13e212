"""Facts of practice systems, numbered, of a backend that speaks JSON: a mapping undoes each."""

from pathlib import Path

from examples.json_cloud.backend import Cloud
from tests.adapters.clinic import ask
from tests.adapters.rest.cloud import connect, replaced


async def test_fact_31_bills_of_two_directions_are_told_apart_by_a_named_condition(
    url: str, cloud: Cloud, tmp_path: Path
) -> None:
    first, second, third, *_ = sorted(cloud.records.bills)
    for number, bill in cloud.records.bills.items():
        bill["kind"] = {first: "purchase", second: "credit"}.get(number, "sale")
    named = "expressions:\n  ours: (kind == 'sale' || kind == 'credit')\nresources:\n"
    changes = [("resources:\n", named)]
    changes.append(("    key: id\n    fields:\n      number: ref\n",
        '    where: "{ours} && id"\n    key: id\n    fields:\n      number: ref\n'))  # fmt: skip
    adapter = connect(url, tmp_path, replaced(*changes))
    shown = {bill["number"] for bill in (await adapter.read_many(ask("invoices"))).records}
    of = {number: bill["ref"] for number, bill in cloud.records.bills.items()}
    assert of[first] not in shown
    assert {of[second], of[third]} <= shown
    await adapter.aclose()
