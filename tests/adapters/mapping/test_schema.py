"""The schema that editors complete and check a mapping by."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from adapters.documents.document import parse_document
from adapters.documents.problems import DocumentErrors
from adapters.mapping.loader import load_mapping
from adapters.mapping.schema import mapping_schema
from adapters.sample import MAPPING
from gateway.backend import shapes
from gateway.cli import main

ROOT = Path(__file__).resolve().parents[3]
# Two of the examples speak JSON, by mappings of another kind.
SQL = [
    MAPPING,
    *(
        each
        for each in ROOT.glob("examples/*/mapping.yaml")
        if each.parent.name not in ("json_cloud", "fhir_clinic")
    ),
]
SAMPLE = MAPPING.read_text()
WRONG = [
    ("lastName:", "lastname:"),
    ("      name: a.NOM\n", "      name: 12\n"),
    ("as: cents", "as: pennies"),
    ("as: cents", "as: local time"),
    ("{draft: vetId}", "{draft: vet}"),
    ("P: SCHEDULED", "P: PLANNED"),
    ("from: RDV r\n", "form: RDV r\n"),
    ("  stock:\n", "  stocks:\n"),
    ("      lines:\n", "      line:\n"),
    ("version: 2", "version: 3"),
    ("version: 2", "version: 2\naccepted: {start-befor-end: They were typed so}"),
    ("  step: 15 ", "  step: 3 "),
]


@cache
def validator() -> Draft202012Validator:
    return Draft202012Validator(mapping_schema(shapes(), "sql"))


def wrong_with(text: str) -> list[Any]:
    """What the schema says of a mapping."""
    data = parse_document(text.encode(), "mapping.yaml").data
    return list(validator().iter_errors(data))


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(mapping_schema(shapes(), "sql"))


@pytest.mark.parametrize("file", SQL, ids=lambda file: file.parent.name)
def test_every_mapping_that_comes_with_the_gateway_is_valid(file: Path) -> None:
    assert wrong_with(file.read_text()) == []


@pytest.mark.parametrize(("right", "wrong"), WRONG)
def test_what_the_gateway_refuses_an_editor_refuses_too(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert right in SAMPLE
    text = SAMPLE.replace(right, wrong, 1)
    assert wrong_with(text) != []
    file = tmp_path / "mapping.yaml"
    file.write_text(text)
    with pytest.raises(DocumentErrors):
        load_mapping(file, shapes(), "sql")


def test_an_editor_can_complete_every_resource_field_list_converter_and_draft() -> None:
    schema = mapping_schema(shapes(), "sql")
    resources = schema["properties"]["resources"]["properties"]
    assert set(resources) == set(shapes()) - {"slots"}
    for name, resource in resources.items():
        fields = set(resource["properties"]["fields"]["properties"])
        assert fields == {path for path in shapes()[name] if "[]" not in path} - {
            "id",
            "lines",
            "payments",
        }
    assert set(resources["invoices"]["properties"]["lists"]["properties"]) == {"lines", "payments"}
    described = resources["patients"]["properties"]["fields"]["properties"]["sex"]
    assert described["description"] == "One of MALE, FEMALE, UNKNOWN."
    value = schema["$defs"]["WrittenValue"]["anyOf"][-1]["properties"]
    assert "scheduledAt" in value["draft"]["enum"]
    assert "local time" in value["as"]["enum"]


def test_the_command_prints_it() -> None:
    result = CliRunner().invoke(main, ["backend", "schema"])
    assert result.exit_code == 0
    assert json.loads(result.output) == mapping_schema(shapes(), "sql")
