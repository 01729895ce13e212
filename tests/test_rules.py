"""Each rule of checks/rules.yaml has lines to find and lines to let be; `make rules` tries them."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
RULES = [each["id"] for each in yaml.safe_load((ROOT / "checks/rules.yaml").read_text())["rules"]]
LINES = (ROOT / "checks/rules.py").read_text()


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_tried_both_ways(rule: str) -> None:
    assert f"# ruleid: {rule}\n" in LINES
    assert f"# ok: {rule}\n" in LINES


def test_what_breaks_a_rule_on_purpose_names_it_and_says_why() -> None:
    code = [*ROOT.glob("gateway/**/*.py"), *ROOT.glob("adapters/**/*.py"), *ROOT.glob("bench/*.py")]
    for file in code:
        for line in re.findall(r"#.*nosem.*", file.read_text()):
            named = re.fullmatch(r"# nosemgrep: ([a-z-]+) - .+", line)
            assert named is not None, f"{file}: {line}"
            assert named[1] in RULES, f"{file}: {line}"
