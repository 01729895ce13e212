"""All mistakes of a file are told at once, whichever kind each is; none that is none."""

import random
from pathlib import Path

import pytest

from adapters.documents.problems import DocumentErrors
from adapters.mapping.loader import read_mapping
from gateway.backend import shapes
from tests.adapters.mapping.test_mapping import LANGUAGE, MISTAKES, SAMPLE, problems

# Each of them alone is told at its line; YAML, models and the contract take turns.
YAML = (
    "      breed: a.RACE\n",
    "      breed: 'a.RACE\n",
    "the quote that opens here is never closed",
)
UNKNOWN = ("      name: a.NOM\n", "      name: {source: a.NOM, sorce: 1}\n", "sorce is not known")
FIELD = ("firstName: p.PRENOM", "firstname: p.PRENOM", "firstname is no field here")
CODE = ("codes: {E: IN_PROGRESS,", "codes: {E: IN_PROGRES,", "IN_PROGRES is no value")
DRAFT = ("ID_VETO: {draft: vetId}", "ID_VETO: {draft: vet}", "a draft has no vet")
HOURS = (
    "      weekday: h.JOUR\n",
    "      weekday: {source: h.JOUR, as: x}\n",
    "converter is called x",
)
STEP = ("  step: 15 ", "  step: 1 ", "step: must be greater than or equal to 5")
COLON = ("      microchip: >-\n", "      microchip >-\n", "this line has no colon")
ALL = (YAML, UNKNOWN, FIELD, CODE, DRAFT, HOURS, STEP, COLON)


def changed(*changes: tuple[str, str, str]) -> str:
    text = SAMPLE
    for right, wrong, _ in changes:
        assert right in text
        text = text.replace(right, wrong, 1)
    return text


def test_mistakes_of_every_kind_are_told_in_one_round(tmp_path: Path) -> None:
    found = problems(tmp_path, changed(*ALL))
    assert len(found) == len(ALL), found
    for right, _, said in ALL:
        line = SAMPLE[: SAMPLE.index(right)].count("\n") + 1
        assert any(each.startswith(f"{line}:") and said in each for each in found), (said, found)


@pytest.mark.parametrize("seed", range(12))
def test_no_mistake_brings_another_that_is_none(tmp_path: Path, seed: int) -> None:
    """Of a few mistakes at random, together no more is told than of each alone."""
    chosen = random.Random(seed).sample([*MISTAKES, *LANGUAGE, *ALL], 3)
    text, alone = SAMPLE, set[str]()
    for right, wrong, _ in chosen:
        if right not in text or wrong.count("\n") != right.count("\n"):
            continue  # lines stay where they are
        text = text.replace(right, wrong, 1)
        alone |= set(problems(tmp_path, SAMPLE.replace(right, wrong, 1)))
    together = set(problems(tmp_path, text)) if text != SAMPLE else set()
    assert together <= alone


@pytest.mark.parametrize("section", ["diary:\n", "booking:\n", "resources:\n", "  patients:\n"])
def test_a_section_that_cannot_be_read_is_the_only_problem(tmp_path: Path, section: str) -> None:
    found = problems(tmp_path, SAMPLE.replace(section, section.replace(":", ""), 1))
    assert len(found) == 1
    assert "no colon" in found[0]


def test_what_is_left_has_the_lines_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "clinic.yaml"
    file.write_text(changed(YAML, UNKNOWN, STEP))
    mapping, document, found = read_mapping(file, shapes(), "sql")
    assert len(found) == 3
    assert mapping is not None
    fields = mapping.resources["patients"].fields
    assert {"sex", "color"} < fields.keys()
    assert "breed" not in fields
    insert = SAMPLE.splitlines().index("    - insert: RDV_JOURNAL") + 1
    assert document.marks["booking", "steps", 2][0] == insert


def test_of_very_many_mistakes_the_first_are_told(tmp_path: Path) -> None:
    text = SAMPLE + "".join(f"x{number}: 'a\nb: c' d\n" for number in range(100))
    file = tmp_path / "clinic.yaml"
    file.write_text(text)
    with pytest.raises(DocumentErrors) as caught:
        read_mapping(file, shapes(), "sql")
    assert 1 <= len(caught.value.problems) <= 21
