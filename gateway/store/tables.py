"""The tables of the gateway's own database. Times are ISO 8601 texts in UTC, of one length."""

from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    insert,
)
from sqlalchemy.ext.asyncio import AsyncConnection


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


class Instant(TypeDecorator[datetime]):
    """An aware datetime as text of 27 characters, which sorts as time does."""

    impl = String(27)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> str | None:
        return None if value is None else instant(value)

    def process_result_value(self, value: str | None, dialect: Any) -> datetime | None:
        return read_instant(value)


def adding(connection: AsyncConnection | Connection, table: Table) -> Any:
    """An INSERT that can say what happens to a row that is there already (ON CONFLICT).

    The other dialect's module, which is slow to import, stays out.
    """
    return import_module(f"sqlalchemy.dialects.{connection.dialect.name}").insert(table)


metadata = MetaData()
# Where alembic notes up to which migration a database has come.
version = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def make(connection: Connection) -> None:
    """Make all tables and their first rows, in the caller's transaction."""
    metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(revisions), [{"name": name, "value": 0} for name in FOLLOWED])


def _optional(kind: Any, *names: str, **options: Any) -> list[Column[Any]]:
    return [Column(name, kind, **options) for name in names]


_required = partial(_optional, nullable=False)
_key = partial(_optional, primary_key=True, autoincrement=False)


def _table(name: str, *parts: Any, **options: Any) -> Table:
    return Table(name, metadata, *parts, **options)


_ID = String(36)
_DIGEST = LargeBinary(32)

# What there is one of: the fingerprint of the sealing secret, set once and then compared, and what
# the last look at the practice system found.
meta = _table("meta", *_key(String(100), "name"), *_required(Text, "value"))

# One row per thing that others follow; `keys` is moved on by every change of a key.
FOLLOWED = ("keys", "policy")
revisions = _table("revisions", *_key(String(100), "name"), *_required(Integer, "value"))

# `permissions` and `networks` are JSON arrays, `scopes` is an object.
keys = _table(
    "keys",
    *_key(_ID, "id"),
    *_required(Text, "name"),
    *_optional(Text, "contact"),
    *_required(Text, "permissions"),
    *_required(String(10), "level"),
    *_required(Text, "scopes"),
    *_required(Integer, "hourly_limit"),
    *_required(Instant, "created_at"),
    *_optional(Instant, "expires_at", "last_used_at", "revoked_at"),
    *_required(Integer, "revision"),
    *_optional(Integer, "bookings_per_day"),
    *_optional(Text, "networks"),
    Index("keys_by_revision", "revision"),
)

# A key has one secret, and for the overlap of a rotation the one before it too.
secrets = _table(
    "secrets",
    *_key(_DIGEST, "digest"),
    Column("key_id", _ID, ForeignKey("keys.id"), nullable=False),
    *_required(String(8), "hint"),
    *_required(Instant, "created_at"),
    *_optional(Instant, "expires_at"),
    Index("secrets_by_key", "key_id"),
)

# state: intended, sent, done, refused, unknown. `outcome` is the name of the refusal, or `found`
# for a booking that was found when nobody asked; `reference` what the practice system may keep of
# the attempt; `appointment_id` what came of it. From `starts_at` to `ends_at` a vet is taken by it.
# `owner` is the process that works on the row, and `claim` names its work: whoever takes the row
# over writes another. `sender` and `sent_at` tell of the last time that it was sent.
bookings = _table(
    "bookings",
    Column("id", Integer, primary_key=True),
    *_required(_ID, "key_id"),
    *_optional(_DIGEST, "idempotency_digest"),
    *_required(_DIGEST, "fingerprint"),
    *_required(String(10), "state"),
    *_optional(String(40), "outcome"),
    *_optional(LargeBinary, "record"),
    *_required(Instant, "created_at"),
    *_optional(_ID, "reference", "appointment_id"),
    *_optional(Instant, "ends_at", "starts_at"),
    *_optional(_ID, "vet_id"),
    *_optional(LargeBinary, "draft"),
    *_optional(_ID, "owner"),
    *_optional(String(32), "claim"),
    *_optional(_ID, "sender"),
    *_optional(Instant, "sent_at"),
    UniqueConstraint("key_id", "idempotency_digest", name="bookings_once"),
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
    *_key(_ID, "reference"),
    *_required(_ID, "key_id"),
    *_optional(_ID, "vet_id"),
    *_optional(Instant, "starts_at"),
    *_required(Instant, "created_at", "resolved_at"),
    *_optional(_ID, "appointment_id"),
    *_required(Integer, "told"),
    Index("resolved_bookings_by_time", "resolved_at"),
)

# When appointments are that were booked in an hour that the clinic's clock shows twice.
booked_times = _table(
    "booked_times", *_key(_ID, "appointment_id"), *_required(Instant, "starts_at", "ends_at")
)

# What must be looked at and written by one after the other, as bookings for one vet, or of one key
# that may make so many a day: its number is made of the id.
turns = _table("turns", *_key(Integer, "number"), *_required(Integer, "taken"))

# One row per process that books; `counter` moves on for as long as it lives.
presence = _table(
    "presence", *_key(_ID, "id"), *_required(Text, "host"), *_required(Integer, "pid", "counter")
)


def _usage(name: str, time: str) -> Table:
    return _table(
        name,
        *_key(Integer, time),
        *_key(_ID, "key_id"),
        *_key(String(40), "operation"),
        *_required(Integer, "answered", "refused", "forbidden", "limited", "failed"),
        *_required(Integer, "unauthorized", server_default="0"),
        *_required(BigInteger, "micros", server_default="0"),
        *_required(Integer, "slow", server_default="0"),
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
public_ids = _table(
    "public_ids",
    *_key(_ID, "public_id"),
    *_required(String(40), "resource"),
    *_required(Text, "key"),
)

# Every policy that ran, or waits, by the hash of its bytes; kept for ever. `made_of` names, with a
# blank between, the policy that ran before and the file, where what ran is what both let be seen.
policy_versions = _table(
    "policy_versions",
    *_key(String(64), "hash"),
    *_required(LargeBinary, "content"),
    *_required(Text, "file"),
    *_optional(Instant, "first_ran_at"),
    *_optional(String(129), "made_of"),
)

# event: ran, held, refused, approved. `hash` is empty where the file could not be read.
policy_history = _table(
    "policy_history",
    Column("id", Integer, primary_key=True),
    *_required(Instant, "at"),
    *_required(String(10), "event"),
    *_required(String(64), "hash"),
    *_optional(Text, "who", "reason"),
    Index("policy_history_by_event", "event", "hash"),
)

# One row per process that serves: what it says of its policy (JSON), when it last said so, and up
# to which revision of `policy` it has looked.
policy_processes = _table(
    "policy_processes",
    *_key(_ID, "id"),
    *_required(Text, "host"),
    *_required(Integer, "pid"),
    *_required(Instant, "started_at", "seen_at"),
    *_required(Integer, "revision"),
    *_required(Text, "state"),
)

# One row per chain of the audit, that is per process: in which folder (`place`) and by whom it was
# begun, and its head (number and mac of the last line); `dropped` is the last day that went for its
# age, with the head of then, sealed with the audit's key.
audit_chains = _table(
    "audit_chains",
    *_key(_ID, "id"),
    *_required(_ID, "place"),
    *_required(Text, "host"),
    *_required(Integer, "pid"),
    *_required(Instant, "begun_at"),
    *_required(BigInteger, "seq"),
    *_required(String(64), "mac"),
    *_optional(Instant, "written_at"),
    *_required(Integer, "ended"),
    *_optional(String(10), "dropped"),
    *_required(BigInteger, "dropped_seq"),
    *_required(String(64), "dropped_mac"),
    *_optional(String(81), "dropped_seal"),
)

# How far the index knows a chain: bytes of that day's file, the last line's number and time.
audit_progress = _table(
    "audit_progress",
    *_key(_ID, "chain"),
    *_required(String(10), "day"),
    *_required(BigInteger, "bytes", "seq"),
    *_required(String(19), "time"),
)

# How many calls of a day (days since 1970) the index has, and how often they were shown a record.
audit_days = _table("audit_days", *_key(Integer, "day"), *_required(BigInteger, "calls", "reads"))

# What the rows of the next two tables have in common: which key called what, at which level and by
# which policy. Where a call got no further, level and policy are empty.
audit_views = _table(
    "audit_views",
    Column("id", Integer, primary_key=True),
    *_required(_ID, "key_id"),
    *_required(String(40), "operation"),
    *_required(String(10), "level"),
    *_required(String(64), "policy"),
    UniqueConstraint("key_id", "operation", "level", "policy", name="audit_views_once"),
)

# Who was shown a record (16 bytes) how often, in which second of a day first, and in which last.
audit_reads = _table(
    "audit_reads",
    *_key(Integer, "day"),
    *_key(LargeBinary(16), "record"),
    *_key(Integer, "view_id"),
    *_required(Integer, "times", "first", "last"),
    sqlite_with_rowid=False,
)

# What a key did: the same sums by how the calls ended.
audit_calls = _table(
    "audit_calls",
    *_key(Integer, "day", "view_id"),
    *_key(String(10), "outcome"),
    *_key(String(40), "reason"),
    *_required(Integer, "times", "first", "last"),
    sqlite_with_rowid=False,
)

# Who may use the panel: `name_key` is the name as it is compared. `password` is an Argon2id hash.
# A password that is one_time lets its owner choose another, once; of it a SHA-256 digest is kept,
# `sha256$...`. An empty one lets nobody in.
administrators = _table(
    "administrators",
    *_key(_ID, "id"),
    *_required(Text, "name", "name_key"),
    *_required(String(10), "role"),
    *_required(Text, "password"),
    *_required(Integer, "one_time"),
    *_required(Instant, "created_at"),
    *_optional(Instant, "signed_in_at"),
    UniqueConstraint("name_key", name="administrators_by_name"),
)

# Who is signed in, by the digest of what the browser holds; `data` is JSON.
admin_sessions = _table(
    "admin_sessions",
    *_key(_DIGEST, "digest"),
    *_required(_ID, "id"),
    Column("administrator_id", _ID, ForeignKey("administrators.id"), nullable=False),
    *_required(Text, "data"),
    *_required(Instant, "created_at", "seen_at"),
    *_required(Text, "address", "agent"),
    Index("admin_sessions_by_administrator", "administrator_id"),
)

# How often somebody has failed with a password since it was last right, by whose attempts count
# together: a name's strangers, a browser, a session.
admin_failures = _table(
    "admin_failures",
    *_key(_DIGEST, "subject"),
    *_required(Integer, "times"),
    *_required(Instant, "last_at"),
)

# What was done in the panel and by commands, to be shown; the audit's chains have the same under
# seal. `details` is JSON.
admin_deeds = _table(
    "admin_deeds",
    Column("id", Integer, primary_key=True),
    *_required(Instant, "at"),
    *_required(Text, "who"),
    *_required(String(40), "deed"),
    *_required(Text, "subject"),
    *_required(String(10), "outcome"),
    *_required(Text, "details"),
    Index("admin_deeds_by_subject", "subject"),
    Index("admin_deeds_by_deed", "deed", "id"),
    Index("admin_deeds_by_who", "who", "id"),
    Index("admin_deeds_by_time", "at"),
)
