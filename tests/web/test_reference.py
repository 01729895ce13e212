"""The reference page: complete, self-contained, and safe whatever the document says."""

import base64
import hashlib
import re

from gateway.contract.openapi import document
from gateway.contract.operations import OPERATIONS
from gateway.web.documents import REFERENCE_HEADERS, reference
from tests.web.pages import Reader

WHOLE = document(public_url="https://gateway.clinic.example")
PAGE = reference(WHOLE)


def test_the_page_asks_for_nothing_and_runs_nothing() -> None:
    page = Reader(PAGE)
    assert page.open == []
    assert page.loaded == []
    assert page.tags.isdisjoint({"script", "link", "img", "iframe", "form", "object"})
    assert not any(name.startswith("on") or name in {"src", "style"} for name in page.attributes)
    assert all(link.startswith("#") for link in page.links)
    assert not re.search(r"url\(|@import", PAGE)


def test_every_link_leads_somewhere_on_the_page() -> None:
    page = Reader(PAGE)
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_every_operation_parameter_status_and_schema_is_on_the_page() -> None:
    for operation in OPERATIONS:
        section = PAGE.split(f'<section id="{operation.id}">')[1].split("</section>")[0]
        assert f"<code>{operation.path}</code>" in section
        assert operation.permission in section
        statuses = WHOLE["paths"][operation.path][operation.method.lower()]["responses"]
        names = [*statuses, *(each.name for each in (*operation.params, *operation.query))]
        assert [name for name in names if f"<code>{name}</code>" not in section] == []
    for name, schema in WHOLE["components"]["schemas"].items():
        section = PAGE.split(f'<section id="schema-{name}">')[1].split("</section>")[0]
        assert [each for each in schema["properties"] if f"{each}<" not in section] == []
    assert "<code>lines[].unitPrice</code>" in PAGE


def test_the_page_reads_in_light_and_in_dark() -> None:
    assert "color-scheme: light dark" in PAGE
    assert "prefers-color-scheme: dark" in PAGE


def test_what_the_document_says_is_text_on_the_page_never_markup() -> None:
    hostile = "<script>alert(1)</script>\"'&"
    described = document(public_url=f"https://clinic.example/{hostile}")
    described["info"]["title"] = hostile
    described["info"]["description"] = f"`{hostile}`\n\n- {hostile}"
    described["components"]["schemas"]["Client"]["description"] = hostile
    page = reference(described)
    assert "<script" not in page
    assert Reader(page).tags == Reader(PAGE).tags


def test_a_browser_is_told_to_allow_the_page_its_style_and_nothing_else() -> None:
    style = PAGE.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in REFERENCE_HEADERS["Content-Security-Policy"]
    assert REFERENCE_HEADERS["Content-Security-Policy"].startswith("default-src 'none';")


def test_a_page_for_a_key_without_permissions_is_a_page_still() -> None:
    page = reference(document(public_url="https://clinic.example", offered=()))
    assert Reader(page).open == []
    assert "X-API-Key" in page


def test_lengths_and_lists_are_said_as_a_person_says_them() -> None:
    assert "1 to 255 characters" in PAGE
    assert "at least 1 characters" not in PAGE
    [slots] = re.findall(r'<section id="list_available_slots">.*?</section>', PAGE, re.DOTALL)
    assert "A list. Each: A time that can be booked" in slots
