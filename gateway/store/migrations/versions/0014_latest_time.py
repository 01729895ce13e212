"""The latest time that a store has seen: so far, the latest of what was written into it."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

_SEEN = (
    "SELECT max(seen) FROM (SELECT max(created_at) AS seen FROM keys"
    " UNION ALL SELECT max(last_used_at) FROM keys"
    " UNION ALL SELECT max(begun_at) FROM audit_chains"
    " UNION ALL SELECT max(written_at) FROM audit_chains"
    " UNION ALL SELECT max(at) FROM policy_history) AS times"
)


def upgrade() -> None:
    latest = op.get_bind().execute(sa.text(_SEEN)).scalar_one_or_none()
    if latest is not None:
        meta = sa.table("meta", sa.column("name"), sa.column("value"))
        op.bulk_insert(meta, [{"name": "latest time", "value": latest}])
