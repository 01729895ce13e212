"""The door of the adapters: a name that leads to none is said in a sentence, whatever it is."""

from dataclasses import replace
from pathlib import Path

import pytest

from adapters import open_adapter
from adapters.base import AdapterOptions
from adapters.documents.problems import DocumentErrors
from adapters.sample import MAPPING

OPTIONS = AdapterOptions(
    url="", mapping=None, secret=bytes(32), shapes={}, report=lambda trouble: None
)
MODULE = """
from typing import Protocol
class Adapter:
    def __init__(self, options): self.options = options
class Old:
    def __init__(self, url, mapping): pass
class Bare: pass
class Named:
    def __init__(self, *, options): pass
class Shape(Protocol):
    pass
class Faulty:
    def __init__(self, options): raise TypeError("inside")
"""


@pytest.fixture(autouse=True)
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_clinic.py").write_text(MODULE)
    (tmp_path / "own_broken.py").write_text("import not_there_either\n")
    (tmp_path / "own_typo.py").write_text("def\n")
    (tmp_path / "own_fault.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "there is no adapter '': use one of sql, rest, or module:Class of your own"),
        ("sqll", "there is no adapter 'sqll': use one of sql, rest, or module:Class of your own"),
        (".x:Y", "there is no adapter '.x:Y'"),
        ("own_clinic:", "there is no adapter 'own_clinic:'"),
        ("own_none:Adapter", "the adapter's module own_none cannot be found: install it"),
        ("own_none.sub:Adapter", "the adapter's module own_none.sub cannot be found: install it"),
        ("own_clinic.sub:Adapter", "the adapter's module own_clinic.sub cannot be found"),
        (
            "own_broken:Adapter",
            "the adapter's module own_broken cannot be imported: ModuleNotFoundError: No module"
            " named 'not_there_either'; mend what `python -c 'import own_broken'` says",
        ),
        ("own_typo:Adapter", "the adapter's module own_typo cannot be imported: SyntaxError: "),
        ("own_fault:Adapter", "own_fault cannot be imported: ZeroDivisionError: division by zero"),
        (
            "own_clinic:Adaptor",
            "the module own_clinic has no class Adaptor (did you mean Adapter?); write module:Class"
            " in backend.adapter",
        ),
        (
            "os:getcwd",
            "os:getcwd is no class that an adapter can be made of; write module:Class in"
            " backend.adapter",
        ),
        ("own_clinic:Shape", "own_clinic:Shape is no class"),
        ("os:PathLike", "os:PathLike is no class"),
        (
            "own_clinic:Old",
            "the adapter own_clinic:Old does not take the options: write its constructor as",
        ),
        ("own_clinic:Bare", "own_clinic:Bare does not take the options"),
        ("own_clinic:Named", "own_clinic:Named does not take the options"),
        ("builtins:int", "builtins:int does not take the options"),
    ],
)
def test_a_name_that_leads_to_no_adapter_is_a_sentence(name: str, said: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is what is looked at
        open_adapter(name, OPTIONS)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_adapter_of_ones_own_is_made_with_the_options() -> None:
    made = open_adapter("own_clinic:Adapter", OPTIONS)
    assert made.options is OPTIONS  # type: ignore[attr-defined]


def test_what_goes_wrong_inside_a_constructor_stays_what_it_is() -> None:
    with pytest.raises(TypeError, match="inside"):
        open_adapter("own_clinic:Faulty", OPTIONS)
    with pytest.raises(DocumentErrors):
        open_adapter("sql", replace(OPTIONS, mapping=Path("none.yaml")))


def test_what_an_adapter_is_made_of_shows_no_secret() -> None:
    url = "postgresql://gateway:sesame@127.0.0.1/practice"
    shown = repr(
        replace(OPTIONS, url=url, secret=b"sesame" * 5, credentials={"password": "sesame"})
    )
    assert "sesame" not in shown


CLOUD = Path(__file__).parents[2] / "examples" / "json_cloud" / "mapping.yaml"


@pytest.mark.parametrize("url", ["sqlite:///clinic.db", "https://cloud.example.org/api", ""])
@pytest.mark.parametrize(
    ("name", "other", "mapping"), [("sql", "rest", CLOUD), ("rest", "sql", MAPPING)]
)
def test_a_mapping_of_the_other_adapter_is_one_sentence(
    name: str, other: str, mapping: Path, url: str
) -> None:
    with pytest.raises(DocumentErrors) as caught:
        open_adapter(name, replace(OPTIONS, url=url, mapping=mapping))
    [problem] = caught.value.problems
    assert f"stands only in a mapping of the {other} adapter" in problem.text
    assert f"backend.adapter is {name}: write adapter: {other} under backend:" in problem.text
    assert problem.line > 1


def test_a_mapping_with_a_line_of_the_other_kind_is_still_taken_for_its_own(tmp_path: Path) -> None:
    mapping = tmp_path / "mixed.yaml"
    mapping.write_text(MAPPING.read_text() + "backend: {}\n")
    with pytest.raises(DocumentErrors) as caught:
        open_adapter("sql", replace(OPTIONS, url="sqlite:///clinic.db", mapping=mapping))
    texts = [each.text for each in caught.value.problems]
    assert texts
    assert not [each for each in texts if "write adapter: rest" in each]
