"""What administrators did is found by what it was, by who did it, and by its age."""

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_index("admin_deeds_by_deed", "admin_deeds", ["deed", "id"])
    op.create_index("admin_deeds_by_who", "admin_deeds", ["who", "id"])
    op.create_index("admin_deeds_by_time", "admin_deeds", ["at"])
