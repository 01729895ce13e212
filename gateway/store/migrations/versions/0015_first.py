"""Makes the tables of the first release.

The first migration that changes one of them must write them out here, as they are before it.
"""

from alembic import op

from gateway.store.tables import make

revision = "0015"
down_revision = None


def upgrade() -> None:
    make(op.get_bind())
