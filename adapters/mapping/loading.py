"""Reads a mapping file, and checks it as a whole."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

from adapters.base import Shapes
from adapters.documents.document import Document, Place, read_document
from adapters.documents.models import check
from adapters.documents.problems import DocumentErrors, Problem
from adapters.mapping.checker import Checker
from adapters.mapping.converters import Converters
from adapters.mapping.models import MappingFile

# Where a mapping has what only one adapter's has; * is any name.
_SIGNS: Mapping[str, tuple[Place, ...]] = {
    "sql": (
        ("booking", "steps", "*", "insert"), ("booking", "writes"), ("resources", "*", "from"),
    ),
    "rest": (
        ("backend",), ("booking", "calls"), ("booking", "find"),
        ("resources", "*", "one"), ("resources", "*", "list"),
    ),
}  # fmt: skip


class OtherAdapter(DocumentErrors):
    """A mapping that is written for another adapter: one sentence, and nothing else about it."""


def load_mapping(
    path: Path, shapes: Shapes, adapter: str, secrets: Iterable[str] = ()
) -> tuple[MappingFile, Document]:
    """Returns the mapping at `path` for that adapter, and where all of it stands.

    Raises DocumentErrors with every problem, OtherAdapter where the file is written for another
    adapter. `secrets` are the names of those that the settings give.
    """
    document = read_document(path, flawed=True)
    _check_adapter(document, adapter)
    _check_version(document)
    try:
        mapping = check(document, MappingFile)
    except DocumentErrors as error:
        raise DocumentErrors([*document.flaws, *error.problems]) from error
    checker = Checker(document, mapping, shapes, adapter, frozenset(secrets))
    if found := [*document.flaws, *checker.problems()]:
        raise DocumentErrors(found)
    return mapping, document


def converters_of(mapping: MappingFile) -> Converters:
    """Returns the converters of a mapping for who only looks at it: their ids lead nowhere."""
    return Converters(ZoneInfo(mapping.zone), bytes(32), kinds=mapping.ids)


def loaded_beside(
    problems: Sequence[Problem], read: Callable[[], tuple[MappingFile, Document]]
) -> tuple[MappingFile, Document]:
    """Returns what `read` does; DocumentErrors with its problems and those beside it.

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


def adapter_of(document: Document) -> str | None:
    """Returns the adapter that a mapping is written for; None where nothing says it."""
    return next((name for name in _SIGNS if any(_signs(document, name))), None)


def _check_adapter(document: Document, adapter: str) -> None:
    [other] = [name for name in _SIGNS if name != adapter]
    sign = next(_signs(document, other), None)
    if sign is None or any(_signs(document, adapter)):
        return
    text = f"{sign[-1]} stands only in a mapping of the {other} adapter, and"
    text += f" backend.adapter is {adapter}: write adapter: {other} under backend: in the"
    text += " configuration, or name another mapping there"
    raise OtherAdapter([document.problem(sign, text, at_key=True)])


def _check_version(document: Document) -> None:
    version = document.data.get("version") if isinstance(document.data, dict) else None
    if version == 1:
        text = "version 1 is written in an older form: `clinic-gateway backend upgrade"
        text += f" {Path(document.file).name}` rewrites it"
        raise DocumentErrors([document.problem(("version",), text)])


def _signs(document: Document, adapter: str) -> Iterator[Place]:
    for place in document.keys:
        for sign in _SIGNS[adapter]:
            if len(place) == len(sign) and all(
                expected in (part, "*") for part, expected in zip(place, sign, strict=True)
            ):
                yield place
