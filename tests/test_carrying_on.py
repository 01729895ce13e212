"""The README's recipes for a field and an operation, followed on a copy of the tree.

With every step done a gateway serves both, at the right level and on every page of the panel. With
one left out the start is refused, or `policy check` tells, and what is missing is named.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from adapters.sample import MAPPING
from gateway.administrators.administrator import Role
from gateway.store import open_store
from tests.admin.manager import Manager, manager_of
from tests.conftest import CONFIGURATION, Template
from tests.processes.gateways import Several, copy_of, eventually, get, of_copy
from tests.tables import README, ROOT

pytestmark = pytest.mark.long

TREES = ("gateway", "adapters", "examples", "docs", "tests")
FILES = (
    "CHANGELOG.md",
    "README.md",
    "pyproject.toml",
    "policies.schema.json",
    "policies.test.yaml",
    "policies.yaml",
)
PANEL = ("/keys/new", "/preview?resource=clients&level=STANDARD", "/policy", "/audit/deeds")


@dataclass(frozen=True)
class Step:
    """What is written into a file behind the first place that a pattern matches."""

    file: str
    behind: str
    written: str
    every: bool = False

    def do(self, tree: Path) -> None:
        file = tree / self.file
        changed, count = re.subn(
            self.behind,
            lambda found: found[0] + self.written,
            file.read_text("utf-8"),
            count=0 if self.every else 1,
            flags=re.MULTILINE,
        )
        assert count, self.file
        file.write_text(changed, "utf-8")


_CLIENTS_AT_STANDARD = r"^clients:\n(?:  .*\n)*?  STANDARD: \["
_UNRELEASED = r"^## \[Unreleased\]\n"
FIELD = (
    Step(
        "gateway/contract/resources.py",
        r"^    name=\"clients\",\n(?:.*\n)*?        ID,\n",
        '        Field(name="recipeField", summary="A field more.", personal=True),\n',
    ),
    Step("policies.yaml", _CLIENTS_AT_STANDARD, "recipeField, "),
    Step("examples/mariadb_eav/policies.yaml", _CLIENTS_AT_STANDARD, "recipeField, "),
    Step("examples/postgres_slots/policies.yaml", _CLIENTS_AT_STANDARD, "recipeField, "),
    Step("policies.test.yaml", r"^  anna:\n    id: .*\n", "    recipeField: Anything\n"),
    Step(
        "gateway/admin/texts/fields.toml",
        r"^\"clients\.id\" = .*\n",
        '"clients.recipeField" = { en = "Added", fr = "Ajouté" }\n',
    ),
    Step(
        "adapters/sample/clinic.yaml",
        r"^  clients:\n(?:    .*\n)*?    fields:\n(?:      .*\n)*",
        "      recipeField: p.RAISON_SOC\n",
    ),
    Step(
        "gateway/policy/telling/specimens.yaml",
        r"^clients:\n(?:  .*\n)*?  firstName: .*\n",
        '  recipeField: "Anything"\n',
    ),
    Step(
        "adapters/draft/vocabulary.yaml",
        r"^fields:\n  clients:\n",
        "    recipeField: recipe field\n",
    ),
    Step(
        "docs/policies.md",
        r"(?:STANDARD|sees): \[(?:\w+, )*(?=phone\b)",
        "recipeField, ",
        every=True,
    ),
    Step("tests/policy/test_policy.py", r"\"clients\": \(\s*\"[^\"]*\",\s*\"", "recipeField "),
    Step("tests/policy/test_risks.py", r"^PERSONAL = \{\n    \"clients\": \"", "recipeField "),
    Step("tests/test_spec.py", r"^CLIENT = \{\n", '    "recipeField": "string",\n'),
    Step("CHANGELOG.md", _UNRELEASED, "\n- Clients have a field more.\n"),
)
# The second change of the same file.
CASES = Step("policies.test.yaml", r"sees: \[(?:\w+, )*(?=phone\b)", "recipeField, ", every=True)
OPERATION = (
    Step(
        "gateway/contract/operations.py",
        r"^OPERATIONS = \(\n",
        """\
    Operation(
        id="list_by_the_recipe",
        summary="Consultations once more",
        method="GET",
        path="/by-the-recipe",
        permission=Permission.CONSULTATION_READ,
        returns=resources.CONSULTATION,
        many=True,
        paged=True,
    ),
""",
    ),
    Step("docs/partners.md", r"^## Lists, page by page\n\n", "`/by-the-recipe`, "),
    Step(
        "tests/test_spec.py",
        r"^ENDPOINTS = \[\n",
        '    ("GET", "/by-the-recipe", "CONSULTATION_READ"),\n',
    ),
    Step("CHANGELOG.md", _UNRELEASED, "\n- Consultations are listed.\n"),
)


def named_in(recipe: str) -> list[str]:
    """The files that a recipe of the README names, in its order."""
    text = README.read_text("utf-8").partition(f"- **{recipe}**")[2]
    [text, *_] = re.split(r"^(?:- |## )", text, maxsplit=1, flags=re.MULTILINE)
    words = re.findall(r"`([\w./-]+)`", text)
    return [each for each in words if (ROOT / each).is_file()]


@pytest.mark.parametrize(
    ("recipe", "steps"), [("Add a field", FIELD), ("Add an operation", OPERATION)]
)
def test_a_recipe_names_just_the_files_that_are_changed_here(
    recipe: str, steps: tuple[Step, ...]
) -> None:
    assert named_in(recipe) == [step.file for step in steps]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree in which both recipes were followed."""
    made = tmp_path_factory.mktemp("copy")
    for name in TREES:
        shutil.copytree(ROOT / name, made / name, ignore=shutil.ignore_patterns("node_modules"))
    for name in FILES:
        shutil.copy2(ROOT / name, made)
    for step in (*FIELD, CASES, *OPERATION):
        step.do(made)
    return made


def python(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A module of the copy, in a process of its own, until it ends."""
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=tree,
        env=os.environ | of_copy(tree),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def begun(tree: Path, template: Template, to: Path) -> Path:
    """A state folder whose gateway is to be that of the copy, with its mapping of the sample."""
    folder = copy_of(template.folder, to)
    mapping = str(tree / MAPPING.relative_to(ROOT))
    (folder / "gateway.yaml").write_text(CONFIGURATION.replace(str(MAPPING), mapping))
    return folder


@pytest.fixture(scope="module")
def state(tree: Path, template: Template) -> Path:
    return begun(tree, template, tree / "state")


@pytest.fixture(scope="module")
def served(tree: Path, template: Template) -> Iterator[Several]:
    folder = begun(tree, template, tree / "served")
    with Several(folder, lines=(), tree=tree) as several:
        yield several


@pytest.fixture
async def manager(served: Several) -> AsyncIterator[Manager]:
    """An administrator at the panel of the copy's gateway."""
    port = served.event("serving")["admin_port"]
    store = open_store(f"sqlite:///{served.folder}/gateway.db")
    async with aclosing(store), aiohttp.ClientSession() as session:
        panel = SimpleNamespace(url=f"http://127.0.0.1:{port}")
        running = SimpleNamespace(gateway=SimpleNamespace(panel=panel, store=store))
        yield await manager_of(running, session, role=Role.ADMIN, language="fr")


def answered(served: Several, path: str, secret: str | None = None) -> Any:
    """What is answered with 200; a machine that is busy may take a moment to."""

    def answer() -> tuple[int, Any] | None:
        found = get(served.port, f"/api/v1{path}", secret)
        return found if found[0] == 200 else None

    return eventually(answer)[1]


def test_what_is_added_is_served_at_its_level(served: Several) -> None:
    more = ("--permission", "CONSULTATION_READ")
    basic, standard = (served.mint("--level", level, *more)[1] for level in ("BASIC", "STANDARD"))
    assert all("recipeField" not in each for each in answered(served, "/clients", basic))
    seen = answered(served, "/clients?limit=200", standard)
    assert any(each["recipeField"] for each in seen)
    assert [*seen[0]][:2] == ["id", "recipeField"]
    assert len(answered(served, "/by-the-recipe", basic)) == 50
    document = answered(served, "/openapi.json")
    assert document["paths"]["/by-the-recipe"]["get"]["operationId"] == "list_by_the_recipe"
    assert "recipeField" in document["components"]["schemas"]["Client"]["properties"]


async def test_the_panel_shows_the_new_field_on_every_page_that_shows_fields(
    manager: Manager,
) -> None:
    pages = {path: await manager.get(path) for path in PANEL}
    assert {path: page.status for path, page in pages.items()} == dict.fromkeys(PANEL, 200)
    assert all("Ajouté" in pages[path].plain for path in PANEL[1:3])
    form = {"csrf": pages["/keys/new"].csrf, "permission": "CLIENT_READ", "level": "STANDARD"}
    sees = await manager.send("/keys/sees", form)
    assert (sees.status, "Ajouté" in sees.plain) == (200, True)


SERVE = ("serve", "--config", "STATE/gateway.yaml")
CHECK = ("policy", "check")
AGAINST = (*CHECK, "--config", "STATE/gateway.yaml", "--against-backend")
# For each file that the gateway itself reads: the command that tells, its exit code, and what of.
LEFT_OUT = [
    ("gateway/contract/resources.py", SERVE, 1, "clients has no field 'recipeField'"),
    (
        "policies.yaml",
        SERVE,
        1,
        "clients.recipeField is missing; add it to the first level that may",
    ),
    (
        "examples/mariadb_eav/policies.yaml",
        (*CHECK, "examples/mariadb_eav/policies.yaml"),
        1,
        "clients.recipeField is missing",
    ),
    (
        "examples/postgres_slots/policies.yaml",
        (*CHECK, "examples/postgres_slots/policies.yaml"),
        1,
        "clients.recipeField is missing",
    ),
    ("policies.test.yaml", SERVE, 1, "clients.recipeField: shown nothing, expected hidden"),
    (
        "gateway/admin/texts/fields.toml",
        SERVE,
        1,
        "gateway/admin/texts/fields.toml: there is no text for clients.recipeField; add a line"
        ' "clients.recipeField" = { en = "...", fr = "..." }',
    ),
    (
        "adapters/sample/clinic.yaml",
        AGAINST,
        0,
        "clients.recipeField is open, and nothing in the mapping fills it",
    ),
]


@pytest.mark.parametrize(
    ("file", "command", "code", "said"),
    LEFT_OUT,
    ids=[f"{each[0]} {each[1][0]}" for each in LEFT_OUT],
)
def test_a_step_that_is_left_out_is_told_before_anything_is_served(
    tree: Path, state: Path, file: str, command: tuple[str, ...], code: int, said: str
) -> None:
    done, undone = (tree / file).read_bytes(), (ROOT / file).read_bytes()
    (tree / file).write_bytes(undone)
    try:
        ended = python(tree, "gateway", *(word.replace("STATE", str(state)) for word in command))
    finally:
        (tree / file).write_bytes(done)
    told = " ".join(ended.stderr.split())
    assert (ended.returncode, said in told) == (code, True), ended.stderr
    assert "Traceback" not in ended.stderr


def test_every_step_that_the_start_or_a_check_tells_of_is_left_out_once() -> None:
    """The README promises it of steps 1 to 5; the next is the first that only tests tell of."""
    files = [step.file for step in FIELD]
    told = files[: files.index("gateway/policy/telling/specimens.yaml")]
    assert [each[0] for each in LEFT_OUT] == told


# Tests that write down once more what was added, that compare the tables, and that edit a policy of
# their own, which a new field must leave as they are.
TESTS = (
    "tests/policy/test_policy.py::test_the_shipped_policy_opens_what_was_decided_and_hides_the_rest",
    "tests/policy/test_risks.py",
    "tests/policy/test_preview.py",
    "tests/adapters/draft/test_draft.py::test_each_field_that_a_column_holds_has_words_by_which_it_is_found",
    "tests/policy/test_recipes.py",
    "tests/policy/test_document.py",
    "tests/partners/test_page.py::test_what_has_pages_and_what_can_be_asked_since_when_is_named",
    "tests/test_readme.py::test_a_table_of_the_readme_says_what_the_code_says",
    "tests/test_spec.py::test_versioning_1_and_2",
    "tests/test_spec.py::test_levels_open_more_and_more_and_a_scope_overrides_them",
)


def test_the_tests_of_the_copy_agree_with_what_was_added_or_notice_nothing_of_it(
    tree: Path,
) -> None:
    assert python(tree, "tests.tables").returncode == 0
    ended = python(tree, "pytest", "-q", "-p", "no:cacheprovider", "--no-header", *TESTS)
    assert ended.returncode == 0, ended.stdout
