"""The audit's index by day, and what it must have; it is made anew from the lines."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    with op.batch_alter_table("audit_chains") as chains:
        chains.drop_column("indexed_day")
        chains.drop_column("indexed_to")
    op.create_table(
        "audit_progress",
        sa.Column("chain", sa.String(36), primary_key=True),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("time", sa.String(19), nullable=False),
    )
    op.create_table(
        "audit_days",
        sa.Column("day", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("calls", sa.BigInteger, nullable=False),
        sa.Column("reads", sa.BigInteger, nullable=False),
    )
    for name, own in (("audit_reads", _reads()), ("audit_calls", _calls())):
        op.drop_table(name)
        op.create_table(
            name,
            sa.Column("day", sa.Integer, primary_key=True, autoincrement=False),
            *own,
            sa.Column("times", sa.Integer, nullable=False),
            sa.Column("first", sa.Integer, nullable=False),
            sa.Column("last", sa.Integer, nullable=False),
            sqlite_with_rowid=False,
        )


def _reads() -> list[sa.Column[object]]:
    return [
        sa.Column("record", sa.LargeBinary(16), primary_key=True),
        sa.Column("view_id", sa.Integer, primary_key=True, autoincrement=False),
    ]


def _calls() -> list[sa.Column[object]]:
    return [
        sa.Column("view_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("outcome", sa.String(10), primary_key=True),
        sa.Column("reason", sa.String(40), primary_key=True),
    ]
