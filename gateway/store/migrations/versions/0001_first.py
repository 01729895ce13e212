"""The first tables: keys and their secrets, bookings, revisions, meta."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "meta",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    revisions = op.create_table(
        "revisions",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("value", sa.Integer, nullable=False),
    )
    op.bulk_insert(revisions, [{"name": "keys", "value": 0}])
    op.create_table(
        "keys",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("contact", sa.Text),
        sa.Column("permissions", sa.Text, nullable=False),
        sa.Column("level", sa.String(10), nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("hourly_limit", sa.Integer, nullable=False),
        sa.Column("created_at", sa.String(27), nullable=False),
        sa.Column("expires_at", sa.String(27)),
        sa.Column("last_used_at", sa.String(27)),
        sa.Column("revoked_at", sa.String(27)),
        sa.Column("revision", sa.Integer, nullable=False),
    )
    op.create_index("keys_by_revision", "keys", ["revision"])
    op.create_table(
        "secrets",
        sa.Column("digest", sa.LargeBinary(32), primary_key=True),
        sa.Column("key_id", sa.String(36), sa.ForeignKey("keys.id"), nullable=False),
        sa.Column("hint", sa.String(8), nullable=False),
        sa.Column("created_at", sa.String(27), nullable=False),
        sa.Column("expires_at", sa.String(27)),
    )
    op.create_index("secrets_by_key", "secrets", ["key_id"])
    op.create_table(
        "bookings",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key_id", sa.String(36), nullable=False),
        sa.Column("idempotency_digest", sa.LargeBinary(32)),
        sa.Column("fingerprint", sa.LargeBinary(32), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("outcome", sa.String(40)),
        sa.Column("record", sa.LargeBinary),
        sa.Column("created_at", sa.String(27), nullable=False),
        sa.UniqueConstraint("key_id", "idempotency_digest", name="bookings_once"),
    )
    op.create_index("bookings_by_request", "bookings", ["key_id", "fingerprint"])
    op.create_index("bookings_by_time", "bookings", ["created_at"])
