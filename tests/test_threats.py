"""The table of threats in docs/operations.md: of what there is, whole, and each row with tests."""

import ast
import re
from functools import cache
from pathlib import Path

import aiohttp
import pytest

from gateway.admin.panel import STATIC
from gateway.admin.views import PAGES
from gateway.contract.operations import BASE_PATH, OPERATIONS
from gateway.settings import names
from gateway.web.documents import DOCS, OPENAPI
from tests.conftest import RunningGateway
from tests.tables import ROOT

TEXT = (ROOT / "docs" / "operations.md").read_text()
LISTENERS = {"listen": "public", "operations_listen": "operations", "admin_listen": "panel"}
ANYBODY = "anybody"


def rows(table: str) -> list[list[str]]:
    """The cells of a table of the page, without its heads."""
    _, _, rest = TEXT.partition(f"<!-- {table} -->\n")
    lines = rest.partition(f"<!-- /{table} -->")[0].splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def ticked(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


SURFACE, THREATS = rows("surface"), rows("threats")


def said(listener: str, *, to_anybody: bool | None = None) -> set[str]:
    """The paths that the page names of a listener, all or by whom it answers there."""
    return {
        path
        for where, _, paths, answers in SURFACE
        if where == f"`{listener}`"
        and (to_anybody is None or answers.startswith(ANYBODY) is to_anybody)
        for path in ticked(paths)
    }


def beginning(path: str) -> str:
    """The first part of a path, by which the page names all that lie below it."""
    return "/" + path.split("/")[1]


def test_every_listener_that_can_be_set_is_named_and_no_other() -> None:
    settings = {name for name, _ in names() if name.split("_")[-1] == "listen"}
    assert settings == set(LISTENERS)
    named = {tuple(ticked(where) + ticked(setting)) for where, setting, _, _ in SURFACE}
    assert named == {(listener, setting) for setting, listener in LISTENERS.items()}


def test_every_page_of_the_panel_is_named_with_who_may_see_it() -> None:
    open_to_all = {beginning(page.path) for page in PAGES if page.needs is None} | {
        beginning(STATIC)
    }
    closed = {beginning(page.path) for page in PAGES if page.needs is not None}
    assert said("panel", to_anybody=True) == open_to_all
    assert said("panel", to_anybody=False) == closed - open_to_all


def test_every_path_for_partners_is_named_with_who_may_see_it() -> None:
    assert said("public", to_anybody=True) == {OPENAPI, DOCS}
    assert said("public", to_anybody=False) == {BASE_PATH}
    assert all(each.permission for each in OPERATIONS)


async def test_every_path_for_operations_is_named(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    async with session.get(f"{running_gateway.operations}/nothing") as answer:
        told = await answer.text()
    assert set(re.findall(r"/\w+", told)) == said("operations")


def test_every_threat_says_where_by_what_there_is() -> None:
    """And what anybody may ask for has threats of its own."""
    seen = dict[str, set[str]]()
    for threat, where, _, _ in THREATS:
        words = ticked(where)
        listeners = [each for each in words if not each.startswith("/")]
        assert listeners, threat
        assert set(listeners) <= {*LISTENERS.values(), "inside", "everywhere"}, threat
        for path in set(words) - set(listeners):
            [listener] = [each for each in listeners if each in LISTENERS.values()]
            assert path in said(listener), threat
        for each in listeners:
            seen.setdefault(each, set()).update(words)
    assert set(LISTENERS.values()) <= set(seen)
    for listener in ("public", "panel"):
        assert said(listener, to_anybody=True) <= seen[listener]


@pytest.mark.parametrize(("threat", "tests"), [(row[0], row[3]) for row in THREATS])
def test_every_threat_names_tests_that_there_are(threat: str, tests: str) -> None:
    found = ticked(tests)
    assert found, threat
    for each in found:
        file, _, name = each.partition("::")
        assert name in functions(ROOT / file), each


@cache
def functions(file: Path) -> set[str]:
    """The tests in a file."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse(file.read_bytes())
    return {each.name for each in tree.body if isinstance(each, kinds)}


async def test_partners_and_operations_have_no_cookie_and_no_cors(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    foreign = {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}
    base = running_gateway.base.removesuffix(BASE_PATH)
    places = [base + path for path in (OPENAPI, DOCS, OPERATIONS[0].path, "/")]
    places += [running_gateway.operations + path for path in said("operations")]
    for place in places:
        for method in ("GET", "OPTIONS"):
            async with session.request(method, place, headers=foreign) as answer:
                sent = {name.lower() for name in answer.headers}
            assert "set-cookie" not in sent
            assert not any(name.startswith("access-control-") for name in sent), place
