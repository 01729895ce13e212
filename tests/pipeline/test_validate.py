import base64
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from adapters.base import LONGEST_AFTER
from gateway.contract.errors import InvalidRequest
from gateway.contract.openapi import BODY, document
from gateway.contract.operations import OPERATIONS, Operation, Param
from gateway.pipeline import validate
from gateway.pipeline.cursor import CursorCipher, bound_to
from gateway.pipeline.validate import CallReader, Creation
from tests.conftest import Begin
from tests.world import OTHER_ID, SOME_ID, World

BY_ID = {operation.id: operation for operation in OPERATIONS}
CURSORS = CursorCipher(b"0" * 32)
DRAFT = {
    "clientId": SOME_ID,
    "patientId": SOME_ID,
    "vetId": SOME_ID,
    "scheduledAt": "2099-01-01T09:00:00+02:00",
}


def reader(name: str, unserved: tuple[str, ...] = ()) -> CallReader:
    return CallReader(BY_ID[name], lambda param: param.name not in unserved, CURSORS)


def everything(operation: Operation) -> frozenset[str]:
    return frozenset(operation.returns.paths)


def problems_of(name: str, query: str, raw_id: str = "", unserved: tuple[str, ...] = ()) -> Any:
    with pytest.raises(InvalidRequest) as raised:
        reader(name, unserved).read(raw_id, query, "key", everything(BY_ID[name]))
    return {each.field: each.problem for each in raised.value.problems}


def values_of(name: str, query: str, raw_id: str = "") -> Any:
    return reader(name).read(raw_id, query, "key", everything(BY_ID[name]))


def creation(body: Any, *keys: str, query: str = "") -> Creation:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    operation = BY_ID["create_appointment"]
    return reader(operation.id).read_creation(query, data, keys, everything(operation))


def refusal(call: Callable[[], object]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as raised:
        call()
    return raised.value


def problems_of_creation(body: Any, *keys: str, query: str = "") -> Any:
    problems = refusal(lambda: creation(body, *keys, query=query)).problems
    return {each.field: each.problem for each in problems}


def test_the_documents_example_of_a_400_is_what_is_answered() -> None:
    answer = document(public_url="https://x.example")["components"]["responses"]["Error400"]
    example = answer["content"]["application/json"]["examples"]["InvalidRequest"]["value"]
    given = refusal(lambda: values_of("list_clients", "limit=201"))
    assert example == given.members()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.id)
def test_an_unknown_or_repeated_parameter_is_refused_everywhere(operation: Operation) -> None:
    if operation.creates:
        problems = problems_of_creation(DRAFT, query="limti=1")
    else:
        problems = problems_of(operation.id, "limti=1", SOME_ID)
    assert problems["limti"].startswith("is not a parameter of this operation")
    if operation.paged:
        assert problems["limti"].endswith("(did you mean limit?)")
        assert (
            problems_of(operation.id, "limit=1&limit=1", SOME_ID)["limit"] == "must be given once"
        )


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if "{" in each.path])
@pytest.mark.parametrize(
    "text",
    [
        "x",
        SOME_ID.upper(),
        f"{{{SOME_ID}}}",
        f"urn:uuid:{SOME_ID}",
        SOME_ID.replace("-", ""),
        "%00",
        f"{SOME_ID}%0a",
        f"{SOME_ID}\n",
        "..%2f..%2fadmin",
        f" {SOME_ID}",
        "\u0660b9f6c1e-7a52-8d3b-9c41-5e2f8a6d7b10",
    ],
)
def test_only_a_lower_case_uuid_is_an_id(operation: Operation, text: str) -> None:
    [problem] = problems_of(operation.id, "", text).values()
    assert "must be a UUID in lower case" in problem


@pytest.mark.parametrize(
    ("query", "field", "problem"),
    [
        ("limit=0", "limit", "must be from 1 to 200"),
        ("limit=201", "limit", "must be from 1 to 200"),
        ("limit=1e2", "limit", "must be a whole number"),
        ("limit=01", "limit", "must be a whole number"),
        ("limit=", "limit", "must be a whole number"),
        ("limit=%D9%A1", "limit", "must be a whole number"),
        ("search=a", "search", "must have from 2 to 100 characters"),
        ("search=+a+", "search", "must have from 2 to 100 characters"),
        ("search=" + "a" * 101, "search", "must have from 2 to 100 characters"),
        ("search=ab" + "+" * 99, "search", "must have from 2 to 100 characters"),
        ("search=ab%00", "search", "must not contain control characters"),
        ("search=ab%0A", "query", ""),
        ("search=%ff%fe", "search", "must be percent-encoded UTF-8"),
        ("search=\udcff\udcfe", "search", "must be percent-encoded UTF-8"),
        ("s%ffarch=ab", "query", "must be percent-encoded UTF-8"),
        ("x=%ED%B3%BF", "query", "must be percent-encoded UTF-8"),
        ("updatedSince=2026-03-01T09:00:00", "updatedSince", "must be a date-time with its offset"),
        ("updatedSince=2026-02-30T09:00:00Z", "updatedSince", "must be a date-time"),
        ("cursor=", "cursor", "must have from 1 to 2800 characters"),
        ("cursor=abc", "cursor", "must be taken from the Link header"),
    ],
)
def test_parameters_are_read_strictly(query: str, field: str, problem: str) -> None:
    if not problem:
        assert values_of("list_clients", query).params == {"search": "ab"}
    else:
        assert problems_of("list_clients", query)[field].startswith(problem)


def test_a_plus_in_a_query_is_a_blank_and_the_problem_says_so() -> None:
    problems = problems_of("list_clients", "updatedSince=2026-03-01T09:00:00+01:00")
    assert "write + as %2B" in problems["updatedSince"]
    assert "%2B" not in problems_of("list_clients", "updatedSince=2026-03-01")["updatedSince"]
    values = values_of("list_clients", "updatedSince=2026-03-01T09:00:00%2B01:00")
    assert values.params["updatedSince"].isoformat() == "2026-03-01T08:00:00+00:00"


def test_all_that_is_wrong_is_said_at_once() -> None:
    problems = problems_of("list_client_invoices", "limit=x&status=PAYED&foo=1", "nonsense")
    assert set(problems) == {"clientId", "limit", "status", "foo"}
    assert problems["status"] == "must be one of DRAFT, ISSUED, PARTIALLY_PAID, PAID, CANCELLED"
    problems = problems_of_creation(
        {"clientId": 1, "isUrgnet": True, "vetId": None}, "a b", query="x=1"
    )
    assert set(problems) == {
        "clientId",
        "patientId",
        "vetId",
        "scheduledAt",
        "isUrgnet",
        "Idempotency-Key",
        "x",
    }
    assert problems["isUrgnet"].endswith("(did you mean isUrgent?)")
    assert problems["patientId"] == "is required"


def test_a_cursor_that_does_not_fit_is_said_with_all_the_rest() -> None:
    problems = problems_of("list_clients", "cursor=abc&limit=0&foo=1")
    assert set(problems) == {"cursor", "limit", "foo"}
    cursor = CURSORS.write("42", bound_to("key", "list_clients", {}))
    assert set(problems_of("list_clients", f"cursor={cursor}&limit=0")) == {"limit"}


def test_bytes_that_are_not_utf_8_hide_nothing_else_that_is_wrong() -> None:
    garbled = "must be percent-encoded UTF-8"
    assert problems_of("list_available_slots", "date=%ff") == {
        "date": garbled,
        "vetId": "is required",
    }
    problems = problems_of("list_clients", "x=%ff&%fe=&search=a&limit=0")
    assert set(problems) == {"query", "search", "limit"}
    assert problems["query"] == garbled


def test_of_very_many_problems_the_first_are_named_and_the_rest_counted() -> None:
    wrong = {f"isUrgnet{number}": 1 for number in range(4000)}
    query = "&".join(f"limti{number}" for number in range(400))
    for raised, known, total in (
        (refusal(lambda: creation({"clientId": 1} | wrong)), 4, 4004),
        (refusal(lambda: values_of("list_clients", f"search=a&{query}")), 1, 401),
        (refusal(lambda: values_of("list_available_slots", query)), 2, 402),
    ):
        *named, last = raised.problems
        assert len(named) == 20
        assert (last.field, last.problem) == ("request", f"has further problems: {total - 20}")
        hinted = [each for each in named if "did you mean" in each.problem]
        assert all(each in named[known : known + 5] for each in hinted)
        assert raised.members()["errors"][-1]["field"] == "request"
    assert problems_of_creation({"isUrgnet": 1})["isUrgnet"].endswith("(did you mean isUrgent?)")
    assert problems_of_creation({"ISURGENT": 1})["ISURGENT"].endswith("(did you mean isUrgent?)")


def test_very_many_unknown_names_are_not_compared_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = []

    def compare(name: str, known: object) -> str:
        assert len(name) <= 64
        compared.append(name)
        return ""

    monkeypatch.setattr(validate, "did_you_mean", compare)
    wrong = {f"isUrgnet{number:0100}": 1 for number in range(4000)}
    problems_of_creation(DRAFT | wrong)
    problems_of("list_clients", "&".join(wrong))
    assert len(compared) == 10


def test_what_slots_need_is_required() -> None:
    assert problems_of("list_available_slots", "") == {
        "vetId": "is required",
        "date": "is required",
    }


def test_a_filter_that_the_practice_system_cannot_serve_is_refused() -> None:
    problems = problems_of("list_stock", "category=food", unserved=("category",))
    assert problems == {"category": "cannot be served by the practice system"}


def test_a_filter_needs_all_its_fields_to_be_open() -> None:
    for hidden in ("firstName", "lastName"):
        visible = everything(BY_ID["list_clients"]) - {hidden}
        with pytest.raises(InvalidRequest) as raised:
            reader("list_clients").read("", "search=ab", "key", visible)
        assert raised.value.message.endswith("search is not available at this access level")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b'{"reason": NaN}',
        b'{"reason": "\\ud800"}',
        b"\xff",
        b"\xef\xbb\xbf{}",
        b"[" * 20_000,
    ],
)
def test_a_body_that_is_not_json_is_told_so(body: bytes) -> None:
    assert problems_of_creation(body) == {"body": "is not JSON"}


@pytest.mark.parametrize("body", [b"[]", b"null", b'"x"'])
def test_a_body_is_a_json_object(body: bytes) -> None:
    assert problems_of_creation(body) == {"body": "must be a JSON object"}


def test_a_member_that_stands_twice_is_named_however_it_is_spelt() -> None:
    written = json.dumps(DRAFT | {"reason": "a", "isUrgent": False})[1:-1]
    twice = f'{{"vetId": 5, "reaso\\u006e": "b", {written}, "clientId": "{SOME_ID}"}}'
    once = "must be given once"
    assert problems_of_creation(twice.encode()) == dict.fromkeys(
        ("clientId", "reason", "vetId"), once
    )


def test_members_that_stand_twice_inside_a_member_are_named_too() -> None:
    inner = json.dumps(DRAFT)[1:-1] + ', "vetId": [{"a": 1, "b": {}, "a": 2}]'
    found = problems_of_creation(f"{{{inner}}}".encode())
    assert found == {"a": "must be given once", "vetId": "must be given once"}


def test_repeated_members_are_told_with_all_else_that_is_wrong() -> None:
    found = problems_of_creation(b'{"isUrgnet": 1, "isUrgnet": 2}')
    assert found.keys() == {"isUrgnet", "clientId", "patientId", "vetId", "scheduledAt"}


@pytest.mark.parametrize(
    "value",
    [
        "9" * 20_000,
        "1e" + "9" * 400,
        '{"a":' * 400 + "1" + "}" * 400,
        "[" * 1000 + "]" * 1000,
        '{"a":' * 1000 + "1" + "}" * 1000,
    ],
    ids=["long number", "large exponent", "objects", "deep lists", "deep objects"],
)
def test_odd_values_are_no_fault_of_ours(value: str) -> None:
    inner = json.dumps(DRAFT)[1:-1]
    [(field, problem)] = problems_of_creation(f'{{{inner}, "isUrgent": {value}}}'.encode()).items()
    assert field in {"isUrgent", "body"}
    assert problem in {"must be true or false", "is not JSON", "is nested too deeply"}


HIDDEN = (
    *(0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x2028, 0x202F)),
    *(*range(0x2060, 0x2070), 0xFEFF, 0xFFF9, 0xE0041, 0xE01F0, 0xE0FFF),
)


@pytest.mark.parametrize("code", HIDDEN, ids=hex)
def test_a_reason_holds_nothing_that_the_desk_does_not_see(code: int) -> None:
    problem = f"must not contain U+{code:04X}: it is not seen, or changes what is seen"
    assert problems_of_creation(DRAFT | {"reason": f"a{chr(code)}b"}) == {"reason": problem}


def test_of_variation_selectors_one_alone_may_follow_a_sign() -> None:
    problem = "must not contain U+FE0F: it is not seen, or changes what is seen"
    assert problems_of_creation(DRAFT | {"reason": "❤\ufe0f\ufe0f"}) == {"reason": problem}


@pytest.mark.parametrize("text", ["😀 ❤️ é e\u0301\nא ب 猫", "a\u00a0b\u2003c", ""])
def test_a_reason_may_hold_every_sign_that_is_seen(text: str) -> None:
    assert creation(DRAFT | {"reason": text}).body["reason"] == text


def test_the_document_says_which_characters_a_reason_may_hold() -> None:
    schema = document(public_url="https://x.example")["components"]["schemas"][BODY]
    pattern = re.compile(schema["properties"]["reason"]["pattern"])
    assert pattern.search("limps\n❤️")
    assert not any(pattern.search(chr(code)) for code in HIDDEN if code < 0x10000)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("clientId", SOME_ID.upper()),
        ("clientId", None),
        ("patientId", 5),
        ("vetId", [SOME_ID]),
        ("appointmentTypeId", None),
        ("scheduledAt", "2099-01-01T09:00:00"),
        ("scheduledAt", "2099-01-01"),
        ("scheduledAt", "2099-02-30T09:00:00Z"),
        ("scheduledAt", "2099-W01-1T09:00:00Z"),
        ("scheduledAt", 4_070_908_800),
        ("scheduledAt", "0001-01-01T00:00:00+14:00"),
        ("isUrgent", 1),
        ("isUrgent", "true"),
        ("isUrgent", None),
        ("reason", None),
        ("reason", 5),
        ("reason", "a" * 501),
        ("reason", "a\tb"),
        ("reason", "a\x7f"),
        ("reason", "a\x85"),
    ],
)
def test_members_of_a_booking_are_read_strictly(member: str, value: Any) -> None:
    assert set(problems_of_creation(DRAFT | {member: value})) == {member}


@pytest.mark.parametrize("member", ["appointmentTypeId", "isUrgent", "reason"])
def test_an_optional_member_that_is_null_is_to_be_left_out(member: str) -> None:
    problem = {member: "must not be null: leave it out"}
    assert problems_of_creation(DRAFT | {member: None}) == problem


def test_a_booking_is_read_with_its_defaults() -> None:
    made = creation(DRAFT | {"reason": "é" * 499 + "\n"}, "k" * 255)
    assert made.idempotency_key == "k" * 255
    assert made.body["isUrgent"] is False
    assert made.body["appointmentTypeId"] is None
    assert made.body["scheduledAt"].isoformat() == "2099-01-01T07:00:00+00:00"
    assert (
        creation(DRAFT | {"scheduledAt": "2099-01-01t07:00:00.000z"}).body == creation(DRAFT).body
    )


@pytest.mark.parametrize("keys", [("a", "a"), ("",), ("a b",), ("é",), ("k" * 256,), ("a\x7f",)])
def test_an_idempotency_key_is_one_word_of_visible_ascii(keys: tuple[str, ...]) -> None:
    assert set(problems_of_creation(DRAFT, *keys)) == {"Idempotency-Key"}


def test_a_cursor_holds_for_its_key_its_operation_and_its_filters() -> None:
    cursor = CURSORS.write("42", bound_to("key", "list_clients", {"search": "ab"}))
    read = reader("list_clients").read
    visible = everything(BY_ID["list_clients"])
    assert read("", f"search=ab&limit=3&cursor={cursor}", "key", visible).after == "42"
    for query, key in ((f"search=ac&cursor={cursor}", "key"), (f"cursor={cursor}", "key")):
        with pytest.raises(InvalidRequest, match="cursor"):
            read("", query, key, visible)
    with pytest.raises(InvalidRequest, match="cursor"):
        read("", f"search=ab&cursor={cursor}", "other", visible)
    patients = reader("list_patients").read
    with pytest.raises(InvalidRequest, match="cursor"):
        patients("", f"search=ab&cursor={cursor}", "key", everything(BY_ID["list_patients"]))


def test_a_cursor_does_not_tell_how_long_the_place_is() -> None:
    bound = bound_to("key", "list_clients", {})
    for places in (("", "7", "4242424242", "x\0\0", "x" * 30), ("x" * 31, "é" * 31)):
        cursors = [CURSORS.write(each, bound) for each in places]
        assert [CURSORS.read(each, bound) for each in cursors] == list(places)
        assert len({len(each) for each in cursors}) == 1
    assert len(CURSORS.write("x" * LONGEST_AFTER, bound)) <= 2_800


def test_a_cursor_has_one_spelling() -> None:
    bound = bound_to("key", "list_clients", {})
    cursor = CURSORS.write("x" * 40, bound)
    assert values_of("list_clients", f"cursor={cursor}").after == "x" * 40
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    same_bytes = cursor[:-1] + last[last.index(cursor[-1]) ^ 1]
    for other in ("!!", "=", "==", "\n", "é", "A"):
        assert "cursor" in problems_of("list_clients", urlencode({"cursor": cursor + other}))
    for other in (same_bytes, f"!{cursor}", cursor[:5] + "%" + cursor[5:], cursor[:-1]):
        assert "cursor" in problems_of("list_clients", urlencode({"cursor": other}))
    with pytest.raises(ValueError, match="another version"):
        CURSORS.read(sealed_as_before("42", bound), bound)


def sealed_as_before(after: str, bound: bytes) -> str:
    sealed = CURSORS._cipher.encrypt(b"1" + after.encode(), [bound])
    return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()


async def test_filters_reach_the_adapter_as_the_table_says(partner_of: Begin) -> None:
    world = World()
    partner = await partner_of(world)
    await partner.get("/patients", clientId=OTHER_ID, search=" rex ", limit="7")
    await partner.get(f"/invoices/client/{OTHER_ID}", status="PAID")
    await partner.get("/stock/low")
    await partner.get("/appointments/available-slots", vetId=SOME_ID, date="2026-03-01")
    patients, invoices, low, slots = world.asked
    assert [(each.match, each.fields, each.value) for each in patients.filters] == [
        ("equals", ("clientId",), OTHER_ID),
        ("search", ("name",), "rex"),
    ]
    assert patients.limit == 7
    assert invoices.within == ("clients", OTHER_ID)
    assert [(each.fields, each.value) for each in invoices.filters] == [
        (("clientId",), OTHER_ID),
        (("status",), "PAID"),
    ]
    assert [(each.match, each.fields, each.value) for each in low.filters] == [
        ("equals", ("isLow",), True)
    ]
    assert slots.values["vetId"] == SOME_ID
    assert slots.values["date"].isoformat() == "2026-03-01"


def test_a_param_is_either_a_filter_with_fields_or_none() -> None:
    filters: list[Param] = [each for operation in OPERATIONS for each in operation.params]
    assert all(bool(each.match) == bool(each.fields) for each in filters)
