"""Since when bookings are seen that nobody knows of: kept for the next process of this machine.

Counted by the machine's steady clock, which is the same in all of its processes and which nobody
sets: a wall clock that jumps would free a time while its booking may still come, and so would two
machines whose clocks differ. What is of another boot, cannot be read or was not written counts for
nothing, so that the counting begins anew.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import DecodeError, Struct, json

from gateway.booking.owners import boot


class _Kept(Struct):
    boot: str
    since: dict[str, float]


_decode = json.Decoder(_Kept).decode


def read_first_seen(file: Path, now: float) -> dict[str, float]:
    """What was sent -> the second at which an earlier process saw first that it is not known."""
    try:
        kept = _decode(file.read_bytes())
    except (OSError, DecodeError):
        return {}
    if kept.boot != boot():
        return {}
    return {sending: since for sending, since in kept.since.items() if since <= now}


def write_first_seen(file: Path, since: Mapping[str, float]) -> None:
    """The same for whoever comes next; where it cannot be written nothing is left that is old."""
    new = file.with_suffix(".new")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
            opened.write(json.encode(_Kept(boot(), dict(since))))
        new.replace(file)
    except OSError:
        with suppress(OSError):
            file.unlink(missing_ok=True)
