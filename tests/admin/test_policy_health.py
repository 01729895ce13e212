"""The page Traffic says where the policy's cases fail, and what to do."""

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.admin.views.traffic import part_states
from gateway.admin.words import words

FAILING = {"text": "1 of its cases fails", "problems": [], "more": 0}


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"state": "current", "cases": FAILING}, "cases"),
        ({"state": "held back", "waitsFor": "cases", "cases": FAILING}, "cases_wait"),
        ({"state": "held back", "waitsFor": "approval", "cases": None}, "held_back"),
        ({"state": "current", "waitsFor": None, "cases": None}, None),
    ],
)
def test_cases_that_fail_are_told_with_what_to_do(
    more: Mapping[str, Any], text: str | None, language: str
) -> None:
    [told] = part_states({"policy": {"ready": True, **more}})
    assert told.do == (text and f"traffic.do_{text}")
    said = words(language)
    assert said.has(told.said)
    assert told.do is None or said.has(told.do)
