"""How many bookings a day a key may make, and which networks it may be used from."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("keys", sa.Column("bookings_per_day", sa.Integer))
    op.add_column("keys", sa.Column("networks", sa.Text))  # JSON array
    op.create_index("bookings_by_key", "bookings", ["key_id", "created_at"])
