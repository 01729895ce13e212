"""`clinic-gateway policy show`: the matrix in each of its formats."""

import csv
import io
import json
import re
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli.policy import policy
from gateway.contract.access import LEVELS
from gateway.contract.resources import GOVERNED
from gateway.policy.reading.document import parse_policy
from gateway.policy.telling.sheets import as_page, csv_of
from tests.policies import TEXT

# A policy with masks and row conditions.
CHANGES = {
    "firstName, lastName]": "firstName, lastName, {phone: last(2)}]",
    "STANDARD: [phone,": "STANDARD: [phone, {address: city},",
    "  FULL: [owner": "  only: {BASIC: {status: [VALIDATED]}}\n  FULL: [owner",
    "    - issuedAt\n": "",
    "    - total\n": "",
    "[id, number,": "[id, number, total, issuedAt,",
    '  FULL: ["lines': "  only:\n    total: {min: 1, below: 5000}\n"
    "    issuedAt: {above: 2020-01-01T00:00:00Z}\n    status: {not: DRAFT}\n"
    '  FULL: ["lines',
}
RICH = TEXT
for old, new in CHANGES.items():
    assert RICH.count(old) == 1
    RICH = RICH.replace(old, new)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(RICH)
    return tmp_path


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(policy, ["show", *arguments])
    assert result.exit_code == 0, result.output
    return result


def test_the_text_shows_masks_and_conditions_within_80_columns() -> None:
    lines = run("mine.yaml").stdout.splitlines()
    rows = [line.split() for line in lines]
    assert ["field", *LEVELS] in rows
    assert ["phone", "last(2)", "yes", "yes"] in rows
    assert ["address", "-", "city", "yes"] in rows
    assert "consultations BASIC: only records whose status is VALIDATED" in lines
    assert "consultations FULL: all records" in lines
    text = " ".join(" ".join(row) for row in rows)
    assert (
        "invoices FULL: only records whose total is at least 1.00 and less than 5000.00, and"
        " issuedAt is after 2020-01-01T00:00:00Z, and status is CANCELLED, ISSUED, PAID or"
        " PARTIALLY_PAID"
    ) in text
    assert "last(2): *** and the last 2 characters" in text
    assert max(map(len, lines)) <= 80


def test_json_tells_as_before_what_is_whole_and_now_what_is_masked() -> None:
    assert json.loads(run("mine.yaml", "--json").stdout) == json.loads(
        run("mine.yaml", "--format", "json").stdout
    )
    shown = json.loads(run("mine.yaml", "--json").stdout)
    assert shown["resources"]["clients"]["phone"] == {
        "BASIC": False,
        "STANDARD": True,
        "FULL": True,
    }
    assert shown["masks"] == {
        "clients": {"phone": {"BASIC": "last(2)"}, "address": {"STANDARD": "city"}}
    }
    assert shown["records"]["consultations"] == {
        "BASIC": "only records whose status is VALIDATED",
        "STANDARD": "all records",
        "FULL": "all records",
    }
    assert set(shown["records"]) == {"consultations", "invoices"}


def test_two_formats_at_once_are_refused() -> None:
    result = CliRunner().invoke(policy, ["show", "mine.yaml", "--json", "--format", "csv"])
    assert result.exit_code == 2
    assert "two formats" in result.stderr
    result = CliRunner().invoke(policy, ["show", "mine.yaml", "--format", "htm"])
    assert result.exit_code == 2
    assert "did you mean html?" in result.stderr


@pytest.mark.parametrize("wanted", ["text", "csv", "html", "json"])
def test_a_policy_that_cannot_be_used_is_shown_in_no_format(own_folder: Path, wanted: str) -> None:
    (own_folder / "mine.yaml").write_text("version: 1\n")
    result = CliRunner().invoke(policy, ["show", "mine.yaml", "--format", wanted])
    assert result.exit_code == 1
    assert "clients is missing" in result.stderr


def test_csv_has_a_line_for_each_field_at_each_level() -> None:
    text = CliRunner().invoke(policy, ["show", "mine.yaml", "--format", "csv"]).stdout_bytes
    assert text.count(b"\r\n") == text.count(b"\n")
    assert text.endswith(b"\r\n")
    rows = list(csv.reader(io.StringIO(text.decode(), newline=""), strict=True))
    assert rows[0] == ["resource", "field", "level", "sight", "mask"]
    assert [tuple(row[:3]) for row in rows[1:]] == [
        (resource.name, path, level)
        for resource in GOVERNED
        for path in resource.paths
        for level in LEVELS
    ]
    assert ["clients", "phone", "BASIC", "masked", "last(2)"] in rows
    assert ["clients", "phone", "STANDARD", "whole", ""] in rows
    assert ["clients", "address", "BASIC", "hidden", ""] in rows


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_cell_is_a_formula(cell: str) -> None:
    written = io.StringIO(csv_of([[cell, "lines[].total"]]), newline="")
    assert list(csv.reader(written)) == [[f"'{cell}", "lines[].total"]]


class Strict(HTMLParser):
    """Refuses what is not closed in its order; keeps elements, attributes and texts."""

    VOID = frozenset({"meta"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), attrs
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def parsed(text: str) -> Strict:
    page = Strict()
    page.feed(text)
    page.close()
    assert page.open == []
    return page


def test_the_page_is_one_file_that_asks_nothing_of_anybody() -> None:
    text = run("mine.yaml", "--format", "html").stdout
    page = parsed(text)
    used = {tag for tag, _ in page.elements}
    assert used.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "base", "form"})
    for _, attributes in page.elements:
        assert not {"src", "href", "srcset", "style", "action"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    assert not re.search(r"url\(|@import|https?:|//", text)
    assert "default-src 'none'" in text


def test_the_page_is_for_paper_and_for_light_and_dark_screens() -> None:
    text = run("mine.yaml", "--format", "html").stdout
    style = text.partition("<style>")[2].partition("</style>")[0]
    assert style.count("{") == style.count("}")
    for wanted in ("size: A4", "prefers-color-scheme: dark", "display: table-header-group"):
        assert wanted in style
    assert '<html lang="en">' in text


def test_the_page_names_its_file_hash_and_day_and_explains_itself() -> None:
    made = parse_policy(RICH.encode(), "/etc/clinic/mine.yaml", lambda trouble: None)
    page = parsed(as_page(made, date(2026, 3, 12)))
    assert "mine.yaml" in page.texts
    assert not [text for text in page.texts if "/etc/clinic" in text]
    assert {made.hash, "2026-03-12"} <= set(page.texts)
    tables = [tag for tag, _ in page.elements if tag in ("table", "caption")]
    assert tables == ["table", "caption"] * len(GOVERNED)
    told = "".join(page.texts)
    assert "FULL sees what STANDARD sees, and more" in told
    assert "last(2) shows *** and the last 2 characters" in told
    assert "BASIC sees only records whose status is VALIDATED." in told
    assert "Each level sees all clients." in told


def test_the_page_has_each_cell_in_words() -> None:
    page = parsed(run("mine.yaml", "--format", "html").stdout)
    cells = [attributes["class"] for tag, attributes in page.elements if tag == "td"]
    assert len(cells) == len(LEVELS) * sum(len(each.paths) for each in GOVERNED)
    assert set(cells) == {"whole", "masked", "hidden"}
    for kind in ("whole", "hidden"):
        assert page.texts.count(kind) == cells.count(kind)


def test_nothing_of_a_name_is_markup(own_folder: Path) -> None:
    name = '<b onclick=alert(1)>&amp;".yaml'
    (own_folder / name).write_text(RICH)
    page = parsed(run(name, "--format", "html").stdout)
    assert name in page.texts
    assert "b" not in {tag for tag, _ in page.elements}
