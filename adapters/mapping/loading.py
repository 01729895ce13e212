"""Reads a mapping file and checks it as a whole; what both kinds of mapping are checked for."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from adapters.base import FieldShape
from adapters.documents.document import Document, Place, forgiving, read_document
from adapters.documents.models import check
from adapters.documents.problems import DocumentErrors, Problem, did_you_mean

# Where a mapping has what only one kind has; * is any name.
_SIGNS: Mapping[str, tuple[Place, ...]] = {
    "sql": (("booking", "writes"), ("resources", "*", "from")),
    "rest": (
        ("backend",), ("booking", "calls"), ("resources", "*", "one"), ("resources", "*", "list"),
    ),
}  # fmt: skip

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


class Filled(Protocol):
    """What a mapping says of a resource, as far as its fields go."""

    @property
    def fields(self) -> Mapping[str, Any]: ...


class OtherAdapter(DocumentErrors):
    """A mapping that is written for another adapter: one sentence, and nothing else about it."""


def load(
    path: Path,
    model: type[M],
    problems: Callable[[Document, M], Iterable[Problem]],
    *,
    adapter: str,
) -> tuple[M, Document]:
    """The mapping at `path`, and where all of it stands; DocumentErrors with every problem.

    `problems` are those that the model itself cannot see. OtherAdapter where the file is written
    for another adapter than `adapter`.
    """
    document, flaws = forgiving(lambda: read_document(path))
    _check_kind(document, adapter)
    try:
        mapping = check(document, model)
    except DocumentErrors as error:
        raise DocumentErrors([*flaws, *error.problems]) from error
    found = [*flaws, *problems(document, mapping)]
    if found:
        raise DocumentErrors(found)
    return mapping, document


def loaded_beside(problems: Sequence[Problem], read: Callable[[], T]) -> T:
    """What is read, if it has no problems and there are none beside it; DocumentErrors with both.

    A mapping for another adapter is told of alone.
    """
    try:
        found = read()
    except OtherAdapter:
        raise
    except DocumentErrors as error:
        raise DocumentErrors([*problems, *error.problems]) from error
    if problems:
        raise DocumentErrors(problems)
    return found


def _check_kind(document: Document, adapter: str) -> None:
    [other] = [name for name in _SIGNS if name != adapter]
    sign = next(_signs(document, other), None)
    if sign is None or any(_signs(document, adapter)):
        return
    text = f"{sign[-1]} stands only in a mapping of the {other} adapter, and"
    text += f" backend.adapter is {adapter}: write adapter: {other} under backend: in the"
    text += " configuration, or name another mapping there"
    raise OtherAdapter([document.problem(sign, text, at_key=True)])


def _signs(document: Document, adapter: str) -> Iterator[Place]:
    for place in document.keys:
        for sign in _SIGNS[adapter]:
            if len(place) == len(sign) and all(map(_fits, place, sign)):
                yield place


def _fits(part: str | int, sign: str | int) -> bool:
    return sign in (part, "*")


def fields_checked(
    document: Document,
    place: Place,
    shapes: Mapping[str, FieldShape],
    prefix: str,
    fields: Mapping[str, T],
    problems: Callable[[Place, T, FieldShape], Iterable[Problem]],
) -> Iterator[Problem]:
    """The fields at `place`, of a resource or (with its prefix) of a list inside one."""
    known = {
        path.removeprefix(prefix): shape
        for path, shape in shapes.items()
        if path.startswith(prefix) and "[]" not in path.removeprefix(prefix)
    }
    for name, each in fields.items():
        at = (*place, "fields", name)
        if name == "id":
            text = "id is made of the key; leave it out here"
            yield document.problem(at, text, at_key=True)
        elif name not in known:
            text = f"{name} is no field here{did_you_mean(name, known)}"
            yield document.problem(at, text, at_key=True)
        else:
            yield from problems(at, each, known[name])


def no_list(resource: str, name: str, shapes: Iterable[str]) -> str:
    """What to say of a list that a resource has not: which it has."""
    lists = dict.fromkeys(path.partition("[].")[0] for path in shapes if "[]." in path)
    if not lists:
        return f"{resource} has no list {name}, nor any other: leave lists out"
    near = did_you_mean(name, lists)
    return f"{resource} has no list {name}{near}: write lists: with {' or '.join(lists)} in it"


def lacking(
    document: Document,
    needed: Mapping[str, tuple[str, ...]],
    resources: Mapping[str, Filled],
    *,
    keeps_reference: bool,
) -> Iterator[Problem]:
    """What must be there so that a booking can be checked, and found again."""
    for resource, names in needed.items():
        found = resources.get(resource)
        created = resource == "appointments" and not keeps_reference
        for name in (*names, "createdAt") if created else names:
            if found is not None and name not in found.fields:
                text = f"{name} is missing: no booking can be made without it"
                if name == "createdAt":
                    text += ", unless booking.reference says where a booking's reference is"
                place = ("resources", resource, "fields")
                yield document.problem(place, text, at_key=True)
