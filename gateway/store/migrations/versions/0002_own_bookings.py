"""What tells one attempt's own appointment from another that looks the same."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("bookings", sa.Column("reference", sa.String(36)))
    op.add_column("bookings", sa.Column("appointment_id", sa.String(36)))
    op.create_index("bookings_by_appointment", "bookings", ["appointment_id"])
