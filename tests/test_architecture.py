"""ARCHITECTURE.md draws the tree as it is: its rooms, its floors, and the files that it names."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.test_floors import ADAPTER_FLOORS, FLOORS

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
# A page that fits one screen or two is read.
MOST_LINES, MOST_SHARED, MOST_STATEMENT = 150, 10, 60
# What stands twice on purpose, and why.
SHAPES = {
    "NotFound": "an adapter's error, and the partner's answer that it becomes",
}


def rooms_drawn() -> set[str]:
    return set(re.findall(r"^\| `((?:gateway|adapters)/[\w./]+)` ", PAGE, re.MULTILINE))


def rooms_there() -> set[str]:
    found = set()
    for house in ("gateway", "adapters"):
        for path in (ROOT / house).iterdir():
            is_room = path.is_dir() and any(path.glob("*.py"))
            if is_room or (path.suffix == ".py" and not path.name.startswith("__")):
                found.add(f"{house}/{path.name}")
    return found


def test_every_room_is_drawn_and_nothing_else() -> None:
    assert rooms_drawn() == rooms_there()


def test_the_floors_are_those_that_the_tests_hold() -> None:
    drawn = [
        set(re.findall(r"`([\w.]+)`", line))
        for line in re.findall(r"^\d+\. (.*)$", PAGE, re.MULTILINE)
    ]
    assert drawn == [set(rooms) for rooms in reversed(FLOORS)] + [
        set(rooms) for rooms in reversed(ADAPTER_FLOORS)
    ]


def test_every_file_that_is_named_is_there() -> None:
    named = re.findall(r"`((?:gateway|adapters|tests|docs)/[\w./-]+)`", PAGE)
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert len(PAGE.splitlines()) <= MOST_LINES


@cache
def trees() -> dict[str, ast.Module]:
    """Each file of both packages, as Python reads it."""
    files = [*ROOT.glob("gateway/**/*.py"), *ROOT.glob("adapters/**/*.py")]
    return {str(file.relative_to(ROOT)): ast.parse(file.read_bytes()) for file in files}


def classes_and_functions() -> tuple[Counter[str], list[str]]:
    """How often each class is defined, and the functions that are too long."""
    classes: Counter[str] = Counter()
    long = []
    for file, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name] += 1
            elif is_long(node):
                long.append(f"{file}: {getattr(node, 'name', '')}")
    return classes, long


def is_long(node: ast.AST) -> bool:
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return is_function and (node.end_lineno or 0) - node.lineno >= MOST_STATEMENT


def test_a_class_name_stands_for_one_thing() -> None:
    classes, _ = classes_and_functions()
    twice = {name for name, count in classes.items() if count > 1}
    assert len(twice) <= MOST_SHARED, sorted(twice - set(SHAPES))
    assert set(SHAPES) <= twice, "what stands once needs no reason"


def test_no_function_is_longer_than_a_screen() -> None:
    assert classes_and_functions()[1] == []


# Words in -s that are no verbs: a docstring that begins with one names a thing.
NOUNS = {
    "Always",
    "Columns",
    "Counters",
    "Fields",
    "Lines",
    "Rows",
    "Seconds",
    "This",
    "Values",
}


def docstrings() -> Iterator[tuple[str, str]]:
    """Yields where each function of both packages stands, with the first word of its docstring.

    Properties and tests are left out, and so are commands and pages, whose words people read.
    """
    for file, tree in trees().items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            marks = " ".join(map(ast.unparse, node.decorator_list))
            spoken = re.search(r"property|command|group|^(?:get|post)\(", marks)
            text = ast.get_docstring(node)
            if text and not spoken and not node.name.startswith("test_"):
                yield f"{file}:{node.lineno} {node.name}", text.split()[0]


def test_a_docstring_says_what_its_function_does() -> None:
    """In the indicative: Returns, Raises, Writes; no noun, and no imperative."""
    said = [
        f"{place}: {word}"
        for place, word in docstrings()
        if not re.fullmatch("[A-Z][a-z]+s,?", word) or word.rstrip(",") in NOUNS
    ]
    assert said == []
