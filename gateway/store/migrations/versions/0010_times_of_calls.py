"""How many of each key's calls were refused for their secret, and how long the answers took."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    for table in ("usage", "usage_days"):
        for name, kind in (
            ("unauthorized", sa.Integer),
            ("micros", sa.BigInteger),
            ("slow", sa.Integer),
        ):
            op.add_column(table, sa.Column(name, kind, nullable=False, server_default="0"))
