"""The audit: its chains with their heads, and who read what, for questions and sums."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "audit_chains",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("place", sa.String(36), nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("begun_at", sa.String(27), nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("mac", sa.String(64), nullable=False),
        sa.Column("written_at", sa.String(27)),
        sa.Column("ended", sa.Integer, nullable=False),
        sa.Column("dropped", sa.String(10)),
        sa.Column("dropped_seq", sa.BigInteger, nullable=False),
        sa.Column("dropped_mac", sa.String(64), nullable=False),
        sa.Column("dropped_seal", sa.String(81)),
        sa.Column("indexed_day", sa.String(10), nullable=False),
        sa.Column("indexed_to", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "audit_views",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key_id", sa.String(36), nullable=False),
        sa.Column("operation", sa.String(40), nullable=False),
        sa.Column("level", sa.String(10), nullable=False),
        sa.Column("policy", sa.String(64), nullable=False),
        sa.UniqueConstraint("key_id", "operation", "level", "policy", name="audit_views_once"),
    )
    op.create_table(
        "audit_reads",
        sa.Column("record", sa.LargeBinary(16), primary_key=True),
        sa.Column("day", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("view_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("times", sa.Integer, nullable=False),
        sa.Column("first", sa.Integer, nullable=False),
        sa.Column("last", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "audit_calls",
        sa.Column("view_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("day", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("outcome", sa.String(10), primary_key=True),
        sa.Column("reason", sa.String(40), primary_key=True),
        sa.Column("times", sa.Integer, nullable=False),
        sa.Column("first", sa.Integer, nullable=False),
        sa.Column("last", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
