"""Which operation a method and a path name: a table built once from OPERATIONS.

Paths are matched as they came, segment by segment, undecoded. A path that is written out wins
over one that ends in an id; an id is not looked at here.
"""

from collections.abc import Iterable
from typing import NamedTuple

from gateway.contract.errors import GatewayError, MethodNotAllowed, NotFound
from gateway.contract.operations import BASE_PATH, Operation
from gateway.pipeline.call import Target


class _Path(NamedTuple):
    operations: dict[str, Operation]
    allow: str


class Routes:
    """The paths below /api/v1; ValueError for an operation whose path has not that form."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        written: dict[str, dict[str, Operation]] = {}
        with_id: dict[str, dict[str, Operation]] = {}
        for operation in operations:
            before, _, last = operation.path.rpartition("/")
            if "{" in before:
                raise ValueError(f"{operation.id}: only the end of a path may be an id")
            table, path = (with_id, before) if last.startswith("{") else (written, operation.path)
            methods = table.setdefault(BASE_PATH + path, {})
            if operation.method in methods:
                raise ValueError(f"{operation.id}: another operation has this path and method")
            methods[operation.method] = operation
            if operation.method == "GET":
                methods["HEAD"] = operation
        self._written = {path: _path(methods) for path, methods in written.items()}
        self._with_id = {path: _path(methods) for path, methods in with_id.items()}

    def match(self, method: str, path: str) -> Target | GatewayError:
        """The operation, or the refusal: NotFound, MethodNotAllowed."""
        found, last = self._written.get(path), ""
        if found is None:
            before, _, last = path.rpartition("/")
            found = self._with_id.get(before) if last else None
        if found is None:
            return NotFound()
        operation = found.operations.get(method)
        if operation is None:
            return MethodNotAllowed(found.allow)
        return Target(operation, last)


def _path(methods: dict[str, Operation]) -> _Path:
    return _Path(methods, ", ".join(methods))
