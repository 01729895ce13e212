"""The lines of the audit (entries, marks and deeds), and the HMAC keys that chain them.

A line is a JSON object: `{"seq":N,`, its members, then `,"mac":"` and 64 digits. The mac is the
HMAC-SHA256 of the mac before (32 bytes) and of this line up to its own mac. The keys are in a file
of their own, one to a line in 64 hexadecimal digits, beside the state's identity. The newest comes
first and seals; the others still verify.
"""

import hmac
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from gateway.identity import identity_of, reason_of, replace_text, state_line, write_new
from gateway.settings import Settings, StartRefused, read_secret_file
from gateway.settings.kinds import read_sealing_secret

# How a call ended: refused is a 4xx, failed a 5xx, unknown a booking that may have been made.
# A begun booking has not been sent to the practice system yet.
ANSWERED, REFUSED, FAILED, UNKNOWN = "answered", "refused", "failed", "unknown"
BEGUN = "begun"

# A file or a key begins, the clock was set, lines could not be kept, calls have no line of their
# own, the process ends in order.
BEGIN, CLOCK, LOST, SPARED, END = "begin", "clock", "lost", "spared", "end"
# Somebody did something, in the panel or by a command.
DEED = "deed"

_MAC, _END = b',"mac":"', b'"}\n'
# Bytes of a line from its mac to its end.
_SEALED = len(_MAC) + 64 + len(_END)


class Entry(msgspec.Struct, rename="camel", gc=False):
    """The entry of one call: who was shown what, in names and ids, never a value, query or secret.

    `policy` is the beginning of the hash of the policy that decided the fields. `reason` names the
    error, where there was one.
    """

    time: datetime
    request_id: str
    key_id: str | None
    operation: str
    record_ids: Sequence[str]
    level: str | None
    policy: str | None
    outcome: str
    reason: str | None


class Mark(msgspec.Struct, rename="camel", omit_defaults=True):
    """A line that a chain writes about itself.

    `begin` names the chain, the day of its file and the HMAC key by its id. `clock` has the seconds
    by which the wall clock was set, negative where backwards; `lost` the number of entries;
    `spared` the number of a key's calls, or of callers without any, that counted against no limit.
    """

    kind: str
    time: datetime
    chain: str = ""
    day: str = ""
    key: str = ""
    seconds: float = 0.0
    lines: int = 0
    key_id: str = ""


class DeedLine(msgspec.Struct, rename="camel", tag_field="kind", tag=DEED):
    """A deed of an administrator: who did what to what; `result` is begun, done or failed."""

    time: datetime
    who: str
    deed: str
    subject: str
    result: str
    details: Mapping[str, Any]


class CountedLine(msgspec.Struct, rename="camel", kw_only=True, gc=False):
    """What the index counts of a line; a mark and a deed have a `kind`, an entry has none.

    Nothing else is decoded: a line that is damaged elsewhere counts, and verification reports it.
    """

    seq: int = 0
    time: str
    key_id: str | None = None
    operation: str = ""
    record_ids: list[str] = []
    level: str | None = None
    policy: str | None = None
    outcome: str = ""
    reason: str | None = None
    kind: str = ""


class AuditLine(CountedLine, rename="camel", kw_only=True, gc=False):
    """A line of any kind as it is read back."""

    request_id: str = ""
    mac: str = ""
    chain: str = ""
    day: str = ""
    key: str = ""

    def members(self) -> dict[str, Any]:
        """Returns the members of an entry in the order in which they were written."""
        line = msgspec.to_builtins(self)
        return {name: line[name] for name in ("seq", *Entry.__struct_encode_fields__, "mac")}


_decode = msgspec.json.Decoder(AuditLine).decode


def read_line(text: bytes) -> AuditLine | None:
    """Returns the line, unverified; None where the text is no line of the audit."""
    try:
        return _decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


@dataclass(frozen=True, slots=True)
class AuditSecret:
    """One HMAC key; `id` names it without revealing it."""

    value: bytes

    @property
    def id(self) -> str:
        return blake2b(b"audit key", key=self.value, digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The last line of a chain: its number and its mac."""

    seq: int = 0
    mac: bytes = bytes(32)


def seal(lines: Iterable[bytes], head: ChainHead, secret: AuditSecret) -> tuple[bytes, ChainHead]:
    """Returns the JSON objects as lines that follow `head`, and the new head."""
    # what depends on the key alone is hashed once, not for each line
    keyed, seq, mac = hmac.new(secret.value, digestmod="sha256"), head.seq, head.mac
    sealed = []
    for line in lines:
        seq += 1
        text = b'{"seq":%d,%b' % (seq, line[1:-1])
        code = keyed.copy()
        code.update(mac + text)
        mac = code.digest()
        sealed.append(b"%b%b%b%b" % (text, _MAC, mac.hex().encode(), _END))
    return b"".join(sealed), ChainHead(seq, mac)


def unseal(line: bytes, head: ChainHead, secret: AuditSecret) -> ChainHead | None:
    """Returns the head after this line; None where the line is not the one that was sealed."""
    text, sealed = line[:-_SEALED], line[-_SEALED:]
    mac = hmac.digest(secret.value, head.mac + text, "sha256")
    expected = b"%b%b%b" % (_MAC, mac.hex().encode(), _END)
    if not text.startswith(b'{"seq":%d,' % (head.seq + 1)):
        return None
    return ChainHead(head.seq + 1, mac) if hmac.compare_digest(sealed, expected) else None


def key_file(settings: Settings) -> Path:
    return settings.audit.key_file or settings.state / "audit.key"


def read_secrets(path: Path) -> tuple[AuditSecret, ...]:
    """Returns the secrets, the newest first; raises StartRefused where the file cannot be used."""
    lines = read_secret_file(path, "the audit's key").split()
    try:
        keys = tuple(AuditSecret(read_sealing_secret(line)) for line in lines)
    except ValueError as error:
        raise StartRefused(f"the audit's key {path}: each line {error}") from error
    if not keys:
        raise StartRefused(f"the audit's key {path} is empty: put it back from a backup")
    return keys


def secrets_at_start(
    path: Path, *, may_make: bool, state: str | None = None
) -> tuple[AuditSecret, ...]:
    """Returns the secrets; without a file makes one, if it `may_make`. Raises StartRefused."""
    if not path.exists():
        if not may_make:
            raise StartRefused(
                f"the audit's key {path} is gone: put it back from a backup;"
                " `clinic-gateway audit rotate-key` makes another one, with which what was"
                " written before cannot be verified any more"
            )
        # of two processes that start at once the second reads what the first has made
        with suppress(FileExistsError):
            _add_secret(path, state)
    return read_secrets(path)


def rotate(path: Path, state: str | None = None) -> AuditSecret:
    """Writes and returns a new secret, before any others; processes take it within a second."""
    if not path.exists():
        return _add_secret(path, state)
    return _add_secret(path, identity_of(path), read_secrets(path), path.stat())


def _add_secret(
    path: Path,
    state: str | None,
    known: Sequence[AuditSecret] = (),
    like: os.stat_result | None = None,
) -> AuditSecret:
    """Writes a new secret before the `known` ones and returns it; without `like` to a new file."""
    new = AuditSecret(secrets.token_bytes(32))
    text = state_line(state) + "".join(f"{key.value.hex()}\n" for key in (new, *known))
    write = write_new if like is None else partial(replace_text, like=like)
    try:
        write(path, text)
    except FileExistsError:
        raise
    except OSError as error:
        reason = reason_of(error)
        raise StartRefused(f"the audit's key {path} cannot be written: {reason}") from error
    return new


def newest_secret(path: Path, secret: AuditSecret) -> Callable[[], AuditSecret]:
    """Returns a function that reads the newest secret, or keeps the last where it cannot."""
    seen: tuple[int, int, int] | None = None

    def newest() -> AuditSecret:
        nonlocal secret, seen
        with suppress(OSError, StartRefused):
            status = path.stat()
            now = status.st_ino, status.st_mtime_ns, status.st_size
            if now != seen:
                secret, seen = read_secrets(path)[0], now
        return secret

    return newest
