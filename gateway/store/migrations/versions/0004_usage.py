"""How many calls each key made, per minute and per day."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for table, time in (("usage", "minute"), ("usage_days", "day")):
        op.create_table(
            table,
            sa.Column(time, sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("key_id", sa.String(36), primary_key=True),
            sa.Column("operation", sa.String(40), primary_key=True),
            sa.Column("answered", sa.Integer, nullable=False),
            sa.Column("refused", sa.Integer, nullable=False),
            sa.Column("forbidden", sa.Integer, nullable=False),
            sa.Column("limited", sa.Integer, nullable=False),
            sa.Column("failed", sa.Integer, nullable=False),
            sqlite_with_rowid=False,
        )
