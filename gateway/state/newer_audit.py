"""The audit that is newer than its store: after a restore its chains and deeds enter the store."""

import asyncio
import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from itertools import groupby
from pathlib import Path

from gateway.administrators.log import DONE, FAILED, Deed, DeedLog
from gateway.audit.chains import Chains, DayFile, Known, audit_folder, day_files, is_open, place_of
from gateway.audit.entries import ChainHead, key_file, read_secrets
from gateway.audit.verification import BrokenChain, Walk
from gateway.settings import Settings
from gateway.state.audited_deeds import deeds_in
from gateway.store import Store


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
    files = await asyncio.to_thread(_by_chain, folder)
    known = {each.id: each for each in await Chains(store).known()}
    own = [each for chain in files if (each := known.get(chain))]
    new = [_unknown(folder, own) for chain, own in files.items() if chain not in known]
    last = await DeedLog(store).last(1)
    after = last[0].at if last else datetime.min.replace(tzinfo=UTC)
    secrets = read_secrets(key_file(settings)) if files else ()
    chains, deeds, broken = [], [], []
    for each in (*own, *new):
        walk = Walk(folder, each, secrets)
        try:
            await asyncio.to_thread(walk.follow, files[each.id])
        except BrokenChain as error:
            broken += [str(error)] if each.id not in known else []
            continue
        beyond = _deeds(files[each.id], each.head, walk.head)
        deeds += [deed for deed in beyond if each.id not in known or deed.at > after]
        if each.id not in known:
            chains.append(replace(each, head=walk.head, ended=walk.ended))
    deeds.sort(key=lambda deed: deed.at)
    return NewerAudit(chains=chains, deeds=deeds, broken=broken)


async def enter(store: Store, newer: NewerAudit) -> None:
    """Make the store know it, all at once. StoreError."""
    async with store.begin() as connection:
        await Chains.enter(connection, newer.chains)
        for each in newer.deeds:
            await DeedLog.enter(connection, each)


def _by_chain(folder: Path) -> dict[str, list[DayFile]]:
    """The files of each chain that nobody writes to."""
    files = sorted(day_files(folder), key=lambda each: (each.chain, each.day))
    found = {chain: list(own) for chain, own in groupby(files, key=lambda each: each.chain)}
    return {chain: own for chain, own in found.items() if not is_open(own[-1].path)}


def _unknown(folder: Path, files: Sequence[DayFile]) -> Known:
    """A chain as it was when it began."""
    return Known(
        id=files[0].chain,
        place=place_of(folder) or "",
        host=socket.gethostname(),
        begun=_begun(files[0]),
        head=ChainHead(),
        ended=False,
        dropped=None,
        base=ChainHead(),
        base_seal="",
    )


def _begun(file: DayFile) -> datetime:
    """As its first line says, unverified; else that day's midnight."""
    with file.path.open("rb") as lines:
        try:
            return datetime.fromisoformat(json.loads(lines.readline())["time"])
        except (ValueError, KeyError, TypeError):
            return datetime.combine(file.day, time(), UTC)


def _deeds(files: Sequence[DayFile], known: ChainHead, last: ChainHead) -> Iterator[Deed]:
    """Those that had ended in the verified lines that follow the head that the store knows."""
    for file in files:
        for each in deeds_in(file):
            if known.seq < each["seq"] <= last.seq and each["result"] in (DONE, FAILED):
                yield Deed(
                    at=datetime.fromisoformat(each["time"]),
                    who=each["who"],
                    deed=each["deed"],
                    subject=each["subject"],
                    outcome=each["result"],
                    details=each["details"],
                )
