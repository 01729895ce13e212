"""Runs the migrations of the gateway's own database, at its start."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def upgrade(connection: Connection, version: str = "head") -> None:
    """Brings the tables up to that version, else the newest, in the caller's transaction."""
    config = Config()  # it has no file of its own
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, version)
