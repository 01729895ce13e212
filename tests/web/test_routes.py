from dataclasses import replace

import pytest

from gateway.contract.errors import MethodNotAllowed, NotFound
from gateway.contract.operations import OPERATIONS, Operation
from gateway.pipeline.call import Target
from gateway.web.front import Routes

BASE = "/api/v1"
ROUTES = Routes(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.id)
def test_every_operation_is_found_by_its_method_and_path(operation: Operation) -> None:
    path = BASE + operation.path.partition("{")[0] + ("x" if "{" in operation.path else "")
    match = Target(operation, "x" if "{" in operation.path else "")
    assert ROUTES.match(operation.method, path) == match
    if operation.method == "GET":
        assert ROUTES.match("HEAD", path) == match
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get"):
        refused = ROUTES.match(method, path)
        assert isinstance(refused, MethodNotAllowed)
        assert operation.method in refused.headers["Allow"].split(", ")


@pytest.mark.parametrize(
    "path",
    ["", "/", "/clients/", "//clients", "/clients//", "/clients/a/b", "/Clients", "/client%73",
     "/stock/low/", "/invoices/client/", "/invoices/client/a/b", "/.", "/appointments/types/x"],
)  # fmt: skip
def test_any_other_path_is_unknown(path: str) -> None:
    assert isinstance(ROUTES.match("GET", BASE + path), NotFound)


def test_a_path_that_is_written_out_wins_over_one_with_an_id() -> None:
    found = ROUTES.match("GET", f"{BASE}/stock/low")
    assert isinstance(found, Target)
    assert found.operation.id == "list_low_stock"


def test_a_table_that_cannot_be_told_apart_does_not_start() -> None:
    with pytest.raises(ValueError, match="another operation"):
        Routes([*OPERATIONS, OPERATIONS[4]])
    with pytest.raises(ValueError, match="only the end"):
        Routes([replace(OPERATIONS[5], path="/clients/{id}/pets")])
