"""The tables of the gateway's own database. Times are ISO 8601 texts in UTC, of one length."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from typing import Any

import sqlalchemy as sa
from sqlalchemy import BigInteger, Index, Integer, LargeBinary, String, Text

from gateway.store.engine import AsyncConnection

# Rows that go to the driver at once.
ROWS_AT_ONCE = 2_000


def instant(moment: datetime) -> str:
    """Returns a time as an Instant column holds it."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def read_instant(text: str | None) -> datetime | None:
    """Returns the time that an Instant column holds; raises ValueError where it has no offset."""
    if text is None:
        return None
    read = datetime.fromisoformat(text)
    if read.tzinfo is None:
        raise ValueError(text)
    return read


class Instant(sa.TypeDecorator[datetime]):
    """An aware datetime as text of 27 characters, which sorts as time does."""

    impl = String(27)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> str | None:
        return None if value is None else instant(value)

    def process_result_value(self, value: str | None, dialect: Any) -> datetime | None:
        return read_instant(value)


def adding(connection: AsyncConnection | sa.Connection, table: sa.Table) -> Any:
    """Returns an INSERT that can have ON CONFLICT; imports no other dialect, which is slow."""
    return import_module(f"sqlalchemy.dialects.{connection.dialect.name}").insert(table)


def members(row: Any) -> dict[str, Any]:
    """Returns a row's values by plain names, as what converts them wants them."""
    return {str(name): value for name, value in row._asdict().items()}


async def add_sums(
    connection: AsyncConnection, table: sa.Table, rows: Sequence[tuple[Any, ...]]
) -> None:
    """Adds whole rows, in the order of the key, to those there; widens `first` and `last`."""
    statement = adding(connection, table)
    new, old = statement.excluded, table.c
    changes = {column.name: column + new[column.name] for column in old if not column.primary_key}
    if "first" in old:
        changes["first"] = sa.case((new.first < old.first, new.first), else_=old.first)
        changes["last"] = sa.case((new.last > old.last, new.last), else_=old.last)
    statement = statement.on_conflict_do_update(
        index_elements=list(table.primary_key), set_=changes
    )
    words = str(statement.compile(dialect=connection.dialect))
    # in one order: two processes never deadlock, and pages lie side by side
    for at in range(0, len(rows), ROWS_AT_ONCE):
        # as tuples to the driver: binding a row takes ten times as long as inserting it
        await connection.exec_driver_sql(words, rows[at : at + ROWS_AT_ONCE])


metadata = sa.MetaData()
# Where alembic notes the migration that a database has come to.
version = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def make(connection: sa.Connection) -> None:
    """Makes all tables and their first rows, in the caller's transaction."""
    metadata.create_all(connection, checkfirst=False)
    connection.execute(sa.insert(revisions), [{"name": name, "value": 0} for name in FOLLOWED])


def _columns(options: dict[str, Any], **kinds: Any) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, **options) for name, kind in kinds.items()]


_optional = partial(_columns, {})
_required = partial(_columns, {"nullable": False})
_counted = partial(_columns, {"nullable": False, "server_default": "0"})
_key = partial(_columns, {"primary_key": True, "autoincrement": False})


def _table(name: str, *parts: Any, **options: Any) -> sa.Table:
    return sa.Table(name, metadata, *parts, **options)


_ID = String(36)
_DIGEST = LargeBinary(32)

# Single values, such as the fingerprint of the sealing secret, which is set once and then compared,
# and what the last look at the practice system found.
meta = _table("meta", *_key(name=String(100)), *_required(value=Text))

# One row per thing that others follow; every change of a key moves `keys` on.
FOLLOWED = ("keys", "policy")
revisions = _table("revisions", *_key(name=String(100)), *_required(value=Integer))

# `permissions` and `networks` are JSON arrays, `scopes` is an object.
keys = _table(
    "keys",
    *_key(id=_ID),
    *_required(name=Text),
    *_optional(contact=Text),
    *_required(permissions=Text, level=String(10), scopes=Text, hourly_limit=Integer),
    *_required(created_at=Instant),
    *_optional(expires_at=Instant, last_used_at=Instant, revoked_at=Instant),
    *_required(revision=Integer),
    *_optional(bookings_per_day=Integer, networks=Text),
    Index("keys_by_revision", "revision"),
)

# A key has one secret, and the one before it too while a rotation overlaps.
secrets = _table(
    "secrets",
    *_key(digest=_DIGEST),
    sa.Column("key_id", _ID, sa.ForeignKey("keys.id"), nullable=False),
    *_required(hint=String(8), created_at=Instant),
    *_optional(expires_at=Instant),
    Index("secrets_by_key", "key_id"),
)

# state: intended, sent, done, refused, unknown. `outcome` is the name of the refusal, or `found`
# for a booking that was found when nobody asked; `reference` is what the practice system may keep
# of the attempt, `appointment_id` what came of it. It takes its vet from `starts_at` to `ends_at`.
# `owner` is the process that works on the row, and `claim` names its work: a process that takes the
# row over writes another. `sender` and `sent_at` are those of the last time that it was sent.
bookings = _table(
    "bookings",
    sa.Column("id", Integer, primary_key=True),
    *_required(key_id=_ID),
    *_optional(idempotency_digest=_DIGEST),
    *_required(fingerprint=_DIGEST, state=String(10)),
    *_optional(outcome=String(40), record=LargeBinary),
    *_required(created_at=Instant),
    *_optional(reference=_ID, appointment_id=_ID, ends_at=Instant, starts_at=Instant, vet_id=_ID),
    *_optional(draft=LargeBinary, owner=_ID, claim=String(32), sender=_ID, sent_at=Instant),
    sa.UniqueConstraint("key_id", "idempotency_digest", name="bookings_once"),
    Index("bookings_by_request", "key_id", "fingerprint"),
    Index("bookings_by_key", "key_id", "created_at"),
    Index("bookings_by_time", "created_at"),
    Index("bookings_by_appointment", "appointment_id"),
    Index("bookings_by_end", "ends_at"),
    Index("bookings_by_state", "state"),
)

# How bookings ended whose outcome was not known for some time: `appointment_id` is empty where one
# was not made; `told` is whether that came out because its partner asked again.
resolved_bookings = _table(
    "resolved_bookings",
    *_key(reference=_ID),
    *_required(key_id=_ID),
    *_optional(vet_id=_ID, starts_at=Instant),
    *_required(created_at=Instant, resolved_at=Instant),
    *_optional(appointment_id=_ID),
    *_required(told=Integer),
    Index("resolved_bookings_by_time", "resolved_at"),
)

# The times of appointments that were booked in an hour that the clinic's clock shows twice.
booked_times = _table(
    "booked_times", *_key(appointment_id=_ID), *_required(starts_at=Instant, ends_at=Instant)
)

# Turns at what must be read and written by one after the other, such as the bookings of one vet, or
# of one key with a daily allowance; `number` is made of the id.
turns = _table("turns", *_key(number=Integer), *_required(taken=Integer))

# One row per process that books; `counter` moves on for as long as it lives.
presence = _table("presence", *_key(id=_ID), *_required(host=Text, pid=Integer, counter=Integer))


def _usage(name: str, time: str) -> sa.Table:
    return _table(
        name,
        *_key(**{time: Integer}),
        *_key(key_id=_ID, operation=String(40)),
        *_required(
            answered=Integer, refused=Integer, forbidden=Integer, limited=Integer, failed=Integer
        ),
        *_counted(unauthorized=Integer, micros=BigInteger, slow=Integer),
        sqlite_with_rowid=False,
    )


# How many calls a key made, and how they ended: 2xx, other 4xx, 403, 429, 5xx, 401; how many
# microseconds their answers took in all, and how many took longer than a second. The time comes
# first in the primary key, as old rows go by it, and it is no text but the number of minutes since
# 1970 in UTC, as there are millions of them. Days, likewise numbers, hold the same sums once more:
# adding up a month of minutes takes seconds.
usage = _usage("usage", "minute")
usage_days = _usage("usage_days", "day")

# Which key of the practice system a hashed id stands for, as JSON.
public_ids = _table("public_ids", *_key(public_id=_ID), *_required(resource=String(40), key=Text))

# Every policy that ran, or waits, by the hash of its bytes; kept for ever. `made_of` names, with a
# blank between, the former policy and the file, where what ran shows only what both show.
policy_versions = _table(
    "policy_versions",
    *_key(hash=String(64)),
    *_required(content=LargeBinary, file=Text),
    *_optional(first_ran_at=Instant, made_of=String(129)),
)

# event: ran, held, refused, approved. `hash` is empty where the file could not be read.
policy_history = _table(
    "policy_history",
    sa.Column("id", Integer, primary_key=True),
    *_required(at=Instant, event=String(10), hash=String(64)),
    *_optional(who=Text, reason=Text),
    Index("policy_history_by_event", "event", "hash"),
)

# One row per process that serves: what it says of its policy (JSON), when it last said so, and the
# revision of `policy` that it has read.
policy_processes = _table(
    "policy_processes",
    *_key(id=_ID),
    *_required(host=Text, pid=Integer, started_at=Instant, seen_at=Instant, revision=Integer),
    *_required(state=Text),
)

# One row per chain of the audit, that is per process: its folder (`place`), the process that began
# it, and its head (number and mac of the last line); `dropped` is the last day that was dropped
# for its age, with the head of that day, sealed with the audit's key.
audit_chains = _table(
    "audit_chains",
    *_key(id=_ID),
    *_required(place=_ID, host=Text, pid=Integer, begun_at=Instant, seq=BigInteger),
    *_required(mac=String(64)),
    *_optional(written_at=Instant),
    *_required(ended=Integer),
    *_optional(dropped=String(10)),
    *_required(dropped_seq=BigInteger, dropped_mac=String(64)),
    *_optional(dropped_seal=String(81)),
)

# How far a chain is indexed: bytes of that day's file, the last line's number and time.
audit_progress = _table(
    "audit_progress",
    *_key(chain=_ID),
    *_required(day=String(10), bytes=BigInteger, seq=BigInteger, time=String(19)),
)

# How many calls of a day (days since 1970) the index has, and how often they were shown a record.
audit_days = _table(
    "audit_days", *_key(day=Integer), *_required(calls=BigInteger, reads=BigInteger)
)

# What rows of the next two tables have in common: the key, the operation, the level and the policy.
# Level and policy are empty where a call did not get so far.
audit_views = _table(
    "audit_views",
    sa.Column("id", Integer, primary_key=True),
    *_required(key_id=_ID, operation=String(40), level=String(10), policy=String(64)),
    sa.UniqueConstraint("key_id", "operation", "level", "policy", name="audit_views_once"),
)

# Who was shown a record (16 bytes), how often, and in which second of a day first and last.
audit_reads = _table(
    "audit_reads",
    *_key(day=Integer, record=LargeBinary(16), view_id=Integer),
    *_required(times=Integer, first=Integer, last=Integer),
    sqlite_with_rowid=False,
)

# What a key did: the same sums by how its calls ended.
audit_calls = _table(
    "audit_calls",
    *_key(day=Integer, view_id=Integer, outcome=String(10), reason=String(40)),
    *_required(times=Integer, first=Integer, last=Integer),
    sqlite_with_rowid=False,
)

# Who may use the panel: `name_key` is the name as it is compared. `password` is an Argon2id hash.
# A one_time password lets its owner choose another, once; it is kept as a SHA-256 digest,
# `sha256$...`. An empty one lets nobody in.
administrators = _table(
    "administrators",
    *_key(id=_ID),
    *_required(name=Text, name_key=Text, role=String(10), password=Text, one_time=Integer),
    *_required(created_at=Instant),
    *_optional(signed_in_at=Instant),
    sa.UniqueConstraint("name_key", name="administrators_by_name"),
)

# Who is signed in, by the digest of what the browser holds; `data` is JSON.
admin_sessions = _table(
    "admin_sessions",
    *_key(digest=_DIGEST),
    *_required(id=_ID),
    sa.Column("administrator_id", _ID, sa.ForeignKey("administrators.id"), nullable=False),
    *_required(data=Text, created_at=Instant, seen_at=Instant, address=Text, agent=Text),
    Index("admin_sessions_by_administrator", "administrator_id"),
)

# How often a password was wrong since it was last right, by those whose attempts count together:
# the strangers at a name, a browser, a session.
admin_failures = _table(
    "admin_failures", *_key(subject=_DIGEST), *_required(times=Integer, last_at=Instant)
)

# What was done in the panel and by commands, to be shown; the audit's chains have the same under
# seal. `details` is JSON.
admin_deeds = _table(
    "admin_deeds",
    sa.Column("id", Integer, primary_key=True),
    *_required(at=Instant, who=Text, deed=String(40), subject=Text, outcome=String(10)),
    *_required(details=Text),
    Index("admin_deeds_by_subject", "subject"),
    Index("admin_deeds_by_deed", "deed", "id"),
    Index("admin_deeds_by_who", "who", "id"),
    Index("admin_deeds_by_time", "at"),
)
