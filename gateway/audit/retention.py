"""Old days go: first the store is told up to where, so that nobody takes it for a deletion."""

import hmac
import re
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import groupby, takewhile
from pathlib import Path

from gateway.audit.chain import Head
from gateway.audit.chains import Chains, Known
from gateway.audit.files import DayFile, day_files, is_open
from gateway.audit.secrets import Secret
from gateway.audit.tail import sync_folder

# A line holds 200 ids at most.
_LONGEST = 64 << 10
_seq = re.compile(rb'\{"seq":([0-9]{1,18}),').match
_mac = re.compile(rb'.*,"mac":"([0-9a-f]{64})"\}').fullmatch


def base_seal(secret: Secret, chain: str, day: date, base: Head) -> str:
    """What the audit's key says of days that were dropped."""
    text = b"dropped %b %b %d " % (chain.encode(), str(day).encode(), base.seq) + base.mac
    return f"{secret.id}:{hmac.digest(secret.value, text, 'sha256').hex()}"


def is_sealed(known: Known, secrets: Iterable[Secret]) -> bool:
    """Whether the days were dropped by who has the audit's key."""
    if known.dropped is None:
        return known.base == Head()
    return any(
        hmac.compare_digest(base_seal(each, known.id, known.dropped, known.base), known.base_seal)
        for each in secrets
    )


def last_head(path: Path) -> Head | None:
    """The number and the mac of the last whole line, unverified; None where it has none."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 2 * _LONGEST))
        lines = file.read().split(b"\n")[:-1]
    if not lines:
        return None
    seq, mac = _seq(lines[-1]), _mac(lines[-1])
    return Head(int(seq[1]), bytes.fromhex(mac[1].decode())) if seq and mac else None


async def expire(chains: Chains, folder: Path, secret: Secret, before: date) -> int:
    """Drop the files of the days before that one; how many. StoreError, OSError."""
    dropped = 0
    known = {each.id: each for each in await chains.known()}
    files = sorted(day_files(folder), key=lambda each: (each.chain, each.day))
    for chain, own in groupby(files, key=lambda each: each.chain):
        old = list(takewhile(lambda each: each.day < before and not is_open(each.path), own))
        if old and await _may_go(chains, known.get(chain), old, secret):
            for each in old:
                each.path.unlink()
            dropped += len(old)
    if dropped:
        sync_folder(folder)
    return dropped


async def _may_go(
    chains: Chains, known: Known | None, old: Sequence[DayFile], secret: Secret
) -> bool:
    """Once the store knows up to where; a chain that it does not know has nobody to tell."""
    if known is None:
        return True
    base = last_head(old[-1].path) or known.head
    if base.seq > known.base.seq:
        seal = base_seal(secret, known.id, old[-1].day, base)
        await chains.drop(known.id, old[-1].day, base, seal)
    return True
