"""Runs the migrations of the gateway's own database, at its start."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def configuration(connection: Connection | None = None) -> Config:
    """Returns Alembic's configuration, which has no file of its own."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def upgrade(connection: Connection) -> None:
    """Brings the tables up to the newest version, in the caller's transaction."""
    command.upgrade(configuration(connection), "head")
