"""The policies that ran, what became of each file, and what the running processes say."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "policy_versions",
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("first_ran_at", sa.String(27)),
        sa.Column("made_of", sa.String(129)),
    )
    op.create_table(
        "policy_history",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", sa.String(27), nullable=False),
        sa.Column("event", sa.String(10), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("who", sa.Text),
        sa.Column("reason", sa.Text),
    )
    op.create_index("policy_history_by_event", "policy_history", ["event", "hash"])
    op.create_table(
        "policy_processes",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("started_at", sa.String(27), nullable=False),
        sa.Column("seen_at", sa.String(27), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
    )
    revisions = sa.table("revisions", sa.column("name", sa.String), sa.column("value", sa.Integer))
    op.bulk_insert(revisions, [{"name": "policy", "value": 0}])
