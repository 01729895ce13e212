"""The recipes of docs/policies.md do what they say: each is checked, and its cases are tried."""

import re
from pathlib import Path

import pytest
import yaml

from adapters.base import Trouble
from gateway.policy.cases import read_cases, run
from gateway.policy.policy import Policy
from gateway.policy.reading.document import parse_policy

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
SHIPPED = (ROOT / "policies.yaml").read_text(encoding="utf-8")
CASES = (ROOT / "policies.test.yaml").read_text(encoding="utf-8")
_recipe = re.compile(
    r"^### (?P<name>.+)\n(?:(?!^##)[\s\S])*?^```yaml\n(?P<policy>[\s\S]*?)^```\n\n"
    r"^```yaml\n(?P<cases>[\s\S]*?)^```\n",
    re.MULTILINE,
)
RECIPES = [
    pytest.param(found["policy"], found["cases"], id=found["name"])
    for found in _recipe.finditer(PAGE[PAGE.index("## Recipes") :])
]


def ignore(trouble: Trouble) -> None:
    pass


def with_part(part: str) -> Policy:
    """The shipped policy with another part for a resource."""
    [name] = yaml.safe_load(part)
    place = re.compile(rf"^{name}:\n(?: .*\n)+", re.MULTILINE)
    changed, count = place.subn(lambda found: part, SHIPPED)
    assert count == 1
    return parse_policy(changed.encode(), "policies.yaml", ignore)


def test_the_page_has_recipes() -> None:
    assert len(RECIPES) == PAGE[PAGE.index("## Recipes") :].count("\n### ") >= 7


def test_the_change_of_the_first_minutes_breaks_three_cases_until_they_say_so(
    tmp_path: Path,
) -> None:
    first = PAGE[PAGE.index("## In five minutes") : PAGE.index("## The file")]
    basic = "  BASIC: [id, firstName, lastName]\n"
    [changed] = re.findall(r"^ +(BASIC: .*\{phone.*)$", first, re.MULTILINE)
    [sees] = re.findall(r"^ +(sees: .*)$", first, re.MULTILINE)
    policy = parse_policy(SHIPPED.replace(basic, f"  {changed}\n").encode(), "new.yaml", ignore)
    file = tmp_path / "policies.test.yaml"
    file.write_text(CASES, encoding="utf-8")
    broken = [each for each in run(policy, read_cases(file)) if each.differences]
    assert len(broken) == 3
    file.write_text(CASES.replace("sees: [id, firstName, lastName]\n", f"{sees}\n"))
    assert not [each for each in run(policy, read_cases(file)) if each.differences]


@pytest.mark.parametrize(("part", "cases"), RECIPES)
def test_a_recipe_does_what_its_cases_say(part: str, cases: str, tmp_path: Path) -> None:
    records = CASES[: CASES.index("\ncases:\n")]
    indented = "".join(f"  {line}\n" if line else "\n" for line in cases.splitlines())
    text = f"{records}\ncases:\n{indented}"
    file = tmp_path / "policies.test.yaml"
    file.write_text(text, encoding="utf-8")
    tried = run(with_part(part), read_cases(file))
    assert len(tried) >= 1
    assert [each.differences for each in tried] == [()] * len(tried)
