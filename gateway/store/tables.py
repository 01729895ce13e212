"""The tables of the gateway's own database. Times are ISO 8601 texts in UTC, of one length."""

from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Dialect,
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


def adding(connection: AsyncConnection, table: Table) -> Any:
    """An INSERT that can say what happens to a row that is there already (ON CONFLICT)."""
    return insert_of(connection.dialect, table)


def insert_of(dialect: Dialect, table: Table) -> Any:
    """The same for a dialect; the other dialect's module, which is slow to import, stays out."""
    return import_module(f"sqlalchemy.dialects.{dialect.name}").insert(table)


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


def _required(kind: Any, *names: str) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name in names]


def _optional(kind: Any, *names: str) -> list[Column[Any]]:
    return [Column(name, kind) for name in names]


def _table(name: str, *parts: Any, **options: Any) -> Table:
    return Table(name, metadata, *parts, **options)


# What there is one of: the fingerprint of the sealing secret, set once and then compared, and what
# the last look at the practice system found.
meta = _table(
    "meta",
    Column("name", String(100), primary_key=True),
    Column("value", Text, nullable=False),
)

# One row per thing that others follow; `keys` is moved on by every change of a key.
FOLLOWED = ("keys", "policy")
revisions = _table(
    "revisions",
    Column("name", String(100), primary_key=True),
    Column("value", Integer, nullable=False),
)

keys = _table(
    "keys",
    Column("id", String(36), primary_key=True),
    Column("name", Text, nullable=False),
    Column("contact", Text),
    Column("permissions", Text, nullable=False),  # JSON array
    Column("level", String(10), nullable=False),
    Column("scopes", Text, nullable=False),  # JSON object
    Column("hourly_limit", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    *_optional(Instant, "expires_at", "last_used_at", "revoked_at"),
    Column("revision", Integer, nullable=False),
    Column("bookings_per_day", Integer),
    Column("networks", Text),  # JSON array
    Index("keys_by_revision", "revision"),
)

# A key has one secret, and for the overlap of a rotation the one before it too.
secrets = _table(
    "secrets",
    Column("digest", LargeBinary(32), primary_key=True),
    Column("key_id", String(36), ForeignKey("keys.id"), nullable=False),
    Column("hint", String(8), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant),
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
    Column("key_id", String(36), nullable=False),
    Column("idempotency_digest", LargeBinary(32)),
    Column("fingerprint", LargeBinary(32), nullable=False),
    Column("state", String(10), nullable=False),
    Column("outcome", String(40)),
    Column("record", LargeBinary),
    Column("created_at", Instant, nullable=False),
    *_optional(String(36), "reference", "appointment_id"),
    *_optional(Instant, "ends_at", "starts_at"),
    Column("vet_id", String(36)),
    Column("draft", LargeBinary),
    Column("owner", String(36)),
    Column("claim", String(32)),
    Column("sender", String(36)),
    Column("sent_at", Instant),
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
    Column("reference", String(36), primary_key=True),
    Column("key_id", String(36), nullable=False),
    Column("vet_id", String(36)),
    Column("starts_at", Instant),
    *_required(Instant, "created_at", "resolved_at"),
    Column("appointment_id", String(36)),
    Column("told", Integer, nullable=False),
    Index("resolved_bookings_by_time", "resolved_at"),
)

# When appointments are that were booked in an hour that the clinic's clock shows twice.
booked_times = _table(
    "booked_times",
    Column("appointment_id", String(36), primary_key=True),
    *_required(Instant, "starts_at", "ends_at"),
)

# What must be looked at and written by one after the other, as bookings for one vet, or of one key
# that may make so many a day: its number is made of the id.
turns = _table(
    "turns",
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("taken", Integer, nullable=False),
)

# One row per process that books; `counter` moves on for as long as it lives.
presence = _table(
    "presence",
    Column("id", String(36), primary_key=True),
    Column("host", Text, nullable=False),
    *_required(Integer, "pid", "counter"),
)


def _usage(name: str, time: str) -> Table:
    return _table(
        name,
        Column(time, Integer, primary_key=True, autoincrement=False),
        Column("key_id", String(36), primary_key=True),
        Column("operation", String(40), primary_key=True),
        *_required(Integer, "answered", "refused", "forbidden", "limited", "failed"),
        Column("unauthorized", Integer, nullable=False, server_default="0"),
        Column("micros", BigInteger, nullable=False, server_default="0"),
        Column("slow", Integer, nullable=False, server_default="0"),
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
    Column("public_id", String(36), primary_key=True),
    Column("resource", String(40), nullable=False),
    Column("key", Text, nullable=False),
)

# Every policy that ran, or waits, by the hash of its bytes; kept for ever. `made_of` names, with a
# blank between, the policy that ran before and the file, where what ran is what both let be seen.
policy_versions = _table(
    "policy_versions",
    Column("hash", String(64), primary_key=True),
    Column("content", LargeBinary, nullable=False),
    Column("file", Text, nullable=False),
    Column("first_ran_at", Instant),
    Column("made_of", String(129)),
)

# event: ran, held, refused, approved. `hash` is empty where the file could not be read.
policy_history = _table(
    "policy_history",
    Column("id", Integer, primary_key=True),
    Column("at", Instant, nullable=False),
    Column("event", String(10), nullable=False),
    Column("hash", String(64), nullable=False),
    *_optional(Text, "who", "reason"),
    Index("policy_history_by_event", "event", "hash"),
)

# One row per process that serves: what it says of its policy (JSON), when it last said so, and up
# to which revision of `policy` it has looked.
policy_processes = _table(
    "policy_processes",
    Column("id", String(36), primary_key=True),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    *_required(Instant, "started_at", "seen_at"),
    Column("revision", Integer, nullable=False),
    Column("state", Text, nullable=False),
)

# One row per chain of the audit, that is per process: in which folder (`place`) and by whom it was
# begun, and its head (number and mac of the last line); `dropped` is the last day that went for its
# age, with the head of then, sealed with the audit's key.
audit_chains = _table(
    "audit_chains",
    Column("id", String(36), primary_key=True),
    Column("place", String(36), nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("begun_at", Instant, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("mac", String(64), nullable=False),
    Column("written_at", Instant),
    Column("ended", Integer, nullable=False),
    Column("dropped", String(10)),
    Column("dropped_seq", BigInteger, nullable=False),
    Column("dropped_mac", String(64), nullable=False),
    Column("dropped_seal", String(81)),
)

# How far the index knows a chain: bytes of that day's file, the last line's number and time.
audit_progress = _table(
    "audit_progress",
    Column("chain", String(36), primary_key=True),
    Column("day", String(10), nullable=False),
    *_required(BigInteger, "bytes", "seq"),
    Column("time", String(19), nullable=False),
)

# How many calls of a day (days since 1970) the index has, and how often they were shown a record.
audit_days = _table(
    "audit_days",
    Column("day", Integer, primary_key=True, autoincrement=False),
    *_required(BigInteger, "calls", "reads"),
)

# What the rows of the next two tables have in common: which key called what, at which level and by
# which policy. Where a call got no further, level and policy are empty.
audit_views = _table(
    "audit_views",
    Column("id", Integer, primary_key=True),
    Column("key_id", String(36), nullable=False),
    Column("operation", String(40), nullable=False),
    Column("level", String(10), nullable=False),
    Column("policy", String(64), nullable=False),
    UniqueConstraint("key_id", "operation", "level", "policy", name="audit_views_once"),
)

# Who was shown a record (16 bytes) how often, in which second of a day first, and in which last.
audit_reads = _table(
    "audit_reads",
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("record", LargeBinary(16), primary_key=True),
    Column("view_id", Integer, primary_key=True, autoincrement=False),
    *_required(Integer, "times", "first", "last"),
    sqlite_with_rowid=False,
)

# What a key did: the same sums by how the calls ended.
audit_calls = _table(
    "audit_calls",
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("view_id", Integer, primary_key=True, autoincrement=False),
    Column("outcome", String(10), primary_key=True),
    Column("reason", String(40), primary_key=True),
    *_required(Integer, "times", "first", "last"),
    sqlite_with_rowid=False,
)

# Who may use the panel: `name_key` is the name as it is compared. `password` is an Argon2id hash.
# A password that is one_time lets its owner choose another, once; of it a SHA-256 digest is kept,
# `sha256$...`. An empty one lets nobody in.
administrators = _table(
    "administrators",
    Column("id", String(36), primary_key=True),
    *_required(Text, "name", "name_key"),
    Column("role", String(10), nullable=False),
    Column("password", Text, nullable=False),
    Column("one_time", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("signed_in_at", Instant),
    UniqueConstraint("name_key", name="administrators_by_name"),
)

# Who is signed in, by the digest of what the browser holds; `data` is JSON.
admin_sessions = _table(
    "admin_sessions",
    Column("digest", LargeBinary(32), primary_key=True),
    Column("id", String(36), nullable=False),
    Column("administrator_id", String(36), ForeignKey("administrators.id"), nullable=False),
    Column("data", Text, nullable=False),
    *_required(Instant, "created_at", "seen_at"),
    *_required(Text, "address", "agent"),
    Index("admin_sessions_by_administrator", "administrator_id"),
)

# How often somebody has failed with a password since it was last right, by whose attempts count
# together: a name's strangers, a browser, a session.
admin_failures = _table(
    "admin_failures",
    Column("subject", LargeBinary(32), primary_key=True),
    Column("times", Integer, nullable=False),
    Column("last_at", Instant, nullable=False),
)

# What was done in the panel and by commands, to be shown; the audit's chains have the same under
# seal. `details` is JSON.
admin_deeds = _table(
    "admin_deeds",
    Column("id", Integer, primary_key=True),
    Column("at", Instant, nullable=False),
    Column("who", Text, nullable=False),
    Column("deed", String(40), nullable=False),
    Column("subject", Text, nullable=False),
    Column("outcome", String(10), nullable=False),
    Column("details", Text, nullable=False),
    Index("admin_deeds_by_subject", "subject"),
    Index("admin_deeds_by_deed", "deed", "id"),
    Index("admin_deeds_by_who", "who", "id"),
    Index("admin_deeds_by_time", "at"),
)
