"""What a gateway's processes have counted, kept for the operations process that comes next.

Without it a series would fall to what the living have counted, and Prometheus would take all of
that for new.
"""

import os
from contextlib import suppress
from pathlib import Path

from msgspec import DecodeError, Struct, json

from gateway.observe.merged import Snapshot


class Sums(Struct):
    """Of all that have ended, and by process id of each that may live: what it told last."""

    ended: Snapshot = {}
    each: dict[int, Snapshot] = {}


_encode, _decode = json.Encoder().encode, json.Decoder(Sums).decode


def kept_sums(file: Path) -> Sums:
    """What lies there; none where it cannot be read."""
    try:
        return _decode(file.read_bytes())
    except (OSError, DecodeError):
        return Sums()


def keep_sums(file: Path, sums: Sums) -> None:
    """Put them there, whole; where they cannot be written the older ones stay."""
    new = file.with_suffix(".new")
    with suppress(OSError):
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
            opened.write(_encode(sums))
        new.replace(file)
