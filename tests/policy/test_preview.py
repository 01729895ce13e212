"""Specimens: made-up records that are valid by the contract, and that every mask changes."""

from pathlib import Path

from openapi_schema_validator import OAS31Validator

from adapters.base import Record
from adapters.documents.document import read_document
from gateway.contract.fields import UUID, Field, Resource
from gateway.contract.resources import GOVERNED, RESOURCES
from gateway.policy.masks import Mask, fitting
from gateway.policy.redactor import Redactor
from gateway.policy.telling import preview
from gateway.policy.telling.preview import ITEMS, specimen
from gateway.policy.values import at, has_value, read_value

SPECIMENS = Path(preview.__file__).with_name("specimens.yaml")


def values(resource: Resource, path: str) -> list[object]:
    found = at(specimen(resource), path)
    return found if "[]." in path else [found]


def test_a_specimen_has_a_value_in_every_field() -> None:
    for resource in RESOURCES:
        record = specimen(resource)
        assert list(record) == [field.name for field in resource.fields]
        for path in resource.paths:
            assert has_value(record, path), (resource.name, path)
            assert len(values(resource, path)) == (ITEMS if "[]." in path else 1)


def test_each_field_that_is_no_id_has_a_line_and_nothing_else_has() -> None:
    lines = read_document(SPECIMENS).data
    assert lines.pop("formats")
    named = {f"{name}.{path}" for name, values in lines.items() for path in values}
    fields = {
        f"{resource.name}.{path}"
        for resource in RESOURCES
        for path in resource.paths
        if resource.at(path).format is not UUID
    }
    assert fields - named == set(), f"add a line for each to {SPECIMENS}"
    assert named <= fields


def test_a_specimen_is_always_the_same() -> None:
    for resource in RESOURCES:
        assert specimen(resource) == specimen(resource)
    assert specimen(GOVERNED[0])["id"] == "6b562565-96e1-5f2b-98d8-6c20fec44125"


def test_a_specimen_is_valid_by_the_contract() -> None:
    for resource in RESOURCES:
        record = specimen(resource)
        for field in resource.fields:
            validator = OAS31Validator(
                field.answer_schema(), format_checker=OAS31Validator.FORMAT_CHECKER
            )
            validator.validate(record[field.name])
        for path in resource.paths:
            for value in values(resource, path):
                assert read_value(resource.at(path), value) == value


def test_the_redactor_finds_nothing_to_mend_in_a_specimen() -> None:
    troubles: list[object] = []
    for resource in RESOURCES:
        Redactor(resource, resource.paths, troubles.append).one(specimen(resource))
    assert troubles == []


def test_each_mask_of_a_field_changes_its_specimen() -> None:
    for resource in GOVERNED:
        for path in resource.paths:
            for kind in fitting(resource.at(path)):
                mask = Mask(kind, 1 if kind.largest else 0)
                redactor = Redactor(resource, [], lambda trouble: None, masks={path: mask})
                shown = redactor.one(specimen(resource)).decode()
                for value in values(resource, path):
                    assert f'"{value}"' not in shown, (path, str(mask))
                    assert f":{value}}}" not in shown, (path, str(mask))


def test_ids_name_the_other_specimens() -> None:
    own = {resource.name: specimen(resource).get("id") for resource in RESOURCES}
    for resource in RESOURCES:
        for path in resource.paths:
            if refers := resource.at(path).refers:
                assert set(values(resource, path)) == {own[refers]}
    lines = values(GOVERNED[4], "lines[].id")
    assert len({*lines, *own.values()}) == len(lines) + len(own)


def test_the_sums_of_an_invoice_are_right() -> None:
    bill = specimen(next(each for each in GOVERNED if each.name == "invoices"))

    def cents(record: Record, name: str) -> int:
        return int(record[name].replace(".", ""))

    total = cents(bill, "total")
    assert cents(bill, "subtotal") == sum(cents(line, "total") for line in bill["lines"])
    assert total == cents(bill, "subtotal") + cents(bill, "taxTotal")
    assert cents(bill, "balance") == total - cents(bill, "amountPaid")
    assert cents(bill, "amountPaid") == sum(cents(each, "amount") for each in bill["payments"])
    for line in bill["lines"]:
        assert cents(line, "total") == round(cents(line, "unitPrice") * line["quantity"])


def test_a_field_that_the_table_does_not_name_yet_has_a_value_too() -> None:
    pill = Field(name="pills", values=("RED", "BLUE"), many=True)
    resource = Resource(name="x", title="X", summary="", fields=(pill, Field(name="note")))
    assert specimen(resource) == {"pills": ["RED"], "note": "An example"}
