"""The page for partners: whole without scripts, and nothing inline that its policy forbids."""

import re

import pytest

from gateway.contract.access import LEVELS
from gateway.contract.answers import EXAMPLES, REMEDIES
from gateway.contract.errors import STATUS_SUMMARIES, GatewayError
from gateway.contract.openapi import document
from gateway.contract.operations import OPERATIONS, PAGE_LARGEST
from gateway.web.documents import FILES, GUIDE_HEADERS, guide, reference
from tests.web.pages import Reader

WHOLE = document(public_url="https://gateway.clinic.example")
ADDRESSES = {name: f"docs/{name}?v=1" for name in FILES}
PAGE = guide(WHOLE, ADDRESSES)


def section(name: str) -> str:
    return PAGE.split(f'<section id="{name}">')[1].split("</section>")[0]


def test_everything_that_the_page_loads_is_a_file_of_this_gateway() -> None:
    page = Reader(PAGE)
    assert page.open == []
    assert sorted(page.loaded) == sorted(ADDRESSES.values())
    assert page.scripts == []
    assert not any(name.startswith("on") or name == "style" for name in page.attributes)
    assert page.tags.isdisjoint({"style", "img", "iframe", "object", "base"})


def test_the_policy_allows_this_host_and_images_within_the_page_and_nothing_else() -> None:
    policy = GUIDE_HEADERS["Content-Security-Policy"]
    assert dict(part.strip().split(" ", 1) for part in policy.split(";")) == {
        "default-src": "'self'",
        "img-src": "'self' data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert GUIDE_HEADERS["Referrer-Policy"] == "no-referrer"


def test_every_link_leads_somewhere() -> None:
    page = Reader(PAGE)
    assert len(page.ids) == len(set(page.ids))
    there = {"": set(page.ids), "docs/reference": set(Reader(reference(WHOLE)).ids)}
    for link in page.links:
        path, _, fragment = link.partition("#")
        assert link == "openapi.json" or not fragment or fragment in there[path]


def test_every_operation_is_named_with_its_permission() -> None:
    rows = section("overview").split("<tr>")
    for operation in OPERATIONS:
        call = f"<code>{operation.method} {operation.path}</code>"
        [row] = [each for each in rows if call in each]
        assert f"docs/reference#{operation.id}" in row
        assert f"<code>{operation.permission}</code>" in row


def test_the_booking_flow_is_drawn_and_told_in_words() -> None:
    told = section("booking")
    [svg] = re.findall(r"<svg .*?</svg>", told, re.DOTALL)
    [title, about] = re.findall(r'aria-labelledby="(\S+) (\S+)"', svg)[0]
    assert f'<title id="{title}">' in svg
    assert f'<desc id="{about}">' in svg
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", svg)
    assert told.count("<li>") == sum(text.isdigit() for text in texts) == 5
    for name in ("list_appointment_types", "list_available_slots", "create_appointment"):
        [operation] = [each for each in OPERATIONS if each.id == name]
        assert f"{operation.method} {operation.path}" in texts


def test_the_drawing_stays_within_its_frame() -> None:
    [svg] = re.findall(r"<svg .*?</svg>", PAGE, re.DOTALL)
    [(width, height)] = re.findall(r'viewBox="0 0 (\d+) (\d+)"', svg)
    ends = {
        axis: [int(value) for value in re.findall(rf' c?{axis}[12]?="(\d+)"', svg)] for axis in "xy"
    }
    assert max(ends["x"]) < int(width)
    assert max(ends["y"]) < int(height)


def test_levels_limits_and_errors_are_those_of_the_contract() -> None:
    assert [level for level in LEVELS if f"<code>{level}</code>" not in section("levels")] == []
    limits = section("limits")
    assert str(PAGE_LARGEST) in limits
    assert "at most 64 KiB" in limits
    assert "at most 500 characters" in limits
    for name in ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"):
        assert f"<code>{name}</code>" in limits
    errors = section("errors")
    for kind in kinds(GatewayError):
        assert f"<code>{kind.status}</code>" in errors
        message = getattr(kind, "message", "")
        assert message in errors


def kinds(kind: type[GatewayError]) -> list[type[GatewayError]]:
    """Those of its kinds that are answered."""
    found = [each for sub in kind.__subclasses__() for each in (sub, *kinds(sub))]
    return [each for each in found if hasattr(each, "status")]


def test_each_status_has_a_meaning_an_example_and_a_remedy() -> None:
    statuses = {kind.status for kind in kinds(GatewayError)}
    assert EXAMPLES.keys() == STATUS_SUMMARIES.keys() == REMEDIES.keys() == statuses


def test_without_scripts_the_page_says_where_else_to_look() -> None:
    [told] = re.findall(r"<noscript>.*?</noscript>", PAGE, re.DOTALL)
    assert 'href="docs/reference"' in told
    # who cannot use a key here is not asked for one
    assert re.search(r'id="key-box"[^>]* hidden>', PAGE)


def test_a_key_leaves_the_page_by_no_form() -> None:
    [form] = re.findall(r"<form .*?</form>", PAGE, re.DOTALL)
    assert "action=" not in form
    assert " name=" not in form


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>\"'&"])
def test_what_the_document_says_is_text_on_the_page_never_markup(hostile: str) -> None:
    described = document(public_url=f"https://clinic.example/{hostile}")
    described["info"]["title"] = hostile
    for methods in described["paths"].values():
        for operation in methods.values():
            operation |= {"summary": hostile, "x-permission": hostile, "operationId": hostile}
    page = guide(described, ADDRESSES)
    assert "<script>" not in page
    assert Reader(page).tags == Reader(PAGE).tags
    assert Reader(page).loaded == Reader(PAGE).loaded


def test_a_page_for_a_key_without_permissions_is_a_page_still() -> None:
    page = guide(document(public_url="https://clinic.example", offered=()), ADDRESSES)
    assert Reader(page).open == []
    assert '<span id="operations-count">0</span>' in page
