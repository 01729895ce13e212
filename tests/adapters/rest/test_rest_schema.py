"""The schema that editors complete and check the mapping of a JSON backend by."""

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
from gateway.backend import shapes
from gateway.cli import main
from tests.adapters.rest.cloud import CREDENTIALS, MAPPING

EXAMPLE = MAPPING.read_text()
WRONG = [
    ("firstName:", "firstname:"),
    ("      phone:", "      phones:"),
    ("birthDate: born", "birthDate: 12"),
    ("as: utc time", "as: money"),
    ("booked: SCHEDULED", "booked: PLANNED"),
    ("{draft: vetId}", "{draft: vet}"),
    ("{given: day}", "{given: days}"),
    ("{secret: user}", "{secret: users}"),
    ("by: cursor", "by: cursors"),
    ("sift: [status]", "sift: [state]"),
    ("filters: {clientId: owner}", "filters: {client: owner}"),
    ("one: /bills/{id}", "ones: /bills/{id}"),
    ("    list: /kinds ", "    one: /kinds/{id} "),
    ("  stock:\n", "  stocks:\n"),
    ("means: rejected", "means: refused"),
    ("      lines:\n", "      line:\n"),
    ("version: 2", "version: 3"),
    ("  step: 15", "  step: 3"),
]


@cache
def validator() -> Draft202012Validator:
    return Draft202012Validator(mapping_schema(shapes(), "rest"))


def wrong_with(text: str) -> list[Any]:
    """What the schema says of a mapping."""
    data = parse_document(text.encode(), "mapping.yaml").data
    return list(validator().iter_errors(data))


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(mapping_schema(shapes(), "rest"))


@pytest.mark.parametrize("example", ["json_cloud", "fhir_clinic"])
def test_the_examples_are_valid_and_name_the_schema_for_editors(example: str) -> None:
    text = (MAPPING.parents[1] / example / "mapping.yaml").read_text()
    assert wrong_with(text) == []
    assert text.startswith("# yaml-language-server: $schema=")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("keep: {visit: {source", "keep: {other: x, visit: {source"),
        ("  ping: /status", "  headers: {X-Clinic: {constant: 2}, X-Way: in}"),
        (
            'cancel: {post: "/visits/{visit}/cancel", body: {}}',
            'cancel: {delete: "/visits/{visit}"}',
        ),
        ('one: {get: "/vets/{id}", item: data}', "one: /vets/{id}"),
    ],
)
def test_each_short_and_long_form_is_valid(old: str, new: str, tmp_path: Path) -> None:
    assert old in EXAMPLE
    text = EXAMPLE.replace(old, new)
    file = tmp_path / "mapping.yaml"
    file.write_text(text)
    load_mapping(file, shapes(), "rest", CREDENTIALS)
    assert wrong_with(text) == []


@pytest.mark.parametrize(("right", "wrong"), WRONG)
def test_what_the_gateway_refuses_an_editor_refuses_too(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert right in EXAMPLE
    text = EXAMPLE.replace(right, wrong, 1)
    assert wrong_with(text) != []
    file = tmp_path / "mapping.yaml"
    file.write_text(text)
    with pytest.raises(DocumentErrors):
        load_mapping(file, shapes(), "rest", CREDENTIALS)


def test_an_editor_can_complete_every_resource_field_filter_converter_and_draft() -> None:
    schema = mapping_schema(shapes(), "rest")
    resources = schema["properties"]["resources"]["properties"]
    assert set(resources) == set(shapes()) - {"slots"}
    fields = set(resources["patients"]["properties"]["fields"]["properties"])
    assert fields == set(shapes()["patients"]) - {"id"}
    filters = resources["patients"]["properties"]["list"]["anyOf"][-1]["properties"]["filters"]
    assert set(filters["properties"]) == {*fields, "search"}
    value = schema["$defs"]["SentValue"]["properties"]
    assert "scheduledAt" in value["draft"]["enum"]
    assert "local time" in value["as"]["enum"]


def test_the_command_prints_that_of_the_adapter_which_is_named_or_configured(
    tmp_path: Path,
) -> None:
    configured = tmp_path / "gateway.yaml"
    configured.write_text("backend: {adapter: rest}\n")
    for arguments in (["--adapter", "rest"], ["--config", str(configured)]):
        result = CliRunner().invoke(main, ["backend", "schema", *arguments])
        assert result.exit_code == 0, result.output
        assert json.loads(result.output) == mapping_schema(shapes(), "rest")
    named = ["backend", "schema", "--adapter", "sql", "--config", str(configured)]
    assert json.loads(CliRunner().invoke(main, named).output) != mapping_schema(shapes(), "rest")
