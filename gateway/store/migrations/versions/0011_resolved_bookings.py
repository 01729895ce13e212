"""How bookings ended of which for some time nobody knew."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "resolved_bookings",
        sa.Column("reference", sa.String(36), primary_key=True),
        sa.Column("key_id", sa.String(36), nullable=False),
        sa.Column("vet_id", sa.String(36)),
        sa.Column("starts_at", sa.String(27)),
        sa.Column("created_at", sa.String(27), nullable=False),
        sa.Column("resolved_at", sa.String(27), nullable=False),
        sa.Column("appointment_id", sa.String(36)),
        sa.Column("told", sa.Integer, nullable=False),
    )
    op.create_index("resolved_bookings_by_time", "resolved_bookings", ["resolved_at"])
