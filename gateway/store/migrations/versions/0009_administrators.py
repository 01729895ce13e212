"""Who may use the panel, who is signed in there, and what was done."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "administrators",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("name_key", sa.Text, nullable=False),
        sa.Column("role", sa.String(10), nullable=False),
        sa.Column("password", sa.Text, nullable=False),
        sa.Column("one_time", sa.Integer, nullable=False),
        sa.Column("created_at", sa.String(27), nullable=False),
        sa.Column("signed_in_at", sa.String(27)),
        sa.UniqueConstraint("name_key", name="administrators_by_name"),
    )
    op.create_table(
        "admin_sessions",
        sa.Column("digest", sa.LargeBinary(32), primary_key=True),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column(
            "administrator_id", sa.String(36), sa.ForeignKey("administrators.id"), nullable=False
        ),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(27), nullable=False),
        sa.Column("seen_at", sa.String(27), nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
    )
    op.create_index("admin_sessions_by_administrator", "admin_sessions", ["administrator_id"])
    op.create_table(
        "admin_failures",
        sa.Column("subject", sa.LargeBinary(32), primary_key=True),
        sa.Column("times", sa.Integer, nullable=False),
        sa.Column("last_at", sa.String(27), nullable=False),
    )
    op.create_table(
        "admin_deeds",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", sa.String(27), nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("deed", sa.String(40), nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("outcome", sa.String(10), nullable=False),
        sa.Column("details", sa.Text, nullable=False),
    )
    op.create_index("admin_deeds_by_subject", "admin_deeds", ["subject"])
