"""Values that newer backends write: typed references, factors, codes of any type, search words."""

from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.base import Filter
from adapters.doctor.rest import examine
from adapters.documents.document import parse_document
from adapters.documents.problems import DocumentErrors
from adapters.examination import Examination, Verdict
from adapters.ids.seal import SealedIds
from adapters.mapping.expressions import NamedExpressions
from adapters.mapping.models import Reading, ValueSource
from adapters.rest.records import raw_value
from adapters.values.convert import Unreadable
from examples.json_cloud.backend import Cloud
from examples.json_cloud.records import ZONE
from tests.adapters.clinic import NOW, SECRET, TODAY, ask, slots
from tests.adapters.rest.cloud import connect, listening, new_cloud, replaced

READING = Reading(
    NamedExpressions(parse_document(b"{}", "x"), is_sql=False), "UTC", "https://fhir.example.org/r4"
)


def found(source: dict[str, Any], row: Any) -> Any:
    return raw_value(ValueSource.model_validate(source, context=READING))(row)


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("Patient/123", "123"),
        ("https://fhir.example.org/r4/Patient/a-1.b", "a-1.b"),
        ("Patient/123/_history/4", "123"),
        (["Group/1", "Patient/2", "Patient/3"], "2"),
        ("Group/123", None),
        ("OutPatient/123", None),
        ("Patient/", None),
        ("Patient/1/2", None),
        (None, None),
        ("", None),
        ([None, "Patient/2"], "2"),
        ("/r4/Patient/7", "7"),
        ("http://FHIR.example.org:80/r4/Patient/7/_history/1", "7"),
        ("https://fhir.example.org/r4/x/Patient/7", "7"),
        ("https://other.example/r4/Patient/7", None),
        ("//other.example/r4/Patient/7", None),
        ("https://fhir.example.org/r5/Patient/7", None),
        ("https://fhir.example.org:8443/r4/Patient/7", None),
        ("https://fhir.example.org/r4?of=/Patient/7", None),
        ("https://fhir.example.org/r4#/Patient/7", None),
        ("urn:x/Patient/7", None),
        ("Patient/7\n", None),
        ("Patient/7/_history/1\n", None),
    ],
)
def test_fact_34_a_typed_reference_is_read(written: Any, key: str | None) -> None:
    assert found({"source": "of", "reference": "Patient"}, {"of": written}) == key


@pytest.mark.parametrize(
    ("source", "is_own"),
    [("animal.owner.href", True), ("\"'http://elsewhere.example/v2/owners/1'\"", False)],
)
async def test_an_address_leads_to_a_record_on_the_backend_alone(
    tmp_path: Path, source: str, is_own: bool
) -> None:
    old = 'clientId: {source: animal.owner.href, match: "/owners/([0-9]+)$"}'
    change = replaced((old, f"clientId: {{source: {source}, reference: owners}}"))
    [record] = await read(tmp_path, new_cloud(), change, resource="appointments", limit=1)
    assert (record["clientId"] is not None) is is_own


@pytest.mark.parametrize("written", [7, {"a": "b"}, ["Patient/1", 7], "Patient/1" * 1000])
def test_what_is_no_reference_is_unreadable(written: Any) -> None:
    with pytest.raises(Unreadable):
        found({"source": "of", "reference": "Patient"}, {"of": written})


async def read(tmp_path: Path, cloud: Cloud, change: Any, **more: Any) -> list[dict[str, Any]]:
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path, change)
        try:
            page = await adapter.read_many(ask(**more))
        finally:
            await adapter.aclose()
        return list(page.records)


async def test_fact_34_a_factor_makes_a_percentage_of_a_share(tmp_path: Path) -> None:
    cloud = new_cloud()
    for bill in cloud.records.bills.values():
        bill["rows"][0]["vat"] = 0.055
    change = replaced(
        ("          taxRate: vat\n", "          taxRate: {source: vat, factor: 100}\n")
    )
    owner = SealedIds(SECRET, "clients").seal(2)
    filters = (Filter("equals", ("clientId",), owner),)
    records = await read(tmp_path, cloud, change, resource="invoices", filters=filters)
    assert {line["taxRate"] for record in records for line in record["lines"]} == {"5.50"}


async def test_codes_stand_for_values_of_any_type(tmp_path: Path) -> None:
    cloud = new_cloud()
    for bill in cloud.records.bills.values():
        bill["rows"][0]["vat"] = "std"
    for number, visit in cloud.records.visits.items():
        visit["kind"] = "KSV"[number % 3]
    change = replaced(
        ("          taxRate: vat\n", "          taxRate: {source: vat, codes: {std: 20}}\n"),
        ("Id: kind", "Id: {source: kind, codes: {K: 1, S: 2, V: null}}"),
        (
            "isUrgent: urgent\n",
            "isUrgent: {source: state, codes: {booked: true, done: false, cancelled: null}}\n",
        ),
    )
    owner = SealedIds(SECRET, "clients").seal(2)
    filters = (Filter("equals", ("clientId",), owner),)
    records = await read(tmp_path, cloud, change, resource="invoices", filters=filters)
    assert {line["taxRate"] for record in records for line in record["lines"]} == {"20.00"}
    visits = await read(tmp_path, cloud, change, resource="appointments", limit=60)
    types = SealedIds(SECRET, "appointmentTypes")
    known = {"K": types.seal(1), "S": types.seal(2), "V": None}
    states = {"SCHEDULED": True, "COMPLETED": False, "CANCELLED": None}
    for record, visit in zip(visits, cloud.records.visits.values(), strict=True):
        assert record["appointmentTypeId"] == known[visit["kind"]]
        assert record["isUrgent"] is states[record["status"]]


class Phrases(Cloud):
    """Takes each parameter of a search for one beginning of a first or a last name."""

    def app(self) -> Any:
        self.asked: list[list[str]] = []
        return super().app()

    async def owners(self, request: Any) -> Any:
        words = request.query.getall("q", [])
        self.asked.append(words)
        kept = self.records.owners
        names = {
            key: [name.strip().lower() for name in it["name"].values()] for key, it in kept.items()
        }
        try:
            self.records.owners = {
                key: it
                for key, it in kept.items()
                if all(any(n.startswith(w.lower()) for n in names[key]) for w in words)
            }
            return await super().owners(
                request.clone(rel_url=request.rel_url.without_query_params("q"))
            )
        finally:
            self.records.owners = kept


@pytest.mark.parametrize(
    ("words", "asked"), [("each", ["kar", "brun"]), ("one", ["brun"]), ("together", ["kar brun"])]
)
async def test_a_search_of_several_words_is_handed_over_as_the_backend_takes_it(
    words: str, asked: list[str], tmp_path: Path
) -> None:
    cloud = Phrases(new_cloud().records)
    change = replaced(("query: q,", f"query: q, words: {words},"))
    search = (Filter("search", ("firstName", "lastName"), "kar brun"),)
    records = await read(tmp_path, cloud, change, resource="clients", filters=search)
    assert cloud.asked[0] == asked
    names = {(record["firstName"], record["lastName"]) for record in records}
    assert names == (set() if words == "together" else {("Karim", "Brun")})


@pytest.mark.parametrize(("words", "lost"), [("together", True), ("each", False), ("one", False)])
async def test_fact_34_the_check_tells_a_search_that_loses_two_words(
    words: str, lost: bool, tmp_path: Path
) -> None:
    async with listening(Phrases(new_cloud().records)) as url:
        adapter = connect(url, tmp_path, replaced(("query: q,", f"query: q, words: {words},")))
        found = [it async for it in examine(adapter, Examination(now=NOW))]
        await adapter.aclose()
    told = [it for it in found if "finds nobody by two words" in it.text]
    assert bool(told) == lost
    assert {it.verdict for it in told} <= {Verdict.FAILED}


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("name.first", "{source: name.first, factor: 2}", "factor does not go with"),
        ("taxRate: vat", "taxRate: {source: vat, factor: 0}", "greater than 0|more than 0"),
        ("taxRate: vat", "taxRate: {source: vat, codes: {a: much}}", "must be a percentage"),
        ("birthDate: born", "birthDate: {source: born, codes: {a: soon}}", "must be a day"),
        ("isUrgent: urgent", "isUrgent: {source: urgent, codes: {a: 1}}", "must be true or false"),
        ("vetId: vet.uuid", "vetId: {source: vet.uuid, codes: {a: true}}", "must be a key"),
        ("patientId: animal.id", "patientId: {source: a, match: '(b)', reference: C}", "match or"),
        ("patientId: animal.id", "patientId: {source: a, reference: a/b}", "reference"),
        ("query: q,", "query: q, words: all,", "together"),
        (
            "updatedAt: changed_since",
            "updatedAt: {query: x, words: each}",
            "words goes with search",
        ),
    ],
)
def test_what_is_wrong_is_said_at_its_line(
    right: str, wrong: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(DocumentErrors, match=rf"mapping\.yaml:\d+:\d+: .*({said})"):
        connect("http://127.0.0.1:1/v2", tmp_path, replaced((right, wrong)))


async def test_fact_34_a_row_of_several_vets_blocks_each_of_them(tmp_path: Path) -> None:
    cloud = new_cloud()
    vets = [key for key, vet in cloud.records.vets.items() if not vet["retired"]][:3]
    day = TODAY + timedelta(days=7 - TODAY.weekday() + 1)  # a Tuesday
    begin = datetime.combine(day, time(), ZONE)
    both = [{"kind": "Room/1"}, *({"kind": f"Vet/{vet}"} for vet in vets[:2])]
    cloud.records.absences[:] = [
        {"who": both, "from": begin.isoformat(), "to": (begin + timedelta(days=1)).isoformat()}
    ]
    change = replaced(
        ("      vet: vet\n", '      vet: {source: "who[].kind", reference: Vet, as: native id}\n')
    )
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path, change)
        free = [await slots(adapter, vet.lower(), day) for vet in vets]
        await adapter.aclose()
    assert [bool(times) for times in free] == [False, False, True]
