"""Calls of a mapping: repeated parameters, forms, headers and rules of their own, reads by POST."""

from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest

from adapters.base import BackendNonsense, NotFound, Rejected, SlotTaken
from adapters.mapping.checker import DRAFT
from adapters.mapping.converters import Converters
from adapters.mapping.models import AnyCall, ListCall
from adapters.rest.client import Request
from adapters.rest.requests import Endpoint, Templates, TemplateValues
from tests.adapters.rest.backends import SECRETS, asking
from tests.adapters.rest.raw import http, raw


def endpoint(call: dict[str, Any], *, omits: bool = False) -> Endpoint:
    templates = Templates(Converters(ZoneInfo("Europe/Paris"), bytes(32)), SECRETS, omits=omits)
    return templates.call(AnyCall.model_validate(call), DRAFT)


def request(call: dict[str, Any], *, omits: bool = False, **given: Any) -> Request:
    return endpoint(call, omits=omits).request(TemplateValues(given))


def body(call: dict[str, Any], values: TemplateValues | None = None, **more: Any) -> Any:
    return orjson.loads(endpoint(call, **more).request(values or TemplateValues()).body or b"")


def test_fact_34_a_list_gives_the_parameter_several_times() -> None:
    query = {"date": ["ge2026", "lt2027"], "none": None, "one": [{"given": "reason"}], "flag": True}
    made = request({"get": "/x", "query": query})
    assert made.target == "/x?date=ge2026&date=lt2027&flag=true"


def test_a_form_is_sent_as_a_form() -> None:
    call = {"post": "/x", "content": "form", "body": {"a b": "c&d", "e": [1, None, "ü"], "f": None}}
    made = request(call)
    assert made.body == b"a+b=c%26d&e=1&e=%C3%BC"
    assert made.content == "application/x-www-form-urlencoded"


def test_a_body_says_its_media_type_and_a_header_without_a_value_is_left_out() -> None:
    headers = {"If-Match": {"draft": "reference", "form": 'W/"{}"'}, "X": {"draft": "reason"}}
    call = {"patch": "/x", "content": "application/json-patch+json", "body": [], "headers": headers}
    made = request(call, reference="7")
    assert (made.content, made.body) == ("application/json-patch+json", b"[]")
    assert made.headers == {"If-Match": 'W/"7"'}


def test_what_has_no_value_is_left_out_with_all_that_holds_nothing_else() -> None:
    tree = {"a": {"b": {"c": {"draft": "reason"}}, "d": [{"draft": "reason"}]}, "e": 0, "f": {}}
    call = {"post": "/x", "body": tree}
    assert body(call) == {"a": {"b": {"c": None}, "d": [None]}, "e": 0, "f": {}}
    assert body(call, omits=True) == {"e": 0, "f": {}}
    assert body(call | {"nulls": "omit"}) == {"e": 0, "f": {}}
    assert body(call | {"nulls": "send"}, omits=True)["a"]["d"] == [None]


def test_a_part_depends_on_the_draft_or_stands_once_for_each_slot() -> None:
    tree = {
        "kind": {"if": "reason", "then": {"system": "clinic", "text": {"draft": "reason"}}},
        "list": ["always", {"if": "reason", "then": "sometimes"}],
        "slot": {"each": "slot", "then": {"at": {"draft": "slot", "form": "Slot/{}"}}},
    }
    call = {"post": "/x", "body": tree}
    assert body(call) == {"list": ["always"], "slot": []}
    values = TemplateValues({"reason": "ill"}, slots=(7, 8))
    assert body(call, values) == {
        "kind": {"system": "clinic", "text": "ill"},
        "list": ["always", "sometimes"],
        "slot": [{"at": "Slot/7"}, {"at": "Slot/8"}],
    }


def test_what_is_left_out_whole_or_for_a_slot_leaves_nothing_behind() -> None:
    part = {"if": "reason", "then": {"text": {"draft": "reason"}}}
    assert request({"post": "/x", "body": part}).body is None
    assert body({"post": "/x", "body": part}, TemplateValues({"reason": "ill"})) == {"text": "ill"}
    call = {"post": "/x", "body": {"slot": {"each": "slot", "then": part}}}
    assert body(call, TemplateValues(slots=(7, 8))) == {"slot": []}


def test_filters_and_pages_of_a_post_go_into_its_body() -> None:
    made = endpoint({"post": "/x", "content": "form", "body": {"active": "true"}})
    first = made.request(TemplateValues(), [("name", ["a", "b"])])
    assert first.body == b"active=true&name=a&name=b"
    made = endpoint({"post": "/x", "body": {"method": "list", "params": {"all": True}}})
    more = [("params.limit", 5), ("params.owner.id", 7), ("no", None)]
    found = orjson.loads(made.request(TemplateValues(), more).body or b"")
    assert found == {"method": "list", "params": {"all": True, "limit": 5, "owner": {"id": 7}}}


async def test_a_call_has_headers_and_rules_of_its_own() -> None:
    rules = [{"status": 409, "means": "unavailable"}, {"status": 418, "means": "rejected"}]
    own = [{"status": 409, "means": "slot taken"}]
    made = endpoint({"put": "/x", "headers": {"accept": "a/b"}, "errors": own})
    conflict, teapot = http(status="409 Conflict"), http(status="418 Teapot")
    failed = http(status="412 Precondition Failed")
    async with raw(conflict, teapot, failed) as server, asking(server.url, errors=rules) as backend:
        with pytest.raises(SlotTaken):
            await backend.write(made.request(TemplateValues()), 5)
        with pytest.raises(Rejected):
            await backend.write(made.request(TemplateValues()), 5)
        with pytest.raises(SlotTaken, match="changed meanwhile"):
            await backend.write(made.request(TemplateValues()), 5)
        assert server.seen[0].count("a/b\r\n") == 1
        assert "application/json" not in server.seen[0]


async def test_what_is_read_by_get_has_headers_and_rules_of_its_own() -> None:
    own = [{"status": 410, "means": "not found"}]
    call = {"get": "/x", "headers": {"Prefer": "handling=strict"}, "errors": own}
    async with raw(http(), http(status="410 Gone")) as server, asking(server.url) as backend:
        await backend.read(endpoint(call).request(TemplateValues()))
        with pytest.raises(NotFound):
            await backend.read(endpoint(call).request(TemplateValues()))
        with pytest.raises(BackendNonsense, match="410"):
            await backend.read(endpoint({"get": "/x"}).request(TemplateValues()))
        assert ["Prefer: handling=strict\r\n" in each for each in server.seen] == [
            True,
            True,
            False,
        ]


async def test_a_link_behind_a_list_by_post_is_a_get_with_the_same_headers() -> None:
    call = ListCall.model_validate(
        {"post": "/s", "content": "form", "body": {"a": "b"}, "headers": {"X-Y": "z"}}
    )
    templates = Templates(Converters(ZoneInfo("Europe/Paris"), bytes(32)), SECRETS)
    async with raw(http()) as server, asking(server.url) as backend:
        ask = backend.pages(templates.call(call, {}), TemplateValues(), [("c", 1)])
        await ask((), None)
        await ask([("limit", 2)], None)
        await ask((), "/s?page=2")
        first, second, third = server.seen
    assert first.startswith("POST /api/s ")
    assert (first.endswith("\r\n\r\na=b&c=1"), second.endswith("a=b&c=1&limit=2")) == (True, True)
    assert third.startswith("GET /api/s?page=2 ")
    assert "X-Y: z\r\n" in third


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"get": "/x", "post": "/y"}, "takes one of get, post"),
        ({"put": "/x", "content": "form"}, "content goes with a body"),
        ({"get": "/x", "nulls": "omit"}, "nulls goes with a body"),
        ({"post": "/x", "content": "text/plain", "body": {}}, "must be form, or a media type"),
        ({"post": "/x", "content": "form", "body": [1]}, "a form holds values"),
        ({"post": "/x", "content": "form", "body": {"a": {"b": 1}}}, "a form holds values"),
        ({"post": "/x", "content": "form", "body": {"a": [[1]]}}, "a form holds values"),
        ({"post": "/x", "body": {"then": 1}}, "then goes with if"),
        ({"get": "/x", "headers": {"If Match": "x"}}, "is no name of a header"),
    ],
)
def test_what_is_no_call_is_said(call: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        AnyCall.model_validate(call)
