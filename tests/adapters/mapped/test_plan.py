"""What a mapping makes of a resource can be printed, and an older mapping is rewritten."""

import ast
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from adapters.documents.document import read_document
from adapters.mapping.explanation import explained
from adapters.mapping.loader import load_mapping
from adapters.mapping.upgrade import upgraded
from adapters.sample import MAPPING
from gateway.backend import shapes
from gateway.cli import main

ROOT = Path(__file__).resolve().parents[3]
MAPPINGS = {"sql": MAPPING, "rest": ROOT / "examples" / "json_cloud" / "mapping.yaml"}
CREDENTIALS = ("user", "password")
HOURS = """\
  hours:
    - {days: [1, 2], start: "08:00", end: '12:00', vets: [4]}   # mornings
    - days: [6]
      start: "09:00"
      end: "12:00"
"""


@pytest.mark.parametrize("adapter", MAPPINGS)
def test_a_plan_has_a_line_for_every_field_of_the_contract(adapter: str) -> None:
    mapping, _ = load_mapping(MAPPINGS[adapter], shapes(), adapter, CREDENTIALS)
    for name, resource in mapping.resources.items():
        lines = explained(name, resource, shapes()[name])
        told = {line.field.removesuffix("[]") for line in lines}
        missing = {path for path in shapes()[name] if path not in told}
        assert {path.partition("[]")[0] for path in missing} <= told
        assert {path for path in told if "[]" in path} <= set(shapes()[name])


def test_explain_says_source_converter_and_what_null_means(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(f"backend: {{adapter: sql, url: 'sqlite:///x.db', mapping: {MAPPING}}}\n")
    run = ["backend", "explain", "patients", "--config", str(config)]
    result = CliRunner().invoke(main, run)
    assert result.exit_code == 0, result.output
    [sex] = [line for line in result.output.splitlines() if line.startswith("sex ")]
    assert "a.SEXE" in sex
    assert "code (codes: M=MALE F=FEMALE I=UNKNOWN)" in sex
    [born] = [
        line
        for line in json.loads(CliRunner().invoke(main, [*run, "--json"]).output)
        if line["field"] == "birthDate"
    ]
    assert born["null"].startswith("null, 0000-00-00")
    code = CliRunner().invoke(main, [*run, "--code"]).output
    assert "# 'sex': 'a.SEXE, as code (codes: M=MALE F=FEMALE I=UNKNOWN)'" in code
    ast.parse(code)
    assert json.loads(CliRunner().invoke(main, [*run, "--code", "--json"]).output).keys() == {
        "patients"
    }
    unknown = CliRunner().invoke(main, ["backend", "explain", "pets", "--config", str(config)])
    assert unknown.exit_code != 0
    assert "pets is no resource: use one of clients" in unknown.output


def older(text: str) -> str:
    """A mapping of version 2 as it was written in version 1."""
    return text.replace("version: 2", "version: 1").replace("{source:", "{path:")


def test_an_older_mapping_is_rewritten_and_kept_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "mapping.yaml"
    now = MAPPINGS["rest"].read_text()
    before = older(now).replace("  steps:\n", "  calls:\n")
    file.write_text(before)
    result = CliRunner().invoke(main, ["backend", "upgrade", str(file)])
    assert result.exit_code == 0, result.output
    assert file.read_text() == now
    assert (tmp_path / "mapping.yaml.old").read_text() == before
    load_mapping(file, shapes(), "rest", CREDENTIALS)
    again = CliRunner().invoke(main, ["backend", "upgrade", str(file)])
    assert again.output.strip() == f"{file}: it has the form of today already"


def test_written_hours_and_free_times_get_the_spelling_of_today(tmp_path: Path) -> None:
    file = tmp_path / "mapping.yaml"
    text = f"version: 1\ndiary:\n{HOURS}  free: []\nresources: {{a: {{fields: {{path: x}}}}}}\n"
    file.write_text(text)
    made = upgraded(read_document(file), text)
    assert '    - {days: [mon, tue], times: ["08:00-12:00"], vets: [4]}   # mornings' in made
    assert '    - days: [sat]\n      times: ["09:00-12:00"]\n' in made
    assert "  slots: []" in made
    assert "{fields: {path: x}}" in made  # a field may have that name


ODD = """\
version: 1
booking:
  writes:
    - {insert: LOG, values: {calls: 3, writes: 4, path: {draft: reason}}}
diary:
  hours: [{days: [1], start: "08:00", end: "12:00"}, {days: [2], start: "13:00", end: "18:00"}]
"""
SPREAD = """\
version: 1
diary:
  hours:
    - {days: [5],
       start: "08:00",
       end: "12:00", vets: [4]}
"""


def test_what_only_looks_like_an_old_name_is_left_alone(tmp_path: Path) -> None:
    made = {}
    for name, text in (("odd", ODD), ("spread", SPREAD)):
        file = tmp_path / f"{name}.yaml"
        file.write_text(text)
        made[name] = upgraded(read_document(file), text)
    assert "values: {calls: 3, writes: 4, path: {draft: reason}}" in made["odd"]
    hours = '[{days: [mon], times: ["08:00-12:00"]}, {days: [tue], times: ["13:00-18:00"]}]'
    assert f"  hours: {hours}\n" in made["odd"]
    assert '       times: ["08:00-12:00"],\n       vets: [4]}\n' in made["spread"]
