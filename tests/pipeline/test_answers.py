"""What comes back from the practice system, and what a partner is told of it."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from adapters import base
from adapters.base import AdapterError, Page, Query, Record
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.errors import GatewayError, InternalError
from gateway.contract.operations import OPERATIONS, Operation
from gateway.contract.resources import APPOINTMENT_TYPE
from gateway.pipeline.forward import TRANSLATED, translated
from tests.conftest import Begin
from tests.partner import Answer, Partner, forget_bookings
from tests.world import OTHER_ID, SOME_ID, World, nobody, record_of

DRAFT = {
    "clientId": SOME_ID,
    "patientId": SOME_ID,
    "vetId": SOME_ID,
    "scheduledAt": "2099-01-01T09:00:00Z",
}
TEXT = "table CLIENTS, column 7, host db.clinic.example"


def raising(error: Exception) -> Callable[[Any], Any]:
    def fail(_: Any) -> Any:
        raise error

    return fail


async def ask(partner: Partner, operation: Operation, **headers: str) -> Answer:
    """A sound call of any operation."""
    if operation.creates:
        return await partner.post(operation.path, DRAFT, **headers)
    path = operation.path.partition("{")[0] + (SOME_ID if "{" in operation.path else "")
    needed = {"vetId": SOME_ID, "date": "2026-03-01"} if operation.returns.name == "slots" else {}
    return await partner.get(path, **needed)


def test_every_error_of_an_adapter_is_translated() -> None:
    kinds = AdapterError.__subclasses__()
    assert {kind for kind in kinds if kind.__module__.startswith("adapters.")} == set(TRANSLATED)

    class OfAClinic(base.BackendTimeout):
        pass

    assert translated(OfAClinic()).status == 504
    assert isinstance(translated(AdapterError()), InternalError)


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (base.NotFound(TEXT), 404, "Resource not found"),
        (base.SlotTaken(TEXT), 409, "Time slot conflict"),
        (base.Rejected(TEXT), 502, "The practice system gave an unusable answer"),
        (base.BackendUnavailable(TEXT), 503, "Service temporarily unavailable"),
        (base.BackendTimeout(TEXT), 504, "The practice system did not answer in time"),
        (base.BackendNonsense(TEXT), 502, "The practice system gave an unusable answer"),
        (ZeroDivisionError(TEXT), 500, "Internal server error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
async def test_a_failure_is_told_without_a_word_of_the_practice_system(
    partner_of: Begin,
    capfd: pytest.CaptureFixture[str],
    error: Exception,
    status: int,
    message: str,
) -> None:
    partner = await partner_of(World(one=raising(error)))
    answer = await partner.get(f"/clients/{SOME_ID}")
    assert (answer.status, answer.data) == (status, {"message": message})
    assert ("Retry-After" in answer.headers) == (status == 503)
    assert "X-Access-Level" not in answer.headers
    logged = capfd.readouterr().err
    if not isinstance(error, AdapterError):
        assert "ZeroDivisionError" in logged
        assert TEXT not in logged


async def test_an_unknown_outcome_says_what_to_do_with_and_without_a_key(partner_of: Begin) -> None:
    partner = await partner_of(World(create=raising(base.OutcomeUnknown(TEXT))))
    answer = await partner.post("/appointments", DRAFT)
    message = "Booking outcome unknown. Check before booking again."
    assert (answer.status, answer.data["message"]) == (504, message)
    answer = await partner.post("/appointments", DRAFT | {"vetId": OTHER_ID}, Idempotency_Key="k")
    message = "Booking outcome unknown. Ask again with the same Idempotency-Key."
    assert (answer.status, answer.data["message"]) == (504, message)


async def test_outcomes_are_replayed_and_say_so(partner_of: Begin) -> None:
    made: list[int] = []

    def create(_: base.Draft) -> Record:
        made.append(1)
        return record_of(OPERATIONS[0].returns)

    world = World(create=create)
    partner = await partner_of(world)
    first = await partner.post("/appointments", DRAFT, Idempotency_Key="k")
    again = await partner.post(
        "/appointments", DRAFT | {"scheduledAt": "2099-01-01T10:00:00+01:00"}, Idempotency_Key="k"
    )
    assert (first.status, again.status, first.text) == (201, 201, again.text)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert first.headers["Location"] == f"{partner.gateway.base}/appointments/{SOME_ID}"
    other = await partner.post("/appointments", DRAFT | {"reason": "other"}, Idempotency_Key="k")
    message = "Idempotency-Key was used with another request"
    assert (other.status, other.data["message"]) == (400, message)
    world.create = raising(base.SlotTaken())
    taken = [await partner.post("/appointments", DRAFT, Idempotency_Key="l") for _ in "12"]
    assert [(each.status, each.data["message"]) for each in taken] == [
        (409, "Time slot conflict")
    ] * 2
    assert [each.headers.get("Idempotent-Replayed") for each in taken] == [None, "true"]
    assert len(made) == 1


async def test_a_time_that_has_passed_is_400(partner_of: Begin) -> None:
    partner = await partner_of(World())
    answer = await partner.post("/appointments", DRAFT | {"scheduledAt": "2020-01-01T09:00:00Z"})
    assert answer.status == 400
    assert answer.data["errors"] == [{"field": "scheduledAt", "problem": "must be in the future"}]


async def test_records_that_differ_in_hidden_fields_look_the_same(partner_of: Begin) -> None:
    """Byte for byte, headers included but for those that name the call."""
    world = World()
    partner = await partner_of(world)
    for operation, level in product(OPERATIONS, LEVELS):
        plain, other = await _shown(await partner.with_key(level=level), world, operation, level)
        assert plain == other, (operation.id, level)


async def _shown(
    partner: Partner, world: World, operation: Operation, level: AccessLevel
) -> list[tuple[str, Any]]:
    """What is answered of a record, and of one that is other wherever the level sees nothing."""
    resource = operation.returns
    plain = record_of(resource)
    different = {name: _other(value) for name, value in plain.items()}
    shown: list[tuple[str, Any]] = []
    gateway = partner.gateway.gateway
    visible = (
        gateway.keeper.policy().redactor(resource.name, level).visible
        if resource.governed
        else None
    )
    for source in (plain, different):
        record = plain if visible is None else _with_hidden(plain, source, visible)
        world.one = world.create = lambda _, record=record: record
        world.many = lambda query, record=record: Page(
            records=[record, record], after=None if query.after else "9", skipped=1
        )
        answer = await ask(partner, operation)
        await forget_bookings(partner)
        assert answer.status == operation.status, answer.text
        headers = {name.lower(): value for name, value in answer.headers.items()}
        for name in ("x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset", "date"):
            del headers[name]
        shown.append((answer.text, headers))
    return shown


# Others are cached, and so asked for whole.
GOVERNED_READS = [it for it in OPERATIONS if it.returns.governed and not it.creates]


async def test_the_practice_system_is_asked_for_no_field_that_the_level_does_not_see(
    partner_of: Begin,
) -> None:
    world = World()
    partner = await partner_of(world)
    for operation, level in product(GOVERNED_READS, LEVELS):
        del world.asked[:]
        await ask(await partner.with_key(level=level), operation)
        redactor = partner.gateway.gateway.keeper.policy().redactor(operation.returns.name, level)
        asked = [query.fields for query in world.asked if query.resource == operation.returns.name]
        assert set(asked) == {redactor.needed}, (operation.id, level)


def _other(value: Any) -> Any:
    if isinstance(value, list):
        return [_other(each) for each in value] * 3
    if isinstance(value, dict):
        return {name: _other(each) for name, each in value.items()}
    return None if value is True else f"other {value}"


def _with_hidden(plain: Record, source: Record, visible: frozenset[str]) -> Record:
    """The open fields of one record, the hidden ones of another, and a column nobody knows."""
    mixed: Record = {"password": repr(source)}
    for name, value in plain.items():
        inner = {
            path.removeprefix(f"{name}[].") for path in visible if path.startswith(f"{name}[].")
        }
        if inner:
            rows = zip(value, source[name], strict=False)
            mixed[name] = [
                {**theirs, **{each: ours[each] for each in inner}} for ours, theirs in rows
            ]
        else:
            mixed[name] = value if name in visible else source[name]
    return mixed


async def test_one_bad_row_never_fails_a_list(
    partner_of: Begin, capfd: pytest.CaptureFixture[str]
) -> None:
    good = record_of(OPERATIONS[5].returns)
    rows = [good, good | {"id": None}, good | {"phone": 5, "id": OTHER_ID}]
    world = World(many=lambda query: Page(records=rows, skipped=2))
    partner = await partner_of(world)
    answer = await partner.get("/clients")
    assert [each["id"] for each in answer.data] == [SOME_ID, OTHER_ID]
    assert answer.data[1]["phone"] is None
    assert answer.headers["X-Skipped-Records"] == "3"
    logged = capfd.readouterr().err
    assert '"unusable value"' in logged
    assert OTHER_ID in logged
    async with partner._session.get(partner.gateway.operations + "/metrics") as response:
        figures = await response.text()
    assert 'kind="unreadable",resource="clients"' in figures
    assert 'field="phone"' in figures
    world.one = lambda query: rows[1]
    alone = await partner.get(f"/clients/{SOME_ID}")
    assert alone.status == 502


async def test_a_page_links_to_the_next_with_its_filters_until_the_last(partner_of: Begin) -> None:
    record = record_of(OPERATIONS[5].returns)
    world = World(many=lambda query: Page(records=[record], after=None if query.after else "9"))
    partner = await partner_of(world)
    first = await partner.get("/clients", search="É a&b", limit="1")
    target = first.headers["Link"].removeprefix("<").removesuffix('>; rel="next"')
    second = await partner.send("GET", target.removeprefix(partner.gateway.base))
    assert second.status == 200
    assert "Link" not in second.headers
    one, two = world.asked
    assert (one.filters, one.limit, two.after) == (two.filters, two.limit, "9")
    other = await partner.with_key()
    refused = await other.send("GET", target.removeprefix(partner.gateway.base))
    assert refused.data["errors"][0]["field"] == "cursor"


async def test_a_page_of_over_a_mebibyte_ends_earlier_and_links_to_the_rest(
    partner_of: Begin,
) -> None:
    record = record_of(OPERATIONS[5].returns)
    # the fifth is larger than a page all by itself
    sizes = [400_000, 400_000, 400_000, 10, 1_200_000, 10, 300_000, *[9_000] * 300]
    rows = [
        record | {"id": f"{number:08x}{SOME_ID[8:]}", "address": "x" * size}
        for number, size in enumerate(sizes)
    ]

    def many(query: Query) -> Page:
        begin = int(query.after or "0")
        end = min(begin + query.limit, len(rows))
        return Page(records=rows[begin:end], after=str(end) if end < len(rows) else None)

    world = World(many=many)
    partner = await partner_of(world)
    seen: list[str] = []
    answer = await partner.get("/clients", limit="200")
    while True:
        assert answer.status == 200
        assert len(answer.text) <= 1 << 20 or len(answer.data) == 1
        seen += [each["id"] for each in answer.data]
        if "Link" not in answer.headers:
            break
        target = answer.headers["Link"].removeprefix("<").removesuffix('>; rel="next"')
        # the next page may be a large one again
        assert "limit=200" in target
        answer = await partner.send("GET", target.removeprefix(partner.gateway.base))
    assert seen == [each["id"] for each in rows]
    await partner.gateway.gateway.public.front.observers.flush()
    audited = [each["recordIds"] for each in partner.gateway.entries() if each["recordIds"]]
    assert [each for page in audited for each in page] == seen
    # who does not see what makes it large gets it whole
    world.asked.clear()
    basic = await partner.with_key(level="BASIC")
    assert len((await basic.get("/clients", limit="200")).data) == 200
    assert len(world.asked) == 1


async def test_unknown_records_are_404(partner_of: Begin) -> None:
    partner = await partner_of(World(one=nobody))
    assert (await partner.get(f"/stock/{SOME_ID}")).data == {"message": "Resource not found"}


def test_every_error_class_has_a_status_and_a_sentence() -> None:
    def below(kind: type[GatewayError]) -> list[type[GatewayError]]:
        return [kind, *(each for inner in kind.__subclasses__() for each in below(inner))]

    for kind in below(GatewayError)[1:]:
        assert kind.status in range(400, 600)


async def test_types_are_whole_however_many_pages_the_practice_system_makes_of_them(
    partner_of: Begin,
) -> None:
    record = record_of(APPOINTMENT_TYPE)
    pages = {None: "50", "50": "100", "100": None}
    world = World(many=lambda query: Page(records=[record], after=pages[query.after]))
    answer = await (await partner_of(world)).get("/appointments/types")
    assert answer.status == 200
    assert len(answer.data) == 3
    assert "Link" not in answer.headers


async def test_a_whole_list_that_never_ends_is_no_answer(partner_of: Begin) -> None:
    world = World(many=lambda query: Page(records=[], after="again"))
    assert (await (await partner_of(world)).get("/appointments/types")).status == 502


async def test_a_booking_for_a_deceased_animal_is_400_and_its_key_stays_free(
    partner_of: Begin,
) -> None:
    world = World(create=raising(base.PatientDeceased(TEXT)))
    partner = await partner_of(world)
    answer = await partner.post("/appointments", DRAFT, Idempotency_Key="k")
    problem = {"field": "patientId", "problem": "must not name a deceased animal"}
    assert (answer.status, answer.data["errors"]) == (400, [problem])
    world.create = None
    assert (await partner.post("/appointments", DRAFT, Idempotency_Key="k")).status == 201


async def test_a_deceased_animal_is_refused_through_the_whole_road(partner: Partner) -> None:
    draft = await partner.draft()
    patients = (await partner.get("/patients", limit="200")).data
    for each in patients:
        if each["status"] != "ACTIVE" and each["clientId"]:
            named = {"clientId": each["clientId"], "patientId": each["id"]}
            if (await partner.get(f"/clients/{each['clientId']}")).status != 200:
                continue
            answer = await partner.post("/appointments", draft | named)
            assert answer.status == (400 if each["status"] == "DECEASED" else 201), answer.text
            if each["status"] == "DECEASED":
                assert [error["field"] for error in answer.data["errors"]] == ["patientId"]
                break
    else:
        pytest.fail("no animal of the sample clinic has died")
