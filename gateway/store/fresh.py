"""A store that begins: the tables as the newest version has them, without the way there.

What the migrations make of an empty database one after the other is the same; a test compares both.
"""

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, insert

from gateway.store.tables import metadata, revisions

# Where alembic notes up to which migration a database has come.
version = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def make(connection: Connection, head: str) -> None:
    """All tables and their first rows, in the caller's transaction, noted as of that version."""
    metadata.create_all(connection, checkfirst=False)
    version.create(connection, checkfirst=False)
    connection.execute(insert(version).values(version_num=head))
    connection.execute(
        insert(revisions), [{"name": "keys", "value": 0}, {"name": "policy", "value": 0}]
    )
