"""Stores on their way: brought to some version, or stopped half way."""

import shutil
import sys
from pathlib import Path

import pytest

from gateway.store import Store, migrations

NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("revisions", sa.Column("note", sa.Text))
    op.create_index("revisions_by_note", "revisions", ["note"])
"""


async def bring_to(store: Store, version: str) -> None:
    """All migrations up to that one, one after the other."""
    if store.engine.dialect.name == "sqlite":
        Path(store.place).touch()  # noqa: ASYNC240
    async with store.alone() as connection:
        await connection.run_sync(lambda it: migrations.upgrade(it, version))


def release_next(monkeypatch: pytest.MonkeyPatch, folder: Path) -> str:
    """From now on the gateway is of a version that has one migration more; which is told."""
    copy = folder / "migrations"
    shutil.copytree(Path(migrations.__file__).parent, copy)
    (copy / "versions" / "0016_next.py").write_text(NEXT)
    monkeypatch.setattr(migrations, "__file__", str(copy / "__init__.py"))
    monkeypatch.setattr("gateway.store.base.HEAD", "0016")
    return "0016"


def stop_half_way(*_: object, **__: object) -> None:
    """In the place of what makes a table or an index."""
    sys.exit("stopped half way")
