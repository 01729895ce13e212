"""When appointments are of which a clock on the wall cannot tell it."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "booked_times",
        sa.Column("appointment_id", sa.String(36), primary_key=True),
        sa.Column("starts_at", sa.String(27), nullable=False),
        sa.Column("ends_at", sa.String(27), nullable=False),
    )
