"""The audit that is newer than its store, or a backup.

After a restore its chains and deeds enter the store.
"""

import asyncio
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from pathlib import Path

import msgspec

from gateway.administrators.log import DONE, FAILED, Deed, DeedLog
from gateway.audit.chains import (
    Chains,
    DayFile,
    Known,
    audit_folder,
    day_files,
    files_by_chain,
    is_open,
    place_of,
)
from gateway.audit.entries import DEED, DeedLine, key_file, read_line, read_secrets
from gateway.audit.verification import BrokenChain, Walk
from gateway.contract.fields import write_instant
from gateway.settings import Settings
from gateway.store import Store

_DEED = b'"kind":"deed"'


class _NumberedDeed(DeedLine, tag=DEED, tag_field="kind", rename="camel", kw_only=True):
    seq: int


_decode = msgspec.json.Decoder(_NumberedDeed).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerAudit:
    """Verified chains that the store does not know, and deeds that it lacks, the oldest first.

    `broken` says of each other such chain where it is not as it was written.
    """

    chains: Sequence[Known]
    deeds: Sequence[Deed]
    broken: Sequence[str]


async def read_newer_audit(settings: Settings, store: Store) -> NewerAudit:
    """What the day files have beyond the store. StoreError, OSError, StartRefused."""
    folder = audit_folder(settings)
    every = await asyncio.to_thread(files_by_chain, folder)
    files = {chain: own for chain, own in every.items() if not is_open(own[-1].path)}
    known = {chain.id: chain for chain in await Chains(store).known()}
    own = [chain for name in files if (chain := known.get(name))]
    new = [_unknown(folder, some[0]) for name, some in files.items() if name not in known]
    last = await DeedLog(store).last(1)
    after = last[0].at if last else datetime.min.replace(tzinfo=UTC)
    secrets = read_secrets(key_file(settings)) if files else ()
    chains, broken, deeds = [], [], list[Deed]()
    for chain in (*own, *new):
        walk = Walk(folder, chain, secrets)
        try:
            await asyncio.to_thread(walk.follow, files[chain.id])
        except BrokenChain as error:
            broken += [str(error)] if chain.id not in known else []
            continue
        # those that had ended, in the verified lines that follow the head that the store knows
        for number, deed in _deeds_in(files[chain.id]):
            is_beyond = chain.head.seq < number <= walk.head.seq
            is_lacking = chain.id not in known or deed.at > after
            if is_beyond and is_lacking and deed.outcome in (DONE, FAILED):
                deeds.append(deed)
        if chain.id not in known:
            chains.append(replace(chain, head=walk.head, ended=walk.ended))
    deeds.sort(key=lambda deed: deed.at)
    return NewerAudit(chains=chains, deeds=deeds, broken=broken)


async def enter(store: Store, newer: NewerAudit) -> None:
    """Make the store know it, all at once. StoreError."""
    async with store.begin() as connection:
        await Chains.enter(connection, newer.chains)
        for deed in newer.deeds:
            await DeedLog.enter(connection, deed)


def _unknown(folder: Path, file: DayFile) -> Known:
    """A chain as it was when it began: as its first line says, unverified, else at midnight."""
    begun = datetime.combine(file.day, time(), UTC)
    with file.path.open("rb") as lines, suppress(ValueError):
        if first := read_line(lines.readline()):
            begun = datetime.fromisoformat(first.time)
    place, host = place_of(folder) or "", socket.gethostname()
    return Known(id=file.chain, place=place, host=host, begun=begun)


def deeds_since(folder: Path, moment: datetime, names: Mapping[str, str]) -> list[str]:
    """What was done to keys, each a sentence, the oldest first; `names` by key id. OSError."""
    files = [file for file in day_files(folder) if file.day >= moment.astimezone(UTC).date()]
    sentences = []
    for _, deed in sorted(_deeds_in(files), key=lambda found: found[1].at):
        if deed.outcome == DONE and deed.at > moment and deed.deed.startswith("key "):
            name = names.get(deed.subject) or deed.details.get("name")
            whom = f"{name} ({deed.subject})" if name else deed.subject
            told = f"{deed.deed} after the backup: {whom}"
            sentences.append(f"{told}, by {deed.who}, {write_instant(deed.at)}")
    return sentences


def _deeds_in(files: Sequence[DayFile]) -> Iterator[tuple[int, Deed]]:
    """Deeds with the numbers of their lines, unverified; a line cut off is left out. OSError."""
    for file in files:
        with file.path.open("rb") as lines:
            for text in lines:
                if _DEED not in text[:64]:
                    continue
                with suppress(msgspec.MsgspecError, ValueError):
                    line = _decode(text)
                    yield (
                        line.seq,
                        Deed(
                            at=line.time,
                            who=line.who,
                            deed=line.deed,
                            subject=line.subject,
                            outcome=line.result,
                            details=line.details,
                        ),
                    )
