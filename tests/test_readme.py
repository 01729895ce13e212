"""What the README says in tables is what the code says: compared, row by row."""

import re
import shlex
from pathlib import Path

import pytest

from adapters.documents.models import models_in
from adapters.mapping.models import MappingFile
from attack.__main__ import ATTACKS
from gateway.cli import COMMANDS
from gateway.contract import errors
from gateway.contract.operations import OPERATIONS
from tests import tables
from tests.tables import PAGES, ROOT, TABLES, alarms, alerts, block, filled

README = tables.README.read_text()


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_the_readme_says_what_the_code_says(name: str) -> None:
    [found] = [each for page in PAGES if (each := block(name).search(page.read_text()))]
    rows = found[2].splitlines()
    assert rows == TABLES[name](), "`make tables` writes what the code says"


def test_the_tables_are_written_into_their_places_and_nothing_else_is() -> None:
    count = 0
    for page in PAGES:
        emptied = page.read_text()
        for name in TABLES:
            emptied = block(name).sub(r"\1| old |\n\3", emptied)
        count += emptied.count("| old |")
        assert filled(emptied) == page.read_text()
    assert count == len(TABLES)


def test_the_alarms_are_those_of_the_table_of_events() -> None:
    """`make tables` writes both."""
    assert tables.ALARMS.findall((ROOT / "docs" / "operations.md").read_text())[0][1] == alarms()
    assert (ROOT / "examples" / "alerts.yaml").read_text() == alerts()


def test_the_readme_says_how_long_a_search_may_be() -> None:
    params = [each for operation in OPERATIONS for each in operation.query]
    for search in [each for each in params if each.name == "search"]:
        assert f"`search` takes {search.shortest} to {search.longest} characters" in README


def test_the_page_names_every_part_of_a_mapping() -> None:
    """Every member of every model stands in the reference, in a block of YAML or between ticks."""
    page = (ROOT / "docs" / "mapping.md").read_text()
    shown = set(re.findall(r"(?:^|[ {-])(\w+):", page, re.MULTILINE)) | set(
        re.findall(r"`(\w+)[`:]", page)
    )
    for model in models_in(MappingFile):
        for name, info in model.model_fields.items():
            wanted = info.alias or name
            assert wanted in shown or name in {"constant", "root"}, f"{model.__name__}.{wanted}"


def test_the_readme_names_every_command() -> None:
    for command in COMMANDS:
        assert f"`{command}`" in README or f"clinic-gateway {command}" in README


def test_the_readme_names_every_error_class_by_its_text() -> None:
    assert errors.TimeSlotConflict.message in README


def test_the_folders_that_the_readme_shows_are_there() -> None:
    plan = README.partition("## Carry it on")[2]
    for name in re.findall(r"^\| `([a-z/.]+)`", plan, re.MULTILINE):
        assert (ROOT / name).exists(), name


def recipes() -> dict[str, str]:
    """What is to be done to add something, by its name."""
    plan = README.partition("## Carry it on")[2].partition("\n## ")[0]
    found = re.findall(r"^- \*\*(Add .+?)\*\*((?:.*\n)+?)(?=- |\Z)", plan, re.MULTILINE)
    return dict(found)


def test_there_are_recipes() -> None:
    assert len(recipes()) == README.count("\n- **Add ") >= 6


@pytest.mark.parametrize("recipe", recipes())
def test_a_recipe_names_files_words_and_tests_that_are_there(recipe: str) -> None:
    """Words such as `CONVERTERS` and `_now` stand in a file that the recipe names."""
    text = recipes()[recipe]
    files = [ROOT / each for each in re.findall(r"`([\w./-]+\.(?:py|yaml|toml|md))`", text)]
    chosen = re.findall(r"ARGS=(?:\"([^\"]+)\"|(\S+)`)", " ".join(text.split()))
    assert chosen, "it says which tests to run"
    tests = [ROOT / each for pair in chosen for each in "".join(pair).split()]
    assert [str(each) for each in (*files, *tests) if not each.exists()] == []
    told = "".join(each.read_text() for each in files)
    words = re.findall(r"`(_\w+|[A-Z]{2,})`", text)
    assert [word for word in words if not re.search(rf"\b{word}\b", told)] == []


def promises() -> list[str]:
    """The command of each promise."""
    table = README.partition("<!-- promises -->")[2].partition("<!-- /promises -->")[0]
    rows = [row.strip("|").split("|") for row in table.strip().splitlines()[2:]]
    assert all(len(row) == 4 for row in rows)
    return [row[3].strip().strip("`") for row in rows]


@pytest.mark.parametrize("command", promises())
def test_the_command_that_shows_a_promise_is_there(command: str) -> None:
    variables, words = [], shlex.split(command)
    while "=" in words[0]:
        variables.append(words.pop(0).partition("=")[0])
    makefile = (ROOT / "Makefile").read_text()
    assert words[0] == "make"
    assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE)
    chosen = " ".join(words[2:]).removeprefix("ARGS=").split()
    if words[1] == "test":
        assert chosen
        assert all((ROOT / each).exists() for each in chosen)
        told = "".join(file.read_text() for each in chosen for file in files(ROOT / each))
        assert all(f'"{name}"' in told for name in variables)
    else:
        assert set(chosen) <= {each.name for each in ATTACKS}


def files(place: Path) -> list[Path]:
    return sorted(place.glob("*.py")) if place.is_dir() else [place]
