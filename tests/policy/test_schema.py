"""The schema for editors accepts every policy that can be used, and refuses what people slip on."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from adapters.base import Trouble
from adapters.documents.document import parse_document
from adapters.documents.problems import DocumentErrors
from gateway.cli.policy import policy
from gateway.contract.access import LEVELS
from gateway.contract.fields import Field, Resource
from gateway.contract.resources import GOVERNED
from gateway.policy.masks import KINDS, fitting
from gateway.policy.reading.document import parse_policy
from gateway.policy.reading.schema import policy_schema
from gateway.policy.rows import is_ordered
from tests.policies import TEXT
from tests.policy.slips import SLIPS
from tests.policy.test_recipes import RECIPES, SHIPPED

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "policies.schema.json"
VALIDATOR = Draft202012Validator(policy_schema())


def ignore(trouble: Trouble) -> None:
    pass


def data_of(text: str) -> Any:
    return parse_document(text.encode(), "policies.yaml").data


def test_the_schema_is_one_of_its_dialect() -> None:
    Draft202012Validator.check_schema(policy_schema())


def test_the_file_beside_the_shipped_policy_is_what_the_command_prints() -> None:
    printed = CliRunner().invoke(policy, ["schema"]).stdout
    assert FILE.read_text(encoding="utf-8") == printed, "run `make tables`"
    assert json.loads(printed) == policy_schema()


def test_the_shipped_policy_names_its_schema_and_fits_it() -> None:
    assert f"\n# yaml-language-server: $schema={FILE.name}\n" in SHIPPED
    VALIDATOR.validate(data_of(SHIPPED))
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'"{FILE.name}" = "gateway/{FILE.name}"' in project
    assert FILE.name in (ROOT / "Dockerfile").read_text(encoding="utf-8")


@pytest.mark.parametrize(("part", "cases"), RECIPES)
def test_every_recipe_fits(part: str, cases: str) -> None:
    [name] = data_of(part)
    place = re.compile(rf"^{name}:\n(?: .*\n)+", re.MULTILINE)
    VALIDATOR.validate(data_of(place.sub(lambda found: part, SHIPPED)))


# What only the whole file tells: whether each field stands once, what is seen at which level.
BEYOND = {
    "doubled-field", "doubled-mask", "doubled-name", "missing-field", "mask-not-lower",
    "condition-on-hidden", "narrower-level", "bad-version",
}  # fmt: skip

# Nor how finely a number may be written.
FINER = (": it has two places", ": it has whole seconds")


@pytest.mark.parametrize(("old", "new", "code", "text"), SLIPS, ids=[each[1] for each in SLIPS])
def test_a_slip_is_marked_in_an_editor(old: str, new: str, code: str, text: str) -> None:
    try:
        data = data_of(TEXT.replace(old, new.replace("^", "", 1)))
    except DocumentErrors:
        return  # which an editor marks as well: it is no strict YAML
    if code not in BEYOND and not text.endswith(FINER):
        assert not VALIDATOR.is_valid(data)


AMOUNTS = st.decimals(-999, 999, places=2).map(str)
QUOTED = AMOUNTS.map(lambda each: f'"{each}"')
TEXTS = st.text("abc é-,0:[]", max_size=6).map(json.dumps)
VALUES = {
    "boolean": st.sampled_from(["true", "false"]),
    "uuid": st.uuids().map(str),
    "date": st.dates().map(str),
    "date-time": st.datetimes().map(lambda each: f"{each.replace(microsecond=0).isoformat()}Z"),
    "number": st.integers(-999, 999).map(str) | AMOUNTS,
    "money": AMOUNTS | QUOTED,
    "percent": AMOUNTS | QUOTED,
    "email": st.just("anna@example.org"),
}


def value_of(field: Field) -> st.SearchStrategy[str]:
    """A value of the field as a policy may have it."""
    if field.values:
        return st.sampled_from(field.values)
    return VALUES.get(field.format.name, TEXTS)


@st.composite
def condition(draw: st.DrawFn, field: Field) -> str:
    value = draw(value_of(field))
    forms = [value, f"[{value}]", f"{{not: [{draw(value_of(field))}]}}"]
    if is_ordered(field):
        word = draw(st.sampled_from(["min", "above", "max", "below"]))
        forms.append(f"{{{word}: {value}}}")
    return draw(st.sampled_from(forms))


def mask_of(kind: Any, number: int) -> str:
    return kind.name if kind.largest is None else f"{kind.name}({number % kind.largest + 1})"


@st.composite
def part_of(draw: st.DrawFn, resource: Resource) -> str:
    """One resource: every field once, some masked below, perhaps conditions."""
    names = [*(level.value for level in LEVELS), "never"]
    lists: dict[str, list[str]] = {name: [] for name in names}
    for path in resource.paths:
        at = draw(st.integers(0, 3))
        lists[names[at]].append(json.dumps(path))
        if at and (kinds := fitting(resource.at(path))) and draw(st.booleans()):
            mask = mask_of(draw(st.sampled_from(kinds)), draw(st.integers(0, 10**6)))
            lists[names[draw(st.integers(0, at - 1))]].append(f"{{{json.dumps(path)}: {mask}}}")
    lines = [
        f"  {name}: [{', '.join(draw(st.permutations(each)))}]" for name, each in lists.items()
    ]
    whole = [path for path in resource.paths if json.dumps(path) in lists["BASIC"]]
    plain = [path for path in whole if "[]" not in path and not resource.at(path).many]
    if plain and draw(st.booleans()):
        path = draw(st.sampled_from(plain))
        stated = f"{{{path}: {draw(condition(resource.at(path)))}}}"
        lines.append(f"  only: {draw(st.sampled_from([stated, f'{{BASIC: {stated}}}']))}")
    return "\n".join([f"{resource.name}:", *lines, ""])


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_can_be_used_fits(data: st.DataObject) -> None:
    parts = [data.draw(part_of(resource)) for resource in GOVERNED]
    text = "version: 1\n" + "".join(parts)
    if codes(text) <= {"empty-condition"}:
        assert codes(text) or VALIDATOR.is_valid(data_of(text)), text
    else:
        pytest.fail(text)


def codes(text: str) -> set[str]:
    """The kinds of what keeps a policy from being used."""
    try:
        parse_policy(text.encode(), "policies.yaml", ignore)
    except DocumentErrors as error:
        return {each.code for each in error.problems}
    return set()


def test_every_mask_and_comparison_is_known_to_the_schema() -> None:
    told = json.dumps(policy_schema())
    for kind in KINDS.values():
        assert f"^{kind.name}" in told or f'"const": "{kind.name}"' in told
    for word in ("not", "min", "above", "max", "below"):
        assert f'"{word}"' in told
