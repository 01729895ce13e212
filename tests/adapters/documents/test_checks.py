"""The tables of checks: codes are known, told apart, explained, and stand on a page."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters.documents.models import MODEL_CHECKS
from adapters.documents.problems import Check, Problem
from adapters.mapping.checker import CHECKS as OF_MAPPINGS
from adapters.mapping.checker import LAWS
from gateway.policy.reading import CHECKS as OF_POLICIES
from gateway.settings import CHECKS as OF_SETTINGS

ROOT = Path(__file__).resolve().parents[3]
TABLES = [
    ("mapping", OF_MAPPINGS),
    ("mapping", LAWS),
    ("policies", OF_POLICIES),
    ("operations", OF_SETTINGS),
]


def test_a_code_that_no_table_has_cannot_be_raised() -> None:
    with pytest.raises(LookupError, match="bad-luck"):
        Problem("mapping.yaml", 1, 1, "it has none", "bad-luck")


def test_no_code_stands_in_two_tables() -> None:
    own = Counter(code for _, table in TABLES for code in table if code not in MODEL_CHECKS)
    assert [code for code, count in own.items() if count > 1] == []


@pytest.mark.parametrize(("page", "table"), TABLES)
def test_each_kind_is_on_its_page_and_helps_in_one_sentence(
    page: str, table: Mapping[str, Check[Any]]
) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    for code, kind in table.items():
        assert f"| `{code}` | {kind.severity} | {kind.title} |" in text, code
        assert kind.help.endswith("."), code
        assert not re.search(r"[.] [A-Z]", kind.help), code
        assert not kind.title.endswith("."), code
