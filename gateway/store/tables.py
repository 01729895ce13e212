"""The tables of the gateway's own database. Times are ISO 8601 texts in UTC, of one length."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from typing import Any

import sqlalchemy as sa
from sqlalchemy import BigInteger, Index, Integer, LargeBinary, String, Text
from sqlalchemy.ext.asyncio import AsyncConnection

# So many rows go to the driver at once.
ROWS_AT_ONCE = 2_000


def instant(moment: datetime) -> str:
    """A time as an Instant column holds it."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def read_instant(text: str | None) -> datetime | None:
    """What an Instant column holds, as a time; ValueError where that is none with an offset."""
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
    """An INSERT that can say what happens to a row that is there already (ON CONFLICT).

    The other dialect's module, which is slow to import, stays out.
    """
    return import_module(f"sqlalchemy.dialects.{connection.dialect.name}").insert(table)


def members(row: Any) -> dict[str, Any]:
    """A row's values by plain names, as what converts them wants them."""
    return {str(name): value for name, value in row._asdict().items()}


async def add_sums(
    connection: AsyncConnection, table: sa.Table, rows: Sequence[tuple[Any, ...]]
) -> None:
    """Add to what is there; `first` and `last` become the outermost. A row has all columns.

    In the order of the key: so two never wait for each other, and pages lie side by side.
    """
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
    for at in range(0, len(rows), ROWS_AT_ONCE):
        # as tuples to the driver: to bind a row costs else ten times what the database needs for it
        await connection.exec_driver_sql(words, rows[at : at + ROWS_AT_ONCE])


metadata = sa.MetaData()
# Where alembic notes up to which migration a database has come.
version = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def make(connection: sa.Connection) -> None:
    """Make all tables and their first rows, in the caller's transaction."""
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

# What there is one of: the fingerprint of the sealing secret, set once and then compared, and what
# the last look at the practice system found.
meta = _table("meta", *_key(name=String(100)), *_required(value=Text))

# One row per thing that others follow; `keys` is moved on by every change of a key.
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

# A key has one secret, and for the overlap of a rotation the one before it too.
secrets = _table(
    "secrets",
    *_key(digest=_DIGEST),
    sa.Column("key_id", _ID, sa.ForeignKey("keys.id"), nullable=False),
    *_required(hint=String(8), created_at=Instant),
    *_optional(expires_at=Instant),
    Index("secrets_by_key", "key_id"),
)

# state: intended, sent, done, refused, unknown. `outcome` is the name of the refusal, or `found`
# for a booking that was found when nobody asked; `reference` what the practice system may keep of
# the attempt; `appointment_id` what came of it. From `starts_at` to `ends_at` a vet is taken by it.
# `owner` is the process that works on the row, and `claim` names its work: whoever takes the row
# over writes another. `sender` and `sent_at` tell of the last time that it was sent.
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

# How bookings ended of which for some time nobody knew: `appointment_id` is what came of one, empty
# where it was not made; `told` whether that came out by its partner's asking again.
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

# When appointments are that were booked in an hour that the clinic's clock shows twice.
booked_times = _table(
    "booked_times", *_key(appointment_id=_ID), *_required(starts_at=Instant, ends_at=Instant)
)

# What must be looked at and written by one after the other, as bookings for one vet, or of one key
# that may make so many a day: its number is made of the id.
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
# blank between, the policy that ran before and the file, where what ran is what both let be seen.
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

# One row per process that serves: what it says of its policy (JSON), when it last said so, and up
# to which revision of `policy` it has looked.
policy_processes = _table(
    "policy_processes",
    *_key(id=_ID),
    *_required(host=Text, pid=Integer, started_at=Instant, seen_at=Instant, revision=Integer),
    *_required(state=Text),
)

# One row per chain of the audit, that is per process: in which folder (`place`) and by whom it was
# begun, and its head (number and mac of the last line); `dropped` is the last day that went for its
# age, with the head of then, sealed with the audit's key.
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

# How far the index knows a chain: bytes of that day's file, the last line's number and time.
audit_progress = _table(
    "audit_progress",
    *_key(chain=_ID),
    *_required(day=String(10), bytes=BigInteger, seq=BigInteger, time=String(19)),
)

# How many calls of a day (days since 1970) the index has, and how often they were shown a record.
audit_days = _table(
    "audit_days", *_key(day=Integer), *_required(calls=BigInteger, reads=BigInteger)
)

# What the rows of the next two tables have in common: which key called what, at which level and by
# which policy. Where a call got no further, level and policy are empty.
audit_views = _table(
    "audit_views",
    sa.Column("id", Integer, primary_key=True),
    *_required(key_id=_ID, operation=String(40), level=String(10), policy=String(64)),
    sa.UniqueConstraint("key_id", "operation", "level", "policy", name="audit_views_once"),
)

# Who was shown a record (16 bytes) how often, in which second of a day first, and in which last.
audit_reads = _table(
    "audit_reads",
    *_key(day=Integer, record=LargeBinary(16), view_id=Integer),
    *_required(times=Integer, first=Integer, last=Integer),
    sqlite_with_rowid=False,
)

# What a key did: the same sums by how the calls ended.
audit_calls = _table(
    "audit_calls",
    *_key(day=Integer, view_id=Integer, outcome=String(10), reason=String(40)),
    *_required(times=Integer, first=Integer, last=Integer),
    sqlite_with_rowid=False,
)

# Who may use the panel: `name_key` is the name as it is compared. `password` is an Argon2id hash.
# A password that is one_time lets its owner choose another, once; of it a SHA-256 digest is kept,
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

# How often somebody has failed with a password since it was last right, by whose attempts count
# together: a name's strangers, a browser, a session.
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
