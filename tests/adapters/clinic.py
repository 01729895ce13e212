"""The sample clinic, made once and copied for each test that changes it."""

import shutil
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from adapters.base import AdapterOptions, FieldShape, Query, Shapes, Trouble
from adapters.sample import MAPPING, create
from adapters.sql.adapter import SqlAdapter
from gateway.contract.resources import RESOURCES

TODAY = date(2026, 3, 4)
NOW = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
SECRET = b"0123456789abcdef0123456789abcdef"
_kept = TemporaryDirectory()


def shapes() -> Shapes:
    """The contract's fields, as an adapter is told of them."""
    return {
        resource.name: {
            path: FieldShape(
                format=resource.at(path).format.name,
                values=resource.at(path).values,
                refers=resource.at(path).refers,
                many=resource.at(path).many,
            )
            for path in resource.paths
        }
        for resource in RESOURCES
    }


def copy_to(folder: Path) -> Path:
    """A fresh copy of the clinic's database."""
    template = Path(_kept.name) / "clinic.db"
    if not template.exists():
        create(template, today=TODAY)
    return Path(shutil.copy(template, folder / "clinic.db"))


def connect(database: Path, troubles: list[Trouble] | None = None) -> SqlAdapter:
    """The sample's own mapping over a database file."""
    kept = [] if troubles is None else troubles
    return SqlAdapter(
        AdapterOptions(
            url=f"sqlite:///{database}",
            mapping=MAPPING,
            secret=SECRET,
            shapes=shapes(),
            report=kept.append,
        )
    )


def ask(resource: str, **more: object) -> Query:
    """A query at the tests' own present."""
    return Query(resource=resource, now=NOW, **more)  # type: ignore[arg-type]
