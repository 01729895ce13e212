"""Which process works on which booking, what it would take, and which processes live."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    for column in (
        sa.Column("starts_at", sa.String(27)),
        sa.Column("vet_id", sa.String(36)),
        sa.Column("draft", sa.LargeBinary),
        sa.Column("owner", sa.String(36)),
        sa.Column("claim", sa.String(32)),
        sa.Column("sender", sa.String(36)),
        sa.Column("sent_at", sa.String(27)),
    ):
        op.add_column("bookings", column)
    op.create_index("bookings_by_state", "bookings", ["state"])
    op.create_table(
        "turns",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("taken", sa.Integer, nullable=False),
    )
    op.create_table(
        "presence",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("counter", sa.Integer, nullable=False),
    )
