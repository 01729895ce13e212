"""Reads a mapping file, and checks it as a whole."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from adapters.base import AdapterOptions, Shapes
from adapters.documents.document import Document, Place, read_document
from adapters.documents.models import check_most
from adapters.documents.problems import DocumentErrors, Problem
from adapters.mapping.checker import Checker
from adapters.mapping.expressions import NamedExpressions
from adapters.mapping.models import MappingFile, Reading
from adapters.values.times import is_zone

# The places that only a mapping of one adapter has; * is any name.
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
    """A mapping is written for another adapter; its one problem is the only one reported."""


def load_mapping(
    path: Path, shapes: Shapes, adapter: str, secrets: Iterable[str] = (), address: str = ""
) -> tuple[MappingFile, Document]:
    """Returns the mapping at `path` for that adapter, and where all of it stands.

    Raises DocumentErrors with every problem, OtherAdapter where the file is written for another
    adapter. `secrets` are the names of the secrets that the settings give, and `address` is the
    backend's.
    """
    mapping, document, problems = read_mapping(path, shapes, adapter, secrets, address)
    if mapping is None or problems:
        raise DocumentErrors(problems)
    return mapping, document


def read_mapping(
    path: Path, shapes: Shapes, adapter: str, secrets: Iterable[str] = (), address: str = ""
) -> tuple[MappingFile | None, Document, list[Problem]]:
    """Returns as much of a mapping as can be read, where all of it stands, and every problem.

    Without a problem it is the whole mapping. Raises DocumentErrors where nothing can be read, and
    OtherAdapter.
    """
    document = read_document(path, flawed=True, broken=True)
    _check_adapter(document, adapter)
    if isinstance(document.data, dict) and document.data.get("version") == 1:
        text = "version 1 is written in an older form: `clinic-gateway backend upgrade"
        text += f" {path.name}` rewrites it"
        raise DocumentErrors([document.problem(("version",), text, "older-form")])
    named = NamedExpressions(document, adapter == "sql")
    zone = document.data.get("zone") if isinstance(document.data, dict) else None
    # a wrong zone is told once, and not at each path that has the day
    reading = Reading(named, str(zone) if is_zone(zone) else "UTC", address)
    mapping, most, problems = check_most(document, MappingFile, reading)
    problems = [*document.flaws, *named.problems, *problems]
    if mapping is not None:
        problems += Checker(most, mapping, shapes, adapter, frozenset(secrets)).problems()
    most.remarks = named.unused()
    return mapping, most, problems


def open_mapping(
    options: AdapterOptions, adapter: str, problems: Sequence[Problem]
) -> tuple[MappingFile, Document]:
    """Returns the mapping that an adapter is made of, and where all of it stands.

    Raises ValueError where there is none, and DocumentErrors with all problems in it and those
    given, or OtherAdapter alone.
    """
    if options.mapping is None:
        raise ValueError(f"the {adapter} adapter needs a mapping file: set backend.mapping")
    try:
        secrets, address = options.credentials, options.url
        loaded = load_mapping(options.mapping, options.shapes, adapter, secrets, address)
    except OtherAdapter:
        raise
    except DocumentErrors as error:
        raise DocumentErrors([*problems, *error.problems]) from error
    if problems:
        raise DocumentErrors(problems)
    return loaded


def _check_adapter(document: Document, adapter: str) -> None:
    [other] = _SIGNS.keys() - {adapter}
    signs, own = (
        [place for sign in _SIGNS[name] for place in document.keys_like(sign)]
        for name in (other, adapter)
    )
    if not signs or own:
        return
    text = f"{signs[0][-1]} stands only in a mapping of the {other} adapter, and"
    text += f" backend.adapter is {adapter}: write adapter: {other} under backend: in the"
    text += " configuration, or name another mapping there"
    raise OtherAdapter([document.problem(signs[0], text, "wrong-adapter", at_key=True)])
