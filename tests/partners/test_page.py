"""What docs/partners.md says in tables and lists is what the code says."""

import json
import re

import pytest

from gateway.contract.answers import HEADERS
from gateway.contract.errors import GatewayError, KeyReused
from gateway.contract.operations import OPERATIONS, PAGE_DEFAULT, PAGE_LARGEST, Param
from tests.partners.page import CLIENTS, PAGE, ROOT, blocks, headings, lines, part, rows
from tests.tables import descendants

ERRORS = "Errors, and what to do"
EACH_ERROR = "| Status | Message | What to do |"
EACH_HEADER = "| Header | On | What it says |"


def anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def test_the_contents_lead_to_every_heading_in_its_order() -> None:
    contents = PAGE.partition("\n## ")[0]
    assert re.findall(r"\(#([^)]+)\)", contents) == [anchor(each) for each in headings()]


def test_every_link_within_the_page_leads_somewhere() -> None:
    anchors = {anchor(each) for each in headings()}
    assert set(re.findall(r"\(#([^)]+)\)", PAGE)) <= anchors


def test_the_readme_leads_to_the_page() -> None:
    assert "(docs/partners.md)" in (ROOT / "README.md").read_text("utf-8")


def test_every_error_has_its_row_and_says_what_to_do() -> None:
    expected = {(400, "Invalid request: ..."), (400, KeyReused().message)}
    expected |= {
        (kind.status, kind.message)
        for kind in descendants(GatewayError)
        if isinstance(getattr(kind, "message", None), str)
    }
    told = [(int(status), message.strip("`")) for status, message, _ in rows(ERRORS, EACH_ERROR)]
    assert set(told) == expected
    assert told == sorted(told, key=lambda each: each[0])
    assert len(told) == len(expected)
    assert all(advice.endswith(".") for _, _, advice in rows(ERRORS, EACH_ERROR))


def test_every_header_has_its_row() -> None:
    told = [name.strip("`") for name, _, _ in rows("Limits and headers", EACH_HEADER)]
    assert sorted(told) == sorted(HEADERS)


def test_what_has_pages_and_what_can_be_asked_since_when_is_named() -> None:
    paged = {each.path for each in OPERATIONS if each.paged}
    first = part("Lists, page by page").partition("have pages")[0]
    assert set(re.findall(r"`(/[^`]+)`", first)) == paged
    assert f"(1 to {PAGE_LARGEST}, {PAGE_DEFAULT} where it is absent)" in PAGE
    since = {each.path for each in OPERATIONS if "updatedSince" in names(each.query)}
    copying = part("Keeping a copy up to date").partition("take **`updatedSince`**")[0]
    assert set(re.findall(r"`(/[^`]+)`", copying)) == since


def names(params: tuple[Param, ...]) -> set[str]:
    return {each.name for each in params}


def test_a_search_is_as_long_as_the_page_says() -> None:
    for each in OPERATIONS:
        for param in [each for each in each.query if each.name == "search"]:
            assert f"`search` takes {param.shortest} to {param.longest} characters" in PAGE


@pytest.mark.parametrize(
    ("heading", "kind", "file"),
    [
        ("Generated for Python", "python", "python/booking.py"),
        ("Generated for TypeScript", "ts", "typescript/booking.mts"),
        ("With TypeScript", "json", "typescript/tsconfig.json"),
    ],
)
def test_what_the_page_prints_is_what_the_tests_compile(heading: str, kind: str, file: str) -> None:
    assert blocks(heading, kind) == [(CLIENTS / file).read_text("utf-8")]


def test_the_packages_that_the_page_installs_are_those_of_the_lock() -> None:
    typed = [*lines("With TypeScript"), *lines("Generated for TypeScript")]
    words = " ".join(each for each in typed if each.startswith("npm install")).split()
    parted = [(word[0], *word[1:].partition("@")) for word in words]
    asked = {first + rest: major for first, rest, _, major in parted}
    package = json.loads((CLIENTS / "typescript" / "package.json").read_text())
    locked = {**package["dependencies"], **package["devDependencies"]}
    assert asked.keys() - {"npm", "install", "--save-dev"} == locked.keys()
    assert all(locked[name].split(".")[0] == major for name, major in asked.items() if major)
