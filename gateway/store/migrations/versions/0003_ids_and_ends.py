"""Which keys hashed ids stand for; until when an appointment is watched."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "public_ids",
        sa.Column("public_id", sa.String(36), primary_key=True),
        sa.Column("resource", sa.String(40), nullable=False),
        sa.Column("key", sa.Text, nullable=False),
    )
    op.add_column("bookings", sa.Column("ends_at", sa.String(27)))
    op.create_index("bookings_by_end", "bookings", ["ends_at"])
