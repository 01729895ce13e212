"""The mapping of a JSON backend: everything wrong with it is said at once, at its place."""

from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from adapters.base import AdapterOptions
from adapters.documents.problems import DocumentErrors
from adapters.mapping import models
from adapters.mapping.conversion import Strict
from adapters.rest.adapter import RestAdapter
from gateway.backend import shapes
from tests.adapters.clinic import SECRET
from tests.adapters.rest.cloud import CREDENTIALS, MAPPING, connect, replaced

DOCS = (Path(__file__).parents[3] / "docs" / "mapping.md").read_text()
# What is wrong -> (what stands in the example, what is written instead, what is said of it).
WRONG: dict[str, tuple[str, str, str]] = {
    "a field": ("lastName: name.last", "lastname: name.last", "lastName?"),
    "a resource": ("  stock:\n", "  stocks:\n", "stock?"),
    "a converter": ("as: zoned time}\n      end", "as: zonedtime}\n      end", "zoned time?"),
    "a path": ("firstName: name.first", 'firstName: "name..first"', "JMESPath"),
    "a path that may be left out": ("where: archived == `false`", "where: archived == == x",
                                    "JMESPath"),
    "a code's other values": ("in: ACTIVE", "in: DONE", "use ACTIVE, DECEASED or INACTIVE"),
    "a path that is a number": ("firstName: name.first", "firstName: 1", "put it in quotes"),
    "a path that is empty": ("firstName: name.first", "firstName:", "is empty: write a text"),
    "no zone": ("zone: Europe/Paris\n", "", "zone is missing, such as zone: Europe/Paris"),
    "a code's value": ("in: ACTIVE", "in: ACTIV", "ACTIVE?"),
    "a name in a path": ("one: /owners/{id}", "one: /owners/{ids}", "(did you mean id?)"),
    "a path with a query": ("get: /owners\n", "get: /owners?all=1\n", "query"),
    "half a part in braces": ("one: /owners/{id}", "one: /owners/x{id}", "braces"),
    "a part of the draft": ("{draft: patientId}", "{draft: patientID}", "patientId?"),
    "what no call keeps": ("/visits/{visit}/cancel", "/visits/{vist}/cancel", "visit?"),
    "an appointment of no call": ("appointment: visit", "appointment: visits", "visit?"),
    "a regular expression": ('match: "/owners/([0-9]+)$"}    #', 'match: "("}    #', "regular"),
    "a match without a group": (
        'match: "/owners/([0-9]+)$"}    #', 'match: "/owners/[0-9]+$"}    #', "parentheses"),
    "a form without a place": ('form: "Token {}"', 'form: "Token"', "{}"),
    "a filter by what is not filled": ("sift: [name, updatedAt]", "sift: [name, color]", "color"),
    "a style of paging": ("by: offset, offset: offset, limit: limit, most: 100, total",
                          "by: offset, page: p, limit: limit, most: 100, total", "offset is"),
    "a lookup's paging": (
        "ref: {draft: reference}}, items: visits}",
        "ref: {draft: reference}}, items: visits, page: {by: page}}", "page is missing"),
    "a link without a way": ("next: links.next", "most: 5", "header: true"),
    "an unknown member": ("    sift: [name", "    sieve: [name", "sieve"),
    "two methods": ("    - post: /visits\n", "    - post: /visits\n      put: /v\n", "takes one"),
    "a write where it reads": (
        "{get: /visits, query: {r", "{put: /visits, query: {r", "put is not known here"),
    "a header of several texts": (
        "  ping: /status", "  headers: {X-A: [a, b]}\n  ping: /status", "a header is one text"),
    "a header's name": (
        "  ping: /status", "  headers: {X A: a}\n  ping: /status", "'X A' is no name of a header"),
    "a login's header": (
        'form: "Token {}"', 'header: "X:"\n    form: "Token {}"', "'X:' is no name of a header"),
    "a header of several lines": (
        "    - post: /visits\n", "    - post: /visits\n      headers: {X-A: {draft: reason}}\n",
        "which no header has"),
    "a condition that no draft has": (
        "note: {draft: reason}", "note: {if: reasons, then: {draft: reason}}", "reason?"),
    "a condition where there is no draft": (
        "day: {given: day}", "day: {each: slot, then: {given: day}}", "alone has a draft"),
    "whose a row is": ("      vet: vet.uuid\n      start", "      start", "vet is missing"),
    "what is given elsewhere": ("day: {given: day}", "day: {given: id}", "called id"),
    "a rule without a condition": ("{path: success, is: [false], means", "{path: success, means",
                                   "condition"),
    "a text of a good answer": ("{status: 400, path: error, text", "{status: 200, text",
                                "text needs path"),
    "a meaning": ("means: rejected", "means: no", "slot taken"),
    "details without one": ("    one: /stock/{id}\n", "", "missing"),
    "a booking that only reads": (
        "    - post: /visits\n      body:", "    - get: /visits\n      query:", "sent twice"),
    "an appointment of each row": (
        "    - post: /visits\n", "    - for: slot\n      each: slot\n      post: /visits\n",
        "made several times: keep it in one call"),
    "a list's key": ("        key: no\n", "", "key is missing"),
    "whose patient": ("      patientId: animal.id\n      appointment", "      appointment",
                      "no booking can be made"),
    "a life without end": ("    seconds: ttl\n", "", "lifetime"),
    "no hours": ("      start: open\n", "", "need start and end"),
    "two sources": ("{secret: user}", "{secret: user, constant: x}", "takes one of"),
    "a zone": ("Europe/Paris", "Europe/Pari", "time zone"),
}  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_near_its_line(
    tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    with pytest.raises(DocumentErrors) as raised:
        connect("http://127.0.0.1:1/v2", tmp_path, replaced((right, wrong)))
    problems = [each for each in raised.value.problems if said in each.text]
    assert problems, raised.value
    text = MAPPING.read_text()
    line = text[: text.index(right)].count("\n") + 1
    assert min(abs(each.line - line) for each in problems) <= 9


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    change = replaced(*((right, wrong) for right, wrong, _ in list(WRONG.values())[:3]))
    with pytest.raises(DocumentErrors) as raised:
        connect("ftp://127.0.0.1", tmp_path, change)
    said = str(raised.value)
    assert all(each in said for each in ("lastName?", "stock?", "zoned time?", "backend.url"))


def test_a_databases_address_names_the_adapter_that_takes_it(tmp_path: Path) -> None:
    with pytest.raises(DocumentErrors) as raised:
        connect("postgresql://db.example.org/clinic", tmp_path)
    assert [str(each) for each in raised.value.problems] == [
        "backend.url: is a database's address: it needs backend.adapter: sql"
    ]


def test_a_secret_that_is_not_set_refuses_the_start(tmp_path: Path) -> None:
    options = AdapterOptions(
        url="http://127.0.0.1:1",
        mapping=MAPPING,
        secret=SECRET,
        shapes=shapes(),
        report=lambda trouble: None,
        credentials={"user": CREDENTIALS["user"]},
    )
    with pytest.raises(DocumentErrors, match=r"backend\.password is not set.*BACKEND_PASSWORD"):
        RestAdapter(options)
    assert CREDENTIALS["user"] not in repr(options)


def _models() -> list[type[BaseModel]]:
    found = [each for each in vars(models).values() if isinstance(each, type)]
    return [each for each in found if issubclass(each, Strict) and each is not Strict]


def test_the_reference_names_every_part_of_the_language() -> None:
    for model in _models():
        for name, field in model.model_fields.items():
            shown = field.alias or name
            if shown in model.only_with("sql"):
                continue
            assert f"`{shown}" in DOCS or f"{shown}:" in DOCS or f" {shown} " in DOCS, shown
    for meaning in get_args(models.Meaning):
        assert f"`{meaning}`" in DOCS


def test_the_tours_lines_stand_in_the_example() -> None:
    text = MAPPING.read_text()
    for line in ("means: slot taken}", "{path: success, is: [false], means: rejected}"):
        assert line in DOCS
        assert line in text
