"""Alembic's entry: runs on the connection that the store hands over."""

from alembic import context

from gateway.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite too can undo a change of its tables, so that a migration is all or nothing
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
