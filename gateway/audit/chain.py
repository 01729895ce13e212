"""Lines chained by HMAC: each seals itself and all before it.

A line is JSON: `{"seq":N,` and the members, then `,"mac":"` and 64 digits. The mac is
HMAC-SHA256 over the mac of the line before (32 bytes) and all of this line that stands before its
own mac.
"""

import hmac
from binascii import hexlify
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from gateway.audit.secrets import Secret

_MAC = b',"mac":"'
_END = b'"}\n'
# Bytes that SHA-256 takes at a time.
BLOCK = 64
# Bytes of a line from the mac on.
SEALED = len(_MAC) + 64 + len(_END)


class Hash(Protocol):
    """A sum under way."""

    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Head:
    """The last line of a chain: its number and its mac."""

    seq: int = 0
    mac: bytes = bytes(32)


def seal(lines: Iterable[bytes], head: Head, secret: Secret) -> tuple[bytes, Head]:
    """The JSON objects as lines that follow `head`, and the head then."""
    # HMAC as RFC 2104 writes it: what depends on the key alone is summed once, not for each line
    (inner, outer), seq, mac = keyed(secret.value), head.seq, head.mac
    sealed = []
    for line in lines:
        seq += 1
        text = b'{"seq":%d,%b' % (seq, line[1:-1])
        within, around = inner(), outer()
        within.update(mac + text)
        around.update(within.digest())
        mac = around.digest()
        sealed.append(b"%b%b%b%b" % (text, _MAC, hexlify(mac), _END))
    return b"".join(sealed), Head(seq, mac)


def keyed(key: bytes) -> tuple[Callable[[], Hash], Callable[[], Hash]]:
    """What begins both sums of an HMAC-SHA256 with that key, anew with each call."""
    block = (sha256(key).digest() if len(key) > BLOCK else key).ljust(BLOCK, b"\0")
    inner, outer = (sha256(bytes(each ^ pad for each in block)) for pad in (0x36, 0x5C))
    return inner.copy, outer.copy


def unseal(line: bytes, head: Head, secret: Secret) -> Head | None:
    """The head once this line follows; None where it is not the one that was sealed."""
    text, sealed = line[:-SEALED], line[-SEALED:]
    mac = hmac.digest(secret.value, head.mac + text, "sha256")
    expected = b"%b%b%b" % (_MAC, mac.hex().encode(), _END)
    if not text.startswith(b'{"seq":%d,' % (head.seq + 1)):
        return None
    return Head(head.seq + 1, mac) if hmac.compare_digest(sealed, expected) else None
